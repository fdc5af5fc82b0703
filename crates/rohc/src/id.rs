//! Identifiers of profiles (RFC 5795, section 8), and packet formats by their names in the RFCs.

/// Declares [`ProfileId`]: variants, numbers, names, and the Cargo features that a profile needs.
macro_rules! identifiers {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal $name:literal $($feature:literal)*,)+) => {
        /// A profile identifier (RFC 5795, section 8). The 8 low bits name the profile in packets, the 8 high
        /// bits are its variant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum ProfileId {
            $($(#[$doc])+ $variant,)+
        }

        impl ProfileId {
            const COUNT: usize = [$($name),+].len();

            /// Every profile, by number.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];

            /// The 16-bit identifier.
            pub const fn number(self) -> u16 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            /// A stable short name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// True if the profile is in this build.
            pub const fn is_built(self) -> bool {
                match self {
                    $(Self::$variant => true $(&& cfg!(feature = $feature))*,)+
                }
            }

            /// The Cargo features that the profile needs.
            pub const fn features(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($feature),*],)+
                }
            }
        }
    };
}

identifiers! {
    /// 0x0000, uncompressed. RFC 5795, section 5.4.
    Uncompressed = 0x0000 "uncompressed",
    /// 0x0001, RTP/UDP/IP. RFC 3095, section 5.7, with RFC 4815.
    Rtp = 0x0001 "rtp" "rtp",
    /// 0x0002, UDP/IP. RFC 3095, section 5.11, with RFC 4815.
    Udp = 0x0002 "udp" "udp",
    /// 0x0003, ESP/IP. RFC 3095, section 5.12, with RFC 4815.
    Esp = 0x0003 "esp" "esp",
    /// 0x0004, IP only. RFC 3843, with RFC 4815.
    Ip = 0x0004 "ip" "ip",
    /// 0x0006, TCP/IP: ROHC-TCP. RFC 6846.
    Tcp = 0x0006 "tcp" "tcp",
    /// 0x0007, RTP/UDP-Lite/IP. RFC 4019, with RFC 4815.
    RtpUdpLite = 0x0007 "rtp-udp-lite" "rtp" "udp-lite",
    /// 0x0008, UDP-Lite/IP. RFC 4019, with RFC 4815.
    UdpLite = 0x0008 "udp-lite" "udp-lite",
    /// 0x0101, RTP/UDP/IP. RFC 5225.
    RtpV2 = 0x0101 "rtp-v2" "v2",
    /// 0x0102, UDP/IP. RFC 5225.
    UdpV2 = 0x0102 "udp-v2" "v2",
    /// 0x0103, ESP/IP. RFC 5225.
    EspV2 = 0x0103 "esp-v2" "v2",
    /// 0x0104, IP only. RFC 5225.
    IpV2 = 0x0104 "ip-v2" "v2",
    /// 0x0107, RTP/UDP-Lite/IP. RFC 5225.
    RtpUdpLiteV2 = 0x0107 "rtp-udp-lite-v2" "v2",
    /// 0x0108, UDP-Lite/IP. RFC 5225.
    UdpLiteV2 = 0x0108 "udp-lite-v2" "v2",
    /// 0x0181, CoAP/UDP/IP: `docs/coap-profile.md`.
    Coap = 0x0181 "coap" "coap",
    /// 0x0182, DTLS/UDP/IP: `docs/dtls-profile.md`.
    Dtls = 0x0182 "dtls" "dtls",
}

impl ProfileId {
    /// The 8 low bits, as in IR packets.
    pub const fn low_octet(self) -> u8 {
        self.number() as u8
    }

    /// Returns the profile with that [`name`](Self::name).
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}

/// Declares [`Format`]: variants and names, with the section that defines them.
macro_rules! formats {
    ($($section:literal: $($variant:ident $name:literal)+;)+) => {
        /// Format of one ROHC packet, by its name in the RFC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[doc = concat!("`", $name, "`. ", $section, ".")] $variant,)+)+
        }

        impl Format {
            const COUNT: usize = [$($($name),+),+].len();

            /// Every format, in the order of declaration.
            pub const ALL: [Self; Self::COUNT] = [$($(Self::$variant),+),+];

            /// Name in the RFC, also used in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$variant => $name,)+)+
                }
            }
        }
    };
}

formats! {
    "Any profile": Ir "IR" IrDyn "IR-DYN";
    "RFC 5795, section 5.4.2": Normal "Normal";
    "RFC 3095, section 5.7.1": Uo0 "UO-0" R0 "R-0" R0Crc "R-0-CRC";
    "RFC 3095, sections 5.7.2, 5.7.5, 5.11.3 and 5.11.4":
        R1 "R-1" R1Ext0 "R-1-EXT-0" R1Ext1 "R-1-EXT-1" R1Ext2 "R-1-EXT-2" R1Ext3 "R-1-EXT-3"
        R1Ts "R-1-TS" R1TsExt0 "R-1-TS-EXT-0" R1TsExt1 "R-1-TS-EXT-1" R1TsExt2 "R-1-TS-EXT-2" R1TsExt3 "R-1-TS-EXT-3"
        R1Id "R-1-ID" R1IdExt0 "R-1-ID-EXT-0" R1IdExt1 "R-1-ID-EXT-1" R1IdExt2 "R-1-ID-EXT-2" R1IdExt3 "R-1-ID-EXT-3";
    "RFC 3095, sections 5.7.3, 5.7.5 and 5.11.3":
        Uo1 "UO-1" Uo1Id "UO-1-ID"
        Uo1IdExt0 "UO-1-ID-EXT-0" Uo1IdExt1 "UO-1-ID-EXT-1" Uo1IdExt2 "UO-1-ID-EXT-2" Uo1IdExt3 "UO-1-ID-EXT-3"
        Uo1Ts "UO-1-TS";
    "RFC 3095, sections 5.7.4, 5.7.5, 5.11.3 and 5.11.4":
        Uor2 "UOR-2" Uor2Ext0 "UOR-2-EXT-0" Uor2Ext1 "UOR-2-EXT-1" Uor2Ext2 "UOR-2-EXT-2" Uor2Ext3 "UOR-2-EXT-3"
        Uor2Id "UOR-2-ID" Uor2IdExt0 "UOR-2-ID-EXT-0" Uor2IdExt1 "UOR-2-ID-EXT-1" Uor2IdExt2 "UOR-2-ID-EXT-2"
        Uor2IdExt3 "UOR-2-ID-EXT-3"
        Uor2Ts "UOR-2-TS" Uor2TsExt0 "UOR-2-TS-EXT-0" Uor2TsExt1 "UOR-2-TS-EXT-1" Uor2TsExt2 "UOR-2-TS-EXT-2"
        Uor2TsExt3 "UOR-2-TS-EXT-3";
    "RFC 4019, section 5.3.2: around a packet of type 0, 1 or 2": Cce "CCE()" CceOn "CCE(ON)" CceOff "CCE(OFF)";
    "RFC 5225, section 6.8.2.4":
        Pt0Crc3 "pt_0_crc3" Pt0Crc7 "pt_0_crc7" Pt1Rnd "pt_1_rnd" Pt1SeqId "pt_1_seq_id" Pt1SeqTs "pt_1_seq_ts"
        Pt2Rnd "pt_2_rnd" Pt2SeqId "pt_2_seq_id" Pt2SeqTs "pt_2_seq_ts" Pt2SeqBoth "pt_2_seq_both";
    "`docs/coap-profile.md`, section 6; `docs/dtls-profile.md`, section 4":
        Pt0 "pt_0" Pt0c "pt_0c" Pt1 "pt_1" Pt1t "pt_1t" Pt1tc "pt_1tc" Pt2 "pt_2" Pt2c "pt_2c";
    "RFC 5225, section 6.8.2.4; RFC 6846, section 8.2; `docs/coap-profile.md`, section 6.8": CoCommon "co_common";
    "RFC 5225, section 6.8.2.2; `docs/coap-profile.md`, section 6.9; `docs/dtls-profile.md`, section 4.4": CoRepair "co_repair";
    "Context replication: RFC 4164; `docs/coap-profile.md`, section 6.11": IrCr "IR-CR";
    "RFC 6846, section 8.2":
        Rnd1 "rnd_1" Rnd2 "rnd_2" Rnd3 "rnd_3" Rnd4 "rnd_4" Rnd5 "rnd_5" Rnd6 "rnd_6" Rnd7 "rnd_7" Rnd8 "rnd_8"
        Seq1 "seq_1" Seq2 "seq_2" Seq3 "seq_3" Seq4 "seq_4" Seq5 "seq_5" Seq6 "seq_6" Seq7 "seq_7" Seq8 "seq_8";
}

impl Format {
    /// True if the format establishes or refreshes a whole context: IR, IR-DYN or IR-CR.
    pub const fn is_initialization(self) -> bool {
        matches!(self, Self::Ir | Self::IrDyn | Self::IrCr)
    }

    /// True if the format carries the static part of a context.
    pub(crate) const fn carries_static(self) -> bool {
        matches!(self, Self::Ir | Self::IrCr)
    }

    /// True if the format carries the whole dynamic part of a context.
    pub(crate) const fn carries_dynamic(self) -> bool {
        self.is_initialization() || matches!(self, Self::CoRepair)
    }

    /// True if the format updates the context: all except those of R-mode without a CRC (RFC 3095, section
    /// 5.5.1.2).
    pub(crate) const fn updates(self) -> bool {
        !(matches!(self, Self::R0) || self.is_between(Self::R1, Self::R1IdExt3))
    }

    /// True if the format is not common to all modes.
    pub(crate) const fn is_type_0_or_1(self) -> bool {
        self.is_between(Self::Uo0, Self::Uo1Ts)
    }

    /// True if the format is declared between two others, inclusive.
    const fn is_between(self, first: Self, last: Self) -> bool {
        first as u8 <= self as u8 && self as u8 <= last as u8
    }
}
