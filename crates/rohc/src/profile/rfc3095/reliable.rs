//! R-mode: the secure reference principle at both ends. RFC 3095, section 5.5; its mode transitions, section 5.6.
//!
//! "Only a packet carrying a 7- or 8-bit CRC can update the decompression context and be used as a reference", and for the
//! compressor only acknowledged values are established. This also holds in other modes while a transition is pending, since the
//! mode of the decompressor is then unknown.
//!
//! Values that may be references are kept as the bounds of two spans, see [`Range::add`](thinair_wire::range::Range::add): an
//! acknowledgment of a value of the newer span ends the older one. The size of the state therefore does not depend on the
//! round-trip time.
//!
//! Every profile of the family has R-mode. RTP timestamps follow from the SN if all references lie on one line with the packet;
//! otherwise they are sent. A timer is not used. A change of the presence of the Checksum Coverage is sent in updates until it is
//! acknowledged.

use thinair_wire::serial::Serial;
use thinair_wire::time::Instant;

use super::attempt::CandidateSearch;
use super::decompress;
use super::doubt::By;
use super::late::LATE;
use super::mode::{CompressorMode, ReliableReply};
use super::pending::changes;
use super::{IpFields, IpHeader, IpVersion, Rfc3095Fields, SN, Upper, compress, upper};
use crate::compressor::CompressorConfig;
use crate::decompressor::Failure;
use crate::feedback::{AckType, Feedback};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;

/// Age of the oldest reference, in packets, from which on a newer one is needed: R-0 has 6 bits of SN, half of which is for the
/// round trip.
const STALE: u32 = 32;

/// Number of packets from one update to the next while acknowledgments are awaited, if only the SN changes.
const SPACING: u32 = 4;

/// Age from which on references are useless: no compressed format has that many bits of SN.
const TOO_OLD: u32 = 1 << 14;

/// Distance by which an SN that the compressor does not generate must be behind the newest reference to be a restart. A smaller
/// step is a late packet.
const ANEW: u32 = 1 << 8;

/// Number of packets of a sequence of updates that are all acknowledged; of others, one in this many is: N and k of RFC 3095,
/// section 5.5.2.2.
const ACKED: u8 = 2;
const SPARSE: u8 = 4;

/// True if mode 0 in a packet declines a transition: RFC 3843, section 3.4, and RFC 4019, section 5.6.
fn declines(profile: ProfileId) -> bool {
    matches!(profile, ProfileId::Ip | ProfileId::RtpUdpLite | ProfileId::UdpLite)
}

/// True if a format has the mode; with RTP, while a transition is pending.
fn has_mode(format: Format) -> bool {
    matches!(format, Format::Uor2Ext3 | Format::Uor2IdExt3 | Format::Uor2TsExt3)
}

impl compress::Rfc3095SenderContext {
    /// Handles the mode in protected feedback. RFC 4815, section 3.2: "The compressor MUST ignore feedback information related to
    /// mode transition if the feedback is not protected by the CRC option."
    pub(super) fn note_mode(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        sn: Option<u16>,
        config: &CompressorConfig,
    ) {
        let (Some(mode), true) = (feedback.mode, feedback.protected) else { return };
        let answer = match (config.reliable, declines(self.profile)) {
            (true, _) => ReliableReply::Accept,
            (false, true) => ReliableReply::Decline,
            (false, false) => ReliableReply::Ignore,
        };
        let before = self.mode;
        let acknowledges = feedback.ack == AckType::Ack
            && before.is_announced()
            && sn.is_some_and(|sn| !sn.is_before(self.state_since));
        if acknowledges {
            self.mode.on_acknowledged(mode, answer);
        } else {
            self.mode.on_request(mode, answer);
        }
        if self.mode == before {
            return;
        }
        self.established = false;
        if self.mode.mode() != before.mode() {
            self.establishment.restart_refresh(now);
        }
        // Lists have gen_ids in U- and O-mode, and SNs in R-mode.
        self.lists.iter_mut().for_each(|list| list.forget_reference());
        if self.mode.is_secure() && !before.is_secure() {
            self.sns.hold();
            self.repeat_counted(config);
        }
    }

    /// Repeats, until they are acknowledged, fields that were sent often enough for U- and O-mode, but decide on the reading of
    /// headers, where no CRC would detect their loss. With `established_by_ir`, the CRC-7 of the packets that announce the mode
    /// is proof enough, except for the Checksum Coverage, which it does not cover.
    fn repeat_counted(&mut self, config: &CompressorConfig) {
        let next = self.since(self.next_sn());
        if upper(self.profile) == Upper::UdpLite {
            self.coverage.repeat(config.repetitions);
        }
        self.pending_since = next;
        if config.interop.established_by_ir {
            return;
        }
        for (pending, ip) in self.pending.iter_mut().zip(&self.ips).take(usize::from(self.ip_count)) {
            if ip.header.version == IpVersion::V4 {
                pending.require(changes::FLAGS, config.repetitions.max(1));
            }
        }
        if let Some(rtp) = self.own.rtp_mut() {
            rtp.timestamps.repeat(next, config.repetitions, config.window);
        }
    }

    /// Returns the mode of a new context on a CID that had one before (RFC 4815, section 7.2).
    pub(crate) fn mode_after(old: CompressorMode, same_profile: bool) -> CompressorMode {
        match (same_profile, old.is_secure()) {
            (true, _) => old,
            (false, false) => CompressorMode::default(),
            // "Not using packets of types beginning with 00 or 10 before it is highly confident".
            (false, true) => CompressorMode::uncertain(),
        }
    }

    /// True if the mode allows a format for a packet.
    pub(super) fn is_allowed_by_mode(&self, format: Format, update_due: bool) -> bool {
        if self.mode.is_pending() {
            // RFC 3095, section 5.6.1: formats that are common to all modes, and carry the mode.
            return has_mode(format);
        }
        format.updates() || !update_due
    }

    /// True if a packet in R-mode should become a reference. RFC 3095, section 5.5.1.2: to shrink windows, or for a transition
    /// "to higher compression efficiency".
    pub(super) fn is_update_due(&self, sn: u16, has_more: bool) -> bool {
        let Some((oldest, newest)) = self.sns.bounds() else { return true };
        (has_more || sn.since(oldest) >= STALE) && sn.since(newest) >= SPACING
    }

    /// Returns the SN from which on an acknowledgment confirms the fields of the packet with SN `sn`. An SN that the compressor
    /// does not generate may have been larger before.
    #[inline]
    pub(super) fn since(&self, sn: u32) -> u16 {
        if self.mode.is_secure() { self.since_secure(sn as u16) } else { sn as u16 }
    }

    #[inline(never)]
    fn since_secure(&self, sn: u16) -> u16 {
        let newest = self.sns.bounds().map(|(_, newest)| newest).filter(|newest| newest.since(sn) < ANEW);
        newest.map_or(sn, |newest| newest.plus(1))
    }

    /// Records an SN that goes back, and is not generated by the compressor. Values that were sent with much later SNs are no
    /// longer references.
    pub(super) fn note_old_sn(&mut self, sn: u32, repetitions: u8) {
        if !self.mode.is_secure() {
            return;
        }
        let Some((_, newest)) = self.sns.bounds() else { return };
        if (ANEW..1 << 15).contains(&newest.since(sn as u16)) {
            self.start_anew(sn as u16, repetitions);
            self.require_dynamic(sn, repetitions);
        }
    }

    /// Records a packet that the decompressor may use as its reference.
    pub(super) fn add_references(&mut self, x: &Rfc3095Fields<'_>, config: &CompressorConfig) {
        let sn = x.sn as u16;
        let is_old = self.sns.bounds().is_some_and(|(oldest, _)| sn.since(oldest) >= TOO_OLD);
        if is_old && !self.establishment.is_established() {
            // Every packet carries everything, and was not acknowledged for so long that SNs would soon be ambiguous.
            self.start_anew(sn, config.repetitions);
        }
        let opens = self.sns.add(sn);
        for (offsets, ip) in self.offsets.iter_mut().zip(&x.ips).take(x.base_ips()) {
            if ip.header.version == IpVersion::V4 {
                offsets.add(ip.counted_id().wrapping_sub(sn), opens);
            }
        }
        if let Some(rtp) = self.own.rtp_mut() {
            rtp.timestamps.add_reference(x.rtp.ts, opens);
        }
    }

    /// Sends everything from `sn` on until it is acknowledged; then nothing older is a reference.
    pub(super) fn start_anew(&mut self, sn: u16, repetitions: u8) {
        self.forget_references(sn);
        self.state_since = sn;
        self.pending_since = sn;
        self.lists.iter_mut().for_each(|list| list.repeat(sn, repetitions));
    }

    /// Drops references before that SN.
    pub(super) fn forget_references(&mut self, sn: u16) {
        self.sns.clear();
        self.offsets.iter_mut().for_each(|offsets| offsets.clear());
        if let Some(rtp) = self.own.rtp_mut() {
            rtp.timestamps.forget_references(sn);
        }
    }

    /// Drops the references before an acknowledged one. False if no packet with that SN can be acknowledged: "the ACK is invalid
    /// and MUST be discarded".
    pub(super) fn acknowledge_reference(&mut self, sn: u16) -> bool {
        let confirmed = self.sns.confirm(sn);
        if confirmed == Some(true) {
            self.offsets.iter_mut().for_each(|offsets| offsets.keep_newest());
        }
        if let (Some(rtp), Some(is_of_newest)) = (self.own.rtp_mut(), confirmed) {
            rtp.timestamps.acknowledge_reference(sn, is_of_newest);
        }
        confirmed.is_some()
    }

    /// Records a packet that was sent, with or without the mode.
    pub(super) fn note_mode_sent(&mut self, since: u16, format: Format) {
        if self.mode.is_pending() && self.mode.on_sent(has_mode(format)) {
            self.state_since = since;
        }
    }
}

/// Value of `Rfc3095Fields::mode` if a packet does not carry it.
pub(super) const NO_MODE: u8 = u8::MAX;

impl decompress::Rfc3095ReceiverContext {
    /// Handles a verified packet with or without a mode.
    pub(super) fn note_mode_received(&mut self, bits: u8) {
        if bits != NO_MODE && self.mode.on_mode_received(bits, declines(self.profile)) {
            self.lists.iter_mut().for_each(|list| list.forget_generations());
        }
    }

    /// Records a packet that was rebuilt in R-mode. `doubt` then has its SN if it is the newest, and that of the first packet of
    /// the pattern. True if it does not update the context, since nothing has verified it.
    pub(super) fn only_delivers(&mut self, x: &Rfc3095Fields<'_>, format: Format) -> bool {
        if self.doubt.sn.is_before(x.sn as u16) {
            self.doubt.sn = x.sn as u16;
        }
        let is_new =
            self.note_pattern(x, format) || self.reference(x).moved_from(&self.newest()) != (false, 0);
        let since = (x.sn as u16).since(self.doubt.leap);
        if is_new || since >= TOO_OLD {
            self.doubt.leap = x.sn as u16;
        }
        !format.updates()
    }

    /// Records the pattern of a packet. True if it differs from that of the packet before.
    pub(super) fn note_pattern(&mut self, x: &Rfc3095Fields<'_>, format: Format) -> bool {
        let is_same = self.ips.iter().zip(&x.ips).take(x.base_ips()).all(|(kept, ip)| {
            IpFields { header: IpHeader { id: kept.header.id, ..ip.header }, ..*ip } == *kept
        });
        let has_more = x.rtp_extra.flags
            || !x.rtp_extra.scaled
            || x.extra.iter().any(|extra| extra.has_list || extra.has_ah_sn);
        if !format.updates() || !is_same || has_more {
            // "Each new pattern MUST be treated as a new sequence" (RFC 3095, section 5.5.2.2).
            self.sequence = 0;
        }
        !is_same || has_more
    }

    /// True if the packet begins like an update. In R-mode only these count (RFC 3095, section 5.5.2.1); in other modes they are
    /// IR, IR-DYN or UOR-2 (section 5.3.2.2.3 c).
    #[inline]
    pub(crate) fn is_update(&self, first: u8) -> bool {
        let is_r_0_crc = self.mode.mode() == Mode::Reliable && first & 0b1100_0000 == 0b0100_0000;
        first & 0b1110_0000 == 0b1100_0000 || first >= 0b1111_1000 || is_r_0_crc
    }

    /// True if a verified packet is acknowledged. RFC 3095, sections 5.4.2.2, 5.5.2.2 and 5.6.
    pub(crate) fn acknowledges(&mut self, format: Format, wanted: Mode) -> bool {
        self.mode.want(wanted);
        if format.is_type_0_or_1() {
            self.mode.on_type_0_or_1();
        }
        let answers = self.mode.answers(format.updates());
        if self.mode.mode() != Mode::Reliable {
            return answers || format == Format::Ir && self.mode.is_two_way();
        }
        let due = format.updates() && (self.sequence < ACKED || self.sequence.is_multiple_of(SPARSE));
        // Packets after the first ones count in turns.
        self.sequence = if self.sequence == SPARSE - 1 + SPARSE { SPARSE } else { self.sequence + 1 };
        answers || due
    }

    /// Number of bits of SN in feedback for a packet: "equal to or larger than the one in the compressed packet" (RFC 3095,
    /// section 5.5.2.2).
    pub(crate) fn feedback_sn_bits(&self, format: Option<Format>) -> u32 {
        let is_long = |format: Format| !matches!(format, Format::R0Crc | Format::Uor2);
        if self.mode.mode() == Mode::Reliable && format.is_some_and(is_long) { 20 } else { 12 }
    }
}

impl CandidateSearch<'_, '_, '_> {
    /// Decodes with the single reference of R-mode; no repair is attempted (RFC 3095, section 5.5.2.1).
    pub(super) fn find_securely(&mut self) -> Result<(), Failure> {
        let context = self.context;
        let (bits, k) = self.reader.collected(SN);
        let sn = self.decode_sn(bits, k, context.sn);
        // RFC 4224, as in U- and O-mode, but relative to the last packet, since the reference is older.
        let ahead = (sn as u16).since(context.doubt.sn);
        self.passed.looks_late =
            k > 0 && k < u16::BITS && ahead >= 1 << (k - 1) && ahead < 1 << (u16::BITS - 1);
        self.passed.looks_late &= !self.is_behind(ahead / 2) && !self.is_counted(sn);
        if self.passed.looks_late {
            let late = self.sn_plus(sn, (1_u32 << k).wrapping_neg());
            if ahead + (LATE as u32) < 1 << k {
                return Err(Failure::Ambiguous(self.format));
            }
            let is_right = if self.format.updates() || self.has_sum() {
                self.verify_late(late)?
            } else {
                self.rebuild(None, late)?;
                // Nothing verifies it: it is delivered only if it continues the previous packets.
                let goes_on = context.reference(self.x).moved_from(&context.newest()) == (false, 0);
                goes_on && !context.doubt.is_open() && !(late as u16).is_before(context.doubt.leap)
            };
            self.passed.by = By::Late;
            return if is_right { Ok(()) } else { Err(Failure::Ambiguous(self.format)) };
        }
        if self.format.updates() {
            let right = self.with(None, sn)?;
            return if right { Ok(()) } else { Err(Failure::Crc(self.format)) };
        }
        self.rebuild(None, sn)
    }
}
