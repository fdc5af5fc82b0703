//! Lean HTTP for links on which every octet costs: HTTP/1 with minimal heads, and SPDY/3.1.
//!
//! This crate implements two protocols without I/O: [`http1`] (RFC 9112) and [`spdy`] (SPDY/3.1), whose header blocks
//! are shortened by a dedicated encoder ([`deflate`], RFC 1950 and RFC 1951). It has no sockets, clocks or files:
//! octets come in; octets, requests and responses go out. A client ([`ClientEngine`]) fetches one object, or several in
//! sequence; a server ([`ServerEngine`]) answers the requests of one connection. `no_std` with `alloc`; [`HttpLimits`]
//! bound the memory that a peer can claim; no panic on octets from outside.
//!
//! IoT-HTTP is [`http1::HeadForm::Reduced`]: 20 octets of request for `/10`, 19 octets before the object.
//!
//! ```
//! use thinair_http::http1::{HeadForm, Http1Client, Http1Server};
//! use thinair_http::{ClientEngine as _, HttpLimits, HttpResponse, ServerEngine as _, Target};
//!
//! let target = Target { host: "192.0.2.1", path: "/10" };
//! let mut client = Http1Client::new(HeadForm::Reduced, target, HttpLimits::default())?;
//! let mut server = Http1Server::new(HeadForm::Reduced, false, HttpLimits::default());
//! assert_eq!(client.output(), b"GET /10 HTTP/1.0\r\n\r\n");
//!
//! server.handle_input(client.output());
//! let request = server.poll_request().ok_or("it is complete")?;
//! assert_eq!(request.target, "/10");
//! server.respond(request.stream, HttpResponse { status: 200, body: b"0123456789".to_vec() });
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

pub use error::HttpError;
pub use protocol::HttpProtocol;

/// Limits on the memory that a peer can claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Maximum size of a head, or of the headers of a stream, in octets. Default: 8,192.
    pub head: usize,
    /// Maximum size of a response's body, in octets. Default: 2^20.
    pub body: usize,
    /// Maximum number of open streams of a connection. Default: 16.
    pub streams: u32,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { head: 8_192, body: 1 << 20, streams: 16 }
    }
}

/// Object that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'t> {
    /// Host, and port if it is not the default one, as in a URI.
    pub host: &'t str,
    /// Path and query, from the first slash on.
    pub path: &'t str,
}

impl Target<'_> {
    /// True if it has no octet that would end a line or a word. RFC 9112, section 3.2; RFC 3986, section 2.
    fn is_valid(&self) -> bool {
        let is_visible = |text: &str| text.bytes().all(|octet| octet.is_ascii_graphic());
        self.path.starts_with('/') && !self.host.is_empty() && is_visible(self.host) && is_visible(self.path)
    }
}

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Returns the object.
    Get,
    /// Returns the object's size only.
    Head,
}

/// Complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Identifier of the request, for the response. 0 in HTTP/1.
    pub stream: u32,
    /// Method.
    pub method: Method,
    /// Path and query, as received.
    pub target: String,
}

/// Response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status code, 200 to 599.
    pub status: u16,
    /// Object.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Response without a body.
    pub const fn empty(status: u16) -> Self {
        Self { status, body: Vec::new() }
    }
}

/// Client side of a connection: one request and its response, or several in sequence.
pub trait ClientEngine {
    /// Octets to send. **They stay until [`sent`](Self::sent) reports them.**
    fn output(&self) -> &[u8];

    /// Removes this many octets from the output: they are sent.
    fn sent(&mut self, octets: usize);

    /// Handles octets from the server.
    ///
    /// # Errors
    /// They are no valid response, or exceed the limits: the connection must be closed.
    fn handle_input(&mut self, octets: &[u8]) -> Result<(), HttpError>;

    /// Handles the end of the server's stream.
    ///
    /// # Errors
    /// The response is incomplete.
    fn handle_end(&mut self) -> Result<(), HttpError>;

    /// Response, once it is complete.
    fn response(&self) -> Option<&HttpResponse>;

    /// Requests another object on this connection. [`response`](Self::response) then refers to the new request.
    ///
    /// # Errors
    /// [`HttpError::Target`], [`HttpError::NoOther`].
    fn ask(&mut self, target: Target<'_>) -> Result<(), HttpError>;
}

/// Server side of one connection.
///
/// **After every call, handle [requests](Self::poll_request), then [output](Self::output); when neither is left and it
/// [is closing](Self::is_closing), end the stream of octets.** Errors in requests are answered in the output.
pub trait ServerEngine: Send + core::fmt::Debug {
    /// Handles octets from the client. **Only while [`wants_input`](Self::wants_input) is true.**
    fn handle_input(&mut self, octets: &[u8]);

    /// Handles the end of the client's stream.
    fn handle_end(&mut self);

    /// Returns the next complete request.
    fn poll_request(&mut self) -> Option<HttpRequest>;

    /// Adds the response to a request. Drops it if the stream no longer exists.
    fn respond(&mut self, stream: u32, response: HttpResponse);

    /// Octets to send. They stay until [`sent`](Self::sent) reports them.
    fn output(&self) -> &[u8];

    /// Removes this many octets from the output: they are sent.
    fn sent(&mut self, octets: usize);

    /// True if it has room for more input.
    fn wants_input(&self) -> bool;

    /// True if no request is in progress, in part or as a whole.
    fn is_idle(&self) -> bool;

    /// True if nothing follows the current output.
    fn is_closing(&self) -> bool;

    /// True if the client has ended its stream and nothing follows: the server need not wait for the end of the
    /// connection.
    fn is_last(&self) -> bool;
}
