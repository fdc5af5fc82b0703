//! The short way of most packets: the template is that of the last packet, everything is as predicted, and nothing is
//! left to be said.
//!
//! It writes the same formats as the long way, and a test holds the octets of both against each other.

use thinair_wire::coder::{Lsb, Writer};
use thinair_wire::crc::Check;
use thinair_wire::time::Instant;

use super::compress::{Context, Memory};
use super::formats::{MSN, base, chain, has_check, msn_bits};
use super::message::Message;
use super::state::{ChecksumMode, IpIdMode, Template};
use super::{Fields, FormatPolicy, header};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig};
use crate::exchange::Exchange;
use crate::framing::Frame;
use crate::profile::{Format, ProfileId};

impl Context {
    /// Compresses a packet of this flow; `None` if there is more to say, or to learn, than the short formats can.
    #[inline]
    pub(crate) fn compress_settled(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        cid: Cid,
        config: &CompressorConfig,
        memory: &mut Memory<'_, '_>,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let shared = &self.shared;
        let (kept, new) = (&shared.path, &message.path);
        let same =
            (kept.tos, kept.ttl, kept.df, kept.flow_label) == (new.tos, new.ttl, new.df, new.flow_label);
        let ends = kept.switching && self.ends_switching();
        if !self.settled || !same || ends || !self.timer.is_quiet(now) {
            return None;
        }
        let template = shared.template(shared.current, memory.templates)?;
        let outline = shared.outline(template);
        if template.message_type != message.message_type {
            return None;
        }
        let is_plain = template.is_plain;
        let values = message.matches(template, outline)?;
        let request = if template.refers { Some(self.request(message, memory)?) } else { None };
        let mut x = Fields::new(shared.current);
        x.msn = self.msn(template, message, request);
        x.message_id = message.message_id;
        x.ip_id = message.ip_id;
        x.token = message.token;
        x.numbers = values.numbers;
        x.octets = values.octets;
        if let Some(request) = request {
            x.names_request = true;
            x.request_msn = request.msn();
            if header::named(shared, template, &x) != request.msn() {
                return None;
            }
        }
        let inferred = header::infer(shared, template, outline, request, &mut x);
        let right = inferred
            && x.message_id == message.message_id
            && x.token == message.token
            && (template.is_plain || x.numbers == values.numbers)
            && (kept.v6 || x.ip_id == message.ip_id);
        let coap = message.coap_header(values.payload);
        let (payload, sum) = (values.payload.len(), header::payload_sum(values.payload));
        let computed = header::udp_checksum(shared, coap, payload, sum);
        let checksum = match kept.checksum {
            ChecksumMode::Zero => 0,
            ChecksumMode::Carried | ChecksumMode::Elided => computed,
            ChecksumMode::Raw => return None,
        };
        let needed = self.needed_bits(now, &x);
        let format = self.short_format(config);
        if !right || checksum != message.checksum || needed > msn_bits(format) {
            return None;
        }
        x.checksum = checksum;

        let frame = Frame::new(cid, config.channel.cids());
        let mut writer = Writer::new(out, frame.len());
        writer.offer(MSN, Lsb { value: u32::from(x.msn as u16), needed });
        if has_check(format) {
            x.check = header::check16(shared, &x, checksum);
        }
        base(format, &mut writer, shared, &mut x).ok()?;
        chain(&mut writer, shared, template, outline, has_check(format), &mut x).ok()?;
        if let Some(check) = Check::of_width(writer.crc_width()) {
            let crc = header::crc(shared, template, outline, &x, check, msn_bits(format), (payload, sum));
            writer.fill_crc(crc);
        }
        let end = writer.finish().ok()?;
        let len = frame.close(end, values.payload, out).ok()?;

        self.timer.count(len);
        self.note_sent(now, x.msn, config);
        self.hit_settled(&x, memory);
        self.shared.accept(&x, memory.templates);
        self.msns.push(x.msn as u16, usize::from(config.window));
        if let Some(sent) = &mut memory.sent
            && Template::is_own(x.message_type)
        {
            let block = if is_plain { None } else { self.shared.block(&x, memory.templates) };
            sent.note(Exchange::new(self.names[0], x.msn as u16, x.message_id, x.token, block));
        }
        Some(Compressed {
            cid,
            profile: ProfileId::Coap,
            format,
            header_in: message.packet.len() - payload,
            header_out: end,
            len,
            refresh: false,
        })
    }

    /// The format of a packet that has nothing to say.
    #[inline]
    fn short_format(&self, config: &CompressorConfig) -> Format {
        let path = &self.shared.path;
        let carried = path.checksum == ChecksumMode::Carried;
        match (path.switching, carried) {
            (true, false) => Format::Pt1t,
            (true, true) => Format::Pt1tc,
            (false, true) if config.coap.format != FormatPolicy::Pt1 => Format::Pt0c,
            (false, false) if path.pt_0 && self.knows_pt_0 => Format::Pt0,
            (false, _) => Format::Pt1,
        }
    }

    /// Keeps what the compressor learns from in step, as the long way does.
    #[inline]
    fn hit_settled(&mut self, x: &Fields<'_>, memory: &mut Memory<'_, '_>) {
        self.switches <<= 1;
        if !self.shared.path.v6 {
            let _ = self.ip_id.watch(self.shared.path.ip_id_mode, x.ip_id, x.msn as u16, false);
        }
        if let Some(template) = self.shared.template_mut(x.template, memory.templates) {
            template.misses = template.misses.saturating_sub(1);
            template.uses = template.uses.saturating_add(1);
            if !template.is_plain {
                self.last_message_id = x.message_id;
            }
        }
    }

    /// Whether the next packet may take the short way.
    pub(super) fn settle(&mut self, format: Format, memory: &Memory<'_, '_>) {
        let template = self.shared.template(self.shared.current, memory.templates);
        let is_short =
            matches!(format, Format::Pt0 | Format::Pt0c | Format::Pt1 | Format::Pt1t | Format::Pt1tc);
        let is_learned = matches!(self.shared.path.ip_id_mode, IpIdMode::Constant | IpIdMode::Counted);
        self.settled = is_short
            && is_learned
            && self.left.is_nothing()
            && self.shared.path.checksum != ChecksumMode::Raw
            && template.is_some_and(|template| {
                template.left == 0
                    && template.anchors_left == 0
                    && template.is_settled(self.shared.outline(template))
                    && template.misses == 0
            });
    }
}
