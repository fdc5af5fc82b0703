//! Lean HTTP on sockets: a folder that is [served](Server), and one object that is [fetched](fetch).
//!
//! Over the same TCP as everybody's, and with what [`thinair_os::tcp::fast_open`] knows: a request that rides in the SYN, a
//! response whose last octets and FIN are one segment.

mod client;
mod server;
mod url;

pub use client::{Acknowledgment, Close, FetchError, Outcome, Report, Task, fetch};
#[cfg(feature = "http3")]
pub(crate) use server::Site;
pub use server::{Server, Settings, Statistics};
pub use thinair_http::Protocol;
pub use url::{Url, UrlError};
