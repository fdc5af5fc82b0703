//! Lean HTTP for links on which every octet costs: HTTP/1 with as short a head as there can be, and SPDY/3.1.
//!
//! This crate knows how requests and responses lie in octets, in two protocols: [`http1`] (RFC 9112) and [`spdy`]
//! (SPDY/3.1), whose header blocks are made short by an encoder of its own ([`deflate`], RFC 1950 and RFC 1951). It refuses
//! to know sockets, clocks and what is served: octets come in, octets, requests and responses go out. A client
//! ([`ClientEngine`]) fetches one object, or one after the other; a server ([`ServerEngine`]) answers what one connection asks. `no_std` with
//! `alloc`; what a peer can make them hold is bounded by [`Limits`]; no panic on octets from outside.
//!
//! IoT-HTTP is [`http1::Form::Reduced`]: 20 octets of request for `/10`, 19 octets before the object.
//!
//! ```
//! use thinair_http::http1::{Client, Form, Server};
//! use thinair_http::{ClientEngine as _, Limits, Response, ServerEngine as _, Target};
//!
//! let target = Target { host: "192.0.2.1", path: "/10" };
//! let mut client = Client::new(Form::Reduced, target, Limits::default())?;
//! let mut server = Server::new(Form::Reduced, false, Limits::default());
//! assert_eq!(client.output(), b"GET /10 HTTP/1.0\r\n\r\n");
//!
//! server.handle_input(client.output());
//! let request = server.poll_request().ok_or("it is complete")?;
//! assert_eq!(request.target, "/10");
//! server.respond(request.stream, Response { status: 200, body: b"0123456789".to_vec() });
//! assert_eq!(server.output().len(), 19 + 10);
//! assert!(server.is_closing());
//!
//! client.handle_input(server.output())?;
//! client.handle_end()?;
//! assert_eq!(client.response().ok_or("it has come")?.body, b"0123456789");
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#![no_std]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod deflate;
mod error;
pub mod http1;
mod outbox;
mod protocol;
pub mod spdy;
pub mod status;

use alloc::string::String;
use alloc::vec::Vec;

pub use error::Error;
pub use protocol::Protocol;

/// What others can make an engine hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of a head, or of the headers of a stream. 8,192.
    pub head: usize,
    /// Octets of a response's body. 2^20.
    pub body: usize,
    /// Streams of a connection that are open at the same time. 16.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head: 8_192, body: 1 << 20, streams: 16 }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'t> {
    /// Host, and port if it is not the default one, as it stands in a URI.
    pub host: &'t str,
    /// Path and query, from the first slash on.
    pub path: &'t str,
}

impl Target<'_> {
    /// Whether nothing in it ends a line or a word. RFC 9112, section 3.2; RFC 3986, section 2.
    fn is_valid(&self) -> bool {
        let is_visible = |text: &str| text.bytes().all(|octet| octet.is_ascii_graphic());
        self.path.starts_with('/') && !self.host.is_empty() && is_visible(self.host) && is_visible(self.path)
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The object.
    Get,
    /// Its size.
    Head,
}

/// A request, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the response belongs to. 0 in HTTP/1.
    pub stream: u32,
    /// What is to be done.
    pub method: Method,
    /// Path and query, as they came.
    pub target: String,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status code, 200 to 599.
    pub status: u16,
    /// The object.
    pub body: Vec<u8>,
}

impl Response {
    /// A response without a body.
    pub const fn empty(status: u16) -> Self {
        Self { status, body: Vec::new() }
    }
}

/// One request and its response, and perhaps others behind them, as the side that asks has them.
pub trait ClientEngine {
    /// Octets to send. **They stay until they are [sent](Self::sent).**
    fn output(&self) -> &[u8];

    /// So many of them are sent.
    fn sent(&mut self, octets: usize);

    /// Octets of the server.
    ///
    /// # Errors
    /// They are no response, or one that is larger than the limits: the connection is to be given up.
    fn handle_input(&mut self, octets: &[u8]) -> Result<(), Error>;

    /// The server sends no more.
    ///
    /// # Errors
    /// The response is not complete.
    fn handle_end(&mut self) -> Result<(), Error>;

    /// The response, once it is complete.
    fn response(&self) -> Option<&Response>;

    /// Asks for another object on the same connection, when the response is there: it then waits for the next one.
    ///
    /// # Errors
    /// [`Error::Target`], [`Error::NoOther`].
    fn ask(&mut self, target: Target<'_>) -> Result<(), Error>;
}

/// One connection, as the side that answers has it.
///
/// **After every call look for [requests](Self::poll_request), then for [output](Self::output); when there is none left and
/// it [is closing](Self::is_closing), end the stream of octets.** What is wrong with what came is said in the output.
pub trait ServerEngine: Send + core::fmt::Debug {
    /// Octets of the client. **Only when they are [wanted](Self::wants_input).**
    fn handle_input(&mut self, octets: &[u8]);

    /// The client sends no more.
    fn handle_end(&mut self);

    /// The next request that is complete.
    fn poll_request(&mut self) -> Option<Request>;

    /// The response to a request; one to a stream that is gone goes nowhere.
    fn respond(&mut self, stream: u32, response: Response);

    /// Octets to send. They stay until they are [sent](Self::sent).
    fn output(&self) -> &[u8];

    /// So many of them are sent.
    fn sent(&mut self, octets: usize);

    /// Whether it has room for more input.
    fn wants_input(&self) -> bool;

    /// Whether no request is under way, in part or as a whole.
    fn is_idle(&self) -> bool;

    /// Whether nothing follows what is in the output.
    fn is_closing(&self) -> bool;

    /// Whether the client has said that nothing follows from its side either, and nothing did: the connection need not wait
    /// for its end.
    fn is_last(&self) -> bool;
}
