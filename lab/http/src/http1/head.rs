//! Parser of the heads of messages.

use httparse::{EMPTY_HEADER, Header, Status};

use crate::status;
use crate::{HttpError, Method};

/// Maximum number of fields in a head.
const FIELDS: usize = 64;

/// Fields that describe the body and the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FramingFields {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    hosts: usize,
}

/// Head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    /// Size of the head, in octets.
    pub(super) len: usize,
    pub(super) status: u16,
    pub(super) length: Length,
    /// True if the connection can have another response.
    pub(super) persists: bool,
}

/// Length of a body. RFC 9112, section 6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Octets(u64),
    Chunked,
    UntilEnd,
}

/// Head of a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestHead<'h> {
    /// Size of the head, in octets.
    pub(super) len: usize,
    pub(super) method: Method,
    pub(super) target: &'h str,
    /// True if the connection can have another request.
    pub(super) persists: bool,
}

/// Parses the head of a response; `None` if it is incomplete.
pub(super) fn response(octets: &[u8]) -> Result<Option<ResponseHead>, HttpError> {
    let mut room = [EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut room);
    let Status::Complete(len) = response.parse(octets).map_err(|_| HttpError::Head)? else { return Ok(None) };
    let status = response.code.ok_or(HttpError::Head)?;
    let fields = fields(response.headers).ok_or(HttpError::BodyLength)?;
    let length = match fields {
        // No body. RFC 9110, section 6.4.1.
        _ if matches!(status, 100..=199 | 204 | 304) => Length::Octets(0),
        // Chunked overrides, but a message with both may be an attempt at request smuggling. RFC 9112, section 6.1.
        FramingFields { chunked: true, content_length: Some(_), .. } => return Err(HttpError::BodyLength),
        FramingFields { chunked: true, .. } => Length::Chunked,
        FramingFields { content_length: Some(octets), .. } => Length::Octets(octets),
        _ => Length::UntilEnd,
    };
    // RFC 9112, section 9.3. Without a length, the end of the stream is the end of the object.
    let is_asked = if response.version == Some(0) { fields.keep_alive } else { true };
    let persists = is_asked && !fields.close && length != Length::UntilEnd;
    Ok(Some(ResponseHead { len, status, length, persists }))
}

/// Parses the head of a request; `None` if it is incomplete. The error is the status code of the response.
pub(super) fn request(octets: &[u8]) -> Result<Option<RequestHead<'_>>, u16> {
    let mut room = [EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut room);
    let len = match request.parse(octets) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::Version) => return Err(status::VERSION_NOT_SUPPORTED),
        Err(httparse::Error::TooManyHeaders) => return Err(status::HEADER_FIELDS_TOO_LARGE),
        Err(_) => return Err(status::BAD_REQUEST),
    };
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(status::BAD_REQUEST);
    };
    let fields = fields(request.headers).ok_or(status::BAD_REQUEST)?;
    // RFC 9112, section 3.2.
    if fields.hosts > 1 || version == 1 && fields.hosts == 0 {
        return Err(status::BAD_REQUEST);
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" | "PUT" | "DELETE" | "OPTIONS" | "TRACE" | "CONNECT" | "PATCH" => {
            return Err(status::METHOD_NOT_ALLOWED);
        }
        _ => return Err(status::NOT_IMPLEMENTED),
    };
    // Checked after the method: for a POST the method is the error, not the body.
    if fields.chunked || fields.content_length.is_some_and(|octets| octets > 0) {
        return Err(status::CONTENT_TOO_LARGE);
    }
    let target = origin_form(target).ok_or(status::BAD_REQUEST)?;
    // RFC 9112, section 9.3.
    let persists = !fields.close && (version == 1 || fields.keep_alive);
    Ok(Some(RequestHead { len, method, target, persists }))
}

/// Path and query of a request target, also in absolute form, as sent to a proxy. RFC 9112, section 3.2.
fn origin_form(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target);
    }
    let authority = target.strip_prefix("http://")?;
    Some(authority.find('/').and_then(|at| authority.get(at..)).unwrap_or("/"))
}

/// Extracts the fields; `None` if they contradict each other.
fn fields(headers: &[Header<'_>]) -> Option<FramingFields> {
    let mut fields = FramingFields::default();
    for header in headers {
        let name_is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if name_is("host") {
            fields.hosts += 1;
        } else if name_is("content-length") {
            let length = length(header.value)?;
            if fields.content_length.is_some_and(|other| other != length) {
                return None;
            }
            fields.content_length = Some(length);
        } else if name_is("transfer-encoding") {
            // No transfer coding but a single chunked is supported.
            if fields.chunked || !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            fields.chunked = true;
        } else if name_is("connection") {
            for word in header.value.split(|octet| *octet == b',') {
                fields.close |= word.trim_ascii().eq_ignore_ascii_case(b"close");
                fields.keep_alive |= word.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    Some(fields)
}

/// Parses digits only: no sign, no list. RFC 9110, section 8.6.
fn length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(digits).ok()?.parse().ok()
}
