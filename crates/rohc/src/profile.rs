//! The profiles: the IANA registry of this crate, and a folder per RFC.

pub mod coap;
pub mod rfc3095;
pub mod rfc6846;
pub(crate) mod uncompressed;

/// A profile identifier (RFC 5795, section 8). The 8 low bits name the profile in packets, the 8 high bits
/// its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ProfileId {
    /// 0x0000, uncompressed. RFC 5795, section 5.4.
    Uncompressed,
    /// 0x0001, RTP/UDP/IP. RFC 3095, section 5.7, with RFC 4815.
    Rtp,
    /// 0x0002, UDP/IP. RFC 3095, section 5.11, with RFC 4815.
    Udp,
    /// 0x0003, ESP/IP. RFC 3095, section 5.12, with RFC 4815.
    Esp,
    /// 0x0004, IP only. RFC 3843, with RFC 4815.
    Ip,
    /// 0x0006, TCP/IP: ROHC-TCP. RFC 6846.
    Tcp,
    /// 0x0007, RTP/UDP-Lite/IP. RFC 4019, with RFC 4815.
    RtpUdpLite,
    /// 0x0008, UDP-Lite/IP. RFC 4019, with RFC 4815.
    UdpLite,
    /// 0x0080, CoAP/UDP/IP as published by Majanen, Koskela and Valta (2015): profile 0x0002 with the CoAP header
    /// added.
    Coap2015,
    /// 0x0081, CoAP/UDP/IP: `docs/coap-profile.md`.
    Coap,
}

impl ProfileId {
    /// Every profile, by number.
    pub const ALL: [Self; 10] = [
        Self::Uncompressed,
        Self::Rtp,
        Self::Udp,
        Self::Esp,
        Self::Ip,
        Self::Tcp,
        Self::RtpUdpLite,
        Self::UdpLite,
        Self::Coap2015,
        Self::Coap,
    ];

    /// The 16-bit identifier.
    pub const fn number(self) -> u16 {
        match self {
            Self::Uncompressed => 0x0000,
            Self::Rtp => 0x0001,
            Self::Udp => 0x0002,
            Self::Esp => 0x0003,
            Self::Ip => 0x0004,
            Self::Tcp => 0x0006,
            Self::RtpUdpLite => 0x0007,
            Self::UdpLite => 0x0008,
            Self::Coap2015 => 0x0080,
            Self::Coap => 0x0081,
        }
    }

    /// The 8 low bits, as IR packets carry them.
    pub const fn low_octet(self) -> u8 {
        self.number() as u8
    }

    /// A stable short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "uncompressed",
            Self::Rtp => "rtp",
            Self::Udp => "udp",
            Self::Esp => "esp",
            Self::Ip => "ip",
            Self::Tcp => "tcp",
            Self::RtpUdpLite => "rtp-udp-lite",
            Self::UdpLite => "udp-lite",
            Self::Coap2015 => "coap-2015",
            Self::Coap => "coap",
        }
    }

    /// The profile with that [`name`](Self::name).
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}

/// The format of one ROHC packet, by the name that its RFC gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// IR packet of any profile.
    Ir,
    /// IR-DYN packet.
    IrDyn,
    /// Normal packet of profile 0x0000. RFC 5795, section 5.4.2.
    Normal,
    /// Packet type 0 in U- and O-mode. RFC 3095, section 5.7.1.
    Uo0,
    /// Packet type 0 in R-mode, without a CRC. RFC 3095, section 5.7.1.
    R0,
    /// Packet type 0 in R-mode, with a CRC. RFC 3095, section 5.7.1.
    R0Crc,
    /// Packet type 1 in R-mode. RFC 3095, sections 5.7.2 and 5.11.3.
    R1,
    /// Packet type 1 in R-mode with extension 0. RFC 3095, sections 5.7.5 and 5.11.4.
    R1Ext0,
    /// Packet type 1 in R-mode with extension 1.
    R1Ext1,
    /// Packet type 1 in R-mode with extension 2.
    R1Ext2,
    /// Packet type 1 in R-mode with extension 3.
    R1Ext3,
    /// Packet type 1 in R-mode with a timestamp, where there is an IP-ID too. RFC 3095, section 5.7.2.
    R1Ts,
    /// The same with extension 0.
    R1TsExt0,
    /// The same with extension 1.
    R1TsExt1,
    /// The same with extension 2.
    R1TsExt2,
    /// The same with extension 3.
    R1TsExt3,
    /// Packet type 1 in R-mode with an IP-ID, where there is a timestamp too. RFC 3095, section 5.7.2.
    R1Id,
    /// The same with extension 0.
    R1IdExt0,
    /// The same with extension 1.
    R1IdExt1,
    /// The same with extension 2.
    R1IdExt2,
    /// The same with extension 3.
    R1IdExt3,
    /// Packet type 1 in U- and O-mode. RFC 3095, sections 5.7.3 and 5.11.3.
    Uo1,
    /// Packet type 1 with IP-ID bits, of RTP. RFC 3095, section 5.7.3.
    Uo1Id,
    /// The same with extension 0.
    Uo1IdExt0,
    /// The same with extension 1.
    Uo1IdExt1,
    /// The same with extension 2.
    Uo1IdExt2,
    /// The same with extension 3.
    Uo1IdExt3,
    /// Packet type 1 with TS bits, of RTP. RFC 3095, section 5.7.3.
    Uo1Ts,
    /// Packet type 2 without extension. RFC 3095, sections 5.7.4 and 5.11.3.
    Uor2,
    /// Packet type 2 with extension 0. RFC 3095, sections 5.7.5 and 5.11.4.
    Uor2Ext0,
    /// Packet type 2 with extension 1.
    Uor2Ext1,
    /// Packet type 2 with extension 2.
    Uor2Ext2,
    /// Packet type 2 with extension 3.
    Uor2Ext3,
    /// Packet type 2 with IP-ID bits, of RTP. RFC 3095, section 5.7.4.
    Uor2Id,
    /// The same with extension 0.
    Uor2IdExt0,
    /// The same with extension 1.
    Uor2IdExt1,
    /// The same with extension 2.
    Uor2IdExt2,
    /// The same with extension 3.
    Uor2IdExt3,
    /// Packet type 2 with TS bits, of RTP. RFC 3095, section 5.7.4.
    Uor2Ts,
    /// The same with extension 0.
    Uor2TsExt0,
    /// The same with extension 1.
    Uor2TsExt1,
    /// The same with extension 2.
    Uor2TsExt2,
    /// The same with extension 3.
    Uor2TsExt3,
    /// Checksum Coverage Extension of a packet of type 0, 1 or 2. RFC 4019, section 5.3.2.
    Cce,
    /// The same, after which the Checksum Coverage is in every packet.
    CceOn,
    /// The same, after which it is in none.
    CceOff,
    /// 4-bit MSN and CRC-3. `docs/coap-profile.md`, section 6.
    Pt0,
    /// 7-bit MSN and CHECK.
    Pt0c,
    /// 6-bit MSN and CRC-8.
    Pt1,
    /// Template, 4-bit MSN and CRC-8.
    Pt1t,
    /// Template, 4-bit MSN and CHECK.
    Pt1tc,
    /// Template, 8-bit MSN, CRC-8, and fields that have changed.
    Pt2,
    /// Template, 8-bit MSN, CHECK, and fields that have changed.
    Pt2c,
    /// Anything that can change while a context lasts.
    CoCommon,
    /// Everything that can change while a context lasts.
    CoRepair,
    /// Context replication: from a provisioned base, or (RFC 4164) from another context.
    IrCr,
    /// Sequence number, where the IP-ID does not count. RFC 6846, section 8.2.
    Rnd1,
    /// Scaled sequence number. RFC 6846, section 8.2.
    Rnd2,
    /// Acknowledgment number. RFC 6846, section 8.2.
    Rnd3,
    /// Scaled acknowledgment number. RFC 6846, section 8.2.
    Rnd4,
    /// Acknowledgment and sequence number. RFC 6846, section 8.2.
    Rnd5,
    /// Acknowledgment number and scaled sequence number. RFC 6846, section 8.2.
    Rnd6,
    /// Acknowledgment number and window. RFC 6846, section 8.2.
    Rnd7,
    /// RSF flags, TTL, use of ECN, list of options. RFC 6846, section 8.2.
    Rnd8,
    /// Sequence number, where the IP-ID counts. RFC 6846, section 8.2.
    Seq1,
    /// Scaled sequence number. RFC 6846, section 8.2.
    Seq2,
    /// Acknowledgment number. RFC 6846, section 8.2.
    Seq3,
    /// Scaled acknowledgment number. RFC 6846, section 8.2.
    Seq4,
    /// Acknowledgment and sequence number. RFC 6846, section 8.2.
    Seq5,
    /// Acknowledgment number and scaled sequence number. RFC 6846, section 8.2.
    Seq6,
    /// Acknowledgment number and window. RFC 6846, section 8.2.
    Seq7,
    /// RSF flags, TTL, use of ECN, list of options. RFC 6846, section 8.2.
    Seq8,
}

impl Format {
    /// Every format, in the order of their declaration.
    pub const ALL: [Self; 72] = [
        Self::Ir,
        Self::IrDyn,
        Self::Normal,
        Self::Uo0,
        Self::R0,
        Self::R0Crc,
        Self::R1,
        Self::R1Ext0,
        Self::R1Ext1,
        Self::R1Ext2,
        Self::R1Ext3,
        Self::R1Ts,
        Self::R1TsExt0,
        Self::R1TsExt1,
        Self::R1TsExt2,
        Self::R1TsExt3,
        Self::R1Id,
        Self::R1IdExt0,
        Self::R1IdExt1,
        Self::R1IdExt2,
        Self::R1IdExt3,
        Self::Uo1,
        Self::Uo1Id,
        Self::Uo1IdExt0,
        Self::Uo1IdExt1,
        Self::Uo1IdExt2,
        Self::Uo1IdExt3,
        Self::Uo1Ts,
        Self::Uor2,
        Self::Uor2Ext0,
        Self::Uor2Ext1,
        Self::Uor2Ext2,
        Self::Uor2Ext3,
        Self::Uor2Id,
        Self::Uor2IdExt0,
        Self::Uor2IdExt1,
        Self::Uor2IdExt2,
        Self::Uor2IdExt3,
        Self::Uor2Ts,
        Self::Uor2TsExt0,
        Self::Uor2TsExt1,
        Self::Uor2TsExt2,
        Self::Uor2TsExt3,
        Self::Cce,
        Self::CceOn,
        Self::CceOff,
        Self::Pt0,
        Self::Pt0c,
        Self::Pt1,
        Self::Pt1t,
        Self::Pt1tc,
        Self::Pt2,
        Self::Pt2c,
        Self::CoCommon,
        Self::CoRepair,
        Self::IrCr,
        Self::Rnd1,
        Self::Rnd2,
        Self::Rnd3,
        Self::Rnd4,
        Self::Rnd5,
        Self::Rnd6,
        Self::Rnd7,
        Self::Rnd8,
        Self::Seq1,
        Self::Seq2,
        Self::Seq3,
        Self::Seq4,
        Self::Seq5,
        Self::Seq6,
        Self::Seq7,
        Self::Seq8,
    ];

    /// The name in the RFC, which is also the one in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ir => "IR",
            Self::IrDyn => "IR-DYN",
            Self::Normal => "Normal",
            Self::Uo0 => "UO-0",
            Self::R0 => "R-0",
            Self::R0Crc => "R-0-CRC",
            Self::R1 => "R-1",
            Self::R1Ext0 => "R-1-EXT-0",
            Self::R1Ext1 => "R-1-EXT-1",
            Self::R1Ext2 => "R-1-EXT-2",
            Self::R1Ext3 => "R-1-EXT-3",
            Self::R1Ts => "R-1-TS",
            Self::R1TsExt0 => "R-1-TS-EXT-0",
            Self::R1TsExt1 => "R-1-TS-EXT-1",
            Self::R1TsExt2 => "R-1-TS-EXT-2",
            Self::R1TsExt3 => "R-1-TS-EXT-3",
            Self::R1Id => "R-1-ID",
            Self::R1IdExt0 => "R-1-ID-EXT-0",
            Self::R1IdExt1 => "R-1-ID-EXT-1",
            Self::R1IdExt2 => "R-1-ID-EXT-2",
            Self::R1IdExt3 => "R-1-ID-EXT-3",
            Self::Uo1 => "UO-1",
            Self::Uo1Id => "UO-1-ID",
            Self::Uo1IdExt0 => "UO-1-ID-EXT-0",
            Self::Uo1IdExt1 => "UO-1-ID-EXT-1",
            Self::Uo1IdExt2 => "UO-1-ID-EXT-2",
            Self::Uo1IdExt3 => "UO-1-ID-EXT-3",
            Self::Uo1Ts => "UO-1-TS",
            Self::Uor2 => "UOR-2",
            Self::Uor2Ext0 => "UOR-2-EXT-0",
            Self::Uor2Ext1 => "UOR-2-EXT-1",
            Self::Uor2Ext2 => "UOR-2-EXT-2",
            Self::Uor2Ext3 => "UOR-2-EXT-3",
            Self::Uor2Id => "UOR-2-ID",
            Self::Uor2IdExt0 => "UOR-2-ID-EXT-0",
            Self::Uor2IdExt1 => "UOR-2-ID-EXT-1",
            Self::Uor2IdExt2 => "UOR-2-ID-EXT-2",
            Self::Uor2IdExt3 => "UOR-2-ID-EXT-3",
            Self::Uor2Ts => "UOR-2-TS",
            Self::Uor2TsExt0 => "UOR-2-TS-EXT-0",
            Self::Uor2TsExt1 => "UOR-2-TS-EXT-1",
            Self::Uor2TsExt2 => "UOR-2-TS-EXT-2",
            Self::Uor2TsExt3 => "UOR-2-TS-EXT-3",
            Self::Cce => "CCE()",
            Self::CceOn => "CCE(ON)",
            Self::CceOff => "CCE(OFF)",
            Self::Pt0 => "pt_0",
            Self::Pt0c => "pt_0c",
            Self::Pt1 => "pt_1",
            Self::Pt1t => "pt_1t",
            Self::Pt1tc => "pt_1tc",
            Self::Pt2 => "pt_2",
            Self::Pt2c => "pt_2c",
            Self::CoCommon => "co_common",
            Self::CoRepair => "co_repair",
            Self::IrCr => "IR-CR",
            Self::Rnd1 => "rnd_1",
            Self::Rnd2 => "rnd_2",
            Self::Rnd3 => "rnd_3",
            Self::Rnd4 => "rnd_4",
            Self::Rnd5 => "rnd_5",
            Self::Rnd6 => "rnd_6",
            Self::Rnd7 => "rnd_7",
            Self::Rnd8 => "rnd_8",
            Self::Seq1 => "seq_1",
            Self::Seq2 => "seq_2",
            Self::Seq3 => "seq_3",
            Self::Seq4 => "seq_4",
            Self::Seq5 => "seq_5",
            Self::Seq6 => "seq_6",
            Self::Seq7 => "seq_7",
            Self::Seq8 => "seq_8",
        }
    }

    /// Whether the format establishes or refreshes a context as a whole: IR, IR-DYN or IR-CR.
    pub const fn is_initialization(self) -> bool {
        matches!(self, Self::Ir | Self::IrDyn | Self::IrCr)
    }

    /// Whether the format updates the context: all do but those of R-mode without a CRC (RFC 3095, section 5.5.1.2).
    pub(crate) const fn updates(self) -> bool {
        !matches!(
            self,
            Self::R0
                | Self::R1
                | Self::R1Ext0
                | Self::R1Ext1
                | Self::R1Ext2
                | Self::R1Ext3
                | Self::R1Ts
                | Self::R1TsExt0
                | Self::R1TsExt1
                | Self::R1TsExt2
                | Self::R1TsExt3
                | Self::R1Id
                | Self::R1IdExt0
                | Self::R1IdExt1
                | Self::R1IdExt2
                | Self::R1IdExt3
        )
    }

    /// Whether the format is not one of those that all modes have in common.
    pub(crate) const fn is_type_0_or_1(self) -> bool {
        use Format::{R0Crc, Uo0, Uo1, Uo1Id, Uo1IdExt0, Uo1IdExt1, Uo1IdExt2, Uo1IdExt3, Uo1Ts};
        !self.updates()
            || matches!(
                self,
                Uo0 | R0Crc | Uo1 | Uo1Id | Uo1IdExt0 | Uo1IdExt1 | Uo1IdExt2 | Uo1IdExt3 | Uo1Ts
            )
    }
}
