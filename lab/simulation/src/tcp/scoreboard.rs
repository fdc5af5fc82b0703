//! Unacknowledged segments, and the state of each. RFC 6675.

use core::time::Duration;
use std::collections::VecDeque;

use thinair_wire::time::Instant;

/// DupThresh. RFC 6675, section 2.
pub(super) const THRESHOLD: u32 = 3;

/// Sent segment. Numbers count from the SYN, which is 0, and do not wrap.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSegment {
    pub(super) start: u64,
    pub(super) end: u64,
    first: Instant,
    pub(super) transmissions: u8,
    fate: SegmentState,
    /// Not full: Minshall's variant of Nagle's algorithm waits for its acknowledgment.
    small: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    /// In flight.
    Sent,
    /// SACKed by the other side.
    Sacked,
    /// Considered lost.
    Lost,
    /// Considered lost, and retransmitted.
    SentAgain,
}

/// Effect of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AcknowledgmentEffect {
    /// Number of segments newly acknowledged or SACKed.
    pub(super) segments: u32,
    /// Round trip of the first one that was sent once.
    pub(super) rtt: Option<Duration>,
    /// True if SACK blocks had news.
    pub(super) sacked: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sent: VecDeque<SentSegment>,
    /// Segments in flight: neither SACKed nor considered lost, or retransmitted since. RFC 6675, "Pipe".
    pipe: u32,
    /// Number of SACKed segments.
    sacked: u32,
}

impl Scoreboard {
    pub(super) const fn pipe(&self) -> u32 {
        self.pipe
    }

    pub(super) const fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn len(&self) -> u32 {
        self.sent.len() as u32
    }

    pub(super) fn any_small(&self) -> bool {
        self.sent.iter().any(|sent| sent.small)
    }

    /// Adds a new segment.
    pub(super) fn push(&mut self, now: Instant, start: u64, end: u64, small: bool) {
        self.sent.push_back(SentSegment {
            start,
            end,
            first: now,
            transmissions: 1,
            fate: SegmentState::Sent,
            small,
        });
        self.pipe += 1;
    }

    /// Returns the first segment to retransmit, up to `most` octets of it; the rest becomes a separate segment.
    pub(super) fn send_again(&mut self, most: u64) -> Option<SentSegment> {
        let at = self.sent.iter().position(|sent| sent.fate == SegmentState::Lost)?;
        self.cut(at, most);
        let sent = self.sent.get_mut(at)?;
        sent.fate = SegmentState::SentAgain;
        sent.transmissions = sent.transmissions.saturating_add(1);
        self.pipe += 1;
        Some(*sent)
    }

    /// Returns the last segment, to be retransmitted as a probe. RFC 8985, section 7.3.
    pub(super) fn probe(&mut self, most: u64) -> Option<SentSegment> {
        let at = self
            .sent
            .iter()
            .rposition(|sent| matches!(sent.fate, SegmentState::Sent | SegmentState::SentAgain))?;
        let sent = *self.sent.get(at)?;
        if sent.end - sent.start > most {
            self.cut(at, sent.end - sent.start - most);
            return self.probe(most);
        }
        let sent = self.sent.get_mut(at)?;
        sent.transmissions = sent.transmissions.saturating_add(1);
        Some(*sent)
    }

    fn cut(&mut self, at: usize, most: u64) {
        let Some(sent) = self.sent.get_mut(at) else { return };
        if sent.end - sent.start <= most {
            return;
        }
        let rest = SentSegment { start: sent.start + most, ..*sent };
        sent.end = rest.start;
        if matches!(rest.fate, SegmentState::Sent | SegmentState::SentAgain) {
            self.pipe += 1;
        }
        self.sent.insert(at + 1, rest);
    }

    /// Handles an acknowledgment up to `acknowledged`, and SACK `blocks`.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        acknowledged: u64,
        blocks: &[(u64, u64)],
    ) -> AcknowledgmentEffect {
        let mut progress = AcknowledgmentEffect::default();
        let mut again = false;
        while let Some(sent) = self.sent.front_mut().filter(|sent| sent.start < acknowledged) {
            again |= sent.transmissions > 1 && sent.fate != SegmentState::Sacked;
            if sent.transmissions == 1 && sent.fate != SegmentState::Sacked && progress.rtt.is_none() {
                progress.rtt = Some(now.since(sent.first));
            }
            if acknowledged < sent.end {
                sent.start = acknowledged;
                break;
            }
            match sent.fate {
                SegmentState::Sent | SegmentState::SentAgain => self.pipe -= 1,
                SegmentState::Sacked => self.sacked -= 1,
                SegmentState::Lost => {}
            }
            progress.segments += u32::from(sent.fate != SegmentState::Sacked);
            self.sent.pop_front();
        }
        // A segment after a gap has waited for it, so its time does not measure the path. RFC 6298, section 3: timing
        // stops with a retransmission, as in Linux for all segments of one acknowledgment.
        progress.rtt = progress.rtt.filter(|_| !again);
        for (start, end) in blocks {
            for sent in self.sent.iter_mut().filter(|sent| sent.start >= *start && sent.end <= *end) {
                if sent.fate == SegmentState::Sacked {
                    continue;
                }
                if sent.transmissions == 1 && progress.rtt.is_none() {
                    progress.rtt = Some(now.since(sent.first));
                }
                self.pipe -= u32::from(sent.fate != SegmentState::Lost);
                self.sacked += 1;
                sent.fate = SegmentState::Sacked;
                progress.segments += 1;
                progress.sacked = true;
            }
        }
        progress
    }

    /// Marks segments as lost that precede three SACKed segments; fewer if the flight is shorter and no `more` will
    /// follow (RFC 5827, section 3.2). Returns true if any is new.
    pub(super) fn mark_lost(&mut self, more: bool) -> bool {
        let short = if more { THRESHOLD } else { self.len().saturating_sub(1).clamp(1, THRESHOLD) };
        let mut behind = self.sacked;
        let mut any = false;
        for sent in &mut self.sent {
            match sent.fate {
                SegmentState::Sacked => behind -= 1,
                SegmentState::Sent if behind >= short => {
                    sent.fate = SegmentState::Lost;
                    self.pipe -= 1;
                    any = true;
                }
                _ => {}
            }
            if behind < short {
                break;
            }
        }
        any
    }

    /// Marks the first segment as lost: the third duplicate acknowledgment, or a partial one. RFC 6582, section 3.2.
    pub(super) fn mark_first_lost(&mut self) -> bool {
        match self.sent.front_mut() {
            Some(sent) if sent.fate == SegmentState::Sent => {
                sent.fate = SegmentState::Lost;
                self.pipe -= 1;
                true
            }
            _ => false,
        }
    }

    /// Marks all segments as lost that are not SACKed, after the retransmission timeout.
    pub(super) fn mark_all_lost(&mut self) {
        for sent in self.sent.iter_mut().filter(|sent| sent.fate != SegmentState::Sacked) {
            sent.fate = SegmentState::Lost;
        }
        self.pipe = 0;
    }

    /// Number of transmissions of the first segment.
    pub(super) fn transmissions_of_first(&self) -> u8 {
        self.sent.front().map_or(0, |sent| sent.transmissions)
    }

    pub(super) fn any_lost(&self) -> bool {
        self.sent.iter().any(|sent| sent.fate == SegmentState::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_behind_a_hole_tells_no_round_trip() {
        let mut board = Scoreboard::default();
        for at in 0..3 {
            board.push(Instant::from_millis(at), 1 + 100 * at, 101 + 100 * at, false);
        }
        let first = board.acknowledge(Instant::from_millis(50), 101, &[]);
        assert_eq!(first.rtt, Some(Duration::from_millis(50)));
        board.mark_all_lost();
        board.send_again(100);
        // The third one had arrived: the acknowledgment of the second one covers it after a second.
        let both = board.acknowledge(Instant::from_millis(1_050), 301, &[]);
        assert_eq!((both.segments, both.rtt), (2, None));
    }
}
