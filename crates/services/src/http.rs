//! Lean HTTP on sockets: a folder that is [served](Server), and one object that is [fetched](fetch).
//!
//! Over the same TCP as everybody's, and with what [`thinair_os::tcp::fast_open`] knows: a request that rides in the SYN, a
//! response whose last octets and FIN are one segment.

mod client;
mod server;
mod url;

use thinair_http::deflate::Flush;
use thinair_http::http1::{self, Form};
use thinair_http::{ClientEngine, Error, Limits, ServerEngine, Target, spdy};

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
    /// IoT-SPDY: SPDY/3.1 with header blocks as short as they can be, and Fast Open.
    IotSpdy,
}

impl Protocol {
    /// Whether the request travels with the SYN.
    pub const fn is_fast(self) -> bool {
        match self {
            Self::Http => false,
            Self::IotHttp | Self::IotSpdy => true,
        }
    }

    fn client(self, target: Target<'_>, limits: Limits) -> Result<Box<dyn ClientEngine>, Error> {
        Ok(match self {
            Self::Http => Box::new(http1::Client::new(Form::Minimal, target, limits)?),
            Self::IotHttp => Box::new(http1::Client::new(Form::Reduced, target, limits)?),
            Self::IotSpdy => Box::new(spdy::Client::new(target, Flush::Least, limits)?),
        })
    }

    /// `keeps`: a connection may have more than one request.
    fn server(self, keeps: bool, limits: Limits) -> Box<dyn ServerEngine> {
        match self {
            Self::Http => Box::new(http1::Server::new(Form::Minimal, keeps, limits)),
            Self::IotHttp => Box::new(http1::Server::new(Form::Reduced, keeps, limits)),
            Self::IotSpdy => Box::new(spdy::Server::new(keeps, Flush::Least, limits)),
        }
    }
}
