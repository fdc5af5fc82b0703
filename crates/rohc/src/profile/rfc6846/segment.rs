//! A TCP segment in its IP packet: parsing and rebuilding of its headers.

use thinair_wire::header::chain::{self, HeaderChain};
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

use super::options::{MAX_OCTETS, TcpOptionTable};
use super::replicate::suits;
use super::state::{EXTENSIONS, IpState, MAX_IP, TcpRoom, TcpState};
use crate::compressor::FlowKey;
use crate::decompressor::Unbuildable;
use crate::field::ip::IpHeader;
use crate::work;

/// Octets of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentOctets<'p> {
    /// The headers unchanged, and the octets that follow them.
    pub(super) headers: &'p [u8],
    pub(super) payload: &'p [u8],
    /// The octets from the TCP header on.
    pub(super) tcp: &'p [u8],
}

impl SegmentOctets<'_> {
    /// True if the TCP checksum is correct behind the innermost IP header. With a routing header it seems wrong.
    #[inline]
    pub(super) fn has_right_checksum(&self, inner: &IpHeader) -> bool {
        inner.pseudo_header(protocol::TCP, self.tcp.len()).octets(self.tcp).fold() == u16::MAX
    }
}

/// A packet whose headers profile 0x0006 can rebuild.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSegment<'p> {
    chain: &'p HeaderChain<'p>,
    pub(super) octets: SegmentOctets<'p>,
    /// The TCP header without its options.
    tcp: &'p [u8; Tcp::LEN],
    pub(super) options: &'p [u8],
}

impl<'p> TcpSegment<'p> {
    /// Returns the segment in a packet. `None` if it is no TCP, or its headers have something that no format can encode.
    #[inline]
    pub(crate) fn of(chain: &'p HeaderChain<'p>) -> Option<Self> {
        let ips = chain.ips();
        let is_tcp = ips.last().is_some_and(|ip| ip.next == protocol::TCP);
        if !is_tcp || ips.len() > MAX_IP || !chain.is_plain() && !has_known_extensions(ips) {
            return None;
        }
        let behind_ip = chain.packet().get(chain.ip_end()..)?;
        let (tcp, behind) = behind_ip.split_first_chunk::<{ Tcp::LEN }>()?;
        let options = behind.get(..(usize::from(tcp[12] >> 4) * 4).checked_sub(Tcp::LEN)?)?;
        let (headers, payload) =
            chain.packet().split_at_checked(chain.ip_end() + Tcp::LEN + options.len())?;
        Some(Self { chain, octets: SegmentOctets { headers, payload, tcp: behind_ip }, tcp, options })
    }

    /// True if a list can encode the options of the packet.
    pub(crate) fn is_restorable(&self) -> bool {
        { TcpOptionTable::EMPTY }.read(self.options).is_some()
    }

    /// True if the packet is between the hosts of a flow.
    #[inline]
    fn has_hosts_of(&self, state: &TcpState) -> bool {
        let has_same_ends = |(ip, kept): (&chain::Ip<'_>, &IpState)| match ip.header() {
            chain::IpHeader::V4(ip) => {
                !kept.is_v6()
                    && kept.header.source.first_chunk() == Some(&ip.source)
                    && kept.header.destination.first_chunk() == Some(&ip.destination)
            }
            chain::IpHeader::V6(ip) => {
                kept.is_v6() && (kept.header.source, kept.header.destination) == (ip.source, ip.destination)
            }
        };
        self.chain.ips().len() == state.ips().len()
            && self.chain.ips().iter().zip(state.ips()).all(has_same_ends)
    }

    /// True if the packet belongs to a flow.
    #[inline]
    pub(super) fn is_of(&self, state: &TcpState) -> bool {
        let [a, b, c, d, ..] = *self.tcp;
        [a, b] == state.source_port.to_be_bytes()
            && [c, d] == state.destination_port.to_be_bytes()
            && self.has_hosts_of(state)
    }

    /// True if the context of its flow may be replicated from another one.
    pub(crate) fn suits(&self, base: &TcpRoom) -> bool {
        self.has_hosts_of(&base.0) && suits(&base.0, &self.state())
    }

    /// Fields of the packet without its options, and no control fields.
    pub(super) fn state(&self) -> TcpState {
        let mut state = TcpState::EMPTY;
        self.begin(&mut state);
        self.put_into(&mut state);
        state
    }

    /// Copies the IP headers into a state.
    pub(super) fn begin(&self, state: &mut TcpState) {
        state.ip_count = self.chain.ips().len() as u8;
        for (kept, ip) in state.ips.iter_mut().zip(self.chain.ips()) {
            kept.header = IpHeader::of(ip);
        }
    }

    /// Copies all fields except the options into the state of a packet between the same hosts.
    #[inline(always)]
    pub(super) fn put_into(&self, state: &mut TcpState) {
        let mut at = 0;
        for (kept, ip) in state.ips.iter_mut().zip(self.chain.ips()) {
            kept.header.update(ip);
            kept.header.protocol = ip.first_next_header();
            if let chain::IpHeader::V6(ip) = ip.header() {
                kept.header.flow_label = ip.flow_label;
            }
            kept.extensions = ip.extensions.len() as u8;
            if !ip.extensions.is_empty()
                && let Some(room) = state.extensions.get_mut(at..at + ip.extensions.len())
            {
                room.copy_from_slice(ip.extensions);
                at += ip.extensions.len();
            }
        }
        let [a, b, c, d, seq @ .., e, f, g, h, offset, flags, i, j, k, l, m, n] = *self.tcp;
        state.source_port = u16::from_be_bytes([a, b]);
        state.destination_port = u16::from_be_bytes([c, d]);
        state.seq = u32::from_be_bytes(seq);
        state.ack = u32::from_be_bytes([e, f, g, h]);
        state.reserved = offset & 0xF;
        state.ecn = flags >> 6;
        state.urg_flag = flags & 0x20 != 0;
        state.ack_flag = flags & 0x10 != 0;
        state.psh_flag = flags & 0x08 != 0;
        state.rsf = flags & 0x07;
        state.window = u16::from_be_bytes([i, j]);
        state.checksum = u16::from_be_bytes([k, l]);
        state.urg_ptr = u16::from_be_bytes([m, n]);
    }

    /// The flags RST, SYN and FIN.
    pub(super) fn rsf(&self) -> u8 {
        self.tcp[13] & 0b111
    }

    /// Passes the addresses to `word`, as words of a hash.
    #[inline]
    pub(super) fn hosts(&self, word: &mut impl FnMut(u64)) {
        for ip in self.chain.ips() {
            match ip.header() {
                chain::IpHeader::V4(Ipv4 { source: [a, b, c, d], destination: [e, f, g, h], .. }) => {
                    word(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
                }
                chain::IpHeader::V6(_) => IpHeader::of(ip).ends(&mut *word),
            }
        }
    }
}

/// True if the chains can encode these headers. An AH protects fields that change with every packet, so that such a flow uses
/// another profile.
#[cold]
fn has_known_extensions(ips: &[chain::Ip<'_>]) -> bool {
    let is_known =
        |ip: &chain::Ip<'_>| ip.oddity.is_none() && ip.walk().all(|(kind, _)| kind != protocol::AH);
    ips.iter().all(is_known) && ips.iter().map(|ip| ip.extensions.len()).sum::<usize>() <= EXTENSIONS
}

impl FlowKey for TcpSegment<'_> {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        self.hosts(&mut word);
        let [a, b, c, d, ..] = *self.tcp;
        let ports = u64::from(u32::from_be_bytes([a, b, c, d]));
        word(ports << 16 | u64::from(protocol::TCP) << 8 | crate::id::ProfileId::Tcp as u64);
    }
}

/// Writes the headers of a packet in front of room for its payload, and returns their octets.
#[inline]
pub(super) fn rebuild(state: &TcpState, payload: usize, out: &mut [u8]) -> Result<usize, Unbuildable> {
    let len = headers_of(state, payload, out).map_err(|why| match why {
        Unbuildable::NoRoom(len) => Unbuildable::NoRoom(len + payload),
        Unbuildable::Malformed => Unbuildable::Malformed,
    })?;
    if len + payload > out.len() { Err(Unbuildable::NoRoom(len + payload)) } else { Ok(len) }
}

/// Writes the headers of a packet with `payload` octets of payload.
pub(super) fn headers_of(state: &TcpState, payload: usize, out: &mut [u8]) -> Result<usize, Unbuildable> {
    let mut options = [0; MAX_OCTETS];
    let options_len = state.options.write(&mut options).ok_or(Unbuildable::Malformed)?;
    let end = state.ip_len() + Tcp::LEN + options_len;
    let headers = out.get_mut(..end).ok_or(Unbuildable::NoRoom(end))?;
    work::note(end / 8);
    let mut at = 0;
    for (i, ip) in state.ips().iter().enumerate() {
        let behind = end + payload - at - ip.header.version.header_len();
        at = ip.header.write(ip.header.id, ip.header.protocol, behind, headers, at)?;
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
