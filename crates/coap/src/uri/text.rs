//! Parsing and percent-encoding of URIs. RFC 3986, sections 2 and 5.2.4.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::net::Ipv6Addr;

use super::{Fault, Host, Scheme, Uri, UriError};

/// Longest host, segment or argument, in octets: those of Uri-Host, Uri-Path and Uri-Query.
const LONGEST: usize = 255;

/// Part of a URI that a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UriPart {
    Name,
    Segment,
    Argument,
}

impl UriPart {
    /// True if an octet needs no percent-encoding. RFC 7252, section 6.5, steps 2, 6 and 8.
    const fn allows(self, octet: u8) -> bool {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => true,
            b'!' | b'$' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => true,
            b'&' => !matches!(self, Self::Argument),
            b':' | b'@' => !matches!(self, Self::Name),
            b'/' | b'?' => matches!(self, Self::Argument),
            _ => false,
        }
    }
}

/// Writes octets, percent-encoded where necessary.
pub(super) fn encoded(text: &mut String, octets: &[u8], part: UriPart) {
    for &octet in octets {
        if part.allows(octet) {
            text.push(char::from(octet));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{octet:02X}");
        }
    }
}

const fn at<T>(fault: Fault, at: usize) -> Result<T, UriError> {
    Err(UriError { fault, at })
}

/// Decodes `text`, which begins `offset` octets into the URI.
///
/// Characters beyond ASCII are encoded as UTF-8, as in an IRI (RFC 3987, section 3.1).
pub(super) fn decoded(text: &str, offset: usize) -> Result<Vec<u8>, UriError> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter().copied().enumerate();
    while let Some((index, octet)) = rest.next() {
        match octet {
            b'%' => {
                let mut digit = || Some(char::from(rest.next()?.1).to_digit(16)? as u8);
                match digit().zip(digit()) {
                    Some((high, low)) => octets.push(high << 4 | low),
                    None => return at(Fault::Percent, offset + index),
                }
            }
            0..=b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'[' | b']' | 0x7F => {
                return at(Fault::Character, offset + index);
            }
            octet => octets.push(octet),
        }
    }
    if octets.len() > LONGEST {
        return at(Fault::TooLong, offset);
    }
    Ok(octets)
}

pub(super) fn read(text: &str) -> Result<Uri, UriError> {
    let Some((scheme, rest)) = text.split_once("://") else { return at(Fault::NotAbsolute, 0) };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "coap" => Scheme::Coap,
        "coap+tcp" => Scheme::CoapTcp,
        "coaps" => Scheme::Coaps,
        "coaps+tcp" | "coaps+ws" => return at(Fault::NeedsTls, 0),
        "coap+ws" => return at(Fault::NeedsWebSocket, 0),
        "" => return at(Fault::NotAbsolute, 0),
        _ => return at(Fault::Scheme, 0),
    };
    if let Some(mark) = text.find('#') {
        return at(Fault::Fragment, mark);
    }
    let start = text.len() - rest.len();
    let (authority, resource) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = read_authority(authority, start, scheme.port())?;
    let start = start + authority.len();
    let (path, query) = match resource.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (resource, None),
    };
    let query = match query {
        Some(query) => pieces(query, '&', start + path.len() + 1)?,
        None => Vec::new(),
    };
    let path = match path.strip_prefix('/') {
        Some(path) if !path.is_empty() => without_dots(pieces(path, '/', start + 1)?),
        _ => Vec::new(),
    };
    Ok(Uri { scheme, host, port, path, query })
}

fn pieces(text: &str, mark: char, offset: usize) -> Result<Vec<Vec<u8>>, UriError> {
    let mut offset = offset;
    let mut pieces = Vec::new();
    for piece in text.split(mark) {
        pieces.push(decoded(piece, offset)?);
        offset += piece.len() + mark.len_utf8();
    }
    Ok(pieces)
}

/// Removes the segments `.` and `..`, which Uri-Path must not have (RFC 7252, section 5.10.1). RFC 3986,
/// section 5.2.4.
fn without_dots(segments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut path = Vec::with_capacity(segments.len());
    let last = segments.len() - 1;
    for (index, segment) in segments.into_iter().enumerate() {
        match segment.as_slice() {
            dots @ (b"." | b"..") => {
                if dots.len() == 2 {
                    path.pop();
                }
                // The rest is a folder: the slash before the dots stays.
                if index == last {
                    path.push(Vec::new());
                }
            }
            _ => path.push(segment),
        }
    }
    // A single slash.
    if path.len() == 1 && path.first().is_some_and(Vec::is_empty) {
        path.clear();
    }
    path
}

/// Parses host and port; the authority is `offset` octets into the URI. `default`: port where it has none.
fn read_authority(authority: &str, offset: usize, default: u16) -> Result<(Host, u16), UriError> {
    if let Some(mark) = authority.find('@') {
        return at(Fault::UserInfo, offset + mark);
    }
    if let Some(literal) = authority.strip_prefix('[') {
        let Some((literal, port)) = literal.split_once(']') else { return at(Fault::Bracket, offset) };
        let behind = offset + literal.len() + 2;
        let host = read_literal(literal, offset + 1)?;
        return match port.strip_prefix(':') {
            Some(port) => Ok((host, read_port(port, behind + 1, default)?)),
            None if port.is_empty() => Ok((host, default)),
            None => at(Fault::Bracket, behind),
        };
    }
    let (name, port) = match authority.split_once(':') {
        // An IPv6 address without its brackets.
        Some((_, port)) if port.contains(':') => return at(Fault::Bracket, offset),
        Some((name, port)) => (name, read_port(port, offset + name.len() + 1, default)?),
        None => (authority, default),
    };
    if name.is_empty() {
        return at(Fault::NoHost, offset);
    }
    let name = decoded(name, offset)?.to_ascii_lowercase();
    match String::from_utf8(name) {
        Ok(name) => Ok((host(&name), port)),
        Err(_) => at(Fault::Character, offset),
    }
}

/// Parses a name or an address, as in the value of Uri-Host.
pub(super) fn host(text: &str) -> Host {
    let literal = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Some(Ok(host)) = literal.map(|literal| read_literal(literal, 0)) {
        return host;
    }
    match text.parse() {
        Ok(address) => Host::V4(address),
        Err(_) => Host::Name(text.into()),
    }
}

/// Parses the text between brackets.
fn read_literal(literal: &str, offset: usize) -> Result<Host, UriError> {
    let (address, zone) = match literal.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (literal, None),
    };
    let Ok(address) = address.parse::<Ipv6Addr>() else { return at(Fault::Address, offset) };
    let Some(zone) = zone else { return Ok(Host::V6 { address, zone: None }) };
    let start = offset + literal.len() - zone.len();
    // Commonly written %eth0; RFC 6874 has %25eth0. Interface 25 is %25.
    let name = zone.strip_prefix("25").filter(|name| !name.is_empty()).unwrap_or(zone);
    let name = decoded(name, start + zone.len() - name.len())?;
    match String::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok(Host::V6 { address, zone: Some(name) }),
        _ => at(Fault::Zone, start),
    }
}

fn read_port(text: &str, offset: usize, default: u16) -> Result<u16, UriError> {
    let is_number = text.bytes().all(|octet| octet.is_ascii_digit());
    match text.parse() {
        Ok(port) if is_number && port != 0 => Ok(port),
        // RFC 3986, section 3.2.3: the port may be empty.
        Err(_) if text.is_empty() => Ok(default),
        _ => at(Fault::Port, offset),
    }
}
