//! Names of codes, options and Content-Formats (IANA, CoRE Parameters).

use std::fmt::Write as _;

use thinair_coap::{Block, Code, code, number};

/// Format of an option value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionFormat {
    Empty,
    Uint,
    Text,
    Opaque,
    Format,
    Block,
}

const OPTIONS: &[(u16, &str, OptionFormat)] = &[
    (number::IF_MATCH, "If-Match", OptionFormat::Opaque),
    (number::URI_HOST, "Uri-Host", OptionFormat::Text),
    (number::ETAG, "ETag", OptionFormat::Opaque),
    (number::IF_NONE_MATCH, "If-None-Match", OptionFormat::Empty),
    (number::OBSERVE, "Observe", OptionFormat::Uint),
    (number::URI_PORT, "Uri-Port", OptionFormat::Uint),
    (number::LOCATION_PATH, "Location-Path", OptionFormat::Text),
    (number::OSCORE, "OSCORE", OptionFormat::Opaque),
    (number::URI_PATH, "Uri-Path", OptionFormat::Text),
    (number::CONTENT_FORMAT, "Content-Format", OptionFormat::Format),
    (number::MAX_AGE, "Max-Age", OptionFormat::Uint),
    (number::URI_QUERY, "Uri-Query", OptionFormat::Text),
    (number::ACCEPT, "Accept", OptionFormat::Format),
    (number::LOCATION_QUERY, "Location-Query", OptionFormat::Text),
    (number::BLOCK2, "Block2", OptionFormat::Block),
    (number::BLOCK1, "Block1", OptionFormat::Block),
    (number::SIZE2, "Size2", OptionFormat::Uint),
    (number::PROXY_URI, "Proxy-Uri", OptionFormat::Text),
    (number::PROXY_SCHEME, "Proxy-Scheme", OptionFormat::Text),
    (number::SIZE1, "Size1", OptionFormat::Uint),
    (number::ECHO, "Echo", OptionFormat::Opaque),
    (number::NO_RESPONSE, "No-Response", OptionFormat::Uint),
    (number::REQUEST_TAG, "Request-Tag", OptionFormat::Opaque),
];

/// Returns name and value format of an option.
pub(crate) fn option(number: u16) -> Option<(&'static str, OptionFormat)> {
    OPTIONS.iter().find(|(known, ..)| *known == number).map(|(_, name, value)| (*name, *value))
}

/// Parses an option number or name.
pub(crate) fn option_number(text: &str) -> Result<u16, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let known = OPTIONS.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(number, ..)| *number).ok_or_else(|| format!("`{text}` is no option: give its number"))
}

/// Content-Formats that the command accepts by name.
const FORMATS: &[(u16, &str)] = &[
    (0, "text/plain"),
    (21, "image/gif"),
    (22, "image/jpeg"),
    (23, "image/png"),
    (40, "application/link-format"),
    (41, "application/xml"),
    (42, "application/octet-stream"),
    (47, "application/exi"),
    (50, "application/json"),
    (51, "application/json-patch+json"),
    (52, "application/merge-patch+json"),
    (60, "application/cbor"),
    (61, "application/cwt"),
    (62, "application/multipart-core"),
    (63, "application/cbor-seq"),
    (110, "application/senml+json"),
    (111, "application/sensml+json"),
    (112, "application/senml+cbor"),
    (113, "application/sensml+cbor"),
    (114, "application/senml-exi"),
    (115, "application/sensml-exi"),
    (256, "application/coap-group+json"),
    (257, "application/concise-problem-details+cbor"),
    (310, "application/senml+xml"),
    (311, "application/sensml+xml"),
    (320, "application/senml-etch+json"),
    (322, "application/senml-etch+cbor"),
    (432, "application/td+json"),
    (10_000, "application/vnd.ocf+cbor"),
    (11_542, "application/vnd.oma.lwm2m+tlv"),
    (11_543, "application/vnd.oma.lwm2m+json"),
    (11_544, "application/vnd.oma.lwm2m+cbor"),
    (20_000, "text/css"),
    (30_000, "image/svg+xml"),
];

/// Returns the name of a Content-Format.
pub(crate) fn format(number: u16) -> Option<&'static str> {
    FORMATS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Parses a Content-Format: a number, a name, or the part of the name after the slash.
pub(crate) fn format_number(text: &str) -> Result<u16, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let name = text.to_ascii_lowercase();
    let fits = |known: &str| known == name || known.split_once('/').is_some_and(|(_, short)| short == name);
    let known = FORMATS.iter().find(|(_, known)| fits(known));
    known.map(|(number, _)| *number).ok_or_else(|| {
        format!("`{text}` is no Content-Format that is known by name, as application/json or cbor are; give its number")
    })
}

/// True if a payload of this Content-Format is human-readable text.
pub(crate) fn is_text(format: u16) -> bool {
    let Some(name) = self::format(format) else { return false };
    let parts = ["text/", "json", "xml", "link-format"];
    parts.iter().any(|part| name.contains(part))
}

/// Returns the name of a code (RFC 7252, section 12.1, and others).
pub(crate) fn code_name(code: Code) -> &'static str {
    match code {
        Code::GET => "GET",
        Code::POST => "POST",
        Code::PUT => "PUT",
        Code::DELETE => "DELETE",
        code::FETCH => "FETCH",
        code::PATCH => "PATCH",
        code::IPATCH => "iPATCH",
        code::CREATED => "Created",
        code::DELETED => "Deleted",
        code::VALID => "Valid",
        Code::CHANGED => "Changed",
        Code::CONTENT => "Content",
        code::CONTINUE => "Continue",
        code::BAD_REQUEST => "Bad Request",
        code::UNAUTHORIZED => "Unauthorized",
        code::BAD_OPTION => "Bad Option",
        code::FORBIDDEN => "Forbidden",
        code::NOT_FOUND => "Not Found",
        code::METHOD_NOT_ALLOWED => "Method Not Allowed",
        code::NOT_ACCEPTABLE => "Not Acceptable",
        code::REQUEST_ENTITY_INCOMPLETE => "Request Entity Incomplete",
        code::PRECONDITION_FAILED => "Precondition Failed",
        code::REQUEST_ENTITY_TOO_LARGE => "Request Entity Too Large",
        code::UNSUPPORTED_CONTENT_FORMAT => "Unsupported Content-Format",
        code::INTERNAL_SERVER_ERROR => "Internal Server Error",
        code::NOT_IMPLEMENTED => "Not Implemented",
        code::SERVICE_UNAVAILABLE => "Service Unavailable",
        code::PROXYING_NOT_SUPPORTED => "Proxying Not Supported",
        _ => match (code.class(), code.detail()) {
            (4, 9) => "Conflict",
            (4, 22) => "Unprocessable Entity",
            (4, 29) => "Too Many Requests",
            (5, 2) => "Bad Gateway",
            (5, 4) => "Gateway Timeout",
            (5, 8) => "Hop Limit Reached",
            _ => "",
        },
    }
}

/// Formats a code with its name: `4.04 Not Found`.
pub fn code(code: Code) -> String {
    format!("{code} {}", code_name(code)).trim_end().to_owned()
}

/// Formats the value of an option.
pub(crate) fn value(number: u16, octets: &[u8]) -> String {
    let kind = option(number).map_or(OptionFormat::Opaque, |(_, kind)| kind);
    let uint =
        || (octets.len() <= 4).then(|| octets.iter().fold(0, |uint, octet| uint << 8 | u32::from(*octet)));
    match (kind, uint()) {
        (OptionFormat::Empty, _) if octets.is_empty() => String::new(),
        (OptionFormat::Text, _) => printable(&String::from_utf8_lossy(octets)),
        (OptionFormat::Uint, Some(uint)) => uint.to_string(),
        (OptionFormat::Format, Some(uint)) => match u16::try_from(uint).ok().and_then(format) {
            Some(name) => format!("{uint} ({name})"),
            None => uint.to_string(),
        },
        (OptionFormat::Block, Some(uint)) => match Block::from_uint(uint) {
            // As written in RFC 7959, section 3.
            Some(block) => format!("{}/{}/{}", block.num, u8::from(block.more), block.size.octets()),
            None => hexadecimal(octets),
        },
        _ => hexadecimal(octets),
    }
}

/// Formats octets as `0x1f`.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().fold("0x".to_owned(), |mut text, octet| {
        // Writing to a string does not fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// Escapes control characters in text from the peer, which could change the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => printable.push(character),
            control if control.is_control() => printable.extend(control.escape_default()),
            other => printable.push(other),
        }
    }
    printable
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_number_and_by_name() {
        for (text, number) in
            [("50", 50), ("application/JSON", 50), ("cbor", 60), ("plain", 0), ("65000", 65_000)]
        {
            assert_eq!(format_number(text), Ok(number));
        }
        assert!(format_number("jpeg2000").unwrap_err().contains("give its number"));
        assert_eq!([0, 50, 60, 40, 42, 110].map(is_text), [true, true, false, true, false, true]);
    }

    #[test]
    fn values_are_told_as_the_rfcs_write_them() {
        assert_eq!(value(number::CONTENT_FORMAT, &[50]), "50 (application/json)");
        assert_eq!(value(number::CONTENT_FORMAT, &[]), "0 (text/plain)");
        assert_eq!(value(number::BLOCK2, &[0x1E]), "1/1/1024");
        assert_eq!(value(number::ETAG, &[0xAB, 1]), "0xab01");
        assert_eq!(value(number::LOCATION_PATH, b"a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(value(9_999, b"x"), "0x78");
        assert_eq!(code(Code::new(4, 4)), "4.04 Not Found");
        assert_eq!(code(Code::new(4, 30)), "4.30");
    }
}
