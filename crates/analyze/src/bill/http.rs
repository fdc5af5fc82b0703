//! Octets that CoAP instead of HTTP saves: each exchange as a confirmable request with its response (RFC 7252), in blocks of 1,024 octets
//! (RFC 7959) where a body is larger. Header fields of HTTP have no counterpart but the format of the content.

use crate::packet::ParsedPacket;

/// Octets of the header of UDP; of the header of a message with a token of two octets.
const UDP: u64 = 8;
const COAP: u64 = 4 + 2;

/// Octets of Content-Format and of the Payload Marker; of an option Block1 or Block2 with a small number.
const CONTENT: u64 = 2 + 1;
const BLOCK_OPTION: u64 = 3;

/// Octets of a block.
const BLOCK: u64 = 1_024;

/// A connection.
#[derive(Debug, Default)]
pub(super) struct HttpConnection {
    /// Octets of its frames.
    octets: u64,
    /// Octets of the same exchanges over CoAP.
    coap: u64,
    /// Octets of a frame before UDP.
    below: u64,
    /// True within the header of a request, and of a response.
    header: [bool; 2],
    /// Octets of the latest body of the client, and of the server.
    body: [u64; 2],
    exchanges: u64,
}

impl HttpConnection {
    /// Adds a frame, also one without data.
    pub(super) fn frame(&mut self, packet: &ParsedPacket<'_>, octets: u64) {
        self.octets += octets;
        let behind_link = packet.octets.len() as u64;
        self.below = octets.saturating_sub(behind_link) + packet.ip as u64;
    }

    /// Adds new data of the client, or of the server.
    pub(super) fn data(&mut self, is_of_client: bool, data: &[u8]) {
        let side = usize::from(!is_of_client);
        let begin =
            if is_of_client { target(data).map(options) } else { data.starts_with(b"HTTP/1.").then_some(0) };
        if let Some(options) = begin {
            self.end_body(side);
            self.header[side] = true;
            self.coap += self.below + UDP + COAP + options;
            self.exchanges += u64::from(!is_of_client);
        }
        let mut rest = data;
        if self.header[side] {
            let Some(end) = data.windows(4).position(|four| four == b"\r\n\r\n") else { return };
            self.header[side] = false;
            rest = data.get(end + 4..).unwrap_or_default();
        }
        self.body[side] += rest.len() as u64;
    }

    fn end_body(&mut self, side: usize) {
        let body = std::mem::take(&mut self.body[side]);
        if body > 0 {
            self.coap += body + CONTENT;
        }
        // A request and a response for each further block.
        let more = body.div_ceil(BLOCK).saturating_sub(1);
        if more > 0 {
            self.coap += BLOCK_OPTION + more * (2 * (self.below + UDP + COAP + BLOCK_OPTION) + CONTENT);
        }
    }

    /// Octets that CoAP saves.
    pub(super) fn saves(mut self) -> u64 {
        (0..2).for_each(|side| self.end_body(side));
        if self.exchanges > 0 { self.octets.saturating_sub(self.coap) } else { 0 }
    }
}

/// Target of a request.
fn target(data: &[u8]) -> Option<&[u8]> {
    const METHODS: [&[u8]; 6] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH"];

    let line = data.get(..data.iter().position(|octet| *octet == b'\r')?)?;
    let mut words = line.split(|octet| *octet == b' ');
    words.next().filter(|method| METHODS.contains(method))?;
    let target = words.next()?;
    words.next()?.starts_with(b"HTTP/1.").then_some(target)
}

/// Octets of Uri-Path and Uri-Query of a target.
fn options(target: &[u8]) -> u64 {
    let parts = target.split(|octet| matches!(octet, b'/' | b'?' | b'&')).filter(|part| !part.is_empty());
    parts.map(|part| part.len() as u64 + if part.len() < 13 { 1 } else { 2 }).sum()
}
