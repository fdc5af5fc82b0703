//! Compression of the packets of one context. Section 6 of `docs/dtls-profile.md`.

use thinair_wire::coder::{Lsb, Step, Writer};
use thinair_wire::time::Instant;
use thinair_wire::window::Window;

use super::formats::{self, MSN, format_for, has_check, is_long};
use super::header;
use super::note::{IpIdWatcher, changes};
use super::record::DtlsPacket;
use super::state::{ChecksumMode, DtlsPath, DtlsState};
use super::{HeaderFields, msn_interval};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, Refused};
use crate::flow::caution::Caution;
use crate::flow::establish::Establishment;
use crate::flow::pace::steps;
use crate::flow::pending::Pending;
use crate::flow::search::TRIALS;
use crate::flow::sender::{Departure, Sender as _};
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};

/// The context of one flow at the compressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DtlsSenderContext {
    pub(super) state: DtlsState,
    /// Octets of the connection ID that the flow had last.
    pub(super) cid_len: u8,
    pub(super) establishment: Establishment,
    pub(super) pending: Pending<{ changes::COUNT }>,
    /// MSN of the newest change.
    pub(super) since: u16,
    /// MSNs of the last packets, each newer than those before.
    pub(super) msns: Window<u16>,
    pub(super) ip_id: IpIdWatcher,
    /// Difference of the octets of the last record that may be a nonce.
    pub(super) last_difference: Option<u64>,
    /// Context from which this one is replicated, until the decompressor has either.
    pub(super) base: Option<Cid>,
    /// The decompressor has the addresses of the context, which may be the base of others.
    pub(super) is_confirmed: bool,
    caution: Caution,
}

impl DtlsSenderContext {
    /// Creates a context for the flow of a packet.
    pub(super) fn new(
        packet: &DtlsPacket<'_>,
        now: Instant,
        base: Option<Cid>,
        config: &CompressorConfig,
    ) -> Self {
        let mut state = DtlsState { path: packet.path, ..DtlsState::default() };
        state.path.ip_id_mode = IpIdWatcher::first(packet.ip_id);
        // The MSN begins with the sequence number.
        state.msn = (packet.record.number as u16).wrapping_sub(1);
        Self {
            state,
            cid_len: 0,
            establishment: Establishment::new(now, config.refresh.ir_packets(config.repetitions)),
            pending: Pending::NONE,
            since: state.msn,
            msns: Window::new(),
            ip_id: IpIdWatcher::default(),
            last_difference: None,
            base,
            is_confirmed: false,
            caution: Caution::default(),
        }
    }

    /// True if an IR-CR packet for a flow with that path may name this context. The decompressor needs a checksum to verify the addresses.
    pub(super) fn is_base_of(&self, path: &DtlsPath) -> bool {
        self.is_confirmed && self.state.path.has_same_hosts(path)
    }

    /// Compresses a packet of this flow; `base` is the context from which it is replicated.
    pub(super) fn compress_packet(
        &mut self,
        packet: &DtlsPacket<'_>,
        base: Option<&Self>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let policy = departure.config.policy(self.establishment.is_two_way());
        self.establishment.begin_packet(departure.now, policy);
        let (mut x, next) = self.note(packet, departure.config);
        let is_verified = next.path.checksum != ChecksumMode::Zero;
        if let Some(base) = base.filter(|base| is_verified && base.is_base_of(&next.path)) {
            x.base = self.base();
            x.has_dynamic = base.pending.has(changes::PATH) || !base.state.path.has_same_dynamic(&next.path);
        }
        let (_, payload) = packet.octets.split_at_checked(next.headers()).ok_or(Refused::ByThisPacket)?;
        let is_elided = next.path.checksum == ChecksumMode::Elided;
        let sum = if is_elided { header::payload_sum(payload) } else { 0 };
        self.send(payload, sum, &mut x, Some(next), departure)
    }

    /// Writes a packet whose fields were chosen, and records it. `next` is the state behind it, but for its numbers, if that is another
    /// one.
    #[inline]
    pub(super) fn send(
        &mut self,
        payload: &[u8],
        sum: u16,
        x: &mut HeaderFields,
        mut next: Option<DtlsState>,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        let needed = self.needed_bits(now, x.msn);
        writer.offer(MSN, Lsb { value: x.msn.into(), needed });
        let long = self.long_format(x.base.is_some());
        let state = next.as_mut().unwrap_or(&mut self.state);
        let header_in = state.headers();
        let format = long.unwrap_or_else(|| format_for(&state.path, x.carries, needed));
        write(format, &mut writer, sum, x, state).map_err(|_| Refused::ByThisPacket)?;
        let header_out = writer.finish()?;
        let len = frame.close(header_out, payload, departure.out)?;
        let is_ir = format.is_initialization();
        if is_ir {
            frame.fill_crc8(header_out, departure.out);
        }
        let ahead = self.state.ahead(x.msn);
        self.caution.sent(now, steps(ahead));
        if ahead > 0 {
            if let Some(next) = next {
                self.state = next;
            }
            self.state.accept(x);
            self.msns.push(x.msn, config.window.into());
        }
        let refresh = self.establishment.is_refresh() && is_long(format);
        self.note_sent(x, format);
        let profile = ProfileId::Dtls;
        let compressed = Compressed { cid, profile, format, header_in, header_out, len, refresh };
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.sent(now, &compressed, is_ir, policy);
        Ok(compressed)
    }

    /// True if no packet was sent yet.
    #[inline]
    pub(super) fn is_first(&self) -> bool {
        self.msns.is_empty()
    }

    /// Format of the next packet, if that has to have all fields.
    #[inline]
    fn long_format(&self, has_base: bool) -> Option<Format> {
        if self.establishment.is_ir() {
            Some(if has_base { Format::IrCr } else { Format::Ir })
        } else if !self.establishment.is_established() || self.pending.has(changes::PATH) {
            Some(Format::CoRepair)
        } else {
            None
        }
    }

    /// Number of bits of the MSN that are enough for every MSN that the decompressor may have: 6, 7 or 16. After a pause the decompressor
    /// tries up to 256 turns of these, which checks distinguish.
    #[inline]
    fn needed_bits(&self, now: Instant, msn: u16) -> u32 {
        let Some((lowest, highest)) = self.msns.bounds() else { return u16::BITS };
        let careful = self.caution.bits(now, 1).saturating_sub(TRIALS.ilog2());
        let fits = |k: u32| {
            let (below, _) = msn_interval(k);
            let ahead = |reference: u16| u32::from(msn.wrapping_sub(reference).wrapping_add(below as u16));
            k >= careful && ahead(lowest) < 1 << k && ahead(highest) < 1 << k
        };
        [6, 7].into_iter().find(|&k| fits(k)).unwrap_or(u16::BITS)
    }
}

/// Writes a packet of that format.
#[inline]
fn write(
    format: Format,
    writer: &mut Writer<'_>,
    sum: u16,
    x: &mut HeaderFields,
    state: &mut DtlsState,
) -> Step {
    if is_long(format) {
        x.has_msn = x.msn != x.number as u16 || state.shape.kind.is_unified();
    }
    if has_check(format) {
        x.check = header::check16(state, x, x.checksum);
    } else if format == Format::IrCr {
        x.check = state.digest;
    }
    formats::packet(format, writer, x, state)?;
    if writer.crc_width() > 0 && !format.is_initialization() {
        let sent = if is_long(format) { u16::BITS } else { writer.sent(MSN) };
        writer.fill_crc(header::crc8(state, x, sent, sum));
    }
    Ok(())
}
