//! HTTP/1.1 and HTTP/1.0 as a client and a server need them to carry objects (RFC 9112), with no more octets of head than
//! that takes.
//!
//! Requests have no bodies here; one that has is refused. What others send may be chunked, delimited by the end of the
//! stream, or have a Content-Length. Responses carry no Date: there is no clock (RFC 9110, section 6.6.1).

mod body;
mod client;
mod head;
mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use client::Client;
pub use server::Server;

/// How much head a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// HTTP/1.1 with what RFC 9112 demands: Host, Content-Length, Connection.
    Minimal,
    /// HTTP/1.0 without any field: the end of the stream ends the object. IoT-HTTP.
    Reduced,
}
