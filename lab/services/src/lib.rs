//! HTTP/1.1, lean HTTP, SPDY and HTTP/3 on real sockets: what CoAP is compared with.
//!
//! This crate knows how an engine of `thinair-http` meets the sockets and the clock of a machine, by what `thinair-services`
//! has for all protocols. It refuses to know how a message lies in octets, and arguments or terminals.
//!
//! Linux only. Elsewhere the crate is empty.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
pub mod http;
#[cfg(all(target_os = "linux", feature = "http3"))]
pub mod http3;
