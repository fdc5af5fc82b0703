//! Tables III and IV of the paper.

use thinair_rohc::ProfileId;

use super::cell::{Version, Way};

/// Round trips in a cell of the paper.
pub(super) const COUNT: f64 = 20.0;

/// How many standard deviations lie between the least and the largest of 20 normal values, on average: the control
/// charts' d2.
const RANGE: f64 = 3.735;

/// A column of a table, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Published {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// What the paper states; `None` if it has not measured that.
pub(super) fn of(way: Way, version: Version) -> Option<Published> {
    let (mean, min, max) = match (way, version) {
        (Way::Tunnel(ProfileId::Coap2015), Version::V4) => (20.194, 6.769, 37.577),
        (Way::Tunnel(ProfileId::Udp), Version::V4) => (22.368, 7.480, 34.496),
        (Way::Tunnel(ProfileId::Ip), Version::V4) => (21.511, 7.261, 43.166),
        (Way::Tunnel(ProfileId::Uncompressed), Version::V4) => (18.824, 5.962, 34.596),
        (Way::Plain, Version::V4) => (10.627, 2.209, 25.325),
        (Way::Tunnel(ProfileId::Coap2015), Version::V6) => (20.085, 8.428, 46.282),
        (Way::Tunnel(ProfileId::Udp), Version::V6) => (22.366, 8.070, 34.950),
        (Way::Tunnel(ProfileId::Ip), Version::V6) => (21.089, 8.493, 37.598),
        (Way::Tunnel(ProfileId::Uncompressed), Version::V6) => (16.289, 5.851, 39.564),
        (Way::Plain, Version::V6) => (13.365, 2.389, 59.472),
        _ => return None,
    };
    Some(Published { mean, min, max })
}

impl Published {
    /// Half the 95 % interval of the mean, as far as the range tells: the paper gives no deviation.
    pub(super) fn margin(&self) -> f64 {
        // Student's t for 20 values.
        2.093 * (self.max - self.min) / RANGE / COUNT.sqrt()
    }

    /// By how much the mean is larger than another one, and half the 95 % interval of that.
    pub(super) fn minus(&self, other: &Self) -> (f64, f64) {
        (self.mean - other.mean, self.margin().hypot(other.margin()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::cell::Place;
    use super::*;

    #[test]
    fn the_differences_are_those_of_the_text() {
        let mean = |way, version| of(way, version).unwrap().mean;
        let uncompressed = Way::Tunnel(ProfileId::Uncompressed);
        // "about 8 ms shorter than with uncompressed profile with IPv4, and about 3 ms with IPv6"
        for (version, about) in [(Version::V4, 8.0), (Version::V6, 3.0)] {
            let difference = mean(uncompressed, version) - mean(Way::Plain, version);
            assert_eq!(difference.round(), about);
            // "the order of the profiles remains the same"
            let order = [uncompressed, Way::Tunnel(ProfileId::Coap2015), Way::Tunnel(ProfileId::Ip)]
                .into_iter()
                .chain([Way::Tunnel(ProfileId::Udp)]);
            assert!(order.map(|way| mean(way, version)).is_sorted());
        }
    }

    #[test]
    fn the_paper_has_five_of_the_ways_in_both_versions() {
        for version in Version::ALL {
            let ways = Way::all(Place::Veth);
            let stated: Vec<_> = ways.iter().filter_map(|way| of(*way, version)).collect();
            assert_eq!(stated.len(), 5);
            assert!(stated.iter().all(|stated| stated.min < stated.mean && stated.mean < stated.max));
        }
    }

    #[test]
    fn of_all_differences_only_that_of_a_tunnel_over_ipv4_is_beyond_chance() {
        for version in Version::ALL {
            let coap = of(Way::Tunnel(ProfileId::Coap2015), version).unwrap();
            for other in [ProfileId::Udp, ProfileId::Ip, ProfileId::Uncompressed] {
                let (difference, margin) = coap.minus(&of(Way::Tunnel(other), version).unwrap());
                assert!(difference.abs() < margin, "{version:?} {other:?}: {difference} of {margin}");
            }
            let uncompressed = of(Way::Tunnel(ProfileId::Uncompressed), version).unwrap();
            let (difference, margin) = uncompressed.minus(&of(Way::Plain, version).unwrap());
            assert_eq!(difference > margin, version == Version::V4, "{difference} of {margin}");
        }
    }
}
