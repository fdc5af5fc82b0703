//! The compressor of a channel: IP packets in, ROHC packets out.

mod config;
mod outcome;
mod profile;

use core::time::Duration;

use thinair_wire::header::chain::{HeaderChain, NotIp};
use thinair_wire::time::Instant;
use thinair_wire::window::CAPACITY;

use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::exchange::Linked;
use crate::feedback::{AckType, Feedback, FeedbackError, FeedbackForm};
use crate::field::timer::FarClock;
use crate::flow::pace::SteadyClock;
use crate::flow::refresh::Refresh;
use crate::flow::sender::Random;
use crate::id::{Format, ProfileId};
use crate::profile::SenderPlace as Place;
use crate::storage::BLOCK_OCTETS;
pub use crate::storage::CompressorMemory;
pub(crate) use crate::storage::SharedMemory;

pub(crate) use crate::flow::table::FlowKey;
use crate::flow::table::FlowTable;
#[cfg(any(feature = "coap", feature = "dtls"))]
pub(crate) use crate::flow::table::address_words;
pub use crate::flow::table::{CompressorContext, FlowLink};
pub(crate) use crate::flow::worth::HostPairs;
pub use config::{CoapConfig, CompressorConfig, FormatPolicy, Ports, ReorderRatio, RtpDetection};
pub(crate) use outcome::Refused;
pub(crate) use profile::{AnySenderContext, OutgoingPacket, SenderContext};

/// Number of recently used contexts that are searched for a base, or for one whose flow is over.
pub(crate) const RECENT: usize = 128;

/// Time for which a rejected flow stays uncompressed. RFC 3095, section 5.7.6.4: "for some time".
const REJECTED_FOR: Duration = Duration::from_secs(30);

/// Outcome of compressing one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// CID of the context.
    pub cid: Cid,
    /// Profile of the context.
    pub profile: ProfileId,
    /// The format of the packet.
    pub format: Format,
    /// Octets of the uncompressed headers.
    pub header_in: usize,
    /// Octets of the ROHC header, CID included.
    pub header_out: usize,
    /// Octets written: the ROHC packet, and at an endpoint the feedback in front of it.
    pub len: usize,
    /// True if the packet refreshes an established context, and is larger for that reason.
    pub refresh: bool,
}

/// Reason a packet was not compressed: an error in the caller's packet or buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressError {
    /// The octets are no IP packet.
    NotIp(NotIp),
    /// `out` is too short. Room for the packet and 16 octets is enough, unless the packet has extension headers.
    OutputTooSmall {
        /// Octets of `out`.
        have: usize,
    },
    /// The memory of the compressor has no place for a context.
    NoContexts,
}

impl core::fmt::Display for CompressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotIp(NotIp::Version) => write!(f, "not an IPv4 or IPv6 packet"),
            Self::NotIp(NotIp::Short { need, have }) => {
                write!(f, "truncated IP header: {need} octets needed, {have} present")
            }
            Self::OutputTooSmall { have } => write!(
                f,
                "output buffer of {have} octets is too short: the packet and 16 octets more are needed"
            ),
            Self::NoContexts => write!(f, "the memory of the compressor has no place for a context"),
        }
    }
}

impl core::error::Error for CompressError {}

/// The compressor of one channel.
///
/// **Give every packet of the channel to [`compress`](Self::compress), in order.** A clock that is set back goes on as if as much time had
/// passed, since it may hide a pause.
/// Feedback of the other side goes to [`receive_feedback`](Self::receive_feedback).
#[derive(Debug)]
pub struct Compressor<'m> {
    pub(crate) config: CompressorConfig,
    pub(crate) flows: FlowTable<'m>,
    pub(crate) shared: SharedMemory<'m>,
    /// Number of groups of packets so far, modulo 256.
    pub(crate) group: u8,
    pub(crate) random: Random,
    pub(crate) far_clock: FarClock,
    clock: SteadyClock,
    /// Steady time of the last packet.
    latest: Instant,
}

impl<'m> Compressor<'m> {
    /// Creates a compressor in lent memory (a [`CompressorStorage`](crate::CompressorStorage)) or owned memory. If it has fewer
    /// places than the channel has contexts, the compressor uses fewer CIDs.
    pub fn new(config: CompressorConfig, memory: impl Into<CompressorMemory<'m>>) -> Self {
        let config = CompressorConfig {
            repetitions: config.repetitions.max(1),
            window: config.window.clamp(1, CAPACITY as u8),
            ..config
        };
        let (contexts, links, buckets, shared) = memory.into().split();
        let limit = config.channel.contexts();
        let flows = FlowTable::new(contexts, links, buckets, limit, config.seed, credit(&config));
        Self {
            config,
            flows,
            shared,
            group: 0,
            random: Random(config.seed),
            far_clock: FarClock::NONE,
            clock: SteadyClock::default(),
            latest: Instant::ZERO,
        }
    }

    /// Begins a group of packets that the carrier delivers or loses as a whole, such as those of one datagram. The first packet
    /// of each flow in a group has more bits of the SN (profiles of RFC 3095), so that the decompressor can identify it after a
    /// loss of several groups.
    pub fn begin_group(&mut self) {
        self.group = self.group.wrapping_add(1);
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

    /// [`compress`](Self::compress) with the messages of both directions.
    #[inline]
    pub(crate) fn compress_linked(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
        mut linked: Option<Linked<'_, 'm>>,
    ) -> Result<Compressed, CompressError> {
        if Place::predicts(self.config.channel.profiles(), &mut self.shared)
            && let Some(done) =
                self.compress_unparsed(now, packet, linked.as_mut().map(Linked::reborrow), out)
        {
            return Ok(done);
        }
        let mut chain = HeaderChain::empty();
        chain.parse_in_place(packet).map_err(CompressError::NotIp)?;
        self.compress_outgoing(OutgoingPacket::new(now, &chain, linked), out)
    }

    /// Compresses the packet that the context used last predicts. `None`, without a change, for another packet, and after the clock was set
    /// back.
    #[inline(never)]
    fn compress_unparsed(
        &mut self,
        now: Instant,
        packet: &[u8],
        linked: Option<Linked<'_, 'm>>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let now = Some(self.clock.at(now)).filter(|now| *now >= self.latest)?;
        let done = Place::compress_predicted(self, now, packet, linked, out)?;
        self.latest = now;
        Some(done)
    }

    /// [`compress`](Self::compress), for who has parsed the packet already.
    pub fn compress_parsed(
        &mut self,
        now: Instant,
        chain: &HeaderChain<'_>,
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        self.compress_outgoing(OutgoingPacket::new(now, chain, None), out)
    }

    #[inline]
    fn compress_outgoing(
        &mut self,
        mut packet: OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        packet.now = self.clock.advance_by_pause(packet.now, self.latest);
        self.latest = packet.now;
        Place::compress_packet(self, &mut packet, out)
    }

    /// Changes PROFILES. A flow of a profile that is not in the set goes by another one from its next packet on.
    pub fn set_profiles(&mut self, profiles: ProfileSet) {
        self.config.channel = self.config.channel.with_profiles(profiles);
    }

    /// Changes the detection of RTP, for the packets of flows that are not taken for RTP yet.
    pub fn set_rtp(&mut self, rtp: RtpDetection) {
        self.config.rtp = rtp;
    }

    /// Has every context begin with IR packets again when it is used next.
    pub fn reinitialize(&mut self) {
        for cid in (0..self.flows.capacity() as u16).filter_map(Cid::new) {
            self.restart(cid);
        }
    }

    /// Handles the data of one feedback element, CID included ([`Elements`](crate::packet::Elements) yields them). An error
    /// reports feedback that was ignored because it is damaged or invalid.
    pub fn receive_feedback(&mut self, now: Instant, data: &[u8]) -> Result<(), FeedbackError> {
        let now = self.clock.at(now);
        let space = self.config.channel.cids();
        let cid = Feedback::cid(data, space).ok_or(FeedbackError::Truncated)?;
        let form = self
            .flows
            .place(cid)
            .and_then(Place::context)
            .map_or(FeedbackForm::Rfc3095, AnySenderContext::form);
        let feedback = match form {
            FeedbackForm::Rfc3095 => Feedback::read(data, space)?,
            FeedbackForm::Rfc6846 | FeedbackForm::Rfc5225 => {
                // A decompressor without a context does not have the profile, and asks for a context in the general form.
                let asks = |feedback: &Feedback| feedback.ack == AckType::StaticNack && feedback.protected;
                Feedback::read_as(form, data, space)
                    .or_else(|error| Feedback::read(data, space).ok().filter(asks).ok_or(error))?
            }
        };
        if !self.config.channel.allows(cid) || cid.index() >= self.flows.capacity() {
            return Err(FeedbackError::UnknownCid(cid));
        }
        let context = self.flows.place_mut(cid).context_mut().ok_or(FeedbackError::UnknownCid(cid))?;
        let is_rejected = feedback.reject || feedback.context_memory && feedback.protected;
        if is_rejected && context.may_be_rejected() {
            context.release(&mut self.shared);
            self.flows.reject(cid, now + REJECTED_FOR);
        } else {
            if context.has_timestamps() {
                self.far_clock.note(&feedback);
            }
            if let Some(base) = context.receive_feedback(now, &feedback, &self.config, &mut self.shared) {
                self.give_up_bases(base);
            }
        }
        self.flows.note_answer(data.len() + 1);
        Ok(())
    }

    /// Octets of memory for one context with its link, without extension headers, and for a block of extension headers. A context
    /// also takes two buckets of two octets each.
    pub const fn octets_per_context() -> (usize, usize) {
        (size_of::<CompressorContext>() + size_of::<FlowLink>(), BLOCK_OCTETS)
    }

    /// The contexts that are in use, by CID.
    pub fn contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        self.flows.places().filter_map(|(cid, place)| Some(place.context()?.context_state(cid)))
    }

    /// The context of a CID, if it is in use.
    pub fn context(&self, cid: Cid) -> Option<ContextState> {
        Some(self.flows.place(cid)?.context()?.context_state(cid))
    }

    /// Number of flows that have lost their context to another flow since the start, modulo 2^32. Not zero if there were more
    /// flows than contexts.
    pub fn displaced_flows(&self) -> u32 {
        self.flows.displaced()
    }

    /// Number of packets since the start, modulo 2^32, whose flow had one before and still waits for a context, since those in use
    /// are needed more. Not zero if more flows than contexts were in use at a time.
    pub fn waiting_packets(&self) -> u32 {
        self.flows.waiting()
    }

    /// Has the context of a CID begin with IR packets again when it is used next. Without one this does nothing.
    #[cold]
    pub fn restart(&mut self, cid: Cid) {
        if cid.index() < self.flows.capacity()
            && let Some(context) = self.flows.place_mut(cid).context_mut()
        {
            context.restart(&self.config, &mut self.shared);
        }
    }

    /// Returns the memory of a context to the channel. True if it had some: the decompressor keeps it until another flow uses the
    /// CID.
    pub(crate) fn release(&mut self, cid: Cid) -> bool {
        self.flows.place_mut(cid).context_mut().is_some_and(|context| context.release(&mut self.shared))
    }

    /// Stops using a base that the decompressor does not have, until it is acknowledged again (RFC 4164, section 3.3.3.4). A
    /// decompressor that has lost one base may have lost all of them.
    #[cold]
    fn give_up_bases(&mut self, base: Cid) {
        let mut recent = [base; RECENT + 1];
        for (place, cid) in recent[1..].iter_mut().zip(self.flows.latest()) {
            *place = cid;
        }
        for cid in recent {
            if let Some(context) = self.flows.place_mut(cid).context_mut() {
                context.withdraw_as_base();
            }
        }
    }
}

/// Octets above plain headers that a context may cost at any time: those of the IR packets that establish it, with a margin.
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
    use crate::channel::{Channel, ProfileSet};
    use crate::cid::CidSpace;
    use alloc::vec::Vec;
    use thinair_wire::header::ipv4::Ipv4;

    fn compressor(cids: CidSpace) -> Compressor<'static> {
        let channel = Channel::new(cids, cids.highest().min(200), ProfileSet::v1()).unwrap();
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes().blocks(1)))
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
        let memory = CompressorMemory::owned(channel.sizes().blocks(0));
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
        let memory = CompressorMemory::owned(channel.sizes().blocks(0));
        let mut compressor = Compressor::new(CompressorConfig::new(channel), memory);
        let mut packet = udp(true, 64, 0, 5, &[1]);
        packet[6] = 60;
        packet[5] += 8;
        packet.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
        let done = compressor.compress(Instant::ZERO, &packet, &mut [0; 128]).unwrap();
        assert_eq!(done.profile, ProfileId::Uncompressed);
    }
}
