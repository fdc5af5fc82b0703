//! State of a flow that both ends share: the values of its last packet. RFC 6846, sections 6.1 and 8.2.

use super::options::TcpOptionTable;
use crate::field::ip::{IpHeader, IpVersion};
pub(super) use crate::field::ip_id::Behavior;
use crate::id::ProfileId;
use crate::storage::{Room, Slots};

/// Largest number of IP headers of a packet.
pub(super) const MAX_IP: usize = 2;

/// Size of all extension headers of a packet, in octets.
pub(super) const EXTENSIONS: usize = 144;

/// Distance of sequence numbers that count as near, in octets: some windows.
const NEAR: u32 = 1 << 20;

/// The flags RST, SYN and FIN alone, in `rsf_flags`.
pub(super) const RST: u8 = 0b100;
pub(super) const SYN: u8 = 0b010;
pub(super) const FIN: u8 = 0b001;

/// One IP header with its extension headers, and the behavior of its IP-ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpState {
    pub(super) header: IpHeader,
    /// `ip_id_behavior`. With [`Behavior::Constant`] the IP-ID is zero.
    pub(super) behavior: Behavior,
    /// Octets of extension headers behind it.
    pub(super) extensions: u8,
}

impl IpState {
    pub(super) const EMPTY: Self =
        Self { header: IpHeader::EMPTY, behavior: Behavior::Random, extensions: 0 };

    #[inline]
    pub(super) fn is_v6(&self) -> bool {
        self.header.version == IpVersion::V6
    }

    /// Octets of the header and its extension headers.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.header.version.header_len() + usize::from(self.extensions)
    }

    /// True if both have equal fields, except addresses and IP-ID.
    #[inline]
    pub(super) fn has_same_fields(&self, other: &Self) -> bool {
        let (a, b) = (&self.header, &other.header);
        (a.ttl == b.ttl && a.tos == b.tos && a.df == b.df)
            && (a.protocol == b.protocol && a.flow_label == b.flow_label)
            && (self.extensions == other.extensions && self.behavior == other.behavior)
    }

    /// True if both have equal fields of the static chain.
    pub(super) fn has_same_static(&self, other: &Self) -> bool {
        self.header.has_same_ends(&other.header)
            && (self.header.protocol, self.header.flow_label, self.extensions)
                == (other.header.protocol, other.header.flow_label, other.extensions)
    }
}

/// The fields of a packet, and the control fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpState {
    pub(super) ips: [IpState; MAX_IP],
    pub(super) ip_count: u8,
    /// Extension headers, those of the outer header first.
    pub(super) extensions: [u8; EXTENSIONS],
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// `tcp_res_flags`, 4 bits.
    pub(super) reserved: u8,
    /// `tcp_ecn_flags`: CWR and ECE.
    pub(super) ecn: u8,
    pub(super) urg_flag: bool,
    pub(super) ack_flag: bool,
    pub(super) psh_flag: bool,
    /// RST, SYN and FIN.
    pub(super) rsf: u8,
    pub(super) window: u16,
    pub(super) checksum: u16,
    pub(super) urg_ptr: u16,
    pub(super) options: TcpOptionTable,
    // Control fields.
    pub(super) msn: u16,
    pub(super) ecn_used: bool,
    /// 0 if acknowledgment numbers are not scaled.
    pub(super) ack_stride: u16,
    /// `seq_number_scaled` and `seq_number_residue`, as of the last packet with payload.
    pub(super) seq_scaled: u32,
    pub(super) seq_residue: u32,
    /// A packet with payload has occurred.
    pub(super) has_scaled: bool,
}

impl TcpState {
    pub(super) const EMPTY: Self = Self {
        ips: [IpState::EMPTY; MAX_IP],
        ip_count: 0,
        extensions: [0; EXTENSIONS],
        source_port: 0,
        destination_port: 0,
        seq: 0,
        ack: 0,
        reserved: 0,
        ecn: 0,
        urg_flag: false,
        ack_flag: false,
        psh_flag: false,
        rsf: 0,
        window: 0,
        checksum: 0,
        urg_ptr: 0,
        options: TcpOptionTable::EMPTY,
        msn: 0,
        ecn_used: false,
        ack_stride: 0,
        seq_scaled: 0,
        seq_residue: 0,
        has_scaled: false,
    };

    /// The IP headers, outermost first.
    #[inline]
    pub(super) fn ips(&self) -> &[IpState] {
        self.ips.get(..usize::from(self.ip_count)).unwrap_or_default()
    }

    /// The innermost IP header.
    #[inline]
    pub(super) fn inner(&self) -> &IpState {
        &self.ips[usize::from(self.ip_count > 1)]
    }

    #[inline]
    pub(super) fn inner_mut(&mut self) -> &mut IpState {
        &mut self.ips[usize::from(self.ip_count > 1)]
    }

    /// True if an IP header has extension headers.
    #[inline]
    pub(super) fn has_extensions(&self) -> bool {
        self.ips.iter().any(|ip| ip.extensions > 0)
    }

    /// Octets of all IP headers.
    #[inline]
    pub(super) fn ip_len(&self) -> usize {
        self.ips().iter().map(IpState::len).sum()
    }

    /// Sets the flags to the values that a compressed format implies without them.
    #[inline]
    pub(super) fn set_implied_flags(&mut self) {
        (self.ack_flag, self.urg_flag, self.psh_flag, self.rsf) = (true, false, false, 0);
    }

    /// `ip_id_offset`: the IP-ID minus the MSN.
    #[inline]
    pub(super) fn ip_id_offset(&self) -> u16 {
        let ip = self.inner();
        ip.behavior.counted(ip.header.id).wrapping_sub(self.msn)
    }

    /// The extension headers behind an IP header.
    pub(super) fn extensions_of(&self, index: usize) -> &[u8] {
        let start = self.ips.iter().take(index).map(|ip| usize::from(ip.extensions)).sum::<usize>();
        let len = self.ips.get(index).map_or(0, |ip| usize::from(ip.extensions));
        self.extensions.get(start..start + len).unwrap_or_default()
    }

    /// `field_scaling` of the sequence number, by the payload of a packet. By the notation a packet without payload drops the
    /// scale; like other implementations, a context here keeps it, and its compressor relies on neither.
    #[inline]
    pub(super) fn scale(&mut self, payload: usize) {
        if let Ok(stride @ 1..) = u32::try_from(payload) {
            self.seq_scaled = self.seq / stride;
            self.seq_residue = self.seq % stride;
            self.has_scaled = true;
        }
    }

    /// True if the numbers of a packet are near those of the `last` one. A checksum that is wrong now may have been wrong when
    /// sent. With other numbers, however, the packet may belong to another flow that has taken the CID and whose previous packets
    /// were lost: then only an IR packet is certain.
    pub(super) fn goes_on(&self, last: &Self) -> bool {
        let is_near = |next: u32, last: u32| next.wrapping_sub(last).wrapping_add(NEAR) < 2 * NEAR;
        is_near(self.seq, last.seq) || self.ack_flag && last.ack_flag && is_near(self.ack, last.ack)
    }

    /// True if both belong to one flow: all fields that distinguish flows are equal.
    pub(super) fn is_flow_of(&self, other: &Self) -> bool {
        (self.ip_count, self.source_port, self.destination_port)
            == (other.ip_count, other.source_port, other.destination_port)
            && self.ips().iter().zip(other.ips()).all(|(a, b)| a.header.has_same_ends(&b.header))
    }
}

/// Place of one flow of profile 0x0006 at either end: its last packet.
#[derive(Clone, Copy, Debug)]
pub struct TcpRoom(pub(super) TcpState);

impl Room for TcpRoom {
    const EMPTY: Self = Self(TcpState::EMPTY);
    const PROFILES: &'static [ProfileId] = &[ProfileId::Tcp];
    type Shared<'m> = Slots<'m, Self>;

    fn share(rooms: Slots<'_, Self>) -> Slots<'_, Self> {
        rooms
    }
}
