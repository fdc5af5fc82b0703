//! Tests of the endpoint, by subject.

#![allow(clippy::unwrap_used)]

mod blocks;
#[cfg(feature = "oscore")]
mod key_exchange;
mod memory;
mod observing;
#[cfg(feature = "oscore")]
mod oscore;
mod pacing;
mod peers;
#[cfg(feature = "oscore")]
mod plugtest;
mod protection;
mod reliability;
mod streams;
mod support;
mod tokens;
