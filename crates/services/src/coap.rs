//! CoAP over UDP and TCP: a [client], a [server].

pub mod client;
mod peer;
pub mod server;

pub use peer::CoapPeer;
