//! Header fields that several profiles share.

pub(crate) mod encodings;
pub(crate) mod ip;
pub(crate) mod ip_id;
pub(crate) mod rtp;
#[cfg(any(feature = "rfc3095", feature = "v2"))]
pub(crate) mod timer;
