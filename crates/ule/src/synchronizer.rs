//! TS Packets from a stream of octets without known packet boundaries: a file, a pipe, a device.
//!
//! A packet begins with 0x47, but 0x47 also occurs in payload. So a place counts as the start of a packet if it begins
//! five consecutive ones. Three kinds of streams are distinguished by the distance.

use crate::ts::{LEN, SYNC, TsPacket};

/// Number of consecutive packets that have to begin with 0x47.
const IN_A_ROW: usize = 5;

/// Number of consecutive packets without 0x47 after which the synchronizer searches again.
const MISSES: u8 = 3;

/// Buffer for `IN_A_ROW` packets of the longest kind after a place that is one such packet away.
const ROOM: usize = (IN_A_ROW + 1) * 204;

/// Distance between the starts of two TS Packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// 188 octets: the packet only.
    Plain,
    /// 192 octets: a time code of 4 octets before each packet.
    TimeCoded,
    /// 204 octets: a Reed-Solomon code of 16 octets after each packet.
    ReedSolomon,
}

impl Spacing {
    /// All distances, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Plain, Self::TimeCoded, Self::ReedSolomon];

    /// Returns the octets from one start to the next.
    pub const fn octets(self) -> usize {
        match self {
            Self::Plain => LEN,
            Self::TimeCoded => 192,
            Self::ReedSolomon => 204,
        }
    }
}

/// Counters of a [`Synchronizer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynchronizerCounters {
    /// TS Packets found.
    pub ts_packets: u64,
    /// Places where a TS Packet should begin and does not.
    pub sync_errors: u64,
    /// Octets that were dropped during the search for packets.
    pub skipped: u64,
    /// Number of successful searches.
    pub locks: u64,
}

/// Finds TS Packets in a stream that comes in pieces of any size.
///
/// A packet within one piece is passed on without a copy; a divided packet is assembled in a buffer of about a kilobyte.
#[derive(Clone, Debug)]
pub struct Synchronizer {
    spacing: Option<Spacing>,
    misses: u8,
    /// Octets up to the start of the next packet.
    gap: usize,
    kept: [u8; ROOM],
    len: usize,
    counters: SynchronizerCounters,
}

impl Default for Synchronizer {
    fn default() -> Self {
        Self {
            spacing: None,
            misses: 0,
            gap: 0,
            kept: [0; ROOM],
            len: 0,
            counters: SynchronizerCounters::default(),
        }
    }
}

impl Synchronizer {
    /// Creates a synchronizer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the distance between packets, while it is known.
    pub const fn spacing(&self) -> Option<Spacing> {
        self.spacing
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &SynchronizerCounters {
        &self.counters
    }

    /// Processes the next octets of the stream, and passes TS Packets to `out`.
    pub fn push(&mut self, mut octets: &[u8], out: &mut impl FnMut(&TsPacket)) {
        while !octets.is_empty() {
            if self.len == 0 && self.spacing.is_some() {
                octets = self.packets(octets, out);
            }
            // The remainder is too short, or ambiguous.
            let room = self.kept.get_mut(self.len..).unwrap_or_default();
            let len = room.len().min(octets.len());
            let (piece, rest) = octets.split_at(len);
            for (to, from) in room.iter_mut().zip(piece) {
                *to = *from;
            }
            self.len += len;
            octets = rest;
            self.look_through(false, out);
        }
    }

    /// Ends the stream: its last packets are passed to `out` although fewer than five remain.
    pub fn finish(&mut self, out: &mut impl FnMut(&TsPacket)) {
        self.look_through(true, out);
        self.counters.skipped += self.len as u64;
        (self.len, self.spacing, self.gap) = (0, None, 0);
    }

    /// Processes the buffered octets as far as possible.
    fn look_through(&mut self, end: bool, out: &mut impl FnMut(&TsPacket)) {
        loop {
            if self.spacing.is_none() && !self.lock(end) {
                return;
            }
            let kept = self.kept;
            let rest = self.packets(kept.get(..self.len).unwrap_or_default(), out).len();
            let taken = self.len - rest;
            self.drop_kept(taken);
            if self.spacing.is_some() {
                return;
            }
        }
    }

    /// Passes on whole packets from the start of `octets`, as long as they begin with 0x47, and returns the rest.
    fn packets<'o>(&mut self, mut octets: &'o [u8], out: &mut impl FnMut(&TsPacket)) -> &'o [u8] {
        while let Some(spacing) = self.spacing {
            let gap = self.gap.min(octets.len());
            octets = octets.get(gap..).unwrap_or_default();
            self.gap -= gap;
            let Some((packet, rest)) = octets.split_first_chunk::<LEN>() else { break };
            if packet[0] == SYNC {
                self.misses = 0;
                self.counters.ts_packets += 1;
                out(packet);
            } else {
                self.misses += 1;
                self.counters.sync_errors += 1;
                if self.misses == MISSES {
                    (self.spacing, self.misses) = (None, 0);
                    break;
                }
            }
            octets = rest;
            self.gap = spacing.octets() - LEN;
        }
        octets
    }

    /// Searches the buffer for the start of a packet; returns true if there is one. The octets before it are dropped.
    fn lock(&mut self, end: bool) -> bool {
        let kept = self.kept.get(..self.len).unwrap_or_default();
        if kept.len() < ROOM && !end {
            return false;
        }
        let starts_here = |at: usize, spacing: Spacing| {
            let starts = (0..IN_A_ROW).map(|i| at + i * spacing.octets());
            // At the end of a stream fewer suffice, but the first has to be complete.
            at + LEN <= kept.len()
                && starts.map(|start| kept.get(start)).all(|octet| octet.is_none_or(|octet| *octet == SYNC))
        };
        // All places except those without room for five packets.
        let places = if end { kept.len() } else { ROOM - (IN_A_ROW - 1) * 204 };
        let found = (0..places)
            .flat_map(|at| Spacing::ALL.map(|spacing| (at, spacing)))
            .find(|(at, spacing)| starts_here(*at, *spacing));
        let thrown_away = found.map_or(places, |(at, _)| at);
        self.counters.skipped += thrown_away as u64;
        self.drop_kept(thrown_away);
        if let Some((_, spacing)) = found {
            (self.spacing, self.gap) = (Some(spacing), 0);
            self.counters.locks += 1;
        }
        found.is_some()
    }

    fn drop_kept(&mut self, count: usize) {
        self.kept.copy_within(count.min(self.len)..self.len, 0);
        self.len = self.len.saturating_sub(count);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Numbered packets, with 0x47 at some places of their payload.
    fn packets(count: u32) -> Vec<TsPacket> {
        let packet = |i: u32| {
            let mut packet = [SYNC; LEN];
            packet[1] = 0;
            packet[4..8].copy_from_slice(&i.to_be_bytes());
            packet[8..].iter_mut().enumerate().for_each(|(j, octet)| *octet = (i as usize * 7 + j) as u8);
            packet
        };
        (0..count).map(packet).collect()
    }

    fn stream(packets: &[TsPacket], spacing: Spacing) -> Vec<u8> {
        let mut octets = Vec::new();
        for packet in packets {
            match spacing {
                Spacing::Plain => octets.extend(packet),
                Spacing::TimeCoded => octets.extend([&[1, 2, 3, 4][..], packet].concat()),
                Spacing::ReedSolomon => octets.extend([&packet[..], &[9; 16]].concat()),
            }
        }
        octets
    }

    fn found(octets: &[u8], piece: usize) -> (Vec<TsPacket>, SynchronizerCounters) {
        let mut synchronizer = Synchronizer::new();
        let mut found = Vec::new();
        for piece in octets.chunks(piece) {
            synchronizer.push(piece, &mut |packet| found.push(*packet));
        }
        synchronizer.finish(&mut |packet| found.push(*packet));
        (found, synchronizer.counters)
    }

    #[test]
    fn every_packet_is_found_whatever_the_spacing_and_the_pieces() {
        let sent = packets(40);
        for spacing in Spacing::ALL {
            let octets = stream(&sent, spacing);
            for piece in [1, 7, 188, 189, 1_000, 1_316, 5_000, octets.len()] {
                let (found, counters) = found(&octets, piece);
                assert!(found == sent, "{spacing:?} in pieces of {piece}: {}", found.len());
                assert_eq!((counters.sync_errors, counters.locks), (0, 1));
            }
        }
    }

    #[test]
    fn a_short_stream_has_its_packets_too() {
        for spacing in Spacing::ALL {
            for count in 1..=6 {
                let sent = packets(count);
                let (found, _) = found(&stream(&sent, spacing), 100);
                assert!(found == sent, "{count} of {spacing:?}: {}", found.len());
            }
        }
        assert!(found(&[SYNC; 100], 10).0.is_empty());
    }

    #[test]
    fn junk_in_front_and_octets_lost_on_the_way_cost_a_few_packets() {
        let sent = packets(60);
        let mut octets = vec![0x46; 777];
        octets.extend(stream(&sent, Spacing::Plain));
        octets.drain(777 + 20 * LEN + 50..777 + 20 * LEN + 60);
        let (found, counters) = found(&octets, 333);
        let numbers = |packets: &[TsPacket]| packets.iter().map(|packet| packet[7]).collect::<Vec<_>>();
        assert!(found[..20] == sent[..20]);
        // The one that has lost octets is incomplete; the third wrong start triggers a new search.
        assert_eq!(numbers(&found[21..]), numbers(&sent[24..]));
        assert!(found[21..] == sent[24..]);
        assert_eq!((counters.locks, counters.sync_errors), (2, 3));
    }

    #[test]
    fn one_wrong_sync_byte_costs_its_packet_alone() {
        let sent = packets(30);
        let mut octets = stream(&sent, Spacing::ReedSolomon);
        octets[10 * 204] ^= 1;
        let (found, counters) = found(&octets, 500);
        assert_eq!((found.len(), counters.sync_errors, counters.locks), (29, 1, 1));
        assert!(found[10..] == sent[11..]);
    }
}
