//! Packets that are compressed, and have not left yet: they count as sent when the datagram with their last unit leaves.

use std::collections::VecDeque;

use crate::status::TrafficCounters;

/// Maximum number of packets that wait. A constant-rate stream delays fewer.
const MOST: usize = 8_192;

/// What became of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its datagram, with this number, was passed to the carrier.
    Left(u64),
    /// It waits for keys.
    Held,
    /// It was dropped.
    Dropped,
}

/// A packet, and the number of its last unit.
#[derive(Clone, Copy, Debug)]
struct UnsentPacket {
    last: u64,
    octets: usize,
    compressed: usize,
}

/// Packets of a pipeline whose units are in its packager.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    packets: VecDeque<UnsentPacket>,
    /// Units that the packager has accepted, and those that have ended in a body.
    pushed: u64,
    ended: u64,
    /// Number of the last unit in each body since the begin of a packet, while there is one.
    bodies: Option<(u64, Vec<(u64, Fate)>)>,
}

impl Unsent {
    /// Begins a packet.
    pub(super) fn begin(&mut self) {
        let mut bodies = self.bodies.take().map(|(_, bodies)| bodies).unwrap_or_default();
        bodies.clear();
        self.bodies = Some((self.pushed, bodies));
    }

    /// Counts a unit that the packager has accepted.
    pub(super) fn push(&mut self) {
        self.pushed += 1;
    }

    /// Ends the packet that was begun, of `octets` and as `compressed` octets. Returns its fate; `None`: it is still in the
    /// packager.
    pub(super) fn end(&mut self, octets: usize, compressed: usize) -> Option<Fate> {
        let (before, bodies) = self.bodies.as_ref()?;
        let last = self.pushed;
        if last == *before {
            return Some(Fate::Dropped);
        }
        if last > self.ended {
            self.packets.push_back(UnsentPacket { last, octets, compressed });
            if self.packets.len() > MOST {
                self.packets.pop_front();
            }
            return None;
        }
        bodies.iter().find(|(end, _)| *end >= last).map(|(_, fate)| *fate)
    }

    /// Records a body in which `units` end. Returns the packets that end in it.
    pub(super) fn body(&mut self, units: u32, fate: Fate) -> TrafficCounters {
        self.ended += u64::from(units);
        if let Some((_, bodies)) = &mut self.bodies {
            bodies.push((self.ended, fate));
            // Between packets there are bodies with feedback, and others without any unit.
            if bodies.len() > MOST {
                bodies.clear();
            }
        }
        let mut ended = TrafficCounters::default();
        while let Some(packet) = self.packets.front().copied().filter(|packet| packet.last <= self.ended) {
            ended.packet(packet.octets, packet.compressed);
            self.packets.pop_front();
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_ends_with_its_last_unit() {
        let mut unsent = Unsent::default();
        // A body of its own, while it is pushed.
        unsent.begin();
        unsent.push();
        assert_eq!(unsent.body(1, Fate::Held).packets, 0);
        assert_eq!(unsent.end(100, 10), Some(Fate::Held));
        // Two packets share a body; the second one is segmented, and its last segment is in the next body.
        unsent.begin();
        unsent.push();
        assert_eq!(unsent.end(100, 20), None);
        unsent.begin();
        unsent.push();
        unsent.push();
        assert_eq!(
            unsent.body(2, Fate::Left(7)),
            TrafficCounters { packets: 1, octets: 100, compressed_octets: 20, ..TrafficCounters::default() }
        );
        assert_eq!(unsent.end(200, 30), None);
        assert_eq!(unsent.body(1, Fate::Left(8)).octets, 200);
        // None of its units was accepted.
        unsent.begin();
        assert_eq!(unsent.end(300, 40), Some(Fate::Dropped));
    }
}
