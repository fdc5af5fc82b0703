//! Requests and responses to send, and received ones.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use thinair_wire::header::coap::Code;

use crate::code;
use crate::number;
use crate::option::{OptionList, Options};

/// A request to send.
///
/// ```
/// use thinair_coap::Request;
///
/// let request = Request::get("/sensors/temp?unit=c").accept(60);
/// assert!(request.options.as_options().is_path("/sensors/temp"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Method.
    pub method: Code,
    /// True for a Confirmable message. Without effect over streams.
    pub confirmable: bool,
    /// Options. Observe, Block1, Block2, Size1 and Echo are the endpoint's.
    pub options: OptionList,
    /// Whole body: the endpoint divides it into blocks.
    pub payload: Cow<'a, [u8]>,
    /// True to observe the resource, RFC 7641; with GET and FETCH.
    pub observe: bool,
}

impl<'a> Request<'a> {
    /// Creates a request for a path with an optional query, as in `/a/b?x=1&y`, percent-encoded as in a URI.
    pub fn new(method: Code, path: &str, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        let mut options = OptionList::new();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let path = path.strip_prefix('/').unwrap_or(path);
        if !path.is_empty() {
            path.split('/').for_each(|segment| options.push(number::URI_PATH, &decoded(segment)));
        }
        for argument in query.into_iter().flat_map(|query| query.split('&')) {
            options.push(number::URI_QUERY, &decoded(argument));
        }
        Self { method, confirmable: true, options, payload: payload.into(), observe: false }
    }

    /// Creates a GET.
    pub fn get(path: &str) -> Self {
        Self::new(Code::GET, path, &[][..])
    }

    /// Creates a PUT.
    pub fn put(path: &str, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(Code::PUT, path, payload)
    }

    /// Creates a POST.
    pub fn post(path: &str, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(Code::POST, path, payload)
    }

    /// Creates a DELETE.
    pub fn delete(path: &str) -> Self {
        Self::new(Code::DELETE, path, &[][..])
    }

    /// Creates a FETCH (RFC 8132) of the parts of a resource that `payload` names.
    pub fn fetch(path: &str, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(code::FETCH, path, payload)
    }

    /// Creates a PATCH (RFC 8132), which is not idempotent.
    pub fn patch(path: &str, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(code::PATCH, path, payload)
    }

    /// Creates an iPATCH (RFC 8132), which is idempotent.
    pub fn ipatch(path: &str, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(code::IPATCH, path, payload)
    }

    /// Observes the resource.
    pub fn observe(self) -> Self {
        Self { observe: true, ..self }
    }

    /// Sends the request as a Non-confirmable message.
    pub fn non_confirmable(self) -> Self {
        Self { confirmable: false, ..self }
    }

    /// Adds an option.
    pub fn option(mut self, number: u16, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// Adds an option with a uint.
    pub fn uint(mut self, number: u16, value: u32) -> Self {
        self.options.push_uint(number, value);
        self
    }

    /// Adds Content-Format.
    pub fn format(self, content_format: u16) -> Self {
        self.uint(number::CONTENT_FORMAT, u32::from(content_format))
    }

    /// Adds Accept.
    pub fn accept(self, content_format: u16) -> Self {
        self.uint(number::ACCEPT, u32::from(content_format))
    }

    /// Adds the ETag of a cached representation: 2.03 means that it is still valid. RFC 7252, section 5.10.6.2.
    pub fn etag(self, etag: &[u8]) -> Self {
        self.option(number::ETAG, etag)
    }
}

/// Decodes the percent-encoding of a path segment or an argument of a query. Invalid sequences are kept.
fn decoded(text: &str) -> Vec<u8> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| core::str::from_utf8(digits).ok());
        let octet = digits.filter(|digits| first == b'%' && !digits.starts_with('+'));
        match octet.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(octet) => {
                octets.push(octet);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                octets.push(first);
                rest = behind;
            }
        }
    }
    octets
}

/// A response to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Response Code.
    pub code: Code,
    /// Options. Observe, Block1, Block2, Size1, Size2 and Echo are the endpoint's.
    pub options: OptionList,
    /// Whole body, or the diagnostic payload of an error: the endpoint divides it into blocks.
    pub payload: Cow<'a, [u8]>,
}

impl<'a> Response<'a> {
    /// Creates a response without options and payload.
    #[inline]
    pub const fn new(code: Code) -> Self {
        Self { code, options: OptionList::new(), payload: Cow::Borrowed(&[]) }
    }

    /// Creates a 2.05 with a payload.
    #[inline]
    pub fn content(payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { payload: payload.into(), ..Self::new(Code::CONTENT) }
    }

    /// Creates a 2.03: the representation that the client has is still valid.
    pub fn valid(etag: &[u8]) -> Self {
        Self::new(code::VALID).etag(etag)
    }

    /// Sets the payload.
    #[inline]
    pub fn payload(self, payload: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// Adds an option.
    #[inline]
    pub fn option(mut self, number: u16, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// Adds an option with a uint.
    #[inline]
    pub fn uint(mut self, number: u16, value: u32) -> Self {
        self.options.push_uint(number, value);
        self
    }

    /// Adds Content-Format.
    #[inline]
    pub fn format(self, content_format: u16) -> Self {
        self.uint(number::CONTENT_FORMAT, u32::from(content_format))
    }

    /// Adds an ETag.
    #[inline]
    pub fn etag(self, etag: &[u8]) -> Self {
        self.option(number::ETAG, etag)
    }

    /// Adds Max-Age, in seconds.
    #[inline]
    pub fn max_age(self, seconds: u32) -> Self {
        self.uint(number::MAX_AGE, seconds)
    }
}

/// A received request or response, with its whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<'d> {
    /// Method or Response Code.
    pub code: Code,
    /// Options; of the last block, if there were several.
    pub options: Options<'d>,
    /// Body.
    pub payload: Cow<'d, [u8]>,
}

impl Received<'_> {
    /// Returns the message with its octets copied.
    pub fn into_owned(self) -> Received<'static> {
        Received {
            code: self.code,
            options: self.options.into_owned(),
            payload: Cow::Owned(self.payload.into_owned()),
        }
    }

    /// True if it is a response of class 2: success.
    pub const fn is_success(&self) -> bool {
        self.code.class() == 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn parts(path: &str) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let request = Request::get(path);
        let options = request.options.as_options();
        (options.path().map(<[u8]>::to_vec).collect(), options.query().map(<[u8]>::to_vec).collect())
    }

    fn octets(parts: &[&str]) -> Vec<Vec<u8>> {
        parts.iter().map(|part| part.as_bytes().to_vec()).collect()
    }

    /// RFC 7252, sections 6.4 and 6.5, and the examples of appendix B.
    #[test]
    fn a_path_becomes_options() {
        assert_eq!(parts("/"), (octets(&[]), octets(&[])));
        assert_eq!(parts(""), (octets(&[]), octets(&[])));
        assert_eq!(parts("/.well-known/core"), (octets(&[".well-known", "core"]), octets(&[])));
        assert_eq!(
            parts("/%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF"),
            (octets(&["\u{3053}\u{3093}\u{306B}\u{3061}\u{306F}"]), octets(&[]))
        );
        assert_eq!(parts("/%2F//?%2F%2F&?%26"), (octets(&["/", "", ""]), octets(&["//", "?&"])));
        assert_eq!(parts("/100%/%zz%+1"), (octets(&["100%", "%zz%+1"]), octets(&[])));
    }
}
