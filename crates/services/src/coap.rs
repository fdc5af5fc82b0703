//! CoAP over UDP, DTLS and TCP: a [client], a [server]; security contexts in folders ([oscore]), or by a key exchange (`edhoc`, a
//! feature); pre-shared keys in files ([psk]).

pub mod client;
#[cfg(feature = "edhoc")]
pub mod edhoc;
pub mod oscore;
mod peer;
pub mod psk;
pub mod server;

pub use peer::CoapPeer;
