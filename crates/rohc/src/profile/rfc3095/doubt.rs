//! Which of two references is believed when an update may have been a wrong one. RFC 3095, sections 5.3.2.2.3 and
//! 5.3.2.2.5.
//!
//! CRC-3 lets one damaged header in eight through, and that header moves the context: the SN, or with `UO-1` the offset
//! of the IP-ID or the RTP timestamp. Every header behind it then seems to be wrong. Section 5.3.2.2.5 undoes a wrong SN with the one before,
//! ref -1, and allows other algorithms that repair as much. This one differs in that
//!
//! - ref -1 is all that a packet with CRC-3 can move, and is kept only behind an update that did more than count on by
//!   one: the others cannot have been wrong. It stays until so many headers were right with ref 0 that chance does not
//!   explain them, so that one more accident does not cover up the first;
//! - ref 0 is not given up at the first header that is right with ref -1 alone, so that the same rules serve a channel
//!   that reorders (RFC 4224), where a header that was overtaken looks like one behind a wrong update. As long as the SNs
//!   of such headers are among those that the update has leapt over, both references are kept side by side, until ref
//!   -1 has caught up;
//! - where the SN is the same with both references, so that an IP-ID offset is wrong, the second header that is right
//!   with ref -1 alone ends the doubt, or the first if it says the IP-ID. The one given up becomes ref -1: the way back
//!   stays open.
//!
//! Of three right headers the first two "SHOULD be discarded". Here one is delivered at once where chance is a poor
//! explanation of its being right: with CRC-7, or if its SN is the very one that is awaited behind ref -1. A header that is right
//! with both references, and different, is held back.

use super::attempt::ahead;
use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::rtp::RtpFields;
use super::{BASE_IPS, IpFields, Rfc3095Fields, has_rtp, sn_plus};

/// Headers that must be right with a new offset of an IP-ID before it is trusted. Offsets that differ by a few bits
/// may have the same CRC-3 until a carry comes.
const CONFIRMATIONS: u8 = 16;

/// Headers that must be right with an SN that has leapt, before it is trusted.
const CONFIRMATIONS_OF_LEAP: u8 = 4;

/// Bits of an IP-ID offset or a timestamp that are evidence of their own if they say about what a reference has told.
const EXPLICIT: u32 = 5;

/// IP-IDs of other flows between two packets that are no surprise, for that matter.
pub(super) const NEAR: u16 = 4;

/// What SN, IP-IDs and RTP timestamp of a header are decoded with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) sn: u32,
    /// Of the IP-IDs of both IP headers from the SN (RFC 3095, section 4.5.5); 0 where there is none.
    pub(super) offsets: [u16; BASE_IPS],
    /// The timestamp of SN 0, as far as TS_STRIDE tells it; 0 where there is no RTP.
    ts_of_zero: u32,
}

impl Reference {
    fn new(sn: u32, ips: &[IpFields], rtp: Option<&RtpFields>) -> Self {
        let mut offsets = [0; BASE_IPS];
        for (offset, ip) in offsets.iter_mut().zip(ips) {
            if ip.holds_ip_id() && !ip.sid {
                *offset = ip.counted_id().wrapping_sub(sn as u16);
            }
        }
        let ts_of_zero = rtp.map_or(0, |rtp| rtp.ts.wrapping_sub(rtp.stride.wrapping_mul(sn)));
        Self { sn, offsets, ts_of_zero }
    }

    /// The timestamp, with the TS_STRIDE of the context.
    pub(super) fn ts(&self, stride: u32) -> u32 {
        self.ts_of_zero.wrapping_add(stride.wrapping_mul(self.sn))
    }

    /// This reference, with a timestamp that is `jump` later.
    pub(super) fn with_ts_moved_by(self, jump: u32) -> Self {
        Self { ts_of_zero: self.ts_of_zero.wrapping_add(jump), ..self }
    }

    /// How far what is told apart from the SN has moved since that reference: whether the timestamp has jumped, and
    /// IP-IDs that have passed without a packet of this flow, most of both headers.
    pub(super) fn moved_from(&self, from: &Self) -> (bool, u16) {
        let moved = |i: usize| self.offsets[i].wrapping_sub(from.offsets[i]);
        (self.ts_of_zero != from.ts_of_zero, (0..BASE_IPS).map(moved).max().unwrap_or_default())
    }
}

/// With which reference a header was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum By {
    /// Ref 0.
    #[default]
    Newest,
    /// Ref -1 alone, and ref 0 stays as it is.
    Before { suspect: bool, deliver: bool },
    /// Ref -1 alone, and it is believed now.
    Repair,
    /// Ref 0, and the packet is late or a duplicate: it changes nothing.
    Late,
}

/// The reference before an update that is not trusted yet, in as little room as it takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    /// Ref -1, its SN in 16 bits. In R-mode the SN of the last packet, updating or not.
    pub(super) sn: u16,
    offsets: [u16; BASE_IPS],
    ts_of_zero: [u8; 4],
    /// The SN that the update has leapt to; that of ref -1 if it has counted on by one. In R-mode the SN since which all packets
    /// have gone on like the one before.
    pub(super) leap: u16,
    /// Headers that must still be right before ref 0 is trusted; 0 if it is.
    unconfirmed: u8,
    /// A header was right with ref -1 only.
    pub(super) suspect: bool,
}

impl Doubt {
    /// Doubt in what has come behind `before`.
    fn behind(before: &Reference, leap: Option<u32>, unconfirmed: u8) -> Self {
        let doubt = Self { leap: leap.unwrap_or(before.sn) as u16, unconfirmed, ..Self::default() };
        doubt.with(before)
    }

    /// The same with another ref -1.
    fn with(self, before: &Reference) -> Self {
        let Reference { sn, offsets, ts_of_zero } = *before;
        Self { sn: sn as u16, offsets, ts_of_zero: ts_of_zero.to_be_bytes(), ..self }
    }

    /// Whether there is a ref -1 to fall back on.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.unconfirmed > 0
    }

    fn is_leap(&self) -> bool {
        self.leap != self.sn
    }

    fn offsets_and_ts(&self) -> ([u16; BASE_IPS], u32) {
        (self.offsets, u32::from_be_bytes(self.ts_of_zero))
    }
}

impl Rfc3095ReceiverContext {
    /// The distance of an SN from another, in the width of the profile.
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

    /// Ref -1 has led to `reference`, and ref 0 stays.
    pub(super) fn note_before(&mut self, reference: &Reference, suspect: bool) {
        let is_leap = self.doubt.is_leap();
        self.doubt = self.doubt.with(reference);
        self.doubt.suspect |= suspect;
        if !is_leap {
            self.doubt.leap = self.doubt.sn;
        }
    }

    /// The reference that a header makes.
    pub(super) fn reference(&self, x: &Rfc3095Fields<'_>) -> Reference {
        let rtp = self.rtp().map(|rtp| RtpFields { ts: x.rtp.ts, ..*rtp });
        Reference::new(x.sn, x.base(), rtp.as_ref())
    }

    fn rtp(&self) -> Option<&RtpFields> {
        match &self.own {
            UpperFields::Rtp(rtp) if has_rtp(self.profile) => Some(rtp),
            _ => None,
        }
    }

    /// Whether the update in doubt has leapt over that SN, or led to it: where no other packet has been as far as
    /// ref 0 knows.
    pub(super) fn has_leapt_over(&self, sn: u32) -> bool {
        let distance = |to: u16| to.wrapping_sub(self.doubt.sn) as i16;
        self.doubt.is_open() && (1..=distance(self.doubt.leap)).contains(&distance(sn as u16))
    }

    /// Whether a packet with so many bits of an IP-ID and of a timestamp tells all in which the references differ, the
    /// SN apart.
    pub(super) fn tells(&self, id_bits: u32, ts_bits: u32) -> bool {
        let (newest, before) = (self.newest(), self.before());
        (newest.offsets == before.offsets || id_bits >= EXPLICIT)
            && (newest.ts_of_zero == before.ts_of_zero || ts_bits >= EXPLICIT)
    }

    /// Ref 0 is about to become what a header makes that was right with it, and said so many bits of an IP-ID and of
    /// a timestamp.
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
        let (is_told, old) = (self.tells(id_bits, ts_bits), self.before());
        let doubt = &mut self.doubt;
        doubt.suspect = false;
        let is_leap = ahead != 1;
        if is_leap || next.moved_from(&newest) != (false, 0) {
            let mut before = newest;
            if doubt.is_open() && !doubt.is_leap() && !is_leap {
                // What is not new now is as doubtful as it was.
                let same = next.offsets == newest.offsets;
                before.offsets = if same { old.offsets } else { newest.offsets };
                let same = next.ts_of_zero == newest.ts_of_zero;
                before.ts_of_zero = if same { old.ts_of_zero } else { newest.ts_of_zero };
            }
            let unconfirmed = if is_leap { CONFIRMATIONS_OF_LEAP } else { CONFIRMATIONS };
            *doubt = Doubt::behind(&before, is_leap.then_some(x.sn), unconfirmed);
        } else if is_told && id_bits.max(ts_bits) >= EXPLICIT {
            doubt.unconfirmed = 0;
        } else if doubt.is_open() {
            doubt.unconfirmed -= 1;
            if !doubt.is_leap() {
                // What is told apart from the SN is in doubt, the SN is not.
                (doubt.sn, doubt.leap) = (newest.sn as u16, newest.sn as u16);
            }
        }
    }

    /// Ref 0 comes from a packet with a stronger CRC than CRC-3. That packet may also have changed what is no part
    /// of a reference, so there is no ref -1 any more.
    pub(super) fn trust_newest(&mut self) {
        self.doubt = Doubt::behind(&self.newest(), None, 0);
    }

    /// Ref 0 is about to be what ref -1 has led to. Should that be wrong, the way back stays open.
    pub(super) fn note_repair(&mut self) {
        self.doubt = Doubt::behind(&self.newest(), None, CONFIRMATIONS_OF_LEAP);
    }
}
