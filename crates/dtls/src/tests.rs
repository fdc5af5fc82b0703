//! Handshakes and sessions of client and server with each other, in virtual time.

#![allow(clippy::unwrap_used)]

mod attacks;
mod handshakes;
mod memory;
mod openssl;
mod records;
mod resumption;
mod sessions;
mod support;
