//! Announcement of a site in a group, with which the others can decrypt its datagrams.

use zeroize::Zeroizing;

use crate::header::DatagramKind;
use crate::key::{Key, KeyId};
use crate::suite::Cipher;
use crate::{SiteId, Suite};

/// Kind and epoch, site, id of the key, salt, number.
const HEADER: usize = 1 + 1 + 4 + 16 + 4;
const BODY: usize = 8 + 8 + 8 + 8 + 1;
const TAG: usize = 16;
/// Length of an announcement in octets.
pub(crate) const LENGTH: usize = HEADER + BODY + TAG;
/// Suite of announcements, independent of that for bodies.
const SUITE: Suite = Suite::ChaCha20Poly1305;

/// Encrypted content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) epoch: u64,
    /// Counter of the next body.
    pub(super) counter: u64,
    /// Random number of the start of the site.
    pub(super) instance: [u8; 8],
    pub(super) digest: [u8; 8],
    pub(super) suite: u8,
}

/// Clear part in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clear {
    pub(super) site: SiteId,
    pub(super) key: KeyId,
    pub(super) salt: [u8; 16],
    /// Number of the announcement with that salt: the nonce.
    pub(super) number: u32,
}

impl Clear {
    /// Parses the clear part; `None`: it is not an announcement.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        if datagram.len() != LENGTH
            || DatagramKind::of(datagram[0]) != Some(DatagramKind::Announcement)
            || datagram[0] & 0x1f != 0
        {
            return None;
        }
        Some(Self {
            site: SiteId::new(datagram[1])?,
            key: KeyId(*datagram[2..].first_chunk()?),
            salt: *datagram[6..].first_chunk()?,
            number: u32::from_be_bytes(*datagram[22..].first_chunk()?),
        })
    }

    /// Returns the cipher for announcements of that site with that salt.
    pub(super) fn cipher(key: &Key, site: SiteId, salt: &[u8; 16]) -> Cipher {
        Cipher::derive(SUITE, salt, key.octets(), &[b"thinair 1 group announcement", &[site.number()]])
    }
}

impl Announcement {
    pub(super) fn seal(&self, clear: &Clear, cipher: &Cipher, out: &mut Vec<u8>) {
        out.extend([DatagramKind::Announcement.bits(), clear.site.number()]);
        out.extend(clear.key.0);
        out.extend(clear.salt);
        out.extend(clear.number.to_be_bytes());
        out.extend(self.epoch.to_be_bytes());
        out.extend(self.counter.to_be_bytes());
        out.extend(self.instance);
        out.extend(self.digest);
        out.push(self.suite);
        cipher.seal(u64::from(clear.number), 0..HEADER, out);
        debug_assert_eq!(out.len(), LENGTH);
    }

    /// Decrypts an announcement after [`Clear::read`].
    pub(super) fn open(clear: &Clear, key: &Key, datagram: &[u8]) -> Option<Self> {
        let (header, sealed) = datagram.split_at_checked(HEADER)?;
        let mut sealed = Zeroizing::new(<[u8; BODY + TAG]>::try_from(sealed).ok()?);
        let cipher = Clear::cipher(key, clear.site, &clear.salt);
        let length = cipher.open(u64::from(clear.number), header, &mut sealed[..])?;
        let body = sealed.get(..length)?;
        Some(Self {
            epoch: u64::from_be_bytes(*body.first_chunk()?),
            counter: u64::from_be_bytes(*body[8..].first_chunk()?),
            instance: *body[16..].first_chunk()?,
            digest: *body[24..].first_chunk()?,
            suite: *body.last()?,
        })
    }
}
