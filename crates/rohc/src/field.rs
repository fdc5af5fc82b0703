//! Header fields that several profiles share.

pub(crate) mod encodings;
pub(crate) mod ip;
pub(crate) mod ip_id;
#[cfg(any(feature = "rfc3095", feature = "v2"))]
pub(crate) mod movement;
pub(crate) mod rtp;
pub(crate) mod timer;
