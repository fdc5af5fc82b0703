//! Fast path of the compressor. A regular packet is the one that [`header`] rebuilds from the context and the next MSN, as it does at the
//! decompressor: its headers are compared with these octets before they are parsed. All other packets take the full path,
//! `CoapSenderContext::compress`.

use thinair_wire::time::Instant;

use super::compress::{CoapSenderContext, CoapSenderMemory, MessageToSend};
use super::ip_id::IpIdWatcher;
use super::outline::Holes;
use super::state::{ChecksumMode, IpIdMode, MessageIdMode, PortMode, Template, Templates};
use super::{CoapMemory, HeaderFields, header};
use crate::compressor::{Compressed, CompressorConfig};
use crate::flow::sender::Departure;

/// Octets of headers that are predicted.
const MOST: usize = 128;

impl CoapSenderContext {
    /// Compresses the packet if it is the predicted one. `None`, without a change, if it is another one.
    #[inline]
    pub(super) fn compress_message<'m>(
        &mut self,
        packet: &[u8],
        memory: &mut CoapMemory<'m>,
        departure: &mut Departure<'_, 'm>,
    ) -> Option<Compressed> {
        // Where flows take turns, most packets are of another one.
        let path = &self.shared.path;
        let ports: [u8; 4] = *packet.get(path.ip_len()..)?.first_chunk()?;
        let [[s, t], [d, e]] = [path.source_port.to_be_bytes(), path.destination_port.to_be_bytes()];
        if ports != [s, t, d, e] {
            return None;
        }
        let config = departure.config;
        let CoapMemory { templates, bases, .. } = memory;
        let template = self.regular_template(departure.now, templates)?;
        let mut x = HeaderFields::new(self.shared.current);
        let len = self.predict(packet, &mut x, template, config)?;
        let (ports, path) = (&config.coap.ports, &self.shared.path);
        if !ports.has(path.source_port) && !ports.has(path.destination_port) {
            // A message on another port is CoAP by a strict parse alone.
            return None;
        }
        let mut ip_id = self.ip_id;
        if path.v6 {
            ip_id.count_same_label();
        } else {
            let mode = path.ip_id_mode;
            (ip_id.watch(mode, x.ip_id, x.msn as u16, false, false) == mode).then_some(())?;
        }
        let sent = departure.linked.take().map(|linked| linked.sent);
        let mut memory = CoapSenderMemory { templates, sent, received: None, bases };
        let (headers, payload) = packet.split_at_checked(len)?;
        let message = MessageToSend { now: departure.now, headers, payload, is_quiet: true };
        let done = self.send(&message, &mut x, &mut memory, departure).ok()?;
        self.note_predicted(&x, ip_id, templates);
        Some(done)
    }

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
            && self.shared.path.port_mode != PortMode::SourceInEach
            && !self.shared.path.has_label_in_each()
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
        let mode = self.checksum_mode(x.checksum, x.port, packet.get(coap_at..)?, config);
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
