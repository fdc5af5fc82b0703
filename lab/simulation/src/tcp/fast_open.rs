//! Cookie of Fast Open. RFC 7413, section 4.1.

use std::fmt;

/// Cookie of 4 to 16 octets, an even number, by which a server recognizes an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    octets: [u8; 16],
    len: u8,
}

impl Cookie {
    /// Cookie with these octets; `None` for fewer than 4, more than 16, or an odd number.
    pub fn new(octets: &[u8]) -> Option<Self> {
        if octets.len() < 4 || octets.len() % 2 == 1 {
            return None;
        }
        let mut cookie = Self { octets: [0; 16], len: octets.len() as u8 };
        cookie.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(cookie)
    }

    /// Octets of the cookie.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie(")?;
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        write!(f, ")")
    }
}
