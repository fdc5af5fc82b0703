//! Finds the SN where its bits may stand for several: behind a pause, or behind a loss that is longer than they reach. RFC 3095,
//! section 5.3.2.2.4, tries one SN more and holds two packets back; a CRC of 3 bits lets a wrong one through once in eight times,
//! and a wrong one that has passed does so again.
//!
//! Here all that may be meant are tried, and one is believed if
//!
//! - the checksum of UDP or UDP-Lite is right with it, where that covers what follows from the SN: RTP and CoAP; or
//! - no other one passes the CRC, of those that the carrier's count or the clock allow; or
//! - it is the only one near to the pace of a flow that has never paused.
//!
//! Elsewhere nothing is delivered, and feedback asks for more.

use super::attempt::{Attempt, Passed};
use super::decompress::Failure;
use super::doubt::By;
use super::header::ExtensionLists;
use super::{Fields, SN, Upper, has_own_sn, has_rtp, upper};
use crate::arrival::Passed as Clock;
use crate::profile::{Format, ProfileId};
use crate::proof::{Candidates, Fits, Proof};

/// Packets in which compressors repeat what has changed: where fewer are missing, nothing was missed.
const REPEATED: i32 = 4;

impl Attempt<'_, '_> {
    /// True if `k` bits may stand for other SNs than `sn`, by the carrier's count or by the clock, and the header depends on it.
    #[inline]
    pub(super) fn is_open(&self, sn: u32, k: u32, x: &Fields<'_>) -> bool {
        let pace = &self.context.pace;
        if k == 0 || k >= u16::BITS || pace.is_next(self.now, 1 << k) || !self.holds_sn(x) {
            return false;
        }
        match pace.passed(self.now) {
            Clock::AtMost(most) => {
                let ahead = self.context.ahead(sn, self.context.sn);
                // An SN that is not the compressor's may take such a step by itself. What is late is not counted.
                let is_bounded = !has_own_sn(x.profile) && !(1..=i64::from(most)).contains(&i64::from(ahead));
                ahead.max(0) as u32 + (1 << k) <= most || is_bounded
            }
            _ => pace.is_open(self.now, 1 << k),
        }
    }

    /// True if the carrier counts lost packets, and the SN counts packets: then none is late, and none is farther ahead.
    pub(super) fn is_counted(&self, x: &Fields<'_>) -> bool {
        !has_own_sn(x.profile) && matches!(self.context.pace.passed(self.now), Clock::AtMost(_))
    }

    /// True if a right checksum proves the SN.
    fn has_sum(&self, x: &Fields<'_>) -> bool {
        self.context.sums && x.udp.checksum != 0 && is_proved_by_sum(x.profile)
    }

    /// Refuses a header that its CRC, or none, has let through behind a gap, a failure or a packet in doubt, if its
    /// checksum shows that it is wrong.
    #[inline]
    pub(super) fn by_sum(
        &self,
        format: Format,
        x: &Fields<'_>,
        out: &[u8],
        passed: &Passed,
    ) -> Result<(), Failure> {
        let context = self.context;
        let is_awaited = passed.by == By::Newest
            && (1..=REPEATED).contains(&context.ahead(x.sn, context.sn))
            && context.pace.has_not_failed();
        if is_awaited || passed.proved || !self.has_sum(x) {
            return Ok(());
        }
        let is_right = passed.layout.has_right_sum(out, self.reader.remaining());
        if is_right { Ok(()) } else { Err(Failure::Ambiguous(format)) }
    }

    /// Finds the SN among `sn` and those that are whole turns of its bits later.
    #[cold]
    pub(super) fn by_proof<'i, 'p: 'i>(
        &self,
        format: Format,
        sn: u32,
        x: &mut Fields<'p>,
        extensions: &mut ExtensionLists<'i>,
        out: &mut [u8],
        passed: &mut Passed,
    ) -> Result<(), Failure> {
        let context = self.context;
        let turn = 1 << self.reader.collected(SN).1;
        // Whoever comes behind a pause is not late.
        let behind = context.ahead(sn, context.sn) <= 0;
        let sn = if behind { self.sn_plus(sn, turn) } else { sn };
        let first = context.ahead(sn, context.sn) as u32;
        let (has_sum, clock) = (self.has_sum(x), context.pace.passed(self.now));
        if let Clock::AtMost(most) = clock
            && first > most
            && !has_own_sn(x.profile)
        {
            return Err(Failure::Ambiguous(format));
        }
        let candidates = Candidates::new(first, turn, clock, has_sum);
        let mut fits = Fits::default();
        for ahead in candidates.distances() {
            if !self.with(None, self.sn_plus(context.sn, ahead), x, extensions, out, passed)? {
                continue;
            }
            if !has_sum {
                fits.add(ahead, &candidates);
            } else if passed.layout.has_right_sum(out, self.reader.remaining()) {
                passed.proved = true;
                return Ok(());
            }
        }
        let (ahead, proved) = match fits.proof(&candidates, context.pace.is_usual(self.now)) {
            Proof::Nothing => return Err(Failure::Crc(format)),
            Proof::Ambiguous => return Err(Failure::Ambiguous(format)),
            Proof::Meant(ahead, proved) => (ahead, proved),
        };
        self.with(None, self.sn_plus(context.sn, ahead), x, extensions, out, passed)?;
        passed.proved = proved;
        Ok(())
    }
}

/// True if the checksum of UDP or UDP-Lite covers fields that follow from the SN.
pub(super) const fn is_proved_by_sum(profile: ProfileId) -> bool {
    match upper(profile) {
        Upper::Udp => has_rtp(profile) || matches!(profile, ProfileId::Coap2015),
        Upper::UdpLite => has_rtp(profile),
        Upper::None | Upper::Esp => false,
    }
}
