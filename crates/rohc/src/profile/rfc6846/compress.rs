//! Compression of the packets of one flow. RFC 6846, section 5.2.

use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::range::Range;
use thinair_wire::time::Instant;

use super::growth::NUMBERS;
use super::learn::{Ecn, IpIds, Strides};
use super::life::{Life, moment};
use super::numbers::Numbers;
use super::options::{ITEMS, index};
use super::replicate::{self, Base};
use super::segment::{SegmentOctets, TcpSegment};
use super::state::{SYN, TcpRoom, TcpState};
use super::{ir, ir_dyn};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, Refused};
use crate::flow::caution::Caution;
use crate::flow::establish::Establishment;
use crate::flow::pending::Pending;
use crate::flow::sender::{Departure, Start};
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};

/// Fields that a packet carries only after a change: indices in [`Pending`].
pub(super) mod changes {
    pub(in super::super) const TTL: usize = 0;
    pub(in super::super) const DSCP: usize = 1;
    pub(in super::super) const DF: usize = 2;
    pub(in super::super) const URG_PTR: usize = 3;
    pub(in super::super) const STRIDE: usize = 4;
    pub(in super::super) const BEHAVIOR: usize = 5;
    pub(in super::super) const ECN_USED: usize = 6;
    pub(in super::super) const LIST: usize = 7;
    pub(in super::super) const OUTER_TTL: usize = 8;
    pub(in super::super) const FLAGS: usize = 9;
    pub(in super::super) const COUNT: usize = 10;
}

/// Number of MSNs that 4 bits distinguish, ahead of the oldest one that the other side may have.
pub(super) const MSNS: u8 = 11;

/// Context of one flow at the compressor, apart from its [`TcpRoom`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSenderContext {
    pub(super) establishment: Establishment,
    /// The CID belonged to another flow of this profile before.
    pub(super) reused: bool,
    /// The other side has the static context: it was acknowledged, or TCP shows that it arrived. Before that it may have the
    /// context of another flow with this CID, which no IR-DYN packet corrects, nor its CRC detects; an IR packet is then sent
    /// instead.
    pub(super) is_rooted: bool,
    /// The newest change was acknowledged by feedback with a CRC.
    pub(super) confirmed: bool,
    /// Base of the context, until an IR packet is better; true if the context had one.
    pub(super) base: Option<Cid>,
    pub(super) is_replica: bool,
    /// No packet was sent yet.
    pub(super) is_new: bool,
    /// The context is that of a [`Pattern`](super::pattern::Pattern), and no flow.
    pub(super) is_pattern: bool,
    pub(super) life: Life,
    /// Time of the last packet, as [`moment`] encodes it.
    pub(super) sent: u32,
    /// MSN of the newest packet.
    pub(super) msn: u16,
    /// MSN of the newest change.
    pub(super) since: u16,
    // Values that the decompressor may hold.
    pub(super) numbers: [Numbers; NUMBERS],
    pub(super) window: Range<u16>,
    pub(super) ip_id_offset: Range<u16>,
    /// The IR packets carry all fields.
    pub(super) pending: Pending<{ changes::COUNT }>,
    /// Number of packets that had an item in their list; number of packets since the content of an item has changed.
    pub(super) sent_items: [u8; ITEMS],
    /// Items that fewer packets had than a change is repeated, a bit for each index.
    pub(super) pending_items: u16,
    pub(super) same: [u8; ITEMS],
    /// Octets of the last payload; number of packets in a row with it, and with an unchanged residue of the sequence number.
    pub(super) payload: u16,
    pub(super) scaled_seqs: u8,
    /// Number of packets in a row with an unchanged stride and residue of the acknowledgment number.
    pub(super) scaled_acks: u8,
    /// The decompressor may expect correct TCP checksums; number of packets that have shown it otherwise.
    pub(super) expects_right: bool,
    pub(super) wrong_checksums: u8,
    pub(super) caution: Caution,
    pub(super) ip_ids: IpIds,
    pub(super) strides: Strides,
    pub(super) ecn: Ecn,
}

/// A recorded packet, with the state before it and the base of its context.
pub(super) struct SegmentToSend<'a> {
    pub(super) octets: &'a SegmentOctets<'a>,
    pub(super) last: &'a TcpState,
    pub(super) base: Option<&'a Base>,
}

/// A packet that was written, or has to be written as an IR or IR-DYN packet.
pub(super) struct Written {
    pub(super) format: Format,
    /// Options that are in the list in full, a bit for each place.
    pub(super) present: u16,
    /// The TCP checksum is correct.
    pub(super) is_right: bool,
}

/// Parts that a compressed packet needs.
pub(super) struct PacketNeeds {
    /// Fields that are due, a bit for each of [`changes`].
    pub(super) due: u16,
    /// The list, the RSF flags, TTL, or the use of ECN.
    pub(super) extended: bool,
    /// Fields that only `co_common` has.
    pub(super) common: bool,
    /// The full IP-ID, which does not depend on the MSN.
    pub(super) ip_id: bool,
}

impl TcpSenderContext {
    /// Creates the context of a new flow.
    pub(super) fn new(room: &mut TcpRoom, start: Start<'_, Self>, config: &CompressorConfig) -> Self {
        let Start { now, base, is_pattern, .. } = start;
        let (reused, msn) = (start.before.is_some(), start.random.next() as u16);
        // RFC 6846, section 6.1.1: the MSN continues if the CID belonged to a flow of this profile.
        let msn = if reused { room.0.msn } else { msn };
        room.0 = TcpState { msn, ..TcpState::EMPTY };
        Self {
            establishment: Establishment::new(now, config.refresh.ir_packets(config.repetitions)),
            reused,
            is_rooted: false,
            confirmed: false,
            base,
            is_replica: base.is_some(),
            is_new: true,
            is_pattern,
            life: Life::default(),
            sent: 0,
            msn,
            since: msn.wrapping_add(1),
            numbers: [Numbers::NONE; NUMBERS],
            window: Range::new(),
            ip_id_offset: Range::new(),
            pending: Pending::NONE,
            sent_items: [0; ITEMS],
            pending_items: u16::MAX,
            same: [0; ITEMS],
            payload: 0,
            scaled_seqs: 0,
            scaled_acks: 0,
            expects_right: false,
            wrong_checksums: 0,
            caution: Caution::default(),
            ip_ids: IpIds::default(),
            strides: Strides::default(),
            ecn: Ecn::default(),
        }
    }

    /// True if no more packets of its flow are expected.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.life.is_over(moment(now).wrapping_sub(self.sent))
    }

    /// True if the context may be the base of another one.
    pub(crate) fn is_base(&self) -> bool {
        self.confirmed && self.establishment.is_established()
    }

    /// Compresses a packet whose state becomes `next`; `last` is the state so far.
    #[inline]
    pub(super) fn compress_behind(
        &mut self,
        segment: &TcpSegment<'_>,
        base: Option<&Base>,
        last: &TcpState,
        next: &mut TcpState,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, config) = (departure.now, departure.config);
        if self.is_new {
            segment.begin(next);
        }
        segment.put_into(next);
        // "The entire table of TCP options items is always replicated" (RFC 6846, section 6.3.7).
        if let Some(base) = base.filter(|_| self.is_new) {
            next.options = base.room.0.options;
        }
        let has_other_options = next.options.take(segment.options).ok_or(Refused::ByThisPacket)?;
        if self.establishment.is_ir() && base.is_none() && (last.rsf != SYN || segment.rsf() & SYN != 0) {
            // An IR packet has all options in full.
            next.options.renumber(segment.options).ok_or(Refused::ByThisPacket)?;
        }
        self.life.note(moment(now), next, last);
        self.is_rooted |= self.life.has_shaken_hands();
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.begin_packet(now, policy);
        self.note(now, next, last, has_other_options || self.is_new, config);
        // Timestamps go on in a pause, further than their bits tell.
        if self.caution.may_hide_changes() && next.options.structure().contains(&index::TIMESTAMP) {
            self.establishment.require_dynamic(1);
        }
        self.send(&SegmentToSend { octets: &segment.octets, last, base }, next, departure)
    }

    /// Writes a recorded packet, and updates the context.
    pub(super) fn send(
        &mut self,
        packet: &SegmentToSend<'_>,
        next: &mut TcpState,
        departure: &mut Departure<'_, '_>,
    ) -> Result<Compressed, Refused> {
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let SegmentToSend { octets: segment, last, .. } = *packet;
        let frame = CidFrame::new(cid, config.channel.cids());
        let payload = segment.payload;
        let mut writer = Writer::new(departure.out, frame.len());
        let is_farewell = payload.is_empty() && self.life.is_farewell(next, last);
        let mut written = if is_farewell {
            self.write_farewell(now, &mut writer, next, last, segment, config)
        } else {
            self.write(now, &mut writer, next, last, segment, config)
        };
        if matches!(written.format, Format::Ir | Format::IrDyn) {
            self.write_in_full(&mut writer, &mut written, packet, next, config)?;
        }
        let format = written.format;
        let end = writer.finish()?;
        let len = frame.close(end, payload, departure.out)?;
        if format.is_initialization() {
            frame.fill_crc8(end, departure.out);
        }
        let refresh = self.establishment.is_refresh() && format.carries_dynamic();
        self.note_sent(now);
        if next.ack_stride != last.ack_stride {
            self.scaled_acks = 0;
        }
        self.commit(next, (last.ack, last.seq_residue), &written, payload.len(), config);
        let (profile, header_in) = (ProfileId::Tcp, segment.headers.len());
        let compressed = Compressed { cid, profile, format, header_in, header_out: end, len, refresh };
        let policy = config.policy(self.establishment.is_two_way());
        self.establishment.sent(now, &compressed, format == Format::Ir, policy);
        Ok(compressed)
    }

    /// Writes an IR, IR-DYN or IR-CR packet.
    #[cold]
    fn write_in_full(
        &self,
        writer: &mut Writer<'_>,
        written: &mut Written,
        packet: &SegmentToSend<'_>,
        next: &mut TcpState,
        config: &CompressorConfig,
    ) -> Result<(), Refused> {
        if !self.is_rooted {
            written.format = Format::Ir;
        }
        let mut sent = self.sent(next, &packet.last.options, config);
        sent.present = u16::MAX;
        written.present = sent.present;
        writer.rewind();
        if let Some(base) = packet.base
            && written.format == Format::Ir
            && replicate::suits(&base.room.0, next)
        {
            let (space, crc7) = (config.channel.cids(), Check::Crc7.of(packet.octets.headers));
            if replicate::write(writer, base, space, crc7, next, &mut sent).is_ok() {
                written.format = Format::IrCr;
                written.present = sent.present;
                return Ok(());
            }
            writer.rewind();
        }
        let mut has_stride = next.ack_stride != 0 || self.reused;
        let write = if written.format == Format::Ir { ir } else { ir_dyn };
        write(writer, next, &mut sent, &mut has_stride).map_err(|_| Refused::ByThisPacket)?;
        written.present = sent.present;
        Ok(())
    }
}
