//! Compressing the packets of one flow. RFC 5225, sections 5.2.1 and 6.8.

use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::range::Range;
use thinair_wire::time::Instant;

use super::chains::irregular_chain;
use super::formats::{NUMBERS, base, co_repair, formats, ir, is_strong};
use super::headers::{Headers, MAX_IP};
use super::late::PacketOrder;
use super::note::changes;
use super::state::State;
use super::stride::Strides;
use crate::compressor::{Compressed, CompressorConfig, Refused, ReorderRatio};
use crate::field::ip_id::Watcher;
use crate::field::rtp::Guess;
use crate::field::timer::{ClockComparison, TimerLimits};
use crate::flow::caution::Caution;
use crate::flow::establish::Establishment;
use crate::flow::pending::Pending;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::state::CompressorState;

/// The context of one flow at the compressor, beside its [`V2Room`](super::V2Room).
#[derive(Clone, Copy, Debug)]
pub(crate) struct V2SenderContext {
    pub(crate) profile: ProfileId,
    pub(super) establishment: Establishment,
    /// The other side has the static chain: it was acknowledged.
    pub(super) is_rooted: bool,
    /// Nothing was sent yet.
    pub(super) is_new: bool,
    /// MSN of the newest packet, and of the newest change.
    pub(super) msn: u32,
    pub(super) since: u32,
    /// Newest MSN that was acknowledged, or the first one.
    pub(super) acknowledged: u32,
    /// The MSN after that of the last packet, if that was late, or the numbers of the sender have jumped back.
    pub(super) behind: Option<u32>,
    /// `reorder_ratio` of the next packet.
    pub(super) reorder_ratio: ReorderRatio,
    pub(super) pending: Pending<{ changes::COUNT }>,
    pub(super) watchers: [Watcher; MAX_IP],
    pub(super) strides: Strides,
    pub(super) comparison: ClockComparison,
    /// Evidence that a flow of UDP or UDP-Lite is RTP.
    pub(super) guess: Guess,
    pub(super) caution: Caution,
    /// The last packet with a strong CRC, or IR packet, had a right UDP checksum, which covers the numbers of RTP.
    pub(super) sums: bool,
    // Values that the decompressor may have.
    pub(super) msns: Range<u32, 2>,
    pub(super) ip_id_offsets: Range<u16, 2>,
    /// Timestamps, encoded as in [`State::stamp`].
    pub(super) timestamps: Range<u32, 2>,
    /// `ts_offset`. If there is only one, a scaled timestamp determines the timestamp.
    pub(super) ts_offsets: Range<u32, 2>,
    /// Timestamps of MSN 0 by `ts_stride`. If there is only one, the MSN determines the timestamp.
    pub(super) lines: Range<u32, 2>,
    /// The MSN determines all fields that depend on it, with every packet that may be the reference.
    pub(super) is_steady: bool,
    pub(super) numbers: [Range<u32, 2>; NUMBERS],
}

/// A packet to be compressed.
pub(super) struct Outbound<'a> {
    pub(super) now: Instant,
    /// Its headers and its payload.
    pub(super) octets: &'a [u8],
    pub(super) payload: &'a [u8],
    /// Limits of a timer for timestamps, if one may be used.
    pub(super) timer: Option<TimerLimits>,
}

impl V2SenderContext {
    /// A context for a new flow. `msn` is random.
    pub(super) fn new(profile: ProfileId, msn: u32, now: Instant, config: &CompressorConfig) -> Self {
        Self {
            profile,
            establishment: Establishment::new(now, config.refresh.ir_packets(config.repetitions)),
            is_rooted: false,
            is_new: true,
            msn,
            since: msn.wrapping_add(1),
            acknowledged: msn,
            behind: None,
            reorder_ratio: config.reorder_ratio,
            pending: Pending::NONE,
            watchers: [Watcher::default(); MAX_IP],
            strides: Strides::default(),
            comparison: ClockComparison::default(),
            guess: Guess::default(),
            caution: Caution::default(),
            sums: false,
            msns: Range::new(),
            ip_id_offsets: Range::new(),
            timestamps: Range::new(),
            ts_offsets: Range::new(),
            lines: Range::new(),
            is_steady: false,
            numbers: [Range::new(); NUMBERS],
        }
    }

    /// Compresses a packet of this flow, whose last one is in `room`.
    pub(super) fn compress(
        &mut self,
        headers: &Headers,
        packet: &[u8],
        room: &mut State,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let (octets, payload) = packet.split_at_checked(headers.len()).ok_or(Refused::ByThisPacket)?;
        let outbound = &Outbound { now, octets, payload, timer: departure.timer() };
        let last = *room;
        let mut next = State { headers: *headers, ..last };
        next.msn = last.own_msn(headers).unwrap_or(last.msn.wrapping_add(1));
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.begin_packet(now, policy);
        self.note(outbound, &mut next, &last, config);

        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        let (format, is_whole) = self.write(outbound, &mut writer, &mut next, config)?;
        let end = writer.finish()?;
        let len = frame.close(end, payload, departure.out)?;
        if format == Format::Ir {
            frame.fill_crc8(end, departure.out);
        }
        if format == Format::Ir || is_strong(format) {
            self.sums = next.sum_covers_rtp() && next.has_right_sum(octets, payload);
        }
        let refresh = self.establishment.is_refresh() && format.carries_dynamic();
        if (PacketOrder { next: &next, last: &last, format, is_whole }).is_late(&mut self.behind) {
            self.note_late(now, &next);
        } else {
            self.commit(now, &mut next, &last, format, config);
            *room = next;
        }
        let (profile, header_in) = (self.profile, headers.len());
        let compressed = Compressed { cid, profile, format, header_in, header_out: end, len, refresh };
        self.establishment.sent(now, &compressed, format == Format::Ir, policy);
        Ok(compressed)
    }

    /// Writes the smallest format that has all fields. Returns it, and true if it has the whole MSN.
    fn write(
        &self,
        outbound: &Outbound<'_>,
        writer: &mut Writer<'_>,
        next: &mut State,
        config: &CompressorConfig,
    ) -> Result<(Format, bool), Refused> {
        let Outbound { octets, payload, .. } = *outbound;
        let needs_whole_msn = self.may_need_sum(outbound.now, next) && !next.has_right_sum(octets, payload);
        let state = self.establishment.state();
        if state == CompressorState::So && !needs_whole_msn {
            let mut x = self.fields(outbound, next, config);
            x.crc3 = Check::Crc3.of(octets);
            let is_changed = !self.pending.is_none();
            for &format in formats(next).iter().filter(|format| !is_changed || **format == Format::CoCommon) {
                if is_strong(format) && x.crc7 == 0 {
                    x.crc7 = Check::Crc7.of(octets);
                }
                if format == Format::CoCommon {
                    x.control_crc3 = next.control_crc3();
                }
                writer.rewind();
                x.msn.bits = 0;
                if base(format, writer, next, &mut x)
                    .and_then(|()| irregular_chain(writer, next, &mut x))
                    .is_ok()
                {
                    return Ok((format, x.msn.bits == 0));
                }
            }
        }
        writer.rewind();
        if state != CompressorState::Ir {
            let mut x = self.fields(outbound, next, config);
            (x.crc7, x.control_crc3) = (Check::Crc7.of(octets), next.control_crc3());
            co_repair(writer, next, &mut x).map_err(|_| Refused::ByThisPacket)?;
            return Ok((Format::CoRepair, true));
        }
        ir(writer, next).map_err(|_| Refused::ByThisPacket)?;
        Ok((Format::Ir, true))
    }

    /// True if the decompressor may deliver a packet with a part of the MSN only if its checksum is right (`doubt`).
    fn may_need_sum(&self, now: Instant, next: &State) -> bool {
        next.has_rtp()
            && (next.msn.wrapping_sub(self.msn) != 1 || self.caution.is_behind_any_pause(now))
            && (next.checksum_used || next.has_lite())
    }
}
