//! What is counted while packets go by: plain numbers, incremented where something happens.

use serde::{Deserialize, Serialize};

use super::latency::Histogram;
use super::reason::{Drop, Failure, Tally};

/// Counters of a site as a whole.
#[derive(Clone, Debug)]
pub struct Counters {
    /// From the interface to the carrier.
    pub sent: Way,
    /// From the carrier to the interface.
    pub received: Way,
    /// What went no further.
    pub drops: Tally<Drop>,
    /// How long packets were in the daemon on the way to the carrier.
    pub latency_sent: Histogram,
    /// The same on the way to the interface.
    pub latency_received: Histogram,
    /// What a bill would say.
    pub billing: Billing,
}

/// Counters of one peer, or of one site of a mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCounters {
    /// To it.
    pub sent: Way,
    /// From it, as far as it is known to be from it.
    pub received: Way,
    /// Handshakes that ended in a session, or epochs that were accepted.
    pub sessions: u64,
    /// How often it has started anew, so that contexts were given up.
    pub restarts: u64,
    /// Feedback of ROHC.
    pub feedback: Feedback,
    /// Packets that were not decompressed, by reason.
    pub failures: Tally<Failure>,
    /// Search for the path MTU.
    #[serde(default)]
    pub path: PathCounters,
}

/// Search for the path MTU towards one peer: [`PathMtu`](crate::path_mtu::PathMtu).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCounters {
    /// Octets of the longest IP packet that is sent to the peer now. Nothing: no search is possible with it.
    pub mtu: Option<u32>,
    /// Padded probes that were sent.
    pub probes: u64,
    /// Confirmations of probes, and of datagrams that asked for one.
    pub confirmations: u64,
    /// How often a size that had passed did not pass any more, without a report.
    pub black_holes: u64,
}

/// What went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// IP packets or Ethernet frames at the interface: those that were sent on, and those that were delivered.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Their octets as they are handed to the packaging: with headers compressed.
    pub compressed_octets: u64,
    /// Datagrams or frames on the carrier, those without a packet in them too.
    pub datagrams: u64,
    /// Octets of the carrier with all that it takes: IP and UDP headers, seal, TS Packets, octets of the line.
    pub carrier_octets: u64,
}

/// Feedback of ROHC with one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Of our decompressor.
    pub sent: FeedbackTypes,
    /// For our compressor.
    pub received: FeedbackTypes,
    /// Not sent: there was too much of it.
    pub limited: u64,
    /// Received, and refused: no feedback, of a CID that is not known, or not from where it may come.
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
    /// Octets of all of them.
    pub octets: u64,
}

/// What is billed in units of so many octets for each datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billing {
    /// Octets of a unit. 0: octets are billed as they are, and a unit is one.
    pub unit_octets: u32,
    /// What was sent.
    pub sent: Bill,
    /// What was received.
    pub received: Bill,
}

/// What is billed one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// Datagrams.
    pub datagrams: u64,
    /// Units, those that were begun too.
    pub units: u64,
}

impl Counters {
    /// All at zero. `billing_unit` as in [`Seeing::billing_unit`](crate::plan::Seeing::billing_unit).
    pub fn new(billing_unit: u32) -> Self {
        Self {
            sent: Way::default(),
            received: Way::default(),
            drops: Tally::new(),
            latency_sent: Histogram::new(),
            latency_received: Histogram::new(),
            billing: Billing { unit_octets: billing_unit, ..Billing::default() },
        }
    }

    /// A datagram went out: `octets` of the carrier, with its headers.
    pub fn sent_datagram(&mut self, octets: usize) {
        self.sent.datagram(octets);
        self.billing.sent.datagram(self.billing.unit_octets, octets);
    }

    /// A datagram came, from whomever: `octets` of the carrier, with its headers.
    pub fn received_datagram(&mut self, octets: usize) {
        self.received.datagram(octets);
        self.billing.received.datagram(self.billing.unit_octets, octets);
    }
}

impl Way {
    /// A packet of `octets` at the interface, of `compressed` on its way.
    pub fn packet(&mut self, octets: usize, compressed: usize) {
        self.packets += 1;
        self.octets += octets as u64;
        self.compressed_octets += compressed as u64;
    }

    /// A datagram of `octets` on the carrier.
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
