//! A context at the compressor: IR packets at its beginning, at a refresh, and on request of the decompressor; otherwise `UO-0`. A flow
//! that differs from an acknowledged one by its source begins with IR-CR packets.

use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::time::Instant;

use super::{Replicated, ToyFlow, ToyPacket, crc3, ir, ir_cr, of, uo_0};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, OutgoingPacket, Refused, SenderContext};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::establish::Establishment;
use crate::flow::sender::{Departure, Flows, Placement, Sender, Start};
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::storage::Shared;

/// Context of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToySender {
    flow: ToyFlow,
    msn: u8,
    establishment: Establishment,
    /// The decompressor has acknowledged the context, which may be a base.
    is_base: bool,
    /// The base that IR-CR packets refer to.
    base: Option<Cid>,
}

impl SenderContext for ToySender {
    type Room = ();

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc3095
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        _: &CompressorConfig,
        _: &mut Shared<'_, ()>,
    ) -> Option<Cid> {
        self.establishment.answered(now);
        match feedback.ack {
            AckType::Ack => {
                (self.is_base, self.base) = (true, None);
                None
            }
            // Without its context, the decompressor may lack the base, too.
            AckType::Nack | AckType::StaticNack => {
                self.establishment.require_ir(1);
                self.base.take()
            }
        }
    }

    fn withdraw_as_base(&mut self) {
        self.is_base = false;
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut Shared<'_, ()>) {
        self.establishment.require_ir(config.repetitions);
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        self.establishment.context_state(cid, ProfileId::Toy, Some(u32::from(self.msn)))
    }
}

impl Sender for ToySender {
    type Packet<'p> = ToyPacket<'p>;

    fn is_in_use(profiles: ProfileSet, _: &Shared<'_, ()>) -> bool {
        profiles.has(ProfileId::Toy)
    }

    fn recognize<'p>(
        packet: &OutgoingPacket<'p, 'p, '_>,
        _: &mut Flows<'_, '_, Self>,
        recognized: &mut Option<ToyPacket<'p>>,
    ) {
        *recognized = ToyPacket::of(packet.chain);
    }

    fn is_flow_of(&self, packet: &ToyPacket<'_>, _: Cid, _: &Shared<'_, ()>) -> bool {
        self.flow == packet.flow
    }

    /// A flow replicates the newest acknowledged one that differs by the source alone.
    fn place(packet: &ToyPacket<'_>, hash: u32, _: Instant, flows: &Flows<'_, '_, Self>) -> Placement {
        let flow = packet.flow;
        let is_base = |cid: &Cid| {
            let context = flows.context(*cid);
            context.is_some_and(|base| base.is_base && base.flow.from_source(flow.0.source) == flow)
        };
        let base = flows.table.latest().find(is_base).filter(|base| u8::try_from(base.value()).is_ok());
        Placement { base, ..Placement::of(hash) }
    }

    fn new(
        packet: &ToyPacket<'_>,
        start: Start<'_, Self>,
        config: &CompressorConfig,
        _: &mut Shared<'_, ()>,
    ) -> Self {
        let establishment = Establishment::new(start.now, config.repetitions);
        Self { flow: packet.flow, msn: 0, establishment, is_base: false, base: start.base }
    }

    fn compress(
        &mut self,
        packet: &ToyPacket<'_>,
        _: Option<&Self>,
        _: &mut Shared<'_, ()>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let payload = packet.payload;
        let mut header = self.flow.header(payload).ok_or(Refused::ByThisPacket)?;
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.begin_static_packet(now, policy);
        let is_ir = self.establishment.is_ir();
        let (format, mut msn) = match self.base {
            Some(_) if is_ir => (Format::IrCr, 0),
            _ if is_ir => (Format::Ir, 0),
            _ => (Format::Uo0, (self.msn + 1) & 0xF),
        };

        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        // Every value can be written.
        let _ = match self.base {
            Some(base) if is_ir => {
                let Ipv6 { source, payload_length, .. } = header;
                let (base, check) = (base.value() as u8, of(Check::Crc8, header));
                ir_cr(&mut writer, &mut Replicated { base, source, payload_length, check })
            }
            _ if is_ir => ir(&mut writer, &mut header),
            _ => uo_0(&mut writer, &mut msn),
        };
        if !is_ir {
            writer.fill_crc(crc3(header, msn));
        }
        let header_out = writer.finish()?;
        let len = frame.close(header_out, payload, departure.out)?;
        if is_ir {
            frame.fill_crc8(header_out, departure.out);
        }

        self.msn = msn;
        let refresh = is_ir && self.establishment.is_refresh();
        self.establishment.count(format);
        let (profile, header_in) = (ProfileId::Toy, Ipv6::LEN);
        let compressed = Compressed { cid, profile, format, header_in, header_out, len, refresh };
        self.establishment.sent(now, &compressed, is_ir, policy);
        Ok(compressed)
    }
}
