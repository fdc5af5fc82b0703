//! The life of a flow at the compressor: its packets find their context, or get one, which may be that of another flow; they are compressed
//! and charged; and one that its context cannot compress goes another way. The compressor drives, and a profile answers: it is a [`Sender`].

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, HostPairs, OutgoingPacket, Refused,
    SenderContext,
};
use crate::exchange::Linked;
use crate::field::timer::{FarClock, TimerLimits};
use crate::flow::brief::{FirstContext, Shape};
use crate::flow::table::{FlowKey, FlowTable};
use crate::id::ProfileId;
use crate::profile::uncompressed::UncompressedSender;
use crate::profile::{Held, SenderPlace};
use crate::storage::{Shared, SharedRoom};

/// A profile, or the profiles of one RFC, that compresses flows. Its context implements it.
pub(crate) trait Sender: SenderContext + Held<SenderPlace> {
    /// A packet, parsed as far as the profile needs it, in one of its profiles.
    type Packet<'p>: FlowKey;

    /// True if [`compress_unparsed`](Self::compress_unparsed) is worth a call.
    const PREDICTS: bool = false;

    /// True if a channel with these profiles may use it.
    fn is_in_use(profiles: ProfileSet, memory: &Shared<'_, Self::Room>) -> bool;

    /// Compresses a packet that is the expected one of the context used last, before it is parsed. `None`, without a change, for others.
    #[inline]
    fn compress_unparsed<'m>(
        &mut self,
        _packet: &[u8],
        _memory: &mut Shared<'m, Self::Room>,
        _departure: &mut Departure<'_, 'm>,
    ) -> Option<Compressed> {
        None
    }

    /// Compresses a packet that is the expected one of the context used last, without a search for profile and context. `None`, without a
    /// change, for others; [`Departure::is_irregular`] is then set for those of its flow.
    #[inline]
    fn compress_next(
        &mut self,
        _chain: &HeaderChain<'_>,
        _memory: &mut Shared<'_, Self::Room>,
        _departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        None
    }

    /// Sets a packet in the highest profile that restores it; none if it is for other profiles. It is parsed in place, since it is large.
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        flows: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<Self::Packet<'p>>,
    );

    /// Returns the context of the packet's flow, or the hash of a flow that has none. May change the profile of the packet with it.
    #[inline]
    fn find(packet: &mut Self::Packet<'_>, flows: &mut Flows<'_, '_, Self>) -> Result<Cid, u32> {
        flows.find(packet)
    }

    /// Puts the packet into the next lower profile. False if another profile has to compress it.
    fn fall(_packet: &mut Self::Packet<'_>, _obstacle: Obstacle, _flows: &mut Flows<'_, '_, Self>) -> bool {
        false
    }

    /// True if the packet belongs to the flow of the context, which has that CID.
    fn is_flow_of(&self, packet: &Self::Packet<'_>, cid: Cid, memory: &Shared<'_, Self::Room>) -> bool;

    /// True if the flow of a packet has a context, as far as no other packet of it decides.
    fn has_flow(_chain: &HeaderChain<'_>, _flows: &Flows<'_, '_, Self>) -> bool {
        false
    }

    /// True if a flow may begin with the packet.
    fn may_begin(_packet: &Self::Packet<'_>) -> bool {
        true
    }

    /// True if the flow of a packet is known by its ports and addresses alone.
    fn is_of_ports(_packet: &Self::Packet<'_>) -> bool {
        false
    }

    /// True if a flow that has a context of another profile stays there.
    fn yields(_packet: &Self::Packet<'_>) -> bool {
        false
    }

    /// Returns the place of a new flow, by its hash.
    fn place(
        _packet: &Self::Packet<'_>,
        hash: u32,
        _now: Instant,
        _flows: &Flows<'_, '_, Self>,
    ) -> Placement {
        Placement::of(hash)
    }

    /// True if there is memory for a context with that CID.
    fn has_room(_cid: Cid, _memory: &Shared<'_, Self::Room>) -> bool {
        true
    }

    /// Creates the context of a new flow from its first packet.
    fn new(
        packet: &Self::Packet<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        memory: &mut Shared<'_, Self::Room>,
    ) -> Self;

    /// Context that the next packet of this one refers to (RFC 4164).
    #[inline]
    fn base(&self) -> Option<Cid> {
        None
    }

    /// Compresses a packet of the flow; `base` is the context that [`base`](Self::base) names. If it is refused, the next packet carries
    /// everything that this one had to.
    fn compress<'m>(
        &mut self,
        packet: &Self::Packet<'_>,
        base: Option<&Self>,
        memory: &mut Shared<'m, Self::Room>,
        departure: &mut Departure<'_, 'm>,
    ) -> Result<Compressed, Refused>;
}

/// Time, context and buffer of one packet to be sent.
pub(crate) struct Departure<'a, 'm> {
    pub(crate) now: Instant,
    pub(crate) cid: Cid,
    /// Its group of packets, modulo 256.
    pub(crate) group: u8,
    pub(crate) config: &'a CompressorConfig,
    pub(crate) clock: &'a FarClock,
    /// The packet belongs to the flow of the packet before, and is not the expected one.
    pub(crate) is_irregular: bool,
    /// Messages of both directions, at an endpoint.
    pub(crate) linked: Option<Linked<'a, 'm>>,
    pub(crate) out: &'a mut [u8],
}

impl Departure<'_, '_> {
    /// Limits of a timer for timestamps, if one may be used.
    #[inline]
    pub(crate) fn timer(&self) -> Option<TimerLimits> {
        self.clock.limits(self.config)
    }
}

/// The flows of a compressor, as a profile sees them.
pub(crate) struct Flows<'a, 'm, S: Sender> {
    pub(crate) table: &'a mut FlowTable<'m>,
    pub(crate) memory: &'a mut Shared<'m, S::Room>,
    pub(crate) config: &'a CompressorConfig,
    pub(crate) clock: &'a FarClock,
}

impl<S: Sender> Flows<'_, '_, S> {
    /// Returns the context of a packet's flow, or the hash of a flow that has none.
    #[inline]
    pub(crate) fn find(&self, packet: &S::Packet<'_>) -> Result<Cid, u32> {
        self.table.find_flow(packet, |cid, context: &S| context.is_flow_of(packet, cid, self.memory))
    }

    /// The context of a CID, if it is of the profile.
    #[inline]
    pub(crate) fn context(&self, cid: Cid) -> Option<&S> {
        self.table.context(cid)
    }
}

/// Reason a packet is not compressed in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Its flow has no context, and [may not begin](Sender::may_begin) with it, or stays in another profile.
    NoBeginning,
    /// Its flow gets no context for now.
    NotAdmitted,
    /// It is the first packet of a brief flow, for a context of the IP profile or of profile 0x0000.
    Brief,
    /// The flow uses another profile for now: its context was not worth its octets.
    Rests,
    /// The context, which may have been made for this packet, cannot compress it.
    Refused { is_new: bool },
}

/// Place of a new flow.
pub(crate) struct Placement {
    /// Hash by which it is found.
    pub(crate) hash: u32,
    pub(crate) cid: PlacementCid,
    /// Context that it is replicated from, if its CID is another one.
    pub(crate) base: Option<Cid>,
    /// The context is a base for others alone.
    pub(crate) is_pattern: bool,
}

/// CID of a new flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlacementCid {
    /// A free CID, or the least recently used one.
    Next,
    /// The CID of a flow that is over.
    Over(Cid),
    /// The CID of a context of the same flow or pattern, which is replaced.
    Renewed(Cid),
}

impl Placement {
    /// The next place, without a base.
    pub(crate) const fn of(hash: u32) -> Self {
        Self { hash, cid: PlacementCid::Next, base: None, is_pattern: false }
    }
}

/// Values with which a new context starts.
pub(crate) struct Start<'a, S> {
    pub(crate) now: Instant,
    pub(crate) cid: Cid,
    /// The context that had the CID before, if it was of the profile.
    pub(crate) before: Option<&'a S>,
    pub(crate) base: Option<Cid>,
    pub(crate) is_pattern: bool,
    pub(crate) random: &'a mut Random,
}

/// SplitMix64: sequence numbers need to differ, not to be secure.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

type Outcome = Result<Compressed, CompressError>;

impl<'m> Compressor<'m> {
    /// The flows of the profile `S`.
    pub(crate) fn flows_of<S: Sender>(&mut self) -> Flows<'_, 'm, S> {
        let Self { config, flows: table, shared, far_clock, .. } = self;
        Flows { table, memory: S::Room::of_mut(shared), config, clock: far_clock }
    }

    /// Compresses a packet by a profile; `None` if another one has to compress it.
    #[inline]
    pub(crate) fn compress_by<S: Sender>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Outcome> {
        if !S::is_in_use(self.config.channel.profiles(), S::Room::of_mut(&mut self.shared)) {
            return None;
        }
        self.next_or_any::<S>(packet, out)
    }

    #[inline(never)]
    fn next_or_any<S: Sender>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Outcome> {
        if let Some(done) = self.compress_next::<S>(packet, out) {
            return Some(Ok(done));
        }
        self.compress_any::<S>(packet, out)
    }

    /// Compresses a packet that is the expected one of the context used last.
    #[inline(always)]
    pub(crate) fn compress_next<S: Sender>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let OutgoingPacket { now, chain, ref mut is_irregular, .. } = *packet;
        self.compress_expected(now, None, out, |context: &mut S, memory, departure| {
            let done = context.compress_next(chain, memory, departure);
            if done.is_none() {
                *is_irregular = departure.is_irregular;
            }
            done
        })
    }

    /// Compresses a packet that the context used last predicts, before it is parsed. `None`, without a change, for another packet.
    #[inline]
    pub(crate) fn compress_predicted<S: Sender>(
        &mut self,
        now: Instant,
        packet: &[u8],
        linked: Option<Linked<'_, 'm>>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        self.compress_expected(now, linked, out, |context: &mut S, memory, departure| {
            context.compress_unparsed(packet, memory, departure)
        })
    }

    /// Compresses a packet with the context used last, if that is of the profile.
    #[inline(always)]
    fn compress_expected<S: Sender>(
        &mut self,
        now: Instant,
        linked: Option<Linked<'_, 'm>>,
        out: &mut [u8],
        compress: impl FnOnce(&mut S, &mut Shared<'m, S::Room>, &mut Departure<'_, 'm>) -> Option<Compressed>,
    ) -> Option<Compressed> {
        let cid = self.flows.newest_in_use()?;
        let context = self.flows.context_mut::<S>(cid)?;
        let (group, config, clock) = (self.group, &self.config, &self.far_clock);
        let mut departure = Departure { now, cid, group, config, clock, is_irregular: false, linked, out };
        let done = compress(context, S::Room::of_mut(&mut self.shared), &mut departure);
        if let Some(done) = &done {
            self.charge(done);
        }
        done
    }

    /// Compresses a packet with the context of its flow, which may be a new one, in the highest of some profiles; `None` if none of them
    /// can.
    #[inline(never)]
    pub(crate) fn compress_any<S: Sender>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Outcome> {
        let mut recognized = None;
        S::recognize(packet, &mut self.flows_of::<S>(), &mut recognized);
        let recognized = recognized.as_mut()?;
        loop {
            let found = S::find(recognized, &mut self.flows_of::<S>());
            let place = found.or_else(|hash| self.begin::<S>(packet, recognized, hash));
            let obstacle = match place {
                Err(obstacle) => obstacle,
                Ok(cid) => {
                    let base = self.flows.context::<S>(cid).and_then(S::base);
                    let base = base.and_then(|base| self.flows.context::<S>(base).copied());
                    let done = self.compress_with(packet, cid, out, |context: &mut S, memory, departure| {
                        context.compress(recognized, base.as_ref(), memory, departure)
                    });
                    match done {
                        Ok(done) => return Some(Ok(done)),
                        Err(Refused::NoRoom) => {
                            return Some(Err(CompressError::OutputTooSmall { have: out.len() }));
                        }
                        Err(Refused::Rests) => Obstacle::Rests,
                        Err(Refused::ByThisPacket) => Obstacle::Refused { is_new: found.is_err() },
                    }
                }
            };
            if let Some(cid) = packet.owed {
                return Some(self.uncompressed_instead(packet.now, cid, packet.chain.packet(), out));
            }
            if !S::fall(recognized, obstacle, &mut self.flows_of::<S>()) {
                return None;
            }
        }
    }

    /// Compresses a packet with a context of its flow.
    #[inline(always)]
    fn compress_with<C: SenderContext + Held<SenderPlace>>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        cid: Cid,
        out: &mut [u8],
        compress: impl FnOnce(
            &mut C,
            &mut Shared<'m, C::Room>,
            &mut Departure<'_, 'm>,
        ) -> Result<Compressed, Refused>,
    ) -> Result<Compressed, Refused> {
        self.flows.touch(cid);
        if self.flows.rests(cid) {
            return Err(Refused::Rests);
        }
        let context = self.flows.context_mut::<C>(cid).ok_or(Refused::ByThisPacket)?;
        let (group, config, clock) = (self.group, &self.config, &self.far_clock);
        let OutgoingPacket { now, is_irregular, .. } = *packet;
        let linked = packet.linked.take();
        let mut departure = Departure { now, cid, group, config, clock, is_irregular, linked, out };
        let done = compress(context, C::Room::of_mut(&mut self.shared), &mut departure);
        if let Ok(done) = &done
            && context.is_charged()
        {
            self.charge(done);
        }
        done
    }

    /// Begins a flow: admits it, gives it a context, and creates that.
    #[cold]
    fn begin<S: Sender>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        recognized: &S::Packet<'_>,
        hash: u32,
    ) -> Result<Cid, Obstacle> {
        if !S::may_begin(recognized) || S::yields(recognized) && SenderPlace::has_flow(self, packet.chain) {
            return Err(Obstacle::NoBeginning);
        }
        let hosts = self.flows.hosts(packet.chain.packet());
        let is_own = packet.first == FirstContext::Own && S::is_of_ports(recognized);
        let shape = is_own.then(|| Shape::of(packet.chain, hosts)).flatten();
        if let Some(shape) = shape {
            let profiles = self.config.channel.profiles();
            let has_ip = profiles.has(ProfileId::Ip) || profiles.has(ProfileId::IpV2);
            packet.first = self.flows.first_context(packet.now, hash, shape, has_ip);
            if packet.first != FirstContext::Own {
                return Err(Obstacle::Brief);
            }
        }
        let cid = self.place::<S>(packet, recognized, hash, hosts).ok_or(Obstacle::NotAdmitted)?;
        if let Some(shape) = shape {
            self.flows.note_birth(packet.now, hash, shape, cid);
        }
        Ok(cid)
    }

    /// Gives a context to a new flow; `None` if it gets none for now.
    fn place<S: Sender>(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        recognized: &S::Packet<'_>,
        hash: u32,
        hosts: u64,
    ) -> Option<Cid> {
        let now = packet.now;
        let pair = HostPairs::of(hosts);
        let is_shared = packet.first != FirstContext::Own;
        if packet.first == (FirstContext::Shared { may_begin: false }) || !self.admits(now, hash, pair) {
            return None;
        }
        let flows = self.flows_of::<S>();
        let mut placement = S::place(recognized, hash, now, &flows);
        if let (PlacementCid::Next, Some(zero)) = (placement.cid, flows.table.left_zero(is_shared)) {
            placement.cid = PlacementCid::Over(zero);
        }
        let cid = match placement.cid {
            PlacementCid::Next => flows.table.next(pair)?,
            PlacementCid::Over(cid) | PlacementCid::Renewed(cid) => cid,
        };
        if !S::has_room(cid, flows.memory) {
            return None;
        }
        let Placement { base, is_pattern, .. } = placement;
        let base = base.filter(|base| *base != cid);
        if self.take(&placement, cid, pair)? {
            packet.owed = Some(cid);
        }
        let Self { config, flows, shared, random, .. } = self;
        let start = Start { now, cid, before: flows.context::<S>(cid), base, is_pattern, random };
        let context = S::new(recognized, start, config, S::Room::of_mut(shared));
        self.flows.set(cid, context);
        if is_shared {
            self.flows.note_shared(cid);
        }
        Some(cid)
    }

    /// Admits a flow of two hosts without a context. False if it uses another profile for now, since the decompressor has rejected it, or
    /// other flows need the contexts more.
    fn admits(&mut self, now: Instant, hash: u32, pair: u8) -> bool {
        !self.flows.is_rejected(hash, now) && self.flows.admits(hash, pair)
    }

    /// Takes the context of a place for a flow of two hosts. The memory of the flow that had it returns to the channel. True if it had some:
    /// the decompressor keeps its own until another flow uses the CID, and the packet has to be sent with it.
    fn take(&mut self, placement: &Placement, cid: Cid, pair: u8) -> Option<bool> {
        if let PlacementCid::Next | PlacementCid::Over(_) = placement.cid
            && let Some(base) = placement.base.filter(|base| *base != cid)
        {
            self.flows.touch(base);
        }
        match placement.cid {
            PlacementCid::Next => self.flows.claim(cid, placement.hash, pair)?,
            PlacementCid::Over(_) => self.flows.take(cid, placement.hash, pair)?,
            PlacementCid::Renewed(_) => cid,
        };
        Some(self.release(cid))
    }

    /// Compresses a packet that no profile has accepted by profile 0x0000. Its context gets the CID that a brief flow has left.
    pub(crate) fn compress_by_none(
        &mut self,
        packet: &OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Outcome {
        if packet.first != FirstContext::Own
            && self.flows.uncompressed().is_none()
            && let Some(zero) = self.flows.left_zero(true)
            && let Some(cid) = self.flows.take(zero, 0, HostPairs::NONE)
        {
            self.flows.note_shared(cid);
            return self.uncompressed_instead(packet.now, cid, packet.chain.packet(), out);
        }
        self.uncompressed(packet.now, packet.chain.packet(), out)
    }

    /// Sends octets by profile 0x0000, an IP packet or not. Those that no version of IP begins with go as IR packets, for a
    /// Normal packet has to begin like IP (RFC 5795, section 5.4.2).
    pub fn uncompressed(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Outcome {
        match self.flows.uncompressed() {
            Some(cid) => self.uncompressed_by(now, cid, packet, out),
            None => {
                let next = self.flows.next(HostPairs::NONE);
                let cid = next.and_then(|next| self.flows.claim(next, 0, HostPairs::NONE));
                let cid = cid.ok_or(CompressError::NoContexts)?;
                self.uncompressed_instead(now, cid, packet, out)
            }
        }
    }

    /// Sends a packet by profile 0x0000 with the CID of another flow: the first one, or one of which the decompressor still has memory,
    /// and whose new context cannot compress it. With this CID, both ends release the memory.
    #[cold]
    fn uncompressed_instead(&mut self, now: Instant, cid: Cid, packet: &[u8], out: &mut [u8]) -> Outcome {
        self.release(cid);
        self.flows.set(cid, UncompressedSender::new(now, &self.config));
        self.uncompressed_by(now, cid, packet, out)
    }

    fn uncompressed_by(&mut self, now: Instant, cid: Cid, packet: &[u8], out: &mut [u8]) -> Outcome {
        self.flows.touch(cid);
        self.flows.note_without_profile(cid);
        let context = self.flows.context_mut::<UncompressedSender>(cid).ok_or(CompressError::NoContexts)?;
        let too_small = CompressError::OutputTooSmall { have: out.len() };
        context.compress(now, packet, cid, &self.config, out).map_err(|_| too_small)
    }

    /// Charges a packet to the context that has compressed it, and suspends a context that is not worth its octets. A refresh is free,
    /// since the policy asks for it.
    #[inline]
    fn charge(&mut self, done: &Compressed) {
        let is_worth = done.refresh || {
            let is_initialization = done.format.is_initialization();
            self.flows.note_cost(done.cid, done.header_in, done.header_out, is_initialization)
        };
        if !is_worth {
            self.restart(done.cid);
        }
    }
}
