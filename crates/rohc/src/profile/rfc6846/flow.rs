//! Flows of profile 0x0006, and the interface of the profile.

use thinair_wire::time::Instant;

use super::compress::TcpSenderContext;
use super::{Base, Pattern, TcpRoom, TcpSegment};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, OutgoingPacket, RECENT, Refused};
use crate::flow::sender::{Departure, Flows, Placement, PlacementCid, Sender, Start};
use crate::id::ProfileId;
use crate::storage::Slots;

/// Number of contexts from which on a channel has some for patterns.
const ENOUGH_FOR_PATTERNS: usize = 4;

impl Sender for TcpSenderContext {
    type Packet<'p> = TcpSegment<'p>;
    const PREDICTS: bool = true;

    #[inline]
    fn is_in_use(profiles: ProfileSet, _: &Slots<'_, TcpRoom>) -> bool {
        profiles.has(ProfileId::Tcp)
    }

    #[inline(always)]
    fn compress_unparsed(
        &mut self,
        packet: &[u8],
        rooms: &mut Slots<'_, TcpRoom>,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        self.compress_regular(packet, &mut rooms.get_mut(departure.cid.index())?.0, departure)
    }

    #[inline(always)]
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        _: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<TcpSegment<'p>>,
    ) {
        *recognized = TcpSegment::of(packet.chain);
    }

    #[inline]
    fn is_flow_of(&self, segment: &TcpSegment<'_>, cid: Cid, rooms: &Slots<'_, TcpRoom>) -> bool {
        !self.is_pattern && rooms.get(cid.index()).is_some_and(|room| segment.is_of(&room.0))
    }

    fn may_begin(segment: &TcpSegment<'_>) -> bool {
        segment.is_restorable()
    }

    /// Returns the context of a new connection, or of a pattern that its first packet becomes. A connection gets that of one that is over,
    /// with the lowest CID, since CID 0 takes no octet; or the next one.
    fn place(segment: &TcpSegment<'_>, hash: u32, now: Instant, flows: &Flows<'_, '_, Self>) -> Placement {
        let base = find_base(segment, flows);
        let of_connection = |base: Option<Cid>| {
            let is_over = |cid: &Cid| {
                flows.context(*cid).is_some_and(|context| context.is_over(now)) && Some(*cid) != base
            };
            let over = flows.table.latest().take(RECENT).filter(is_over).min();
            Placement {
                cid: over.map_or(PlacementCid::Next, PlacementCid::Over),
                base,
                ..Placement::of(hash)
            }
        };
        let Some(pattern) = Pattern::of(segment) else { return of_connection(base) };
        let hash = flows.table.hash(&pattern);
        let found = flows.table.find(hash, |cid, context: &Self| {
            context.is_pattern && flows.memory.get(cid.index()).is_some_and(|room| pattern.is_in(room))
        });
        match found {
            Some(cid) if is_pattern_of(cid, &pattern, flows) => of_connection(Some(cid)),
            // It was not acknowledged, or differs: it is sent again.
            Some(cid) => {
                Placement { cid: PlacementCid::Renewed(cid), base, is_pattern: true, ..Placement::of(hash) }
            }
            None if is_third(base, flows) && flows.table.capacity() >= ENOUGH_FOR_PATTERNS => {
                Placement { base, is_pattern: true, ..Placement::of(hash) }
            }
            None => of_connection(base),
        }
    }

    fn has_room(cid: Cid, rooms: &Slots<'_, TcpRoom>) -> bool {
        cid.index() < rooms.len()
    }

    fn new(
        _: &TcpSegment<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        rooms: &mut Slots<'_, TcpRoom>,
    ) -> Self {
        // `has_room` was true.
        Self::new(&mut rooms[start.cid.index()], start, config)
    }

    /// Returns the base that the next packet of the flow may name. RFC 4164, section 3.5.2: "It is not recommended to use
    /// this packet to repair a damaged context."
    #[inline]
    fn base(&self) -> Option<Cid> {
        self.base.filter(|_| self.establishment.is_ir() && !self.establishment.is_refresh())
    }

    fn compress(
        &mut self,
        segment: &TcpSegment<'_>,
        base: Option<&Self>,
        rooms: &mut Slots<'_, TcpRoom>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let base = base.filter(|base| base.is_base()).and_then(|base| {
            let cid = Sender::base(self)?;
            Some(Base { cid, room: *rooms.get(cid.index())?, is_exact: base.is_pattern })
        });
        let state = &mut rooms.get_mut(departure.cid.index()).ok_or(Refused::ByThisPacket)?.0;
        let last = *state;
        let compressed = self.compress_behind(segment, base.as_ref(), &last, state, departure);
        if compressed.is_err() {
            *state = last;
        }
        compressed
    }
}

/// True if a connection with this base follows two others between the same hosts.
fn is_third(base: Option<Cid>, flows: &Flows<'_, '_, TcpSenderContext>) -> bool {
    base.and_then(|base| flows.context(base)).is_some_and(|base| base.is_replica)
}

/// True if a pattern may be the base of a SYN.
fn is_pattern_of(cid: Cid, pattern: &Pattern<'_>, flows: &Flows<'_, '_, TcpSenderContext>) -> bool {
    let is_base = flows.context(cid).is_some_and(TcpSenderContext::is_base);
    is_base && flows.memory.get(cid.index()).is_some_and(|room| pattern.is_like(room))
}

/// Returns a context from which that of a new flow can be replicated (RFC 4164, section 3.3.3.1): the newest suitable one
/// among the recently used ones.
fn find_base(segment: &TcpSegment<'_>, flows: &Flows<'_, '_, TcpSenderContext>) -> Option<Cid> {
    let suits = |cid: &Cid| {
        flows.context(*cid).is_some_and(TcpSenderContext::is_base)
            && flows.memory.get(cid.index()).is_some_and(|room| segment.suits(room))
    };
    flows.table.latest().take(RECENT).find(suits)
}
