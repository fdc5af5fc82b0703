//! Flows of profile 0x0081: which flow a CoAP message belongs to.

use thinair_wire::time::Instant;

use super::compress::{Context, Memory};
use super::{Base, Message, Path, decompress};
use crate::arrival::Moment;
use crate::channel::Integrity;
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, Key, Outgoing, Refused, SenderContext, Shared,
};
use crate::contexts::ContextState;
use crate::decompressor::{
    self, Decompressor, DecompressorConfig, Failure, Incoming, Policy, Problem, ReceiverContext, Traced,
    Verified, on_failure,
};
use crate::exchange::Linked;
use crate::feedback::{AckType, Feedback, Form};
use crate::mode::Mode;
use crate::packet::Header;
use crate::profile::{Format, Held, ProfileId};
use crate::storage::Slots;

impl SenderContext for Context {
    #[inline]
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut Outgoing<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        if !compressor.config.channel.profiles().has(ProfileId::Coap) {
            return None;
        }
        compressor.coap(packet, out)
    }

    fn form(&self) -> Form {
        Form::Rfc6846
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut Shared<'_>,
    ) -> Option<Cid> {
        self.receive_feedback(now, feedback, config.repetitions, &mut shared.templates);
        None
    }

    fn restart(&mut self, config: &CompressorConfig, shared: &mut Shared<'_>) {
        self.restart(config.repetitions, &mut shared.templates);
    }

    fn release(&mut self, shared: &mut Shared<'_>) -> bool {
        self.release(&mut shared.templates)
    }

    fn shown(&self, cid: Cid) -> ContextState {
        let (state, two_way, msn) = self.shown();
        ContextState {
            cid,
            profile: ProfileId::Coap,
            state,
            mode: Mode::with_feedback(two_way),
            sn: Some(msn),
        }
    }
}

impl Key for Path {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        let half = |octets: &[u8]| octets.first_chunk().map_or(0, |half| u64::from_ne_bytes(*half));
        let [s, d] = [&self.source, &self.destination];
        // Those of IPv4 have four octets each.
        word(half(s) ^ half(d).rotate_left(32));
        if self.v6 {
            word(half(&s[8..]));
            word(half(&d[8..]));
        }
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        word(u64::from(ports) << 16 | ProfileId::Coap as u64);
    }
}

impl<'m> Compressor<'m> {
    /// The compressor with the provisioned bases of profile 0x0081, of which at most 256 are used. They are a
    /// parameter of the channel: the decompressor must have the same, in the same order.
    pub fn with_bases(mut self, bases: Slots<'m, Base>) -> Self {
        self.shared.bases = bases;
        self
    }

    /// Templates that the contexts of profile 0x0081 have learned, as bases for flows like theirs, by CID.
    pub fn learned_bases(&self) -> impl Iterator<Item = Base> + '_ {
        let contexts = self.flows.places().filter_map(|(_, place)| Context::of(place));
        contexts.map(|context| context.learned(&self.shared.templates))
    }

    /// Compresses a CoAP message; `None` if the packet goes by another profile.
    #[inline(never)]
    fn coap(
        &mut self,
        packet: &mut Outgoing<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        let (now, mut path) = (packet.now, Path::default());
        let read = path.read(packet.chain)?;
        let Some(message) = Message::of(packet.chain, &path, read, &self.config.coap.ports) else {
            if self.shared.guessed > 0 {
                self.not_coap(&path);
            }
            return None;
        };
        let mut owes = None;
        match self.message(&message, packet, out, &mut owes) {
            Ok(compressed) => Some(Ok(compressed)),
            Err(Refused::NoRoom) => Some(Err(CompressError::OutputTooSmall { have: out.len() })),
            Err(Refused::ByThisPacket) => {
                owes.map(|cid| self.uncompressed_instead(now, cid, packet.chain.packet(), out))
            }
        }
    }

    /// Compresses a CoAP message. `owes` is set to a new context whose CID was that of a flow which held memory.
    #[inline(always)]
    fn message(
        &mut self,
        message: &Message<'_>,
        packet: &mut Outgoing<'_, '_, 'm>,
        out: &mut [u8],
        owes: &mut Option<Cid>,
    ) -> Result<Compressed, Refused> {
        let now = packet.now;
        let hash = self.flows.hash(message.path);
        let found = self.flows.find::<Context>(hash, |_, context| context.is_flow_of(message.path));
        let cid = match found {
            Some(cid) => cid,
            None if self.flows.is_rejected(hash, now) => return Err(Refused::ByThisPacket),
            // One datagram that looks like CoAP does not leave its flow.
            None if message.by_parse && self.has_flow(packet) => return Err(Refused::ByThisPacket),
            None => {
                let pair = self.flows.pair(message.packet);
                if !self.flows.admits(pair) {
                    return Err(Refused::ByThisPacket);
                }
                let cid = self.flows.claim(hash, pair).ok_or(Refused::ByThisPacket)?;
                *owes = self.release(cid).then_some(cid);
                self.flows.set(cid, Context::new(message, now, &self.config));
                self.shared.guessed = self.shared.guessed.saturating_add(u32::from(message.by_parse));
                cid
            }
        };
        let (sent, received) = match packet.linked.take() {
            Some(linked) => (Some(linked.sent), Some(&*linked.received)),
            None => (None, None),
        };
        let Shared { templates, bases, .. } = &mut self.shared;
        let mut memory = Memory { templates, sent, received, bases };
        self.flows.touch(cid);
        if self.flows.rests(cid) {
            return Err(Refused::ByThisPacket);
        }
        let context = self.flows.context_mut::<Context>(cid).ok_or(Refused::ByThisPacket)?;
        if message.by_parse && context.is_abandoned() {
            return Err(Refused::ByThisPacket);
        }
        if found.is_none() {
            context.begin_with_base(message, &self.config, &mut memory);
        }
        let compressed = context.compress(now, message, cid, &self.config, &mut memory, out)?;
        self.note_cost(&compressed);
        Ok(compressed)
    }

    /// A packet is not CoAP: if its flow was taken for it by a parse alone, it is not, any more.
    #[cold]
    fn not_coap(&mut self, path: &Path) {
        let hash = self.flows.hash(path);
        let found = self.flows.find::<Context>(hash, |_, context| context.is_flow_of(path));
        if let Some(context) = found.and_then(|cid| self.flows.context_mut::<Context>(cid)) {
            context.abandon();
        }
    }
}

impl<'m> Decompressor<'m> {
    /// The decompressor with the provisioned bases of profile 0x0081, the same as the compressor has.
    pub fn with_bases(mut self, bases: Slots<'m, Base>) -> Self {
        self.shared.bases = bases;
        self
    }
}

/// Memory that the contexts of a channel share.
fn memory<'a, 'm>(
    linked: Option<Linked<'a, 'm>>,
    config: &DecompressorConfig,
    shared: &'a mut decompressor::Shared<'m>,
) -> decompress::Memory<'a, 'm> {
    let (sent, received) = match linked {
        Some(linked) => (Some(&*linked.sent), Some(linked.received)),
        None => (None, None),
    };
    let may_elide = config.channel.integrity_below() != Integrity::None;
    decompress::Memory { templates: &mut shared.templates, sent, received, bases: &shared.bases, may_elide }
}

impl ReceiverContext for decompress::Context {
    fn new(_: ProfileId) -> Self {
        Self::new()
    }

    fn profile(&self) -> ProfileId {
        ProfileId::Coap
    }

    fn initialize<'m>(
        decompressor: &mut Decompressor<'m>,
        _: ProfileId,
        packet: Incoming<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Result<Verified, Problem> {
        let (at, header) = (packet.at, packet.header);
        let Decompressor { config, shared, contexts, .. } = decompressor;
        let place =
            contexts.get_mut(header.cid.index()).map(|slot| &mut slot.place).ok_or(Problem::NoContext)?;
        let mut memory = memory(packet.linked, config, shared);
        if let Some(context) = Self::of_mut(place) {
            let verified = context.initialize(header, &mut memory, out)?;
            context.arrivals.note(at, 1);
            return Ok(verified);
        }
        let mut context = Self::new();
        let verified = context.initialize(header, &mut memory, out)?;
        context.arrivals.note(at, 1);
        decompressor.set(header.cid, context);
        Ok(verified)
    }

    fn decompress<'m>(
        &mut self,
        packet: Incoming<'_, '_, 'm>,
        config: &DecompressorConfig,
        shared: &mut decompressor::Shared<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut memory = memory(packet.linked, config, shared);
        let verified = self.compressed(packet.at, packet.header, &mut memory, out);
        if verified.is_err() {
            self.arrivals.note_failure();
        }
        verified
    }

    fn release(&mut self, shared: &mut decompressor::Shared<'_>) {
        self.release(&mut shared.templates);
    }

    fn dissect<'p>(
        &self,
        packet: &Header<'p>,
        _: &DecompressorConfig,
        shared: &decompressor::Shared<'_>,
        tell: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        self.dissect(packet, &shared.templates, &shared.bases, tell)
    }

    fn shown(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (state, sn) = (self.state.name(), Some(u32::from(self.msn())));
        ContextState { cid, profile: ProfileId::Coap, state, mode: config.mode, sn }
    }

    #[inline]
    fn note_success(&mut self, _: u8, _: Format, wanted: Mode) -> bool {
        self.failures <<= 1;
        wanted != Mode::Unidirectional && (self.ack_due || self.has_report())
    }

    fn note_failure(
        &mut self,
        _: Moment,
        _: u8,
        failure: Option<&Failure>,
        policy: &Policy<'_>,
    ) -> Option<AckType> {
        if let Some(Failure::OnTrial(_)) = failure {
            return None;
        }
        self.note_failure(failure);
        if let Some(Failure::NoMemory) = failure {
            return Some(AckType::StaticNack);
        }
        let has_many_failures = policy.config.nack.is_reached(self.failures);
        // A template that was lost is not found by waiting.
        let is_urgent = matches!(failure, Some(Failure::UnknownTemplate(_)));
        let is_damaged = policy.is_two_way && self.is_beyond_repair(policy.config.static_nack.k);
        on_failure(&mut self.state, has_many_failures, is_urgent, is_damaged)
    }

    fn complete(&mut self, element: Feedback, format: Option<Format>, _: &DecompressorConfig) -> Feedback {
        let element =
            Feedback { loss: self.report(), ..element.with_msn(Form::Rfc6846, self.state, self.msn()) };
        let is_first = format.is_some_and(Format::is_initialization);
        if element.ack != AckType::Ack || is_first || element.loss.is_some() {
            return element;
        }
        // FEEDBACK-1: the compressor knows already that there is feedback.
        Feedback { sn: element.sn & 0xFF, sn_bits: 8, protected: false, ..element }
    }
}
