//! GSE Packets, in a BBFrame per body: a BBHEADER of 10 octets, and a data field as long as its content.
//!
//! A unit that fits into a BBFrame is not fragmented: the current BBFrame is sent first if necessary. Longer
//! units are fragmented with a CRC-32. In a mesh the Input Stream Identifier is the number of the sending
//! site.

use std::time::Duration;

use thinair_ule::gse::{
    Accept, BbHeader, DataField, Filled, GseReceiver as Fragments, GseSlot, Label, Put, ReUse, Sending,
    TotalLength,
};
use thinair_ule::{Bridged, Npa, SnduContent, Type};
use thinair_wire::time::Instant;

use super::addresses::{self, Addresses};
use super::counters::{GseCounters, PackagerCounters, UnpackagerCounters};
use super::{
    Body, BodySink, PackagerConfig, PackagingError, PushError, UnitSink, UnpackError, Whose, ether_type,
    protocol,
};
use crate::site_config::Others;
use crate::unit::{Protocol, SiteId, Unit};

/// Maximum size of a unit in octets.
pub const LARGEST_UNIT: usize = Sending::MAX;

/// Minimum size of a data field in octets, with ample room for a fragment with a label.
const LEAST_FIELD: usize = 32;
/// Header of an unfragmented PDU without its label, in octets.
const WHOLE: usize = 4;
/// Number of PDUs of a sender reassembled at a time: it sends one after the other, but datagrams may be
/// reordered.
const SLOTS: usize = 2;

/// Fills BBFrames with units.
#[derive(Debug)]
pub struct GseSender {
    addresses: Addresses,
    flush: Duration,
    pad: usize,
    isi: Option<u8>,
    /// Room for the BBHEADER, then the data field.
    frame: Vec<u8>,
    filled: Filled,
    /// True if the units belong to the channel with large CIDs.
    large: bool,
    /// Number of units that end in the frame.
    units: u32,
    frag_id: u8,
    deadline: Option<Instant>,
    counters: PackagerCounters,
}

impl GseSender {
    pub(super) fn new(
        flush: Duration,
        own: Option<Npa>,
        others: &Others,
        config: PackagerConfig,
    ) -> Result<Self, PackagingError> {
        let (room, needed) = (config.largest_body, BbHeader::OCTETS + LEAST_FIELD);
        if room < needed {
            return Err(PackagingError::NoRoom { room, needed });
        }
        let own_site = match others {
            Others::Mesh(mesh) => mesh.own,
            Others::Peers(_) => None,
        };
        Ok(Self {
            addresses: Addresses::new(own, others)?,
            flush,
            pad: usize::from(config.pad).max(1),
            isi: own_site.map(SiteId::number),
            frame: vec![0; room.min(BbHeader::OCTETS + BbHeader::MAX_DATA_FIELD)],
            filled: Filled::nothing(ReUse::Allowed),
            large: false,
            units: 0,
            frag_id: 0,
            deadline: None,
            counters: PackagerCounters::default(),
        })
    }

    pub(super) const fn counters(&self) -> PackagerCounters {
        self.counters
    }

    pub(super) const fn poll_at(&self) -> Option<Instant> {
        self.deadline
    }

    pub(super) fn push(&mut self, now: Instant, unit: Unit<'_>, sink: BodySink<'_>) -> Result<(), PushError> {
        let (label, type_field) = self.head(unit).inspect_err(|_| self.counters.refused += 1)?;
        let octets = unit.octets.len();
        let most = LARGEST_UNIT;
        let mut sending = Sending::new(label, type_field, unit.octets, self.frag_id)
            .map_err(|_| PushError::TooLong { octets, most })
            .inspect_err(|_| self.counters.refused += 1)?;
        self.counters.units += 1;
        self.counters.octets += octets as u64;
        let field = self.frame.len() - BbHeader::OCTETS;
        let whole = WHOLE + label.octets() + octets;
        if unit.large != self.large || whole > field - self.filled.len() && whole <= field {
            self.send(sink);
        }
        self.large = unit.large;
        if whole > field {
            self.counters.fragmented += 1;
            self.frag_id = self.frag_id.wrapping_add(1);
        }
        loop {
            let room = self.frame.get_mut(BbHeader::OCTETS..).unwrap_or_default();
            let mut field = DataField::go_on_with(room, self.filled);
            let put = field.put(&mut sending);
            self.filled = field.leave();
            match put {
                Put::Complete => {
                    self.units += 1;
                    break;
                }
                // An empty data field has room for a fragment.
                Put::NoRoom if self.filled.is_empty() => break,
                Put::Partly | Put::NoRoom => self.send(sink),
            }
        }
        if self.deadline.is_none() && !self.filled.is_empty() && !self.flush.is_zero() {
            self.deadline = Some(now + self.flush);
        }
        Ok(())
    }

    fn head(&self, unit: Unit<'_>) -> Result<(Label, Type), PushError> {
        if unit.octets.is_empty() {
            return Err(PushError::Empty);
        }
        let type_field = match ether_type(unit.protocol) {
            Some(ether_type) => ether_type.into(),
            None if Bridged::read(unit.octets).is_ok() => Type::BRIDGED,
            None => return Err(PushError::NotAFrame { octets: unit.octets.len() }),
        };
        let label = self.addresses.of(unit.to)?.map_or(Label::Broadcast, Label::Six);
        Ok((label, type_field))
    }

    pub(super) fn pause(&mut self, _now: Instant, sink: BodySink<'_>) {
        if self.flush.is_zero() {
            self.send(sink);
        }
    }

    pub(super) fn poll(&mut self, now: Instant, sink: BodySink<'_>) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.send(sink);
        }
    }

    fn send(&mut self, sink: BodySink<'_>) {
        self.deadline = None;
        let filled = std::mem::replace(&mut self.filled, Filled::nothing(ReUse::Allowed)).len();
        if filled == 0 {
            return;
        }
        let unpadded = BbHeader::OCTETS + filled;
        let end = unpadded.next_multiple_of(self.pad).min(self.frame.len());
        self.frame.get_mut(unpadded..end).unwrap_or_default().fill(0);
        // Data fields never exceed the maximum size.
        let Some(mut header) = BbHeader::new(end - BbHeader::OCTETS) else { return };
        header.isi = self.isi;
        let header = header.write();
        if let Some(place) = self.frame.first_chunk_mut() {
            *place = header;
        }
        self.counters.bodies += 1;
        self.counters.body_octets += end as u64;
        self.counters.padding += (end - unpadded) as u64;
        let octets = self.frame.get(..end).unwrap_or_default();
        sink(Body {
            octets,
            several: false,
            to: None,
            large: self.large,
            units: std::mem::take(&mut self.units),
        });
    }
}

/// Reassembly of the fragments of a site, or of an unidentified sender.
type FragmentStream = (Option<SiteId>, Fragments<'static, SLOTS, Vec<u8>>);

/// Deviations that a receiver accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiverOptions {
    pub(super) total_length: TotalLength,
    /// True if a BBFrame may be divided over several datagrams; only of one sender.
    pub(super) divided: bool,
}

/// A BBFrame of which the first datagrams have arrived. Datagrams after the first one have no header: the BBFrame ends
/// where its data field does.
#[derive(Debug)]
struct DividedFrame {
    /// Octets that have arrived; empty between BBFrames.
    octets: Vec<u8>,
    /// Length of the BBFrame with its header, in octets.
    announced: usize,
}

impl DividedFrame {
    /// True if a datagram begins a BBFrame of the stream, although the previous one is incomplete: its header differs in
    /// ISI, DFL and CRC-8 only.
    fn begins_again(&self, datagram: &[u8]) -> bool {
        let fixed = |frame: &[u8]| {
            let [matype, _isi, upl @ .., _, _, sync, syncd, syncd_low, _crc] = *frame.first_chunk::<10>()?;
            Some((matype, upl, [sync, syncd, syncd_low]))
        };
        BbHeader::read(datagram).is_ok() && fixed(datagram) == fixed(&self.octets)
    }
}

/// Extracts units from BBFrames, and reassembles the fragments of each site.
#[derive(Debug)]
pub struct GseReceiver {
    streams: Vec<FragmentStream>,
    /// `None`: each datagram has a whole BBFrame.
    divided: Option<DividedFrame>,
    /// This site, whose own BBFrames may be received.
    own_site: Option<SiteId>,
    own: Option<(Npa, SiteId)>,
    largest_unit: usize,
    counters: UnpackagerCounters,
}

impl GseReceiver {
    pub(super) fn new(
        own: Option<Npa>,
        others: &Others,
        largest_unit: usize,
        options: ReceiverOptions,
    ) -> Self {
        let accept = own.map_or(Accept::Every, |npa| Accept::One(Label::Six(npa)));
        let fragments = || {
            let slots = [(); SLOTS].map(|()| GseSlot::with(vec![0; largest_unit.min(LARGEST_UNIT)]));
            let mut fragments = Fragments::with(accept, slots);
            fragments.set_total_length(options.total_length);
            fragments
        };
        let (sites, own_site) = match others {
            Others::Mesh(mesh) => (mesh.sites.iter().map(|site| Some(site.id)).collect(), mesh.own),
            Others::Peers(_) => (vec![None], None),
        };
        Self {
            streams: sites.into_iter().map(|site| (site, fragments())).collect(),
            divided: options.divided.then(|| {
                let octets = Vec::with_capacity(BbHeader::OCTETS + BbHeader::MAX_DATA_FIELD);
                DividedFrame { octets, announced: 0 }
            }),
            own_site,
            own: addresses::own(own, others),
            largest_unit,
            counters: UnpackagerCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> UnpackagerCounters {
        let mut gse = self.counters.gse;
        for (_, fragments) in &self.streams {
            let counted = fragments.counters();
            gse.packets += counted.packets;
            gse.whole += counted.whole;
            gse.reassembled += counted.reassembled;
            gse.padding += counted.padding;
            gse.filtered += counted.filtered;
            gse.header_errors += counted.length_errors + counted.label_errors;
            gse.incomplete += counted.strays + counted.restarted + counted.displaced + counted.timed_out;
            gse.too_long += counted.too_long;
            gse.crc_errors += counted.total_length_errors + counted.crc_errors;
        }
        UnpackagerCounters { gse, ..self.counters }
    }

    pub(super) fn receive(&mut self, datagram: &[u8], sink: UnitSink<'_>) -> Result<(), UnpackError> {
        let result = match self.divided.take() {
            None => self.frame(datagram, sink),
            Some(mut divided) => {
                let result = self.part(&mut divided, datagram, sink);
                self.divided = Some(divided);
                result
            }
        };
        self.counters.note(datagram.len(), result)
    }

    /// Discards the BBFrame of which datagrams are missing. Fragments of PDUs have numbers and a CRC-32.
    pub(super) fn resynchronize(&mut self) {
        if let Some(divided) = &mut self.divided {
            self.counters.gse.incomplete += u64::from(!divided.octets.is_empty());
            divided.octets.clear();
        }
    }

    /// Processes a datagram with a BBFrame, or with a part of one.
    fn part(
        &mut self,
        divided: &mut DividedFrame,
        datagram: &[u8],
        sink: UnitSink<'_>,
    ) -> Result<(), UnpackError> {
        // A group returns the BBFrames of this site between the datagrams of another one.
        if BbHeader::read(datagram).is_ok_and(|header| self.is_own(header)) {
            return Ok(());
        }
        if !divided.octets.is_empty() && divided.begins_again(datagram) {
            self.counters.gse.incomplete += 1;
            divided.octets.clear();
        }
        if divided.octets.is_empty() {
            let header = BbHeader::read(datagram).map_err(UnpackError::BbHeader)?;
            divided.announced = BbHeader::OCTETS + header.data_field();
            if datagram.len() >= divided.announced {
                return self.frame(datagram, sink);
            }
            divided.octets.extend_from_slice(datagram);
            return Ok(());
        }
        let left = divided.announced - divided.octets.len();
        let (part, padding) = datagram.split_at_checked(left).unwrap_or((datagram, &[]));
        // Octets behind the data field are padding of the BBFrame. EN 302 307-1, section 5.2.1.
        if padding.iter().any(|octet| *octet != 0) {
            divided.octets.clear();
            return Err(UnpackError::DataField { announced: left, left: datagram.len() });
        }
        divided.octets.extend_from_slice(part);
        if divided.octets.len() < divided.announced {
            return Ok(());
        }
        let result = self.frame(&divided.octets, sink);
        divided.octets.clear();
        result
    }

    /// True for a BBFrame of this site.
    fn is_own(&self, header: BbHeader) -> bool {
        header.isi.is_some() && header.isi == self.own_site.map(SiteId::number)
    }

    fn frame(&mut self, frame: &[u8], sink: UnitSink<'_>) -> Result<(), UnpackError> {
        let header = BbHeader::read(frame).map_err(UnpackError::BbHeader)?;
        let (announced, left) = (header.data_field(), frame.len() - BbHeader::OCTETS);
        let data_field = frame
            .get(BbHeader::OCTETS..BbHeader::OCTETS + announced)
            .ok_or(UnpackError::DataField { announced, left })?;
        if self.is_own(header) {
            return Ok(());
        }
        let Some((from, fragments)) = stream(&mut self.streams, header.isi)? else { return Ok(()) };
        let mut packets = fragments.receive(data_field);
        while let Some(pdu) = packets.next_pdu() {
            let to = match pdu.label {
                Label::Six(npa) => super::to(Some(npa), self.own),
                Label::Three(_) | Label::Broadcast => None,
            };
            let Ok(chain) = pdu.chain() else {
                self.counters.unknown += 1;
                continue;
            };
            let whose = Whose { from: *from, to, largest_unit: self.largest_unit };
            let mut deliver = |content| whose.deliver(&mut self.counters, unit(content), sink);
            match chain.content {
                SnduContent::PduConcat(concat) => {
                    concat.contents().for_each(|chain| deliver(chain.ok().map(|chain| chain.content)));
                }
                content => deliver(Some(content)),
            }
        }
        Ok(())
    }
}

/// Returns the reassembly for the site that sent a BBFrame. Peers are not distinguished by it.
fn stream(
    streams: &mut [FragmentStream],
    isi: Option<u8>,
) -> Result<Option<&mut FragmentStream>, UnpackError> {
    match (isi, streams) {
        (_, []) => Ok(None),
        (_, [stream @ (None, _)]) | (None, [stream]) => Ok(Some(stream)),
        (None, _) => Err(UnpackError::SingleStream),
        (Some(isi), streams) => {
            let found = streams.iter_mut().find(|(site, _)| site.map(SiteId::number) == Some(isi));
            found.map(Some).ok_or(UnpackError::Stream(isi))
        }
    }
}

/// Returns the unit in a content, if it is one.
fn unit(content: Option<SnduContent<'_>>) -> Option<(Protocol, &[u8])> {
    match content? {
        SnduContent::Pdu(ether_type, pdu) => protocol(ether_type).map(|protocol| (protocol, pdu)),
        SnduContent::Bridged(frame) => Some((Protocol::Bridged, frame.octets())),
        SnduContent::TsConcat(_) | SnduContent::PduConcat(_) | SnduContent::Test(_) => None,
    }
}

impl GseCounters {
    /// Number of losses on the carrier that GSE detects.
    pub const fn lost(&self) -> u64 {
        self.header_errors + self.incomplete + self.crc_errors
    }
}
