//! A context at the decompressor. Nothing of a packet is kept before its CRC is verified.

use thinair_wire::coder::{Reader, Tracer};
use thinair_wire::crc::Check;
use thinair_wire::header::ipv6::Ipv6;

use super::{IR, IR_CR, Replicated, ToyFlow, crc3, ir, ir_cr, of, uo_0};
use crate::flow::arrival::Moment;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::decompressor::{DecompressorConfig, Failure, IncomingPacket, NackPolicy, ReceiverContext, Traced, Verified, verify_crc8};
use crate::feedback::Feedback;
use crate::flow::health::{Evidence, Health, Verdict};
use crate::flow::receiver::Receiver;
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::id::{Format, ProfileId};
use crate::state::DecompressorState;
use crate::storage::Shared;

/// Context of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToyReceiver {
    flow: ToyFlow,
    msn: u8,
    health: Health,
}

impl ReceiverContext for ToyReceiver {
    fn profile(&self) -> ProfileId {
        ProfileId::Toy
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (profile, state, sn) = (ProfileId::Toy, self.health.state.name(), Some(u32::from(self.msn)));
        ContextState { cid, profile, state, mode: config.mode, sn }
    }

    fn note_success(&mut self, _: u8, format: Format, _: Mode) -> bool {
        self.health.note_success();
        format.is_initialization()
    }

    fn health_mut(&mut self) -> Option<&mut Health> {
        Some(&mut self.health)
    }

    /// Judges a failure. Only the static context can need repair, by an IR packet.
    fn judge(&mut self, _: Moment, _: u8, _: Option<&Failure>, policy: &NackPolicy<'_>) -> Verdict {
        let nack = policy.nack();
        Verdict::Evidence(Evidence { nack, is_urgent: false, is_repair: false, static_nack: Some(0) })
    }

    fn complete(&mut self, element: Feedback, _: Option<Format>, _: &DecompressorConfig) -> Feedback {
        let sn_bits = if self.health.state == DecompressorState::Nc { 0 } else { 4 };
        Feedback { sn: u32::from(self.msn), sn_bits, mode: None, ..element }
    }
}

impl Receiver for ToyReceiver {
    type Room = ();

    fn new(_: ProfileId) -> Self {
        Self { flow: ToyFlow::default(), msn: 0, health: Health::NEW }
    }

    fn base_of(packet: &IncomingPacket<'_, '_, '_>) -> Option<Cid> {
        let mut x = Replicated::default();
        ir_cr(&mut Reader::new(packet.header.first, packet.header.rest), &mut x).ok()?;
        Cid::new(x.base.into())
    }

    /// An IR packet is that of a new flow: nothing is left of the one before.
    fn ir<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        base: Option<&Self>,
        _: &mut Shared<'m, ()>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        let (format, header) = if packet.header.first == IR_CR {
            let mut x = Replicated::default();
            ir_cr(&mut reader, &mut x).map_err(|_| Failure::Malformed)?;
            verify_crc8(packet.header, &reader, Format::IrCr)?;
            // RFC 4164, section 3.4: without its base the packet cannot be decompressed.
            let base = base.ok_or(Failure::NoBase)?;
            let header = Ipv6 { payload_length: x.payload_length, ..base.flow.from_source(x.source).0 };
            if of(Check::Crc8, header) != x.check {
                return Err(Failure::Crc(Format::IrCr));
            }
            (Format::IrCr, header)
        } else {
            let mut header = Ipv6::default();
            ir(&mut reader, &mut header).map_err(|_| Failure::Malformed)?;
            verify_crc8(packet.header, &reader, Format::Ir)?;
            (Format::Ir, header)
        };
        let payload = reader.remaining();
        let mut context = Self::new(ProfileId::Toy);
        context.flow = ToyFlow(Ipv6 { payload_length: 0, ..header });
        context.health.state.on_success();
        // The CRC does not cover the payload, so a truncated packet is detected here.
        if context.flow.header(payload) != Some(header) {
            return Err(Failure::Malformed);
        }
        let verified = deliver(packet.header, format, header, payload, out)?;
        *self = context;
        Ok(verified)
    }

    fn compressed<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        _: &mut Shared<'m, ()>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let mut reader = Reader::new(packet.header.first, packet.header.rest);
        let mut msn = 0;
        uo_0(&mut reader, &mut msn).map_err(|_| Failure::Malformed)?;
        match self.health.state {
            DecompressorState::Fc => {}
            DecompressorState::Nc | DecompressorState::Sc => return Err(Failure::NotAllowed(Format::Uo0)),
        }
        let payload = reader.remaining();
        let header = self.flow.header(payload).ok_or(Failure::Malformed)?;
        if reader.crc_read() != Some((3, crc3(header, msn))) {
            return Err(Failure::Crc(Format::Uo0));
        }
        let verified = deliver(packet.header, Format::Uo0, header, payload, out)?;
        self.msn = msn;
        Ok(verified)
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        _: &Shared<'_, ()>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        let mut tracer = Tracer::new(Reader::new(packet.first, packet.rest), on_field);
        match packet.first {
            IR => {
                let _ = ir(&mut tracer, &mut Ipv6::default());
                Some(Format::Ir)
            }
            IR_CR => {
                let _ = ir_cr(&mut tracer, &mut Replicated::default());
                Some(Format::IrCr)
            }
            0..0x80 => {
                let _ = uo_0(&mut tracer, &mut 0_u8);
                Some(Format::Uo0)
            }
            _ => None,
        }
    }
}

/// Writes a verified packet.
fn deliver(
    packet: &PacketHeader<'_>,
    format: Format,
    header: Ipv6,
    payload: &[u8],
    out: &mut [u8],
) -> Result<Verified, Failure> {
    let no_room = |_| Failure::NoRoom(Ipv6::LEN + payload.len());
    let len = header.write(out, 0).map_err(no_room)?;
    Verified::deliver(packet, format, len, payload, out)
}
