//! Network Points of Attachment: addresses of SNDUs. RFC 4326, section 4.5.

use core::fmt;
use core::str::FromStr;

/// Address of one or more Receivers; never `00:00:00:00:00:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Npa([u8; 6]);

impl Npa {
    /// All Receivers.
    pub const BROADCAST: Self = Self([0xFF; 6]);

    /// Creates the address with these octets; `None` for the reserved address of zeros.
    #[inline]
    pub const fn new(octets: [u8; 6]) -> Option<Self> {
        match octets {
            [0, 0, 0, 0, 0, 0] => None,
            _ => Some(Self(octets)),
        }
    }

    /// Returns the address of an IPv4 multicast group (RFC 1112, section 6.4); `None` if `group` is not
    /// one.
    pub const fn of_ipv4_group(group: [u8; 4]) -> Option<Self> {
        match group {
            [224..=239, b, c, d] => Some(Self([0x01, 0x00, 0x5E, b & 0x7F, c, d])),
            _ => None,
        }
    }

    /// Returns the address of an IPv6 multicast group (RFC 2464, section 7); `None` if `group` is not
    /// one.
    pub const fn of_ipv6_group(group: [u8; 16]) -> Option<Self> {
        match group {
            [0xFF, .., a, b, c, d] => Some(Self([0x33, 0x33, a, b, c, d])),
            _ => None,
        }
    }

    /// Returns the octets as sent.
    #[inline]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// True if it is a group address, including [`BROADCAST`](Self::BROADCAST).
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Npa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Error: invalid NPA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadNpa;

impl fmt::Display for BadNpa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid NPA: use six octets in hexadecimal with colons between them, not all zero")
    }
}

impl core::error::Error for BadNpa {}

impl FromStr for Npa {
    type Err = BadNpa;

    /// Parses the form that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, BadNpa> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| matches!(part.len(), 1 | 2)).ok_or(BadNpa)?;
            // The standard library accepts a sign before a number; here it is invalid.
            if !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(BadNpa);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| BadNpa)?;
        }
        if parts.next().is_some() {
            return Err(BadNpa);
        }
        Self::new(octets).ok_or(BadNpa)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_address_of_zeros_is_none() {
        assert_eq!(Npa::new([0; 6]), None);
        assert_eq!("00:00:00:00:00:00".parse::<Npa>(), Err(BadNpa));
        assert!(Npa::new([0, 0, 0, 0, 0, 1]).is_some());
    }

    #[test]
    fn text_and_back() {
        let npa = Npa::new([0x00, 0x01, 0x02, 0x03, 0x04, 0xAF]);
        assert_eq!(npa.map(|npa| npa.to_string()).as_deref(), Some("00:01:02:03:04:af"));
        assert_eq!("0:1:2:3:4:aF".parse().ok(), npa);
        for bad in [
            "",
            "1",
            "1:2:3:4:5",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:",
            "1:2:3:4:5:100",
            "1:2:3:4:5:+6",
            "g:2:3:4:5:6",
        ] {
            assert_eq!(bad.parse::<Npa>(), Err(BadNpa), "{bad}");
        }
    }

    /// The all-hosts groups: RFC 1112, section 6.4, and RFC 2464, section 7.
    #[test]
    fn groups_are_mapped_as_on_an_ethernet() {
        let octets = |npa: Option<Npa>| npa.map(Npa::octets);
        assert_eq!(octets(Npa::of_ipv4_group([224, 0, 0, 1])), Some([0x01, 0x00, 0x5E, 0, 0, 1]));
        // The ninth bit of the group is lost.
        assert_eq!(octets(Npa::of_ipv4_group([239, 255, 1, 2])), Some([0x01, 0x00, 0x5E, 0x7F, 1, 2]));
        assert_eq!(Npa::of_ipv4_group([223, 0, 0, 1]), None);
        let group = [0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0x12, 0x34, 0x56];
        assert_eq!(octets(Npa::of_ipv6_group(group)), Some([0x33, 0x33, 0xFF, 0x12, 0x34, 0x56]));
        assert_eq!(Npa::of_ipv6_group([0xFE; 16]), None);
        assert!(
            Npa::BROADCAST.is_multicast()
                && Npa::of_ipv4_group([224, 0, 0, 1]).is_some_and(Npa::is_multicast)
        );
    }
}
