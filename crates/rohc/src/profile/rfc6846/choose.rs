//! Choice of the cheapest format that fits a packet. RFC 6846, section 7.3.

use thinair_wire::coder::{Step, Writer};
use thinair_wire::crc::Check;

use super::compress::{MSNS, PacketNeeds, TcpSenderContext, changes};
use super::encodings::Counter;
use super::formats::{base, co_common_len, formats, has_crc7, needs};
use super::numbers::Numbers;
use super::options::ListEncoding;
use super::state::TcpState;
use super::{FullFields, TcpFields, irregular};
use crate::compressor::CompressorConfig;
use crate::id::Format;

impl TcpSenderContext {
    /// Returns the fields of the base header of a packet. `last` has the acknowledgment number and `seq_number_residue` of the one before
    /// it.
    #[inline]
    pub(super) fn fields(
        &self,
        next: &TcpState,
        last: (u32, u32),
        sent: ListEncoding,
        payload: u32,
        plan: &PacketNeeds,
        config: &CompressorConfig,
    ) -> TcpFields {
        let ip = next.inner();
        let [seq, ack, ..] = &self.numbers;
        let is_due = |what: usize| plan.due >> what & 1 == 1;
        let seq_scale =
            if self.scaled_seqs >= config.window && payload == u32::from(self.payload) { payload } else { 0 };
        let stride = u32::from(next.ack_stride);
        let ack_scale =
            if self.scaled_acks >= config.window && !is_due(changes::STRIDE) { stride } else { 0 };
        let oldest = next.msn.wrapping_sub(u16::from(config.window.min(MSNS)));
        let ttl = if is_due(changes::TTL) { None } else { Some((ip.header.ttl, ip.header.ttl)) };
        // Offsets of another behavior are meaningless.
        let is_whole = plan.ip_id || is_due(changes::BEHAVIOR) || !ip.behavior.is_sequential();
        let offset = next.ip_id_offset();
        TcpFields {
            msn: Counter::within(next.msn, (oldest, next.msn.wrapping_sub(1))),
            seq: Counter::within(next.seq, seq.bounds()),
            ack: Counter::within(next.ack, ack.bounds()),
            may_scale_seq: seq_scale != 0,
            may_scale_ack: ack_scale != 0,
            seq_scaled: scaled(next.seq, seq, seq_scale, |_| last.1),
            ack_scaled: scaled(next.ack, ack, ack_scale, |stride| last.0 % stride),
            window: Counter::beside(next.window, &self.window),
            ttl: Counter::between(ip.header.ttl, ttl),
            ip_id_offset: if is_whole {
                Counter::read(offset)
            } else {
                Counter::beside(offset, &self.ip_id_offset)
            },
            has_whole_ip_id: false,
            outer_ttl: is_due(changes::OUTER_TTL),
            full: FullFields {
                ack_stride: is_due(changes::STRIDE),
                urg_ptr: is_due(changes::URG_PTR),
                dscp: is_due(changes::DSCP),
                ttl: is_due(changes::TTL),
                list: is_due(changes::LIST) || sent.present != 0,
            },
            options: sent,
            crc3: 0,
            crc7: 0,
        }
    }
}

/// Writes the smallest format that has all fields; `None` if there is none.
#[inline]
pub(super) fn compressed(
    writer: &mut Writer<'_>,
    next: &mut TcpState,
    headers: &[u8],
    plan: &PacketNeeds,
    x: &mut TcpFields,
) -> Option<Format> {
    let need = |what: u8, is_needed: bool| if is_needed { what } else { 0 };
    let required = need(needs::SEQ, !x.seq.is_static())
        | need(needs::ACK, !x.ack.is_static())
        | need(needs::WINDOW, !x.window.is_static())
        | need(needs::UNSCALED_SEQ, !x.may_scale_seq)
        | need(needs::UNSCALED_ACK, !x.may_scale_ack)
        | need(needs::EXTENDED, plan.extended || x.full.list)
        | need(needs::COMMON, plan.common);
    if required < needs::EXTENDED {
        x.crc3 = Check::Crc3.of(headers);
    }
    for &(format, met) in formats(next) {
        if required & !met != 0 {
            continue;
        }
        if has_crc7(format) {
            x.crc7 = Check::Crc7.of(headers);
            if format != Format::CoCommon && co_common_len(next, x) < EXTENDED {
                continue;
            }
        }
        if write(format, writer, next, x).is_ok() {
            return Some(format);
        }
    }
    None
}

/// Writes a packet in a format, if it fits.
#[inline(never)]
fn write(format: Format, writer: &mut Writer<'_>, next: &mut TcpState, x: &mut TcpFields) -> Step {
    writer.rewind();
    base(format, writer, next, x)?;
    irregular(writer, next, x)
}

/// Octets of `rnd_8` and `seq_8` without their list.
const EXTENDED: usize = 7;

/// Returns a scaled value with its candidates; there are none if the scale is 0. The values that the other side may hold have the
/// `residue` of the last value. Bounds may be those of an older one: with another residue they do not apply to scaled values. A
/// value must not wrap around, since its residue then changes.
#[inline(always)]
fn scaled(value: u32, held: &Numbers, scale: u32, residue: impl Fn(u32) -> u32) -> Counter {
    if scale == 0 {
        return Counter::read(0);
    }
    let ((low, high), residue) = (held.bounds(), residue(scale));
    let is_in_step = low <= high
        && value >= low
        && value % scale == residue
        && low % scale == residue
        && high % scale == residue;
    Counter::between(value / scale, is_in_step.then(|| (low / scale, high / scale)))
}
