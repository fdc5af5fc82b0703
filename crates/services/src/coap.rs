//! CoAP over UDP and TCP: a [client], a [server]; security contexts in folders ([oscore]).

pub mod client;
pub mod oscore;
mod peer;
pub mod server;

pub use peer::CoapPeer;
