//! Sums over packets: what came in, and what one scheme made of it.

use std::collections::BTreeMap;

use thinair_rohc::ProfileId;

use crate::gaps::Gaps;
use crate::outcome::{LayersIn, LayersOut};
use crate::packet::Packet;
use crate::scheme::{Compressed, Delivery, Label, Trip};
use crate::settings::Settings;

/// What came in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) layers: LayersIn,
    /// Units that are paid for.
    pub(crate) units: u64,
    /// Packets larger than the MTU of the link.
    pub(crate) over_mtu: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, packet: &Packet<'_>, application: usize, settings: &Settings) {
        let len = packet.octets.len();
        self.packets += 1;
        self.bytes += len as u64;
        self.layers.ip += packet.ip as u64;
        self.layers.transport += packet.transport as u64;
        self.layers.application += application as u64;
        self.layers.payload += (len - packet.headers() - application) as u64;
        self.units += units(settings, len);
        self.over_mtu += over_mtu(settings, len);
    }
}

/// What one scheme made of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) bytes: u64,
    pub(crate) header_bytes: u64,
    pub(crate) layers: LayersOut,
    /// Octets of the first packet of each flow.
    pub(crate) first_packets: u64,
    pub(crate) not_applicable: u64,
    pub(crate) mismatches: u64,
    pub(crate) lost: u64,
    pub(crate) lost_by: BTreeMap<&'static str, u64>,
    /// Packets of each format, and octets of their compressed headers.
    pub(crate) formats: BTreeMap<Label, (u64, u64)>,
    pub(crate) profiles: BTreeMap<ProfileId, u64>,
    pub(crate) refreshes: u64,
    pub(crate) refresh_bytes: u64,
    /// Those that have ended.
    pub(crate) gaps: Gaps,
    pub(crate) feedback_packets: u64,
    pub(crate) feedback_bytes: u64,
    pub(crate) units: u64,
    pub(crate) over_mtu: u64,
}

impl Carried {
    /// Adds the trip of one packet, the first of its flow or a later one.
    pub(crate) fn add(&mut self, layers: &LayersOut, is_first: bool, trip: &Trip, settings: &Settings) {
        self.layers.add(layers);
        self.bytes += trip.len as u64;
        if is_first {
            self.first_packets += trip.len as u64;
        }
        self.not_applicable += u64::from(trip.not_applicable);
        self.header_bytes += layers.headers();
        self.units += units(settings, trip.len);
        self.over_mtu += over_mtu(settings, trip.len);
        if let Some(compressed) = &trip.compressed {
            let (packets, header_bytes) = self.formats.entry(compressed.format).or_default();
            *packets += 1;
            *header_bytes += compressed.header_out as u64;
            if let Some(profile) = compressed.profile {
                *self.profiles.entry(profile).or_default() += 1;
            }
            if compressed.refresh {
                self.refreshes += 1;
                self.refresh_bytes += compressed.header_out as u64;
            }
        }
        for &len in &trip.feedback {
            self.feedback_packets += 1;
            self.feedback_bytes += len as u64;
            // It goes by itself, so it is paid for like a packet.
            self.units += units(settings, len);
        }
        match &trip.delivery {
            Delivery::Exact => {}
            Delivery::Lost(reason) => {
                self.lost += 1;
                *self.lost_by.entry(reason).or_default() += 1;
            }
            Delivery::Fault(_) => self.mismatches += 1,
        }
    }
}

/// The layers of one packet after compression. The compressor takes headers from the front; what it does not
/// take goes as it is.
pub(crate) fn layers_out(
    packet: &Packet<'_>,
    application: usize,
    compressed: Option<&Compressed>,
) -> LayersOut {
    let taken = compressed.map_or(0, |compressed| compressed.header_in);
    let left = |from: usize, to: usize| to.saturating_sub(from.max(taken)) as u64;
    let (ip, headers) = (packet.ip, packet.headers());
    LayersOut {
        rohc: compressed.map_or(0, |compressed| compressed.header_out as u64),
        ip: left(0, ip),
        transport: left(ip, headers),
        application: left(headers, headers + application),
        payload: left(headers + application, packet.octets.len()),
    }
}

fn units(settings: &Settings, len: usize) -> u64 {
    settings.billing.map_or(0, |billing| billing.units(len))
}

fn over_mtu(settings: &Settings, len: usize) -> u64 {
    u64::from(settings.link_mtu.is_some_and(|mtu| len > mtu as usize))
}
