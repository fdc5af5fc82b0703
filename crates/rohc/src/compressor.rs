//! The compressor of a channel: IP packets in, ROHC packets out.

mod config;
mod flows;
mod outcome;
mod profile;
mod worth;

use core::time::Duration;

use thinair_wire::header::chain::{HeaderChain, NotIp};
use thinair_wire::time::Instant;
use thinair_wire::window::CAPACITY;

use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::exchange::Linked;
use crate::feedback::{AckType, Feedback, FeedbackError, Form};
use crate::profile::{Format, ProfileId, SenderPlace as Place};
use crate::refresh::Refresh;
use crate::storage::BLOCK_OCTETS;
pub use crate::storage::CompressorMemory;
pub(crate) use crate::storage::Shared;

pub use config::{CoapConfig, CompressorConfig, FormatPolicy, Ports, ReorderRatio, RtpDetection};
use flows::Flows;
pub(crate) use flows::Key;
pub use flows::{CompressorContext, FlowLink};
pub(crate) use outcome::Refused;
pub(crate) use profile::{Outgoing, SenderContext};
pub(crate) use worth::Pairs;

/// Contexts that are looked at for a base, or for one whose flow is over: those that were used last.
pub(crate) const RECENT: usize = 128;

/// How long a flow that was rejected stays uncompressed. RFC 3095, section 5.7.6.4: "for some time".
const REJECTED_FOR: Duration = Duration::from_secs(30);

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
    /// Octets written: the ROHC packet, and at an endpoint the feedback in front of it.
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
    pub(crate) config: CompressorConfig,
    pub(crate) flows: Flows<'m>,
    pub(crate) shared: Shared<'m>,
    /// Groups of packets so far, modulo 256.
    pub(crate) group: u8,
    pub(crate) random: u64,
}

impl<'m> Compressor<'m> {
    /// A compressor in memory that is lent (a [`CompressorStorage`](crate::CompressorStorage)) or owned. Fewer places than the
    /// channel has contexts make it use fewer CIDs.
    pub fn new(config: CompressorConfig, memory: impl Into<CompressorMemory<'m>>) -> Self {
        let config = CompressorConfig {
            repetitions: config.repetitions.max(1),
            window: config.window.clamp(1, CAPACITY as u8),
            ..config
        };
        let (places, shared) = memory.into().split();
        let flows = Flows::new(places, config.channel.contexts(), config.seed, credit(&config));
        Self { config, flows, shared, group: 0, random: config.seed }
    }

    /// Begins a group of packets, which the carrier delivers or loses as a whole: those of one datagram. The first packet of each
    /// flow in it has more bits of the SN (profiles of RFC 3095), so that it is known however many groups were lost before.
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

    /// [`compress`](Self::compress), with the messages of both directions.
    #[inline]
    pub(crate) fn compress_linked(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Compressed, CompressError> {
        let mut chain = HeaderChain::empty();
        chain.parse_in_place(packet).map_err(CompressError::NotIp)?;
        let mut outgoing = Outgoing { now, chain: &chain, linked };
        Place::compress_packet(self, &mut outgoing, out).unwrap_or(Err(CompressError::NoContexts))
    }

    /// Takes the data of one feedback element, CID included ([`Elements`](crate::packet::Elements) yields
    /// them). Feedback that is damaged or makes no sense is ignored and told.
    pub fn receive_feedback(&mut self, now: Instant, data: &[u8]) -> Result<(), FeedbackError> {
        let space = self.config.channel.cids();
        let cid = Feedback::cid(data, space).ok_or(FeedbackError::Truncated)?;
        let form = self.flows.place(cid).and_then(Place::context).map_or(Form::Rfc3095, SenderContext::form);
        let feedback = match form {
            Form::Rfc3095 => Feedback::read(data, space)?,
            Form::Rfc6846 | Form::Rfc5225 => {
                // A decompressor without context does not know the profile, and asks for one in the general form.
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
        } else if let Some(base) = context.receive_feedback(now, &feedback, &self.config, &mut self.shared) {
            self.give_up_bases(base);
        }
        Ok(())
    }

    /// Octets of memory for one context with its link, without extension headers, and for a block of those. A
    /// context also takes two buckets of two octets each.
    pub const fn octets_per_context() -> (usize, usize) {
        (size_of::<CompressorContext>() + size_of::<FlowLink>(), BLOCK_OCTETS)
    }

    /// The contexts that are in use, by CID.
    pub fn contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        self.flows.places().filter_map(|(cid, place)| Some(place.context()?.shown(cid)))
    }

    /// The context of a CID, if it is in use.
    pub fn context(&self, cid: Cid) -> Option<ContextState> {
        Some(self.flows.place(cid)?.context()?.shown(cid))
    }

    /// Flows that have lost their context to another flow since the start, modulo 2^32: there were more flows than contexts.
    pub fn displaced_flows(&self) -> u32 {
        self.flows.displaced()
    }

    /// Notes what a packet that a context has compressed has cost, and has a context rest that is not worth it. A refresh is what
    /// the policy asks for.
    #[inline]
    pub(crate) fn note_cost(&mut self, done: &Compressed) {
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
        if let Some(context) = self.flows.place_mut(cid).context_mut() {
            context.restart(&self.config, &mut self.shared);
        }
    }

    /// Gives the memory of a context that is given up back to the channel. Returns whether it had some: the decompressor has it
    /// until another flow is sent with the CID.
    pub(crate) fn release(&mut self, cid: Cid) -> bool {
        self.flows.place_mut(cid).context_mut().is_some_and(|context| context.release(&mut self.shared))
    }

    /// True if the flow of a packet has a context of a profile.
    #[cold]
    pub(crate) fn has_flow(&self, packet: &Outgoing<'_, '_, '_>) -> bool {
        Place::has_flow(self, packet)
    }

    /// Gives up a base that the decompressor could not use: it is none until it is acknowledged again (RFC 4164, section 3.3.3.4).
    /// Who has lost one may have lost all of them.
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

    /// SplitMix64: sequence numbers need to differ, not to be secret.
    pub(crate) fn next_random(&mut self) -> u64 {
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
    use crate::channel::{Channel, ProfileSet};
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
