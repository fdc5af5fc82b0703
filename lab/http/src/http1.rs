//! HTTP/1.1 and HTTP/1.0 (RFC 9112), as far as a client and a server need them to transfer objects, with minimal heads.
//!
//! Requests have no bodies: a server rejects a request that has one. Bodies of responses may be chunked, end with the
//! stream, or have a Content-Length. Responses carry no Date, as the engine has no clock (RFC 9110, section 6.6.1).

mod body;
mod client;
mod head;
mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use client::Http1Client;
pub use server::Http1Server;

/// Fields in the head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadForm {
    /// HTTP/1.1 with the fields that RFC 9112 requires: Host, Content-Length, Connection.
    Minimal,
    /// IoT-HTTP: HTTP/1.0 without fields. The end of the stream ends the object.
    Reduced,
}
