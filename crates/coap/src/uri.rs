//! URIs of resources, from text to options and back. RFC 7252, section 6; RFC 8323, section 8.
//!
//! This module parses and composes URIs. It does not resolve names: the application does.
//!
//! ```
//! use thinair_coap::uri::{Host, Uri};
//!
//! let uri: Uri = "coap://example.net/sensors/temp?unit=c".parse()?;
//! assert_eq!((&uri.host, uri.port), (&Host::Name("example.net".into()), 5683));
//! assert!(uri.options().as_options().is_path("/sensors/temp"));
//! assert_eq!(uri.to_string(), "coap://example.net/sensors/temp?unit=c");
//! # Ok::<(), thinair_coap::uri::UriError>(())
//! ```

mod text;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use crate::number;
use crate::option::{OptionList, Options};

use text::{UriPart, encoded};

/// Port of `coap` and `coap+tcp`.
pub const PORT: u16 = 5683;

/// Port of `coaps`.
pub const SECURE_PORT: u16 = 5684;

/// Transport of messages. RFC 7252, section 6; RFC 8323, section 8.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `coap`: datagrams.
    Coap,
    /// `coaps`: datagrams in DTLS.
    Coaps,
    /// `coap+tcp`: a stream.
    CoapTcp,
}

impl Scheme {
    /// Returns its name in a URI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::Coaps => "coaps",
            Self::CoapTcp => "coap+tcp",
        }
    }

    /// Returns its port.
    pub const fn port(self) -> u16 {
        match self {
            Self::Coap | Self::CoapTcp => PORT,
            Self::Coaps => SECURE_PORT,
        }
    }
}

/// Host of a URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name, in ASCII lowercase, without percent-encoding.
    Name(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6 {
        /// The address.
        address: Ipv6Addr,
        /// Zone of an address without a zone of its own: name or number of an interface. RFC 6874.
        zone: Option<String>,
    },
}

/// A URI of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uri {
    /// Transport.
    pub scheme: Scheme,
    /// Host.
    pub host: Host,
    /// UDP or TCP port.
    pub port: u16,
    /// Segments of the path, without percent-encoding. None for `/`.
    pub path: Vec<Vec<u8>>,
    /// Arguments of the query, without percent-encoding.
    pub query: Vec<Vec<u8>>,
}

/// Error in a URI, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UriError {
    /// Kind of error.
    pub fault: Fault,
    /// Place of the error, in octets from the start.
    pub at: usize,
}

/// Error in a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No scheme, or no `//` after it.
    NotAbsolute,
    /// `coaps+tcp`, `coaps+ws`: TLS is not supported.
    NeedsTls,
    /// `coap+ws`: WebSockets are not supported.
    NeedsWebSocket,
    /// Another scheme.
    Scheme,
    /// A fragment: `#` and the text after it. RFC 7252, section 6.1.
    Fragment,
    /// User information: an `@` before the host.
    UserInfo,
    /// Empty host.
    NoHost,
    /// A bracket that is not closed, or text between a bracket and the port.
    Bracket,
    /// Invalid IPv6 address between the brackets.
    Address,
    /// A zone without a name.
    Zone,
    /// Port that is not a number from 1 to 65,535.
    Port,
    /// A `%` without two hexadecimal digits after it.
    Percent,
    /// A character that has to be percent-encoded.
    Character,
    /// A host, segment or argument of more than 255 octets.
    TooLong,
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            Fault::NotAbsolute => "not an absolute URI, as in coap://host/path",
            Fault::NeedsTls => "coaps+tcp and coaps+ws need TLS, which is not supported; use coaps",
            Fault::NeedsWebSocket => {
                "coap+ws needs WebSockets, which are not supported; use coap or coap+tcp"
            }
            Fault::Scheme => "not a CoAP scheme; use coap, coaps or coap+tcp",
            Fault::Fragment => "a CoAP URI has no fragment; write # as %23",
            Fault::UserInfo => "a CoAP URI has no user before the host",
            Fault::NoHost => "the host is missing",
            Fault::Bracket => "an IPv6 address must be in brackets, as in coap://[::1]:5683/",
            Fault::Address => "not an IPv6 address",
            Fault::Zone => "a zone is the name of an interface, as in [fe80::1%eth0]",
            Fault::Port => "a port is a number from 1 to 65535",
            Fault::Percent => "% must be followed by two hexadecimal digits; write % itself as %25",
            Fault::Character => "this character must be percent-encoded",
            Fault::TooLong => "more than 255 octets, the maximum of an option",
        };
        write!(f, "{what} (octet {})", self.at)
    }
}

impl core::error::Error for UriError {}

impl FromStr for Uri {
    type Err = UriError;

    /// Parses a URI. RFC 7252, section 6.4, except the options, which are [`Uri::options`].
    fn from_str(text: &str) -> Result<Self, UriError> {
        text::read(text)
    }
}

impl Uri {
    /// Returns Uri-Host if the host is a name, Uri-Path and Uri-Query. There is no Uri-Port: the request is sent to the
    /// port. RFC 7252, section 6.4.
    pub fn options(&self) -> OptionList {
        let mut options = OptionList::new();
        if let Host::Name(name) = &self.host {
            options.push(number::URI_HOST, name.as_bytes());
        }
        self.path.iter().for_each(|segment| options.push(number::URI_PATH, segment));
        self.query.iter().for_each(|argument| options.push(number::URI_QUERY, argument));
        options
    }

    /// Returns the URI of a request with these options that was sent to `host` and `port`. `None` if Uri-Host or Uri-Port
    /// are invalid. RFC 7252, section 6.5.
    pub fn of_request(scheme: Scheme, host: Host, port: u16, options: &Options<'_>) -> Option<Self> {
        let host = match options.first(number::URI_HOST) {
            Some(name) => text::host(core::str::from_utf8(name).ok().filter(|name| !name.is_empty())?),
            None => host,
        };
        let port = match options.first(number::URI_PORT) {
            Some(_) => options.uint(number::URI_PORT)?.try_into().ok().filter(|port| *port != 0)?,
            None => port,
        };
        let path = options.path().map(<[u8]>::to_vec).collect();
        let query = options.query().map(<[u8]>::to_vec).collect();
        Some(Self { scheme, host, port, path, query })
    }

    /// Returns path and query as in a URI, with the leading slash.
    pub fn resource(&self) -> String {
        resource(self.path.iter().map(Vec::as_slice), self.query.iter().map(Vec::as_slice))
    }
}

/// Returns path and query with percent-encoding, as in `/a/b?c&d`: for Uri-Path and Uri-Query, or Location-Path and
/// Location-Query. RFC 7252, section 6.5, steps 6 to 8.
pub fn resource<'a>(
    path: impl IntoIterator<Item = &'a [u8]>,
    query: impl IntoIterator<Item = &'a [u8]>,
) -> String {
    let mut text = String::new();
    for segment in path {
        text.push('/');
        encoded(&mut text, segment, UriPart::Segment);
    }
    if text.is_empty() {
        text.push('/');
    }
    for (argument, mark) in query.into_iter().zip(core::iter::once('?').chain(core::iter::repeat('&'))) {
        text.push(mark);
        encoded(&mut text, argument, UriPart::Argument);
    }
    text
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                let mut text = String::new();
                encoded(&mut text, name.as_bytes(), UriPart::Name);
                f.write_str(&text)
            }
            Self::V4(address) => write!(f, "{address}"),
            Self::V6 { address, zone: None } => write!(f, "[{address}]"),
            Self::V6 { address, zone: Some(zone) } => {
                let mut text = String::new();
                encoded(&mut text, zone.as_bytes(), UriPart::Name);
                write!(f, "[{address}%25{text}]")
            }
        }
    }
}

impl fmt::Display for Uri {
    /// Writes the URI in normal form. RFC 7252, section 6.5.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host)?;
        if self.port != self.scheme.port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.resource())
    }
}

#[cfg(test)]
mod tests;
