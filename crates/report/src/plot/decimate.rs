//! Thinning of long series to the resolution of a screen. The minimum and maximum of every interval are kept,
//! so that a spike of one sample remains visible.

use crate::plot::lines::Point;

/// Returns about `limit` of the points, in their order.
///
/// The first and the last point are kept. An interval without values becomes one point without a value, which
/// is a gap; shorter gaps are invisible anyway.
pub(crate) fn thinned(points: &[Point], limit: usize) -> Vec<Point> {
    if points.len() <= limit.max(4) {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(limit.max(4) / 2 - 1);
    let mut kept: Vec<usize> = vec![0];
    for start in (0..points.len()).step_by(stretch) {
        let indices = start..(start + stretch).min(points.len());
        let y = |at: &usize| points.get(*at).map_or(f64::NAN, |point| point.y);
        let with_value = || indices.clone().filter(|at| y(at).is_finite());
        let least = with_value().min_by(|a, b| y(a).total_cmp(&y(b)));
        let greatest = with_value().max_by(|a, b| y(a).total_cmp(&y(b)));
        match (least, greatest) {
            (Some(least), Some(greatest)) => kept.extend([least.min(greatest), least.max(greatest)]),
            _ => kept.push(start),
        }
    }
    kept.push(points.len() - 1);
    kept.dedup();
    kept.into_iter().filter_map(|at| points.get(at).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_series_are_left_alone() {
        let points = series(100, |x| x);
        assert_eq!(thinned(&points, 1000), points);
    }

    #[test]
    fn spikes_and_ends_survive() {
        let points = series(1_000_000, |x| if x == 654_321.0 { 99.0 } else { (x / 1e5).sin() });
        let thin = thinned(&points, 1000);
        assert!(thin.len() <= 1000, "{}", thin.len());
        assert!(thin.iter().any(|point| point.y == 99.0));
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
        assert!(thin.is_sorted_by(|a, b| a.x < b.x));
    }

    #[test]
    fn a_long_gap_stays_a_gap() {
        let points = series(10_000, |x| if (4_000.0..6_000.0).contains(&x) { f64::NAN } else { 1.0 });
        let thin = thinned(&points, 100);
        assert!(thin.iter().any(|point| point.y.is_nan()));
        assert!(thin.len() <= 100);
    }

    fn series(count: u32, y: impl Fn(f64) -> f64) -> Vec<Point> {
        (0..count).map(|x| Point::new(f64::from(x), y(f64::from(x)))).collect()
    }
}
