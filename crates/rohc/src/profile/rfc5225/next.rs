//! The fast path: both ends predict the headers of the next packet, which is sent as `pt_0_crc3` and the fields that cannot be
//! predicted.

use thinair_wire::crc::Check;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use super::compress::V2SenderContext;
use super::decompress;
use super::headers::{Kind, infer_seldom, infer_v4, infer_v6};
use super::state::{State, coverage};
use crate::compressor::Compressed;
use crate::decompressor::Verified;
use crate::field::ip_id::Behavior;
use crate::flow::arrival::Moment;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::packet::PacketHeader;
use crate::state::DecompressorState;

/// Bits of MSN in `pt_0_crc3`, and octets of headers that are predicted.
const BITS: u32 = 4;
const MOST: usize = 128;

impl State {
    /// Makes the headers of the last packet in `out` those of the next one, which has `total` octets. `irregular` fills in fields of two
    /// octets that follow from nothing, each at its offset, in the order of the irregular chain.
    #[inline(always)]
    fn predict(
        &self,
        out: &mut [u8],
        total: usize,
        mut irregular: impl FnMut(usize, &mut [u8; 2]) -> Option<()>,
    ) -> Option<()> {
        let total = u16::try_from(total).ok()?;
        let mut behaviors = self.behaviors.iter();
        for item in self.headers.items() {
            let at = usize::from(item.at);
            let behind = total.checked_sub(item.at.into())?;
            match item.kind {
                Kind::V4 => {
                    let h: &mut [u8; Ipv4::LEN] = out.get_mut(at..)?.first_chunk_mut()?;
                    let mut id = [h[4], h[5]];
                    match *behaviors.next()? {
                        Behavior::Random => irregular(at + 4, &mut id)?,
                        Behavior::Constant => {}
                        behavior => {
                            let next = behavior.counted(u16::from_be_bytes(id)).wrapping_add(1);
                            id = behavior.counted(next).to_be_bytes();
                        }
                    }
                    [h[4], h[5]] = id;
                    infer_v4(h, behind);
                }
                Kind::V6 => {
                    behaviors.next();
                    infer_v6(out.get_mut(at..)?.first_chunk_mut()?, behind.into())?;
                }
                Kind::Udp => {
                    let [.., a, b, c, d]: &mut [u8; Udp::LEN] = out.get_mut(at..)?.first_chunk_mut()?;
                    [*a, *b] = behind.to_be_bytes();
                    if self.checksum_used {
                        let mut sum = [*c, *d];
                        irregular(at + 6, &mut sum)?;
                        [*c, *d] = sum;
                    }
                }
                Kind::UdpLite => {
                    let [.., a, b, c, d]: &mut [u8; Udp::LEN] = out.get_mut(at..)?.first_chunk_mut()?;
                    let (mut covered, mut sum) = ([*a, *b], [*c, *d]);
                    match self.coverage_behavior {
                        coverage::INFERRED => covered = behind.to_be_bytes(),
                        coverage::IRREGULAR => irregular(at + 4, &mut covered)?,
                        _ => {}
                    }
                    irregular(at + 6, &mut sum)?;
                    ([*a, *b], [*c, *d]) = (covered, sum);
                }
                Kind::Rtp => {
                    let h: &mut [u8; 8] = out.get_mut(at..)?.first_chunk_mut()?;
                    let [first, second, a, b, stamp @ ..] = h;
                    (*first, *second) = (*first & 0x3F | 0x80, *second & 0x7F);
                    [*a, *b] = u16::from_be_bytes([*a, *b]).wrapping_add(1).to_be_bytes();
                    *stamp = u32::from_be_bytes(*stamp).wrapping_add(self.ts_stride).to_be_bytes();
                }
                Kind::Esp => {
                    let number: &mut [u8; 4] = out.get_mut(at + 4..)?.first_chunk_mut()?;
                    *number = u32::from_be_bytes(*number).wrapping_add(1).to_be_bytes();
                }
                Kind::Ah | Kind::Gre => return None,
                Kind::Mine => infer_seldom(Kind::Mine, out.get_mut(item.range())?)?,
                Kind::HopByHop | Kind::Routing | Kind::Destination => {}
            }
        }
        Some(())
    }

    /// Octets of the irregular chain of the predicted packet: those of the fields that [`predict`](Self::predict) requests.
    pub(super) fn irregular_octets(&self) -> u8 {
        let mut behaviors = self.behaviors.iter();
        let fields = self.headers.items().iter().map(|item| match item.kind {
            Kind::V4 => u8::from(behaviors.next() == Some(&Behavior::Random)),
            Kind::V6 => {
                behaviors.next();
                0
            }
            Kind::Udp => self.checksum_used.into(),
            Kind::UdpLite => 1 + u8::from(self.coverage_behavior == coverage::IRREGULAR),
            _ => 0,
        });
        2 * fields.sum::<u8>()
    }

    /// Records that the headers are those of the next packet.
    #[inline]
    fn go_on(&mut self) {
        self.msn = self.msn.wrapping_add(1);
        if !self.is_sequential() {
            self.ip_id_offset = self.offset_of_id();
        }
    }
}

impl V2SenderContext {
    /// Compresses the packet if it is the predicted one. Of others nothing has changed.
    #[inline(always)]
    pub(super) fn compress_predicted(
        &mut self,
        packet: &[u8],
        room: &mut State,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        // Clock and timestamps are compared on the full path.
        let compares_clock = room.has_rtp() && room.time_stride == 0 && departure.timer().is_some();
        if compares_clock || !self.caution.is_in(departure.group) {
            return None;
        }
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let out = &mut *departure.out;
        let waited = self.caution.waited(now);
        let is_calm = self.pending.is_none() && self.is_steady && self.establishment.is_established();
        let may_need_sum = room.has_rtp() && self.caution.is_behind_any_pause(now);
        if !is_calm || !self.establishment.is_quiet(now) || !self.caution.is_quiet(waited) || may_need_sum {
            return None;
        }
        let next = room.msn.wrapping_add(1);
        if !self.msns.is_within(next.wrapping_add(room.reorder_ratio.p(BITS)), 1 << BITS) {
            return None;
        }
        let len = room.headers.len();
        let (octets, payload) = packet.split_at_checked(len)?;
        // The full path decides whether another profile compresses it.
        let may_rise = match room.profile {
            ProfileId::UdpV2 | ProfileId::UdpLiteV2 => {
                config.rtp.guesses()
                    && self.guess.goes_on()
                    && payload.first().is_some_and(|first| first >> 6 == 2)
            }
            ProfileId::IpV2 => {
                let inner = room.headers.inner();
                let next = inner.kind.next(room.headers.of(inner));
                matches!(next, protocol::UDP | protocol::UDP_LITE | protocol::ESP)
            }
            _ => false,
        };
        if may_rise {
            return None;
        }
        let frame = CidFrame::new(cid, config.channel.cids());
        let start = frame.len();
        let (mut predicted, mut end) = (*room.headers.octets.first_chunk::<MOST>()?, start + 1);
        let headers = predicted.get_mut(..len)?;
        room.predict(headers, packet.len(), |at, field| {
            *field = *octets.get(at..)?.first_chunk()?;
            *out.get_mut(end..)?.first_chunk_mut()? = *field;
            end += 2;
            Some(())
        })?;
        if *headers != *octets {
            return None;
        }
        *out.get_mut(start)? = (next as u8 & 0xF) << 3 | Check::Crc3.of(octets);
        let sent = frame.close(end, payload, out).ok()?;

        let width = usize::from(config.window);
        *room.headers.octets.first_chunk_mut()? = predicted;
        room.go_on();
        self.msn = next;
        self.caution.sent_quietly(now, waited, 1);
        self.msns.push(next, width);
        if room.has_rtp() {
            self.timestamps.push(room.stamp(now), width);
        }
        self.establishment.count_quiet(sent);
        let (profile, format) = (room.profile, Format::Pt0Crc3);
        Some(Compressed { cid, profile, format, header_in: len, header_out: end, len: sent, refresh: false })
    }
}

impl decompress::V2ReceiverContext {
    /// The packet that is next by its `pt_0_crc3`, in a context in which nothing is in doubt. `None`, and nothing has changed, if it is
    /// another one, or its CRC does not match.
    #[inline(always)]
    pub(super) fn next_in_line(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        room: &mut State,
        out: &mut [u8],
    ) -> Option<Verified> {
        let next = room.msn.wrapping_add(1);
        if u32::from(packet.first >> 3) != next & 0xF
            || self.health.state != DecompressorState::Fc
            || self.health.is_doubtful()
            || self.behind.is_some()
            || self.late != decompress::LateAck::None
            || !self.arrivals.has_not_failed()
            || !self.is_next(now, 1 << BITS, room)
        {
            return None;
        }
        let len = room.headers.len();
        let headers = out.get_mut(..len)?;
        headers.copy_from_slice(room.headers.all());
        let (irregular, payload) = packet.rest.split_at_checked(self.irregular.into())?;
        let mut fields = irregular.as_chunks().0.iter();
        room.predict(headers, len + payload.len(), |_, field| {
            *field = *fields.next()?;
            Some(())
        })?;
        if Check::Crc3.of(headers) != packet.first & 7 {
            return None;
        }
        let verified = Verified::deliver(packet, Format::Pt0Crc3, len, payload, out).ok()?;
        room.headers.octets.get_mut(..len)?.copy_from_slice(out.get(..len)?);
        room.go_on();
        (self.msn, self.ack_due) = (next, false);
        self.movement.note_calm();
        self.seen = self.seen << 1 | 1;
        self.arrivals.note(now, 1);
        Some(verified)
    }
}
