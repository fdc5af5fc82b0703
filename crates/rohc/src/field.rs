//! Header fields that several profiles have: one value, one writer, one rule of each.

pub(crate) mod encodings;
pub(crate) mod ip;
pub(crate) mod ip_id;
pub(crate) mod rtp;
