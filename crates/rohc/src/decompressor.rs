//! The decompressor of a channel: ROHC packets in, IP packets and feedback out.

mod outcome;
mod profile;
mod react;

use core::time::Duration;

pub use thinair_wire::coder::Traced;
use thinair_wire::time::Instant;

use crate::channel::{Channel, ProfileSet};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::exchange::Linked;
use crate::feedback::{AckType, Feedback};
use crate::flow::arrival::{Arrival, Moment};
use crate::flow::pace::SteadyClock;
use crate::flow::receiver::delivered;
use crate::id::{Format, ProfileId};
use crate::interop::Interop;
use crate::mode::Mode;
use crate::packet::{self, PacketBody, PacketHeader, PartsError};
use crate::profile::ReceiverPlace as Place;
use crate::segmentation::{Reassembler, SegmentError};
pub use crate::storage::DecompressorMemory;
use crate::storage::{BLOCK_OCTETS, SharedMemory, Slots};

pub(crate) use outcome::{Failure, Problem, Unbuildable, Verified, verify_crc8};
pub(crate) use profile::{IncomingPacket, NackPolicy, ReceiverContext};

/// Number of feedback elements that can wait to be sent. A further one replaces the oldest.
const PENDING: usize = 8;

/// Parameters of a decompressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressorConfig {
    /// The channel, as agreed with the compressor.
    pub channel: Channel,
    /// Mode that feedback requests. U-mode sends no feedback at all, unless a context has to return to it. A request is repeated
    /// until the compressor has answered it; a compressor that declines is not asked again (RFC 3843, section 3.4).
    pub mode: Mode,
    /// `k_1` of `n_1`: this many of the last packets must fail before the dynamic context is discarded (RFC 3095, section
    /// 5.3.2.2.3 b); n at most 16. A packet that passes 7 or 8 bits of CRC resets the count. Default: 3 of 6.
    pub nack: Threshold,
    /// [`nack`](Self::nack) in U-mode, without feedback to the compressor. Every packet up to the next refresh is lost by a
    /// false alarm, so damage in a few packets should not count as damage of the context. Default: 5 of 6.
    pub one_way: Threshold,
    /// `k_2` of `n_2`: this many of the last updates must fail before the static context is discarded (RFC 3095, section
    /// 5.3.2.2.3 c). Default: 2 of 4.
    pub static_nack: Threshold,
    /// Minimum time between two negative acknowledgments of one kind for one CID. Default: 1 s.
    pub nack_interval: Duration,
    /// Resolution in milliseconds of the clock that the times come from, 1 to 255. It is sent to compressors, which may then use
    /// a timer for timestamps (CLOCK option, RFC 3095, section 5.7.6.7; CLOCK_RESOLUTION, RFC 5225, section 6.9.2.4). Default: `None`,
    /// not sent.
    pub clock: Option<u8>,
    /// Deviations from the RFCs for compressors of others. Default: [`Interop::STANDARD`].
    pub interop: Interop,
}

impl DecompressorConfig {
    /// Defaults for a channel: unidirectional, 3 of 6 (5 of 6 in U-mode), 2 of 4, one second.
    pub fn new(channel: Channel) -> Self {
        Self {
            channel,
            mode: Mode::Unidirectional,
            nack: Threshold { k: 3, n: 6 },
            one_way: Threshold { k: 5, n: 6 },
            static_nack: Threshold { k: 2, n: 4 },
            nack_interval: Duration::from_secs(1),
            clock: None,
            interop: Interop::STANDARD,
        }
    }
}

/// A number of failures out of the last packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Failures, 1 to `n`.
    pub k: u8,
    /// Number of last packets considered, 1 to 16.
    pub n: u8,
}

impl Threshold {
    pub(crate) fn is_reached(self, failures: u16) -> bool {
        let seen = failures & u16::MAX.checked_shr(16 - u32::from(self.n.clamp(1, 16))).unwrap_or(u16::MAX);
        seen.count_ones() >= u32::from(self.k)
    }
}

/// Place of one context.
#[derive(Clone, Copy, Debug)]
pub struct DecompressorContext {
    pub(crate) place: Place,
    /// Time until which no negative acknowledgment is sent, in milliseconds modulo 2^32; 0 for none.
    quiet_until: u32,
    /// Failed packets since the last negative acknowledgment.
    failures_since_nack: u8,
    /// Packets that have failed since an IR-DYN packet, plus one; 0 if another one was right since then.
    behind_ir_dyn: u8,
    /// A packet of the CID has failed, or was held back: the channel has damage.
    has_failed: bool,
}

impl DecompressorContext {
    /// Returns the memory of its context to the channel.
    #[inline(never)]
    pub(crate) fn release(&mut self, shared: &mut SharedMemory<'_>) {
        self.place.release(shared);
    }

    /// No context.
    pub const EMPTY: Self = Self {
        place: Place::Free,
        quiet_until: 0,
        failures_since_nack: 0,
        behind_ir_dyn: 0,
        has_failed: false,
    };
}

/// Outcome of decompressing one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decompressed {
    /// CID of the context.
    pub cid: Cid,
    /// Profile of the context.
    pub profile: ProfileId,
    /// Format of the packet.
    pub format: Format,
    /// Octets of the ROHC header, including the CID, without padding and feedback.
    pub header_in: usize,
    /// Octets of the rebuilt headers.
    pub header_out: usize,
    /// Octets of the IP packet; 0 if the packet only updated the context.
    pub len: usize,
}

/// Reason nothing is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecompressError {
    /// The parts of the packet cannot be found.
    Packet(PartsError),
    /// The packet holds only feedback, or a segment that is not the last of its unit. This is no error.
    NothingYet,
    /// A reconstructed unit is dropped.
    Segment(SegmentError),
    /// The CID is invalid or exceeds MAX_CID.
    Cid,
    /// There is no context, and the packet cannot create one.
    NoContext(Cid),
    /// The profile of an IR or IR-DYN packet is not in PROFILES.
    UnsupportedProfile(Cid, u8),
    /// The octets are no packet of the profile.
    Malformed(Cid),
    /// The state of the context does not allow this format.
    NotAllowed(Cid, Format),
    /// The CRC does not match: damage in the packet or in the context.
    Crc(Cid, Format),
    /// A list names an item that was never received.
    UnknownItem(Cid, Format),
    /// The packet names a template that was never received.
    UnknownTemplate(Cid, Format),
    /// The packet refers to an unknown message of the other direction.
    UnknownRequest(Cid, Format),
    /// The packet may be late or a duplicate (RFC 4224), so that its bits are ambiguous.
    Ambiguous(Cid, Format),
    /// The context was just repaired; this packet is held back (RFC 3095, section 5.3.2.2.4 e).
    OnTrial(Cid, Format),
    /// No memory for the extension headers of the flow.
    NoMemory(Cid),
    /// `out` is too short.
    OutputTooSmall {
        /// Octets that are needed.
        need: usize,
        /// Octets of `out`.
        have: usize,
    },
}

impl DecompressError {
    /// A stable name for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Packet(_) => "bad_packet",
            Self::NothingYet => "nothing_yet",
            Self::Segment(_) => "bad_segment",
            Self::Cid => "bad_cid",
            Self::NoContext(_) => "no_context",
            Self::UnsupportedProfile(..) => "unsupported_profile",
            Self::Malformed(_) => "malformed",
            Self::NotAllowed(..) => "not_allowed_in_state",
            Self::Crc(..) => "bad_crc",
            Self::UnknownItem(..) => "unknown_list_item",
            Self::UnknownTemplate(..) => "unknown_template",
            Self::UnknownRequest(..) => "unknown_request",
            Self::Ambiguous(..) => "ambiguous_sn",
            Self::OnTrial(..) => "on_trial_after_repair",
            Self::NoMemory(_) => "no_memory",
            Self::OutputTooSmall { .. } => "output_too_small",
        }
    }
}

impl core::fmt::Display for DecompressError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Packet(PartsError::Empty) => write!(f, "empty packet: neither feedback nor header"),
            Self::Packet(PartsError::Feedback { offset, need, have }) => {
                write!(
                    f,
                    "truncated feedback element at octet {offset}: {need} octets needed, {have} present"
                )
            }
            Self::NothingYet => {
                write!(f, "nothing to deliver: feedback only, or a segment of an unfinished unit")
            }
            Self::Segment(SegmentError::TooLarge) => write!(f, "reconstructed unit exceeds MRRU"),
            Self::Segment(SegmentError::Crc) => write!(f, "the CRC of the reconstructed unit does not match"),
            Self::Cid => write!(f, "invalid CID, or CID above MAX_CID"),
            Self::NoContext(cid) => {
                write!(f, "CID {}: no context, and the packet cannot create one", cid.value())
            }
            Self::UnsupportedProfile(cid, profile) => {
                write!(f, "CID {}: profile 0x..{profile:02X} is not in PROFILES of the channel", cid.value())
            }
            Self::Malformed(cid) => write!(f, "CID {}: malformed packet for its profile", cid.value()),
            Self::NotAllowed(cid, format) => {
                write!(f, "CID {}: the state of the context does not allow {}", cid.value(), format.name())
            }
            Self::Crc(cid, format) => {
                write!(f, "CID {}: the CRC of {} does not match", cid.value(), format.name())
            }
            Self::UnknownItem(cid, format) => {
                write!(
                    f,
                    "CID {}: {} refers to a list item that was never received",
                    cid.value(),
                    format.name()
                )
            }
            Self::UnknownTemplate(cid, format) => {
                write!(
                    f,
                    "CID {}: {} refers to a template that was never received",
                    cid.value(),
                    format.name()
                )
            }
            Self::UnknownRequest(cid, format) => {
                write!(f, "CID {}: {} refers to an unknown request", cid.value(), format.name())
            }
            Self::Ambiguous(cid, format) => {
                write!(
                    f,
                    "CID {}: {} is ambiguous: it may be late or a duplicate",
                    cid.value(),
                    format.name()
                )
            }
            Self::OnTrial(cid, format) => {
                write!(f, "CID {}: {} is held back after a repair of the context", cid.value(), format.name())
            }
            Self::NoMemory(cid) => write!(f, "CID {}: no memory for extension headers", cid.value()),
            Self::OutputTooSmall { need, have } => {
                write!(f, "output buffer too short: {need} octets needed, {have} present")
            }
        }
    }
}

impl core::error::Error for DecompressError {}

/// The decompressor of one channel.
///
/// **After each [`decompress`](Self::decompress) drain [`poll_feedback`](Self::poll_feedback)** and send its elements to the
/// compressor of the channel. Feedback in front of a packet is for the compressor of *this* side: take it from
/// [`packet::parts`], or let an `Endpoint` do it.
#[derive(Debug)]
pub struct Decompressor<'m> {
    pub(crate) config: DecompressorConfig,
    pub(crate) contexts: Slots<'m, DecompressorContext>,
    pub(crate) shared: SharedMemory<'m>,
    reassembler: Reassembler<'m>,
    pending: [Option<Feedback>; PENDING],
    clock: SteadyClock,
    moment: Moment,
}

impl<'m> Decompressor<'m> {
    /// Creates a decompressor in lent memory (a [`DecompressorStorage`](crate::DecompressorStorage)) or owned memory. If it has
    /// fewer places than the channel has contexts, the decompressor rejects higher CIDs.
    pub fn new(config: DecompressorConfig, memory: impl Into<DecompressorMemory<'m>>) -> Self {
        let (mut contexts, unit, shared) = memory.into().split();
        contexts.fill(DecompressorContext::EMPTY);
        Self {
            config,
            contexts,
            shared,
            reassembler: Reassembler::new(unit),
            pending: [None; PENDING],
            clock: SteadyClock::default(),
            moment: Moment::new(config.interop.ignores_pauses),
        }
    }

    /// Requests another mode from now on. Each context of the RFC 3095 family that has modes changes with its next packets, by
    /// the handshake of RFC 3095, section 5.6. A transition in progress is finished first.
    pub fn set_mode(&mut self, mode: Mode) {
        self.config.mode = mode;
    }

    /// Changes PROFILES. Contexts of a profile that is not in the set stay until another profile takes their CID.
    pub fn set_profiles(&mut self, profiles: ProfileSet) {
        self.config.channel = self.config.channel.with_profiles(profiles);
    }

    /// Decompresses one ROHC packet to the start of `out`. Room for 200 octets more than the packet is enough unless extension
    /// headers are longer than that.
    ///
    /// `arrival` is the time, or an [`Arrival`] where the carrier counts lost packets: after a loss, more packets can then be
    /// proved right.
    pub fn decompress(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        self.decompress_linked(arrival.into(), packet, out, None)
    }

    /// [`decompress`](Self::decompress) with the messages of both directions.
    pub(crate) fn decompress_linked(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        let now = self.clock.advance(arrival.now, self.moment.now);
        self.moment.advance(Arrival { now, ..arrival });
        if packet.first().is_none_or(|first| *first >= packet::PADDING) {
            return self.unframed(now, packet, out, linked);
        }
        // Most packets: neither padding, Add-CID, feedback, IR nor segment.
        self.reassembler.abort();
        self.header(now, packet, out, linked)
    }

    /// Decompresses a packet that may begin with padding or feedback, or be a segment.
    #[inline(never)]
    fn unframed(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        match packet::parts(packet).map_err(DecompressError::Packet)?.body {
            PacketBody::Empty => Err(DecompressError::NothingYet),
            PacketBody::Header(whole) => {
                self.reassembler.abort();
                self.header(now, whole, out, linked)
            }
            PacketBody::Segment { last, octets } => match self.reassembler.add(last, octets) {
                None => Err(DecompressError::NothingYet),
                Some(Err(error)) => Err(DecompressError::Segment(error)),
                Some(Ok(len)) => self.reconstructed(now, len, out, linked),
            },
        }
    }

    /// True if [`poll_feedback`](Self::poll_feedback) has an element.
    #[inline]
    pub fn has_feedback(&self) -> bool {
        self.pending[0].is_some()
    }

    /// Writes the next feedback element to the start of `out` and returns its length; `None` if there is none.
    /// [`MAX_ELEMENT`](crate::feedback::MAX_ELEMENT) octets are always enough.
    pub fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        let len = self.next_feedback(out)?;
        self.drop_feedback();
        Some(len)
    }

    /// [`poll_feedback`](Self::poll_feedback) of an element that stays the next one.
    pub(crate) fn next_feedback(&self, out: &mut [u8]) -> Option<usize> {
        self.pending[0]?.write(self.config.channel.cids(), out)
    }

    /// Drops the next feedback element.
    pub(crate) fn drop_feedback(&mut self) {
        self.pending[0] = None;
        self.pending.rotate_left(1);
    }

    /// Passes the fields of a header to `on_field`, as far as its context allows, and returns CID, profile and format. Changes
    /// nothing: dissect first, then decompress.
    pub fn dissect<'p>(
        &self,
        packet: &'p [u8],
        mut on_field: impl FnMut(Traced<'p>),
    ) -> Option<(Cid, ProfileId, Format)> {
        let Ok(packet::Parts { body: PacketBody::Header(whole), .. }) = packet::parts(packet) else {
            return None;
        };
        let header = PacketHeader::read(whole, self.config.channel.cids())?;
        let held = &self.contexts.get(header.cid.index())?.place;
        let named = self.named_profile(&header);
        let new = named.filter(|named| held.profile() != Some(*named)).map(Place::new);
        let place = new.as_ref().unwrap_or(held);
        let format = place.dissect(&header, &self.config, &self.shared, &mut on_field)?;
        Some((header.cid, place.profile()?, format))
    }

    /// The contexts that are in use, by CID.
    pub fn contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        let cids = (0..).map_while(Cid::new);
        cids.zip(self.contexts.iter())
            .filter_map(|(cid, slot)| Some(slot.place.context()?.context_state(cid, &self.config)))
    }

    /// The context of a CID, if it is in use.
    pub fn context(&self, cid: Cid) -> Option<ContextState> {
        Some(self.contexts.get(cid.index())?.place.context()?.context_state(cid, &self.config))
    }

    /// Octets of memory for one context, without extension headers, and for a block of extension headers.
    pub const fn octets_per_context() -> (usize, usize) {
        (size_of::<DecompressorContext>(), BLOCK_OCTETS)
    }

    /// Decompresses a reconstructed unit, which must have neither padding, feedback nor segments. RFC 5795, section 5.2.5.2.
    fn reconstructed(
        &mut self,
        now: Instant,
        len: usize,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        // The unit is moved out while it is read, and back afterwards to keep its memory.
        let reassembler = core::mem::replace(&mut self.reassembler, Reassembler::new(Slots::Lent(&mut [])));
        let whole = reassembler.packet(len);
        let result = match packet::parts(whole) {
            Ok(packet::Parts { feedback, body: PacketBody::Header(header) })
                if feedback.octets().is_empty() && header.len() == whole.len() =>
            {
                self.header(now, header, out, linked)
            }
            _ => Err(DecompressError::Segment(SegmentError::Crc)),
        };
        self.reassembler = reassembler;
        result
    }

    /// Decompresses a packet that has arrived `now`, which is in [`Moment`], too, but was written there just before.
    fn header(
        &mut self,
        now: Instant,
        whole: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        let header = PacketHeader::read(whole, self.config.channel.cids()).ok_or(DecompressError::Cid)?;
        let cid = header.cid;
        if !self.config.channel.allows(cid) || cid.index() >= self.contexts.len() {
            return Err(DecompressError::Cid);
        }
        match self.dispatch(now, &header, out, linked) {
            Ok((done, is_due)) => {
                if is_due {
                    self.send_feedback(cid, AckType::Ack, Ok(done.format));
                }
                Ok(done)
            }
            Err(problem) => {
                self.note_failure(&header, &problem);
                Err(problem.error(cid, out.len()))
            }
        }
    }

    /// Returns the profile that an IR or IR-DYN packet names.
    fn named_profile(&self, header: &PacketHeader<'_>) -> Option<ProfileId> {
        let is_ir = header.first & 0b1111_1110 == 0b1111_1100 || header.first == 0b1111_1000;
        let low = header.rest.first().filter(|_| is_ir)?;
        self.config.channel.profiles().by_low_octet(*low)
    }

    /// Decompresses a packet by the profile of its context. Returns whether it is to be acknowledged, too.
    #[inline]
    fn dispatch(
        &mut self,
        now: Instant,
        header: &PacketHeader<'_>,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<(Decompressed, bool), Problem> {
        let cid = header.cid;
        self.moment.note_flow(cid.index() as u16);
        let at = self.moment.at(now);
        let slot = self.contexts.get_mut(cid.index()).ok_or(Problem::NoContext)?;
        let has_failed = slot.has_failed;
        let mut packet = IncomingPacket { at, header, config: &self.config, has_failed, linked };
        // RFC 5795, section 5.2.6: IR and IR-DYN name their profile, other packets have that of the context.
        let is_ir = header.first & 0b1111_1110 == 0b1111_1100;
        if !is_ir && header.first != 0b1111_1000 {
            let done = slot.place.decompress(&mut self.shared, &mut packet, out);
            if let Err(problem) = done {
                return self.decompress_by_clock(header, has_failed, problem, out);
            }
            (slot.failures_since_nack, slot.behind_ir_dyn) = (0, 0);
            return done;
        }
        let low = *header.rest.first().ok_or(Problem::Failure(Failure::Malformed))?;
        let profile = self.config.channel.profiles().by_low_octet(low);
        let profile = profile.ok_or(Problem::UnsupportedProfile(low))?;
        let verified = if is_ir {
            Place::initialize(&mut self.contexts, &mut self.shared, profile, &mut packet, out)?
        } else {
            slot.place.ir_dyn(&mut self.shared, profile, &packet, out)?
        };
        let slot = self.contexts.get_mut(cid.index()).ok_or(Problem::NoContext)?;
        slot.failures_since_nack = 0;
        slot.behind_ir_dyn = if is_ir { 0 } else { slot.behind_ir_dyn.max(1) };
        let context = slot.place.context_mut().ok_or(Problem::NoContext)?;
        Ok(delivered(context, &packet, verified))
    }

    /// Decompresses a packet that has failed, if pauses are ignored, as if they were not: the clock tells whether the bits of its SN have
    /// come round in a loss (RFC 3095, section 5.3.2.2.4).
    #[cold]
    fn decompress_by_clock(
        &mut self,
        header: &PacketHeader<'_>,
        has_failed: bool,
        problem: Problem,
        out: &mut [u8],
    ) -> Result<(Decompressed, bool), Problem> {
        let slot = self.contexts.get_mut(header.cid.index());
        match (&problem, self.moment.with_pauses(), slot) {
            (Problem::Failure(Failure::Crc(_)), Some(at), Some(slot)) => {
                let mut packet =
                    IncomingPacket { at, header, config: &self.config, has_failed, linked: None };
                let done = slot.place.decompress(&mut self.shared, &mut packet, out).map_err(|_| problem)?;
                (slot.failures_since_nack, slot.behind_ir_dyn) = (0, 0);
                Ok(done)
            }
            _ => Err(problem),
        }
    }
}
