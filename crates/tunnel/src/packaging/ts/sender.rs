//! Conversion of units to TS Packets, and of TS Packets to bodies.

use std::time::Duration;

use thinair_ule::psi::{Pat, Pmt, Program};
use thinair_ule::ts::{self, Cc};
use thinair_ule::{
    Bridged, Encapsulator, EncapsulatorConfig, Packing, Pid, PushError as Refused, Since, Sndu, SnduError,
    TsPacket,
};
use thinair_wire::time::Instant;

use super::LARGEST_UNIT;
use super::constant::{Constant, PendingPacket};
use crate::packaging::addresses::Addresses;
use crate::packaging::counters::PackagerCounters;
use crate::packaging::rtp::{self, RtpHeaders};
use crate::packaging::{Body, BodySink, PackagerConfig, PackagingError, PushError, ether_type};
use crate::site_config::{Others, Packaging};
use crate::unit::{SiteId, Unit};

/// Maximum number of TS Packets per body: a datagram of 1,316 octets.
const MOST: u8 = 7;
/// PID of the PMT of site 0, which is unused; that of site `n` is higher by `n`.
const PMT: u16 = 0x0100;

/// Sends units in TS Packets.
#[derive(Debug)]
pub struct TsSender {
    encapsulator: Encapsulator,
    addresses: Addresses,
    bodies: Bodies,
    flush: Duration,
    /// Time at which incomplete TS Packets and bodies must be sent.
    deadline: Option<Instant>,
    psi: Option<Psi>,
    constant: Option<Constant>,
    counters: PackagerCounters,
}

impl TsSender {
    pub(in crate::packaging) fn new(
        now: Instant,
        packaging: &Packaging,
        others: &Others,
        config: PackagerConfig,
    ) -> Result<Self, PackagingError> {
        let Packaging::Ts { pid, per_datagram, flush, psi, bitrate, npa } = packaging else {
            return Err(PackagingError::PerDatagram(0));
        };
        if !(1..=MOST).contains(per_datagram) {
            return Err(PackagingError::PerDatagram(*per_datagram));
        }
        if !pid.is_for_streams() {
            return Err(PackagingError::Pid(*pid));
        }
        let per_datagram = usize::from(*per_datagram);
        let header = if config.rtp.is_some() { rtp::HEADER } else { 0 };
        let (room, needed) = (config.largest_body, header + per_datagram * ts::LEN);
        if room < needed {
            return Err(PackagingError::NoRoom { room, needed });
        }
        // This type decides when an incomplete TS Packet is sent.
        let packing = Packing::Threshold { wait: Duration::MAX, since: Since::First };
        let site = match others {
            Others::Mesh(mesh) => mesh.own,
            Others::Peers(_) => None,
        };
        Ok(Self {
            encapsulator: Encapsulator::new(EncapsulatorConfig { packing, ..EncapsulatorConfig::new(*pid) }),
            addresses: Addresses::new(*npa, others)?,
            bodies: Bodies::new(per_datagram, config.rtp),
            flush: *flush,
            deadline: None,
            psi: psi.map(|every| Psi::new(now, every, *pid, site)).transpose()?,
            constant: bitrate.map(|bitrate| Constant::new(now, bitrate, per_datagram)).transpose()?,
            counters: PackagerCounters::default(),
        })
    }

    pub(in crate::packaging) fn counters(&self) -> PackagerCounters {
        let Bodies { bodies, body_octets, ts_packets, .. } = self.bodies;
        let (psi, nulls) = (
            self.psi.as_ref().map_or(0, |psi| psi.sent),
            self.constant.as_ref().map_or(0, |constant| constant.nulls),
        );
        let padding = self.encapsulator.counters().padding;
        PackagerCounters { bodies, body_octets, ts_packets, psi, nulls, padding, ..self.counters }
    }

    pub(in crate::packaging) fn is_full(&self) -> bool {
        match &self.constant {
            Some(constant) => constant.is_full(),
            None => false,
        }
    }

    pub(in crate::packaging) fn push(
        &mut self,
        now: Instant,
        unit: Unit<'_>,
        sink: BodySink<'_>,
    ) -> Result<(), PushError> {
        self.put(now, unit, sink).inspect_err(|_| self.counters.refused += 1)?;
        self.counters.units += 1;
        self.counters.octets += unit.octets.len() as u64;
        Ok(())
    }

    fn put(&mut self, now: Instant, unit: Unit<'_>, sink: BodySink<'_>) -> Result<(), PushError> {
        let sndu = sndu(unit)?;
        let sndu = match self.addresses.of(unit.to)? {
            Some(npa) => sndu.to(npa),
            None => sndu,
        };
        let refused = |error| match error {
            Refused::Sndu(SnduError::Empty) => PushError::Empty,
            Refused::Midway | Refused::Sndu(_) => {
                PushError::TooLong { octets: unit.octets.len(), most: LARGEST_UNIT }
            }
        };
        if let Some(constant) = &mut self.constant {
            if constant.is_full() {
                return Err(PushError::Full);
            }
            constant.set_large(unit.large, &mut self.encapsulator);
            self.encapsulator.push(now, &sndu, &mut |packet| constant.push(packet)).map_err(refused)?;
            constant.unit_ends(&self.encapsulator);
            return Ok(());
        }
        if unit.large != self.bodies.large {
            self.send(now, sink);
            self.bodies.set_large(unit.large, sink);
        }
        self.psi(now, sink);
        let before = self.bodies.bodies;
        let bodies = &mut self.bodies;
        let pushed = self.encapsulator.push(now, &sndu, &mut |packet| bodies.push(now, packet, sink));
        pushed.map_err(refused)?;
        bodies.unit_ends(&self.encapsulator);
        bodies.send_full(sink);
        // The rest after a sent body belongs to this unit.
        if self.bodies.bodies > before {
            self.deadline = None;
        }
        if self.deadline.is_none() && self.is_begun() && !self.flush.is_zero() {
            self.deadline = Some(now + self.flush);
        }
        Ok(())
    }

    /// True if something is pending.
    fn is_begun(&self) -> bool {
        self.encapsulator.poll_at().is_some() || !self.bodies.is_empty()
    }

    pub(in crate::packaging) fn pause(&mut self, now: Instant, sink: BodySink<'_>) {
        if self.constant.is_none() && self.flush.is_zero() {
            self.send(now, sink);
        }
    }

    pub(in crate::packaging) fn poll_at(&self) -> Option<Instant> {
        if let Some(constant) = &self.constant {
            return Some(constant.poll_at(self.bodies.count()));
        }
        let psi = self.psi.as_ref().map(|psi| psi.due);
        self.deadline.into_iter().chain(psi).min()
    }

    pub(in crate::packaging) fn poll(&mut self, now: Instant, sink: BodySink<'_>) {
        if let Some(constant) = &mut self.constant {
            while constant.take_slot(now) {
                let Self { encapsulator, psi, bodies, .. } = self;
                match psi.as_mut().and_then(|psi| psi.next(now)) {
                    Some(table) => bodies.push_table(now, &table, sink),
                    None => {
                        let PendingPacket { large, units, packet } = constant.next(encapsulator);
                        bodies.set_large(large, sink);
                        bodies.ends = units;
                        bodies.push(now, &packet, sink);
                    }
                }
                bodies.send_full(sink);
            }
            return;
        }
        let was_begun = self.is_begun();
        self.psi(now, sink);
        if !was_begun || self.deadline.is_some_and(|deadline| deadline <= now) {
            self.send(now, sink);
        }
    }

    /// Adds tables to the body, if they are due.
    fn psi(&mut self, now: Instant, sink: BodySink<'_>) {
        let Self { psi: Some(psi), bodies, .. } = self else { return };
        while let Some(table) = psi.next(now) {
            bodies.push_table(now, &table, sink);
            bodies.send_full(sink);
        }
    }

    /// Sends everything that is pending.
    fn send(&mut self, now: Instant, sink: BodySink<'_>) {
        let Self { encapsulator, bodies, .. } = self;
        encapsulator.flush(&mut |packet| bodies.push(now, packet, sink));
        bodies.send(sink);
        self.deadline = None;
    }
}

/// Returns the SNDU of a unit, without an address.
fn sndu(unit: Unit<'_>) -> Result<Sndu<'_>, PushError> {
    let octets = unit.octets.len();
    if octets == 0 {
        return Err(PushError::Empty);
    }
    if octets > LARGEST_UNIT {
        return Err(PushError::TooLong { octets, most: LARGEST_UNIT });
    }
    match ether_type(unit.protocol) {
        Some(ether_type) => Ok(Sndu::pdu(ether_type, unit.octets)),
        None => Bridged::read(unit.octets).map(Sndu::bridged).map_err(|_| PushError::NotAFrame { octets }),
    }
}

/// Bodies that are filled with TS Packets.
#[derive(Debug)]
struct Bodies {
    octets: Vec<u8>,
    rtp: Option<RtpHeaders>,
    /// Size of a full body in octets.
    full: usize,
    /// True if the units belong to the channel with large CIDs.
    large: bool,
    /// Number of units that end in it.
    units: u32,
    /// Number of units that end in the incomplete TS Packet of the encapsulator.
    ends: u32,
    bodies: u64,
    body_octets: u64,
    ts_packets: u64,
}

impl Bodies {
    fn new(per_datagram: usize, rtp: Option<rtp::Start>) -> Self {
        let full = per_datagram * ts::LEN + if rtp.is_some() { rtp::HEADER } else { 0 };
        Self {
            octets: Vec::with_capacity(full),
            rtp: rtp.map(RtpHeaders::new),
            full,
            large: false,
            units: 0,
            ends: 0,
            bodies: 0,
            body_octets: 0,
            ts_packets: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Number of TS Packets in it.
    fn count(&self) -> usize {
        self.octets.len() / ts::LEN
    }

    /// Sets the channel of the next units. A body belongs to one channel.
    fn set_large(&mut self, large: bool, sink: BodySink<'_>) {
        if large != self.large {
            self.send(sink);
            self.large = large;
        }
    }

    /// Records the end of a pushed unit: in the incomplete TS Packet, or in the last complete one.
    fn unit_ends(&mut self, encapsulator: &Encapsulator) {
        if encapsulator.poll_at().is_some() { self.ends += 1 } else { self.units += 1 }
    }

    /// Adds a TS Packet with all units that are known to end in it. A full body is sent before the next
    /// packet, or by [`send_full`](Self::send_full): the pushed unit may end with it.
    fn push(&mut self, now: Instant, packet: &TsPacket, sink: BodySink<'_>) {
        self.send_full(sink);
        self.units += std::mem::take(&mut self.ends);
        self.append(now, packet);
    }

    /// Adds a TS Packet without units.
    fn push_table(&mut self, now: Instant, packet: &TsPacket, sink: BodySink<'_>) {
        self.send_full(sink);
        self.append(now, packet);
    }

    fn append(&mut self, now: Instant, packet: &TsPacket) {
        if let Some(rtp) = self.rtp.as_mut().filter(|_| self.octets.is_empty()) {
            self.octets.extend_from_slice(&rtp.next(now));
        }
        self.octets.extend_from_slice(packet);
        self.ts_packets += 1;
    }

    /// Sends the body if it is full.
    fn send_full(&mut self, sink: BodySink<'_>) {
        if self.octets.len() >= self.full {
            self.send(sink);
        }
    }

    fn send(&mut self, sink: BodySink<'_>) {
        if self.octets.is_empty() {
            return;
        }
        self.bodies += 1;
        self.body_octets += self.octets.len() as u64;
        sink(Body {
            octets: &self.octets,
            several: false,
            to: None,
            large: self.large,
            units: std::mem::take(&mut self.units),
        });
        self.octets.clear();
    }
}

/// Tables that announce the stream.
#[derive(Debug)]
struct Psi {
    pat: TsPacket,
    pmt: TsPacket,
    every: Duration,
    due: Instant,
    pmt_follows: bool,
    /// Both are sent equally often, so they share a Continuity Counter.
    cc: Cc,
    sent: u64,
}

impl Psi {
    fn new(now: Instant, every: Duration, stream: Pid, site: Option<SiteId>) -> Result<Self, PackagingError> {
        let number = site.map_or(0, |site| u16::from(site.number()));
        // Alternative PID, if the stream uses the first one.
        let pids = [PMT + number, PMT + 0x0100 + number].into_iter().filter_map(Pid::new);
        let pmt = pids.clone().find(|pid| *pid != stream).ok_or(PackagingError::Pid(stream))?;
        let program_number = number.max(1);
        let pat = Pat {
            transport_stream_id: program_number,
            version: 0,
            programs: &[Program { number: program_number, pid: pmt }],
        };
        let table = Pmt { program_number, version: 0, streams: &[stream] };
        Ok(Self {
            pat: pat.packet(Cc::default()).map_err(PackagingError::Psi)?,
            pmt: table.packet(pmt, Cc::default()).map_err(PackagingError::Psi)?,
            every: every.max(Duration::from_millis(1)),
            due: now,
            pmt_follows: false,
            cc: Cc::default(),
            sent: 0,
        })
    }

    /// Returns the table that is due, if any: the PMT directly follows the PAT.
    fn next(&mut self, now: Instant) -> Option<TsPacket> {
        let mut packet = if std::mem::take(&mut self.pmt_follows) {
            self.pmt
        } else if self.due <= now {
            self.due = now + self.every;
            self.pmt_follows = true;
            self.pat
        } else {
            return None;
        };
        packet[3] = packet[3] & 0xF0 | self.cc.value();
        if !self.pmt_follows {
            self.cc = self.cc.next();
        }
        self.sent += 1;
        Some(packet)
    }
}
