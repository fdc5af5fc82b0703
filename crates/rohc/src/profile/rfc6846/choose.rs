//! Which format says a packet: the cheapest one that fits. RFC 6846, section 7.3.

use thinair_wire::coder::{Coder, Refusal, Step, Writer};
use thinair_wire::crc::Check;

use super::compress::{Context, MSNS, Plan, aged};
use super::encodings::Counter;
use super::formats::{base, co_common_len, formats, has_crc7};
use super::numbers::Numbers;
use super::state::State;
use super::{Fields, Says, irregular};
use crate::compressor::CompressorConfig;
use crate::profile::Format;

impl Context {
    /// What a compressed packet may have to say.
    #[inline]
    pub(super) fn fields(
        &self,
        next: &State,
        last: &State,
        payload: u32,
        plan: &Plan,
        config: &CompressorConfig,
    ) -> Fields {
        let ip = next.inner();
        let sent = self.sent(next, last, config);
        let is_due = |what: usize| plan.due >> what & 1 == 1;
        let seq_scale =
            if self.scaled_seqs >= config.window && payload == u32::from(self.payload) { payload } else { 0 };
        let stride = u32::from(next.ack_stride);
        let ack_scale = if self.scaled_acks >= config.window && !is_due(aged::STRIDE) { stride } else { 0 };
        let oldest = next.msn.wrapping_sub(u16::from(config.window.min(MSNS)));
        let ttl = if is_due(aged::TTL) { None } else { Some((ip.header.ttl, ip.header.ttl)) };
        // Offsets of another behavior mean nothing.
        let is_whole = plan.ip_id || is_due(aged::BEHAVIOR) || !ip.behavior.is_sequential();
        let offsets = if is_whole { None } else { self.ip_id_offset.bounds() };
        Fields {
            msn: Counter::between(next.msn, Some((oldest, next.msn.wrapping_sub(1)))),
            seq: Counter::between(next.seq, self.seq.bounds()),
            ack: Counter::between(next.ack, self.ack.bounds()),
            may_scale_seq: seq_scale != 0,
            may_scale_ack: ack_scale != 0,
            seq_scaled: scaled(next.seq, &self.seq, seq_scale, |_| last.seq_residue),
            ack_scaled: scaled(next.ack, &self.ack, ack_scale, |stride| last.ack % stride),
            window: Counter::write(next.window, &self.window),
            ttl: Counter::between(ip.header.ttl, ttl),
            ip_id_offset: Counter::between(next.ip_id_offset(), offsets),
            has_whole_ip_id: false,
            outer_ttl: is_due(aged::OUTER_TTL),
            says: Says {
                ack_stride: is_due(aged::STRIDE),
                urg_ptr: is_due(aged::URG_PTR),
                dscp: is_due(aged::DSCP),
                ttl: is_due(aged::TTL),
                list: is_due(aged::LIST) || sent.present != 0,
            },
            options: sent,
            crc3: 0,
            crc7: 0,
        }
    }
}

/// Writes the least format that says everything; `None` if there is none.
#[inline]
pub(super) fn compressed(
    writer: &mut Writer<'_>,
    next: &mut State,
    headers: &[u8],
    plan: &Plan,
    x: &mut Fields,
) -> Option<Format> {
    let extended = plan.extended || x.says.list;
    if !(extended || plan.common) {
        x.crc3 = Check::Crc3.of(headers);
    }
    for &format in formats(next) {
        let is_strong = has_crc7(format);
        if plan.common && format != Format::CoCommon || extended && !is_strong || !x.may_fit(format) {
            continue;
        }
        if is_strong {
            x.crc7 = Check::Crc7.of(headers);
            if format != Format::CoCommon && co_common_len(next, x) < EXTENDED {
                continue;
            }
        }
        writer.rewind();
        if try_format(format, writer, next, x).is_ok() {
            return Some(format);
        }
        x.forget();
    }
    None
}

/// Writes a packet in a format if that says everything.
#[inline]
fn try_format(format: Format, writer: &mut Writer<'_>, next: &mut State, x: &mut Fields) -> Step {
    base(format, writer, next, x)?;
    let is_complete = x.seq.is_known() && x.ack.is_known() && x.window.is_known();
    Coder::enforce(writer, is_complete)?;
    irregular(writer, next, x).map_err(|_| Refusal::DoesNotFit)
}

impl Fields {
    /// Forgets which numbers a format has said that did not fit.
    #[cold]
    fn forget(&mut self) {
        (self.seq.said, self.ack.said, self.window.said) = (false, false, false);
    }

    /// Whether a format has a place for each number that has changed, so that it is worth trying.
    #[inline(always)]
    pub(super) fn may_fit(&self, format: Format) -> bool {
        use Format::{
            CoCommon, Rnd1, Rnd2, Rnd3, Rnd4, Rnd5, Rnd6, Rnd7, Rnd8, Seq1, Seq2, Seq3, Seq4, Seq5, Seq6,
            Seq7, Seq8,
        };
        let (seq, ack, window) = match format {
            Rnd1 | Seq1 => (true, false, false),
            Rnd2 | Seq2 => (self.may_scale_seq, false, false),
            Rnd3 | Seq3 => (false, true, false),
            Rnd4 | Seq4 => (false, self.may_scale_ack, false),
            Rnd5 | Seq5 => (true, true, false),
            Rnd6 | Seq6 => (self.may_scale_seq, true, false),
            Rnd7 | Seq7 => (false, true, true),
            Rnd8 | Seq8 => (true, true, false),
            CoCommon => return true,
            _ => return false,
        };
        (seq || self.seq.is_static()) && (ack || self.ack.is_static()) && (window || self.window.is_static())
    }
}

/// Octets of `rnd_8` and `seq_8` without their list.
const EXTENDED: usize = 7;

/// A scaled value with the scaled candidates, of which there are none without a scale, which is 0 then. What the other side may
/// hold has the `residue` of the last value. Bounds may be of an older one: where its residue is another, they say nothing of the
/// scaled ones. Nothing may wrap around: the residue is another one then.
#[inline(always)]
fn scaled(value: u32, held: &Numbers, scale: u32, residue: impl Fn(u32) -> u32) -> Counter {
    let (1.., Some((low, high))) = (scale, held.bounds()) else { return Counter::read(0_u32) };
    let residue = residue(scale);
    let is_in_step = low <= high
        && value >= low
        && value % scale == residue
        && low % scale == residue
        && high % scale == residue;
    Counter::between(value / scale, is_in_step.then(|| (low / scale, high / scale)))
}
