//! What a site tells of itself: counters that its parts keep, and the [`Status`] that is made of them.
//!
//! This module knows names and units of what is counted, how it reads in a [terminal](text), and the [socket] that
//! hands it out as JSON. It refuses to know why something was counted. Nothing in it is secret: no key, no nonce.
//!
//! *Sent* is from the interface to the carrier, *received* is the other way.

mod counters;
mod latency;
mod reason;
pub mod socket;
pub mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use counters::{Bill, Billing, Counters, Feedback, FeedbackTypes, PathCounters, PeerCounters, Way};
pub use latency::{Bin, Histogram, Latency};
pub use reason::{Drop, Failure, Reason, Tally};

/// The form of a [`Status`]. It gets another number when a field changes its meaning or goes; a field that is added
/// does not change it.
pub const SCHEMA: &str = "thinair.tunnel.status/1";

/// All that a site tells of itself. Counts begin when the daemon does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// What the site is called; of a mesh, its number.
    pub site: Option<String>,
    /// Since the daemon began.
    pub uptime_seconds: f64,
    /// Time of processors that the daemon has taken, in the kernel too.
    pub cpu_seconds: f64,
    /// The interface.
    pub inside: InsideStatus,
    /// What carries it.
    pub carrier: CarrierStatus,
    /// How datagrams are protected, in words. Never a key, nor what comes from one.
    pub security: String,
    /// Of all peers, and of datagrams that are from none of them.
    pub totals: Totals,
    /// The others: each with a channel of its own. What a mesh sends is at the entry of its group.
    pub peers: Vec<PeerStatus>,
    /// What went no further, by reason.
    pub drops: Tally<Drop>,
    /// How long packets were in the daemon.
    pub latency: LatencyStatus,
    /// What a bill would say.
    pub billing: Billing,
    /// Hosts whose TCP segments have a size that is controlled.
    #[serde(default)]
    pub segments: Vec<SegmentStatus>,
    /// Counters of parts, by part and by name: `packaging`, `seal`, `line`.
    #[serde(default)]
    pub parts: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The interface of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideStatus {
    /// Its name.
    pub name: String,
    /// Whether it carries Ethernet frames.
    pub bridged: bool,
    /// Octets of its longest IP packet.
    pub mtu: u32,
    /// Its addresses, with the bits of the network: `10.0.0.1/24`.
    pub addresses: Vec<String>,
    /// Whether it is there: an interface that was taken away is waited for.
    pub up: bool,
}

/// What carries datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierStatus {
    /// Like a URL: `ule+udp://192.0.2.1:4754`.
    pub url: String,
    /// Octets of the longest IP packet, frame or TS Packet that carries something.
    pub mtu: u32,
    /// Octets that are added to a compressed packet that travels alone: IP, UDP, seal, packaging, frame.
    pub overhead: u32,
    /// Octets of the smallest path MTU of a peer. Nothing: none is searched for.
    #[serde(default)]
    pub path_mtu: Option<u32>,
    /// Octets of the receive buffer of the socket. Nothing: there is no socket.
    #[serde(default)]
    pub receive_buffer_octets: Option<u64>,
    /// Octets of the send buffer of the socket.
    #[serde(default)]
    pub send_buffer_octets: Option<u64>,
    /// Datagrams that the system dropped as they came: no room, or a wrong checksum.
    #[serde(default)]
    pub receive_buffer_errors: Option<u64>,
}

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// From the interface to the carrier.
    pub sent: Way,
    /// From the carrier to the interface.
    pub received: Way,
    /// Octets on the carrier by octets inside, both ways. Below 1 is less. Nothing while there was no packet.
    pub ratio: Option<f64>,
    /// Octets of compressed packets by octets inside, both ways: what is saved before the carrier adds its own.
    pub compressed_ratio: Option<f64>,
}

/// How long packets were in the daemon, from the system call that brought them to the one that took them away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyStatus {
    /// From the interface to the carrier.
    pub sent: Latency,
    /// From the carrier to the interface.
    pub received: Latency,
}

/// TCP segments to a host, of connections that begin here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentStatus {
    /// The host, by its address.
    pub host: String,
    /// Octets of payload that a segment may have now.
    pub size: u16,
    /// Octets of the longest packet that the system was told; nothing before the first one.
    pub longest_packet: Option<u16>,
    /// Segments that were acknowledged.
    pub acknowledged: u64,
    /// Segments that were sent again.
    pub sent_again: u64,
}

/// CID space of each direction: `small` or `large`. RFC 5795, section 5.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CidsOf {
    /// Up to 16 contexts.
    Small,
    /// Up to MAX_CID and one.
    Large,
}

/// CID spaces of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CidsStatus {
    /// Of packets that are sent now.
    pub sent: CidsOf,
    /// Of the packet that was received last.
    pub received: CidsOf,
    /// How often that of packets that are sent has changed.
    pub sent_switches: u64,
    /// How often that of packets that are received has changed.
    pub received_switches: u64,
}

/// One of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// What it is called.
    pub name: String,
    /// What it is to us.
    pub kind: PeerKind,
    /// Where it is, if it is known: an address with a port.
    pub address: Option<String>,
    /// Age of the session, or of the epoch. Nothing: there is none, or none is needed.
    pub session_seconds: Option<f64>,
    /// Since its last datagram that was genuine. Nothing: there was none.
    pub heard_seconds: Option<f64>,
    /// What is wrong. Nothing: nothing that is known.
    #[serde(default)]
    pub trouble: Option<TroubleStatus>,
    /// CID space of each direction. Nothing: there is no channel of its own.
    #[serde(default)]
    pub cids: Option<CidsStatus>,
    /// What was counted.
    #[serde(flatten)]
    pub counters: PeerCounters,
    /// Contexts that are in use now.
    pub contexts: Vec<ContextCount>,
}

/// Reason why nothing goes to a peer, or comes from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TroubleStatus {
    /// Its name, which does not change: `no_answer`, `silent`, `other_key`, `unreachable`, `other_parameters`,
    /// `other_suite`, `closed`.
    pub reason: String,
    /// The same in words, with addresses and ids of keys.
    pub text: String,
    /// Since it began.
    pub since_seconds: f64,
    /// Where, if it is about an address.
    pub address: Option<String>,
}

/// What one of the others is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// The other end: both send to each other.
    Peer,
    /// Another site of a mesh: it is heard.
    Site,
    /// All sites of a mesh: they are sent to.
    Group,
}

/// Contexts that have the same profile, mode and state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextCount {
    /// Compressor or decompressor.
    pub side: Side,
    /// The profile, by its name: `rtp`, `coap`.
    pub profile: String,
    /// Mode: `U`, `O` or `R`.
    pub mode: String,
    /// State: `IR`, `FO`, `SO` of a compressor, `NC`, `SC`, `FC` of a decompressor.
    pub state: String,
    /// How many there are.
    pub contexts: u64,
}

/// The side of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Of what is sent.
    Compressor,
    /// Of what is received.
    Decompressor,
}

/// What does not change while a daemon runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the site is called; of a mesh, its number.
    pub site: Option<String>,
    /// The interface.
    pub inside: InsideStatus,
    /// What carries it.
    pub carrier: CarrierStatus,
    /// How datagrams are protected, in words.
    pub security: String,
}

impl Status {
    /// Of these counters. `uptime_seconds` and `cpu_seconds` as in the fields. Peers and parts are added by the caller.
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
            totals: Totals::new(counters.sent, counters.received),
            peers: Vec::new(),
            drops: counters.drops,
            latency: LatencyStatus {
                sent: counters.latency_sent.summary(),
                received: counters.latency_received.summary(),
            },
            billing: counters.billing,
            segments: Vec::new(),
            parts: BTreeMap::new(),
        }
    }
}

impl Totals {
    /// Both ways, and what follows of them.
    pub fn new(sent: Way, received: Way) -> Self {
        let inside = sent.octets + received.octets;
        let ratio = |octets: u64| (inside > 0).then(|| octets as f64 / inside as f64);
        Self {
            sent,
            received,
            ratio: ratio(sent.carrier_octets + received.carrier_octets),
            compressed_ratio: ratio(sent.compressed_octets + received.compressed_octets),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// A site that has seen a bit of everything.
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
            },
            carrier: CarrierStatus {
                url: "udp://192.0.2.1:4754".to_owned(),
                mtu: 1500,
                overhead: 48,
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
            cids: None,
            trouble: Some(TroubleStatus {
                reason: "unreachable".to_owned(),
                text: "nothing listens at 192.0.2.2:4754".to_owned(),
                since_seconds: 9.0,
                address: Some("192.0.2.2:4754".to_owned()),
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
        assert_eq!(Totals::new(Way::default(), Way::default()).ratio, None);
    }

    #[test]
    fn fields_that_a_later_version_adds_are_no_error() {
        let mut json = serde_json::to_value(specimen()).unwrap();
        json["later"] = 1.into();
        json["drops"]["of_a_later_reason"] = 5.into();
        assert_eq!(serde_json::from_value::<Status>(json).unwrap(), specimen());
    }
}
