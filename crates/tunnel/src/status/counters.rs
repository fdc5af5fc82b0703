//! Counters of the data path: plain numbers, incremented at each event.

use serde::{Deserialize, Serialize};
use thinair_session::path_mtu::PathCounters;

use super::latency::Histogram;
use super::reason::{Drop, Failure, Tally};

/// Counters of a site as a whole.
#[derive(Clone, Debug)]
pub struct Counters {
    /// From the interface to the carrier.
    pub sent: TrafficCounters,
    /// Sent traffic that may have arrived, as its peer was heard later. `None`: unknown, as nobody answers.
    pub arrived: Option<TrafficCounters>,
    /// From the carrier to the interface.
    pub received: TrafficCounters,
    /// Dropped packets by reason.
    pub drops: Tally<Drop>,
    /// Time in the daemon of packets sent to the carrier.
    pub latency_sent: Histogram,
    /// Time in the daemon of packets sent to the interface.
    pub latency_received: Histogram,
    /// Billed amounts.
    pub billing: Billing,
}

/// Counters of one peer, or of one site of a mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCounters {
    /// Packets to it.
    pub sent: TrafficCounters,
    /// Those before it was heard last, which may have arrived. Absent: unknown, as it does not answer.
    #[serde(default)]
    pub arrived: Option<TrafficCounters>,
    /// Packets identified as coming from it.
    pub received: TrafficCounters,
    /// Completed handshakes, or accepted epochs.
    pub sessions: u64,
    /// Number of its restarts, at which contexts were reset.
    pub restarts: u64,
    /// Feedback of ROHC.
    pub feedback: Feedback,
    /// Packets that were not decompressed, by reason.
    pub failures: Tally<Failure>,
    /// Search for the path MTU.
    #[serde(default)]
    pub path: PathCounters,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficCounters {
    /// IP packets or Ethernet frames at the interface: sent and delivered ones.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Their octets after header compression.
    pub compressed_octets: u64,
    /// Datagrams or frames on the carrier, including those without packets.
    pub datagrams: u64,
    /// Octets on the carrier including all overhead: IP and UDP headers, encryption, TS Packets, framing of
    /// the line.
    pub carrier_octets: u64,
}

/// ROHC feedback exchanged with one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Feedback of our decompressor.
    pub sent: FeedbackTypes,
    /// Feedback for our compressor.
    pub received: FeedbackTypes,
    /// Feedback that was not sent, because of a limit.
    pub limited: u64,
    /// Feedback received and rejected: malformed, with an unknown CID, or from a wrong sender.
    pub refused: u64,
}

/// Feedback elements by type (RFC 3095, section 5.7.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackTypes {
    /// ACK.
    pub acks: u64,
    /// NACK.
    pub nacks: u64,
    /// STATIC-NACK.
    pub static_nacks: u64,
    /// Octets of all elements.
    pub octets: u64,
}

/// Amounts billed in units per datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billing {
    /// Size of a unit in octets. 0: octets are billed.
    pub unit_octets: u32,
    /// Sent datagrams.
    pub sent: Bill,
    /// Received datagrams.
    pub received: Bill,
}

/// Billed amounts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// Datagrams.
    pub datagrams: u64,
    /// Units, each started unit included.
    pub units: u64,
}

impl Counters {
    /// Returns zero counters. `billing_unit` as in
    /// [`Seeing::billing_unit`](crate::site_config::Seeing::billing_unit).
    pub fn new(billing_unit: u32) -> Self {
        Self {
            sent: TrafficCounters::default(),
            arrived: None,
            received: TrafficCounters::default(),
            drops: Tally::new(),
            latency_sent: Histogram::new(),
            latency_received: Histogram::new(),
            billing: Billing { unit_octets: billing_unit, ..Billing::default() },
        }
    }

    /// Counts a sent datagram: `octets` of the carrier, with its headers.
    pub fn sent_datagram(&mut self, octets: usize) {
        self.sent.datagram(octets);
        self.billing.sent.datagram(self.billing.unit_octets, octets);
    }

    /// Takes back a [sent datagram](Self::sent_datagram) that did not leave, and the packets that end in it.
    pub(crate) fn refused_datagram(&mut self, octets: usize, packets: &TrafficCounters) {
        self.sent.take_back(packets);
        self.sent.take_datagram_back(octets);
        self.billing.sent.take_back(self.billing.unit_octets, octets);
    }

    /// Counts a received datagram from any sender: `octets` of the carrier, with its headers.
    pub fn received_datagram(&mut self, octets: usize) {
        self.received.datagram(octets);
        self.billing.received.datagram(self.billing.unit_octets, octets);
    }
}

impl TrafficCounters {
    /// Counts a packet of `octets` at the interface, and `compressed` octets after compression.
    pub fn packet(&mut self, octets: usize, compressed: usize) {
        self.packets += 1;
        self.octets += octets as u64;
        self.compressed_octets += compressed as u64;
    }

    /// Takes back a [`packet`](Self::packet) that was counted too early.
    pub fn take_packet_back(&mut self, octets: usize, compressed: usize) {
        let mut packet = Self::default();
        packet.packet(octets, compressed);
        self.take_back(&packet);
    }

    /// Takes back other counters.
    pub(crate) fn take_back(&mut self, other: &Self) {
        *self = self.since(other);
    }

    /// Takes back a [`datagram`](Self::datagram) that did not leave.
    pub(crate) fn take_datagram_back(&mut self, octets: usize) {
        let mut datagram = Self::default();
        datagram.datagram(octets);
        self.take_back(&datagram);
    }

    /// Adds other counters.
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.octets += other.octets;
        self.compressed_octets += other.compressed_octets;
        self.datagrams += other.datagrams;
        self.carrier_octets += other.carrier_octets;
    }

    /// Returns the difference to earlier counters.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            octets: self.octets.saturating_sub(before.octets),
            compressed_octets: self.compressed_octets.saturating_sub(before.compressed_octets),
            datagrams: self.datagrams.saturating_sub(before.datagrams),
            carrier_octets: self.carrier_octets.saturating_sub(before.carrier_octets),
        }
    }

    /// Counts a datagram of `octets` on the carrier.
    pub fn datagram(&mut self, octets: usize) {
        self.datagrams += 1;
        self.carrier_octets += octets as u64;
    }
}

impl Bill {
    fn datagram(&mut self, unit: u32, octets: usize) {
        self.datagrams += 1;
        self.units += (octets as u64).div_ceil(u64::from(unit.max(1)));
    }

    fn take_back(&mut self, unit: u32, octets: usize) {
        self.datagrams = self.datagrams.saturating_sub(1);
        self.units = self.units.saturating_sub((octets as u64).div_ceil(u64::from(unit.max(1))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_begun_is_billed() {
        let mut counters = Counters::new(64);
        for octets in [1, 64, 65, 0] {
            counters.sent_datagram(octets);
        }
        assert_eq!(counters.billing.sent, Bill { datagrams: 4, units: 4 });
        assert_eq!(counters.sent.carrier_octets, 130);
    }

    #[test]
    fn without_a_unit_octets_are_billed() {
        let mut counters = Counters::new(0);
        counters.received_datagram(130);
        assert_eq!(counters.billing.received, Bill { datagrams: 1, units: 130 });
    }
}
