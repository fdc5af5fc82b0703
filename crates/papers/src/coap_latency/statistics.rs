//! Means and what they are worth.

/// A mean, and half of its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) mean: f64,
    pub(super) half: f64,
}

impl Summary {
    /// Of runs that do not depend on each other; nothing of no runs.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let variance =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        Some(Self { mean, half: 1.96 * (variance / count).sqrt() })
    }
}

/// What 95 % of the means of three runs lie in.
pub(super) fn band_of_three(values: &[f64]) -> Option<(f64, f64)> {
    let mut means: Vec<f64> = values.chunks_exact(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * (means.len() as f64 - 1.0)).round() as usize).copied();
    Some((at(0.025)?, at(0.975)?))
}
