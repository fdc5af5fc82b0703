//! Status of a site: counters of its parts, and the [`Status`] that summarizes them.
//!
//! This module defines names and units of counters, their presentation in a [terminal](text), and the
//! [socket] that provides the status as JSON. It contains no secrets: no key, no nonce.
//!
//! *Sent* means from the interface to the carrier, *received* the opposite direction.

mod counters;
mod history;
mod latency;
mod reason;
pub mod socket;
pub mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::idle::IdleBudget;

pub use counters::{Bill, Billing, Counters, Feedback, FeedbackTypes, PeerCounters, TrafficCounters};
pub use history::{History, Sample};
pub use latency::{Bin, Histogram, Latency};
pub use reason::{Drop, Failure, Reason, Tally};
pub use thinair_session::path_mtu::PathCounters;

/// Schema of a [`Status`]. Its number increases when a field is removed or changes its meaning, not when a
/// field is added.
pub const SCHEMA: &str = "thinair.tunnel.status/1";

/// Status of a site. Counters begin at the start of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the site; in a mesh, its number.
    pub site: Option<String>,
    /// Time since the start of the daemon.
    pub uptime_seconds: f64,
    /// CPU time of the daemon, including the kernel.
    pub cpu_seconds: f64,
    /// The interface.
    pub inside: InsideStatus,
    /// Carrier.
    pub carrier: CarrierStatus,
    /// Description of the protection, without keys and data derived from keys.
    pub security: String,
    /// Sums of all peers, and of datagrams from none of them.
    pub totals: TrafficTotals,
    /// Numbers of peers, of which `peers` lists some only if there are many. Absent: a mesh, or an earlier version.
    #[serde(default)]
    pub peer_counts: Option<PeerCounts>,
    /// Other ends, each with its own channel. Packets sent to a mesh are counted at the entry of its group. Of many peers those with
    /// most octets on the carrier, and those in trouble for longest.
    pub peers: Vec<PeerStatus>,
    /// Dropped packets by reason.
    pub drops: Tally<Drop>,
    /// Time that packets spent in the daemon.
    pub latency: LatencyStatus,
    /// Billed amounts.
    pub billing: Billing,
    /// Hosts with a controlled size of TCP segments.
    #[serde(default)]
    pub segments: Vec<SegmentStatus>,
    /// The last minutes, the oldest first. Bounded.
    #[serde(default)]
    pub history: Vec<Sample>,
    /// Counters of parts, by part and by name: `packaging`, `seal`, `line`.
    #[serde(default)]
    pub parts: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The interface of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideStatus {
    /// Its name.
    pub name: String,
    /// True if it carries Ethernet frames.
    pub bridged: bool,
    /// MTU in octets.
    pub mtu: u32,
    /// Addresses with prefix lengths: `10.0.0.1/24`.
    pub addresses: Vec<String>,
    /// False if the interface was removed; the daemon waits for it.
    pub up: bool,
    /// Offloads in use: `tso` for segments of TCP, `uso` for datagrams of UDP.
    #[serde(default)]
    pub offloads: Vec<String>,
}

/// Carrier of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarrierStatus {
    /// Description like a URL: `ule+udp://192.0.2.1:4754`.
    pub url: String,
    /// Maximum size of an IP packet, frame or TS Packet of the carrier, in octets.
    pub mtu: u32,
    /// Overhead of a compressed packet that is alone in its datagram, in octets: IP, UDP, encryption,
    /// packaging, frame.
    pub overhead: u32,
    /// Smallest path MTU of a peer, in octets. Absent: no search.
    #[serde(default)]
    pub path_mtu: Option<u32>,
    /// Receive buffer of the socket in octets. Absent: no socket.
    #[serde(default)]
    pub receive_buffer_octets: Option<u64>,
    /// Send buffer of the socket in octets.
    #[serde(default)]
    pub send_buffer_octets: Option<u64>,
    /// Received datagrams that the system dropped: buffer full, or wrong checksum.
    #[serde(default)]
    pub receive_buffer_errors: Option<u64>,
    /// Offloads in use: `udp_segment` for sent datagrams, `udp_gro` for received ones.
    #[serde(default)]
    pub offloads: Vec<String>,
    /// Budget for idle octets. Absent: none.
    #[serde(default)]
    pub idle_budget: Option<IdleBudgetStatus>,
}

/// Budget for idle octets, and its price in reachability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleBudgetStatus {
    /// Octets a day.
    pub octets: u64,
    /// Interval of keepalives without the budget.
    pub wanted_keepalive_seconds: f64,
    /// Interval with it.
    pub keepalive_seconds: f64,
    /// Share of the time for which this end is reached behind a NAT that needs the wanted interval.
    pub reachable_share: f64,
}

impl IdleBudgetStatus {
    /// Returns the status of a budget.
    pub fn of(budget: &IdleBudget) -> Self {
        Self {
            octets: budget.octets,
            wanted_keepalive_seconds: budget.wanted.as_secs_f64(),
            keepalive_seconds: budget.keepalive.as_secs_f64(),
            reachable_share: budget.reachable(),
        }
    }
}

/// Sums of all peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficTotals {
    /// From the interface to the carrier: packets whose datagram has left.
    pub sent: TrafficCounters,
    /// Sent traffic before its peer was heard last, which may have arrived. Absent: unknown, as nobody answers.
    #[serde(default)]
    pub arrived: Option<TrafficCounters>,
    /// From the carrier to the interface.
    pub received: TrafficCounters,
    /// Octets on the carrier by octets inside, in both directions; below 1 is a saving. Sent traffic counts if
    /// it may have arrived, or if that is unknown. Absent without such packets.
    pub ratio: Option<f64>,
    /// Octets of compressed packets by octets inside, in both directions: the saving before the overhead of
    /// the carrier.
    pub compressed_ratio: Option<f64>,
}

/// Time that packets spent in the daemon, from the system call that read them to the one that wrote them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyStatus {
    /// From the interface to the carrier.
    pub sent: Latency,
    /// From the carrier to the interface.
    pub received: Latency,
}

/// State of TCP segments to a host, for connections that begin here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentStatus {
    /// Address of the host.
    pub host: String,
    /// Current maximum payload of a segment, in octets.
    pub size: u16,
    /// Maximum packet size that was set in the system, in octets; absent before the first one.
    pub longest_packet: Option<u16>,
    /// Acknowledged segments.
    pub acknowledged: u64,
    /// Retransmitted segments.
    pub sent_again: u64,
}

/// CID space of each direction: `small` or `large` (RFC 5795, section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CidsOf {
    /// Up to 16 contexts.
    Small,
    /// Up to MAX_CID + 1 contexts.
    Large,
}

/// CID spaces of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CidsStatus {
    /// CID space of packets currently sent.
    pub sent: CidsOf,
    /// CID space of the packet received last.
    pub received: CidsOf,
    /// Number of changes for sent packets.
    pub sent_switches: u64,
    /// Number of changes for received packets.
    pub received_switches: u64,
}

/// Another end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Name for reports.
    pub name: String,
    /// Its role.
    pub kind: PeerKind,
    /// Address with port, if it is known.
    pub address: Option<String>,
    /// Age of the session or epoch. Absent: there is none, or none is needed.
    pub session_seconds: Option<f64>,
    /// Time since its last authentic datagram. Absent: there was none.
    pub heard_seconds: Option<f64>,
    /// Suite of the session. Absent: there is none.
    #[serde(default)]
    pub suite: Option<String>,
    /// Losses of the carrier on the way here. Absent: its datagrams have no counters.
    #[serde(default)]
    pub loss: Option<CarrierLoss>,
    /// Round trip of the carrier, measured by the last key exchange. Absent: not measured.
    #[serde(default)]
    pub round_trip_seconds: Option<f64>,
    /// Current problem. Absent: none is known.
    #[serde(default)]
    pub trouble: Option<TroubleStatus>,
    /// Dropped packets whose source is not allowed. Absent: there was none.
    #[serde(default)]
    pub source_not_allowed: Option<SourceNotAllowed>,
    /// CID space of each direction. Absent: it has no channel of its own, or none at present.
    #[serde(default)]
    pub cids: Option<CidsStatus>,
    /// Search for the timeout of the NAT before this end. Absent: keepalives have a fixed interval, or there are none.
    #[serde(default)]
    pub nat: Option<NatStatus>,
    /// Counters.
    #[serde(flatten)]
    pub counters: PeerCounters,
    /// Contexts in use.
    pub contexts: Vec<ContextCount>,
}

/// Search for the timeout of the NAT before this end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NatStatus {
    /// Time for which a mapping is kept at least. Absent: not known yet, or the peer does not answer probes.
    pub timeout_seconds: Option<f64>,
    /// Interval of keepalives.
    pub keepalive_seconds: f64,
    /// Address of this end at the peer. Absent: not known.
    pub address: Option<String>,
    /// Number of probes sent by this search, of which each has one answer.
    pub probes: u32,
}

/// Numbers of peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCounts {
    /// Configured ones.
    pub configured: u64,
    /// Those with a session.
    pub with_session: u64,
    /// Those with a channel, whose contexts are in memory.
    pub with_contexts: u64,
    /// Those in trouble.
    pub in_trouble: u64,
    /// Those that are listed.
    pub listed: u64,
}

/// Losses of the carrier, by the counters of encrypted datagrams: each counts its units, at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarrierLoss {
    /// Units that are missing.
    pub lost_units: u64,
    /// Units that have arrived.
    pub received_units: u64,
    /// Lost units by all. Absent: none was sent.
    pub share: Option<f64>,
}

impl CarrierLoss {
    /// Returns losses with their share.
    pub fn new(lost_units: u64, received_units: u64) -> Self {
        let all = lost_units.saturating_add(received_units);
        let share = (all > 0).then(|| lost_units as f64 / all as f64);
        Self { lost_units, received_units, share }
    }
}

/// Reason why no packets reach a peer, or arrive from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TroubleStatus {
    /// Stable name: `no_answer`, `silent`, `other_key`, `other_mode`, `unreachable`, `other_parameters`, `other_suite`,
    /// `closed`.
    pub reason: String,
    /// Description with addresses and ids of keys.
    pub text: String,
    /// Time since it began.
    pub since_seconds: f64,
    /// Address that it concerns, if any.
    pub address: Option<String>,
}

/// Packets that were dropped, as their peer or site may not send from their source address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceNotAllowed {
    /// Number of packets.
    pub packets: u64,
    /// Source address of the last one.
    pub address: String,
    /// Line of the section of the peer or site that allows it. Absent: the address belongs to another peer.
    pub line: Option<String>,
}

/// Role of another end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// The other end of a pair, in both directions.
    Peer,
    /// Another site of a mesh, from which packets are received.
    Site,
    /// All sites of a mesh, to which packets are sent.
    Group,
}

/// Number of contexts with equal profile, mode and state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextCount {
    /// Compressor or decompressor.
    pub side: Side,
    /// Name of the profile: `rtp`, `coap`.
    pub profile: String,
    /// Mode: `U`, `O` or `R`.
    pub mode: String,
    /// State: `IR`, `FO`, `SO` of a compressor, `NC`, `SC`, `FC` of a decompressor.
    pub state: String,
    /// Number of contexts.
    pub contexts: u64,
}

/// Side of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Side of sent packets.
    Compressor,
    /// Side of received packets.
    Decompressor,
}

/// Properties that do not change while a daemon runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// Name of the site; in a mesh, its number.
    pub site: Option<String>,
    /// The interface.
    pub inside: InsideStatus,
    /// Carrier.
    pub carrier: CarrierStatus,
    /// Description of the protection.
    pub security: String,
}

impl Status {
    /// Returns the status with these counters. `uptime_seconds` and `cpu_seconds` as in the fields. The
    /// caller adds peers and parts.
    pub fn new(identity: Identity, counters: &Counters, uptime_seconds: f64, cpu_seconds: f64) -> Self {
        let Identity { site, inside, carrier, security } = identity;
        Self {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            site,
            uptime_seconds,
            cpu_seconds,
            inside,
            carrier,
            security,
            totals: TrafficTotals::new(counters.sent, counters.arrived, counters.received),
            peer_counts: None,
            peers: Vec::new(),
            drops: counters.drops,
            latency: LatencyStatus {
                sent: counters.latency_sent.summary(),
                received: counters.latency_received.summary(),
            },
            billing: counters.billing,
            segments: Vec::new(),
            history: Vec::new(),
            parts: BTreeMap::new(),
        }
    }
}

impl TrafficTotals {
    /// Returns both directions, and the ratios that follow from them.
    pub fn new(sent: TrafficCounters, arrived: Option<TrafficCounters>, received: TrafficCounters) -> Self {
        let counted = arrived.unwrap_or(sent);
        let inside = counted.octets + received.octets;
        let ratio = |octets: u64| (inside > 0).then(|| octets as f64 / inside as f64);
        Self {
            sent,
            arrived,
            received,
            ratio: ratio(counted.carrier_octets + received.carrier_octets),
            compressed_ratio: ratio(counted.compressed_octets + received.compressed_octets),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// Returns the status of a site with values in all fields.
    pub(crate) fn specimen() -> Status {
        let mut counters = Counters::new(64);
        for at in 0..1000 {
            counters.sent.packet(100, 40);
            counters.sent_datagram(80);
            counters.latency_sent.record(50_000 + 100 * at);
        }
        counters.received.packet(1000, 900);
        counters.received_datagram(940);
        counters.drops.count(Drop::Forged);
        let mut peer =
            PeerCounters { sent: counters.sent, received: counters.received, ..PeerCounters::default() };
        peer.feedback.received.acks = 7;
        peer.failures.count(Failure::Crc);
        let identity = Identity {
            site: None,
            inside: InsideStatus {
                name: "air0".to_owned(),
                bridged: false,
                mtu: 1400,
                addresses: vec!["10.0.0.1/24".to_owned()],
                up: true,
                offloads: vec!["tso".into(), "uso".into()],
            },
            carrier: CarrierStatus {
                url: "udp://192.0.2.1:4754".to_owned(),
                mtu: 1500,
                overhead: 48,
                offloads: vec!["udp_segment".into()],
                ..CarrierStatus::default()
            },
            security: "Noise NNpsk0, ChaCha20-Poly1305, tag of 16 octets".to_owned(),
        };
        let mut status = Status::new(identity, &counters, 3725.5, 1.25);
        status.peers.push(PeerStatus {
            name: "hill".to_owned(),
            kind: PeerKind::Peer,
            address: Some("192.0.2.2:4754".to_owned()),
            session_seconds: Some(65.0),
            heard_seconds: Some(0.2),
            suite: Some("aes-gcm".to_owned()),
            cids: None,
            nat: None,
            loss: Some(CarrierLoss::new(5, 195)),
            round_trip_seconds: Some(0.612),
            trouble: Some(TroubleStatus {
                reason: "unreachable".to_owned(),
                text: "nothing listens at 192.0.2.2:4754".to_owned(),
                since_seconds: 9.0,
                address: Some("192.0.2.2:4754".to_owned()),
            }),
            source_not_allowed: Some(SourceNotAllowed {
                packets: 3,
                address: "10.1.0.9".to_owned(),
                line: Some("allowed = [\"10.0.0.2/32\", \"10.1.0.9/32\"]".to_owned()),
            }),
            counters: peer,
            contexts: vec![ContextCount {
                side: Side::Compressor,
                profile: "udp".to_owned(),
                mode: "O".to_owned(),
                state: "SO".to_owned(),
                contexts: 3,
            }],
        });
        status.parts.insert("packaging".to_owned(), BTreeMap::from([("sndus".to_owned(), 9)]));
        status.history.push(Sample { uptime_seconds: 3720.5, packets: 990, ..Sample::default() });
        status.segments.push(SegmentStatus {
            host: "10.0.0.2".to_owned(),
            size: 278,
            longest_packet: Some(330),
            acknowledged: 1_200,
            sent_again: 33,
        });
        status
    }

    #[test]
    fn a_status_comes_back_from_its_json() {
        let status = specimen();
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
    }

    #[test]
    fn json_names_every_reason_and_gives_numbers() {
        let json = serde_json::to_value(specimen()).unwrap();
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["drops"]["forged"], 1);
        assert_eq!(json["drops"]["no_route"], 0);
        assert_eq!(json["peers"][0]["sent"]["packets"], 1000);
        assert_eq!(json["peers"][0]["failures"]["bad_crc"], 1);
        assert_eq!(json["peers"][0]["contexts"][0]["side"], "compressor");
        assert_eq!(json["billing"]["sent"]["units"], 2000);
    }

    #[test]
    fn ratios_are_those_of_both_ways_and_none_without_packets() {
        let totals = specimen().totals;
        assert_eq!(totals.ratio, Some((80_000.0 + 940.0) / 101_000.0));
        assert_eq!(totals.compressed_ratio, Some((40_000.0 + 900.0) / 101_000.0));
        assert_eq!(
            TrafficTotals::new(TrafficCounters::default(), None, TrafficCounters::default()).ratio,
            None
        );
    }

    #[test]
    fn fields_that_a_later_version_adds_are_no_error() {
        let mut json = serde_json::to_value(specimen()).unwrap();
        json["later"] = 1.into();
        json["drops"]["of_a_later_reason"] = 5.into();
        assert_eq!(serde_json::from_value::<Status>(json).unwrap(), specimen());
    }
}
