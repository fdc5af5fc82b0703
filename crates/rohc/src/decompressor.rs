//! The decompressor of a channel: ROHC packets in, IP packets and feedback out.

mod contexts;
mod outcome;
mod react;

use core::time::Duration;

use thinair_wire::coder::{Reader, Tracer};
use thinair_wire::crc::Check;

pub use thinair_wire::coder::Traced;

use crate::arrival::{Arrival, Moment};
use crate::channel::{Channel, Integrity};
use crate::cid::Cid;
use crate::exchange::Exchanges;
use crate::feedback::Feedback;
use crate::mode::Mode;
use crate::packet::{self, Body, Header, PartsError};
use crate::profile::coap::{self, Base, Template, Templates};
use crate::profile::rfc3095::decompress::Context;
use crate::profile::rfc3095::table::Pool;
use crate::profile::rfc6846::{self, TcpRoom};
use crate::profile::{Format, ProfileId, uncompressed};
use crate::segmentation::{Reassembler, SegmentError};
use crate::state::DecompressorState;
use crate::storage::Slots;

pub use crate::profile::rfc3095::table::Block;
pub(crate) use outcome::{Failure, Unbuildable, Verified, verify_crc8};

/// Feedback that waits to be sent; the oldest goes when more is made than polled.
const PENDING: usize = 8;

/// What a decompressor is told at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressorConfig {
    /// The channel, as agreed with the compressor.
    pub channel: Channel,
    /// The mode that feedback asks for. Unidirectional makes no feedback at all, unless a context has to be brought back to
    /// it. A request is repeated until the compressor has answered it; one that declines is not asked again (RFC 3843,
    /// section 3.4).
    pub mode: Mode,
    /// `k_1` of `n_1`: so many of the last packets must fail before the dynamic context is given up (RFC 3095,
    /// section 5.3.2.2.3 b); n at most 16. A packet that passes 7 or 8 bits of CRC starts anew.
    pub nack: Threshold,
    /// The same in U-mode, where the compressor does not hear of it: every packet up to the next refresh is the
    /// price of a false alarm, so damage in a few packets should not be taken for damage of the context.
    pub one_way: Threshold,
    /// `k_2` of `n_2`: so many of the last updates must fail before the static context is given up (c).
    pub static_nack: Threshold,
    /// Least time between two negative acknowledgments of the same kind for one CID.
    pub nack_interval: Duration,
    /// Deliver IR and IR-DYN packets without payload. RFC 3095, section 5.7.7, forbids it: such a packet only
    /// refreshes the context. Some compressors send packets without payload that way all the same.
    pub deliver_empty: bool,
    /// Resolution in milliseconds of the clock from which times come, 1 to 255, which tells compressors that they may
    /// use a timer for timestamps (CLOCK option, RFC 3095, section 5.7.6.7). `None` tells nothing.
    pub clock: Option<u8>,
    /// Keep what extension 3 of UO-1-ID says. RFC 3095, section 5.7.3, forbids it, and RFC 4815, section 6.2: such
    /// packets update SN, TS and IP-ID alone. Some compressors count on it all the same.
    pub uo_1_id_updates: bool,
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
            deliver_empty: false,
            clock: None,
            uo_1_id_updates: false,
        }
    }
}

/// `k` out of the last `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Failures, 1 to `n`.
    pub k: u8,
    /// Packets looked back at, 1 to 16.
    pub n: u8,
}

impl Threshold {
    fn reached(self, failures: u16) -> bool {
        let seen = failures & u16::MAX.checked_shr(16 - u32::from(self.n.clamp(1, 16))).unwrap_or(u16::MAX);
        seen.count_ones() >= u32::from(self.k)
    }
}

/// The memory of a decompressor, sized at start.
#[derive(Debug)]
pub struct DecompressorMemory<'m> {
    /// One place per context: [`Channel::contexts`] of them.
    pub contexts: Slots<'m, DecompressorContext>,
    /// Blocks for extension headers.
    pub blocks: Slots<'m, Block>,
    /// Templates of CoAP messages, for all flows together; a flow takes at most 16.
    pub templates: Slots<'m, Template>,
    /// Places for the flows of profile 0x0006, by CID: as many as contexts, or none. A flow whose CID has none is
    /// rejected.
    pub tcp: Slots<'m, TcpRoom>,
    /// Room for a reconstructed unit: [`Channel::mrru`] octets.
    pub unit: Slots<'m, u8>,
}

impl DecompressorMemory<'_> {
    /// Octets of all of it.
    pub fn octets(&self) -> usize {
        self.contexts.octets()
            + self.blocks.octets()
            + self.templates.octets()
            + self.tcp.octets()
            + self.unit.octets()
    }
}

#[cfg(feature = "alloc")]
impl DecompressorMemory<'static> {
    /// Memory for `channel` with `blocks` blocks for extension headers.
    pub fn owned(channel: &Channel, blocks: usize) -> Self {
        Self {
            contexts: Slots::owned(alloc::vec![DecompressorContext::EMPTY; channel.contexts()]),
            blocks: Slots::owned(alloc::vec![Block::default(); blocks]),
            templates: Slots::owned(alloc::vec![Template::EMPTY; coap::templates_for(channel)]),
            tcp: Slots::owned(alloc::vec![TcpRoom::EMPTY; rfc6846::rooms_for(channel)]),
            unit: Slots::owned(alloc::vec![0; channel.mrru()]),
        }
    }
}

/// The place of one context.
#[derive(Clone, Copy, Debug)]
pub struct DecompressorContext {
    kind: Kind,
    /// No negative acknowledgment goes before; milliseconds, modulo 2^32, or 0.
    quiet_until: u32,
    /// Failing packets since the last negative acknowledgment.
    unheard: u8,
    /// A packet has failed, or was held back, sometime: the channel is not without damage.
    has_failed: bool,
}

#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "places are of one size, and nothing is allocated")]
enum Kind {
    Empty,
    Uncompressed,
    Rfc3095(Context),
    Coap(coap::decompress::Context),
    Tcp(rfc6846::decompress::Context),
}

impl Kind {
    /// Gives the memory of a context that is given up back to the channel.
    fn release(&mut self, pool: &mut Pool<'_>, templates: &mut Templates<'_>) {
        match self {
            Self::Rfc3095(context) => context.release(pool),
            Self::Coap(context) => context.release(templates),
            Self::Empty | Self::Uncompressed | Self::Tcp(_) => {}
        }
    }
}

impl DecompressorContext {
    /// No context.
    pub const EMPTY: Self = Self { kind: Kind::Empty, quiet_until: 0, unheard: 0, has_failed: false };
}

/// What became of a packet that the decompressor took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decompressed {
    /// The context.
    pub cid: Cid,
    /// Its profile.
    pub profile: ProfileId,
    /// The format of the packet.
    pub format: Format,
    /// Octets of the ROHC header, CID included, padding and feedback not.
    pub header_in: usize,
    /// Octets of the headers that were rebuilt.
    pub header_out: usize,
    /// Octets of the IP packet; 0 if the packet only updated the context.
    pub len: usize,
}

/// Why nothing is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecompressError {
    /// The packet cannot be taken apart.
    Packet(PartsError),
    /// The packet holds feedback only, or a segment that is not the last of its unit: nothing is wrong.
    NothingYet,
    /// A reconstructed unit is discarded.
    Segment(SegmentError),
    /// The CID cannot be read or is beyond MAX_CID.
    Cid,
    /// There is no context, and the packet cannot make one.
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
    /// The packet names a message of the other direction that is not known.
    UnknownRequest(Cid, Format),
    /// The packet may be a late one or a duplicate (RFC 4224), and would then say something else.
    Ambiguous(Cid, Format),
    /// The context was repaired; this packet is held back (RFC 3095, section 5.3.2.2.4 e).
    OnTrial(Cid, Format),
    /// No memory for the extension headers of the flow.
    NoMemory(Cid),
    /// `out` is too short.
    OutputTooSmall {
        /// Octets that are needed.
        need: usize,
        /// Octets that are there.
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
            Self::Packet(PartsError::Empty) => write!(f, "the packet has neither feedback nor header"),
            Self::Packet(PartsError::Feedback { offset, need, have }) => {
                write!(f, "the feedback element at octet {offset} needs {need} octets, there are {have}")
            }
            Self::NothingYet => write!(f, "feedback only, or a segment of a unit that goes on"),
            Self::Segment(SegmentError::TooLarge) => write!(f, "the reconstructed unit is larger than MRRU"),
            Self::Segment(SegmentError::Crc) => write!(f, "the CRC of the reconstructed unit is wrong"),
            Self::Cid => write!(f, "the CID cannot be read or is beyond MAX_CID"),
            Self::NoContext(cid) => write!(f, "CID {}: there is no context", cid.value()),
            Self::UnsupportedProfile(cid, profile) => {
                write!(f, "CID {}: the channel has no profile 0x..{profile:02X}", cid.value())
            }
            Self::Malformed(cid) => write!(f, "CID {}: no packet of its profile", cid.value()),
            Self::NotAllowed(cid, format) => {
                write!(f, "CID {}: {} needs a better context", cid.value(), format.name())
            }
            Self::Crc(cid, format) => {
                write!(f, "CID {}: the CRC of {} does not match", cid.value(), format.name())
            }
            Self::UnknownItem(cid, format) => {
                write!(f, "CID {}: {} names a list item that was never received", cid.value(), format.name())
            }
            Self::UnknownTemplate(cid, format) => {
                write!(f, "CID {}: {} names a template that was never received", cid.value(), format.name())
            }
            Self::UnknownRequest(cid, format) => {
                write!(f, "CID {}: {} names a request that was never sent", cid.value(), format.name())
            }
            Self::Ambiguous(cid, format) => {
                write!(f, "CID {}: {} may be late or a duplicate", cid.value(), format.name())
            }
            Self::OnTrial(cid, format) => {
                write!(f, "CID {}: {} is held back after a repair", cid.value(), format.name())
            }
            Self::NoMemory(cid) => write!(f, "CID {}: no memory for its extension headers", cid.value()),
            Self::OutputTooSmall { need, have } => {
                write!(f, "the packet needs {need} octets of room, there are {have}")
            }
        }
    }
}

impl core::error::Error for DecompressError {}

/// The decompressor of one channel.
///
/// **After each [`decompress`](Self::decompress) drain [`poll_feedback`](Self::poll_feedback)** and carry what
/// it gives to the compressor of the channel. Feedback that stands in front of a packet is for the compressor
/// of *this* side: take it from [`packet::parts`], or let an `Endpoint` do it.
#[derive(Debug)]
pub struct Decompressor<'m> {
    config: DecompressorConfig,
    contexts: Slots<'m, DecompressorContext>,
    pool: Pool<'m>,
    templates: Templates<'m>,
    tcp: Slots<'m, TcpRoom>,
    bases: Slots<'m, Base>,
    reassembler: Reassembler<'m>,
    pending: [Option<Feedback>; PENDING],
    moment: Moment,
}

/// The messages of both directions, which an endpoint lends to its decompressor.
pub(crate) struct Linked<'a, 'm> {
    pub(crate) sent: &'a Exchanges<'m>,
    pub(crate) received: &'a mut Exchanges<'m>,
}

impl<'m> Decompressor<'m> {
    /// A decompressor in `memory`. Fewer places than the channel has contexts make it refuse higher CIDs.
    pub fn new(config: DecompressorConfig, mut memory: DecompressorMemory<'m>) -> Self {
        memory.contexts.fill(DecompressorContext::EMPTY);
        Self {
            config,
            contexts: memory.contexts,
            pool: Pool::new(memory.blocks),
            templates: Templates::new(memory.templates),
            tcp: memory.tcp,
            bases: Slots::Lent(&mut []),
            reassembler: Reassembler::new(memory.unit),
            pending: [None; PENDING],
            moment: Moment::default(),
        }
    }

    /// The decompressor with the provisioned bases of profile 0x0081, the same as the compressor has.
    pub fn with_bases(self, bases: Slots<'m, Base>) -> Self {
        Self { bases, ..self }
    }

    /// Asks for another mode from now on. Each context of the RFC 3095 family that has one goes there with its next packets, by
    /// the handshake of RFC 3095, section 5.6. A transition that is under way is finished before.
    pub fn set_mode(&mut self, mode: Mode) {
        self.config.mode = mode;
    }

    /// Decompresses one ROHC packet to the start of `out`. Room for 200 octets more than the packet is enough
    /// unless extension headers are longer than that.
    ///
    /// `arrival` is the time, or an [`Arrival`] where the carrier counts what it loses: behind a loss more packets are
    /// then known to be right.
    pub fn decompress(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        self.decompress_linked(arrival.into(), packet, out, None)
    }

    /// [`decompress`](Self::decompress), with the messages of both directions.
    pub(crate) fn decompress_linked(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        self.moment.advance(arrival);
        let now = self.moment;
        if packet.first().is_some_and(|first| *first < packet::PADDING) {
            // Most packets: neither padding, Add-CID, feedback, IR nor segment.
            self.reassembler.abort();
            return self.header(now, packet, out, linked);
        }
        match packet::parts(packet).map_err(DecompressError::Packet)?.body {
            Body::Empty => Err(DecompressError::NothingYet),
            Body::Header(whole) => {
                self.reassembler.abort();
                self.header(now, whole, out, linked)
            }
            Body::Segment { last, octets } => match self.reassembler.add(last, octets) {
                None => Err(DecompressError::NothingYet),
                Some(Err(error)) => Err(DecompressError::Segment(error)),
                Some(Ok(len)) => self.reconstructed(now, len, out, linked),
            },
        }
    }

    /// Writes the next feedback element to the start of `out` and returns its length; `None` when there is
    /// none. [`MAX_ELEMENT`](crate::feedback::MAX_ELEMENT) octets are always enough.
    pub fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        let space = self.config.channel.cids();
        let len = self.pending[0]?.write(space, out)?;
        self.pending[0] = None;
        self.pending.rotate_left(1);
        Some(len)
    }

    /// Tells the fields of a header, as far as its context allows, and returns CID, profile and format. Changes
    /// nothing: dissect first, then decompress.
    pub fn dissect<'p>(
        &self,
        packet: &'p [u8],
        mut tell: impl FnMut(Traced<'p>),
    ) -> Option<(Cid, ProfileId, Format)> {
        let Ok(packet::Parts { body: Body::Header(whole), .. }) = packet::parts(packet) else { return None };
        let header = Header::read(whole, self.config.channel.cids())?;
        let kind = &self.contexts.get(header.cid.index())?.kind;
        let named = self.named_profile(&header);
        match (named, kind) {
            (Some(ProfileId::Uncompressed), _) => {
                let mut tracer = Tracer::new(Reader::new(header.first, header.rest), tell);
                let _ = uncompressed::ir(&mut tracer);
                Some((header.cid, ProfileId::Uncompressed, Format::Ir))
            }
            (Some(ProfileId::Coap), Kind::Coap(context)) => {
                let format = context.dissect(&header, &self.templates, &self.bases, tell)?;
                Some((header.cid, ProfileId::Coap, format))
            }
            (Some(ProfileId::Coap), _) => {
                let context = coap::decompress::Context::new();
                let format = context.dissect(&header, &self.templates, &self.bases, tell)?;
                Some((header.cid, ProfileId::Coap, format))
            }
            (None, Kind::Coap(context)) => {
                let format = context.dissect(&header, &self.templates, &self.bases, tell)?;
                Some((header.cid, ProfileId::Coap, format))
            }
            (Some(ProfileId::Tcp), _) | (None, Kind::Tcp(_)) => {
                let room = self.tcp.get(header.cid.index())?;
                let new = rfc6846::decompress::Context::new();
                let context = if let Kind::Tcp(context) = kind { context } else { &new };
                let format = context.dissect(&header, room, self.config.channel.cids(), tell)?;
                Some((header.cid, ProfileId::Tcp, format))
            }
            (Some(profile), Kind::Rfc3095(context)) if context.profile == profile => {
                let format = context.dissect(&header, &self.pool, tell)?;
                Some((header.cid, profile, format))
            }
            (Some(profile), _) => {
                let format = Context::new(profile).dissect(&header, &self.pool, tell)?;
                Some((header.cid, profile, format))
            }
            (None, Kind::Rfc3095(context)) => {
                let format = context.dissect(&header, &self.pool, tell)?;
                Some((header.cid, context.profile, format))
            }
            (None, Kind::Uncompressed) => {
                let octets = header.rest;
                tell(Traced { name: "IP packet", bits: 8, value: u32::from(header.first), octets: &[] });
                tell(Traced { name: "IP packet", bits: octets.len() as u32 * 8, value: 0, octets });
                Some((header.cid, ProfileId::Uncompressed, Format::Normal))
            }
            (None, Kind::Empty) => None,
        }
    }

    /// Octets of memory for one context, without extension headers, and for a block of those.
    pub const fn octets_per_context() -> (usize, usize) {
        (size_of::<DecompressorContext>(), size_of::<Block>())
    }

    /// RFC 5795, section 5.2.5.2: a reconstructed unit holds neither padding, feedback nor segments.
    fn reconstructed(
        &mut self,
        now: Moment,
        len: usize,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        // The unit is moved out of the way while it is read, and back so that its room is kept.
        let reassembler = core::mem::replace(&mut self.reassembler, Reassembler::new(Slots::Lent(&mut [])));
        let whole = reassembler.packet(len);
        let result = match packet::parts(whole) {
            Ok(packet::Parts { feedback, body: Body::Header(header) })
                if feedback.octets().is_empty() && header.len() == whole.len() =>
            {
                self.header(now, header, out, linked)
            }
            _ => Err(DecompressError::Segment(SegmentError::Crc)),
        };
        self.reassembler = reassembler;
        result
    }

    fn header(
        &mut self,
        now: Moment,
        whole: &[u8],
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, DecompressError> {
        let header = Header::read(whole, self.config.channel.cids()).ok_or(DecompressError::Cid)?;
        let cid = header.cid;
        if !self.config.channel.allows(cid) || cid.index() >= self.contexts.len() {
            return Err(DecompressError::Cid);
        }
        let outcome = self.dispatch(now, &header, out, linked);
        self.react(now, cid, header.first, &outcome);
        outcome.map_err(|failure| failure.error(cid, out.len()))
    }

    /// The profile that an IR or IR-DYN packet names.
    fn named_profile(&self, header: &Header<'_>) -> Option<ProfileId> {
        let is_ir = header.first & 0b1111_1110 == 0b1111_1100 || header.first == 0b1111_1000;
        let low = header.rest.first().filter(|_| is_ir)?;
        self.config.channel.profiles().by_low_octet(*low)
    }

    fn dispatch(
        &mut self,
        now: Moment,
        header: &Header<'_>,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, Problem> {
        // RFC 5795, section 5.2.6: IR and IR-DYN name their profile, other packets have that of the context.
        if header.first & 0b1111_1110 == 0b1111_1100 {
            return self.ir(now, header, out, linked);
        }
        if header.first == 0b1111_1000 {
            return self.ir_dyn(now, header, out);
        }
        let cid = header.cid;
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return Err(Problem::NoContext) };
        match &mut slot.kind {
            Kind::Rfc3095(context) => {
                let profile = context.profile;
                context
                    .compressed(
                        now,
                        header,
                        self.config.uo_1_id_updates,
                        slot.has_failed,
                        &mut self.pool,
                        out,
                    )
                    .map(|verified| delivered(cid, profile, verified))
                    .map_err(|failure| {
                        context.arrivals.note_failure();
                        Problem::Failure(failure)
                    })
            }
            Kind::Coap(context) => {
                let may_elide = self.config.channel.integrity_below() != Integrity::None;
                context
                    .compressed(
                        now,
                        header,
                        &mut memory(&mut self.templates, linked, &self.bases, may_elide),
                        out,
                    )
                    .map(|verified| delivered(cid, ProfileId::Coap, verified))
                    .map_err(|failure| {
                        context.arrivals.note_failure();
                        Problem::Failure(failure)
                    })
            }
            Kind::Tcp(context) => {
                let room = self.tcp.get_mut(cid.index()).ok_or(Problem::NoContext)?;
                context
                    .compressed(now, header, room, out)
                    .map(|verified| delivered(cid, ProfileId::Tcp, verified))
                    .map_err(Problem::Failure)
            }
            Kind::Uncompressed => normal(header, out)
                .map(|verified| delivered(cid, ProfileId::Uncompressed, verified))
                .map_err(Problem::Failure),
            Kind::Empty => Err(Problem::NoContext),
        }
    }

    /// An IR packet, of whatever profile.
    #[inline(never)]
    fn ir(
        &mut self,
        now: Moment,
        header: &Header<'_>,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Result<Decompressed, Problem> {
        let cid = header.cid;
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return Err(Problem::NoContext) };
        let (profiles, deliver_empty) = (self.config.channel.profiles(), self.config.deliver_empty);
        let may_elide = self.config.channel.integrity_below() != Integrity::None;
        let pool = &mut self.pool;
        let mut memory = memory(&mut self.templates, linked, &self.bases, may_elide);
        let low = *header.rest.first().ok_or(Problem::Failure(Failure::Malformed))?;
        let profile = profiles.by_low_octet(low).ok_or(Problem::UnsupportedProfile(low))?;
        if profile == ProfileId::Uncompressed {
            let verified = uncompressed_ir(header, out).map_err(Problem::Failure)?;
            slot.kind.release(pool, memory.templates);
            slot.kind = Kind::Uncompressed;
            return Ok(delivered(cid, profile, verified));
        }
        if profile == ProfileId::Tcp {
            let context = match slot.kind {
                Kind::Tcp(context) => context,
                _ => rfc6846::decompress::Context::new(),
            };
            let (mut context, verified) = self.segment(header, context, out)?;
            context.arrivals.note(now, 1);
            let Some(slot) = self.contexts.get_mut(cid.index()) else { return Err(Problem::NoContext) };
            slot.kind.release(&mut self.pool, &mut self.templates);
            slot.kind = Kind::Tcp(context);
            return Ok(delivered(cid, profile, verified));
        }
        if profile == ProfileId::Coap {
            if let Kind::Coap(context) = &mut slot.kind {
                let verified = context.initialize(header, &mut memory, out).map_err(Problem::Failure)?;
                context.arrivals.note(now, 1);
                return Ok(delivered(cid, profile, verified));
            }
            let mut context = coap::decompress::Context::new();
            let verified = context.initialize(header, &mut memory, out).map_err(Problem::Failure)?;
            context.arrivals.note(now, 1);
            slot.kind.release(pool, memory.templates);
            slot.kind = Kind::Coap(context);
            return Ok(delivered(cid, profile, verified));
        }
        if let Kind::Rfc3095(context) = &mut slot.kind
            && context.profile == profile
        {
            let verified = context.ir(now, header, deliver_empty, pool, out).map_err(Problem::Failure)?;
            return Ok(delivered(cid, profile, verified));
        }
        // A new context (RFC 5795, section 5.1.1), once the packet is verified.
        let mode = match &slot.kind {
            Kind::Rfc3095(before) => before.mode.after(),
            _ => Default::default(),
        };
        let mut context = Context::new(profile);
        let mut verified = context.ir(now, header, deliver_empty, pool, out);
        if verified == Err(Failure::NoMemory) {
            // Its CRC was right: the compressor has given back what the context before held.
            context.release(pool);
            slot.kind.release(pool, memory.templates);
            slot.kind = Kind::Empty;
            context = Context::new(profile);
            verified = context.ir(now, header, deliver_empty, pool, out);
        }
        let verified = verified.map_err(|failure| {
            context.release(pool);
            Problem::Failure(failure)
        })?;
        context.mode = mode;
        slot.kind.release(pool, memory.templates);
        slot.kind = Kind::Rfc3095(context);
        Ok(delivered(cid, profile, verified))
    }

    /// An IR or IR-CR packet of profile 0x0006, for a context of the CID or a new one.
    fn segment(
        &mut self,
        header: &Header<'_>,
        mut context: rfc6846::decompress::Context,
        out: &mut [u8],
    ) -> Result<(rfc6846::decompress::Context, Verified), Problem> {
        let (cid, space) = (header.cid, self.config.channel.cids());
        if cid.index() >= self.tcp.len() {
            return Err(Problem::Failure(Failure::NoMemory));
        }
        let verified = if header.first == 0xFC {
            let base = rfc6846::decompress::Context::base_of(header, space).map_err(Problem::Failure)?;
            let base = base.unwrap_or(cid);
            let is_full = |place: &DecompressorContext| match &place.kind {
                Kind::Tcp(context) => context.state == DecompressorState::Fc,
                _ => false,
            };
            // RFC 4164, section 3.4: without its base the packet cannot be decompressed.
            self.contexts.get(base.index()).filter(|place| is_full(place)).ok_or(Problem::NoContext)?;
            let base = *self.tcp.get(base.index()).ok_or(Problem::NoContext)?;
            context.ir_cr(header, space, &base, &mut self.tcp[cid.index()], out)
        } else {
            context.ir(header, &mut self.tcp[cid.index()], out)
        };
        Ok((context, verified.map_err(Problem::Failure)?))
    }

    /// An IR-DYN packet, of whatever profile.
    #[inline(never)]
    fn ir_dyn(&mut self, now: Moment, header: &Header<'_>, out: &mut [u8]) -> Result<Decompressed, Problem> {
        let cid = header.cid;
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return Err(Problem::NoContext) };
        let (profiles, deliver_empty) = (self.config.channel.profiles(), self.config.deliver_empty);
        let pool = &mut self.pool;
        let low = *header.rest.first().ok_or(Problem::Failure(Failure::Malformed))?;
        let profile = profiles.by_low_octet(low).ok_or(Problem::UnsupportedProfile(low))?;
        match &mut slot.kind {
            Kind::Rfc3095(context) if context.profile == profile => context
                .ir_dyn(now, header, deliver_empty, pool, out)
                .map(|verified| delivered(cid, profile, verified))
                .map_err(Problem::Failure),
            // RFC 3843, section 3.5: the IP profile may take over a static chain by IR-DYN.
            Kind::Rfc3095(context) if profile == ProfileId::Ip => {
                let mut taken = context.taken_over(profile);
                let verified =
                    taken.ir_dyn(now, header, deliver_empty, pool, out).map_err(Problem::Failure)?;
                *context = taken;
                Ok(delivered(cid, profile, verified))
            }
            Kind::Tcp(context) if profile == ProfileId::Tcp => {
                let room = self.tcp.get_mut(cid.index()).ok_or(Problem::NoContext)?;
                let verified = context.ir_dyn(header, room, out).map_err(Problem::Failure)?;
                context.arrivals.note(now, 1);
                Ok(delivered(cid, profile, verified))
            }
            Kind::Rfc3095(_) | Kind::Coap(_) | Kind::Tcp(_) | Kind::Uncompressed => {
                Err(Problem::Failure(Failure::Malformed))
            }
            Kind::Empty => Err(Problem::NoContext),
        }
    }
}

/// A failure, or what is wrong before a profile is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Failure(Failure),
    NoContext,
    UnsupportedProfile(u8),
}

impl Problem {
    fn error(self, cid: Cid, have: usize) -> DecompressError {
        match self {
            Self::NoContext => DecompressError::NoContext(cid),
            Self::UnsupportedProfile(low) => DecompressError::UnsupportedProfile(cid, low),
            Self::Failure(Failure::Malformed) => DecompressError::Malformed(cid),
            Self::Failure(Failure::NotAllowed(format)) => DecompressError::NotAllowed(cid, format),
            Self::Failure(Failure::Crc(format)) => DecompressError::Crc(cid, format),
            Self::Failure(Failure::UnknownItem(format)) => DecompressError::UnknownItem(cid, format),
            Self::Failure(Failure::UnknownTemplate(format)) => DecompressError::UnknownTemplate(cid, format),
            Self::Failure(Failure::NoRequest(format)) => DecompressError::UnknownRequest(cid, format),
            Self::Failure(Failure::Ambiguous(format) | Failure::Suspect(format)) => {
                DecompressError::Ambiguous(cid, format)
            }
            Self::Failure(Failure::OnTrial(format)) => DecompressError::OnTrial(cid, format),
            Self::Failure(Failure::NoMemory) => DecompressError::NoMemory(cid),
            Self::Failure(Failure::NoRoom(need)) => DecompressError::OutputTooSmall { need, have },
        }
    }
}

/// What a packet came to, as the caller is told.
#[inline]
fn delivered(cid: Cid, profile: ProfileId, verified: Verified) -> Decompressed {
    let Verified { format, header_in, header_out, len } = verified;
    Decompressed { cid, profile, format, header_in, header_out, len }
}

/// What the contexts of profile 0x0081 share.
fn memory<'a, 'm>(
    templates: &'a mut Templates<'m>,
    linked: Option<Linked<'a, 'm>>,
    bases: &'a [Base],
    may_elide: bool,
) -> coap::decompress::Memory<'a, 'm> {
    let (sent, received) = match linked {
        Some(Linked { sent, received }) => (Some(sent), Some(received)),
        None => (None, None),
    };
    coap::decompress::Memory { templates, sent, received, bases, may_elide }
}

/// IR packet of profile 0x0000.
fn uncompressed_ir(header: &Header<'_>, out: &mut [u8]) -> Result<Verified, Failure> {
    let mut reader = Reader::new(header.first, header.rest);
    uncompressed::ir(&mut reader).map_err(|_| Failure::Malformed)?;
    let payload = reader.remaining();
    let header_in = header.len_before(payload);
    // The CRC is the last octet of the header and does not cover itself.
    let covered = header.whole.get(..header_in - 1).ok_or(Failure::Malformed)?;
    if reader.crc_read() != Some((8, Check::Crc8.of(covered))) {
        return Err(Failure::Crc(Format::Ir));
    }
    let room = out.get_mut(..payload.len()).ok_or(Failure::NoRoom(payload.len()))?;
    room.copy_from_slice(payload);
    Ok(Verified { format: Format::Ir, header_in, header_out: 0, len: payload.len() })
}

/// Normal packet of profile 0x0000.
fn normal(header: &Header<'_>, out: &mut [u8]) -> Result<Verified, Failure> {
    if !matches!(header.first >> 4, 4 | 6) {
        return Err(Failure::Malformed);
    }
    let len = 1 + header.rest.len();
    let [first, room @ ..] = out.get_mut(..len).ok_or(Failure::NoRoom(len))? else {
        return Err(Failure::NoRoom(len));
    };
    *first = header.first;
    room.copy_from_slice(header.rest);
    Ok(Verified { format: Format::Normal, header_in: header.whole.len() - len, header_out: 0, len })
}
