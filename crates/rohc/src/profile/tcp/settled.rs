//! The short way of most packets: segments of one IP header whose flow has settled, which change nothing but numbers.
//!
//! It sends what the long way would send. Whatever is not as it was is left to that.

use thinair_wire::checksum::Sum;
use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::kind;
use thinair_wire::time::Instant;

use super::compress::{Context, MSNS, aged, scaled};
use super::encodings::{Counter, ts_fits};
use super::formats::{base, formats, has_crc7};
use super::options::{Sent, index};
use super::state::{Ip, State, TcpRoom};
use super::{Fields, Says, irregular};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, Key};
use crate::profile::ProfileId;
use crate::profile::rfc3095::compress::frame;

/// A packet that has the form of those that take the short way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance<'p> {
    packet: &'p [u8],
    v6: bool,
    /// Octets of the IP header, and of all headers.
    ip_len: usize,
    header_len: usize,
}

impl<'p> Glance<'p> {
    /// `None` if the packet has another form.
    #[inline]
    pub(crate) fn of(packet: &'p [u8]) -> Option<Self> {
        let (v6, ip_len, next) = match *packet.first()? {
            0x45 => (false, 20, *packet.get(9)?),
            first if first >> 4 == 6 => (true, 40, *packet.get(6)?),
            _ => return None,
        };
        let data_offset = usize::from(packet.get(ip_len + 12)? >> 4) * 4;
        let header_len = ip_len + data_offset;
        let is_whole = data_offset >= 20 && header_len <= packet.len();
        (next == protocol::TCP && is_whole).then_some(Self { packet, v6, ip_len, header_len })
    }

    fn tcp(&self) -> &'p [u8] {
        self.packet.get(self.ip_len..self.header_len).unwrap_or_default()
    }

    fn payload(&self) -> &'p [u8] {
        self.packet.get(self.header_len..).unwrap_or_default()
    }

    /// Source and destination address, as they stand.
    #[inline]
    fn addresses(&self) -> &'p [u8] {
        let (from, to) = if self.v6 { (8, 40) } else { (12, 20) };
        self.packet.get(from..to).unwrap_or_default()
    }

    fn word(&self, at: usize) -> u32 {
        let octets = self.packet.get(at..at + 4).and_then(|octets| octets.try_into().ok());
        octets.map_or(0, u32::from_be_bytes)
    }

    fn half(&self, at: usize) -> u16 {
        let octets = self.packet.get(at..at + 2).and_then(|octets| octets.try_into().ok());
        octets.map_or(0, u16::from_be_bytes)
    }

    /// Whether the packet is of the flow.
    #[inline]
    pub(crate) fn is_of(&self, room: &TcpRoom) -> bool {
        let (state, addresses) = (&room.0, self.addresses());
        let ip = state.inner();
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        let ports = u32::from(state.source_port) << 16 | u32::from(state.destination_port);
        state.ip_count == 1
            && ip.v6 == self.v6
            && ports == self.word(self.ip_len)
            && ip.source.starts_with(source)
            && ip.destination.starts_with(destination)
    }

    /// Whether IP header, flags, window and urgent pointer are those of the last packet, but for the IP-ID and PSH.
    #[inline]
    fn is_like(&self, state: &State) -> bool {
        let ip = state.inner();
        let packet = self.packet;
        let at = self.ip_len;
        let is_ip = if self.v6 {
            let first = 6 << 28 | u32::from(ip.tos) << 20 | ip.flow_label;
            self.word(0) == first
                && usize::from(self.half(4)) == packet.len() - at
                && packet.get(7) == Some(&ip.ttl)
        } else {
            packet.get(1) == Some(&ip.tos)
                && usize::from(self.half(2)) == packet.len()
                && self.half(6) == u16::from(ip.df) << 14
                && packet.get(8) == Some(&ip.ttl)
                && Ipv4::checksum_is_right(packet.get(..20).unwrap_or_default())
        };
        let flags = self.half(at + 12) & 0x0FF7;
        is_ip
            && flags == u16::from(state.reserved) << 8 | u16::from(state.ecn) << 6 | ACK
            && self.half(at + 14) == state.window
            && self.half(at + 18) == state.urg_ptr
    }

    /// The timestamps, or none, if the options are those of the last packet.
    #[inline]
    fn timestamps(&self, state: &State) -> Option<Option<[u32; 2]>> {
        let at = self.ip_len + 20;
        match (self.header_len - at, state.options.structure()) {
            (0, []) => Some(None),
            (12, [index::NOP, index::NOP, index::TIMESTAMP]) => {
                (self.word(at) == TIMESTAMPS).then(|| Some([self.word(at + 4), self.word(at + 8)]))
            }
            _ => None,
        }
    }

    /// Whether the TCP checksum is right.
    #[inline]
    fn checksum_is_right(&self) -> bool {
        let len = self.packet.len() - self.ip_len;
        let sum = Sum::ZERO.octets(self.addresses()).word(u16::from(protocol::TCP)).word(len as u16);
        // A header has whole words.
        sum.octets(self.packet.get(self.ip_len..).unwrap_or_default()).checksum() == 0
    }
}

impl Key for Glance<'_> {
    /// The same as that of a segment.
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        let addresses = self.addresses();
        if self.v6 {
            for half in addresses.chunks_exact(8) {
                word(half.try_into().map_or(0, u64::from_ne_bytes));
            }
        } else {
            for address in addresses.chunks_exact(4) {
                let mut half = [0; 8];
                half[..4].copy_from_slice(address);
                word(u64::from_ne_bytes(half));
                word(0);
            }
        }
        let ports = u64::from(self.word(self.ip_len));
        word(ports << 16 | u64::from(protocol::TCP) << 8 | ProfileId::Tcp as u64);
    }
}

/// `NOP NOP TIMESTAMPS`, and the length of the last.
const TIMESTAMPS: u32 =
    (kind::NOP as u32) << 24 | (kind::NOP as u32) << 16 | (kind::TIMESTAMPS as u32) << 8 | 10;

/// The flag ACK, in its octet.
const ACK: u16 = 0x10;

impl Context {
    /// Notes whether the next packet may take the short way: nothing has to be said but numbers.
    pub(super) fn settle(&mut self, state: &State, config: &CompressorConfig) {
        let enough = if self.two_way { config.repetitions } else { aged::SETTLED };
        let used = state.options.structure();
        self.settled = self.left_ir == 0
            && self.left_dyn == 0
            && state.ip_count == 1
            && state.inner().extensions == 0
            && self.ages.iter().all(|age| *age >= enough)
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
        let at = glance.ip_len;
        let (seq, ack) = (glance.word(at + 4), glance.word(at + 8));
        let msn = state.msn.wrapping_add(1);
        let mut strides = self.strides;
        if strides.watch(ack.wrapping_sub(state.ack)).is_some_and(|stride| stride != state.ack_stride) {
            return None;
        }
        let mut ip_ids = self.ip_ids;
        let kept = *state.inner();
        let id = if glance.v6 { 0 } else { glance.half(4) };
        if !glance.v6 && ip_ids.watch(kept.behavior, kept.id, id, false) != kept.behavior {
            return None;
        }
        let payload = glance.payload();
        let mut x = self.settled_fields(state, &kept, (seq, ack, msn, id), payload.len(), stamps, config)?;
        let tcp = glance.tcp();
        x.psh_flag = tcp.get(13)? & 0x08 != 0;
        x.crc3 = Check::Crc3.of(glance.packet.get(..glance.header_len)?);

        let space = config.channel.cids();
        let (before, inside) = (cid.octets_before(space), cid.octets_inside(space));
        let mut writer = Writer::new(out, before + inside);
        let format = *formats(state).iter().find(|format| {
            if has_crc7(**format) || !x.may_fit(**format) {
                return false;
            }
            writer.rewind();
            // What a format of a short CRC says is not in the state.
            base(**format, &mut writer, state, &mut x).is_ok()
        })?;
        let last = (state.ack, state.seq_residue);
        (state.seq, state.ack, state.msn) = (seq, ack, msn);
        state.psh_flag = x.psh_flag;
        state.rsf = 0;
        state.checksum = glance.half(at + 16);
        state.inner_mut().id = id;
        if let Some(stamps) = stamps {
            state.options.timestamps = stamps;
        }
        // There is a form for the timestamps, and for everything else.
        let is_said = irregular(&mut writer, state, &mut x).is_ok();
        debug_assert!(is_said);
        (self.strides, self.ip_ids) = (strides, ip_ids);
        self.timer.count();
        self.note_numbers(state, last, stamps.is_some(), payload.len(), config);
        self.msn = msn;
        let end = writer.finish().ok()?;
        let len = end + payload.len();
        out.get_mut(end..len)?.copy_from_slice(payload);
        frame(out, cid, before, inside);
        let (header_in, header_out) = (glance.header_len, end);
        Some(Compressed { cid, profile: ProfileId::Tcp, format, header_in, header_out, len, refresh: false })
    }

    /// What a base header may have to say: numbers alone.
    #[inline]
    fn settled_fields(
        &self,
        state: &State,
        ip: &Ip,
        (seq, ack, msn, id): (u32, u32, u16, u16),
        payload: usize,
        stamps: Option<[u32; 2]>,
        config: &CompressorConfig,
    ) -> Option<Fields> {
        let still = |value: u16| Counter::between(value, Some((value, value)));
        let (seq_bounds, ack_bounds) = (self.seq.bounds(), self.ack.bounds());
        let payload = payload as u32;
        let is_scaled =
            self.scaled_seqs >= config.window && payload == u32::from(self.payload) && payload > 0;
        let seq_scaled = scaled(seq, seq_bounds, is_scaled.then_some(payload));
        let stride = u32::from(state.ack_stride);
        let is_scaled = self.scaled_acks >= config.window && stride > 0;
        let ack_scaled = scaled(ack, ack_bounds, is_scaled.then_some(stride));
        let nothing = Counter::between(0_u32, None);
        let window = self.window.bounds()?;
        let offset = ip.behavior.nbo(id).wrapping_sub(msn);
        let is_sequential = ip.behavior.is_sequential();
        let [value, echo] = stamps.unwrap_or_default();
        let timestamps = match stamps {
            Some(_) => {
                let [values, echoes] = &self.timestamps;
                [Counter::write(value, values), Counter::write(echo, echoes)]
            }
            None => [nothing; 2],
        };
        if stamps.is_some() && !timestamps.iter().all(ts_fits) {
            return None;
        }
        let x = Fields {
            msn: Counter::between(
                msn,
                Some((msn.wrapping_sub(u16::from(config.window.min(MSNS))), msn.wrapping_sub(1))),
            ),
            seq: Counter::between(seq, seq_bounds),
            ack: Counter::between(ack, ack_bounds),
            seq_scaled: seq_scaled.unwrap_or(nothing),
            ack_scaled: ack_scaled.unwrap_or(nothing),
            window: Counter::between(state.window, Some(window)),
            ttl: still(u16::from(ip.ttl)),
            ip_id_offset: if is_sequential {
                Counter::write(offset, &self.ip_id_offset)
            } else {
                still(offset)
            },
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
