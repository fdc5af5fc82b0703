//! Clear header of encrypted datagrams: one octet of kind and flags, one for session or site, and the
//! counter.

use super::BodyFlags;
use crate::SiteId;

/// Kind of a datagram, in the upper three bits of its first octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatagramKind {
    /// A body, encrypted for one peer.
    TwoWay,
    /// A body, encrypted for all sites of a group.
    Group,
    /// A message of a handshake, identified by the lower bits.
    Handshake,
    /// An announcement of a site in a group.
    Announcement,
    /// A body without protection.
    Insecure,
    /// A probe of the path MTU or of a mapping, or its answer, encrypted for one peer.
    Path,
    /// As [`Path`](Self::Path), with an index of three octets.
    LongPath,
}

/// Content of a datagram on the path, in the lowest two bits of its first octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathBody {
    /// A body; the length of the datagram must be confirmed.
    Body,
    /// Padding; the length of the datagram must be confirmed.
    Padding,
    /// The length of a datagram that has arrived.
    Confirmation,
    /// A request for an answer after a delay, or the answer: a message on the mapping of a NAT.
    Mapping,
}

impl DatagramKind {
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::TwoWay => 0x20,
            Self::Group => 0x40,
            Self::Handshake => 0x60,
            Self::Announcement => 0x80,
            Self::Insecure => 0xa0,
            Self::Path => 0xc0,
            Self::LongPath => 0xe0,
        }
    }

    pub(super) fn of(octet: u8) -> Option<Self> {
        let all = [
            Self::TwoWay,
            Self::Group,
            Self::Handshake,
            Self::Announcement,
            Self::Insecure,
            Self::Path,
            Self::LongPath,
        ];
        all.into_iter().find(|kind| kind.bits() == octet & 0xe0)
    }
}

/// Request of a handshake.
pub(super) const REQUEST: u8 = DatagramKind::Handshake.bits() | 1;
/// Answer of a handshake.
pub(super) const ANSWER: u8 = DatagramKind::Handshake.bits() | 2;
/// Request of a handshake with public keys.
pub(super) const PUBLIC_REQUEST: u8 = DatagramKind::Handshake.bits() | 4;
/// Cookie instead of an answer.
pub(super) const COOKIE: u8 = DatagramKind::Handshake.bits() | 3;

/// The octet of a keepalive without authentication. A datagram of one octet is not read.
pub(super) const BARE_KEEPALIVE: u8 = 0;

/// Flag of a message of a handshake: the index of the initiator has three octets.
pub(super) const LONG_INDEX: u8 = 0x08;
/// Flag of an answer: the index of the responder has three octets.
pub(super) const LONG_ANSWER: u8 = 0x10;

/// Index that a receiver has assigned to a session: of one octet, or of three at an end with many peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    Short(u8),
    Long([u8; LONG]),
}

/// Length of a long index in octets.
pub(super) const LONG: usize = 3;

impl Index {
    pub(super) const fn octets(&self) -> &[u8] {
        match self {
            Self::Short(octet) => std::slice::from_ref(octet),
            Self::Long(octets) => octets,
        }
    }

    pub(super) const fn is_long(self) -> bool {
        matches!(self, Self::Long(_))
    }

    /// Octets that it has more than a short one.
    pub(super) const fn more(self) -> usize {
        self.octets().len() - WHOSE
    }

    /// Reads an index from the start of `octets`; returns it with the rest.
    pub(super) fn read(octets: &[u8], is_long: bool) -> Option<(Self, &[u8])> {
        if is_long {
            let (index, rest) = octets.split_first_chunk()?;
            return Some((Self::Long(*index), rest));
        }
        let (index, rest) = octets.split_first()?;
        Some((Self::Short(*index), rest))
    }

    /// Returns the index of the initiator in a message of a handshake.
    pub(super) fn of_handshake(message: &[u8]) -> Option<Self> {
        let (first, rest) = message.split_first()?;
        Some(Self::read(rest, first & LONG_INDEX != 0)?.0)
    }
}

/// Length of kind and flags in octets.
pub(super) const KIND: usize = 1;
/// Length of an index or site number in octets.
pub(super) const WHOSE: usize = 1;
/// Usual length of the counter in octets.
pub(super) const LOW_COUNTER: usize = size_of::<u16>();
/// Additional length of the whole counter in octets.
pub(super) const REST_OF_COUNTER: usize = size_of::<u64>() - LOW_COUNTER;

const FULL: u8 = 0x10;
const SEVERAL: u8 = 0x08;
const ADDRESSED: u8 = 0x04;
const SLOT: u8 = 0x03;
/// In the place of a slot, where a short index has 0: the index is long.
const LONG_SLOT: u8 = 0x01;

impl BodyFlags {
    pub(super) const fn bits(self) -> u8 {
        (if self.several { SEVERAL } else { 0 }) | (if self.addressed { ADDRESSED } else { 0 })
    }

    pub(super) const fn of(octet: u8) -> Self {
        Self { several: octet & SEVERAL != 0, addressed: octet & ADDRESSED != 0 }
    }
}

/// Session or site of a datagram, which determines its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Index that the receiver has assigned to a session, in octets of its own.
    Index(Index),
    /// Index 0 to 3 between two ends only, in the lower bits of the first octet.
    Slot(u8),
    /// Sender, and the lowest two bits of its epoch.
    Site(SiteId, u8),
    /// As [`Index`](Self::Index), for a datagram on the path.
    Path(Index, PathBody),
}

/// The transmitted part of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travelled {
    Low(u16),
    Full(u64),
}

/// Header of an encrypted body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClearHeader {
    pub(super) whose: Whose,
    pub(super) flags: BodyFlags,
    pub(super) counter: Travelled,
}

impl ClearHeader {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let full = matches!(self.counter, Travelled::Full(_));
        let flags = self.flags.bits() | if full { FULL } else { 0 };
        match self.whose {
            Whose::Index(index) => {
                let slot = if index.is_long() { LONG_SLOT } else { 0 };
                out.push(DatagramKind::TwoWay.bits() | flags | slot);
                out.extend_from_slice(index.octets());
            }
            Whose::Path(index, body) => {
                let kind = if index.is_long() { DatagramKind::LongPath } else { DatagramKind::Path };
                out.push(kind.bits() | flags | body as u8);
                out.extend_from_slice(index.octets());
            }
            Whose::Slot(slot) => out.push(DatagramKind::TwoWay.bits() | flags | slot & SLOT),
            Whose::Site(site, epoch) => {
                out.extend([DatagramKind::Group.bits() | flags | epoch & SLOT, site.number()]);
            }
        }
        match self.counter {
            Travelled::Low(low) => out.extend(low.to_be_bytes()),
            Travelled::Full(full) => out.extend(full.to_be_bytes()),
        }
    }

    /// Parses the header of `datagram`; returns it with its length. `indexed`: bodies for one peer have
    /// octets for the index.
    pub(super) fn read(datagram: &[u8], indexed: bool) -> Option<(Self, usize)> {
        let (&first, rest) = datagram.split_first()?;
        let slot = first & SLOT;
        let (whose, rest) = match DatagramKind::of(first)? {
            DatagramKind::TwoWay if !indexed => (Whose::Slot(slot), rest),
            // Reserved bits are zero.
            DatagramKind::TwoWay if slot <= LONG_SLOT => {
                let (index, rest) = Index::read(rest, slot == LONG_SLOT)?;
                (Whose::Index(index), rest)
            }
            kind @ (DatagramKind::Path | DatagramKind::LongPath) if indexed => {
                let body = [PathBody::Body, PathBody::Padding, PathBody::Confirmation, PathBody::Mapping];
                let body = *body.get(usize::from(slot))?;
                let (index, rest) = Index::read(rest, kind == DatagramKind::LongPath)?;
                (Whose::Path(index, body), rest)
            }
            DatagramKind::Group => (Whose::Site(SiteId::new(*rest.first()?)?, slot), &rest[1..]),
            DatagramKind::TwoWay
            | DatagramKind::Handshake
            | DatagramKind::Announcement
            | DatagramKind::Insecure
            | DatagramKind::Path
            | DatagramKind::LongPath => return None,
        };
        let (counter, rest) = if first & FULL == 0 {
            let (low, rest) = rest.split_first_chunk()?;
            (Travelled::Low(u16::from_be_bytes(*low)), rest)
        } else {
            let (full, rest) = rest.split_first_chunk()?;
            (Travelled::Full(u64::from_be_bytes(*full)), rest)
        };
        Some((Self { whose, flags: BodyFlags::of(first), counter }, datagram.len() - rest.len()))
    }
}
