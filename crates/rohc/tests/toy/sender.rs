//! A context at the compressor: IR packets at its beginning, at a refresh, and on request of the decompressor; otherwise `UO-0`. A flow
//! that differs from an acknowledged one by its source begins with IR-CR packets.

use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::time::Instant;

use super::{Replicated, ToyFlow, crc3, ir, ir_cr, of, uo_0};
use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, OutgoingPacket, Refused, SenderContext,
    SharedMemory,
};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::establish::Establishment;
use crate::framing::CidFrame;
use crate::mode::Mode;
use crate::id::{Format, ProfileId};

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
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>> {
        if !compressor.config.channel.profiles().has(ProfileId::Toy) {
            return None;
        }
        let (flow, payload) = ToyFlow::of(packet.chain)?;
        let cid = match compressor.flows.find_flow(&flow, |_, context: &Self| context.flow == flow) {
            Ok(cid) => cid,
            Err(hash) => compressor.begin_toy(packet, flow, hash)?,
        };
        let now = packet.now;
        let attempt = compressor.compress_with(cid, out, |context: &mut Self, config, _, out| {
            context.compress(now, payload, cid, config, out)
        });
        attempt.done()
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc3095
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        _: &CompressorConfig,
        _: &mut SharedMemory<'_>,
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

    fn restart(&mut self, config: &CompressorConfig, _: &mut SharedMemory<'_>) {
        self.establishment.require_ir(config.repetitions);
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let state = self.establishment.state().name();
        let mode = Mode::with_feedback(self.establishment.is_two_way());
        ContextState { cid, profile: ProfileId::Toy, state, mode, sn: Some(u32::from(self.msn)) }
    }
}

impl<'m> Compressor<'m> {
    /// Creates a context for a new flow; `None` if another profile has to compress it.
    fn begin_toy(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        flow: ToyFlow,
        hash: u32,
    ) -> Option<Cid> {
        let newcomer = self.admit(packet.now, hash, packet.chain.packet())?;
        let is_base = |cid: &Cid| {
            let context = self.flows.context::<ToySender>(*cid);
            context.is_some_and(|base| base.is_base && base.flow.from_source(flow.0.source) == flow)
        };
        let base = self.flows.latest().find(is_base).filter(|base| u8::try_from(base.value()).is_ok());
        let cid = self.begin(packet, newcomer, None)?;
        let base = base.filter(|base| *base != cid);
        let establishment = Establishment::new(packet.now, self.config.repetitions);
        let context = ToySender { flow, msn: 0, establishment, is_base: false, base };
        self.flows.set(cid, context);
        Some(cid)
    }
}

impl ToySender {
    /// Compresses a packet of the flow.
    fn compress(
        &mut self,
        now: Instant,
        payload: &[u8],
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Result<Compressed, Refused> {
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
        let mut writer = Writer::new(out, frame.len());
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
        let len = frame.close(header_out, payload, out)?;
        if is_ir {
            frame.fill_crc8(header_out, out);
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
