//! Packets that wait, so that several share a datagram: those of flows that a rule names, until its time is over, a datagram is
//! full, or another datagram leaves for the same end.
//!
//! With a price list they leave when all steps that a datagram can fill are full, too, and at once where they cost nothing.
//!
//! They wait in front of the compressor. Both ends of a channel thus see them when they leave, and no rule of ROHC about clocks
//! or losses has to know of the wait.

use std::time::Duration;

use thinair_link::tariff::{CountedDirections, Tariff};
use thinair_wire::header::protocol;
use thinair_wire::time::Instant;

use crate::site_config::HoldRule;
use crate::status::TrafficCounters;

/// Octets by which compression shortens a packet, and packaging lengthens it, at least.
const SAVED: usize = 24;

/// Ports of DNS and of multicast DNS, which never waits.
const DNS: [u16; 2] = [53, 5_353];

/// Returns how long a packet may wait; `None`: it leaves at once.
pub(super) fn time_of(rules: &[HoldRule], packet: &[u8]) -> Option<Duration> {
    if rules.is_empty() {
        return None;
    }
    let Datagram { protocol, dscp, ports } = Datagram::read(packet)?;
    let is_dns = ports.iter().any(|port| DNS.contains(port));
    let fits = |rule: &&HoldRule| {
        rule.dst_port.is_none_or(|port| port == ports[1])
            && rule.protocol.is_none_or(|number| number == protocol)
            && rule.dscp.is_none_or(|number| number == dscp)
    };
    rules.iter().find(fits).filter(|_| !is_dns).map(|rule| rule.time)
}

/// True if packets from here cost something.
pub(super) fn is_counted(tariff: &Tariff) -> bool {
    let is_up = matches!(tariff.directions, CountedDirections::Both | CountedDirections::Up);
    is_up && tariff.octet > 0.0
}

/// Fields of a datagram of UDP or UDP-Lite that is no fragment. Nothing else waits: TCP and ICMP measure the time.
struct Datagram {
    protocol: u8,
    dscp: u8,
    ports: [u16; 2],
}

impl Datagram {
    fn read(packet: &[u8]) -> Option<Self> {
        let first = *packet.first()?;
        let (protocol, class, header) = match first >> 4 {
            4 => {
                let is_fragment = packet.get(6)? & 0x3f != 0 || *packet.get(7)? != 0;
                if is_fragment {
                    return None;
                }
                (*packet.get(9)?, *packet.get(1)?, usize::from(first & 0xf) * 4)
            }
            6 => (*packet.get(6)?, first << 4 | packet.get(1)? >> 4, 40),
            _ => return None,
        };
        let ports: &[u8; 4] = packet.get(header..)?.first_chunk()?;
        let ports = [u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])];
        let is_datagram = matches!(protocol, protocol::UDP | protocol::UDP_LITE);
        is_datagram.then_some(Self { protocol, dscp: class >> 2, ports })
    }
}

/// Packets that wait for one destination.
#[derive(Debug, Default)]
pub(super) struct WaitingPackets {
    octets: Vec<u8>,
    /// End of each packet in `octets`.
    ends: Vec<usize>,
    due: Option<Instant>,
}

impl WaitingPackets {
    /// Adds a packet that may wait for `time`.
    pub(super) fn push(&mut self, now: Instant, time: Duration, packet: &[u8]) {
        self.octets.extend_from_slice(packet);
        self.ends.push(self.octets.len());
        self.due = Some(self.due.map_or(now + time, |due| due.min(now + time)));
    }

    /// True if they fill a datagram with a body of `largest` octets.
    pub(super) fn fill(&self, largest: usize) -> bool {
        self.octets.len().saturating_sub(SAVED * self.ends.len()) >= largest
    }

    /// True if another packet as they are would begin a step of a price list that a datagram cannot fill. `around`: octets of a
    /// datagram without packets; `largest`: most octets in it; `sent`: earlier packets, which show how much compression saves.
    pub(super) fn fill_steps(
        &self,
        tariff: &Tariff,
        (around, largest): (usize, usize),
        sent: &TrafficCounters,
    ) -> bool {
        let step = tariff.step.max(1) as usize;
        let steps = (around + largest) / step * step;
        let count = self.ends.len();
        let saved = sent.octets.saturating_sub(sent.compressed_octets).checked_div(sent.packets);
        let saved = saved.map_or(SAVED, |saved| saved as usize);
        // Each packet but the last one has its length.
        let all = self.octets.len().saturating_sub(saved * count).max(count) + count;
        let next = all / count.max(1);
        steps > around && around + all + next > steps
    }

    /// Time at which they have to leave.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes all packets, in order.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// The packets, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.octets.get(start..*end).unwrap_or_default())
    }
}
