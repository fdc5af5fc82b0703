//! Receive side: octets in order, out-of-order octets, and times of acknowledgments.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use thinair_wire::time::Instant;

use super::TcpConfig;

/// Receive side of a connection. Numbers count from the SYN of the other side, which is 0.
#[derive(Clone, Debug)]
pub(super) struct Inbox {
    /// Octets that the application has not read.
    ready: VecDeque<u8>,
    /// RCV.NXT.
    next: u64,
    /// Out-of-order octets, by their first number; they do not overlap.
    early: BTreeMap<u64, Vec<u8>>,
    /// SACK blocks, the latest first. RFC 2018, section 4.
    blocks: VecDeque<u64>,
    fin: Option<u64>,
    room: u32,
    delay: Option<Duration>,
    quick: u32,
    /// Time of the latest octets.
    latest: Option<Instant>,
    /// Both sides send data: acknowledgments wait for it, and none is sent at once. Called pingpong in Linux.
    interactive: bool,
    /// Unacknowledged segments.
    owed: u32,
    due: Option<Instant>,
    at_once: bool,
}

impl Inbox {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            ready: VecDeque::new(),
            next: 0,
            early: BTreeMap::new(),
            blocks: VecDeque::new(),
            fin: None,
            room: config.receive_buffer,
            delay: config.delayed_ack,
            quick: config.quick_acks,
            latest: None,
            interactive: false,
            owed: 0,
            due: None,
            at_once: false,
        }
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Handles the SYN of the other side.
    pub(super) fn synchronize(&mut self) {
        self.next = self.next.max(1);
    }

    pub(super) fn read(&mut self, most: usize) -> Vec<u8> {
        let len = self.ready.len().min(most);
        self.ready.drain(..len).collect()
    }

    pub(super) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// True if the other side has closed, and all its data was received.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Receive window: octets accepted from RCV.NXT on.
    pub(super) fn window(&self) -> u32 {
        self.room.saturating_sub(self.ready.len() as u32)
    }

    /// SACK blocks as numbers.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.blocks.iter().filter_map(|start| self.block(*start))
    }

    /// Contiguous out-of-order octets from `start` on.
    fn block(&self, start: u64) -> Option<(u64, u64)> {
        let mut end = start;
        for (at, octets) in self.early.range(start..) {
            if *at != end {
                break;
            }
            end += octets.len() as u64;
        }
        (end > start).then_some((start, end))
    }

    /// Handles octets. Returns true if there are new ones to read, or the other side has closed.
    pub(super) fn take(&mut self, now: Instant, start: u64, payload: &[u8], fin: bool) -> bool {
        let end = start + payload.len() as u64;
        let edge = self.next + u64::from(self.window());
        if fin && end <= edge {
            self.fin = Some(end);
        }
        if payload.is_empty() && !fin {
            return false;
        }
        self.latest = Some(now);
        let before = self.next;
        if end + u64::from(fin) <= self.next || start > self.next || start >= edge && !payload.is_empty() {
            // Old, out of order, or outside of the window: acknowledged at once. RFC 5681, section 4.2.
            self.at_once = true;
        }
        let skipped = (self.next.saturating_sub(start) as usize).min(payload.len());
        let kept = payload.len().min(edge.saturating_sub(start) as usize);
        if skipped < kept {
            self.keep(start + skipped as u64, payload.get(skipped..kept).unwrap_or_default());
        }
        let had_early = !self.early.is_empty();
        while let Some((at, octets)) =
            self.early.first_key_value().map(|(at, octets)| (*at, octets.len() as u64))
        {
            if at > self.next {
                break;
            }
            if let Some((_, octets)) = self.early.pop_first() {
                self.ready.extend(octets.iter().skip((self.next - at) as usize));
            }
            self.next = self.next.max(at + octets);
        }
        let next = self.next;
        self.blocks.retain(|block| *block > next);
        if self.fin == Some(self.next) {
            self.next += 1;
        }
        // A segment that fills a gap is acknowledged at once too. RFC 5681, section 4.2.
        self.at_once |= had_early
            && self.next > before
            && (!self.early.is_empty() || skipped == 0 && start == before && next > end);
        self.owed += 1;
        match self.delay {
            Some(delay) if self.quick == 0 || self.interactive => {
                if self.owed >= 2 || self.is_finished() {
                    self.at_once = true;
                } else {
                    self.due.get_or_insert(now + delay);
                }
            }
            _ => {
                self.quick = self.quick.saturating_sub(1);
                self.at_once = true;
            }
        }
        self.next > before
    }

    /// Stores the new part of out-of-order octets.
    fn keep(&mut self, start: u64, octets: &[u8]) {
        let mut at = start;
        let end = start + octets.len() as u64;
        while at < end {
            let before = self.early.range(..=at).next_back().map(|(from, held)| from + held.len() as u64);
            if let Some(held) = before.filter(|held| *held > at) {
                at = held.min(end);
                continue;
            }
            let until = self.early.range(at..).next().map_or(end, |(from, _)| (*from).min(end));
            let piece = octets.get((at - start) as usize..(until - start) as usize).unwrap_or_default();
            self.early.insert(at, piece.to_vec());
            at = until;
        }
        if start > self.next {
            // The block with the latest octets moves to the front.
            let mut first = start;
            while let Some((from, held)) = self.early.range(..first).next_back() {
                if from + held.len() as u64 != first {
                    break;
                }
                first = *from;
            }
            let last = self.block(first).map_or(first, |(_, last)| last);
            self.blocks.retain(|block| *block < first || *block >= last);
            self.blocks.push_front(first);
            self.blocks.truncate(4);
        }
    }

    /// Latest time at which an acknowledgment must be sent.
    pub(super) fn timer(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn on_timer(&mut self, now: Instant) {
        if self.due.take_if(|due| *due <= now).is_some() {
            self.at_once = true;
            self.interactive = false;
        }
    }

    /// Handles the sending of data.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        let soon = |latest: Instant| self.delay.is_some_and(|delay| now.since(latest) < delay);
        self.interactive |= self.latest.is_some_and(soon);
    }

    pub(super) const fn wants_acknowledgment(&self) -> bool {
        self.at_once
    }

    pub(super) fn acknowledge_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    pub(super) fn acknowledge_at_once(&mut self) {
        self.at_once = true;
    }

    /// Handles the sending of an acknowledgment, in any segment.
    pub(super) fn acknowledged(&mut self) {
        (self.owed, self.due, self.at_once) = (0, None, false);
    }
}
