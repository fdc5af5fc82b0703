//! The profiles: identifiers (RFC 5795, section 8), the registry of this crate, and a folder per RFC.

pub mod coap;
mod format;
pub mod rfc3095;
pub mod rfc6846;
pub(crate) mod uncompressed;

pub use format::Format;

/// Declares [`ProfileId`]: variants, numbers and names.
macro_rules! identifiers {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal $name:literal,)+) => {
        /// A profile identifier (RFC 5795, section 8). The 8 low bits name the profile in packets, the 8 high bits
        /// its variant.
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
        }
    };
}

identifiers! {
    /// 0x0000, uncompressed. RFC 5795, section 5.4.
    Uncompressed = 0x0000 "uncompressed",
    /// 0x0001, RTP/UDP/IP. RFC 3095, section 5.7, with RFC 4815.
    Rtp = 0x0001 "rtp",
    /// 0x0002, UDP/IP. RFC 3095, section 5.11, with RFC 4815.
    Udp = 0x0002 "udp",
    /// 0x0003, ESP/IP. RFC 3095, section 5.12, with RFC 4815.
    Esp = 0x0003 "esp",
    /// 0x0004, IP only. RFC 3843, with RFC 4815.
    Ip = 0x0004 "ip",
    /// 0x0006, TCP/IP: ROHC-TCP. RFC 6846.
    Tcp = 0x0006 "tcp",
    /// 0x0007, RTP/UDP-Lite/IP. RFC 4019, with RFC 4815.
    RtpUdpLite = 0x0007 "rtp-udp-lite",
    /// 0x0008, UDP-Lite/IP. RFC 4019, with RFC 4815.
    UdpLite = 0x0008 "udp-lite",
    /// 0x0080, CoAP/UDP/IP as published by Majanen, Koskela and Valta (2015): profile 0x0002 with the CoAP header
    /// added.
    Coap2015 = 0x0080 "coap-2015",
    /// 0x0081, CoAP/UDP/IP: `docs/coap-profile.md`.
    Coap = 0x0081 "coap",
}

impl ProfileId {
    /// The 8 low bits, as IR packets carry them.
    pub const fn low_octet(self) -> u8 {
        self.number() as u8
    }

    /// The profile with that [`name`](Self::name).
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}
