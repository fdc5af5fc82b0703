//! CoAP messages: which flow of profile 0x0081 one belongs to.

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use super::flows::Kind;
use super::{CompressError, Compressed, Compressor, Linked, classify};
use crate::cid::Cid;
use crate::compressor::Refused;
use crate::profile::coap::{self, Message, Path};

impl<'m> Compressor<'m> {
    /// Profile 0x0081; `None` if the packet goes by another one.
    #[inline(never)]
    pub(super) fn coap(
        &mut self,
        now: Instant,
        chain: &HeaderChain<'_>,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
    ) -> Option<Result<Compressed, CompressError>> {
        let path = Path::of(chain)?;
        let Some(message) = Message::of(chain, path, &self.config.coap.ports) else {
            if self.guessed > 0 {
                self.not_coap(&path);
            }
            return None;
        };
        let mut owes = None;
        match self.message(now, chain, &message, out, linked, &mut owes) {
            Ok(compressed) => Some(Ok(compressed)),
            Err(Refused::NoRoom) => Some(Err(CompressError::OutputTooSmall { have: out.len() })),
            Err(Refused::ByThisPacket) => {
                owes.map(|cid| self.uncompressed_instead(now, cid, chain.packet(), out))
            }
        }
    }

    /// A CoAP message, by profile 0x0081. `owes` is set to a new context whose CID was that of a flow which held memory.
    fn message(
        &mut self,
        now: Instant,
        chain: &HeaderChain<'_>,
        message: &Message<'_>,
        out: &mut [u8],
        linked: Option<Linked<'_, 'm>>,
        owes: &mut Option<Cid>,
    ) -> Result<Compressed, Refused> {
        let hash = self.flows.hash(&message.path);
        let found = self.flows.find(hash, |kind| match kind {
            Kind::Coap(context) => context.is_flow_of(&message.path),
            Kind::Rejected { .. } | Kind::Uncompressed(_) | Kind::Rfc3095(_) | Kind::Tcp(_) | Kind::Free => {
                false
            }
        });
        let (sent, received) = match linked {
            Some(linked) => (Some(linked.sent), Some(linked.received)),
            None => (None, None),
        };
        let cid = match found {
            Some(cid) => cid,
            None if self.flows.is_rejected(hash, now) => return Err(Refused::ByThisPacket),
            None if message.by_parse && self.has_another_profile(now, chain) => {
                return Err(Refused::ByThisPacket);
            }
            None => {
                let pair = self.flows.pair(message.packet);
                if !self.flows.admits(pair) {
                    return Err(Refused::ByThisPacket);
                }
                let cid = self.flows.claim(hash, pair).ok_or(Refused::ByThisPacket)?;
                *owes = self.release(cid).then_some(cid);
                let context = coap::compress::Context::new(message, now, &self.config);
                self.flows.set(cid, Kind::Coap(context));
                self.guessed = self.guessed.saturating_add(u32::from(message.by_parse));
                cid
            }
        };
        let mut memory =
            coap::compress::Memory { templates: &mut self.templates, sent, received, bases: &self.bases };
        self.flows.touch(cid);
        if self.flows.rests(cid) {
            return Err(Refused::ByThisPacket);
        }
        let Kind::Coap(context) = self.flows.kind(cid) else { return Err(Refused::ByThisPacket) };
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

    /// True if the flow of a packet has a context of a profile for any UDP. One datagram that looks like CoAP does not leave it.
    #[cold]
    fn has_another_profile(&self, now: Instant, chain: &HeaderChain<'_>) -> bool {
        let plan = classify::plan(chain, &self.config, |plan| self.has_place_for(now, plan));
        plan.is_some_and(|plan| self.find(self.flows.hash(&plan), &plan).is_some())
    }

    /// A packet is not CoAP: if its flow was taken for it by a parse alone, it is not, any more.
    fn not_coap(&mut self, path: &Path) {
        let hash = self.flows.hash(path);
        let found =
            self.flows.find(hash, |kind| matches!(kind, Kind::Coap(context) if context.is_flow_of(path)));
        if let Some(cid) = found
            && let Kind::Coap(context) = self.flows.kind(cid)
        {
            context.abandon();
        }
    }
}
