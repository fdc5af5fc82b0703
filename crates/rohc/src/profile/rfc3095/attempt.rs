//! Search for the SN with which a header can be rebuilt: the one that it seems to have, and those of the repairs. RFC 3095,
//! sections 5.3.2.2.2 to 5.3.2.2.5.

use thinair_wire::coder::Reader;
use thinair_wire::crc::Check;
use thinair_wire::header::protocol;
use thinair_wire::lsb::{self, Shift};

use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::doubt::{By, NEAR, Reference};
use super::header::{self, ExtensionLists, Layout};
use super::list_state::ah_sn;
use super::proof::Twins;
use super::rtp::RtpFields;
use super::timestamp;
use super::{IP_ID, IP_ID2, IpFields, LISTS, Rfc3095Fields, SN, TS, has_own_sn, has_rtp, sn_plus, sn_shift};
use crate::decompressor::Failure;
use crate::flow::arrival::Moment;
use crate::flow::search::SumEquation;
use crate::id::{Format, ProfileId};
use crate::work;

/// Largest number of packets by which a packet may be late if its SN is its own, which may take any step within the
/// interpretation interval (RFC 3095, section 4.5.1). With 14 bits, a packet that seems to be late by thousands is ahead.
const LATEST: u32 = 512;

/// Search for the SN of one header, which is rebuilt with one candidate after the other.
pub(super) struct CandidateSearch<'a, 'p: 'i, 'i> {
    /// Time of arrival.
    pub(super) now: Moment,
    pub(super) format: Format,
    pub(super) context: &'a Rfc3095ReceiverContext,
    pub(super) reader: &'a Reader<'p>,
    pub(super) payload: usize,
    pub(super) check: Check,
    pub(super) crc: u8,
    /// The CRC-STATIC octets are certainly unchanged.
    pub(super) plain: bool,
    /// A packet of the CID has failed, or was held back, before.
    pub(super) has_failed: bool,
    pub(super) x: &'a mut Rfc3095Fields<'p>,
    pub(super) extensions: &'a mut ExtensionLists<'i>,
    /// Headers with the last candidate.
    pub(super) out: &'a mut [u8],
    pub(super) passed: &'a mut VerifiedHeader,
}

/// Properties of a header that has passed its CRC.
#[derive(Default)]
pub(super) struct VerifiedHeader {
    pub(super) layout: Layout,
    /// States of CRC-3 and CRC-7 after the CRC-STATIC octets: candidates have the same.
    pub(super) crc_static: [u8; 2],
    has_static: bool,
    /// The headers have been written with one candidate: others differ in fields that follow from the SN.
    is_written: bool,
    /// There are extension headers, or the packet removes the last ones.
    pub(super) has_lists: bool,
    pub(super) ah_sn: [Option<u32>; LISTS],
    /// The SN was chosen among several candidates, and proved (`proof`).
    pub(super) proved: bool,
    /// Largest distance from the last packet among several that came into question.
    pub(super) farthest: u32,
    /// The bits of the SN are those of a late packet, and too little time has passed for one that is ahead.
    pub(super) looks_late: bool,
    /// SNs with an equal checksum that the packet excludes.
    pub(super) twins: Option<Twins>,
    pub(super) by: By,
}

impl CandidateSearch<'_, '_, '_> {
    /// Decodes with the references in the order of RFC 3095, section 5.3.2.2.3; after a pause or a loss, with all possible SNs
    /// (section 5.3.2.2.4).
    #[inline]
    pub(super) fn find(&mut self) -> Result<(), Failure> {
        let context = self.context;
        if self.misses_ip_id() {
            return Err(Failure::Ambiguous(self.format));
        }
        let (bits, k) = self.reader.collected(SN);
        let sn = self.decode_sn(bits, k, context.sn);
        if self.is_open(sn, k) {
            return self.by_proof(sn);
        }
        if self.is_counted(sn) {
            let is_right = self.with(None, sn)?;
            // An SN that the compressor does not generate may take any step.
            if is_right || !has_own_sn(self.x.profile) {
                return if is_right { Ok(()) } else { Err(Failure::Crc(self.format)) };
            }
        }
        if self.is_far_ahead(sn, k) {
            // RFC 4224: on a channel that reorders or duplicates, a packet that is late by `d` looks like one that is ahead
            // by `2^k - d`. A packet that is really that far ahead follows a loss, and therefore a pause, where the clock can tell.
            // If it could be late nevertheless, it is not delivered.
            let ahead = context.ahead(sn, context.sn) as u32;
            self.passed.looks_late =
                !context.arrivals.is_without_clock(self.now) && !self.is_behind(ahead / 2);
            let late = self.sn_plus(sn, (1_u32 << k).wrapping_neg());
            // An SN that the compressor does not generate may take such a step by itself.
            let steps = has_own_sn(self.x.profile);
            if let Some(sn2) = self.in_leap(sn) {
                let is_ahead = !self.passed.looks_late || steps && !self.verify_late(late)?;
                let found = self.by_either(is_ahead.then_some(sn), sn2);
                if found.is_err() && self.verify_late(late)? {
                    self.passed.by = By::Late;
                    return Ok(());
                }
                return found;
            }
            // If no field depends on the SN, both are right, or none.
            let holds_sn = self.holds_sn();
            let fits_ahead = holds_sn && self.verify(sn)?;
            let is_ahead = if self.passed.looks_late {
                fits_ahead && (self.has_sum() || steps)
            } else {
                fits_ahead || !holds_sn
            };
            let is_late = self.verify_late(late)?;
            if is_late && !is_ahead && !fits_ahead {
                if !self.passed.looks_late && self.misses_bits_of_ip_id(ahead) {
                    return Err(Failure::Ambiguous(self.format));
                }
                self.passed.by = By::Late;
                return Ok(());
            }
            let is_doubtful = is_late && !context.arrivals.has_held_back(self.now);
            if holds_sn && (is_doubtful || !is_ahead && self.passed.looks_late) {
                return Err(Failure::Ambiguous(self.format));
            }
        } else if let Some(sn2) = self.doubtful(sn) {
            return self.by_either(Some(sn), sn2);
        }
        if self.with(None, sn)? {
            return Ok(());
        }
        // RFC 3095, section 5.3.2.2.5: the reference may have been updated wrongly.
        let sn2 = match self.in_leap(sn) {
            None if context.doubt.is_open() => self.behind_before().filter(|&sn2| sn2 == sn),
            sn2 => sn2,
        };
        let Some(sn2) = sn2 else { return Err(Failure::Crc(self.format)) };
        if !self.with(Some(&context.before()), sn2)? {
            return Err(Failure::Crc(self.format));
        }
        self.passed.by = self.by_before(Some(sn), sn2);
        Ok(())
    }

    /// True if a header is right with that SN and ref 0: by its CRC, and by its checksum if that proves the SN.
    pub(super) fn verify(&mut self, sn: u32) -> Result<bool, Failure> {
        let is_right = self.with(None, sn)? || self.reader.crc_read().is_none();
        Ok(is_right
            && (!self.has_sum() || self.passed.layout.has_right_sum(self.out, self.reader.remaining())))
    }

    /// True if a header is right with that SN, and late.
    pub(super) fn verify_late(&mut self, sn: u32) -> Result<bool, Failure> {
        let context = self.context;
        // A packet that is counted is not late.
        let is_counted = self.is_counted(self.sn_plus(sn, 1 << self.reader.collected(SN).1));
        let may_be_late = !is_counted && context.is_late(context.ahead(sn, context.sn));
        Ok(may_be_late && self.verify(sn)?)
    }

    /// Returns the SN by ref -1, unless it is in the far half of its interval.
    fn behind_before(&self) -> Option<u32> {
        let (bits, k) = self.reader.collected(SN);
        let before = self.context.before().sn;
        let sn = self.decode_sn(bits, k, before);
        (k >= u16::BITS || self.context.ahead(sn, before) < 1 << k.saturating_sub(1)).then_some(sn)
    }

    /// Returns the SN by ref -1 if the update in doubt has leapt over it, and it differs from `sn`.
    fn in_leap(&self, sn: u32) -> Option<u32> {
        let sn2 = self.behind_before().filter(|&sn2| sn2 != sn && self.context.has_leapt_over(sn2));
        sn2.filter(|_| self.holds_sn())
    }

    /// Returns the SN by ref -1 if it is worth a trial although that by ref 0 is not too far ahead.
    #[inline]
    fn doubtful(&self, sn: u32) -> Option<u32> {
        let doubt = &self.context.doubt;
        if !doubt.is_open() {
            return None;
        }
        let is_doubtful = doubt.suspect || self.reader.collected(IP_ID).1 | self.reader.collected(TS).1 > 0;
        self.in_leap(sn).or_else(|| self.behind_before().filter(|_| is_doubtful))
    }

    /// True if the packet carries all fields in which the references differ.
    fn is_determined(&self) -> bool {
        self.context.determines(self.reader.collected(IP_ID).1, self.reader.collected(TS).1)
    }

    /// Tries both references: ref 0 if its `sn` is worth a trial, and ref -1.
    #[cold]
    fn by_either(&mut self, sn: Option<u32>, sn2: u32) -> Result<(), Failure> {
        let context = self.context;
        let before = &context.before();
        let by_before = self.with(Some(before), sn2)?.then(|| self.context.reference(self.x));
        if let Some(sn) = sn
            && self.with(None, sn)?
        {
            let by_newest = self.context.reference(self.x);
            match by_before {
                Some(_) if sn2 != sn => {
                    // Two leaps in a row, or one that did not happen. Since it is unknown which, the packet is not
                    // delivered.
                    self.with(Some(before), sn2)?;
                    self.passed.by = By::Before { suspect: false, deliver: false };
                    return Ok(());
                }
                Some(by_before) if by_before != by_newest => {
                    if !self.is_determined() {
                        // Without damage, CRC-3 also fits one header in eight with ref -1: no reason to hold it back.
                        let suspect = context.doubt.suspect;
                        return if suspect { Err(Failure::Ambiguous(self.format)) } else { Ok(()) };
                    }
                    // On a channel that damages packets, fields that the packet carries show which reference it is near, unless its
                    // IP-IDs move by themselves. On others ref 0 is right.
                    if !self.has_failed
                        || context.movement.is_likely_in(1)
                        || by_newest.moved_from(&context.newest()) <= by_before.moved_from(before)
                    {
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
        }
        if by_before.is_some() {
            self.with(Some(before), sn2)?;
            self.passed.by = self.by_before(sn, sn2);
            return Ok(());
        }
        Err(if sn.is_some() { Failure::Crc(self.format) } else { Failure::Ambiguous(self.format) })
    }

    /// Returns the conclusion for a header that is right only with ref -1 and `sn2`; `sn` would be that of ref 0.
    fn by_before(&self, sn: Option<u32>, sn2: u32) -> By {
        let (doubt, before) = (&self.context.doubt, &self.context.before());
        let is_same_sn = sn == Some(sn2);
        let is_explicit =
            self.is_determined() && self.context.reference(self.x).moved_from(before) < (false, NEAR);
        if self.check != Check::Crc3 || is_same_sn && (doubt.suspect || is_explicit) {
            return By::Repair;
        }
        By::Before { suspect: is_same_sn, deliver: !is_same_sn }
    }

    /// Returns `sn + steps`, in the width of the SN.
    #[inline]
    pub(super) fn sn_plus(&self, sn: u32, steps: u32) -> u32 {
        sn_plus(self.context.profile, sn, steps)
    }

    /// Returns the SN for `k` bits, relative to a reference.
    #[inline]
    pub(super) fn decode_sn(&self, bits: u32, k: u32, reference: u32) -> u32 {
        decode_sn(self.context.profile, bits, k, reference)
    }

    /// True if an SN is in the far half of its interval.
    #[inline]
    fn is_far_ahead(&self, sn: u32, k: u32) -> bool {
        let ahead = || self.context.ahead(sn, self.context.sn);
        let is_far = |ahead: i32| {
            let is_own = has_own_sn(self.context.profile);
            ahead >= 1 << (k - 1) && (!is_own || ahead.unsigned_abs() + LATEST >= 1 << k)
        };
        k > 0 && k < u16::BITS && is_far(ahead())
    }

    /// True if that many packets may have passed since the last verified packet, by the clock.
    pub(super) fn is_behind(&self, packets: u32) -> bool {
        self.context.arrivals.is_behind(self.now, packets.into())
    }

    /// True if the header depends on the SN. If it does not, late or not makes no difference.
    #[inline]
    pub(super) fn holds_sn(&self) -> bool {
        has_own_sn(self.x.profile)
            || (0..self.x.base_ips()).any(|i| self.x.ips[i].holds_ip_id() && !self.x.ips[i].sid)
            || self.context.lists.iter().any(|list| !list.current.is_empty())
    }

    /// Rebuilds the header with that SN and a reference (default: ref 0). False if its CRC does not match.
    #[inline]
    pub(super) fn with(&mut self, reference: Option<&Reference>, sn: u32) -> Result<bool, Failure> {
        self.rebuild(reference, sn)?;
        let layout = &self.passed.layout;
        let header = self.out.get(..layout.len).unwrap_or_default();
        if !self.passed.has_static {
            let cached = self.context.crc_static.known().filter(|_| self.plain && !self.passed.has_lists);
            self.passed.crc_static = cached.unwrap_or_else(|| {
                [layout.crc_static(Check::Crc3, header), layout.crc_static(Check::Crc7, header)]
            });
            self.passed.has_static = true;
        }
        let state = self.passed.crc_static[usize::from(self.check != Check::Crc3)];
        Ok(layout.crc_dynamic(self.check, state, header) == self.crc)
    }

    /// Rebuilds the header without verifying its CRC.
    #[inline]
    pub(super) fn rebuild(&mut self, reference: Option<&Reference>, sn: u32) -> Result<(), Failure> {
        self.x.sn = sn;
        self.resolve_ip_ids(reference);
        self.x.rtp.ts = self.timestamp(reference, sn)?;
        self.passed.has_lists =
            !self.extensions.is_empty() || self.x.extra.iter().any(|extra| extra.ipx || extra.has_list);
        if self.passed.has_lists {
            self.passed.ah_sn = self.resolve_ah();
        }
        work::note_candidate();
        if self.passed.is_written {
            header::renumber(&self.x.chain(), self.extensions, &self.passed.layout, self.out);
            return Ok(());
        }
        self.passed.layout = header::rebuild(&self.x.chain(), self.extensions, self.payload, self.out)?;
        self.passed.is_written = true;
        Ok(())
    }

    /// Returns the RTP timestamp with that SN and a reference (default: ref 0); that of the context in other profiles.
    #[inline(always)]
    fn timestamp(&self, reference: Option<&Reference>, sn: u32) -> Result<u32, Failure> {
        let (true, UpperFields::Rtp(rtp)) = (has_rtp(self.x.profile), &self.context.own) else {
            return Ok(self.x.rtp.ts);
        };
        let from = reference.map_or(self.context.sn, |reference| reference.sn);
        let last = reference.map_or(rtp.ts, |reference| reference.ts(rtp.stride));
        let (rtp, ahead) = (&RtpFields { ts: last, ..*rtp }, self.context.ahead(sn, from));
        let arrival = self.context.arrivals.last();
        let ts = timestamp::decode(self.reader, &self.x.rtp_extra, rtp, ahead, arrival, self.now.now);
        ts.ok_or(Failure::Malformed)
    }

    /// Returns the equation of the checksum of UDP or UDP-Lite; `None` if that does not cover all headers from there on.
    pub(super) fn equation(&mut self) -> Result<Option<SumEquation>, Failure> {
        let sn = self.context.sn;
        self.rebuild(None, sn)?;
        let checksum = self.passed.layout.sum(self.out, self.reader.remaining());
        Ok(checksum.map(|checksum| SumEquation::new(!checksum, sn as u16, self.x.rtp.ts)))
    }

    /// True if the checksum is right with that SN, by its equation.
    pub(super) fn solves(&self, equation: Option<SumEquation>, sn: u32) -> Result<bool, Failure> {
        let ts = self.timestamp(None, sn)?;
        Ok(equation.is_some_and(|equation| equation.holds(sn as u16, ts)))
    }

    /// Resolves the IP-IDs. RFC 3095, section 4.5.5.
    #[inline]
    fn resolve_ip_ids(&mut self, reference: Option<&Reference>) {
        let holder = self.x.ip_id_holder();
        for i in 0..self.x.base_ips() {
            if !self.x.ips[i].holds_ip_id() {
                continue;
            }
            let kept = self.context.ips[i];
            if self.x.ips[i].sid {
                self.x.ips[i].header.id = kept.header.id;
                continue;
            }
            let mut bits = (0, 0);
            if holder == Some(i) {
                bits = self.reader.collected(IP_ID);
            }
            // The outer one of two may be in a slot of its own, or in the only one.
            if i == 0 && self.x.ip_count > 1 && bits.1 == 0 {
                bits = self.reader.collected(IP_ID2);
            }
            let ip = &mut self.x.ips[i];
            let counted = IpFields { nbo: ip.nbo, ..kept }.counted_id();
            let offset = counted.wrapping_sub(self.context.sn as u16);
            let offset = reference.map_or(offset, |reference| reference.offsets[i]);
            let offset = lsb::decode(bits.0, bits.1, offset, Shift::Zero);
            ip.count_to(offset.wrapping_add(self.x.sn as u16));
        }
    }

    /// Resolves the sequence number of an AH: the offset from the SN is constant, or the low bits are sent. RFC 4815, sections
    /// 5.8 and 8.9.
    fn resolve_ah(&mut self) -> [Option<u32>; LISTS] {
        let mut sns = [None; LISTS];
        for (i, extra) in self.x.extra.iter().enumerate() {
            let mut sn = self.context.lists[i].ah_sn(self.x.sn);
            if extra.has_ah_sn {
                let mask = if extra.ah_sn_long { 0x7FFF_FFFF } else { 0x7F };
                sn = sn & !mask | extra.ah_sn & mask;
            }
            if let Some(sn) = ah_sn(extra.list()) {
                sns[i] = Some(sn);
                continue;
            }
            for extension in self.extensions.of_mut(i).iter_mut().filter(|e| e.item.kind == protocol::AH) {
                extension.ah = Some((sn, extra.icv));
                sns[i] = Some(sn);
            }
        }
        sns
    }
}

/// Returns the distance of an SN from a reference.
#[inline]
pub(super) fn ahead(profile: ProfileId, sn: u32, reference: u32) -> i32 {
    let distance = sn.wrapping_sub(reference);
    if profile == ProfileId::Esp { distance as i32 } else { i32::from(distance as i16) }
}

/// Returns the SN for `k` bits, relative to a reference.
#[inline]
pub(super) fn decode_sn(profile: ProfileId, bits: u32, k: u32, reference: u32) -> u32 {
    let shift = sn_shift(profile);
    if profile == ProfileId::Esp {
        return lsb::decode(bits, k, reference, shift);
    }
    u32::from(lsb::decode(bits, k, reference as u16, shift))
}
