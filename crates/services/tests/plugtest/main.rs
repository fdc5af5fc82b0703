//! The test descriptions of the ETSI CoAP plugtests (TD_COAP_CORE, TD_COAP_LINK, TD_COAP_BLOCK and TD_COAP_OBS), each as
//! a separate test: a client and a server with its test resources, a wire between them that records every message and
//! loses selected ones, and virtual time. The assertions are on messages on the wire.
//!
//! The name of a test is the number of its description, as `cc01` for TD_COAP_CORE_01, and its subject.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod block;
mod core;
mod link;
mod observe;
mod wire;

pub(crate) use thinair_coap::Type::{
    Acknowledgement as ACK, Confirmable as CON, NonConfirmable as NON, Reset as RST,
};
pub(crate) use thinair_coap::{Code, Request, code, number};
