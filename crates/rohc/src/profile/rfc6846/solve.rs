//! Search for the sequence number, acknowledgment number and timestamps of a packet whose bits stand for several values: after a
//! loss, and in late packets. The TCP checksum, which is carried unchanged, covers them all.
//!
//! One's-complement sums are numbers modulo 2^16 - 1, in which a field of 32 bits counts by its value. Of all combinations of
//! turns that the pace of the flow allows, only few are therefore rebuilt: those with a correct sum.

use super::decompress::{ReadPacket, TcpReceiverContext};
use super::options::index;
use super::state::TcpState;
use crate::arrival::Passed;

/// Numbers of a packet: sequence and acknowledgment number, TSval and TSecr.
pub(super) const NUMBERS: usize = 4;

/// Largest number of packets by which one may be late.
const LATEST: i64 = 16;

/// Number of packets from which the octets per packet of a flow are known.
const KNOWN: i64 = 16;

/// Largest distance in packets that is considered.
const FARTHEST: u32 = 4_096;

/// Number of combinations that are tried. One in 2^19 passes a checksum and a CRC of 3 bits by chance.
const COMBINATIONS: i64 = 8_192;

/// Number of combinations with a correct sum that are kept.
const SOLUTIONS: usize = 8;

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
}

/// Packets from one [`Mark`] to the next.
pub(super) const MARKED: u16 = 64;

/// The numbers of a packet.
#[inline]
pub(super) fn numbers(state: &TcpState) -> [u32; NUMBERS] {
    let [value, echo] = state.options.timestamps;
    [state.seq, state.ack, value, echo]
}

/// Combinations of turns with which the checksum is correct.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solutions {
    pub(super) turns: [[i32; NUMBERS]; SOLUTIONS],
    pub(super) count: usize,
}

impl Solutions {
    /// The numbers as read, without additional turns.
    pub(super) const AS_READ: Self = Self { turns: [[0; NUMBERS]; SOLUTIONS], count: 1 };

    pub(super) fn iter(&self) -> impl Iterator<Item = &[i32; NUMBERS]> {
        self.turns.iter().take(self.count)
    }
}

impl ReadPacket<'_> {
    /// Returns the turns of the numbers that were read in part, by their bits.
    pub(super) fn turns_of(&self, last: &TcpState) -> [u32; NUMBERS] {
        let [seq, seq_scaled, ack, ack_scaled, value, echo] = self.number_bits;
        let turn = |bits: u8, scale: u32| if bits == 0 { 0 } else { scale << bits };
        let seq = turn(seq, 1) | turn(seq_scaled, self.payload.len() as u32);
        let ack = turn(ack, 1) | turn(ack_scaled, u32::from(last.ack_stride));
        // SACK blocks are encoded relative to the acknowledgment number.
        let has_sack = self.next.options.structure().contains(&index::SACK);
        [seq, if has_sack { 0 } else { ack }, turn(value, 1), turn(echo, 1)]
    }
}

impl TcpReceiverContext {
    /// Returns the turns of the numbers with which the TCP checksum of a packet is correct, within the limits by carrier, clock
    /// and previous numbers. `off` is the sum of the packet with the numbers as read. `None` if there are too many.
    pub(super) fn solve(
        &self,
        found: &ReadPacket<'_>,
        last: &TcpState,
        passed: Passed,
        off: u16,
    ) -> Option<Solutions> {
        if off.is_multiple_of(0xFFFF) {
            return Some(Solutions::AS_READ);
        }
        let mut ranges = [(0, 0); NUMBERS];
        let (read, kept) = (numbers(&found.next), numbers(last));
        for (i, range) in ranges.iter_mut().enumerate() {
            *range = self.range(found.turns[i], distance(read[i], kept[i]), i, last, passed);
        }
        let turn = found.turns.map(i64::from);
        let has_stamps = found.next.options.structure().contains(&index::TIMESTAMP);
        // If both ends have clocks, the distance of the timestamps stays about constant.
        let tied = has_stamps && turn[2] > 0 && turn[3] > 0;
        let slack = 64 + 4 * i64::from(self.drift);
        let ahead = distance(read[3], kept[3]) - distance(read[2], kept[2]);
        let mut combinations = 0;
        let mut solutions = Solutions::default();
        let all = |(low, high): (i64, i64)| low..=high;
        for (seq, ack) in all(ranges[0]).flat_map(|seq| all(ranges[1]).map(move |ack| (seq, ack))) {
            let octets = turn[0] * seq + turn[1] * ack + octets(&found.next, last);
            for value in all(self.by_octets(ranges[2], turn[2], distance(read[2], kept[2]), octets, last)) {
                let mut echoes = ranges[3];
                if tied {
                    // Echoes that have moved about as far as the value.
                    let wanted = value * turn[2] - ahead;
                    let near = ((wanted - slack).div_euclid(turn[3]), (wanted + slack).div_euclid(turn[3]));
                    let low = near.0 + i64::from((wanted - slack).rem_euclid(turn[3]) > 0);
                    echoes = (echoes.0.max(low), echoes.1.min(near.1));
                }
                combinations += 1 + (echoes.1 - echoes.0).max(0);
                if combinations > COMBINATIONS {
                    return None;
                }
                for echo in all(echoes) {
                    let turns = [seq, ack, value, echo];
                    // They may wrap around.
                    let moved = |i: usize| i64::from(read[i].wrapping_add((turns[i] * turn[i]) as u32));
                    let sum: i64 = (0..NUMBERS).map(|i| moved(i) - i64::from(read[i])).sum();
                    if (i64::from(off) + sum) % 0xFFFF != 0 {
                        continue;
                    }
                    *solutions.turns.get_mut(solutions.count)? = turns.map(|n| n as i32);
                    solutions.count += 1;
                }
            }
        }
        Some(solutions)
    }

    /// Returns the smallest and largest number of turns to add to a number that was read as `ahead` of the last one.
    fn range(&self, turn: u32, ahead: i64, number: usize, last: &TcpState, passed: Passed) -> (i64, i64) {
        if turn == 0 {
            return (0, 0);
        }
        let (low, high) = match passed {
            Passed { is_counted: false, intervals, .. } if intervals.is_steady => {
                (intervals.number.saturating_sub(intervals.off), intervals.most())
            }
            Passed { most, .. } => (1, most),
        };
        let (low, high) = (i64::from(low.min(FARTHEST)), i64::from(high.min(FARTHEST)));
        let low = if low <= LATEST { -LATEST } else { low };
        let (grown, packets) = self.grown(number, last);
        if packets < LATEST {
            return (0, 0);
        }
        let turn = i64::from(turn);
        let (low, high) = (low * grown / packets, high * grown / packets);
        let margin = margin(high, grown, packets, turn);
        let turns = |to: i64| (to - ahead).div_euclid(turn);
        (turns(low - margin), turns(high + margin))
    }

    /// Returns the turns of TSval that match a number of octets.
    fn by_octets(&self, all: (i64, i64), turn: i64, ahead: i64, octets: i64, last: &TcpState) -> (i64, i64) {
        let (grown, packets) = self.grown(2, last);
        let per_octet = self.grown(0, last).0 + self.grown(1, last).0;
        if turn == 0 || per_octet == 0 || octets == 0 {
            return all;
        }
        let expected = octets * grown / per_octet;
        let margin = margin(expected.abs(), grown, packets, turn);
        let turns = |to: i64| (to - ahead).div_euclid(turn);
        (turns(expected - margin).max(all.0), turns(expected + margin).min(all.1))
    }

    /// Returns the growth of a number, and the number of packets in which it has grown.
    fn grown(&self, number: usize, last: &TcpState) -> (i64, i64) {
        let mark = &self.marks[0];
        let packets = i64::from(last.msn.wrapping_sub(mark.msn)).max(1);
        (distance(numbers(last)[number], mark.numbers[number]).max(0), packets)
    }

    /// Returns the growth of the offset of the IP-ID, and the number of packets in which it has grown.
    pub(super) fn grown_offset(&self, last: &TcpState) -> (u16, u16) {
        let mark = &self.marks[0];
        let grown = last.ip_id_offset().wrapping_sub(mark.offset);
        let packets = last.msn.wrapping_sub(mark.msn).max(1);
        // A flow that has just begun gives no reliable growth.
        let least = if i64::from(packets) < LATEST { packets } else { 0 };
        (grown.clamp(least, 1 << 12), packets)
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

/// Returns the tolerance of a number that is expected to be `ahead`, and has grown by `grown` in `packets` packets.
fn margin(ahead: i64, grown: i64, packets: i64, turn: i64) -> i64 {
    ahead / 4 + (8 * grown / packets).max(turn / 2)
}

/// Returns the octets that were sent and acknowledged since the last packet.
fn octets(next: &TcpState, last: &TcpState) -> i64 {
    distance(next.seq, last.seq) + distance(next.ack, last.ack)
}

/// Distance of one number from another.
#[inline]
fn distance(new: u32, old: u32) -> i64 {
    i64::from(new.wrapping_sub(old).cast_signed())
}
