//! TCP segments: which flow of profile 0x0006 one belongs to.

use thinair_wire::time::Instant;

use super::{CompressError, Compressed, Compressor, Kind};
use crate::cid::Cid;
use crate::compressor::Refused;
use crate::profile::rfc6846::{self, Pattern, Segment};

/// Contexts that are looked at for a base, or for one that is over: those that were used last.
const RECENT: usize = 128;

/// Contexts of a channel that has some to spare for patterns.
const ENOUGH_FOR_PATTERNS: usize = 4;

impl Compressor<'_> {
    /// Profile 0x0006; `None` if the packet goes by another one.
    #[inline(never)]
    pub(super) fn segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let hash = self.flows.hash(segment);
        let found = self.find_segment(hash, |context, room| context.is_flow_of(room, segment));
        let cid = match found {
            Some(cid) => cid,
            None if self.flows.is_rejected(hash, now) || !segment.is_restorable() => return None,
            None => self.begin_segment(now, segment, hash)?,
        };
        self.flows.touch(cid);
        if self.flows.rests(cid) {
            return None;
        }
        let base = self.base_of(cid);
        let room = self.tcp.get_mut(cid.index())?;
        let Kind::Tcp(context) = self.flows.kind(cid) else { return None };
        match context.compress(now, segment, room, base.as_ref(), cid, &self.config, out) {
            Ok(compressed) => {
                self.note_cost(&compressed);
                Some(Ok(compressed))
            }
            Err(Refused::NoRoom) => Some(Err(CompressError::OutputTooSmall { have: out.len() })),
            Err(Refused::ByThisPacket) => None,
        }
    }

    /// A context of this profile, by its hash.
    fn find_segment(
        &self,
        hash: u32,
        is_it: impl Fn(&rfc6846::compress::Context, &rfc6846::TcpRoom) -> bool,
    ) -> Option<Cid> {
        self.flows.find_with(hash, |cid, kind| match kind {
            Kind::Tcp(context) => self.tcp.get(cid.index()).is_some_and(|room| is_it(context, room)),
            Kind::Free | Kind::Rejected { .. } | Kind::Uncompressed(_) | Kind::Rfc3095(_) | Kind::Coap(_) => {
                false
            }
        })
    }

    /// A context for a packet that has none: that of its flow, or a pattern that the packet becomes.
    fn begin_segment(&mut self, now: Instant, segment: &Segment<'_>, hash: u32) -> Option<Cid> {
        let pair = self.flows.pair(segment.packet());
        if !self.flows.admits(pair) {
            return None;
        }
        let base = self.find_base(segment);
        let Some(pattern) = Pattern::of(segment) else {
            return self.claim_segment(now, (hash, pair), base, false);
        };
        let pattern_hash = self.flows.hash(&pattern);
        match self.find_segment(pattern_hash, |context, room| context.is_pattern() && pattern.is_in(room)) {
            Some(cid) if self.is_pattern_of(cid, &pattern) => {
                self.claim_segment(now, (hash, pair), Some(cid), false)
            }
            // It was not acknowledged, or says something else: it is said again.
            Some(cid) => {
                let base = base.filter(|base| *base != cid);
                self.set_segment(now, cid, base, true)
            }
            None if self.is_third(base) && self.flows.capacity() >= ENOUGH_FOR_PATTERNS => {
                self.claim_segment(now, (pattern_hash, pair), base, true)
            }
            None => self.claim_segment(now, (hash, pair), base, false),
        }
    }

    /// Whether a connection with this base comes behind two others between the same hosts.
    fn is_third(&self, base: Option<Cid>) -> bool {
        matches!(base.and_then(|base| self.flows.look(base)), Some(Kind::Tcp(context)) if context.is_replica())
    }

    /// Whether a pattern may be the base of a SYN.
    fn is_pattern_of(&self, cid: Cid, pattern: &Pattern<'_>) -> bool {
        let is_base = matches!(self.flows.look(cid), Some(Kind::Tcp(context)) if context.is_base());
        is_base && self.tcp.get(cid.index()).is_some_and(|room| pattern.is_like(room))
    }

    /// Takes a context. For a flow it is that of a connection which is over, of the lowest CID, as that of 0 costs nothing; or the
    /// next one.
    fn claim_segment(
        &mut self,
        now: Instant,
        (hash, pair): (u32, u8),
        base: Option<Cid>,
        is_pattern: bool,
    ) -> Option<Cid> {
        let is_over = |(cid, kind): &(Cid, &Kind)| {
            matches!(kind, Kind::Tcp(context) if context.is_over(now)) && Some(*cid) != base
        };
        let over = || self.flows.latest().take(RECENT).filter(is_over).map(|(cid, _)| cid).min();
        let over = if is_pattern { None } else { over() };
        let next = over.or_else(|| self.flows.next(pair)).filter(|cid| cid.index() < self.tcp.len())?;
        if let Some(base) = base.filter(|base| *base != next) {
            self.flows.touch(base);
        }
        let cid = match over {
            Some(over) => self.flows.take(over, hash, pair)?,
            None => self.flows.claim(hash, pair)?,
        };
        self.set_segment(now, cid, base.filter(|base| *base != next), is_pattern)
    }

    /// Begins a context anew.
    fn set_segment(&mut self, now: Instant, cid: Cid, base: Option<Cid>, is_pattern: bool) -> Option<Cid> {
        let msn = self.next_random() as u16;
        self.release(cid);
        let reused = matches!(self.flows.kind(cid), Kind::Tcp(_));
        let room = self.tcp.get_mut(cid.index())?;
        let context = rfc6846::compress::Context::new(room, reused, base, msn, now, &self.config);
        self.flows.set(cid, Kind::Tcp(if is_pattern { context.pattern() } else { context }));
        Some(cid)
    }

    /// A context from which that of a new flow can be replicated (RFC 4164, section 3.3.3.1): of those that were used last,
    /// the newest one that suits.
    fn find_base(&self, segment: &Segment<'_>) -> Option<Cid> {
        let suits = |(cid, kind): &(Cid, &Kind)| {
            matches!(kind, Kind::Tcp(context) if context.is_base())
                && self.tcp.get(cid.index()).is_some_and(|room| segment.suits(room))
        };
        self.flows.latest().take(RECENT).find(suits).map(|(cid, _)| cid)
    }

    /// The base that the next packet of a flow may name, as it is now.
    fn base_of(&mut self, cid: Cid) -> Option<rfc6846::Base> {
        let Kind::Tcp(context) = self.flows.kind(cid) else { return None };
        let base = context.base()?;
        let Kind::Tcp(context) = self.flows.kind(base) else { return None };
        let (is_base, is_exact) = (context.is_base(), context.is_pattern());
        self.tcp.get(base.index()).filter(|_| is_base).map(|room| rfc6846::Base {
            cid: base,
            room: *room,
            is_exact,
        })
    }

    /// A base that the decompressor could not use: it is none until it is acknowledged again (RFC 4164, section 3.3.3.4). Who has
    /// lost one may have lost all of them.
    pub(super) fn give_up_bases(&mut self, base: Cid) {
        let mut recent = [base; RECENT + 1];
        for (place, (cid, _)) in recent[1..].iter_mut().zip(self.flows.latest()) {
            *place = cid;
        }
        for cid in recent {
            if let Kind::Tcp(context) = self.flows.kind(cid) {
                context.withdraw_as_base();
            }
        }
    }
}
