//! Extension headers between an IP header and its payload. RFC 8200, section 4; RFC 4302.

use super::protocol;

/// True if `kind` is an extension header that begins with a Next Header field and a length: hop-by-hop
/// options, routing, destination options and authentication.
#[inline]
pub const fn is_extension(kind: u8) -> bool {
    matches!(kind, protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::AH)
}

/// Length in octets of an extension header of type `kind` whose second octet is `length`.
///
/// AH counts 4-octet units less two (RFC 4302, section 2.2), the others 8-octet units less one.
#[inline]
pub const fn octets_of(kind: u8, length: u8) -> usize {
    if kind == protocol::AH { (length as usize + 2) * 4 } else { (length as usize + 1) * 8 }
}

/// Octets of an Authentication Header before its Integrity Check Value.
pub const AH_FIXED: usize = 12;

/// Iterator over the extension headers at the start of some octets.
///
/// Ends before the first header that is truncated or no extension header; [`next_header`](Self::next_header)
/// and [`rest`](Self::rest) then describe what follows.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'p> {
    next_header: u8,
    rest: &'p [u8],
}

impl<'p> Extensions<'p> {
    /// Creates an iterator over the headers at the start of `octets`, the first of which is of type
    /// `next_header`.
    #[inline]
    pub const fn new(next_header: u8, octets: &'p [u8]) -> Self {
        Self { next_header, rest: octets }
    }

    /// Type of the next header; after the last one, protocol of the payload.
    #[inline]
    pub const fn next_header(&self) -> u8 {
        self.next_header
    }

    /// Octets that were not visited yet.
    #[inline]
    pub const fn rest(&self) -> &'p [u8] {
        self.rest
    }
}

impl<'p> Iterator for Extensions<'p> {
    /// Type and octets of a header.
    type Item = (u8, &'p [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let kind = self.next_header;
        if !is_extension(kind) {
            return None;
        }
        let &[next, length, ..] = self.rest else { return None };
        let octets = octets_of(kind, length);
        // An AH without SPI and sequence number is invalid.
        if octets > self.rest.len() || kind == protocol::AH && octets < AH_FIXED {
            return None;
        }
        let (header, rest) = self.rest.split_at(octets);
        self.next_header = next;
        self.rest = rest;
        Some((kind, header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_walked_until_the_transport() {
        let hop = [60, 0, 1, 4, 0, 0, 0, 0];
        let dest = [17, 0, 1, 4, 0, 0, 0, 0];
        let octets = [hop, dest, [9; 8]].concat();
        let mut walk = Extensions::new(protocol::HOP_BY_HOP, &octets);
        assert_eq!(walk.next(), Some((0, &hop[..])));
        assert_eq!(walk.next(), Some((60, &dest[..])));
        assert_eq!(walk.next(), None);
        assert_eq!((walk.next_header(), walk.rest()), (17, &[9; 8][..]));
    }

    #[test]
    fn a_header_that_is_cut_off_ends_the_walk() {
        let mut walk = Extensions::new(protocol::ROUTING, &[17, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(walk.next(), None);
        assert_eq!(walk.next_header(), protocol::ROUTING);
    }
}
