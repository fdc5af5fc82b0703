//! Parameters of a compressor.

use core::time::Duration;

use thinair_wire::word_enum;

use crate::channel::Channel;
use crate::flow::refresh::Refresh;
use crate::interop::Interop;

/// Parameters of a compressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressorConfig {
    /// The channel, as agreed with the decompressor.
    pub channel: Channel,
    /// Refreshes in U-mode. Default: [`Refresh::Budget`] after 16 s, where 5 % of the octets sent pay for it or 128 packets have
    /// passed.
    pub refresh: Refresh,
    /// Refreshes in O-mode and R-mode, where feedback asks for them. Default: [`Refresh::Off`].
    pub refresh_two_way: Refresh,
    /// L: number of packets that carry a change until it counts as established (optimistic approach), 1 to 255; 0 stands for 1.
    /// Default: 4.
    pub repetitions: u8,
    /// Number of values in a W-LSB window, 1 to 16; other values stand for the nearest. Up to `window` - 1 packets in a row may
    /// be lost. Default: 4.
    pub window: u8,
    /// The carrier counts lost packets, and the decompressor receives their number ([`Arrival::lost`](crate::Arrival)). An IP-ID
    /// that moves against the SN, which no checksum covers, is then sent in full once in 16 packets (profiles of RFC 3095, U-mode
    /// and O-mode), since a decompressor that has missed a few packets waits for it. Default: false.
    pub counted: bool,
    /// Change to R-mode where the decompressor asks for it, in every profile of RFC 3095, RFC 3843 and RFC 4019. A
    /// refused request is declined where the profile supports that (RFC 3843, section 3.4), and ignored elsewhere. Default: true.
    pub reliable: bool,
    /// In R-mode, give every packet a CRC of 7 bits (R-0-CRC, UOR-2), for a carrier that delivers damaged frames. have none
    /// (RFC 3095, section 5.7), so that a decompressor takes whatever damage makes of them. It costs one octet a packet. Default: false,
    /// for a carrier that checks its frames.
    pub reliable_crc: bool,
    /// Datagrams that use profiles 0x0001 and 0x0007.
    pub rtp: RtpDetection,
    /// Encode timestamps by a timer (RFC 3095, section 4.5.4; RFC 5225, section 6.6.9), once the decompressor has sent the resolution
    /// of its clock in a CLOCK or CLOCK_RESOLUTION option. The value is Max_Jitter_CD, the largest variation of the delay between the two. A packet that varies more is
    /// decompressed wrongly, which its CRC may not detect. Default: `None`, no timer.
    pub timer: Option<Duration>,
    /// Profiles of RFC 5225: how late packets may be that are still decompressed, at least. A flow whose acknowledgments show that
    /// packets come later gets more. Default: [`ReorderRatio::None`].
    pub reorder_ratio: ReorderRatio,
    /// Parameters of the CoAP profiles.
    pub coap: CoapConfig,
    /// Deviations from the RFCs for decompressors of others. Default: [`Interop::STANDARD`].
    pub interop: Interop,
    /// Random number on which first sequence numbers and the hash of flows depend.
    pub seed: u64,
}

impl CompressorConfig {
    /// Defaults for a channel: the default refresh in U-mode, none in O-mode and R-mode, 4 repetitions, a window of 4.
    pub fn new(channel: Channel) -> Self {
        Self {
            channel,
            refresh: Refresh::default(),
            refresh_two_way: Refresh::Off,
            repetitions: 4,
            window: 4,
            counted: false,
            reliable: true,
            reliable_crc: false,
            rtp: RtpDetection::default(),
            timer: None,
            reorder_ratio: ReorderRatio::None,
            coap: CoapConfig::default(),
            interop: Interop::STANDARD,
            seed: 0,
        }
    }

    /// The refreshes of U-mode, or of a channel with feedback.
    #[inline]
    pub(crate) fn policy(&self, is_two_way: bool) -> &Refresh {
        if is_two_way { &self.refresh_two_way } else { &self.refresh }
    }

    /// Sets the refreshes of every mode. A policy that is requested explicitly also applies to O-mode and R-mode, whose default
    /// is none.
    pub fn with_refresh(self, refresh: Refresh) -> Self {
        Self { refresh, refresh_two_way: refresh, ..self }
    }
}

/// Part of the interpretation interval of the MSN that lies behind the newest packet: `reorder_ratio`. RFC 5225, section 6.8.2.4.
///
/// With the 4 bits of the smallest header a packet may be 1, 3, 7 or 11 packets late, and 13, 11, 7 or 3 packets in a row may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReorderRatio {
    /// One packet.
    #[default]
    None,
    /// A quarter of the interval.
    Quarter,
    /// Half of it.
    Half,
    /// Three quarters.
    ThreeQuarters,
}

impl ReorderRatio {
    /// Each by the name that configurations use.
    pub const NAMES: [(&str, Self); 4] = [
        ("none", Self::None),
        ("quarter", Self::Quarter),
        ("half", Self::Half),
        ("three-quarters", Self::ThreeQuarters),
    ];

    /// The offset of the interval for `k` bits: `msn_lsb(k)`.
    #[inline]
    pub(crate) const fn p(self, k: u32) -> u32 {
        match self {
            Self::None => 1,
            _ => (1 << k) / 4 * self as u32 - 1,
        }
    }

    /// The least one with which the smallest headers bear packets that are later than `late` packets; else the greatest.
    #[cfg(feature = "v2")]
    pub(crate) fn beyond(late: u32) -> Self {
        let all = [Self::None, Self::Quarter, Self::Half];
        all.into_iter().find(|ratio| ratio.p(4) > late).unwrap_or(Self::ThreeQuarters)
    }
}

word_enum!(ReorderRatio: None Quarter Half, ThreeQuarters);

/// Parameters of the CoAP profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoapConfig {
    /// Smallest formats that may be used.
    pub format: FormatPolicy,
    /// UDP ports whose packets are CoAP. Flows to other ports count as CoAP as long as each of their packets passes a strict
    /// parse. Default: 5683.
    pub ports: Ports,
}

impl Default for CoapConfig {
    /// Port 5683, and the format that suits the channel.
    fn default() -> Self {
        Self { format: FormatPolicy::Auto, ports: Ports::COAP }
    }
}

/// Smallest formats of profile 0x0181 that a compressor may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatPolicy {
    /// `pt_0c` where the UDP checksum is carried; otherwise `pt_1`, and `pt_0` once feedback reports few losses.
    #[default]
    Auto,
    /// `pt_0` from the beginning: 1 octet, for links without loss.
    Pt0,
    /// `pt_1` always; a carried checksum adds two octets.
    Pt1,
    /// `pt_0c` where the UDP checksum is carried, `pt_1` elsewhere.
    Pt0c,
}

/// Detection of RTP among UDP and UDP-Lite: by destination port, or by the first packets of a flow.
///
/// Every packet is restored bit for bit, whether the detection is right or wrong; a wrong one costs octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpDetection {
    ports: Ports,
    guess: bool,
}

impl Default for RtpDetection {
    /// No port; the first packets of each flow decide.
    fn default() -> Self {
        Self { ports: Ports::NONE, guess: true }
    }
}

impl RtpDetection {
    /// No flow is RTP.
    pub const NEVER: Self = Self { ports: Ports::NONE, guess: false };

    /// Datagrams of version 2 to one of `ports` are RTP, from the first one on, and no others. `None` if there are more than
    /// [`Ports::MOST`].
    pub fn of_ports(ports: &[u16]) -> Option<Self> {
        Some(Self { ports: Ports::of(ports)?, guess: false })
    }

    /// Adds detection by the first packets of flows to other ports. Packets of version 2 and one SSRC with consecutive sequence
    /// numbers are RTP from the fourth one on, and again after a step of more than 128. A flow may have several SSRCs. Detection
    /// ends after 16 such packets without a result.
    pub fn or_guess(self) -> Self {
        Self { guess: true, ..self }
    }

    /// True if the first packets of flows are examined.
    pub fn guesses(&self) -> bool {
        self.guess
    }

    /// True if datagrams to `port` are RTP.
    #[inline]
    pub fn has(&self, port: u16) -> bool {
        self.ports.has(port)
    }
}

/// A set of UDP ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    ports: [u16; Self::MOST],
    len: u8,
}

impl Ports {
    /// Largest number of ports in a set.
    pub const MOST: usize = 8;

    /// No port.
    pub const NONE: Self = Self { ports: [0; Self::MOST], len: 0 };

    /// Port 5683 of CoAP. RFC 7252, section 12.6.
    pub const COAP: Self = Self { ports: [5683, 0, 0, 0, 0, 0, 0, 0], len: 1 };

    /// Creates a set of at most [`MOST`](Self::MOST) ports; `None` if there are more.
    pub fn of(list: &[u16]) -> Option<Self> {
        let mut ports = [0; Self::MOST];
        ports.get_mut(..list.len())?.copy_from_slice(list);
        Some(Self { ports, len: list.len() as u8 })
    }

    /// True if the set has `port`.
    #[inline]
    pub fn has(&self, port: u16) -> bool {
        // Most sets have one port.
        self.len > 0 && self.ports[0] == port
            || self.ports.iter().take(usize::from(self.len)).skip(1).any(|&listed| listed == port)
    }
}
