//! The short way of most packets: segments of one IP header whose flow has settled, which change nothing but numbers.
//!
//! It sends what the long way would send. Whatever is not as it was is left to that.

use thinair_wire::checksum::Sum;
use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::{Tcp, kind};
use thinair_wire::time::Instant;

use super::choose::scaled;
use super::compress::{Context, MSNS, aged};
use super::encodings::{Counter, ts_fits};
use super::formats::{base, short_formats};
use super::options::{Sent, index};
use super::state::{State, TcpRoom};
use super::{Fields, Says, settled_irregular};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, Key};
use crate::framing::Frame;
use crate::profile::ProfileId;

/// A packet that has the form of those that take the short way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance<'p> {
    packet: &'p [u8],
    ip: IpHeader<'p>,
    tcp: &'p [u8; Tcp::LEN],
    /// Octets of all headers.
    header_len: usize,
}

/// An IP header of the usual length. Of arrays, no place has to be checked.
#[derive(Clone, Copy, Debug)]
enum IpHeader<'p> {
    V4(&'p [u8; 20]),
    V6(&'p [u8; 40]),
}

impl<'p> Glance<'p> {
    /// `None` if the packet has another form.
    #[inline]
    pub(crate) fn of(packet: &'p [u8]) -> Option<Self> {
        let (ip, behind, next) = match *packet.first()? {
            0x45 => {
                let (ip, behind) = packet.split_first_chunk()?;
                (IpHeader::V4(ip), behind, ip[9])
            }
            first if first >> 4 == 6 => {
                let (ip, behind) = packet.split_first_chunk()?;
                (IpHeader::V6(ip), behind, ip[6])
            }
            _ => return None,
        };
        let tcp = behind.first_chunk::<{ Tcp::LEN }>()?;
        let data_offset = usize::from(tcp[12] >> 4) * 4;
        let header_len = packet.len() - behind.len() + data_offset;
        let is_whole = data_offset >= Tcp::LEN && header_len <= packet.len();
        (next == protocol::TCP && is_whole).then_some(Self { packet, ip, tcp, header_len })
    }

    /// The segment with its TCP header.
    #[inline]
    fn segment(&self) -> &'p [u8] {
        let at = match self.ip {
            IpHeader::V4(_) => 20,
            IpHeader::V6(_) => 40,
        };
        self.packet.get(at..).unwrap_or_default()
    }

    #[inline]
    fn payload(&self) -> &'p [u8] {
        self.packet.get(self.header_len..).unwrap_or_default()
    }

    /// Four octets of the TCP header.
    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.tcp[at], self.tcp[at + 1], self.tcp[at + 2], self.tcp[at + 3]])
    }

    /// Two octets of the TCP header.
    #[inline(always)]
    fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.tcp[at], self.tcp[at + 1]])
    }

    /// Whether the packet is of the flow.
    #[inline]
    pub(crate) fn is_of(&self, room: &TcpRoom) -> bool {
        let state = &room.0;
        let ip = &state.ips[0];
        let is_path = match self.ip {
            IpHeader::V4(h) => {
                !ip.v6
                    && ip.source.first_chunk::<4>() == h[12..].first_chunk()
                    && ip.destination.first_chunk::<4>() == h[16..].first_chunk()
            }
            IpHeader::V6(h) => {
                ip.v6
                    && Some(&ip.source) == h[8..].first_chunk()
                    && Some(&ip.destination) == h[24..].first_chunk()
            }
        };
        let ports = u32::from(state.source_port) << 16 | u32::from(state.destination_port);
        state.ip_count == 1 && is_path && ports == self.word(0)
    }

    /// Whether IP header, flags, window and urgent pointer are those of the last packet, but for the IP-ID and PSH.
    #[inline]
    fn is_like(&self, state: &State) -> bool {
        let (ip, len) = (&state.ips[0], self.packet.len());
        let half = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        let is_ip = match self.ip {
            IpHeader::V4(h) => {
                h[1] == ip.tos
                    && usize::from(half(h[2], h[3])) == len
                    && half(h[6], h[7]) == u16::from(ip.df) << 14
                    && h[8] == ip.ttl
                    && Ipv4::checksum_is_right(h)
            }
            IpHeader::V6(h) => {
                let first = 6 << 28 | u32::from(ip.tos) << 20 | ip.flow_label;
                [h[0], h[1], h[2], h[3]] == first.to_be_bytes()
                    && usize::from(half(h[4], h[5])) == len - 40
                    && h[7] == ip.ttl
            }
        };
        let flags = self.half(12) & 0x0FF7;
        is_ip
            && flags == u16::from(state.reserved) << 8 | u16::from(state.ecn) << 6 | ACK
            && self.half(14) == state.window
            && self.half(18) == state.urg_ptr
    }

    /// The timestamps, or none, if the options are those of the last packet.
    #[inline]
    fn timestamps(&self, state: &State) -> Option<Option<[u32; 2]>> {
        let octets = self.segment().get(Tcp::LEN..)?;
        match (self.tcp[12] >> 4, state.options.structure()) {
            (5, []) => Some(None),
            (8, [index::NOP, index::NOP, index::TIMESTAMP]) => {
                let (head, stamps) = octets.split_first_chunk::<4>()?;
                let (value, behind) = stamps.split_first_chunk::<4>()?;
                let echo = behind.first_chunk::<4>()?;
                let is_it = *head == [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10];
                is_it.then_some(Some([u32::from_be_bytes(*value), u32::from_be_bytes(*echo)]))
            }
            _ => None,
        }
    }

    /// The IP-ID; 0 if there is none.
    #[inline]
    fn ip_id(&self) -> u16 {
        match self.ip {
            IpHeader::V4(h) => u16::from_be_bytes([h[4], h[5]]),
            IpHeader::V6(_) => 0,
        }
    }

    /// Whether the TCP checksum is right.
    #[inline]
    fn checksum_is_right(&self) -> bool {
        let segment = self.segment();
        let sum = Sum::ZERO.word(u16::from(protocol::TCP)).word(segment.len() as u16);
        let sum = match self.ip {
            IpHeader::V4(h) => sum.octets(&h[12..]),
            IpHeader::V6(h) => sum.octets(&h[8..]),
        };
        // A header has whole words.
        sum.octets(self.tcp).octets(segment.get(Tcp::LEN..).unwrap_or_default()).checksum() == 0
    }
}

impl Key for Glance<'_> {
    /// The same as that of a segment.
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        match self.ip {
            IpHeader::V6(h) => {
                for at in [8, 16, 24, 32] {
                    word(h[at..at + 8].try_into().map_or(0, u64::from_ne_bytes));
                }
            }
            IpHeader::V4(h) => {
                word(u64::from_ne_bytes([h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19]]));
            }
        }
        let ports = u64::from(self.word(0));
        word(ports << 16 | u64::from(protocol::TCP) << 8 | ProfileId::Tcp as u64);
    }
}

/// The flag ACK, in its octet.
const ACK: u16 = 0x10;

impl Context {
    /// Notes whether the next packet may take the short way: nothing has to be said but numbers.
    pub(super) fn settle(&mut self, state: &State, config: &CompressorConfig) {
        let used = state.options.structure();
        self.settled = self.left_ir == 0
            && self.left_dyn == 0
            && state.ip_count == 1
            && state.inner().extensions == 0
            && (0..aged::COUNT).all(|what| !self.is_due(what, config))
            && used.iter().all(|index| self.told[usize::from(*index)] >= config.repetitions)
            && !state.ecn_used
            && state.ack_flag
            && !state.urg_flag
            && self.expects_right;
    }

    /// Compresses a packet of a flow that has settled; `None` if it has to go the long way. Nothing has changed then.
    #[inline]
    pub(crate) fn compress_settled(
        &mut self,
        now: Instant,
        glance: &Glance<'_>,
        room: &mut TcpRoom,
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let state = &mut room.0;
        // What is sent is shorter than the packet.
        let has_room = out.len() >= glance.packet.len();
        if !self.settled || !has_room || !self.timer.is_quiet(now) || !glance.is_like(state) {
            return None;
        }
        let stamps = glance.timestamps(state)?;
        if !glance.checksum_is_right() {
            return None;
        }
        let (seq, ack) = (glance.word(4), glance.word(8));
        if self.is_repeated(now, (seq, 0), state, glance.payload().len()) {
            return None;
        }
        let msn = state.msn.wrapping_add(1);
        let mut strides = self.strides;
        if strides.watch(ack.wrapping_sub(state.ack)).is_some_and(|stride| stride != state.ack_stride) {
            return None;
        }
        let mut ip_ids = self.ip_ids;
        let ip = &state.ips[0];
        let (behavior, id) = (ip.behavior, glance.ip_id());
        if !ip.v6 && ip_ids.watch(behavior, ip.id, id, false) != behavior
            || self.says_ip_id_anew(behavior, msn)
            || behavior.is_sequential() && self.caution.is_behind_any_pause(now)
        {
            return None;
        }
        let payload = glance.payload();
        let mut x = self.settled_fields(state, (seq, ack, msn, id), payload.len(), stamps, config)?;
        x.psh_flag = glance.tcp[13] & 0x08 != 0;
        x.crc3 = Check::Crc3.of(glance.packet.get(..glance.header_len)?);

        let frame = Frame::new(cid, config.channel.cids());
        let mut writer = Writer::new(out, frame.len());
        let mut found = None;
        for &format in short_formats(state) {
            if !x.may_fit(format) {
                continue;
            }
            writer.rewind();
            // What a format of a short CRC says is not in the state.
            if base(format, &mut writer, state, &mut x).is_ok() {
                found = Some(format);
                break;
            }
        }
        let format = found?;
        let last = (state.ack, state.seq_residue);
        (state.seq, state.ack, state.msn) = (seq, ack, msn);
        state.psh_flag = x.psh_flag;
        state.rsf = 0;
        state.checksum = glance.half(16);
        state.ips[0].id = id;
        if let Some(stamps) = stamps {
            state.options.timestamps = stamps;
        }
        // There is a form for the timestamps, and for everything else.
        let is_said = settled_irregular(&mut writer, state, &mut x, stamps.is_some()).is_ok();
        debug_assert!(is_said);
        (self.strides, self.ip_ids) = (strides, ip_ids);
        self.note_sent(now, config);
        self.note_numbers(state, last, stamps.is_some(), payload.len(), config);
        self.msn = msn;
        let end = writer.finish().ok()?;
        let len = frame.close(end, payload, out).ok()?;
        self.timer.count(len);
        let (header_in, header_out) = (glance.header_len, end);
        Some(Compressed { cid, profile: ProfileId::Tcp, format, header_in, header_out, len, refresh: false })
    }

    /// What a base header may have to say: numbers alone.
    #[inline(always)]
    fn settled_fields(
        &self,
        state: &State,
        (seq, ack, msn, id): (u32, u32, u16, u16),
        payload: usize,
        stamps: Option<[u32; 2]>,
        config: &CompressorConfig,
    ) -> Option<Fields> {
        let ip = &state.ips[0];
        let still = |value: u16| Counter::between(value, Some((value, value)));
        if !self.window.holds_only(state.window) {
            return None;
        }
        let (seq_bounds, ack_bounds) = (self.seq.bounds(), self.ack.bounds());
        let payload = payload as u32;
        let is_scaled =
            self.scaled_seqs >= config.window && payload == u32::from(self.payload) && payload > 0;
        let seq_scaled = scaled(seq, seq_bounds, is_scaled.then_some(payload), state.seq_residue);
        let stride = u32::from(state.ack_stride);
        let is_scaled = self.scaled_acks >= config.window && stride > 0;
        let ack_scaled =
            scaled(ack, ack_bounds, is_scaled.then_some(stride), state.ack.checked_rem(stride).unwrap_or(0));
        let nothing = Counter::between(0_u32, None);
        let offset = ip.behavior.nbo(id).wrapping_sub(msn);
        let is_still = !ip.behavior.is_sequential() || self.ip_id_offset.holds_only(offset);
        let timestamps = match stamps {
            Some([value, echo]) => {
                let [values, echoes] = &self.timestamps;
                let timestamps =
                    [Counter::between(value, values.bounds()), Counter::between(echo, echoes.bounds())];
                if !(ts_fits(&timestamps[0]) && ts_fits(&timestamps[1])) {
                    return None;
                }
                timestamps
            }
            None => [nothing; 2],
        };
        let x = Fields {
            msn: Counter::between(
                msn,
                Some((msn.wrapping_sub(u16::from(config.window.min(MSNS))), msn.wrapping_sub(1))),
            ),
            seq: Counter::between(seq, seq_bounds),
            ack: Counter::between(ack, ack_bounds),
            seq_scaled: seq_scaled.unwrap_or(nothing),
            ack_scaled: ack_scaled.unwrap_or(nothing),
            window: still(state.window),
            ttl: still(u16::from(ip.ttl)),
            ip_id_offset: if is_still { still(offset) } else { Counter::write(offset, &self.ip_id_offset) },
            may_scale_seq: seq_scaled.is_some(),
            may_scale_ack: ack_scaled.is_some(),
            has_whole_ip_id: false,
            ip_id: id,
            ack_flag: true,
            urg_flag: false,
            psh_flag: false,
            rsf: 0,
            ecn_used: false,
            behavior: ip.behavior,
            df: ip.df,
            dscp: 0,
            urg_ptr: 0,
            ack_stride: state.ack_stride,
            outer_ttl: false,
            says: Says::default(),
            options: Sent { present: 0, changed: 0, timestamps },
            crc3: 0,
            crc7: 0,
        };
        Some(x)
    }
}
