//! The daemon: an interface, a carrier, and a [`Site`](crate::site::Site) between them. It moves octets, and tells the time.
//!
//! One thread waits for both and for points in time, takes up to 64 packets in a row, and hands over datagrams in
//! batches. When no more packets wait, nothing is kept back. The live page has a thread of its own.

mod inside;
mod keys;
mod notices;
mod outside;
mod recorder;
mod remembered;
mod setup;
mod turn;

pub use setup::{Daemon, RunError};
