//! Statistics of many round trips.

/// Statistics of round trips, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RttSummary {
    pub(super) count: usize,
    pub(super) mean: f64,
    pub(super) median: f64,
    /// Half the 95 % interval of the median, for any distribution.
    pub(super) median_margin: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Half the 95 % interval of the mean.
    pub(super) margin: f64,
}

impl RttSummary {
    /// `None` without values.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / count.saturating_sub(1).max(1) as f64).sqrt();
        let margin = quantile(count) * deviation / (count as f64).sqrt();
        let median_margin = median_margin(&values);
        Some(Self { count, mean, median: median(&values), median_margin, min, max, margin })
    }

    /// Difference of the mean to another one, and half its 95 % interval.
    pub(super) fn minus(&self, other: &Self) -> (f64, f64) {
        (self.mean - other.mean, self.margin.hypot(other.margin))
    }

    /// Difference of the median to another one, and half its 95 % interval.
    pub(super) fn median_minus(&self, other: &Self) -> (f64, f64) {
        (self.median - other.median, self.median_margin.hypot(other.median_margin))
    }
}

/// Median of sorted values, of which there is at least one.
fn median(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// Half the distance between the order statistics that enclose the median with 95 %: the number of values below it is
/// binomial, and so approximately normal.
fn median_margin(values: &[f64]) -> f64 {
    let (count, half) = (values.len() as f64, Z * (values.len() as f64).sqrt() / 2.0);
    let low = (count / 2.0 - half).floor().max(0.0) as usize;
    let high = ((count / 2.0 + half).ceil() as usize).min(values.len() - 1);
    (values[high] - values[low]) / 2.0
}

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// Student's t for 95 % with this many values: an expansion about the normal quantile, within 0.2 % from 11 values on
/// (Abramowitz and Stegun, 26.7.5).
fn quantile(count: usize) -> f64 {
    let freedom = count.saturating_sub(1).max(1) as f64;
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    Z + first / freedom + second / freedom.powi(2)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_that_of_the_values() {
        let summary = RttSummary::of((1..=20).rev().map(f64::from).collect()).unwrap();
        assert_eq!((summary.count, summary.mean, summary.median), (20, 10.5, 10.5));
        assert_eq!((summary.min, summary.max), (1.0, 20.0));
        // 2.0930 * 5.9161 / sqrt(20)
        assert!((summary.margin - 2.7688).abs() < 1e-3, "{}", summary.margin);
        // Values 6 and 16 of 20, counted from 1.
        assert_eq!(summary.median_margin, 5.0);
        assert_eq!(RttSummary::of(vec![3.0, 1.0, 2.5]).unwrap().median, 2.5);
        assert_eq!(RttSummary::of(Vec::new()), None);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (count, t) in [(11, 2.2281), (20, 2.0930), (50, 2.0096), (1_000, 1.9623)] {
            assert!((quantile(count) - t).abs() < 4e-3, "{count}: {}", quantile(count));
        }
    }

    #[test]
    fn a_difference_is_less_certain_than_either() {
        let of = |values: &[f64]| RttSummary::of(values.to_vec()).unwrap();
        let (a, b) = (of(&[1.0, 2.0, 3.0]), of(&[2.0, 4.0, 6.0]));
        let (difference, margin) = b.minus(&a);
        assert_eq!(difference, 2.0);
        assert!(margin > b.margin && margin < a.margin + b.margin);
    }
}
