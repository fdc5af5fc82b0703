//! CoAP over UDP, DTLS and TCP: a [client], a [server]; security contexts in folders ([oscore]), pre-shared keys in files ([psk]).

pub mod client;
pub mod oscore;
mod peer;
pub mod psk;
pub mod server;

pub use peer::CoapPeer;
