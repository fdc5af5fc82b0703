//! Tests of this crate in one program, a module for each subject: it is linked once. The matrices of `make robustness` are programs of
//! their own, whose finished cells are kept for as long as the program does not change.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod brief;
mod churn;
mod clock_ignored;
mod coap;
mod counted;
mod damage;
mod decompressor;
mod dtls;
mod failures;
mod impaired;
mod jumps;
mod lossless;
mod memory;
mod memory_limits;
mod modes;
mod never_larger;
mod new_flows;
mod pauses;
mod predicted;
mod profiles;
mod rohcv2;
mod round_trip;
mod rtp;
mod rtp_detection;
mod rtp_octets;
mod takeover;
mod tcp;
mod tcp_impaired;
mod tcp_replication;
mod toy_profile;
mod ts_25_323;
