//! Flows of profile 0x0081, and the interface of the profile.

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::{CoapMemory, CoapMessage, CoapPath};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, FlowKey, OutgoingPacket, Refused};
use crate::flow::sender::{Departure, Flows, Sender, Start};
use crate::id::ProfileId;

impl Sender for CoapSenderContext {
    type Packet<'p> = CoapMessage<'p>;
    const PREDICTS: bool = true;

    #[inline]
    fn is_in_use(profiles: ProfileSet, _: &CoapMemory<'_>) -> bool {
        profiles.has(ProfileId::Coap)
    }

    #[inline(always)]
    fn compress_unparsed<'m>(
        &mut self,
        packet: &[u8],
        memory: &mut CoapMemory<'m>,
        departure: &mut Departure<'_, 'm>,
    ) -> Option<Compressed> {
        self.compress_message(packet, memory, departure)
    }

    #[inline(always)]
    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        flows: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<CoapMessage<'p>>,
    ) {
        let message = recognized.insert(CoapMessage::new(packet.chain.packet()));
        let has_path = message.read_path(packet.chain).is_some();
        if has_path && message.read(packet.chain, &flows.config.coap.ports).is_some() {
            return;
        }
        if has_path && flows.memory.guessed > 0 {
            abandon(&message.path, flows);
        }
        *recognized = None;
    }

    #[inline]
    fn is_flow_of(&self, message: &CoapMessage<'_>, _: Cid, _: &CoapMemory<'_>) -> bool {
        self.is_flow_of(&message.path)
    }

    /// A datagram that only looks like CoAP stays with the flow that it has.
    fn yields(message: &CoapMessage<'_>) -> bool {
        message.by_parse
    }

    fn new(
        message: &CoapMessage<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        memory: &mut CoapMemory<'_>,
    ) -> Self {
        let mut context = Self::new(message, start.now, config);
        memory.guessed = memory.guessed.saturating_add(u32::from(message.by_parse));
        context.begin_with_base(message, config, memory);
        context
    }

    #[inline(always)]
    fn compress<'m>(
        &mut self,
        message: &CoapMessage<'_>,
        _: Option<&Self>,
        memory: &mut CoapMemory<'m>,
        departure: &mut Departure<'_, 'm>,
    ) -> Result<Compressed, Refused> {
        if message.by_parse && self.is_abandoned() {
            return Err(Refused::ByThisPacket);
        }
        let (sent, received) = match departure.linked.take() {
            Some(linked) => (Some(linked.sent), Some(&*linked.received)),
            None => (None, None),
        };
        let CoapMemory { templates, bases, .. } = memory;
        self.compress(message, &mut CoapSenderMemory { templates, sent, received, bases }, departure)
    }
}

/// Handles a packet that is not CoAP. If only a parse showed its flow to be CoAP, the flow is not CoAP from
/// now on.
#[cold]
fn abandon(path: &CoapPath, flows: &mut Flows<'_, '_, CoapSenderContext>) {
    let found = flows.table.find_flow(path, |_, context: &CoapSenderContext| context.is_flow_of(path));
    if let Some(context) = found.ok().and_then(|cid| flows.table.context_mut::<CoapSenderContext>(cid)) {
        context.abandon();
    }
}

impl FlowKey for CoapMessage<'_> {
    #[inline]
    fn key(&self, word: impl FnMut(u64)) {
        self.path.key(word);
    }
}

impl FlowKey for CoapPath {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        let half = |octets: &[u8]| octets.first_chunk().map_or(0, |half| u64::from_ne_bytes(*half));
        let [s, d] = [&self.source, &self.destination];
        // IPv4 addresses have four octets each.
        word(half(s) ^ half(d).rotate_left(32));
        if self.v6 {
            word(half(&s[8..]));
            word(half(&d[8..]));
        }
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        word(u64::from(ports) << 16 | ProfileId::Coap as u64);
    }
}
