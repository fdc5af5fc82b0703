//! Tables V and VI as they are printed, and what the text says of 10^-4.

use super::cell::{Profile, Way};

/// A column: round trips in s, and requests that were given up, of 20.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) dropped: u32,
}

const fn column(mean: f64, min: f64, max: f64, dropped: u32) -> Column {
    Column { mean, min, max, dropped }
}

/// BER 10^-3: table V (bidirectional) and table VI (unidirectional). Its CoAP profile is our 0x0080.
pub(super) const fn table(profile: Profile, way: Way) -> Option<Column> {
    Some(match (profile, way) {
        (Profile::Coap, _) | (_, Way::UniClock) => return None,
        (Profile::Coap2015, Way::Bi) => column(1.040, 0.008, 8.048, 0),
        (Profile::Udp, Way::Bi) => column(1.715, 0.007, 8.275, 0),
        (Profile::Ip, Way::Bi) => column(2.873, 0.007, 14.324, 0),
        (Profile::Uncompressed, Way::Bi) => column(22.342, 0.019, 44.452, 5),
        (Profile::Coap2015, Way::Uni) => column(1.373, 0.007, 8.562, 0),
        (Profile::Udp, Way::Uni) => column(2.399, 0.013, 17.549, 0),
        (Profile::Ip, Way::Uni) => column(3.250, 0.008, 20.738, 0),
        (Profile::Uncompressed, Way::Uni) => column(21.512, 0.015, 44.395, 5),
    })
}

/// BER 10^-4, in the text of section V.D: mean in s. It does not say which mode.
pub(super) const fn at_1e_4(profile: Profile) -> Option<f64> {
    match profile {
        Profile::Coap2015 => Some(0.020_961),
        Profile::Uncompressed => Some(0.018_503),
        Profile::Coap | Profile::Udp | Profile::Ip => None,
    }
}
