//! DTLS 1.2 (RFC 6347) with pre-shared keys: `TLS_PSK_WITH_AES_128_CCM_8` (RFC 6655), the cipher suite that CoAP demands of
//! devices without certificates (RFC 7252, section 9.1.3.1).
//!
//! A [`Client`] has one server, a [`Server`] any number of clients. Both negotiate the extended master secret (RFC 7627, without
//! which they refuse) and connection IDs in both directions (RFC 9146): a session then survives a new address of its client.
//! The explicit nonce of a record is its epoch and sequence number, so that it never repeats, and header compression can
//! predict it. A server keeps nothing about a client, and sends it no more than it has received, until the client has returned
//! a cookie. A session that is over is resumed by a shorter handshake, without the key, if both ends still have its secret (RFC
//! 5246, section 7.3).
//!
//! Time, randomness and octets are arguments; datagrams and events are results. Not in it: certificates, other cipher suites,
//! renegotiation, session tickets, DTLS 1.3, and how keys are stored.
//!
//! ```
//! use thinair_dtls::{Client, ClientConfig, ClientEvent, Psk, Server, ServerConfig};
//! use thinair_wire::time::Instant;
//!
//! // For the example only: both need a source that cannot be guessed.
//! let mut numbers = 0..;
//! let mut server = Server::<u8>::new(vec![Psk::new(b"phone", b"a secret of both")?], ServerConfig::default(), || 4);
//! let mut client = Client::new(Psk::new(b"phone", b"a secret of both")?, ClientConfig::default(), move || numbers.next().unwrap_or(0));
//!
//! let (now, address, mut buffer) = (Instant::ZERO, 1, [0; 1_280]);
//! client.connect(now);
//! while !client.is_connected() {
//!     while let Some(len) = client.poll_datagram(now, &mut buffer) {
//!         assert!(server.handle_datagram(now, address, &mut &mut buffer[..len]).is_none());
//!     }
//!     while let Some((_, len)) = server.poll_datagram(now, &mut buffer) {
//!         assert!(client.handle_datagram(now, &mut &mut buffer[..len]).is_none());
//!     }
//! }
//! assert_eq!(client.poll_event(), Some(ClientEvent::Connected));
//!
//! let len = client.send(now, b"20 degrees", &mut buffer)?;
//! let (session, content) = server.handle_datagram(now, address, &mut &mut buffer[..len]).ok_or("it is authentic")?;
//! assert_eq!((server.identity(session), content), (Some(&b"phone"[..]), &b"20 degrees"[..]));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Read first: `record.rs` and `association.rs`, the octets of a record and its protection; then `client.rs`, a handshake from
//! its first message to its last, and `server.rs`.

#![no_std]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod alert;
mod association;
mod cid;
mod client;
mod config;
mod cookie;
mod flight;
mod handshake;
mod incoming;
mod message;
mod prf;
mod psk;
mod record;
mod resumption;
mod server;
mod sessions;
mod short;
#[cfg(test)]
mod tests;
mod window;

pub use alert::AlertDescription;
pub use cid::{Cid, MAX_CID};
pub use client::{Client, ClientEvent};
pub use config::{ClientConfig, Retransmission, ServerConfig};
pub use handshake::Failure;
pub use psk::{MAX_IDENTITY, MAX_KEY, Psk, PskError};
pub use record::{OVERHEAD, SendError};
pub use server::{Server, ServerEvent};
pub use sessions::SessionId;
pub use window::REPLAY_WINDOW;
