//! A TCP segment in its IP packet, taken apart and put together again.

use thinair_wire::checksum::Sum;
use thinair_wire::header::chain::{HeaderChain, Ip as ChainIp, IpHeader};
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

use super::options::{MAX_OCTETS, Options};
use super::replicate::suits;
use super::state::{Behavior, EXTENSIONS, Ip, MAX_IP, State, TcpRoom};
use crate::compressor::Key;
use crate::decompressor::Unbuildable;

/// A packet whose headers profile 0x0006 can rebuild: all but its options is in `state`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'p> {
    pub(super) packet: &'p [u8],
    /// Octets of its headers.
    pub(super) header_len: usize,
    pub(super) state: State,
    pub(super) options: &'p [u8],
}

impl<'p> Segment<'p> {
    /// The segment in a packet; `None` if it is no TCP, or its headers have something that no format says.
    #[inline]
    pub(crate) fn of(chain: &HeaderChain<'p>) -> Option<Self> {
        let ips = chain.ips();
        let is_tcp = ips.last().is_some_and(|ip| ip.next == protocol::TCP);
        if !is_tcp || ips.len() > MAX_IP || ips.iter().any(|ip| ip.oddity.is_some()) {
            return None;
        }
        let packet = chain.packet();
        let tcp = Tcp::read(packet.get(chain.ip_end()..)?).ok()?;
        let mut state = State::EMPTY;
        state.ip_count = ips.len() as u8;
        let mut at = 0;
        for (kept, ip) in state.ips.iter_mut().zip(ips) {
            *kept = ip_of(ip)?;
            if !ip.extensions.is_empty() {
                let room = state.extensions.get_mut(at..at + ip.extensions.len())?;
                room.copy_from_slice(ip.extensions);
                at += ip.extensions.len();
            }
        }
        debug_assert!(at <= EXTENSIONS);
        state.source_port = tcp.source_port;
        state.destination_port = tcp.destination_port;
        state.seq = tcp.sequence_number;
        state.ack = tcp.acknowledgment_number;
        state.reserved = tcp.reserved;
        state.ecn = u8::from(tcp.cwr) << 1 | u8::from(tcp.ece);
        state.urg_flag = tcp.urg;
        state.ack_flag = tcp.ack;
        state.psh_flag = tcp.psh;
        state.rsf = u8::from(tcp.rst) << 2 | u8::from(tcp.syn) << 1 | u8::from(tcp.fin);
        state.window = tcp.window;
        state.checksum = tcp.checksum;
        state.urg_ptr = tcp.urgent_pointer;
        Some(Self { packet, header_len: chain.ip_end() + tcp.len(), state, options: tcp.options })
    }

    /// The packet of the segment.
    pub(crate) fn packet(&self) -> &'p [u8] {
        self.packet
    }

    /// What follows the headers.
    #[inline]
    pub(super) fn payload(&self) -> &'p [u8] {
        self.packet.get(self.header_len..).unwrap_or_default()
    }

    /// Whether a list of options can say those of the packet.
    pub(crate) fn is_restorable(&self) -> bool {
        { Options::EMPTY }.read(self.options).is_some()
    }

    /// Whether the context of its flow may be replicated from another one.
    pub(crate) fn suits(&self, base: &TcpRoom) -> bool {
        suits(&base.0, &self.state)
    }

    /// The TCP header, as it stands.
    #[inline]
    pub(super) fn tcp(&self) -> &'p [u8] {
        let len = Tcp::LEN + self.options.len();
        self.packet.get(self.header_len - len..self.header_len).unwrap_or_default()
    }

    /// The headers, as they stand.
    #[inline]
    pub(super) fn headers(&self) -> &'p [u8] {
        self.packet.get(..self.header_len).unwrap_or_default()
    }
}

impl Key for Segment<'_> {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        self.state.hosts(&mut word);
        let ports = u64::from(self.state.source_port) << 16 | u64::from(self.state.destination_port);
        word(ports << 16 | u64::from(protocol::TCP) << 8 | crate::profile::ProfileId::Tcp as u64);
    }
}

fn ip_of(ip: &ChainIp<'_>) -> Option<Ip> {
    // What an AH checks changes with every packet: such a flow goes by another profile.
    if ip.walk().any(|(kind, _)| kind == protocol::AH) {
        return None;
    }
    let extensions = u8::try_from(ip.extensions.len()).ok()?;
    let mut kept = Ip { protocol: ip.first_next_header(), extensions, ..Ip::EMPTY };
    match &ip.header {
        IpHeader::V4(header) => {
            (kept.tos, kept.ttl, kept.df, kept.id) =
                (header.tos, header.ttl, header.df, header.identification);
            kept.source[..4].copy_from_slice(&header.source);
            kept.destination[..4].copy_from_slice(&header.destination);
        }
        IpHeader::V6(header) => {
            kept.v6 = true;
            (kept.tos, kept.ttl, kept.flow_label) =
                (header.traffic_class, header.hop_limit, header.flow_label);
            (kept.source, kept.destination) = (header.source, header.destination);
            kept.behavior = Behavior::Random;
        }
    }
    Some(kept)
}

/// Writes the headers of a packet in front of room for its payload, and returns their octets.
#[inline]
pub(super) fn rebuild(state: &State, payload: usize, out: &mut [u8]) -> Result<usize, Unbuildable> {
    let len = headers_of(state, payload, out).map_err(|why| match why {
        Unbuildable::NoRoom(len) => Unbuildable::NoRoom(len + payload),
        Unbuildable::Malformed => Unbuildable::Malformed,
    })?;
    if len + payload > out.len() { Err(Unbuildable::NoRoom(len + payload)) } else { Ok(len) }
}

/// Writes the headers of a packet with a payload of so many octets.
pub(super) fn headers_of(state: &State, payload: usize, out: &mut [u8]) -> Result<usize, Unbuildable> {
    let mut options = [0; MAX_OCTETS];
    let options_len = state.options.write(&mut options).ok_or(Unbuildable::Malformed)?;
    let ips = state.ips();
    let ips_len: usize = ips.iter().map(|ip| ip.len() + usize::from(ip.extensions)).sum();
    let end = ips_len + Tcp::LEN + options_len;
    let headers = out.get_mut(..end).ok_or(Unbuildable::NoRoom(end))?;
    let mut at = 0;
    for (i, ip) in ips.iter().enumerate() {
        let behind = end + payload - at - if ip.v6 { 40 } else { 0 };
        let len = u16::try_from(behind).map_err(|_| Unbuildable::Malformed)?;
        let Some(room) = headers.get_mut(at..at + ip.len()) else { return Err(Unbuildable::Malformed) };
        if ip.v6 {
            ipv6(ip, len, room)
        } else {
            ipv4(ip, len, room)
        };
        at += ip.len();
        if ip.extensions > 0 {
            let extensions = state.extensions_of(i);
            let room = headers.get_mut(at..at + extensions.len()).ok_or(Unbuildable::Malformed)?;
            room.copy_from_slice(extensions);
            at += extensions.len();
        }
    }
    let Some((tcp, room)) = headers.get_mut(at..end).and_then(|tcp| tcp.split_first_chunk_mut::<20>()) else {
        return Err(Unbuildable::Malformed);
    };
    tcp[0..2].copy_from_slice(&state.source_port.to_be_bytes());
    tcp[2..4].copy_from_slice(&state.destination_port.to_be_bytes());
    tcp[4..8].copy_from_slice(&state.seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&state.ack.to_be_bytes());
    tcp[12] = ((5 + options_len / 4) as u8) << 4 | state.reserved & 0xF;
    let flag = |is: bool, bit: u32| u8::from(is) << bit;
    tcp[13] = state.ecn << 6
        | flag(state.urg_flag, 5)
        | flag(state.ack_flag, 4)
        | flag(state.psh_flag, 3)
        | state.rsf & 0b111;
    tcp[14..16].copy_from_slice(&state.window.to_be_bytes());
    tcp[16..18].copy_from_slice(&state.checksum.to_be_bytes());
    tcp[18..20].copy_from_slice(&state.urg_ptr.to_be_bytes());
    room.copy_from_slice(options.get(..options_len).unwrap_or_default());
    Ok(end)
}

fn ipv4(ip: &Ip, len: u16, out: &mut [u8]) {
    let Some(out) = out.first_chunk_mut::<20>() else { return };
    out[0] = 0x45;
    out[1] = ip.tos;
    out[2..4].copy_from_slice(&len.to_be_bytes());
    out[4..6].copy_from_slice(&ip.id.to_be_bytes());
    out[6] = u8::from(ip.df) << 6;
    out[7] = 0;
    out[8] = ip.ttl;
    out[9] = ip.protocol;
    out[12..16].copy_from_slice(&ip.source[..4]);
    out[16..20].copy_from_slice(&ip.destination[..4]);
    let checksum = Ipv4::checksum_of(out);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn ipv6(ip: &Ip, len: u16, out: &mut [u8]) {
    let Some(out) = out.first_chunk_mut::<40>() else { return };
    let first = 6 << 28 | u32::from(ip.tos) << 20 | ip.flow_label & 0xF_FFFF;
    out[0..4].copy_from_slice(&first.to_be_bytes());
    out[4..6].copy_from_slice(&len.to_be_bytes());
    out[6] = ip.protocol;
    out[7] = ip.ttl;
    out[8..24].copy_from_slice(&ip.source);
    out[24..40].copy_from_slice(&ip.destination);
}

/// Whether the TCP checksum is right: what it covers is the segment, `tcp` and `payload`, and the addresses. Behind a
/// routing header it seems wrong.
#[inline]
pub(super) fn checksum_is_right(ip: &Ip, tcp: &[u8], payload: &[u8]) -> bool {
    checksum_sum(ip, tcp, payload) == u16::MAX
}

/// The sum that is 2^16 - 1 if the TCP checksum is right.
#[inline]
pub(super) fn checksum_sum(ip: &Ip, tcp: &[u8], payload: &[u8]) -> u16 {
    pseudo_header(ip, tcp.len() + payload.len()).octets(tcp).octets(payload).fold()
}

/// True if a checksum is the sum of the pseudo-header alone: that of a host whose network interface is to add the rest, as
/// its own captures have it.
pub(super) fn is_checksum_to_come(ip: &Ip, checksum: u16, len: usize) -> bool {
    checksum == pseudo_header(ip, len).fold()
}

/// The sum of addresses, protocol and octets from the TCP header on. RFC 9293, section 3.1.
#[inline]
fn pseudo_header(ip: &Ip, len: usize) -> Sum {
    let address = if ip.v6 { 16 } else { 4 };
    Sum::ZERO
        .octets(ip.source.get(..address).unwrap_or_default())
        .octets(ip.destination.get(..address).unwrap_or_default())
        .word(u16::from(protocol::TCP))
        .word(len as u16)
}
