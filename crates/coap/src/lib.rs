//! A CoAP endpoint that adapts to its path.
//!
//! This crate implements messages over datagrams ([`message`], RFC 7252) and streams (RFC 8323), the message layer, both
//! roles ([`Endpoint`]), observing (RFC 7641), block-wise transfer (RFC 7959) and congestion control ([`congestion`]).
//! Sockets, clocks and resources are the application's: time, randomness and octets come in, octets and [`Event`]s go
//! out. `no_std` with `alloc`; memory is bounded by [`Config`]; no panic on octets from outside.
//!
//! A server and its client, with nothing but time between them:
//!
//! ```
//! use thinair_coap::{Config, Endpoint, Event, Request, Response, code};
//! use thinair_wire::time::Instant;
//!
//! let mut random = 0_u64; // From the operating system, in earnest.
//! let mut client = Endpoint::<&str>::new(Config::default(), move || { random += 1; random });
//! let mut server = Endpoint::<&str>::new(Config::default(), || 7);
//! let mut buffer = [0; 1152];
//!
//! let now = Instant::from_millis(5);
//! let call = client.request(now, "server", &Request::get("/time?zone=utc"))?;
//! while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
//!     // A socket would carry buffer[..transmit.len] to transmit.peer.
//!     let event = server.handle_datagram(now, "client", &buffer[..transmit.len]);
//!     if let Some(Event::Request { id, message, .. }) = event {
//!         let response = match message.options.is_path("/time") {
//!             true => Response::content(b"12:00").format(0).max_age(1),
//!             false => Response::new(code::NOT_FOUND),
//!         };
//!         server.respond(now, id, &response)?;
//!     }
//! }
//!
//! let now = Instant::from_millis(105);
//! let transmit = server.poll_transmit(now, &mut buffer).ok_or("it has answered")?;
//! let event = client.handle_datagram(now, "server", &buffer[..transmit.len]);
//! let Some(Event::Response { call: answered, message }) = event else { panic!("{event:?}") };
//! assert_eq!(answered, call);
//! assert_eq!(&*message.payload, b"12:00");
//! assert_eq!((client.poll_timeout(), server.poll_timeout()), (None, None));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#![no_std]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod block;
pub mod code;
pub mod config;
pub mod congestion;
mod endpoint;
mod event;
pub mod link_format;
pub mod message;
pub mod number;
pub mod option;
#[cfg(feature = "oscore")]
pub mod oscore;
mod request;
mod ring;
pub mod stream;
mod table;
mod token;
pub mod uri;

pub use block::{Block, BlockSize};
pub use config::{Config, Limits, Policy, Timing, Tokens};
pub use endpoint::{Counters, Endpoint, PeerStatus, Transmit};
pub use event::{
    CallError, CallId, Closing, Event, Gone, Observe, ObserverId, RequestError, RequestId, RespondError,
    StreamError,
};
pub use message::{BuildError, Builder, FormatError, Message};
pub use option::{OptionList, Options};
pub use request::{Received, Request, Response};
pub use thinair_wire::header::coap::{Code, Type};
pub use token::Token;
pub use uri::Uri;
