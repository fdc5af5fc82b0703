//! Choice between two references after an update that may have been wrong. RFC 3095, sections 5.3.2.2.3 and 5.3.2.2.5.
//!
//! CRC-3 accepts one damaged header in eight, and that header moves the context: the SN, or with `UO-1` the offset of the IP-ID
//! or the RTP timestamp. Every later header then seems to be wrong. RFC 3095, section 5.3.2.2.5, replaces a wrong SN by the
//! previous one, ref -1, and allows other algorithms that repair as much. This one differs in that
//!
//! - ref -1 has everything that a packet with CRC-3 can move, and is kept only after an update that did more than increase the SN
//!   by one: other updates cannot have been wrong. It is kept until so many headers were right with ref 0 that chance does not
//!   explain them, so that a second error does not hide the first;
//!
//! - ref 0 is not dropped at the first header that is right only with ref -1, so that the rules also suit a channel that reorders
//!   (RFC 4224), where an overtaken header looks like one after a wrong update. While the SNs of such headers are among those
//!   that the update has leapt over, both references are kept, until ref -1 has caught up;
//!
//! - if the SN is equal with both references, so that an IP-ID offset is wrong, the second header that is right only with ref -1
//!   ends the doubt, or the first if it carries the IP-ID. The dropped reference becomes ref -1, so that the decision can be
//!   reversed.
//!
//! Of three right headers the first two "SHOULD be discarded". Here a header is delivered at once if it is unlikely to be right
//! by chance: with CRC-7, or if its SN is exactly the next one after ref -1. A header that is right with both references, but
//! different, is held back.

use super::attempt::ahead;
use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::rtp::RtpFields;
use super::{BASE_IPS, IpFields, Rfc3095Fields, has_rtp, sn_plus};

/// Number of headers that must be right with a new offset of an IP-ID before it is trusted. Offsets that differ by a few bits may
/// have equal CRC-3 until a carry occurs.
const CONFIRMATIONS: u8 = 16;

/// Number of headers that must be right after a leap of the SN before it is trusted.
const CONFIRMATIONS_OF_LEAP: u8 = 4;

/// Flag in `Doubt::unconfirmed`: lost packets may have changed fields that the packet behind them does not have, such as TS_STRIDE.
const UNSEEN: u8 = 0x80;

/// Number of bits of an IP-ID offset or a timestamp from which on they are evidence if they match the prediction by a reference.
const EXPLICIT: u32 = 5;

/// Largest number of IP-IDs of other flows between two packets that still counts as a match.
pub(super) const NEAR: u16 = 4;

/// Reference for SN, IP-IDs and RTP timestamp of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) sn: u32,
    /// Offsets of the IP-IDs of both IP headers from the SN (RFC 3095, section 4.5.5); 0 if there is none.
    pub(super) offsets: [u16; BASE_IPS],
    /// The timestamp at SN 0, extrapolated by TS_STRIDE; 0 without RTP.
    ts_of_zero: u32,
}

impl Reference {
    pub(super) fn new(sn: u32, ips: &[IpFields], rtp: Option<&RtpFields>) -> Self {
        let mut offsets = [0; BASE_IPS];
        for (offset, ip) in offsets.iter_mut().zip(ips) {
            if ip.holds_ip_id() && !ip.sid {
                *offset = ip.counted_id().wrapping_sub(sn as u16);
            }
        }
        let ts_of_zero = rtp.map_or(0, |rtp| rtp.ts.wrapping_sub(rtp.stride.wrapping_mul(sn)));
        Self { sn, offsets, ts_of_zero }
    }

    /// Returns the timestamp, with the TS_STRIDE of the context.
    pub(super) fn ts(&self, stride: u32) -> u32 {
        self.ts_of_zero.wrapping_add(stride.wrapping_mul(self.sn))
    }

    /// Returns this reference with a timestamp that is `jump` later.
    pub(super) fn with_ts_moved_by(self, jump: u32) -> Self {
        Self { ts_of_zero: self.ts_of_zero.wrapping_add(jump), ..self }
    }

    /// Returns the movement, since reference `from`, of fields that do not follow from the SN: true if the timestamp has jumped,
    /// and the larger number of IP-IDs used by other flows for one of the headers.
    pub(super) fn moved_from(&self, from: &Self) -> (bool, u16) {
        (self.ts_of_zero != from.ts_of_zero, self.offsets_moved_from(from))
    }

    /// Returns the larger number of IP-IDs used by other flows since reference `from`.
    pub(super) fn offsets_moved_from(&self, from: &Self) -> u16 {
        let moved = |i: usize| self.offsets[i].wrapping_sub(from.offsets[i]);
        (0..BASE_IPS).map(moved).max().unwrap_or_default()
    }
}

/// Reference with which a header was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum By {
    /// Ref 0.
    #[default]
    Newest,
    /// Only ref -1; ref 0 is kept.
    Before { suspect: bool, deliver: bool },
    /// Only ref -1, which becomes ref 0.
    Repair,
    /// Ref 0, and the packet is late or a duplicate: it changes nothing.
    Late,
}

/// The reference before an update that is not trusted yet, in little memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    /// SN of ref -1, in 16 bits. In R-mode the SN of the last packet, updating or not.
    pub(super) sn: u16,
    offsets: [u16; BASE_IPS],
    ts_of_zero: [u8; 4],
    /// The SN that the update has leapt to; that of ref -1 without a leap. In R-mode the first SN of the current pattern.
    pub(super) leap: u16,
    /// Number of headers that must still be right before ref 0 is trusted; 0 if it is. Flag [`UNSEEN`].
    unconfirmed: u8,
    /// A header was right only with ref -1.
    pub(super) suspect: bool,
}

impl Doubt {
    /// Returns the doubt about an update after `before`.
    fn behind(before: &Reference, leap: Option<u32>, unconfirmed: u8) -> Self {
        let doubt = Self { leap: leap.unwrap_or(before.sn) as u16, unconfirmed, ..Self::default() };
        doubt.with(before)
    }

    /// Returns the doubt with another ref -1.
    fn with(self, before: &Reference) -> Self {
        let Reference { sn, offsets, ts_of_zero } = *before;
        Self { sn: sn as u16, offsets, ts_of_zero: ts_of_zero.to_be_bytes(), ..self }
    }

    /// True if there is a ref -1.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.unconfirmed > 0
    }

    /// True if fields may have changed unseen.
    #[inline]
    pub(super) fn is_behind_gap(&self) -> bool {
        self.unconfirmed & UNSEEN != 0
    }

    fn is_leap(&self) -> bool {
        self.leap != self.sn
    }

    fn offsets_and_ts(&self) -> ([u16; BASE_IPS], u32) {
        (self.offsets, u32::from_be_bytes(self.ts_of_zero))
    }
}

impl Rfc3095ReceiverContext {
    /// Returns the distance of one SN from another, in the width of the profile.
    #[inline]
    pub(super) fn ahead(&self, sn: u32, from: u32) -> i32 {
        ahead(self.profile, sn, from)
    }

    /// Ref 0.
    pub(super) fn newest(&self) -> Reference {
        let ips = self.ips.get(..usize::from(self.ip_count)).unwrap_or(&self.ips);
        Reference::new(self.sn, ips, self.rtp())
    }

    /// Ref -1.
    pub(super) fn before(&self) -> Reference {
        let behind = i32::from(self.doubt.sn.wrapping_sub(self.sn as u16) as i16);
        let (offsets, ts_of_zero) = self.doubt.offsets_and_ts();
        Reference { sn: sn_plus(self.profile, self.sn, behind as u32), offsets, ts_of_zero }
    }

    /// Updates ref -1 to `reference`; ref 0 is kept.
    pub(super) fn note_before(&mut self, reference: &Reference, suspect: bool) {
        let is_leap = self.doubt.is_leap();
        self.doubt = self.doubt.with(reference);
        self.doubt.suspect |= suspect;
        if !is_leap {
            self.doubt.leap = self.doubt.sn;
        }
    }

    /// Returns the reference after a header.
    pub(super) fn reference(&self, x: &Rfc3095Fields<'_>) -> Reference {
        let rtp = self.rtp().map(|rtp| RtpFields { ts: x.rtp.ts, ..*rtp });
        Reference::new(x.sn, x.base(), rtp.as_ref())
    }

    pub(super) fn rtp(&self) -> Option<&RtpFields> {
        match &self.own {
            UpperFields::Rtp(rtp) if has_rtp(self.profile) => Some(rtp),
            _ => None,
        }
    }

    /// True if the update in doubt has leapt over that SN, or to it: as far as ref 0 shows, no other packet has used it.
    pub(super) fn has_leapt_over(&self, sn: u32) -> bool {
        let distance = |to: u16| to.wrapping_sub(self.doubt.sn) as i16;
        self.doubt.is_open() && (1..=distance(self.doubt.leap)).contains(&distance(sn as u16))
    }

    /// True if a packet with that many bits of an IP-ID and of a timestamp determines all fields in which the references differ,
    /// except the SN.
    pub(super) fn determines(&self, id_bits: u32, ts_bits: u32) -> bool {
        let (newest, before) = (self.newest(), self.before());
        (newest.offsets == before.offsets || id_bits >= EXPLICIT)
            && (newest.ts_of_zero == before.ts_of_zero || ts_bits >= EXPLICIT)
    }

    /// Prepares for an update of ref 0 by a header that was right with it, and has that many bits of an IP-ID and of a timestamp.
    #[inline]
    pub(super) fn note_update(&mut self, x: &Rfc3095Fields<'_>, id_bits: u32, ts_bits: u32) {
        if id_bits | ts_bits == 0 && !self.doubt.is_open() && self.ahead(x.sn, self.sn) == 1 {
            return;
        }
        self.note_surprise(x, id_bits, ts_bits);
    }

    #[inline(never)]
    fn note_surprise(&mut self, x: &Rfc3095Fields<'_>, id_bits: u32, ts_bits: u32) {
        let (newest, next, ahead) = (self.newest(), self.reference(x), self.ahead(x.sn, self.sn));
        let (is_determined, old) = (self.determines(id_bits, ts_bits), self.before());
        let doubt = &mut self.doubt;
        doubt.suspect = false;
        let is_leap = ahead != 1;
        if is_leap || next.moved_from(&newest) != (false, 0) {
            let mut before = newest;
            if doubt.is_open() && !doubt.is_leap() && !is_leap {
                // Unchanged fields are as doubtful as before.
                let same = next.offsets == newest.offsets;
                before.offsets = if same { old.offsets } else { newest.offsets };
                let same = next.ts_of_zero == newest.ts_of_zero;
                before.ts_of_zero = if same { old.ts_of_zero } else { newest.ts_of_zero };
            }
            let unconfirmed = if is_leap { CONFIRMATIONS_OF_LEAP } else { CONFIRMATIONS };
            *doubt = Doubt::behind(&before, is_leap.then_some(x.sn), unconfirmed);
        } else if is_determined && id_bits.max(ts_bits) >= EXPLICIT {
            doubt.unconfirmed = 0;
        } else if doubt.is_open() {
            doubt.unconfirmed -= 1;
            if doubt.unconfirmed == UNSEEN {
                doubt.unconfirmed = 0;
            }
            if !doubt.is_leap() {
                // The fields that do not follow from the SN are in doubt, the SN is not.
                (doubt.sn, doubt.leap) = (newest.sn as u16, newest.sn as u16);
            }
        }
    }

    /// Drops ref -1, because ref 0 comes from a packet with a stronger CRC than CRC-3. That packet may also have changed fields
    /// that are not part of a reference.
    pub(super) fn trust_newest(&mut self) {
        self.doubt = Doubt::behind(&self.newest(), None, 0);
    }

    /// Trusts ref 0 behind lost packets, which may have changed fields that this one does not have.
    pub(super) fn trust_newest_behind_gap(&mut self) {
        self.doubt = Doubt::behind(&self.newest(), None, UNSEEN | CONFIRMATIONS_OF_LEAP);
    }

    /// Prepares for a repair, in which ref 0 becomes the successor of ref -1. Ref -1 becomes the present ref 0, so that the
    /// decision can be reversed.
    pub(super) fn note_repair(&mut self) {
        self.doubt = Doubt::behind(&self.newest(), None, CONFIRMATIONS_OF_LEAP);
    }
}
