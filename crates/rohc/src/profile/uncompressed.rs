//! Profile 0x0000: packets without compression. RFC 5795, section 5.4.

use thinair_wire::coder::{Coder, Reader, Step, Tracer, Writer};
use thinair_wire::crc::Check;
use thinair_wire::time::Instant;

use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, Refused, SenderContext};
use crate::contexts::ContextState;
use crate::decompressor::{
    DecompressorConfig, Failure, IncomingPacket, NackPolicy, ReceiverContext, Traced, Verified,
};
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::arrival::Moment;
use crate::flow::establish::Establishment;
use crate::flow::health::{Health, Verdict};
use crate::flow::receiver::Receiver;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;
use crate::storage::Shared;

/// Octets of the IR header without the CID.
const IR_LEN: usize = 3;

/// IR header. RFC 5795, section 5.4.1. The CRC covers the header up to the profile octet.
pub(crate) fn ir<'p, C: Coder<'p>>(c: &mut C) -> Step {
    let mut res = false;
    let mut profile = 0_u8;
    c.discriminator(7, 0b111_1110)?;
    // "MUST be set to zero; otherwise, the decompressor MUST discard the packet."
    let res = c.flag("res", &mut res)?;
    c.require(!res)?;
    c.uint("Profile", 8, &mut profile)?;
    c.require(profile == 0)?;
    c.crc("CRC", 8)
}

/// True if an IP packet may begin with an octet.
const fn is_ip(first: u8) -> bool {
    matches!(first >> 4, 4 | 6)
}

/// The single context of profile 0x0000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UncompressedSender {
    establishment: Establishment,
}

impl SenderContext for UncompressedSender {
    type Room = ();

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc3095
    }

    fn may_be_rejected(&self) -> bool {
        false
    }

    /// Handles feedback: any feedback makes the profile bidirectional (RFC 3095, section 5.10.3 c).
    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        _: &CompressorConfig,
        _: &mut Shared<'_, ()>,
    ) -> Option<Cid> {
        self.establishment.answered(now);
        match feedback.ack {
            AckType::Ack => self.establishment.acknowledge(),
            // A NACK comes from the context of the flow before, whose CID this one has taken over.
            AckType::Nack | AckType::StaticNack => self.establishment.require_ir(1),
        }
        None
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut Shared<'_, ()>) {
        self.establishment.require_ir(config.repetitions.max(1));
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        self.establishment.context_state(cid, ProfileId::Uncompressed, None)
    }
}

impl UncompressedSender {
    pub(crate) fn new(now: Instant, config: &CompressorConfig) -> Self {
        Self { establishment: Establishment::new(now, config.repetitions.max(1)) }
    }

    /// Sends octets. Those that no version of IP begins with go as IR packets, for a Normal packet has to begin like IP (RFC 5795, section
    /// 5.4.2).
    pub(crate) fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Result<Compressed, Refused> {
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.begin_static_packet(now, policy);
        let frame = CidFrame::new(cid, config.channel.cids());
        let may_be_normal = packet.first().is_some_and(|first| is_ip(*first));
        let format = if self.establishment.is_ir() || !may_be_normal { Format::Ir } else { Format::Normal };
        let header_out = match format {
            Format::Ir => frame.len() + IR_LEN,
            _ => frame.len(),
        };
        let len = header_out + packet.len();
        let out = out.get_mut(..len).ok_or(Refused::NoRoom)?;
        if format == Format::Ir {
            let _ = ir(&mut Writer::new(out, frame.len()));
        }
        frame.close(header_out, packet, out)?;
        if format == Format::Ir {
            // The CRC is the last octet of the header, and does not cover itself.
            out[header_out - 1] = Check::Crc8.of(&out[..header_out - 1]);
        }
        let refresh = self.establishment.is_refresh() && format.carries_dynamic();
        let profile = ProfileId::Uncompressed;
        let compressed = Compressed { cid, profile, format, header_in: 0, header_out, len, refresh };
        self.establishment.count(format);
        self.establishment.sent(now, &compressed, format == Format::Ir, policy);
        Ok(compressed)
    }
}

/// The context of a CID at the decompressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UncompressedReceiver;

impl ReceiverContext for UncompressedReceiver {
    fn profile(&self) -> ProfileId {
        ProfileId::Uncompressed
    }

    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState {
        let (profile, state) = (ProfileId::Uncompressed, DecompressorState::Fc.name());
        ContextState { cid, profile, state, mode: config.mode, sn: None }
    }

    fn note_success(&mut self, _: u8, format: Format, _: Mode) -> bool {
        format == Format::Ir
    }

    fn health_mut(&mut self) -> Option<&mut Health> {
        None
    }

    fn judge(&mut self, _: Moment, _: u8, _: Option<&Failure>, _: &NackPolicy<'_>) -> Verdict {
        Verdict::NoEvidence(None)
    }

    /// Completes feedback: the only kind is an ACK in FEEDBACK-1 (RFC 5795, section 5.4.5).
    fn complete(&mut self, element: Feedback, _: Option<Format>, _: &DecompressorConfig) -> Feedback {
        Feedback { sn_bits: 8, mode: None, protected: false, ..element }
    }
}

impl Receiver for UncompressedReceiver {
    type Room = ();

    fn new(_: ProfileId) -> Self {
        Self
    }

    fn ir<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        _: Option<&Self>,
        _: &mut Shared<'m, ()>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let header = packet.header;
        let mut reader = Reader::new(header.first, header.rest);
        ir(&mut reader).map_err(|_| Failure::Malformed)?;
        let payload = reader.remaining();
        let header_in = header.len_before(payload);
        // The CRC is the last octet of the header, and does not cover itself.
        let covered = header.whole.get(..header_in - 1).ok_or(Failure::Malformed)?;
        if reader.crc_read() != Some((8, Check::Crc8.of(covered))) {
            return Err(Failure::Crc(Format::Ir));
        }
        Verified::deliver(header, Format::Ir, 0, payload, out)
    }

    fn compressed<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        _: &mut Shared<'m, ()>,
        out: &mut [u8],
    ) -> Result<Verified, Failure> {
        let header = packet.header;
        if !is_ip(header.first) {
            return Err(Failure::Malformed);
        }
        let len = 1 + header.rest.len();
        let [first, room @ ..] = out.get_mut(..len).ok_or(Failure::NoRoom(len))? else {
            return Err(Failure::NoRoom(len));
        };
        *first = header.first;
        room.copy_from_slice(header.rest);
        Ok(Verified { format: Format::Normal, header_in: header.whole.len() - len, header_out: 0, len })
    }

    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        _: &DecompressorConfig,
        _: &Shared<'_, ()>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format> {
        if packet.first >> 4 == 0b1111 {
            let _ = ir(&mut Tracer::new(Reader::new(packet.first, packet.rest), on_field));
            return Some(Format::Ir);
        }
        let octets = packet.rest;
        on_field(Traced { name: "IP packet", bits: 8, value: u32::from(packet.first), octets: &[] });
        on_field(Traced { name: "IP packet", bits: octets.len() as u32 * 8, value: 0, octets });
        Some(Format::Normal)
    }
}
