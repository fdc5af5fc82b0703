//! HTTP/1.1, lean HTTP, SPDY and HTTP/3 on real sockets: the protocols that CoAP is compared with.
//!
//! This crate connects the engines of `thinair-http` with the sockets and the clock of a machine, by the parts of
//! `thinair-services` that all protocols share. It has no formats of messages, and no arguments or terminals.
//!
//! Linux only. Elsewhere the crate is empty.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
pub mod http;
#[cfg(all(target_os = "linux", feature = "http3"))]
pub mod http3;
