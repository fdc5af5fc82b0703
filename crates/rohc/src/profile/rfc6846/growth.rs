//! Growth of the numbers of a flow in a packet, and from it the values that a number may have in the next one.

use super::decompress::TcpReceiverContext;
use super::state::TcpState;
use crate::flow::arrival::{Moment, Passed};
use crate::work;

/// Numbers of a packet: sequence and acknowledgment number, TSval and TSecr.
pub(super) const NUMBERS: usize = 4;

/// Largest number of packets by which one may be late.
const LATEST: i64 = 16;

/// Number of packets from which the octets per packet of a flow are known.
const KNOWN: i64 = 16;

/// Largest distance in packets that is considered.
pub(super) const FARTHEST: u32 = 4_096;

/// Number of packets that a flow could have sent in a silence, at least.
const PAUSE: u64 = 8;

/// Packets from one [`Mark`] to the next.
const MARKED: u16 = 64;

/// Packets behind a mark from which on it does not tell the growth of the offset of an IP-ID, which may have come round in an outage.
const FORGOTTEN: u16 = 8 * MARKED;

/// Largest growth of the offset of an IP-ID since a mark.
const MOST_GROWN: u16 = 1 << 12;

/// The numbers of a packet.
#[inline]
pub(super) fn numbers(state: &TcpState) -> [u32; NUMBERS] {
    let [value, echo] = state.options.timestamps;
    [state.seq, state.ack, value, echo]
}

/// Numbers and MSN of a past packet, from which the growth of numbers is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    msn: u16,
    /// `ip_id_offset`.
    offset: u16,
    numbers: [u32; NUMBERS],
}

impl Mark {
    pub(super) const NEW: Self = Self { msn: 0, offset: 0, numbers: [0; NUMBERS] };

    #[inline]
    pub(super) fn of(state: &TcpState) -> Self {
        Self { msn: state.msn, offset: state.ip_id_offset(), numbers: numbers(state) }
    }

    /// True if it is time for the next one.
    #[inline]
    pub(super) fn is_old(&self, next: &TcpState) -> bool {
        next.msn.wrapping_sub(self.msn) >= MARKED
    }

    /// Moves by as much as one packet is ahead of another: that is then no growth.
    fn move_by(&mut self, next: Self, last: Self) {
        self.msn = self.msn.wrapping_add(next.msn).wrapping_sub(last.msn);
        self.offset = self.offset.wrapping_add(next.offset).wrapping_sub(last.offset);
        for (number, (next, last)) in self.numbers.iter_mut().zip(next.numbers.iter().zip(last.numbers)) {
            *number = number.wrapping_add(*next).wrapping_sub(last);
        }
    }
}

impl TcpReceiverContext {
    /// Records a gap in front of a packet. If the flow has been silent in it, or in any other one, the numbers do not tell its growth in
    /// a packet.
    #[cold]
    pub(super) fn note_gap(&mut self, now: Moment, next: &TcpState, last: &TcpState, ahead: i32) {
        let packets = ahead.unsigned_abs();
        let had_time = self.arrivals.has_settled()
            && self.arrivals.is_behind(now, u64::from(packets + packets / 8) + PAUSE);
        let has_octets = self.packets_by_octets(next, last).is_none_or(|by_octets| by_octets * 2 >= packets);
        self.pauses |= had_time || !has_octets && packets > u32::from(MARKED);
        if self.has_paused() && !(0..=LATEST).contains(&ahead.into()) {
            let (next, last) = (Mark::of(next), Mark::of(last));
            self.marks.iter_mut().for_each(|mark| mark.move_by(next, last));
        }
    }

    /// True if the flow has been silent at least once.
    pub(super) fn has_paused(&self) -> bool {
        self.pauses || self.arrivals.has_paused()
    }

    /// Returns the smallest and largest number of turns to add to a number that was read as `ahead` of the last one.
    pub(super) fn range(
        &self,
        turn: u32,
        ahead: i64,
        number: usize,
        last: &TcpState,
        passed: Passed,
    ) -> (i64, i64) {
        if turn == 0 {
            return (0, 0);
        }
        let Passed { most, is_counted, intervals, .. } = passed;
        let has_paused = self.has_paused();
        // Timestamps follow the clock. Octets follow the packets, and the sender may have been silent.
        let (low, high) = match number {
            2.. if intervals.is_steady && !has_paused => {
                (intervals.number.saturating_sub(intervals.off), intervals.most())
            }
            2.. => (1, most.max(intervals.most())),
            _ if intervals.is_steady && !is_counted => (1, intervals.most().min(FARTHEST)),
            _ => (1, most.min(FARTHEST)),
        };
        let (low, high) = (i64::from(low), i64::from(high));
        let low = if low <= LATEST { -LATEST } else { low };
        let (grown, packets) = self.grown(number, last);
        if packets < LATEST {
            return (0, 0);
        }
        let turn = i64::from(turn);
        let (low, high) = (low * grown / packets, high * grown / packets);
        // Segments have other sizes, and a timestamp grows faster in silence.
        let uneven = if has_paused || number < 2 { high } else { 0 };
        let margin = uneven + margin(high, grown, packets, turn);
        let turns = |to: i64| (to - ahead).div_euclid(turn);
        (turns(low - margin), turns(high + margin))
    }

    /// Returns the growth of TSval against that of sequence and acknowledgment number.
    pub(super) fn growth(&self, last: &TcpState) -> Growth {
        let (grown, packets) = self.grown(2, last);
        // Timestamps of a flow that pauses follow the clock, not the octets.
        let per_octet = if self.has_paused() { 0 } else { self.grown(0, last).0 + self.grown(1, last).0 };
        Growth { grown, packets, per_octet }
    }

    /// Returns the growth of a number, and the number of packets in which it has grown.
    pub(super) fn grown(&self, number: usize, last: &TcpState) -> (i64, i64) {
        let mark = &self.marks[0];
        let packets = i64::from(last.msn.wrapping_sub(mark.msn)).max(1);
        (distance(numbers(last)[number], mark.numbers[number]).max(0), packets)
    }

    /// Returns the growth of the offset of the IP-ID, and the number of packets in which it has grown.
    pub(super) fn grown_offset(&self, last: &TcpState) -> (u16, u16) {
        let [older, newer] = self.marks.map(|mark| (mark, last.msn.wrapping_sub(mark.msn)));
        let is_told = older.1 <= FORGOTTEN || i64::from(newer.1) < LATEST;
        let (mark, packets) = if is_told { older } else { newer };
        if packets > FORGOTTEN {
            return (MOST_GROWN, MARKED);
        }
        let (grown, packets) = (last.ip_id_offset().wrapping_sub(mark.offset), packets.max(1));
        // A flow that has just begun gives no reliable growth.
        let least = if i64::from(packets) < LATEST { packets } else { 0 };
        (grown.clamp(least, MOST_GROWN), packets)
    }

    /// Estimates the number of packets for the octets that were sent and acknowledged since the `last` one.
    pub(super) fn packets_by_octets(&self, next: &TcpState, last: &TcpState) -> Option<u32> {
        let [seq, ack] = [0, 1].map(|number| self.grown(number, last));
        let (grown, new) = (seq.0 + ack.0, octets(next, last));
        let is_known = seq.1 >= KNOWN && grown > 0 && new > 0;
        is_known
            .then(|| u32::try_from((new * seq.1 + grown / 2) / grown).map_or(FARTHEST, |n| n.min(FARTHEST)))
    }
}

/// Growth of TSval since a [`Mark`], in as many packets and octets.
#[derive(Clone, Copy)]
pub(super) struct Growth {
    grown: i64,
    packets: i64,
    per_octet: i64,
}

impl Growth {
    /// Returns the turns of TSval that match a number of octets. Its turn is a power of two.
    pub(super) fn values(&self, all: (i64, i64), turn: i64, ahead: i64, octets: i64) -> (i64, i64) {
        work::note(1);
        if turn == 0 || self.per_octet == 0 || octets == 0 {
            return all;
        }
        let expected = (octets.saturating_mul(self.grown) / self.per_octet).clamp(-FAR, FAR);
        let margin = expected.abs() / 8 + margin(expected.abs(), self.grown, self.packets, turn);
        let turns = |to: i64| (to - ahead) >> turn.trailing_zeros();
        (turns(expected - margin).max(all.0), turns(expected + margin).min(all.1))
    }
}

/// Largest number of octets that is searched for, sent or acknowledged.
const MOST_OCTETS: i64 = 1 << 44;

/// Largest distance of TSval that is expected.
const FAR: i64 = 1 << 60;

impl Growth {
    /// Returns the smallest and the largest number of octets with which [`values`](Self::values) has any.
    pub(super) fn octets(&self, all: (i64, i64), turn: i64, ahead: i64) -> (i64, i64) {
        if turn == 0 || self.per_octet == 0 || all.0 > all.1 {
            return (-MOST_OCTETS, MOST_OCTETS);
        }
        // Both limits of TSval grow with the octets.
        let first = |is_reached: &dyn Fn((i64, i64)) -> bool| {
            let (mut low, mut high) = (-MOST_OCTETS, MOST_OCTETS);
            while low < high {
                let middle = (low + high) >> 1;
                // Zero octets have no limits.
                let octets = if middle == 0 { 1 } else { middle };
                let (from, to) = self.values((i64::MIN, i64::MAX), turn, ahead, octets);
                if is_reached((from, to)) { high = middle } else { low = middle + 1 }
            }
            low
        };
        (first(&|(_, to)| to >= all.0) - 1, first(&|(from, _)| from > all.1))
    }
}

/// Returns the tolerance of a number that is expected to be `ahead`, and has grown by `grown` in `packets` packets.
fn margin(ahead: i64, grown: i64, packets: i64, turn: i64) -> i64 {
    ahead / 4 + (8 * grown / packets).max(turn / 2)
}

/// Returns the octets that were sent and acknowledged since the last packet.
pub(super) fn octets(next: &TcpState, last: &TcpState) -> i64 {
    distance(next.seq, last.seq) + distance(next.ack, last.ack)
}

/// Distance of one number from another.
#[inline]
pub(super) fn distance(new: u32, old: u32) -> i64 {
    i64::from(new.wrapping_sub(old).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::super::state::Behavior;
    use super::*;

    /// A packet of a flow whose IP-ID has grown by 6 with each MSN.
    fn packet(msn: u16) -> TcpState {
        let mut state = TcpState { msn, ip_count: 1, ..TcpState::EMPTY };
        state.inner_mut().behavior = Behavior::Sequential;
        state.inner_mut().header.id = msn.wrapping_mul(6);
        state
    }

    #[test]
    fn behind_an_outage_ip_ids_do_not_seem_to_grow_more_slowly() {
        let mut context = TcpReceiverContext::new();
        let grows = |context: &TcpReceiverContext, msn: u16| {
            let (grown, packets) = context.grown_offset(&packet(msn));
            f64::from(grown) / f64::from(packets)
        };
        context.marks = [100, 164].map(|msn| Mark::of(&packet(msn)));
        assert_eq!(grows(&context, 200), 5.0);
        // An outage of 3,000 packets; then a new mark, which tells the growth as soon as there are some packets behind it.
        assert!(grows(&context, 3_200) >= 5.0);
        context.marks = [164, 3_200].map(|msn| Mark::of(&packet(msn)));
        assert!(grows(&context, 3_201) >= 5.0);
        assert_eq!(grows(&context, 3_230), 5.0);
    }
}
