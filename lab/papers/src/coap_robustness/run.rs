//! One flow over one link: compressor, impairments, decompressor, and comparison of the output.

use std::iter::Sum;

use thinair_link::{Impairments, Link, LinkOutcome, Random, ReorderBuffer};
use thinair_rohc::FormatPolicy;
use thinair_rohc::{Endpoint, Instant, Mode, ProfileId};

use super::expected::{self, FormatProperties};
use crate::pair::PairSettings;
use crate::paper::PaperError;
use crate::traffic::{CoapFlow, TrafficKind, TrafficPacket, TrafficVersion};

/// Milliseconds between two packets.
const PACE: u64 = 10;
/// Maximum size of a packet, compressed or not, in octets.
const ROOM: usize = 512;

/// Formats that a compressor may use, and the handling of the checksum.
pub(super) struct CompressorPolicy {
    format: FormatPolicy,
    is_carried: bool,
    /// Format in steady state in U-mode; `None` for pt_0, which has no repair, so that one error causes many.
    pub(super) steady: Option<FormatProperties>,
    /// Number of bits of the check in steady state in U-mode.
    pub(super) check_bits: u32,
}

impl CompressorPolicy {
    pub(super) fn of(name: &str) -> Self {
        let (format, is_carried) = match name {
            "auto-carried" => (FormatPolicy::Auto, true),
            "auto-elided" => (FormatPolicy::Auto, false),
            "pt0" => (FormatPolicy::Pt0, false),
            "pt1" => (FormatPolicy::Pt1, false),
            _ => (FormatPolicy::Pt0c, true),
        };
        let (steady, check_bits) = match (format, is_carried) {
            (FormatPolicy::Pt0, _) => (None, 3),
            (_, true) => (Some(expected::PT_0C), 16),
            (_, false) => (Some(expected::PT_1), 8),
        };
        Self { format, is_carried, steady, check_bits }
    }

    fn settings(&self, mode: Mode, seed: u64) -> Result<PairSettings, PaperError> {
        let settings =
            PairSettings { mode, ..PairSettings::new(Some(ProfileId::Coap), seed)? }.format(self.format);
        Ok(if self.is_carried { settings } else { settings.elided() })
    }
}

/// Flow through a link with one seed.
pub(super) struct FlowJob<'j> {
    pub(super) kind: TrafficKind,
    pub(super) version: TrafficVersion,
    pub(super) policy: &'j str,
    pub(super) mode: Mode,
    pub(super) impairments: Impairments<'static>,
    pub(super) packets: u64,
    /// Number of packets at the start that are not impaired.
    pub(super) spared: u64,
    pub(super) seed: u64,
}

/// Outcomes of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketOutcomes {
    pub(super) sent: u64,
    /// Octets sent.
    pub(super) octets: u64,
    /// Octets of feedback.
    pub(super) feedback: u64,
    /// Packets that reached the decompressor, including copies.
    pub(super) arrived: u64,
    /// Packets that arrived altered, which `arrived` includes.
    pub(super) damaged: u64,
    /// Packets delivered unaltered.
    pub(super) exact: u64,
    /// Packets delivered with another header.
    pub(super) wrong: u64,
    /// Packets delivered with the right header and another payload.
    pub(super) payload: u64,
    /// Packets that arrived unaltered and were not delivered.
    pub(super) dropped: u64,
    /// Packets that arrived damaged and were not delivered.
    pub(super) refused: u64,
}

impl PacketOutcomes {
    /// Share of arrived packets that compression dropped, in percent.
    pub(super) fn dropped_percent(&self) -> f64 {
        100.0 * ratio(self.dropped, self.arrived)
    }

    /// Mean size of a sent packet, in octets.
    pub(super) fn mean_octets(&self) -> f64 {
        ratio(self.octets, self.sent)
    }

    /// Wrong deliveries per million sent packets.
    pub(super) fn wrong_per_million(&self) -> f64 {
        1e6 * ratio(self.wrong, self.sent)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Sum for PacketOutcomes {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, count| Self {
            sent: sum.sent + count.sent,
            octets: sum.octets + count.octets,
            feedback: sum.feedback + count.feedback,
            arrived: sum.arrived + count.arrived,
            damaged: sum.damaged + count.damaged,
            exact: sum.exact + count.exact,
            wrong: sum.wrong + count.wrong,
            payload: sum.payload + count.payload,
            dropped: sum.dropped + count.dropped,
            refused: sum.refused + count.refused,
        })
    }
}

/// Packet in flight, and its original.
#[derive(Clone, Debug)]
struct PacketInFlight {
    original: TrafficPacket,
    sent: [u8; ROOM],
    len: usize,
    is_damaged: bool,
}

pub(super) fn simulate(job: &FlowJob<'_>) -> Result<PacketOutcomes, PaperError> {
    // Flow and links have separate random sequences, so that all policies have the same losses.
    let mut random = Random::new(job.seed);
    let mut flow = CoapFlow::new(job.kind, job.version, random.next_u64());
    let impairments = job.impairments;
    let mut link = Link::new(impairments, random.next_u64());
    let back = Impairments { loss: impairments.loss, ..Impairments::default() };
    let mut back = Link::new(back, random.next_u64());
    let settings = CompressorPolicy::of(job.policy).settings(job.mode, random.next_u64())?;
    let (mut near, mut far) = (settings.endpoint()?, settings.endpoint()?);

    let slots = impairments.slots();
    let mut line = ReorderBuffer::new(vec![None; slots]);
    // A packet is in flight for fewer places than there are slots, so its slot is free again in time.
    let empty =
        PacketInFlight { original: TrafficPacket::default(), sent: [0; ROOM], len: 0, is_damaged: false };
    let mut under_way = vec![empty; slots + 1];
    let mut place = 0;
    let mut count = PacketOutcomes::default();
    for number in 0..job.packets {
        let now = Instant::from_millis(number * PACE);
        let packet = &mut under_way[place];
        flow.next(&mut packet.original);
        packet.len = near.send(now, &packet.original.octets, &mut packet.sent)?.len;
        count.sent += 1;
        count.octets += packet.len as u64;
        if number < job.spared {
            packet.is_damaged = false;
            arrive(now, &mut far, packet, &mut count);
        } else if let LinkOutcome::At(arrival) = link.offer(&mut packet.sent[..packet.len]) {
            packet.is_damaged = arrival.flipped > 0;
            // The line has room for all packets that can be in flight.
            let _ = line.put(arrival, place);
            place = (place + 1) % under_way.len();
        }
        while let Some(arrived) = line.poll() {
            arrive(now, &mut far, &under_way[arrived], &mut count);
        }
        feed_back(now, &mut far, &mut near, &mut back, &mut count);
    }
    let now = Instant::from_millis(job.packets * PACE);
    while let Some(arrived) = line.flush() {
        arrive(now, &mut far, &under_way[arrived], &mut count);
    }
    Ok(count)
}

fn arrive(now: Instant, far: &mut Endpoint<'_>, packet: &PacketInFlight, count: &mut PacketOutcomes) {
    let mut out = [0; ROOM];
    count.arrived += 1;
    count.damaged += u64::from(packet.is_damaged);
    let delivered = far.receive(now, &packet.sent[..packet.len], &mut out).ok();
    let original = &packet.original;
    let counter = match delivered.map(|done| &out[..done.len]).filter(|octets| !octets.is_empty()) {
        None if packet.is_damaged => &mut count.refused,
        None => &mut count.dropped,
        Some(octets) if octets == original.octets => &mut count.exact,
        Some(octets) if has_header_of(octets, original) => &mut count.payload,
        Some(_) => &mut count.wrong,
    };
    *counter += 1;
}

/// True if only the payload differs.
fn has_header_of(octets: &[u8], original: &TrafficPacket) -> bool {
    octets.len() == original.octets.len()
        && octets.get(..original.headers) == original.octets.get(..original.headers)
}

fn feed_back(
    now: Instant,
    far: &mut Endpoint<'_>,
    near: &mut Endpoint<'_>,
    back: &mut Link<'_>,
    count: &mut PacketOutcomes,
) {
    let (mut feedback, mut nothing) = ([0; ROOM], [0; ROOM]);
    while let Some(len) = far.poll_feedback(&mut feedback) {
        count.feedback += len as u64;
        if let LinkOutcome::At(_) = back.offer(&mut feedback[..len]) {
            // No packet follows the feedback, so nothing is delivered.
            let _ = near.receive(now, &feedback[..len], &mut nothing);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coap_robustness::condition::impairments;
    use crate::form::Vars;

    fn count(link: &str, mode: Mode, packets: u64) -> PacketOutcomes {
        let link = toml::from_str(link).unwrap();
        let impairments = impairments(&Vars::default().with("link", &toml::Value::Table(link))).unwrap();
        let (kind, version, policy) = (TrafficKind::D, TrafficVersion::V6, "auto-carried");
        simulate(&FlowJob { kind, version, policy, mode, impairments, packets, spared: 0, seed: 2 }).unwrap()
    }

    const LINKS: [&str; 6] = [
        "rate=20\nburst=5",
        "late=8",
        "twice=8",
        "rate=10\nburst=5\nlate=8\ntwice=8",
        "ppm=1000\ncrc=true",
        "ppm=1000",
    ];

    #[test]
    fn every_packet_that_arrives_is_accounted_for() {
        for link in LINKS {
            let c = count(link, Mode::Optimistic, 400);
            assert_eq!(c.sent, 400);
            assert_eq!(c.arrived, c.exact + c.wrong + c.payload + c.dropped + c.refused, "{link}");
            assert_eq!(c.damaged == 0, link != "ppm=1000", "{link}");
        }
    }

    #[test]
    fn a_link_that_does_nothing_delivers_everything() {
        let c = count("rate=0\nburst=1", Mode::Unidirectional, 2_000);
        assert_eq!((c.arrived, c.exact), (2_000, 2_000));
    }

    #[test]
    fn copies_arrive_and_lost_packets_do_not() {
        let twice = count("twice=8", Mode::Unidirectional, 2_000);
        assert!((2_150..2_250).contains(&twice.arrived), "{}", twice.arrived);
        let lost = count("rate=10\nburst=1", Mode::Unidirectional, 2_000);
        assert!((1_750..1_850).contains(&lost.arrived), "{}", lost.arrived);
    }

    #[test]
    fn another_header_is_wrong_and_another_payload_is_not() {
        let original = TrafficPacket { octets: b"headpay".to_vec(), headers: 4 };
        assert!(has_header_of(b"headPAY", &original));
        assert!(!has_header_of(b"hEadpay", &original));
        assert!(!has_header_of(b"head", &original));
        assert!(!has_header_of(b"headpay?", &original));
    }
}
