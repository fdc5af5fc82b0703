//! Fast path of the compressor. A regular segment of an established connection has the last headers, but for its [`SegmentNumbers`]: it is
//! compared with them before it is parsed. All other packets take the full path, `TcpSenderContext::compress`.

use thinair_wire::coder::Writer;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;
use thinair_wire::time::Instant;

use super::choose::compressed;
use super::compress::{TcpSenderContext, Written};
use super::life::moment;
use super::segment::SegmentOctets;
use super::state::TcpState;
use crate::compressor::Compressed;
use crate::field::ip::IpVersion;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::ProfileId;

/// The PSH flag, in the octet of the flags.
const PSH: u8 = 0x08;

/// Fields that may change in a regular segment.
#[derive(Clone, Copy)]
struct SegmentNumbers {
    id: u16,
    msn: u16,
    seq: u32,
    ack: u32,
    psh_flag: bool,
    window: u16,
    checksum: u16,
    timestamps: [u32; 2],
}

impl TcpSenderContext {
    /// Compresses a regular segment of the connection. `None`, without a change, for another packet.
    #[inline]
    pub(super) fn compress_regular(
        &mut self,
        packet: &[u8],
        state: &mut TcpState,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        let waited = self.caution.waited(departure.now);
        if !self.is_calm(departure.now, waited, state) {
            return None;
        }
        let (numbers, segment) = state.next(packet)?;
        let before = state.replace(numbers);
        let done = self.send_regular(&segment, before, waited, state, departure);
        if done.is_none() {
            state.replace(before);
        }
        done
    }

    /// True if nothing has to be sent but numbers, `waited` after the last packet.
    #[inline]
    fn is_calm(&self, now: Instant, waited: u64, state: &TcpState) -> bool {
        self.pending.is_none()
            && self.establishment.is_established()
            && !self.establishment.is_refresh()
            && !(self.is_pattern || self.is_new || state.ecn_used)
            && self.life.is_established()
            && self.establishment.is_quiet(now)
            && self.caution.is_quiet(waited)
    }

    /// Writes a regular segment, whose numbers are in the state, and updates the context. `None`, without a change, if it needs another
    /// format.
    #[inline(always)]
    fn send_regular(
        &mut self,
        segment: &SegmentOctets<'_>,
        before: SegmentNumbers,
        waited: u64,
        next: &mut TcpState,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let (ip, payload) = (&next.ips[0], segment.payload);
        let (mut ip_ids, mut strides) = (self.ip_ids, self.strides);
        let goes_on = (ip.is_v6()
            || ip_ids.watch(ip.behavior, before.id, ip.header.id, false) == ip.behavior)
            && strides
                .watch(next.ack.wrapping_sub(before.ack))
                .is_none_or(|stride| stride == next.ack_stride);
        let is_right = segment.has_right_checksum(&ip.header);
        let offset = ip.behavior.counted(before.id).wrapping_sub(before.msn);
        let is_other = self.is_wrong_now(is_right, config)
            || self.caution.has_waited(now) && self.ip_id_in_doubt(now, next, offset).1
            || self.is_repeated(now, next, (before.seq, 0), payload.len());
        if !goes_on || is_other {
            return None;
        }
        let plan = self.plan(next, false);
        let last = (before.ack, next.seq_residue);
        let sent = self.sent(next, &next.options, config);
        let mut x = self.fields(next, last, sent, payload.len() as u32, &plan, config);
        if x.full.list {
            // A list changes the table of items.
            return None;
        }
        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(departure.out, frame.len());
        let format = compressed(&mut writer, next, segment.headers, &plan, &mut x)?;
        let end = writer.finish().ok()?;
        let len = frame.close(end, payload, departure.out).ok()?;
        // All is written: the state of both ends follows.
        (self.ip_ids, self.strides) = (ip_ids, strides);
        self.ecn.watch(false, false);
        self.is_rooted |= self.life.has_shaken_hands();
        self.establishment.count_quiet(len);
        self.sent = moment(now);
        self.caution.sent_quietly(now, waited, 1);
        let written = Written { format, present: x.options.present, is_right };
        self.commit(next, last, &written, payload.len(), config);
        let (profile, header_in) = (ProfileId::Tcp, segment.headers.len());
        Some(Compressed { cid, profile, format, header_in, header_out: end, len, refresh: false })
    }
}

impl TcpState {
    /// Replaces the numbers, and returns those before.
    #[inline]
    fn replace(&mut self, numbers: SegmentNumbers) -> SegmentNumbers {
        let SegmentNumbers { id, msn, seq, ack, psh_flag, window, checksum, timestamps } = numbers;
        let before = SegmentNumbers {
            id: self.ips[0].header.id,
            msn: self.msn,
            seq: self.seq,
            ack: self.ack,
            psh_flag: self.psh_flag,
            window: self.window,
            checksum: self.checksum,
            timestamps: self.options.timestamps,
        };
        self.ips[0].header.id = id;
        (self.msn, self.seq, self.ack, self.psh_flag) = (msn, seq, ack, psh_flag);
        (self.window, self.checksum, self.options.timestamps) = (window, checksum, timestamps);
        before
    }

    /// Returns the numbers and octets of the next packet; `None` if other fields have changed.
    #[inline]
    fn next<'p>(&self, packet: &'p [u8]) -> Option<(SegmentNumbers, SegmentOctets<'p>)> {
        let ip = &self.ips[0];
        if self.ip_count != 1 || ip.extensions != 0 || self.rsf != 0 {
            return None;
        }
        let ip_len = ip.header.version.header_len();
        let (headers, tcp) = packet.split_at_checked(ip_len)?;
        let id = match ip.header.version {
            IpVersion::V4 => u16::from_be_bytes(*headers.get(4..)?.first_chunk()?),
            IpVersion::V6 => ip.header.id,
        };
        let mut predicted = [0; Ipv6::LEN];
        ip.header.write(id, protocol::TCP, tcp.len(), &mut predicted, 0).ok()?;
        if *headers != *predicted.get(..ip_len)? {
            return None;
        }
        let (fixed, behind) = tcp.split_first_chunk::<{ Tcp::LEN }>()?;
        let [a, b, c, d, seq @ .., e, f, g, h, offset, flags, i, j, k, l, m, n] = *fixed;
        let options = usize::from(offset >> 4) * 4;
        let timestamps = self.options.timestamps_of(behind.get(..options.checked_sub(Tcp::LEN)?)?)?;
        let last_flags = self.ecn << 6 | u8::from(self.urg_flag) << 5 | u8::from(self.ack_flag) << 4;
        let is_like = [a, b] == self.source_port.to_be_bytes()
            && [c, d] == self.destination_port.to_be_bytes()
            && (offset & 0xF, flags & !PSH) == (self.reserved, last_flags)
            && [m, n] == self.urg_ptr.to_be_bytes();
        if !is_like {
            return None;
        }
        let numbers = SegmentNumbers {
            id,
            msn: self.msn.wrapping_add(1),
            seq: u32::from_be_bytes(seq),
            ack: u32::from_be_bytes([e, f, g, h]),
            psh_flag: flags & PSH != 0,
            window: u16::from_be_bytes([i, j]),
            checksum: u16::from_be_bytes([k, l]),
            timestamps,
        };
        let (headers, payload) = packet.split_at_checked(ip_len + options)?;
        Some((numbers, SegmentOctets { headers, payload, tcp }))
    }
}
