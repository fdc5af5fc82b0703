//! TCP segments: which flow of profile 0x0006 one belongs to.

use thinair_wire::time::Instant;

use super::{CompressError, Compressed, Compressor, Kind};
use crate::cid::Cid;
use crate::profile::rfc3095::compress::Refused;
use crate::profile::tcp::{self, Segment};

/// Contexts that are looked at for a base.
const BASES: usize = 16;

impl Compressor<'_> {
    /// The short way of a TCP segment whose flow has settled.
    #[inline(never)]
    pub(super) fn settled_segment(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Option<Compressed> {
        let glance = &tcp::settled::Glance::of(packet)?;
        let hash = self.flows.hash(glance);
        let rooms = &self.tcp;
        let cid = self.flows.find_with(hash, |cid, kind| {
            matches!(kind, Kind::Tcp(_)) && rooms.get(cid.index()).is_some_and(|room| glance.is_of(room))
        })?;
        let room = self.tcp.get_mut(cid.index())?;
        let Kind::Tcp(context) = self.flows.kind(cid) else { return None };
        let compressed = context.compress_settled(now, glance, room, cid, &self.config, out)?;
        self.flows.touch(cid);
        Some(compressed)
    }

    /// Profile 0x0006; `None` if the packet goes by another one.
    #[inline(never)]
    pub(super) fn segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let hash = self.flows.hash(segment);
        let (flows, rooms) = (&self.flows, &self.tcp);
        let found = flows.find_with(hash, |cid, kind| {
            let room = rooms.get(cid.index()).filter(|_| matches!(kind, Kind::Tcp(_)));
            room.is_some_and(|room| tcp::compress::Context::is_flow_of(room, segment))
        });
        let cid = match found {
            Some(cid) => cid,
            None if self.flows.is_rejected(hash, now) || !segment.is_restorable() => return None,
            None => {
                let next = self.flows.next().filter(|cid| cid.index() < self.tcp.len())?;
                let msn = self.next_random() as u16;
                let base = self.find_base(segment).filter(|base| *base != next);
                let cid = self.flows.claim(hash).filter(|cid| *cid == next)?;
                self.release(cid);
                let reused = matches!(self.flows.kind(cid), Kind::Tcp(_));
                let room = self.tcp.get_mut(cid.index())?;
                let context = tcp::compress::Context::new(room, reused, base, msn, now, &self.config);
                self.flows.set(cid, Kind::Tcp(context));
                cid
            }
        };
        self.flows.touch(cid);
        let base = self.base_of(cid);
        let room = self.tcp.get_mut(cid.index())?;
        let Kind::Tcp(context) = self.flows.kind(cid) else { return None };
        match context.compress(now, segment, room, base.as_ref(), cid, &self.config, out) {
            Ok(compressed) => Some(Ok(compressed)),
            Err(Refused::NoRoom) => Some(Err(CompressError::OutputTooSmall { have: out.len() })),
            Err(Refused::ByThisPacket) => None,
        }
    }

    /// A context from which that of a new flow can be replicated (RFC 4164, section 3.3.3.1): of those that were used last,
    /// the newest one that suits.
    fn find_base(&self, segment: &Segment<'_>) -> Option<Cid> {
        let suits = |(cid, kind): &(Cid, &Kind)| {
            matches!(kind, Kind::Tcp(context) if context.is_base())
                && self.tcp.get(cid.index()).is_some_and(|room| segment.suits(room))
        };
        self.flows.latest().take(BASES).find(suits).map(|(cid, _)| cid)
    }

    /// The base that the next packet of a flow may name, as it is now.
    fn base_of(&mut self, cid: Cid) -> Option<tcp::Base> {
        let Kind::Tcp(context) = self.flows.kind(cid) else { return None };
        let base = context.base()?;
        let is_base = matches!(self.flows.kind(base), Kind::Tcp(context) if context.is_base());
        self.tcp.get(base.index()).filter(|_| is_base).map(|room| tcp::Base { cid: base, room: *room })
    }

    /// A base that the decompressor could not use: it is none until it is acknowledged again (RFC 4164, section 3.3.3.4).
    pub(super) fn give_up_base(&mut self, base: Cid) {
        if let Kind::Tcp(context) = self.flows.kind(base) {
            context.is_no_base();
        }
    }
}
