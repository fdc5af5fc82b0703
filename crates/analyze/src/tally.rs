//! Sums over packets: uncompressed traffic, and results of one scheme.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thinair_rohc::ProfileId;

use crate::gaps::Gaps;
use crate::outcome::{LayersIn, LayersOut, Name};
use crate::packet::ParsedPacket;
use crate::portable::names;
use crate::scheme::{CompressedPacket, Delivery, FeedbackSums, FormatLabel, Trip};
use crate::settings::Settings;
use crate::sides::CaptureSide;

/// Sums of uncompressed packets.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TrafficSums {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) layers: LayersIn,
    /// Octets of all headers of the first packets of flows.
    pub(crate) first_headers: u64,
    /// Billed units.
    pub(crate) units: u64,
    /// Packets that exceed the link MTU.
    pub(crate) over_mtu: u64,
}

impl TrafficSums {
    /// Adds a packet from side `from`; `is_first`: the first one of its flow.
    pub(crate) fn add(
        &mut self,
        from: CaptureSide,
        packet: &ParsedPacket<'_>,
        application: usize,
        is_first: bool,
        settings: &Settings,
    ) {
        let len = packet.octets.len();
        self.packets += 1;
        self.bytes += len as u64;
        self.layers.ip += packet.ip as u64;
        self.layers.transport += packet.transport as u64;
        self.layers.application += application as u64;
        self.layers.payload += (len - packet.headers() - application) as u64;
        if is_first {
            self.first_headers += (packet.headers() + application) as u64;
        }
        self.units += units(settings, from, len);
        self.over_mtu += over_mtu(settings, len);
    }
}

impl TrafficSums {
    /// Adds the sums of other packets.
    pub(crate) fn merge(&mut self, other: &Self) {
        let Self { packets, bytes, layers, first_headers, units, over_mtu } = other;
        self.packets += packets;
        self.bytes += bytes;
        self.layers.add(layers);
        self.first_headers += first_headers;
        self.units += units;
        self.over_mtu += over_mtu;
    }
}

/// Sums of one scheme.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SchemeSums {
    pub(crate) bytes: u64,
    pub(crate) layers: LayersOut,
    /// Octets of the first packets of flows.
    pub(crate) first_packets: u64,
    /// Octets of all their headers.
    pub(crate) first_headers: u64,
    pub(crate) not_applicable: u64,
    pub(crate) mismatches: u64,
    pub(crate) lost: u64,
    #[serde(deserialize_with = "names")]
    pub(crate) lost_by: BTreeMap<Name, u64>,
    kinds: Vec<FormatCount>,
    pub(crate) refreshes: u64,
    pub(crate) refresh_bytes: u64,
    /// Gaps that have ended.
    pub(crate) gaps: Gaps,
    pub(crate) feedback_packets: u64,
    pub(crate) feedback_bytes: u64,
    pub(crate) units: u64,
    /// Billed units with each of [`Settings::carriers`] around each packet; empty without packets.
    #[serde(default)]
    pub(crate) units_around: Vec<u64>,
    pub(crate) over_mtu: u64,
}

/// Packets of one format and profile. A flow has few of these.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(into = "(String, Option<u16>, u64, u64)", try_from = "(String, Option<u16>, u64, u64)")]
struct FormatCount {
    format: FormatLabel,
    profile: Option<ProfileId>,
    packets: u64,
    /// Octets of their compressed headers.
    header_bytes: u64,
}

impl From<FormatCount> for (String, Option<u16>, u64, u64) {
    fn from(kind: FormatCount) -> Self {
        let profile = kind.profile.map(ProfileId::number);
        (kind.format.name().into_owned(), profile, kind.packets, kind.header_bytes)
    }
}

impl TryFrom<(String, Option<u16>, u64, u64)> for FormatCount {
    type Error = &'static str;

    fn try_from(kind: (String, Option<u16>, u64, u64)) -> Result<Self, Self::Error> {
        let (format, profile, packets, header_bytes) = kind;
        let profile_of = |number| ProfileId::ALL.into_iter().find(|profile| profile.number() == number);
        Ok(Self {
            format: FormatLabel::named(&format).ok_or("unknown format")?,
            profile: profile.map(|number| profile_of(number).ok_or("unknown profile")).transpose()?,
            packets,
            header_bytes,
        })
    }
}

impl SchemeSums {
    /// Adds the trip of a packet from side `from`; `is_first`: the first one of its flow.
    pub(crate) fn add(
        &mut self,
        from: CaptureSide,
        layers: &LayersOut,
        is_first: bool,
        trip: &Trip,
        settings: &Settings,
    ) {
        self.layers.add(layers);
        self.bytes += trip.len as u64;
        if is_first {
            self.first_packets += trip.len as u64;
            self.first_headers += layers.all_headers();
        }
        self.not_applicable += u64::from(trip.not_applicable);
        if settings.billing.is_some() {
            self.units += units(settings, from, trip.len) + trip.feedback.units;
            let around = settings.carriers.iter().map(|carrier| trip.len + carrier.octets as usize);
            // In a tunnel feedback travels with packets.
            self.add_around(around.map(|len| units(settings, from, len) + trip.feedback.units));
        }
        self.over_mtu += over_mtu(settings, trip.len);
        if let Some(compressed) = &trip.compressed {
            self.count(compressed.format, compressed.profile, 1, compressed.header_out as u64);
            if compressed.refresh {
                self.refreshes += 1;
                self.refresh_bytes += compressed.header_out as u64;
            }
        }
        let FeedbackSums { packets, bytes, units: _ } = trip.feedback;
        self.feedback_packets += u64::from(packets);
        self.feedback_bytes += bytes;
        match &trip.delivery {
            Delivery::Exact => {}
            Delivery::Lost(reason) => {
                self.lost += 1;
                *self.lost_by.entry(reason).or_default() += 1;
            }
            Delivery::Fault(_) => self.mismatches += 1,
        }
    }

    fn add_around(&mut self, units: impl ExactSizeIterator<Item = u64>) {
        self.units_around.resize(self.units_around.len().max(units.len()), 0);
        self.units_around.iter_mut().zip(units).for_each(|(sum, units)| *sum += units);
    }

    /// Adds packets of one kind. Frequent kinds move to the front.
    fn count(&mut self, format: FormatLabel, profile: Option<ProfileId>, packets: u64, header_bytes: u64) {
        let Some(at) = self.kinds.iter().position(|kind| kind.format == format && kind.profile == profile)
        else {
            return self.kinds.push(FormatCount { format, profile, packets, header_bytes });
        };
        self.kinds[at].packets += packets;
        self.kinds[at].header_bytes += header_bytes;
        if at > 0 && self.kinds[at - 1].packets < self.kinds[at].packets {
            self.kinds.swap(at - 1, at);
        }
    }

    /// Adds all sums of a flow.
    pub(crate) fn merge(&mut self, flow: &Self) {
        self.bytes += flow.bytes;
        self.layers.add(&flow.layers);
        self.first_packets += flow.first_packets;
        self.first_headers += flow.first_headers;
        self.not_applicable += flow.not_applicable;
        self.mismatches += flow.mismatches;
        self.lost += flow.lost;
        for (reason, lost) in &flow.lost_by {
            *self.lost_by.entry(reason).or_default() += lost;
        }
        for kind in &flow.kinds {
            self.count(kind.format, kind.profile, kind.packets, kind.header_bytes);
        }
        self.refreshes += flow.refreshes;
        self.refresh_bytes += flow.refresh_bytes;
        self.gaps.merge(&flow.gaps);
        self.feedback_packets += flow.feedback_packets;
        self.feedback_bytes += flow.feedback_bytes;
        self.units += flow.units;
        self.add_around(flow.units_around.iter().copied());
        self.over_mtu += flow.over_mtu;
    }

    /// Number of packets by format, and octets of their compressed headers.
    pub(crate) fn formats(&self) -> BTreeMap<FormatLabel, (u64, u64)> {
        let mut formats = BTreeMap::new();
        for kind in &self.kinds {
            let (packets, header_bytes): &mut (u64, u64) = formats.entry(kind.format).or_default();
            *packets += kind.packets;
            *header_bytes += kind.header_bytes;
        }
        formats
    }

    /// Number of packets by profile.
    pub(crate) fn profiles(&self) -> BTreeMap<ProfileId, u64> {
        let mut profiles = BTreeMap::new();
        for (profile, packets) in self.kinds.iter().filter_map(|kind| Some((kind.profile?, kind.packets))) {
            *profiles.entry(profile).or_default() += packets;
        }
        profiles
    }
}

/// Number of packets by size: an element for each size up to the largest.
#[derive(Clone, Debug, Default)]
pub(crate) struct SizeCounts(Vec<u64>);

impl SizeCounts {
    pub(crate) fn add(&mut self, size: usize) {
        if size >= self.0.len() {
            self.0.resize(size + 1, 0);
        }
        self.0[size] += 1;
    }

    /// Number of packets of each size that occurs.
    pub(crate) fn counts(&self) -> BTreeMap<u64, u64> {
        (0..).zip(self.0.iter().copied()).filter(|(_, packets)| *packets > 0).collect()
    }
}

/// Layers of a packet, each by the offset of its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerEnds {
    ip: usize,
    transport: usize,
    application: usize,
    payload: usize,
}

impl LayerEnds {
    pub(crate) fn of(packet: &ParsedPacket<'_>, application: usize) -> Self {
        let transport = packet.headers();
        let (application, payload) = (transport + application, packet.octets.len());
        Self { ip: packet.ip, transport, application, payload }
    }

    /// Octets of all headers.
    pub(crate) fn headers(&self) -> usize {
        self.application
    }

    /// Octets of the packet.
    pub(crate) fn len(&self) -> usize {
        self.payload
    }

    /// Layers after compression. The compressor consumes headers from the front; the rest is sent unchanged.
    pub(crate) fn out(&self, compressed: Option<&CompressedPacket>) -> LayersOut {
        let taken = compressed.map_or(0, |compressed| compressed.header_in);
        let left = |from: usize, to: usize| to.saturating_sub(from.max(taken)) as u64;
        LayersOut {
            rohc: compressed.map_or(0, |compressed| compressed.header_out as u64),
            ip: left(0, self.ip),
            transport: left(self.ip, self.transport),
            application: left(self.transport, self.application),
            payload: left(self.application, self.payload),
        }
    }
}

/// Billed units of a packet of so many octets from a side.
pub(crate) fn units(settings: &Settings, from: CaptureSide, len: usize) -> u64 {
    settings.billing.map_or(0, |billing| billing.units(from, len))
}

fn over_mtu(settings: &Settings, len: usize) -> u64 {
    u64::from(settings.link_mtu.is_some_and(|mtu| len > mtu as usize))
}
