//! Fast path of the compressor. A regular packet is the one that [`header`] rebuilds from the context and the next MSN, as it does at the
//! decompressor: its headers are compared with these octets before they are parsed. All other packets take the full path,
//! `CoapSenderContext::compress`.

use thinair_wire::time::Instant;

use super::compress::{CoapSenderContext, CoapSenderMemory};
use super::learn::IpIdWatcher;
use super::outline::Holes;
use super::state::{ChecksumMode, IpIdMode, MessageIdMode, Template, Templates};
use super::{CoapMemory, HeaderFields, header};
use crate::compressor::{Compressed, Compressor, CompressorConfig};
use crate::exchange::Exchanges;

/// Octets of headers that are predicted.
const MOST: usize = 128;

impl<'m> Compressor<'m> {
    /// Compresses the packet if it is the predicted one of the flow that was sent last. `None`, without a change, if it is another one.
    #[inline]
    pub(super) fn compress_message(
        &mut self,
        now: Instant,
        packet: &[u8],
        sent: Option<&mut Exchanges<'m>>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let cid = self.flows.newest_in_use()?;
        let CoapMemory { templates, bases, .. } = &mut self.shared.coap;
        let context = self.flows.context_mut::<CoapSenderContext>(cid)?;
        let template = context.regular_template(now, templates)?;
        let mut x = HeaderFields::new(context.shared.current);
        let len = context.predict(packet, &mut x, template, &self.config)?;
        let (ports, path) = (&self.config.coap.ports, &context.shared.path);
        if !ports.has(path.source_port) && !ports.has(path.destination_port) {
            // A message on another port is CoAP by a strict parse alone.
            return None;
        }
        let mut ip_id = context.ip_id;
        if !context.shared.path.v6 {
            let mode = context.shared.path.ip_id_mode;
            (ip_id.watch(mode, x.ip_id, x.msn as u16, false) == mode).then_some(())?;
        }
        let mut memory = CoapSenderMemory { templates, sent, received: None, bases };
        let parts = packet.split_at_checked(len)?;
        let done = context.send(now, true, parts, &mut x, cid, &self.config, &mut memory, out).ok()?;
        context.note_predicted(&x, ip_id, templates);
        self.note_cost(&done);
        Some(done)
    }
}

impl CoapSenderContext {
    /// Returns the template of the last packet, if the MSN of the next one follows its Message ID, and nothing has to be sent but the MSN.
    #[inline]
    fn regular_template<'t>(&self, now: Instant, templates: &'t Templates<'_>) -> Option<&'t Template> {
        let template = self.shared.template(self.shared.current, templates)?;
        let follows = template.message_id == MessageIdMode::Counted
            && Template::is_own(template.message_type)
            && !template.refers;
        let is_calm = template.left | template.anchors_left == 0
            && self.establishment.is_established()
            && self.pending.is_none()
            && self.switches == 0
            && !self.shared.path.switching
            && !self.is_first()
            && self.establishment.is_quiet(now);
        (follows && is_calm).then_some(template)
    }

    /// Sets the fields of the next packet, and returns the octets of its headers, if the packet is that one.
    #[inline]
    fn predict(
        &self,
        packet: &[u8],
        x: &mut HeaderFields<'_>,
        template: &Template,
        config: &CompressorConfig,
    ) -> Option<usize> {
        let (state, path) = (&self.shared, &self.shared.path);
        let outline = state.outline(template);
        if !template.is_plain() {
            x.holes = Holes::of(outline, template.holes);
        }
        if template.is_irregular(&x.holes) || !x.holes.as_slice().iter().all(|hole| hole.has_anchor()) {
            return None;
        }
        x.msn = state.msn.wrapping_add(1);
        if !path.v6 && path.ip_id_mode != IpIdMode::Constant {
            x.ip_id = u16::from_be_bytes(*packet.get(4..)?.first_chunk()?);
        }
        header::infer(state, template, None, x).then_some(())?;
        let mut headers = [0; MOST];
        let payload_behind = |len: usize| packet.len().saturating_sub(len + 1);
        let len = header::rebuild(state, template, outline, x, payload_behind, &mut headers).ok()?;
        let coap_at = path.ip_len() + 8;
        let checksum: [u8; 2] = *packet.get(coap_at - 2..)?.first_chunk()?;
        *headers.get_mut(coap_at - 2..)?.first_chunk_mut()? = checksum;
        if headers.get(..len)? != packet.get(..len)? {
            return None;
        }
        x.checksum = u16::from_be_bytes(checksum);
        let mode = self.checksum_mode(x.checksum, packet.get(coap_at..)?, config);
        let pt_0 = self.uses_pt_0(config) && mode != ChecksumMode::Carried;
        ((mode, pt_0) == (path.checksum, path.pt_0)).then_some(len)
    }

    /// Records the prediction of a packet that was sent.
    #[inline]
    fn note_predicted(&mut self, x: &HeaderFields<'_>, ip_id: IpIdWatcher, templates: &mut Templates<'_>) {
        self.ip_id = ip_id;
        self.establishment.count_quiet(0);
        if let Some(template) = self.shared.template_mut(x.template, templates) {
            template.misses = template.misses.saturating_sub(1);
            if !template.is_plain() {
                self.last_message_id = x.message_id;
            }
        }
    }
}
