//! Schemes side by side: each carries batches of packets in a lane of its own, independent of the others.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::scheme::{SchemeLink, Sending, Trip};
use crate::settings::{SchemeSpec, Settings};
use crate::survey::SurveyedInput;
use crate::tally::LayerEnds;

/// Number of packets of a full batch.
const MOST_PACKETS: usize = 1_024;

/// Octets of a full batch, or more by one packet.
const MOST_OCTETS: usize = 1 << 20;

/// Packets that the schemes carry together, and then their trips.
#[derive(Debug, Default)]
pub(super) struct Batch {
    octets: Vec<u8>,
    packets: Vec<BatchPacket>,
    /// Trips of the packets, by scheme.
    trips: Vec<Vec<Trip>>,
}

/// A packet in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchPacket {
    /// Number of its record in the capture.
    pub(super) record: u64,
    pub(super) sending: Sending,
    /// Index of its partition among those that the run carries.
    pub(super) channel: usize,
    /// Index of its flow.
    pub(super) flow: usize,
    /// True if it is the first one of its flow.
    pub(super) is_first: bool,
    pub(super) layers: LayerEnds,
    /// Time on the axis of all inputs, in nanoseconds.
    pub(super) nanos: u64,
    /// Time in nanoseconds since 1970.
    pub(super) clock: u64,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.packets.len() >= MOST_PACKETS || self.octets.len() >= MOST_OCTETS
    }

    /// Appends a packet.
    pub(super) fn push(&mut self, packet: BatchPacket, octets: &[u8]) {
        self.packets.push(packet);
        self.octets.extend_from_slice(octets);
    }

    /// Removes all packets.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.octets.clear();
    }

    /// Returns the packets with their octets.
    fn packets(&self) -> impl Iterator<Item = (&BatchPacket, &[u8])> {
        let mut rest = self.octets.as_slice();
        self.packets.iter().map(move |packet| {
            let (octets, behind) = rest.split_at(packet.layers.len());
            rest = behind;
            (packet, octets)
        })
    }

    /// Returns the packets, each with its trips in the order of schemes.
    pub(super) fn trips(&self) -> impl Iterator<Item = (&BatchPacket, impl Iterator<Item = &Trip>)> {
        self.packets
            .iter()
            .enumerate()
            .map(|(at, packet)| (packet, self.trips.iter().map(move |trips| &trips[at])))
    }
}

/// One scheme on the link of one input.
#[derive(Debug)]
pub(super) struct Lane {
    spec: SchemeSpec,
    surveyed: Arc<SurveyedInput>,
    /// The link of each carried partition, from its first packet on.
    links: Vec<Option<SchemeLink>>,
    /// For each carried partition, true until an octet was damaged on request.
    pub(super) damage: Vec<bool>,
    trips: Vec<Trip>,
}

impl Lane {
    pub(super) fn new(spec: SchemeSpec, surveyed: Arc<SurveyedInput>, damage: Vec<bool>) -> Self {
        let links = damage.iter().map(|_| None).collect();
        Self { spec, surveyed, links, damage, trips: Vec::new() }
    }

    fn carry(&mut self, settings: &Settings, batch: &Batch) {
        self.trips.clear();
        for (packet, octets) in batch.packets() {
            let new = || SchemeLink::new(&self.spec, settings, &self.surveyed);
            let link = self.links[packet.channel].get_or_insert_with(new);
            self.trips.push(link.carry(settings, packet.sending, octets, &mut self.damage[packet.channel]));
        }
    }
}

/// Sends the packets of a batch through all schemes, in at most `threads` threads. This thread, which is one of them, does
/// something else first, and the function returns the result of that.
pub(super) fn carry<T>(
    lanes: &mut [Lane],
    settings: &Settings,
    batch: &mut Batch,
    threads: usize,
    meanwhile: impl FnOnce() -> T,
) -> T {
    let others = threads.min(lanes.len()).saturating_sub(1);
    let waiting = Mutex::new(lanes.iter_mut());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (packets, next) = (&*batch, &next);
    let work = move || {
        while let Some(lane) = next() {
            lane.carry(settings, packets);
        }
    };
    let done = thread::scope(|scope| {
        for _ in 0..others {
            // Where no thread can be started, this one does all of the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        let done = meanwhile();
        work();
        done
    });
    batch.trips.resize_with(lanes.len(), Vec::new);
    for (lane, trips) in lanes.iter_mut().zip(&mut batch.trips) {
        std::mem::swap(&mut lane.trips, trips);
    }
    done
}
