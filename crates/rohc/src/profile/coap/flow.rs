//! Flows of profile 0x0181, and the interface of the profile.

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::ports::ContextUse;
use super::state::PortMode;
use super::{CoapMemory, CoapMessage, CoapPath};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, FlowKey, OutgoingPacket, Refused, address_words};
use crate::flow::sender::{Departure, Flows, Sender, Start};
use crate::flow::table::HASH;
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

    /// A flow of another port than the last one takes over its context. One that comes back keeps it.
    #[inline]
    fn find(message: &mut CoapMessage<'_>, flows: &mut Flows<'_, '_, Self>) -> Result<Cid, u32> {
        let path = &message.path;
        if path.port_mode == PortMode::Fixed {
            return flows.find(message);
        }
        let newest = flows.table.latest().next().and_then(|cid| Some((cid, flows.context(cid)?)));
        if let Some((newest, _)) = newest.filter(|(_, context)| context.is_flow_of(path)) {
            return Ok(newest);
        }
        // Flows of the same hosts share one context.
        let shared = if let Some((newest, _)) = newest.filter(|(_, context)| context.is_shared_by(path)) {
            Ok(newest)
        } else {
            let hash = flows.table.hash(path);
            let found = flows.table.find(hash, |_, context: &Self| context.is_shared_by(path));
            if let Some(cid) = found
                && flows.context(cid).is_some_and(|context| context.is_flow_of(path))
            {
                return Ok(cid);
            }
            found.ok_or(hash)
        };
        let hash = shared.map_or_else(|hash| hash & HASH, |cid| flows.table.hash_of(cid));
        let own = flows.table.hash(&OwnContext { hash, port: path.port() });
        if let Some(cid) = flows.table.find(own, |_, context: &Self| context.is_flow_of(path)) {
            return Ok(cid);
        }
        if let Ok(cid) = shared
            && let Some(context) = flows.table.context_mut::<Self>(cid)
            && context.former.is(path.port())
        {
            context.used_for = ContextUse::OneFlow;
            flows.table.rehash(cid, own);
        }
        shared
    }

    #[inline]
    fn is_flow_of(&self, message: &CoapMessage<'_>, _: Cid, _: &CoapMemory<'_>) -> bool {
        self.is_flow_of(&message.path)
    }

    /// A datagram stays with the flow that it has: other contents look like CoAP now and then, at its ports, too.
    fn yields(_: &CoapMessage<'_>) -> bool {
        true
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

/// Key of a context that no other flow takes over.
struct OwnContext {
    /// Hash of the context that flows of the same hosts share.
    hash: u32,
    port: u16,
}

impl FlowKey for OwnContext {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        word(u64::from(self.hash) << 16 | u64::from(self.port));
    }
}

impl FlowKey for CoapPath {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        address_words(self.v6, &self.source, &self.destination, &mut word);
        let is_fixed = self.port_mode == PortMode::Fixed;
        let [source, destination] = self.ports(if is_fixed { self.source_port } else { 0 });
        let ports = u32::from(source) << 16 | u32::from(destination);
        word(u64::from(ports) << 16 | ProfileId::Coap as u64);
    }
}
