//! Tests of the endpoint, by subject.

#![allow(clippy::unwrap_used)]

mod blocks;
mod memory;
mod observing;
#[cfg(feature = "oscore")]
mod oscore;
mod pacing;
mod peers;
mod protection;
mod reliability;
mod streams;
mod support;
mod tokens;
