//! Endpoints on real sockets.
//!
//! This crate connects the engines with the sockets, the clock and the random source of a machine, and implements
//! services on them. Encoding of messages is in the engines; arguments and terminals are the caller's.
//!
//! Linux only. Elsewhere the crate is empty.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
pub mod coap;
#[cfg(target_os = "linux")]
pub mod end;
#[cfg(target_os = "linux")]
pub mod file;
#[cfg(target_os = "linux")]
pub mod name;
#[cfg(target_os = "linux")]
pub mod resolve;
#[cfg(target_os = "linux")]
pub mod segment;
#[cfg(target_os = "linux")]
pub mod wait;
