//! Lean HTTP on sockets: a folder that is [served](Server), and one object that is [fetched](fetch).
//!
//! Over the same TCP as everybody's, and with what [`thinair_os::tcp::fast_open`] knows: a request that rides in the SYN, a
//! response whose last octets and FIN are one segment.

mod client;
mod server;
mod url;

use thinair_http::http1::{self, Form};
use thinair_http::{ClientEngine, Error, Limits, ServerEngine, Target};

pub use client::{Acknowledgment, Close, FetchError, Outcome, Report, Task, fetch};
pub use server::{Server, Settings, Statistics};
pub use url::{Url, UrlError};

/// A way to carry objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with no more head than it needs, over TCP as the system has it.
    Http,
    /// IoT-HTTP: HTTP/1.0 without a field, and Fast Open.
    IotHttp,
}

impl Protocol {
    /// Whether the request travels with the SYN.
    pub const fn is_fast(self) -> bool {
        match self {
            Self::Http => false,
            Self::IotHttp => true,
        }
    }

    const fn form(self) -> Form {
        match self {
            Self::Http => Form::Minimal,
            Self::IotHttp => Form::Reduced,
        }
    }

    fn client(self, target: Target<'_>, limits: Limits) -> Result<Box<dyn ClientEngine>, Error> {
        Ok(Box::new(http1::Client::new(self.form(), target, limits)?))
    }

    /// `keeps`: a connection may have more than one request.
    fn server(self, keeps: bool, limits: Limits) -> Box<dyn ServerEngine> {
        Box::new(http1::Server::new(self.form(), keeps, limits))
    }
}
