//! Extraction of units from TS Packets of several PIDs.

use thinair_ule::ts::{self, TsHeader};
use thinair_ule::{
    Delivery, Npa, NpaFilter, Payload, Pid, Receiver as Sndus, ReceiverConfig, Synchronizer, TsPacket,
};

use crate::packaging::addresses;
use crate::packaging::counters::{TsCounters, UnpackagerCounters};
use crate::packaging::rtp::Sources;
use crate::packaging::{PackagingError, UnitSink, UnpackError, Whose, protocol, to};
use crate::site_config::Others;
use crate::unit::{Protocol, SiteId};

/// Maximum overhead of an SNDU around its PDU, in octets: a base header with an address, Extension Headers,
/// the CRC.
const AROUND: usize = 10 + 32 + 4;
/// Number of PIDs.
const PIDS: usize = 0x2000;

/// Receives the PIDs of all other ends.
#[derive(Debug)]
pub struct TsReceiver {
    streams: PidStreams,
    synchronizer: Synchronizer,
    rtp: Sources,
}

#[derive(Debug)]
struct PidStreams {
    streams: Vec<(Option<SiteId>, Sndus<'static, Vec<u8>>)>,
    /// Index in `streams` by PID, from 1.
    places: Box<[u8]>,
    own: Option<(Npa, SiteId)>,
    largest_unit: usize,
    counters: UnpackagerCounters,
}

impl TsReceiver {
    pub(in crate::packaging) fn new(
        pid: Pid,
        own: Option<Npa>,
        others: &Others,
        largest_unit: usize,
    ) -> Result<Self, PackagingError> {
        let mut streams = PidStreams {
            streams: Vec::new(),
            places: vec![0; PIDS].into_boxed_slice(),
            own: addresses::own(own, others),
            largest_unit,
            counters: UnpackagerCounters::default(),
        };
        let mut filter = own.map_or(NpaFilter::everything(), |npa| NpaFilter::of(Some(npa)));
        // Multicast groups are filtered by the addresses of packets.
        filter.join_all();
        match others {
            Others::Mesh(mesh) => {
                for site in &mesh.sites {
                    let pid = site.pid.ok_or_else(|| PackagingError::NoPid(site.name.clone()))?;
                    streams.add(pid, site.id, &filter)?;
                }
            }
            Others::Peers(peers) => {
                for (number, peer) in (1_usize..).zip(peers) {
                    let id = u8::try_from(number).ok().and_then(SiteId::new);
                    let id = id.ok_or(PackagingError::Peers(peers.len()))?;
                    streams.add(peer.pid.unwrap_or(pid), id, &filter)?;
                }
            }
        }
        Ok(Self { streams, synchronizer: Synchronizer::new(), rtp: Sources::new() })
    }

    /// Stops identifying the senders of units.
    pub(in crate::packaging) fn forget_who(&mut self) {
        self.streams.streams.iter_mut().for_each(|(from, _)| *from = None);
    }

    pub(in crate::packaging) fn receive(
        &mut self,
        datagram: &[u8],
        sink: UnitSink<'_>,
    ) -> Result<(), UnpackError> {
        let result = self.datagram(datagram, sink);
        self.streams.counters.note(datagram.len(), result)
    }

    fn datagram(&mut self, datagram: &[u8], sink: UnitSink<'_>) -> Result<(), UnpackError> {
        let Some((offset, payload)) = self.rtp.strip(datagram).map_err(UnpackError::Rtp)? else {
            return Ok(());
        };
        let packets =
            ts::packets(payload).map_err(|_| UnpackError::NotTs { offset, octets: payload.len() })?;
        for packet in packets {
            self.streams.receive(packet, sink);
        }
        Ok(())
    }

    pub(in crate::packaging) fn receive_stream(&mut self, octets: &[u8], sink: UnitSink<'_>) {
        self.streams.counters.body_octets += octets.len() as u64;
        let streams = &mut self.streams;
        self.synchronizer.push(octets, &mut |packet| streams.receive(packet, sink));
    }

    /// Reports a missing or late body.
    pub(in crate::packaging) fn resynchronize(&mut self) {
        self.streams.streams.iter_mut().for_each(|(_, receiver)| receiver.resynchronize());
    }

    pub(in crate::packaging) fn finish_stream(&mut self, sink: UnitSink<'_>) {
        let streams = &mut self.streams;
        self.synchronizer.finish(&mut |packet| streams.receive(packet, sink));
    }

    pub(in crate::packaging) fn counters(&self) -> UnpackagerCounters {
        let mut counters = self.streams.counters();
        let synchronizer = self.synchronizer.counters();
        counters.ts.sync_errors += synchronizer.sync_errors;
        counters.ts.skipped = synchronizer.skipped;
        counters.rtp = self.rtp.counters;
        counters
    }
}

impl PidStreams {
    fn add(&mut self, pid: Pid, from: SiteId, filter: &NpaFilter) -> Result<(), PackagingError> {
        if !pid.is_for_streams() {
            return Err(PackagingError::Pid(pid));
        }
        let Some(place) = self.places.get_mut(usize::from(pid.value())).filter(|place| **place == 0) else {
            return Err(PackagingError::SamePid(pid));
        };
        let number = self.streams.len() + 1;
        *place = u8::try_from(number).map_err(|_| PackagingError::Peers(number))?;
        let config = ReceiverConfig { filter: filter.clone(), ..ReceiverConfig::new(pid) };
        self.streams.push((Some(from), Sndus::with(config, vec![0; self.largest_unit + AROUND])));
        Ok(())
    }

    fn receive(&mut self, packet: &TsPacket, sink: UnitSink<'_>) {
        let TsCounters { packets, nulls, psi, others, sync_errors, .. } = &mut self.counters.ts;
        *packets += 1;
        let Ok(TsHeader { pid, .. }) = TsHeader::read(packet) else {
            *sync_errors += 1;
            return;
        };
        let place = self.places.get(usize::from(pid.value())).copied().unwrap_or(0);
        let stream = usize::from(place).checked_sub(1).and_then(|at| self.streams.get_mut(at));
        let Some((from, receiver)) = stream else {
            match pid {
                Pid::NULL => *nulls += 1,
                _ if pid.is_for_streams() => *others += 1,
                _ => *psi += 1,
            }
            return;
        };
        let (from, own, largest_unit, counters) = (*from, self.own, self.largest_unit, &mut self.counters);
        receiver.receive(packet, &mut |Delivery { destination, payload, .. }| {
            let unit = match payload {
                Payload::Pdu(ether_type, pdu) => protocol(ether_type).map(|protocol| (protocol, pdu)),
                Payload::Bridged(frame) => Some((Protocol::Bridged, frame.octets())),
                Payload::TsPackets(_) => None,
            };
            Whose { from, to: to(destination, own), largest_unit }.deliver(counters, unit, sink);
        });
    }

    fn counters(&self) -> UnpackagerCounters {
        let mut ts = self.counters.ts;
        for (_, receiver) in &self.streams {
            let counted = receiver.counters();
            ts.transport_errors += counted.transport_errors;
            ts.duplicates += counted.duplicates;
            ts.continuity_errors += counted.continuity_errors;
            ts.delimiting_errors += counted.payload_pointer_errors
                + counted.delimiting_errors
                + counted.length_errors
                + counted.adaptation_fields;
            ts.sndus += counted.sndus;
            ts.crc_errors += counted.crc_errors;
            ts.filtered += counted.npa_filtered;
            ts.too_long += counted.too_long;
            ts.type_errors += counted.type_errors
                + counted.payload_length_errors
                + counted.pdu_concat_errors
                + counted.ts_concat_errors;
            ts.cut_short += counted.cut_short;
        }
        UnpackagerCounters { ts, ..self.counters }
    }
}
