//! Means and their intervals.

/// Mean and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Mean of the runs.
    pub mean: f64,
    /// Half of its 95 % interval, by Student's t; `None` for one run.
    pub half: Option<f64>,
    /// Number of runs.
    pub count: usize,
}

impl Summary {
    /// Summarizes independent runs; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let half = (values.len() > 1).then(|| t(values.len() - 1) * (squares / (count - 1.0) / count).sqrt());
        Some(Self { mean, half, count: values.len() })
    }
}

/// Two-sided 95 % quantile of Student's t with `freedom` degrees of freedom, at least 1. Accurate to 0.005.
fn t(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    TABLE.get(freedom - 1).copied().unwrap_or(1.96 + 2.4 / freedom as f64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_student() {
        // 3.182 is the quantile for three degrees of freedom; the deviation of 1, 2, 3, 4 is 1.29099.
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((summary.mean - 2.5).abs() < 1e-12);
        assert!((summary.half.unwrap() - 3.182 * 1.290_994 / 2.0).abs() < 1e-4);
        assert_eq!(Summary::of(&[7.0]).unwrap().half, None);
        assert_eq!(Summary::of(&[]), None);
    }
}
