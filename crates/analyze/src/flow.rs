//! Flows of a run, in order of appearance: a few octets of memory for each, and all sums for those that are
//! listed.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use thinair_rohc::Instant;
use thinair_rohc::Ports;

use crate::course::Course;
use crate::gaps::Gap;
use crate::packet::{FlowKey, ParsedPacket, RtpTrace};
use crate::packing::{Packing, WAITS};
use crate::scheme::Trip;
use crate::settings::{Billing, Settings};
use crate::sides::{CaptureSide, Sides};
use crate::survey::{FlowPlace, Listed};
use crate::tally::{SchemeSums, TrafficSums};

/// Number of packets up to which a flow may grow by compression: a context pays off after its first packets.
const SHORT: u64 = 20;

/// A flow and its octets so far.
#[derive(Debug)]
pub(crate) struct FlowSums {
    pub(crate) key: FlowKey,
    pub(crate) side: CaptureSide,
    /// Number in order of appearance, from 0.
    pub(crate) number: usize,
    /// Index of its input.
    pub(crate) input: usize,
    pub(crate) partition: u32,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Octets by scheme, in the order of schemes; empty if the run does not carry its partition.
    pub(crate) sums: Box<[SchemeSum]>,
    rtp: Option<Box<RtpStreams>>,
    /// All sums, if the flow is listed.
    pub(crate) detail: Option<Box<Detail>>,
    /// Its payloads in fewer packets, if the link has a price list.
    packing: Option<Box<Packing>>,
}

/// Octets of a flow in one scheme.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SchemeSum {
    pub(crate) bytes: u64,
    pub(crate) feedback_bytes: u64,
    /// Octets by which the flow may exceed its uncompressed size: CIDs, and 3 octets of each IR packet.
    allowed: u64,
    /// Packets since the one that established the context.
    pub(crate) gap: Gap,
}

/// All sums of a flow.
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) traffic: TrafficSums,
    /// In the order of schemes.
    pub(crate) carried: Vec<SchemeSums>,
    pub(crate) course: Course,
}

impl FlowSums {
    /// Octets of the application header of a packet of this flow: CoAP, or RTP from the second packet of a
    /// stream on.
    pub(crate) fn application_header(&mut self, packet: &ParsedPacket<'_>, coap: &Ports) -> usize {
        if let Some(len) = packet.coap(coap) {
            return len;
        }
        match packet.rtp() {
            Some((trace, len)) if self.rtp.get_or_insert_default().go_on(trace) => len,
            _ => 0,
        }
    }

    /// SSRCs of its RTP streams, in order of appearance.
    pub(crate) fn ssrcs(&self) -> &[u32] {
        self.rtp.as_ref().map_or(&[], |rtp| &rtp.ssrcs)
    }

    /// Adds a packet, before its trips.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        packet: &ParsedPacket<'_>,
        application: usize,
        settings: &Settings,
    ) {
        let is_first = self.packets == 0;
        if let Some(billing) = settings.packed_billing() {
            self.packing.get_or_insert_default().add(billing, self.side, now, packet);
        }
        self.packets += 1;
        self.bytes += packet.octets.len() as u64;
        if let Some(detail) = &mut self.detail {
            detail.traffic.add(self.side, packet, application, is_first, settings);
        }
    }

    /// Billed units if payloads wait for others, for each of [`WAITS`].
    pub(crate) fn packed_units(&self, billing: &Billing) -> [u64; WAITS.len()] {
        self.packing.as_ref().map_or([0; WAITS.len()], |packing| packing.units(billing, self.side))
    }

    /// True if the flow has more than [`SHORT`] packets, and a scheme sent more octets than without
    /// compression, apart from CIDs and IR packets.
    pub(crate) fn is_larger(&self, sum: &SchemeSum) -> bool {
        self.packets > SHORT && sum.bytes + sum.feedback_bytes > self.bytes + sum.allowed
    }
}

impl SchemeSum {
    /// Adds the trip of a packet. If it ends a gap between two packets that establish the context, returns
    /// the length of the gap in packets and nanoseconds.
    pub(crate) fn add(&mut self, now: Instant, trip: &Trip) -> Option<(u64, u64)> {
        self.bytes += trip.len as u64;
        self.feedback_bytes += trip.feedback.bytes;
        self.allowed += trip.compressed.as_ref().map_or(0, |compressed| compressed.allowance() as u64);
        self.gap.add(now, trip.compressed.as_ref())
    }
}

/// RTP streams of a flow, each with its own SSRC.
#[derive(Debug, Default)]
struct RtpStreams {
    /// The last packet of each stream and the number of consecutive packets before it; newest last.
    latest: Vec<(RtpTrace, u8)>,
    ssrcs: Vec<u32>,
}

impl RtpStreams {
    /// Maximum number of streams followed at a time in a flow.
    const FOLLOWED: usize = 4;

    /// Maximum number of SSRCs kept.
    const KEPT: usize = 8;

    /// Consecutive packets required before an SSRC is reported.
    const PROOFS: u8 = 3;

    /// True if a packet continues a stream.
    fn go_on(&mut self, trace: RtpTrace) -> bool {
        let at = self.latest.iter().position(|(before, _)| before.ssrc == trace.ssrc);
        let before = at.map(|at| self.latest.remove(at));
        if self.latest.len() == Self::FOLLOWED {
            self.latest.remove(0);
        }
        let proofs = match before {
            Some((before, proofs)) if trace.follows(before) => proofs.saturating_add(1),
            _ => 0,
        };
        self.latest.push((trace, proofs));
        let is_new = proofs == Self::PROOFS && !self.ssrcs.contains(&trace.ssrc);
        if is_new && self.ssrcs.len() < Self::KEPT {
            self.ssrcs.push(trace.ssrc);
        }
        proofs > 0
    }
}

/// Flows of one link by key, each with a value, in order of appearance.
#[derive(Debug)]
pub(crate) struct Directory<T> {
    index: HashMap<FlowKey, usize, RandomState>,
    list: Vec<T>,
    sides: Sides,
}

impl<T> Default for Directory<T> {
    fn default() -> Self {
        Self { index: HashMap::default(), list: Vec::new(), sides: Sides::default() }
    }
}

impl<T> Directory<T> {
    /// Returns the value for a packet's flow; for a new flow, the result of `value` for its side.
    pub(crate) fn of(&mut self, packet: &ParsedPacket<'_>, value: impl FnOnce(CaptureSide) -> T) -> &mut T {
        let at = self.place(packet, |sides| value(sides.of_flow(packet.key.source, packet.key.destination)));
        &mut self.list[at]
    }

    /// Returns the index of a packet's flow in the list; for a new flow, appends the result of `value`, which finds its
    /// side.
    fn place(&mut self, packet: &ParsedPacket<'_>, value: impl FnOnce(&mut Sides) -> T) -> usize {
        *self.index.entry(packet.key).or_insert_with(|| {
            self.list.push(value(&mut self.sides));
            self.list.len() - 1
        })
    }

    /// The values.
    pub(crate) fn list(&self) -> &[T] {
        &self.list
    }

    /// Starts the next link, whose packets begin new flows.
    fn forget(&mut self) {
        (self.index, self.sides) = (HashMap::default(), Sides::default());
    }
}

/// All flows of a run; of surveyed inputs, those that the run carries.
#[derive(Debug)]
pub(crate) struct FlowTable {
    directory: Directory<FlowSums>,
    listed: Listed,
    input: usize,
    /// Number of the first flow of the input.
    first: usize,
    /// Numbers and sides of the next flows that the run carries, if the input was surveyed.
    next: std::vec::IntoIter<(usize, CaptureSide)>,
}

impl FlowTable {
    /// Returns an empty list of flows.
    pub(crate) fn new(listed: Listed) -> Self {
        let next = Vec::new().into_iter();
        Self { directory: Directory::default(), listed, input: 0, first: 0, next }
    }

    /// Starts the next input, with the places of its flows if it was surveyed.
    pub(crate) fn start(&mut self, input: usize, places: &[FlowPlace], settings: &Settings) {
        self.directory.forget();
        self.input = input;
        let carried = settings.carried();
        let next = (self.first..).zip(places).filter(|(_, place)| carried.contains(&place.partition()));
        self.next = next.map(|(number, place)| (number, place.side())).collect::<Vec<_>>().into_iter();
        self.first += places.len();
    }

    /// Returns the index of the flow of a packet in a partition.
    pub(crate) fn place(&mut self, packet: &ParsedPacket<'_>, partition: u32, settings: &Settings) -> usize {
        let (count, listed, input, next) =
            (self.directory.list.len(), &self.listed, self.input, &mut self.next);
        self.directory.place(packet, |sides| {
            let place = next.next();
            let (number, side) =
                place.unwrap_or_else(|| (count, sides.of_flow(packet.key.source, packet.key.destination)));
            let is_carried = settings.carried().contains(&partition);
            let schemes = if is_carried { settings.schemes.len() } else { 0 };
            FlowSums {
                key: packet.key,
                side,
                number,
                input,
                partition,
                packets: 0,
                bytes: 0,
                sums: vec![SchemeSum::default(); schemes].into(),
                rtp: None,
                packing: None,
                detail: (is_carried && listed.has(number)).then(|| {
                    Box::new(Detail {
                        traffic: TrafficSums::default(),
                        carried: vec![SchemeSums::default(); schemes],
                        course: Course::new(schemes, listed.is_drawn(number)),
                    })
                }),
            }
        })
    }

    /// The flow with that index.
    pub(crate) fn flow(&mut self, place: usize) -> &mut FlowSums {
        &mut self.directory.list[place]
    }

    /// The flows, in order of appearance.
    pub(crate) fn list(&self) -> &[FlowSums] {
        self.directory.list()
    }

    pub(crate) fn into_list(self) -> Vec<FlowSums> {
        self.directory.list
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_rohc::{Channel, CidSpace, Format, ProfileId, ProfileSet};

    use super::*;
    use crate::scheme::{CompressedPacket, Delivery, FeedbackSums, FormatLabel};
    use crate::settings::SchemeSpec;

    fn trip(format: Format, len: usize, feedback: u64) -> Trip {
        let compressed = CompressedPacket {
            format: FormatLabel::Format(format),
            profile: Some(ProfileId::Udp),
            header_in: 28,
            header_out: len,
            len,
            cid_len: 1,
            refresh: false,
        };
        Trip {
            compressed: Some(compressed),
            not_applicable: false,
            len,
            feedback: FeedbackSums { packets: 1, bytes: feedback, units: 0 },
            delivery: Delivery::Exact,
        }
    }

    /// Packets of 28 octets, the first one as an IR packet, each with a CID of one octet.
    fn is_larger(packets: usize, len: usize, feedback: u64) -> bool {
        let octets =
            *b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\x63\0\x01\x0a\x63\0\x02\xe0\x01\x16\x33\0\x08\0\0";
        let packet = ParsedPacket::parse(&octets).unwrap();
        let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
        let settings = Settings::new(channel, &[SchemeSpec::Schc]);
        let mut flows = FlowTable::new(Listed::default());
        for at in 0..packets {
            let (format, len) = if at == 0 { (Format::Ir, 28 + 1 + 3) } else { (Format::Normal, len) };
            let place = flows.place(&packet, 0, &settings);
            let flow = flows.flow(place);
            (flow.packets, flow.bytes) = (flow.packets + 1, flow.bytes + 28);
            flow.sums[0].add(Instant::ZERO, &trip(format, len, if at == 1 { feedback } else { 0 }));
        }
        let flow = &flows.list()[0];
        flow.is_larger(&flow.sums[0])
    }

    #[test]
    fn a_flow_may_be_larger_by_its_cids_and_ir_packets() {
        assert!(!is_larger(21, 29, 0));
        assert!(is_larger(21, 29, 1), "feedback counts");
        assert!(is_larger(21, 30, 0));
        assert!(!is_larger(20, 30, 0), "a short flow");
    }
}
