//! Tunnel for IP packets over constrained links, with ROHC header compression and encryption.

#![deny(missing_docs)]

pub mod channel;
pub mod config;
#[cfg(target_os = "linux")]
pub mod daemon;
pub mod idle;
pub mod key_file;
pub mod mtu;
pub mod offload;
pub mod packaging;
pub mod segments;
pub mod site;
pub mod site_config;
pub mod status;
mod too_big;
pub mod unit;
