//! Endpoints on real sockets.
//!
//! This crate knows how an engine meets the sockets, the clock and the random source of a machine, and what a service does
//! with what it is asked. It refuses to know how a message lies in octets, and arguments or terminals.
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
