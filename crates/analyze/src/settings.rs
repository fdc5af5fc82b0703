//! Settings of an analysis.

use std::ops::Range;
use std::time::Duration;

use thinair_link::tariff::{CountedDirections, Tariff};
use thinair_lowpan::Contexts;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::{Channel, CompressorConfig, DecompressorConfig, Integrity, Mode};

use crate::outcome;
use crate::sides::CaptureSide;

/// Default number of flows that are listed with all sums.
pub const MOST_FLOWS: usize = 10_000;

/// Maximum number of partitions.
pub const MOST_PARTITIONS: u32 = 1_024;

/// Settings of an analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Usual ROHC channel: reports show the contexts of schemes that differ from it. Its integrity below
    /// applies to every scheme.
    pub channel: Channel,
    /// Schemes to compare, in the order of the report.
    pub schemes: Vec<SchemeSpec>,
    /// ROHC compressor of both directions; its channel is that of the scheme.
    pub compressor: CompressorConfig,
    /// ROHC decompressor of both directions; its channel and mode are those of the scheme.
    pub decompressor: DecompressorConfig,
    /// Provisioned bases of profile 0x0181, equal in both directions; at most 256 are used.
    pub bases: Vec<Base>,
    /// Provisioned bases of [`learned`](SchemeSpec::Rohc::learned) schemes, instead of `bases`.
    pub learned: Vec<Base>,
    /// Loss on the link. Default: `None`, no loss.
    pub loss: Option<RandomLoss>,
    /// Price of the link. Default: `None`, not computed.
    pub billing: Option<Billing>,
    /// Price list that `billing` follows: reports name it, and what packing would save. Default: `None`.
    pub tariff: Option<Tariff>,
    /// Octets that carriers of a tunnel add around each packet, by carrier: billing units are counted with them, too
    /// ([`Recommendation::carriers`](crate::Recommendation::carriers)). Default: empty.
    pub carriers: Vec<CarrierOverhead>,
    /// Maximum size of a packet in one frame, in octets; larger packets are counted. Default: `None`.
    pub link_mtu: Option<u32>,
    /// Duration of each capture, if it is known; later packets extend it. Default: `None`, from its first packet to
    /// its last.
    pub duration: Option<Duration>,
    /// Contexts of LOWPAN_IPHC in the captured network, which a capture does not contain.
    pub contexts: Contexts,
    /// Analyzes the outer packets of tunnels (GRE, ERSPAN, VXLAN, Geneve, GTP-U, L2TP, ZEP). Default: false, analyzes
    /// the packets in tunnels.
    pub keep_tunnels: bool,
    /// Number of flows listed with all sums, the largest by octets; others are listed with octets only.
    /// Default: [`MOST_FLOWS`].
    pub most_flows: usize,
    /// Damages one octet of one compressed packet of each scheme and partition, to test that verification
    /// detects it. Default: false.
    pub damage_one: bool,
    /// Number of parallel channels that each link consists of, 1 to [`MOST_PARTITIONS`]. Each has a set of
    /// contexts of its own, so results depend on this number. A hash of both addresses selects the channel of a
    /// packet, in an order that is independent of the direction: packets between two hosts share a channel.
    /// Default: 1.
    pub partitions: u32,
    /// Partitions that the run carries; packets of others only count as records and for the clock. Results of
    /// runs that together carry all partitions once are those of one run: see
    /// [`Outcome::merge`](crate::Outcome::merge). Default: all.
    pub only: Range<u32>,
}

impl Settings {
    /// Returns settings without loss and billing, and with default refreshes.
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
            tariff: None,
            carriers: Vec::new(),
            link_mtu: None,
            duration: None,
            contexts: Contexts::NONE,
            keep_tunnels: false,
            most_flows: MOST_FLOWS,
            damage_one: false,
            partitions: 1,
            only: 0..u32::MAX,
        }
    }

    /// Sets the price of the link by its price list.
    pub fn set_tariff(&mut self, tariff: Tariff) {
        (self.billing, self.tariff) = (Some(Billing::of(&tariff)), Some(tariff));
    }

    /// Price of a month in which traffic of a price occurs a number of times. `sessions`: price of sessions in it.
    pub fn month_price(&self, price: f64, sessions: f64, times: f64) -> f64 {
        let octets = (price - sessions).max(0.0) * times;
        match &self.tariff {
            Some(tariff) if tariff.octet > 0.0 => tariff.month(octets / tariff.octet) + sessions * times,
            Some(tariff) => tariff.fee + sessions * times,
            None => octets,
        }
    }

    /// Price of the link, if packing is compared: not where sessions count, which have packets of all flows.
    pub(crate) fn packed_billing(&self) -> Option<&Billing> {
        let has_sessions = self.tariff.as_ref()?.session.is_some();
        self.billing.as_ref().filter(|_| !has_sessions)
    }

    /// Returns the contexts of a ROHC scheme, if they differ from those of [`Settings::channel`].
    pub(crate) fn unusual_contexts(&self, spec: &SchemeSpec) -> Option<outcome::Contexts> {
        let usual = outcome::Contexts::of(&self.channel);
        spec.channel().map(|channel| outcome::Contexts::of(&channel)).filter(|contexts| *contexts != usual)
    }

    /// Number of partitions, within its limits.
    pub(crate) fn partitions(&self) -> u32 {
        self.partitions.clamp(1, MOST_PARTITIONS)
    }

    /// Existing partitions that the run carries.
    pub(crate) fn carried(&self) -> Range<u32> {
        let end = self.only.end.min(self.partitions());
        self.only.start.min(end)..end
    }

    /// True if correct UDP checksums are not sent, since the carrier protects its frames.
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
        /// Name of the set of profiles in reports.
        name: &'static str,
        /// Channel of both directions.
        channel: Channel,
        /// The mode of operation.
        mode: Mode,
        /// True if both ends have the bases of [`Settings::learned`].
        learned: bool,
    },
    /// SCHC (RFC 8724, RFC 8824) with rules derived from the capture beforehand, see [`crate::schc`].
    Schc,
    /// 6LoWPAN: LOWPAN_IPHC and LOWPAN_NHC (RFC 6282). Packets that are not IPv6 are sent unchanged. The
    /// prefixes of the capture are contexts, and interface identifiers are derived from link addresses at no
    /// cost.
    Lowpan,
}

impl SchemeSpec {
    /// Name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rohc { name, .. } => name,
            Self::Schc => "schc",
            Self::Lowpan => "6lowpan",
        }
    }

    /// Identifier, as [`Scheme::id`](crate::outcome::Scheme::id). `usual`: the channel whose contexts are not named.
    pub fn id(&self, usual: &Channel) -> String {
        let contexts = self.channel().map(|channel| outcome::Contexts::of(&channel));
        outcome::id(self.name(), self.mode(), contexts.filter(|own| *own != outcome::Contexts::of(usual)))
    }

    /// Channel of both directions, for ROHC.
    pub const fn channel(&self) -> Option<Channel> {
        match self {
            Self::Rohc { channel, .. } => Some(*channel),
            Self::Schc | Self::Lowpan => None,
        }
    }

    /// True if a decompressor that starts late depends on refreshes.
    pub(crate) const fn refreshes(&self) -> bool {
        matches!(self, Self::Rohc { mode: Mode::Unidirectional, .. })
    }

    /// Letter of its mode, if it has modes.
    pub const fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Rohc { mode, .. } => Some(mode.letter()),
            Self::Schc | Self::Lowpan => None,
        }
    }
}

/// Independent loss of packets, except SYN segments of TCP: the packets that follow them in a capture show that they arrived, and a
/// loss that contradicts them tells nothing about a compressor that relies on it. A SYN segment that a decompressor rejects is sent
/// again, and its last transmission is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomLoss {
    /// Probability that a packet is lost, 0 to 1.
    pub probability: f64,
    /// Seed that selects the lost packets: equal in all schemes and on all machines.
    pub seed: u64,
}

/// Carrier of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierOverhead {
    /// Its name.
    pub name: &'static str,
    /// Octets that it adds to each packet.
    pub octets: u32,
}

impl CarrierOverhead {
    /// Carriers of `thinair tunnel` by the scheme of their URL, with what they add to an encrypted packet alone in its datagram or frame: UDP
    /// over IPv4, and a serial line.
    pub const TUNNEL: [Self; 2] = [Self { name: "udp", octets: 48 }, Self { name: "serial", octets: 17 }];
}

/// Price of a link that bills each started unit of each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Billing {
    /// Size of a unit in octets, at least 1.
    pub unit: u32,
    /// Price of a unit, in any currency.
    pub price: f64,
    /// Octets that a packet counts at least. Default: 0.
    pub floor: u32,
    /// Counted directions; up is from side A. Default: both.
    pub directions: CountedDirections,
}

impl Billing {
    /// Returns the price of a link that bills both directions, without floor.
    pub fn new(unit: u32, price: f64) -> Self {
        Self { unit, price, floor: 0, directions: CountedDirections::Both }
    }

    /// Returns the price of a link by its price list.
    pub fn of(tariff: &Tariff) -> Self {
        let Tariff { step, octet, floor, directions, .. } = *tariff;
        Self { unit: step, price: octet * f64::from(step), floor, directions }
    }

    /// Number of units billed for a packet of `octets` octets from side `from`.
    pub(crate) fn units(&self, from: CaptureSide, octets: usize) -> u64 {
        match (self.directions, from) {
            (CountedDirections::Up, CaptureSide::B) | (CountedDirections::Down, CaptureSide::A) => 0,
            (CountedDirections::Both | CountedDirections::Up | CountedDirections::Down, _) => {
                octets.max(self.floor as usize).div_ceil(self.unit.max(1) as usize) as u64
            }
        }
    }
}
