//! Status codes and their phrases. RFC 9110, section 15.

/// The response has the object.
pub const OK: u16 = 200;
/// The request is invalid.
pub const BAD_REQUEST: u16 = 400;
/// The object is not public.
pub const FORBIDDEN: u16 = 403;
/// The object does not exist.
pub const NOT_FOUND: u16 = 404;
/// The object does not support the method.
pub const METHOD_NOT_ALLOWED: u16 = 405;
/// The request has a body, which no request here may have.
pub const CONTENT_TOO_LARGE: u16 = 413;
/// The head of the request exceeds the limit. RFC 6585, section 5.
pub const HEADER_FIELDS_TOO_LARGE: u16 = 431;
/// The object cannot be read.
pub const INTERNAL_SERVER_ERROR: u16 = 500;
/// The method is unknown.
pub const NOT_IMPLEMENTED: u16 = 501;
/// The version of HTTP is not supported.
pub const VERSION_NOT_SUPPORTED: u16 = 505;

/// Phrase of a status code; empty for those that no server here sends.
pub fn phrase(status: u16) -> &'static str {
    match status {
        OK => "OK",
        BAD_REQUEST => "Bad Request",
        FORBIDDEN => "Forbidden",
        NOT_FOUND => "Not Found",
        METHOD_NOT_ALLOWED => "Method Not Allowed",
        CONTENT_TOO_LARGE => "Content Too Large",
        HEADER_FIELDS_TOO_LARGE => "Request Header Fields Too Large",
        INTERNAL_SERVER_ERROR => "Internal Server Error",
        NOT_IMPLEMENTED => "Not Implemented",
        VERSION_NOT_SUPPORTED => "HTTP Version Not Supported",
        _ => "",
    }
}
