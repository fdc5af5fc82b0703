//! Lean HTTP on sockets: a folder that is [served](HttpServer), and one object that is [fetched](fetch).
//!
//! It uses the system's TCP, with the options of [`thinair_os::tcp::fast_open`]: the request is sent in the SYN, and
//! the last octets of the response and the FIN are one segment.

mod client;
mod server;
mod url;

pub use client::{Acknowledgment, Close, FetchError, FetchOutcome, FetchReport, FetchTask, fetch};
#[cfg(feature = "http3")]
pub(crate) use server::ServedFolder;
pub use server::{HttpServer, HttpServerSettings, HttpServerStatistics};
pub use thinair_http::HttpProtocol;
pub use url::{Url, UrlError};
