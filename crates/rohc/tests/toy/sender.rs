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
use crate::framing::CidFrame;
use crate::mode::Mode;
use crate::id::{Format, ProfileId};
use crate::refresh::{Due, Refresh, RefreshTimer};

/// Context of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToySender {
    flow: ToyFlow,
    msn: u8,
    /// IR packets still to be sent before `UO-0`.
    ir_left: u8,
    /// The decompressor has sent feedback.
    two_way: bool,
    /// It has acknowledged the context, which may be a base.
    is_base: bool,
    /// The base that IR-CR packets refer to.
    base: Option<Cid>,
    timer: RefreshTimer,
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
        let hash = compressor.flows.hash(&flow);
        let found = compressor.flows.find::<Self>(hash, |_, context| context.flow == flow);
        let cid = match found {
            Some(cid) => cid,
            None => compressor.begin_toy(packet, flow, hash)?,
        };
        if compressor.flows.rests(cid) {
            return None;
        }
        compressor.flows.touch(cid);
        let context = compressor.flows.context_mut::<Self>(cid)?;
        let done = context.compress(packet.now, payload, cid, &compressor.config, out);
        if let Ok(compressed) = &done {
            compressor.note_cost(compressed);
        }
        match done {
            Err(Refused::ByThisPacket) => None,
            done => Some(done.map_err(|_| CompressError::OutputTooSmall { have: out.len() })),
        }
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc3095
    }

    fn receive_feedback(
        &mut self,
        _: Instant,
        feedback: &Feedback,
        _: &CompressorConfig,
        _: &mut SharedMemory<'_>,
    ) -> Option<Cid> {
        self.two_way = true;
        match feedback.ack {
            AckType::Ack => {
                (self.is_base, self.base) = (true, None);
                None
            }
            // Without its context, the decompressor may lack the base, too.
            AckType::Nack | AckType::StaticNack => {
                self.ir_left = self.ir_left.max(1);
                self.base.take()
            }
        }
    }

    fn withdraw_as_base(&mut self) {
        self.is_base = false;
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut SharedMemory<'_>) {
        self.ir_left = config.repetitions;
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let state = if self.ir_left > 0 { "IR" } else { "SO" };
        let mode = Mode::with_feedback(self.two_way);
        ContextState { cid, profile: ProfileId::Toy, state, mode, sn: Some(u32::from(self.msn)) }
    }
}

impl Compressor<'_> {
    /// Creates a context for a new flow; `None` if another profile has to compress it.
    fn begin_toy(&mut self, packet: &OutgoingPacket<'_, '_, '_>, flow: ToyFlow, hash: u32) -> Option<Cid> {
        let pair = self.flows.pair(packet.chain.packet());
        if self.flows.is_rejected(hash, packet.now) || !self.flows.admits(hash, pair) {
            return None;
        }
        let is_base = |cid: &Cid| {
            let context = self.flows.context::<ToySender>(*cid);
            context.is_some_and(|base| base.is_base && base.flow.from_source(flow.0.source) == flow)
        };
        let base = self.flows.latest().find(is_base).filter(|base| u8::try_from(base.value()).is_ok());
        let cid = self.flows.claim(hash, pair)?;
        self.release(cid);
        let base = base.filter(|base| *base != cid);
        let (ir_left, timer) = (self.config.repetitions, RefreshTimer::start(packet.now));
        let context = ToySender { flow, msn: 0, ir_left, two_way: false, is_base: false, base, timer };
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
        let policy = if self.two_way { &config.refresh_two_way } else { &config.refresh };
        let refresh = self.timer.tick(now, policy) == Due::Everything && self.ir_left == 0;
        if refresh {
            self.ir_left = policy.ir_packets(1);
        }
        let is_ir = self.ir_left > 0;
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
        self.ir_left = self.ir_left.saturating_sub(1);
        let (profile, header_in) = (ProfileId::Toy, Ipv6::LEN);
        let compressed = Compressed { cid, profile, format, header_in, header_out, len, refresh };
        self.timer.sent(now, &compressed, is_ir, policy);
        Ok(compressed)
    }
}
