//! The compressor of a channel: IP packets in, ROHC packets out.

mod classify;
mod contexts;
mod flows;
mod messages;
mod outcome;
mod rtp_detection;
mod segments;
mod uncompressed;
mod worth;

use core::time::Duration;

use thinair_wire::header::chain::{HeaderChain, NotIp};
use thinair_wire::time::Instant;
use thinair_wire::window::CAPACITY;

use crate::channel::Channel;
use crate::cid::Cid;
use crate::exchange::Exchanges;
use crate::feedback::{AckType, Feedback, FeedbackError};
use crate::profile::coap::{Base, CoapConfig, Template, Templates};
use crate::profile::rfc3095::compress::Context;
use crate::profile::rfc3095::table::{Block, Pool};
use crate::profile::rfc3095::timer::Link;
#[cfg(feature = "alloc")]
use crate::profile::rfc6846::rooms_for;
use crate::profile::rfc6846::{Segment, TcpRoom};
use crate::profile::{Format, ProfileId};
use crate::refresh::Refresh;
use crate::storage::Slots;

pub(crate) use classify::{Key, Plan};
pub use flows::{CompressorContext, FlowLink};
use flows::{Flows, Kind};
pub(crate) use outcome::Refused;
pub use rtp_detection::{MAX_RTP_PORTS, RtpDetection};
pub(crate) use uncompressed::Uncompressed;

/// How long a flow that was rejected stays uncompressed. RFC 3095, section 5.7.6.4: "for some time".
const REJECTED_FOR: Duration = Duration::from_secs(30);

/// What a compressor is told at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressorConfig {
    /// The channel, as agreed with the decompressor.
    pub channel: Channel,
    /// Refreshes in U-mode. Default: [`Refresh::Budget`] after 16 s, where 5 % of the octets sent pay for it or 128 packets have
    /// passed.
    pub refresh: Refresh,
    /// Refreshes in O-mode, where feedback asks for them: normally [`Refresh::Off`].
    pub refresh_two_way: Refresh,
    /// L: packets that say a change before it is taken for known (optimistic approach), 1 to 255; 0 is taken
    /// for 1.
    pub repetitions: u8,
    /// Values of a W-LSB window, 1 to 16; other values are taken for the nearest. With `window` values, one less
    /// packet in a row may be lost.
    pub window: u8,
    /// Count the last IR packet of a new context twice for the behavior of the IP-ID and for TS_STRIDE, which the second packet
    /// of a flow shows, and do not repeat them with the change to R-mode. The bench of 3GPP TS 25.323, Annex A, needs that:
    /// it takes off 6 octets of a flow of RTP, 9 if its IPv4 Identification begins with 0 and counts, and 3 or 4 octets of
    /// each packet that announces R-mode. Default: false, for these octets buy a packet more that has both: with four
    /// repetitions, three packets lost behind the first cost no other packet. With true, U-mode delivers nothing
    /// then until a refresh, O-mode until a NACK is answered.
    pub established_by_ir: bool,
    /// The carrier counts the packets that it loses, so that the decompressor is given their number ([`Arrival::lost`](crate::Arrival)).
    /// An IP-ID that moves against the SN, which no checksum covers, is then sent as a whole once in 16 packets (profiles of RFC 3095, U-mode
    /// and O-mode): a decompressor that has missed a few packets waits for that. Default: false.
    pub counted: bool,
    /// Send constant IP-IDs by SID in every profile, not only where it is defined (RFC 3843, section 3.3). Not
    /// standard, but some decompressors take it.
    pub sid_everywhere: bool,
    /// Go to R-mode where the decompressor asks for it, in every profile of RFC 3095, RFC 3843 and RFC 4019, and in 0x0080.
    /// A request that is not followed is declined where the profile has a word for that (RFC 3843, section 3.4), and passed
    /// over elsewhere.
    pub reliable: bool,
    /// Which datagrams go by profiles 0x0001 and 0x0007.
    pub rtp: RtpDetection,
    /// Tell timestamps by a timer (RFC 3095, section 4.5.4), once the decompressor has told the resolution of its clock
    /// by a CLOCK option. The value is Max_Jitter_CD, the most by which the delay between the two may vary; a packet
    /// that varies more is decompressed wrongly, and its CRC may not tell. `None` uses no timer.
    pub timer: Option<Duration>,
    /// Profile 0x0081.
    pub coap: CoapConfig,
    /// Randomness: first sequence numbers and the hash of flows depend on it.
    pub seed: u64,
}

impl CompressorConfig {
    /// Defaults for a channel: the default refresh in U-mode, none in O-mode and R-mode, 4 repetitions, a window of 4.
    pub fn new(channel: Channel) -> Self {
        Self {
            channel,
            refresh: Refresh::default(),
            refresh_two_way: Refresh::Off,
            repetitions: 4,
            window: 4,
            established_by_ir: false,
            counted: false,
            sid_everywhere: false,
            reliable: true,
            rtp: RtpDetection::default(),
            timer: None,
            coap: CoapConfig::default(),
            seed: 0,
        }
    }

    /// The same, but refreshed like this in every mode: what is asked for by name holds in O-mode and R-mode, too, which
    /// refresh nothing by default.
    pub fn with_refresh(self, refresh: Refresh) -> Self {
        Self { refresh, refresh_two_way: refresh, ..self }
    }
}

/// The memory of a compressor, sized at start.
#[derive(Debug)]
pub struct CompressorMemory<'m> {
    /// One place per context: [`Channel::contexts`] of them.
    pub contexts: Slots<'m, CompressorContext>,
    /// As many links as contexts.
    pub links: Slots<'m, FlowLink>,
    /// Buckets of the index of flows; twice as many as contexts is a good number.
    pub buckets: Slots<'m, u16>,
    /// Blocks for extension headers.
    pub blocks: Slots<'m, Block>,
    /// Templates of CoAP messages, for all flows together; a flow takes at most 16.
    pub templates: Slots<'m, Template>,
    /// Places for the flows of profile 0x0006, by CID: as many as contexts, or none. A flow whose CID has none goes by
    /// another profile.
    pub tcp: Slots<'m, TcpRoom>,
}

impl CompressorMemory<'_> {
    /// Octets of all of it.
    pub fn octets(&self) -> usize {
        self.contexts.octets()
            + self.links.octets()
            + self.buckets.octets()
            + self.blocks.octets()
            + self.templates.octets()
            + self.tcp.octets()
    }
}

#[cfg(feature = "alloc")]
impl CompressorMemory<'static> {
    /// Memory for `channel` with `blocks` blocks for extension headers.
    pub fn owned(channel: &Channel, blocks: usize) -> Self {
        Self {
            contexts: Slots::owned(alloc::vec![CompressorContext::EMPTY; channel.contexts()]),
            links: Slots::owned(alloc::vec![FlowLink::EMPTY; channel.contexts()]),
            buckets: Slots::owned(alloc::vec![0; (channel.contexts() * 2).next_power_of_two()]),
            blocks: Slots::owned(alloc::vec![Block::default(); blocks]),
            templates: Slots::owned(
                alloc::vec![Template::EMPTY; crate::profile::coap::templates_for(channel)],
            ),
            tcp: Slots::owned(alloc::vec![TcpRoom::EMPTY; rooms_for(channel)]),
        }
    }
}

/// A packet that was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The context.
    pub cid: Cid,
    /// Its profile.
    pub profile: ProfileId,
    /// The format of the packet.
    pub format: Format,
    /// Octets of the headers that were compressed.
    pub header_in: usize,
    /// Octets of the ROHC header, CID included.
    pub header_out: usize,
    /// Octets of the ROHC packet.
    pub len: usize,
    /// Why the packet is larger than need be: it refreshes a context that was established.
    pub refresh: bool,
}

/// Why a packet was not compressed: always the caller's packet or buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressError {
    /// The octets are no IP packet.
    NotIp(NotIp),
    /// `out` is too short: room for the packet and 16 octets is enough, unless it has extension headers.
    OutputTooSmall {
        /// Octets that are there.
        have: usize,
    },
    /// The compressor was given no place for a context.
    NoContexts,
}

impl core::fmt::Display for CompressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotIp(NotIp::Version) => write!(f, "neither an IPv4 nor an IPv6 packet"),
            Self::NotIp(NotIp::Short { need, have }) => {
                write!(f, "the IP header needs {need} octets, there are {have}")
            }
            Self::OutputTooSmall { have } => write!(f, "{have} octets of room are not enough"),
            Self::NoContexts => write!(f, "the compressor has no place for a context"),
        }
    }
}

impl core::error::Error for CompressError {}

/// The compressor of one channel.
///
/// **Give every packet of the channel to [`compress`](Self::compress), in order, with a time that never goes
/// back.** Feedback of the other side goes to [`receive_feedback`](Self::receive_feedback).
#[derive(Debug)]
pub struct Compressor<'m> {
    config: CompressorConfig,
    flows: Flows<'m>,
    pool: Pool<'m>,
    templates: Templates<'m>,
    tcp: Slots<'m, TcpRoom>,
    bases: Slots<'m, Base>,
    /// What CLOCK and JITTER options have said: milliseconds, and units of TS_STRIDE.
    clock: Option<u8>,
    jitter: u8,
    /// Flows that were taken for CoAP by a parse alone, since the start.
    guessed: u32,
    /// Groups of packets so far, modulo 256.
    group: u8,
    random: u64,
}

/// The messages of both directions, which an endpoint lends to its compressor.
pub(crate) struct Linked<'a, 'm> {
    pub(crate) sent: &'a mut Exchanges<'m>,
    pub(crate) received: &'a Exchanges<'m>,
}

impl<'m> Compressor<'m> {
    /// A compressor in `memory`. Fewer places than the channel has contexts make it use fewer CIDs.
    pub fn new(config: CompressorConfig, memory: CompressorMemory<'m>) -> Self {
        let config = CompressorConfig {
            repetitions: config.repetitions.max(1),
            window: config.window.clamp(1, CAPACITY as u8),
            ..config
        };
        let (limit, credit) = (config.channel.contexts(), credit(&config));
        let flows = Flows::new(memory.contexts, memory.links, memory.buckets, limit, config.seed, credit);
        Self {
            config,
            flows,
            pool: Pool::new(memory.blocks),
            templates: Templates::new(memory.templates),
            tcp: memory.tcp,
            bases: Slots::Lent(&mut []),
            clock: None,
            jitter: 0,
            guessed: 0,
            group: 0,
            random: config.seed,
        }
    }

    /// Begins a group of packets, which the carrier delivers or loses as a whole: those of one datagram. The first packet of each
    /// flow in it has more bits of the SN (profiles of RFC 3095), so that it is known however many groups were lost before.
    pub fn begin_group(&mut self) {
        self.group = self.group.wrapping_add(1);
    }

    /// The compressor with the provisioned bases of profile 0x0081, of which at most 256 are used. They are a
    /// parameter of the channel: the decompressor must have the same, in the same order.
    pub fn with_bases(self, bases: Slots<'m, Base>) -> Self {
        Self { bases, ..self }
    }

    /// What the contexts of profile 0x0081 have learned, as bases for flows like theirs, by CID.
    pub fn learned_bases(&self) -> impl Iterator<Item = Base> + '_ {
        self.flows.kinds().filter_map(|kind| match kind {
            Kind::Coap(context) => Some(context.learned(&self.templates)),
            Kind::Free | Kind::Uncompressed(_) | Kind::Rfc3095(_) | Kind::Tcp(_) | Kind::Rejected { .. } => {
                None
            }
        })
    }

    /// Compresses one IP packet to the start of `out`.
    pub fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        self.compress_linked(now, packet, out, None)
    }

    /// [`compress`](Self::compress), with the messages of both directions.
    #[inline]
    pub(crate) fn compress_linked(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Compressed, CompressError> {
        let mut chain = HeaderChain::EMPTY;
        chain.parse_in_place(packet).map_err(CompressError::NotIp)?;
        let profiles = self.config.channel.profiles();
        if profiles.has(ProfileId::Coap)
            && let Some(done) = self.coap(now, &chain, out, linked)
        {
            return done;
        }
        if profiles.has(ProfileId::Tcp)
            && let Some(segment) = Segment::of(&chain)
            && let Some(done) = self.segment(now, &segment, out)
        {
            return done;
        }
        self.rfc3095(now, &chain, out)
    }

    /// Takes the data of one feedback element, CID included ([`Elements`](crate::packet::Elements) yields
    /// them). Feedback that is damaged or makes no sense is ignored and told.
    pub fn receive_feedback(&mut self, now: Instant, data: &[u8]) -> Result<(), FeedbackError> {
        let space = self.config.channel.cids();
        let cid = Feedback::cid(data, space).ok_or(FeedbackError::Truncated)?;
        let is_known = cid.index() < self.flows.capacity();
        let feedback = if is_known && matches!(self.flows.kind(cid), Kind::Coap(_) | Kind::Tcp(_)) {
            // A decompressor without context does not know the profile, and asks for one in the general form.
            let asks = |feedback: &Feedback| feedback.ack == AckType::StaticNack && feedback.protected;
            Feedback::read_rfc5225(data, space)
                .or_else(|error| Feedback::read(data, space).ok().filter(asks).ok_or(error))?
        } else {
            Feedback::read(data, space)?
        };
        if !self.config.channel.allows(feedback.cid) || feedback.cid.index() >= self.flows.capacity() {
            return Err(FeedbackError::UnknownCid(feedback.cid));
        }
        let l = self.config.repetitions;
        match self.flows.kind(feedback.cid) {
            Kind::Free | Kind::Rejected { .. } => Err(FeedbackError::UnknownCid(feedback.cid)),
            Kind::Uncompressed(state) => {
                // RFC 3095, section 5.10.3 c): any feedback makes it bidirectional.
                state.two_way = true;
                state.ir_left = if feedback.ack == AckType::StaticNack { 1 } else { 0 };
                Ok(())
            }
            Kind::Coap(context) => {
                if feedback.reject {
                    context.release(&mut self.templates);
                    self.flows.reject(feedback.cid, now + REJECTED_FOR);
                    return Ok(());
                }
                context.receive_feedback(now, &feedback, l, &mut self.templates);
                Ok(())
            }
            Kind::Tcp(context) => {
                if feedback.reject || feedback.context_memory {
                    self.flows.reject(feedback.cid, now + REJECTED_FOR);
                } else if let Some(room) = self.tcp.get(feedback.cid.index()) {
                    let base = context.named_base().filter(|_| feedback.ack == AckType::StaticNack);
                    context.receive_feedback(now, &feedback, room, &self.config);
                    if let Some(base) = base {
                        self.give_up_bases(base);
                    }
                }
                Ok(())
            }
            Kind::Rfc3095(context) => {
                if feedback.reject || feedback.context_memory && feedback.protected {
                    context.release(&mut self.pool);
                    self.flows.reject(feedback.cid, now + REJECTED_FOR);
                    return Ok(());
                }
                context.receive_feedback(now, &feedback, &self.config, &mut self.pool);
                if matches!(context.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) {
                    // RFC 4815, section 4.7: "on a per-channel basis". Zero means no timer.
                    self.clock = feedback.clock.map_or(self.clock, |clock| Some(clock).filter(|ms| *ms > 0));
                    self.jitter = feedback.jitter.map_or(self.jitter, |jitter| jitter.max(self.jitter));
                }
                Ok(())
            }
        }
    }

    /// Octets of memory for one context with its link, without extension headers, and for a block of those. A
    /// context also takes two buckets of two octets each.
    pub const fn octets_per_context() -> (usize, usize) {
        (size_of::<CompressorContext>() + size_of::<FlowLink>(), size_of::<Block>())
    }

    /// By a profile of the RFC 3095 family, or 0x0000.
    #[inline(never)]
    fn rfc3095(
        &mut self,
        now: Instant,
        chain: &HeaderChain<'_>,
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        let packet = chain.packet();
        let plan = classify::plan(chain, &self.config, |plan| self.has_place_for(now, plan));
        let Some(mut plan) = plan else { return self.uncompressed(now, packet, out) };
        plan.timer = self.timer();
        let mut hash = self.flows.hash(&plan);
        let mut found = self.find(hash, &plan);
        if self.config.rtp.guesses()
            && matches!(plan.profile, ProfileId::Udp | ProfileId::UdpLite)
            && let Some((rtp, rtp_hash, cid)) = self.guess_rtp(&plan, found)
        {
            (plan, hash, found) = (rtp, rtp_hash, cid);
        }
        loop {
            match found {
                Some(cid) if self.flows.rests(cid) => self.flows.touch(cid),
                Some(cid) => match self.by_context(now, &plan, cid, out) {
                    Err(Refused::ByThisPacket) if plan.lacks_payload() => {}
                    done => return self.done(now, done, packet, out),
                },
                None if plan.lacks_payload() => {}
                None => {
                    let Some((cid, owes)) = self.begin(now, &plan, hash)? else {
                        return self.uncompressed(now, packet, out);
                    };
                    return match self.by_context(now, &plan, cid, out) {
                        Err(Refused::ByThisPacket) if owes => {
                            self.uncompressed_instead(now, cid, packet, out)
                        }
                        done => self.done(now, done, packet, out),
                    };
                }
            }
            let Some(below) = plan.below(self.config.channel.profiles()) else {
                return self.uncompressed(now, packet, out);
            };
            plan = below;
            hash = self.flows.hash(&plan);
            found = self.find(hash, &plan);
        }
    }

    /// The packet by a context of its flow.
    fn by_context(
        &mut self,
        now: Instant,
        plan: &Plan<'_>,
        cid: Cid,
        out: &mut [u8],
    ) -> Result<Compressed, Refused> {
        self.flows.touch(cid);
        let Kind::Rfc3095(context) = self.flows.kind(cid) else { return Err(Refused::ByThisPacket) };
        context.join(self.group);
        let compressed = context.compress(now, plan, cid, &self.config, &mut self.pool, out)?;
        // In R-mode packets say everything until that is acknowledged, however long that takes.
        if !context.mode.is_secure() {
            self.note_cost(&compressed);
        }
        Ok(compressed)
    }

    /// The packet as it is if its context does not take it.
    fn done(
        &mut self,
        now: Instant,
        by_context: Result<Compressed, Refused>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        match by_context {
            Ok(compressed) => Ok(compressed),
            Err(Refused::NoRoom) => Err(CompressError::OutputTooSmall { have: out.len() }),
            Err(Refused::ByThisPacket) => self.uncompressed(now, packet, out),
        }
    }

    /// A context of the RFC 3095 family for a new flow, and whether the one before held memory; `None` if it goes uncompressed.
    fn begin(
        &mut self,
        now: Instant,
        plan: &Plan<'_>,
        hash: u32,
    ) -> Result<Option<(Cid, bool)>, CompressError> {
        let pair = self.flows.pair(plan.packet);
        if self.flows.is_rejected(hash, now) || !self.flows.admits(pair) {
            return Ok(None);
        }
        let sn = self.next_random() as u16;
        let mut context = Context::new(plan, now, sn);
        let cid = self.flows.claim(hash, pair).ok_or(CompressError::NoContexts)?;
        let before = match self.flows.kind(cid) {
            Kind::Rfc3095(old) => Some(&*old),
            Kind::Free | Kind::Uncompressed(_) | Kind::Rejected { .. } | Kind::Coap(_) | Kind::Tcp(_) => None,
        };
        context.start(before, self.random as u8, &self.config);
        let owes = self.release(cid);
        if let Some(coap) = &plan.coap {
            // There is room for them, or the plan were another one.
            let _ = context.start_coap(coap, &mut self.pool);
        }
        self.flows.set(cid, Kind::Rfc3095(context));
        Ok(Some((cid, owes)))
    }

    /// Notes what a packet that a context has compressed has cost, and has a context rest that is not worth it. A refresh is what
    /// the policy asks for.
    #[inline]
    fn note_cost(&mut self, done: &Compressed) {
        let is_worth = done.refresh || {
            let is_initialization = done.format.is_initialization();
            self.flows.note_cost(done.cid, done.header_in, done.header_out, is_initialization)
        };
        if !is_worth {
            self.restart(done.cid);
        }
    }

    /// Has a context begin with IR packets again when it is used next.
    #[cold]
    fn restart(&mut self, cid: Cid) {
        match self.flows.kind(cid) {
            Kind::Rfc3095(context) => context.restart(&self.config),
            Kind::Coap(context) => context.restart(self.config.repetitions, &mut self.templates),
            Kind::Tcp(context) => context.restart(&self.config),
            Kind::Free | Kind::Uncompressed(_) | Kind::Rejected { .. } => {}
        }
    }

    /// What a timer for timestamps needs to know, if one may be used.
    fn timer(&self) -> Option<Link> {
        let (jitter, clock) = (self.config.timer?, self.clock?);
        let jitter_ms =
            u32::try_from(jitter.as_millis()).unwrap_or(u32::MAX / 2).saturating_add(u32::from(clock));
        Some(Link { jitter_ms, reported: self.jitter })
    }

    /// The context of a packet's flow.
    fn find(&self, hash: u32, plan: &Plan<'_>) -> Option<Cid> {
        self.flows.find(hash, |kind| match kind {
            Kind::Rfc3095(context) => context.is_flow_of(plan, &self.pool),
            Kind::Rejected { .. } | Kind::Uncompressed(_) | Kind::Coap(_) | Kind::Tcp(_) | Kind::Free => {
                false
            }
        })
    }

    /// A datagram whose flow is RTP as far as its packets show: the same packet by another profile, the hash of its
    /// flow, and its context, if it has one already. `cid` is the context that has looked at the flow so far. A flow
    /// whose sequence numbers jump has to prove itself again.
    fn guess_rtp<'p>(&mut self, plan: &Plan<'p>, cid: Option<Cid>) -> Option<(Plan<'p>, u32, Option<Cid>)> {
        let rtp = plan.with_rtp(self.config.channel.profiles())?;
        let hash = self.flows.hash(&rtp);
        let known = self.find(hash, &rtp);
        if let Some(known) = known
            && let Kind::Rfc3095(context) = self.flows.kind(known)
            && context.goes_on_as_rtp(&rtp)
        {
            return Some((rtp, hash, Some(known)));
        }
        let Kind::Rfc3095(context) = self.flows.kind(cid?) else { return None };
        let can_begin = known.is_some() || !rtp.lacks_payload();
        if !context.watch_for_rtp(rtp.rtp.as_ref()) || !can_begin {
            return None;
        }
        Some((rtp, hash, known))
    }

    /// Whether a packet of CoAP has a context, or may have one: there is memory for its options, and the
    /// decompressor has not rejected its flow.
    #[cold]
    fn has_place_for(&self, now: Instant, plan: &Plan<'_>) -> bool {
        let hash = self.flows.hash(plan);
        let is_known =
            |kind: &Kind| matches!(kind, Kind::Rfc3095(context) if context.is_flow_of(plan, &self.pool));
        self.flows.find(hash, is_known).is_some()
            || (self.pool.has_room() || !plan.has_options()) && !self.flows.is_rejected(hash, now)
    }

    /// Gives the memory of a context that is given up back to the channel. Returns whether it had some: the decompressor has it
    /// until another flow is sent with the CID.
    fn release(&mut self, cid: Cid) -> bool {
        match self.flows.kind(cid) {
            Kind::Rfc3095(old) => old.release(&mut self.pool),
            Kind::Coap(old) => old.release(&mut self.templates),
            Kind::Free | Kind::Uncompressed(_) | Kind::Tcp(_) | Kind::Rejected { .. } => false,
        }
    }

    /// SplitMix64: sequence numbers need to differ, not to be secret.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Octets above plain headers that a context may cost at any time: those of the IR packets that establish it, with some to spare.
fn credit(config: &CompressorConfig) -> i16 {
    const AN_IR: u32 = 32;
    let packets = match config.refresh {
        Refresh::Cycle { ir, .. } => ir.max(config.repetitions.into()),
        _ => config.repetitions.into(),
    };
    (packets.clamp(4, 255) * AN_IR) as i16
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::channel::ProfileSet;
    use crate::cid::CidSpace;
    use alloc::vec::Vec;
    use thinair_wire::header::ipv4::Ipv4;

    fn compressor(cids: CidSpace) -> Compressor<'static> {
        let channel = Channel::new(cids, cids.highest().min(200), ProfileSet::v1()).unwrap();
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, 1))
    }

    fn udp(six: bool, ttl: u8, id: u16, sum: u16, payload: &[u8]) -> Vec<u8> {
        let len = payload.len() as u16 + 8;
        let mut packet = Vec::new();
        if six {
            packet.extend_from_slice(&[0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, ttl]);
            packet.extend_from_slice(&[0xFD; 32]);
        } else {
            packet.extend_from_slice(&[0x45, 0, ((len + 20) >> 8) as u8, (len + 20) as u8]);
            packet.extend_from_slice(&id.to_be_bytes());
            packet.extend_from_slice(&[0x40, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = Ipv4::checksum_of(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend_from_slice(&[0x16, 0x33, 0x16, 0x33, (len >> 8) as u8, len as u8]);
        packet.extend_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    #[test]
    fn the_least_recently_used_flow_gives_up_its_cid() {
        let channel = Channel::new(CidSpace::Small, 1, ProfileSet::v1()).unwrap();
        let memory = CompressorMemory::owned(&channel, 0);
        let mut compressor = Compressor::new(CompressorConfig::new(channel), memory);
        let mut out = [0; 128];
        let mut cid = |ttl: u8, port: u8| {
            let mut packet = udp(true, ttl, 0, 5, &[1]);
            packet[43] = port;
            compressor.compress(Instant::ZERO, &packet, &mut out).unwrap().cid.value()
        };
        assert_eq!([cid(64, 1), cid(64, 2), cid(64, 1)], [0, 1, 0]);
        assert_eq!([cid(64, 3), cid(64, 1), cid(64, 2)], [1, 0, 1]);
    }

    #[test]
    fn a_rejected_flow_goes_uncompressed_for_a_while() {
        let mut compressor = compressor(CidSpace::Small);
        let mut out = [0; 128];
        let packet = udp(true, 64, 0, 5, &[1]);
        let profile = |compressor: &mut Compressor<'_>, out: &mut [u8], seconds: u64| {
            compressor.compress(Instant::from_millis(seconds * 1_000), &packet, out).unwrap().profile
        };
        assert_eq!(profile(&mut compressor, &mut out, 0), ProfileId::Udp);
        let reject =
            Feedback { reject: true, protected: true, ..Feedback::new(Cid::ZERO, AckType::StaticNack) };
        let mut element = [0; 16];
        let len = reject.write(CidSpace::Small, &mut element).unwrap();
        compressor.receive_feedback(Instant::ZERO, &element[1..len]).unwrap();
        assert_eq!(profile(&mut compressor, &mut out, 1), ProfileId::Uncompressed);
        assert_eq!(profile(&mut compressor, &mut out, 29), ProfileId::Uncompressed);
        assert_eq!(profile(&mut compressor, &mut out, 31), ProfileId::Udp);
    }

    #[test]
    fn without_blocks_a_flow_with_extension_headers_goes_uncompressed() {
        let channel = Channel::new(CidSpace::Small, 3, ProfileSet::v1()).unwrap();
        let memory = CompressorMemory::owned(&channel, 0);
        let mut compressor = Compressor::new(CompressorConfig::new(channel), memory);
        let mut packet = udp(true, 64, 0, 5, &[1]);
        packet[6] = 60;
        packet[5] += 8;
        packet.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
        let done = compressor.compress(Instant::ZERO, &packet, &mut [0; 128]).unwrap();
        assert_eq!(done.profile, ProfileId::Uncompressed);
    }
}
