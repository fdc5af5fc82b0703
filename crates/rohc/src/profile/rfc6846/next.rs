//! Fast path of the compressor. A regular segment of an established connection has the last headers, but for numbers, PSH flag and
//! checksum: it is compared with them before it is parsed, and written like any other. All other packets take the full path,
//! `TcpSenderContext::compress`.

use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

use super::compress::{SegmentToSend, TcpSenderContext};
use super::segment::SegmentOctets;
use super::state::TcpState;
use crate::compressor::Compressed;
use crate::field::ip::IpVersion;
use crate::flow::sender::Departure;

/// The PSH flag, in the octet of the flags.
const PSH: u8 = 0x08;

/// Octets that are enough for a packet in addition to those that it has.
const ROOM: usize = 16;

impl TcpSenderContext {
    /// Compresses a regular segment of the connection. `None`, without a change, for another packet.
    #[inline]
    pub(super) fn compress_regular(
        &mut self,
        packet: &[u8],
        state: &mut TcpState,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        if departure.out.len() < packet.len() + ROOM {
            return None;
        }
        let now = departure.now;
        let is_calm = self.pending.is_none()
            && self.establishment.is_established()
            && !(self.is_pattern || self.is_new || state.ecn_used)
            && self.life.is_established()
            && self.establishment.is_quiet(now)
            && self.caution.is_quiet(self.caution.waited(now));
        if !is_calm {
            return None;
        }
        let last = *state;
        let segment = last.next(packet, state);
        let (mut ip_ids, mut strides) = (self.ip_ids, self.strides);
        let (ip, kept) = (&state.ips[0], &last.ips[0]);
        let goes_on = segment.is_some()
            && (ip.is_v6()
                || ip_ids.watch(kept.behavior, kept.header.id, ip.header.id, false) == kept.behavior)
            && strides.watch(state.ack.wrapping_sub(last.ack)).is_none_or(|stride| stride == last.ack_stride);
        let Some(segment) = segment.filter(|_| goes_on) else {
            *state = last;
            return None;
        };
        (self.ip_ids, self.strides) = (ip_ids, strides);
        self.ecn.watch(false, false);
        self.is_rooted |= self.life.has_shaken_hands();
        self.establishment.count_quiet(0);
        let packet = SegmentToSend { octets: &segment, last: &last, base: None };
        let done = self.send(&packet, state, departure);
        if done.is_err() {
            *state = last;
        }
        done.ok()
    }
}

impl TcpState {
    /// Puts the numbers of the next packet into `next`, which equals this state, and returns its octets; `None` if other fields have
    /// changed.
    #[inline]
    fn next<'p>(&self, packet: &'p [u8], next: &mut Self) -> Option<SegmentOctets<'p>> {
        let ip = &self.ips[0];
        if self.ip_count != 1 || ip.extensions != 0 || self.rsf != 0 {
            return None;
        }
        let ip_len = ip.header.version.header_len();
        let (headers, tcp) = packet.split_at_checked(ip_len)?;
        if ip.header.version == IpVersion::V4 {
            next.ips[0].header.id = u16::from_be_bytes(*headers.get(4..)?.first_chunk()?);
        }
        let mut predicted = [0; Ipv6::LEN];
        let id = next.ips[0].header.id;
        ip.header.write(id, protocol::TCP, tcp.len(), &mut predicted, 0).ok()?;
        if *headers != *predicted.get(..ip_len)? {
            return None;
        }
        let (fixed, behind) = tcp.split_first_chunk::<{ Tcp::LEN }>()?;
        let [a, b, c, d, seq @ .., e, f, g, h, offset, flags, i, j, k, l, m, n] = *fixed;
        let options = usize::from(offset >> 4) * 4;
        next.options.timestamps =
            self.options.timestamps_of(behind.get(..options.checked_sub(Tcp::LEN)?)?)?;
        let last_flags = self.ecn << 6 | u8::from(self.urg_flag) << 5 | u8::from(self.ack_flag) << 4;
        let is_like = [a, b] == self.source_port.to_be_bytes()
            && [c, d] == self.destination_port.to_be_bytes()
            && (offset & 0xF, flags & !PSH) == (self.reserved, last_flags)
            && [m, n] == self.urg_ptr.to_be_bytes();
        if !is_like {
            return None;
        }
        next.msn = self.msn.wrapping_add(1);
        next.seq = u32::from_be_bytes(seq);
        next.ack = u32::from_be_bytes([e, f, g, h]);
        next.psh_flag = flags & PSH != 0;
        next.window = u16::from_be_bytes([i, j]);
        next.checksum = u16::from_be_bytes([k, l]);
        let (headers, payload) = packet.split_at_checked(ip_len + options)?;
        Some(SegmentOctets { headers, payload, tcp })
    }
}
