//! IPv4 Identification: as an offset from the SN, unchanged, or constant. RFC 3095, section 4.5.5; RFC 3843, section 3.3;
//! RFC 4815, section 8.2.

use super::IpFields;
use crate::field::ip_id::Behavior;

/// Returns the behavior for the flags RND, NBO and SID.
#[inline]
pub(super) fn behavior(ip: &IpFields) -> Behavior {
    match (ip.rnd, ip.sid, ip.nbo) {
        (true, ..) => Behavior::Random,
        (false, true, _) => Behavior::Constant,
        (false, false, true) => Behavior::Sequential,
        (false, false, false) => Behavior::Swapped,
    }
}

/// Sets the flags RND, NBO and SID.
pub(super) fn set(ip: &mut IpFields, behavior: Behavior) {
    ip.rnd = behavior == Behavior::Random;
    ip.sid = behavior == Behavior::Constant;
    ip.nbo = behavior != Behavior::Swapped;
}
