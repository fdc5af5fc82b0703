//! Fast path of both ends. A regular packet is the one that [`CoapState::predict`] rebuilds from the context and the next MSN: the
//! compressor compares its headers with these octets before they are parsed, and the decompressor compares their check. All other packets
//! take the full path, `CoapSenderContext::compress` and `CoapReceiverContext::compressed`.

use thinair_wire::coder::{Coder, Lsb, Reader, Step, Writer};
use thinair_wire::time::Instant;

use super::compress::CoapSenderContext;
use super::decompress::{CoapReceiverContext, PacketTail, sum_for};
use super::formats::{MSN, chain_with, format_for, format_of, has_check, is_shortest, shortest};
use super::ip_id::IpIdWatcher;
use super::outline::Holes;
use super::state::{ChecksumMode, CoapState, IpIdMode, MessageIdMode, PortMode, Template, Templates};
use super::{Carries, CoapMemory, HeaderFields, header};
use crate::compressor::{Compressed, CompressorConfig};
use crate::decompressor::{IncomingPacket, Verified};
use crate::exchange::CoapExchange;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::state::DecompressorState;
use crate::work;

/// Octets of headers that are predicted.
const MOST: usize = 128;

impl CoapState {
    /// Returns the template of the last packet, if all fields of a packet follow from the state, its MSN and its IP-ID, and sets those that
    /// do not depend on them.
    #[inline(always)]
    fn regular_template<'t>(
        &self,
        templates: &'t Templates<'_>,
        x: &mut HeaderFields<'_>,
    ) -> Option<&'t Template> {
        let template = self.template(self.current, templates)?;
        let follows = template.message_id == MessageIdMode::Counted
            && Template::is_own(template.message_type)
            && !template.refers
            && !template.has_irregular_field()
            && !self.path.switching
            && self.path.port_mode != PortMode::SourceInEach
            && !self.path.has_label_in_each();
        if !follows {
            return None;
        }
        if !template.is_plain() {
            x.holes = Holes::of(self.outline(template), template.holes);
            x.holes.as_slice().iter().all(|hole| hole.has_anchor()).then_some(())?;
        }
        Some(template)
    }

    /// Sets the other fields of the next packet of a regular template, and writes its headers.
    #[inline(always)]
    fn predict(
        &self,
        template: &Template,
        x: &mut HeaderFields<'_>,
        payload_behind: impl FnOnce(usize) -> usize,
        out: &mut [u8],
    ) -> Option<usize> {
        x.msn = self.msn.wrapping_add(1);
        header::infer_other(self, template, None, Carries::NOTHING, x).then_some(())?;
        header::rebuild(self, template, self.outline(template), x, payload_behind, out).ok()
    }
}

/// Codes a regular packet in one of the shortest formats.
#[inline(always)]
fn regular<'p, C: Coder<'p>>(
    c: &mut C,
    state: &CoapState,
    template: &Template,
    format: Format,
    x: &mut HeaderFields<'p>,
) -> Step {
    shortest(format, c, x)?;
    chain_with(c, state, template, Carries::NOTHING, false, has_check(format), x)
}

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
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let waited = self.caution.waited(now);
        if !self.is_calm(now, waited) {
            return None;
        }
        self.shared.check();
        let (state, path) = (&self.shared, &self.shared.path);
        let mut x = HeaderFields::new(state.current);
        let template = state.regular_template(&memory.templates, &mut x)?;
        if template.left | template.anchors_left != 0 {
            return None;
        }
        let (headers, payload) = self.split_predicted(packet, &mut x, template, config)?;
        let mut ip_id = self.ip_id;
        if path.v6 {
            ip_id.count_same_label();
        } else {
            let mode = path.ip_id_mode;
            (ip_id.watch(mode, x.ip_id, x.msn as u16, false, false) == mode).then_some(())?;
        }
        let needed = self.bits_for(x.msn as u16, 0);
        let format = format_for(state, self.least(true, &x, template, config), x.template, needed);
        if !is_shortest(format) {
            return None;
        }
        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        writer.offer(MSN, Lsb { value: u32::from(x.msn as u16), needed });
        x.check = self.check_of(format, &x, template);
        regular(&mut writer, state, template, format, &mut x).ok()?;
        self.fill_crc(format, &mut writer, &x, template, payload);
        let end = writer.finish().ok()?;
        let len = frame.close(end, payload, departure.out).ok()?;
        // All is written: the state of both ends follows.
        self.caution.sent_quietly(now, waited, 1);
        self.establishment.count_quiet(len);
        self.note_predicted(&x, ip_id, &mut memory.templates, config);
        if let Some(linked) = &mut departure.linked {
            linked.sent.note(CoapExchange::of(self.name, &x));
        }
        let (profile, header_in) = (ProfileId::Coap, headers.len());
        Some(Compressed { cid, profile, format, header_in, header_out: end, len, refresh: false })
    }

    /// True if nothing has to be sent but the next MSN, `waited` after the last packet.
    #[inline]
    fn is_calm(&self, now: Instant, waited: u64) -> bool {
        self.establishment.is_established()
            && self.pending.is_none()
            && self.switches == 0
            && !self.is_first()
            && self.establishment.is_quiet(now)
            && self.caution.is_quiet(waited)
    }

    /// Sets the fields of the next packet, and splits the packet into its headers and payload, if it is that one.
    #[inline]
    fn split_predicted<'p>(
        &self,
        packet: &'p [u8],
        x: &mut HeaderFields<'_>,
        template: &Template,
        config: &CompressorConfig,
    ) -> Option<(&'p [u8], &'p [u8])> {
        let (state, path) = (&self.shared, &self.shared.path);
        if !path.v6 && path.ip_id_mode != IpIdMode::Constant {
            x.ip_id = u16::from_be_bytes(*packet.get(4..)?.first_chunk()?);
        }
        let mut predicted = [0; MOST];
        let payload_behind = |len: usize| packet.len().saturating_sub(len + 1);
        let len = state.predict(template, x, payload_behind, &mut predicted)?;
        let (headers, payload) = packet.split_at_checked(len)?;
        let coap_at = path.ip_len() + 8;
        let checksum: [u8; 2] = *headers.get(coap_at - 2..)?.first_chunk()?;
        *predicted.get_mut(coap_at - 2..)?.first_chunk_mut()? = checksum;
        if headers != predicted.get(..len)? {
            return None;
        }
        let ports = &config.coap.ports;
        if !ports.has(path.source_port) && !ports.has(path.destination_port) {
            // A message on another port is CoAP by a strict parse alone.
            return None;
        }
        x.checksum = u16::from_be_bytes(checksum);
        let mode = self.checksum_mode(x.checksum, x.port, packet.get(coap_at..)?, config);
        let pt_0 = self.uses_pt_0(config) && mode != ChecksumMode::Carried;
        ((mode, pt_0) == (path.checksum, path.pt_0)).then_some((headers, payload))
    }

    /// Updates the context by a predicted packet that was sent.
    #[inline]
    fn note_predicted(
        &mut self,
        x: &HeaderFields<'_>,
        ip_id: IpIdWatcher,
        templates: &mut Templates<'_>,
        config: &CompressorConfig,
    ) {
        self.ip_id = ip_id;
        self.former.note(x.msn, x.port, x.port);
        self.msns.push(x.msn as u16, usize::from(config.window));
        self.counts_own = true;
        if let Some(template) = self.shared.template_mut(x.template, templates) {
            template.uses = template.uses.saturating_add(1);
            template.misses = template.misses.saturating_sub(1);
            if !template.is_plain() {
                self.last_message_id = x.message_id;
            }
            self.shared.advance(x, template);
        }
    }
}

impl CoapReceiverContext {
    /// Decompresses the packet if it is the predicted one. `None`, without a change, if it is another one.
    #[inline(always)]
    pub(super) fn decompress_message<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        memory: &mut CoapMemory<'m>,
        out: &mut [u8],
    ) -> Option<Verified> {
        self.shared.check();
        let (header, state) = (packet.header, &self.shared);
        let format = format_of(header.first, state).filter(|format| is_shortest(*format))?;
        if self.health.state != DecompressorState::Fc {
            return None;
        }
        let mut x = HeaderFields::new(state.current);
        let template = state.regular_template(&memory.templates, &mut x)?;
        let mut reader = Reader::new(header.first, header.rest);
        regular(&mut reader, state, template, format, &mut x).ok()?;
        let (bits, k) = reader.collected(MSN);
        let is_next = state.msn.wrapping_add(1).wrapping_sub(bits) & ((1 << k) - 1) == 0
            && self.arrivals.is_next(packet.at, 1 << k);
        if !is_next {
            return None;
        }
        let payload = reader.remaining();
        work::note_candidate();
        let len = state.predict(template, &mut x, |_| payload.len(), out)?;
        let (outline, sum) = (state.outline(template), sum_for(state, payload));
        let found = PacketTail { format, reader: &reader, template, outline, payload, sum };
        if !found.verify(state, &x, len, out) {
            return None;
        }
        let verified = Verified::deliver(header, format, len, payload, out).ok()?;
        // The packet is verified: the state of both ends follows.
        self.count_losses(x.msn);
        self.arrivals.note(packet.at, 1);
        (self.ack_due, self.trial) = (false, false);
        self.health.note_repair();
        self.since_port = self.since_port.saturating_add(1);
        if let Some(template) = self.shared.template_mut(x.template, &mut memory.templates) {
            self.shared.advance(&x, template);
        }
        if let Some(linked) = &mut packet.linked {
            linked.received.note(CoapExchange::of(self.name, &x));
        }
        Some(verified)
    }
}
