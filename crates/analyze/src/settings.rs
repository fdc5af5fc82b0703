//! What an analysis is told at start.

use thinair_lowpan::Contexts;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::{Channel, CompressorConfig, DecompressorConfig, Integrity, Mode};

use crate::outcome;

/// Default number of flows that are listed with every sum.
pub const MOST_FLOWS: usize = 10_000;

/// What an analysis is told at start.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Channel of ROHC that reports take for the usual one. Its integrity below holds for every scheme.
    pub channel: Channel,
    /// The schemes to be compared, in the order in which they are told.
    pub schemes: Vec<SchemeSpec>,
    /// The ROHC compressor of both directions; its channel is that of the scheme.
    pub compressor: CompressorConfig,
    /// The ROHC decompressor of both directions; its channel and mode are those of the scheme.
    pub decompressor: DecompressorConfig,
    /// Provisioned bases of profile 0x0081, the same in both directions; at most 256 are used.
    pub bases: Vec<Base>,
    /// Provisioned bases of the schemes that are [`learned`](SchemeSpec::Rohc::learned), in place of `bases`.
    pub learned: Vec<Base>,
    /// Loss on the link; `None` delivers everything.
    pub loss: Option<Loss>,
    /// What the link costs, if that is asked.
    pub billing: Option<Billing>,
    /// Octets that the link carries in one frame, if packets above that are to be counted.
    pub link_mtu: Option<u32>,
    /// The contexts of LOWPAN_IPHC that nodes of a captured network have: no capture has them.
    pub contexts: Contexts,
    /// Leave tunnels (GRE, ERSPAN, VXLAN, ZEP) as they are: the outer packet counts. Default: false, the packet in the tunnel
    /// counts.
    pub keep_tunnels: bool,
    /// Flows that are listed with every sum, the largest by octets; the others with their octets alone. Default:
    /// [`MOST_FLOWS`].
    pub most_flows: usize,
    /// Damage one octet of one compressed packet of each scheme, to prove that the comparison sees it.
    pub damage_one: bool,
}

impl Settings {
    /// No loss, no billing, default refreshes.
    pub fn new(channel: Channel, schemes: &[SchemeSpec]) -> Self {
        Self {
            channel,
            schemes: schemes.to_vec(),
            compressor: CompressorConfig::new(channel),
            decompressor: DecompressorConfig::new(channel),
            bases: Vec::new(),
            learned: Vec::new(),
            loss: None,
            billing: None,
            link_mtu: None,
            contexts: Contexts::NONE,
            keep_tunnels: false,
            most_flows: MOST_FLOWS,
            damage_one: false,
        }
    }

    /// The contexts of a scheme of ROHC, if they are not those of [`Settings::channel`].
    pub(crate) fn unusual_contexts(&self, spec: &SchemeSpec) -> Option<outcome::Contexts> {
        let usual = outcome::Contexts::of(&self.channel);
        spec.channel().map(|channel| outcome::Contexts::of(&channel)).filter(|contexts| *contexts != usual)
    }

    /// Whether right UDP checksums are left out, as the carrier vouches for its frames.
    pub(crate) fn elides_checksums(&self) -> bool {
        match self.channel.integrity_below() {
            Integrity::None => false,
            Integrity::Crc32 | Integrity::Mic => true,
        }
    }
}

/// A scheme of header compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemeSpec {
    /// ROHC (RFC 5795).
    Rohc {
        /// What tells the set of profiles in reports.
        name: &'static str,
        /// Channel of both directions.
        channel: Channel,
        /// The mode of operation.
        mode: Mode,
        /// Both ends have the bases of [`Settings::learned`].
        learned: bool,
    },
    /// SCHC (RFC 8724, RFC 8824) with rules that are derived from the capture beforehand, as [`crate::schc`] says.
    Schc,
    /// 6LoWPAN: LOWPAN_IPHC and LOWPAN_NHC (RFC 6282). Packets that are not IPv6 go as they are. The prefixes of the
    /// capture are contexts, and interface identifiers are taken for those of link addresses, which cost nothing.
    Lowpan,
}

impl SchemeSpec {
    /// The name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rohc { name, .. } => name,
            Self::Schc => "schc",
            Self::Lowpan => "6lowpan",
        }
    }

    /// The channel of both directions, if it is ROHC.
    pub const fn channel(&self) -> Option<Channel> {
        match self {
            Self::Rohc { channel, .. } => Some(*channel),
            Self::Schc | Self::Lowpan => None,
        }
    }

    /// Whether nothing but refreshes serves a decompressor that starts late.
    pub(crate) const fn refreshes(&self) -> bool {
        matches!(self, Self::Rohc { mode: Mode::Unidirectional, .. })
    }

    /// The letter of its mode, if it has any.
    pub const fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Rohc { mode, .. } => Some(mode.letter()),
            Self::Schc | Self::Lowpan => None,
        }
    }
}

/// Independent loss of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Probability that a packet is lost, 0 to 1.
    pub probability: f64,
    /// Which packets that hits: the same in all schemes, on any machine.
    pub seed: u64,
}

/// A link that is paid per started unit of each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Billing {
    /// Octets of a unit, at least 1.
    pub unit: u32,
    /// Price of a unit, in whatever currency.
    pub price: f64,
}

impl Billing {
    /// Units that a packet of `octets` starts.
    pub(crate) fn units(&self, octets: usize) -> u64 {
        octets.div_ceil(self.unit.max(1) as usize) as u64
    }
}
