//! Pending feedback that waits for a packet, and a limit for negative feedback.

use std::time::Duration;

use thinair_rohc::Instant;
use thinair_rohc::cid::Cid;
use thinair_rohc::feedback::AckType;

/// Maximum pending feedback in octets: some dozens of elements.
pub(super) const ROOM: usize = 512;

/// Pending elements, one after the other. Each contains its length (RFC 5795, section 5.2.4.1).
#[derive(Debug)]
pub(super) struct PendingElements {
    octets: Vec<u8>,
    /// Time at which they are sent without a packet.
    due: Option<Instant>,
    /// Earliest time at which feedback is sent.
    quiet_until: Instant,
    interval: Duration,
}

impl PendingElements {
    /// Returns an empty queue. Feedback is sent at most once per interval.
    pub(super) fn new(interval: Duration) -> Self {
        Self { octets: Vec::with_capacity(ROOM), due: None, quiet_until: Instant::ZERO, interval }
    }

    /// Adds an element that can wait until `due`. Returns false if there is no room for it.
    pub(super) fn push(&mut self, element: &[u8], due: Instant) -> bool {
        let fits = self.octets.len() + element.len() <= ROOM;
        if fits {
            self.octets.extend_from_slice(element);
            self.due.get_or_insert(due.max(self.quiet_until));
        }
        fits
    }

    /// All pending octets, including type octets.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// True if there is feedback that may be sent with a packet.
    pub(super) fn may_go(&self, now: Instant) -> bool {
        self.due.is_some() && now >= self.quiet_until
    }

    /// Empties the queue after its feedback was sent.
    pub(super) fn clear(&mut self, now: Instant) {
        self.octets.clear();
        self.due = None;
        self.quiet_until = now + self.interval;
    }

    /// Passes packets of at most `most` octets with feedback only to `sink`; returns their number. A longer
    /// element is dropped: no carrier is that small.
    pub(super) fn go_alone(&mut self, now: Instant, most: usize, mut sink: impl FnMut(&[u8])) -> u64 {
        let mut packets = 0;
        let (mut start, mut end) = (0, 0);
        while let Some(len) = element_len(&self.octets[end..]) {
            if end + len - start > most {
                if end > start {
                    sink(&self.octets[start..end]);
                    packets += 1;
                }
                start = end;
            }
            end += len;
            if len > most {
                start = end;
            }
        }
        if end > start {
            sink(&self.octets[start..end]);
            packets += 1;
        }
        self.clear(now);
        packets
    }

    /// Number of pending elements.
    pub(super) fn elements(&self) -> u64 {
        let (mut at, mut elements) = (0, 0);
        while let Some(len) = element_len(&self.octets[at..]) {
            at += len;
            elements += 1;
        }
        elements
    }
}

/// Length of the first element, with its type octet.
fn element_len(octets: &[u8]) -> Option<usize> {
    let len = match *octets {
        [0b1111_0000, size, ..] => 2 + usize::from(size),
        [kind, ..] => 1 + usize::from(kind & 0b111),
        [] => return None,
    };
    (len <= octets.len()).then_some(len)
}

/// Minimum time between two negative acknowledgments of one CID that take effect. The first one makes the
/// compressor repeat everything in several packets; those that follow directly were sent before these packets
/// arrived.
pub const NACK_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of negative acknowledgments per second that take effect on a channel; the number of its
/// contexts, if that is larger.
pub const NACKS_A_SECOND: u64 = 100;

/// Limiter of negative acknowledgments, so that a flood of them cannot make every packet large.
#[derive(Debug)]
pub(super) struct Limiter {
    /// For each CID, time and severity of the last one.
    last: Vec<Option<(Instant, u8)>>,
    /// Level of a leaky bucket, as the time at which the accepted acknowledgments would have passed at the
    /// maximum rate.
    level: Instant,
    each: u64,
}

impl Limiter {
    pub(super) fn new(contexts: usize) -> Self {
        let each = 1_000_000_000 / NACKS_A_SECOND.max(contexts as u64);
        Self { last: vec![None; contexts], level: Instant::ZERO, each }
    }

    /// True if an acknowledgment takes effect: always if it is positive; if it is negative, unless a similar
    /// one arrived shortly before, or too many in the last second.
    pub(super) fn passes(&mut self, now: Instant, cid: Cid, ack: AckType) -> bool {
        let strength = match ack {
            AckType::Ack => return true,
            AckType::Nack => 1,
            AckType::StaticNack => 2,
        };
        // Invalid CIDs are rejected elsewhere.
        let Some(last) = self.last.get_mut(cid.index()) else { return true };
        if let Some((at, severity)) = *last
            && strength <= severity
            && now.since(at) < NACK_INTERVAL
        {
            return false;
        }
        let level = self.level.max(now);
        if level.since(now) > Duration::from_secs(1) - Duration::from_nanos(self.each) {
            return false;
        }
        self.level = level + Duration::from_nanos(self.each);
        *last = Some((now, strength));
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_goes_in_packets_that_fit() {
        let mut waiting = PendingElements::new(Duration::ZERO);
        let elements: [&[u8]; 4] =
            [&[0xF2, 1, 2], &[0xF1, 3], &[0xF0, 8, 1, 2, 3, 4, 5, 6, 7, 8], &[0xF3, 4, 5, 6]];
        for element in elements {
            assert!(waiting.push(element, Instant::from_millis(20)));
        }
        assert_eq!((waiting.elements(), waiting.due()), (4, Some(Instant::from_millis(20))));
        let mut packets = Vec::new();
        assert_eq!(waiting.go_alone(Instant::ZERO, 10, |packet| packets.push(packet.to_vec())), 3);
        assert_eq!(
            packets,
            [[elements[0], elements[1]].concat(), elements[2].to_vec(), elements[3].to_vec()]
        );
        assert_eq!((waiting.octets(), waiting.due()), (&[][..], None));
        waiting.push(elements[2], Instant::ZERO);
        waiting.push(elements[1], Instant::ZERO);
        packets.clear();
        assert_eq!(waiting.go_alone(Instant::ZERO, 9, |packet| packets.push(packet.to_vec())), 1);
        assert_eq!(packets, [elements[1]]);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut waiting = PendingElements::new(Duration::ZERO);
        let taken = (0..1_000).filter(|_| waiting.push(&[0xF2, 1, 2], Instant::ZERO)).count();
        assert_eq!(taken, ROOM / 3);
        assert_eq!(waiting.go_alone(Instant::ZERO, 60, |packet| assert!(packet.len() <= 60)), 9);
    }

    #[test]
    fn a_storm_counts_a_few_times() {
        let mut limiter = Limiter::new(16);
        let cid = |n| Cid::new(n).unwrap();
        let ms = Instant::from_millis;
        assert!(limiter.passes(ms(0), cid(3), AckType::Nack));
        assert!(!limiter.passes(ms(99), cid(3), AckType::Nack));
        assert!(limiter.passes(ms(99), cid(3), AckType::Ack));
        assert!(limiter.passes(ms(99), cid(4), AckType::Nack));
        // It is more severe.
        assert!(limiter.passes(ms(99), cid(3), AckType::StaticNack));
        assert!(!limiter.passes(ms(198), cid(3), AckType::Nack));
        assert!(limiter.passes(ms(199), cid(3), AckType::Nack));
        let mut passed = 0;
        for us in 0..2_000_000_u64 / 50 {
            let now = Instant::from_nanos(1_000_000_000 + us * 50_000);
            passed += u32::from(limiter.passes(now, cid((us % 16) as u16), AckType::StaticNack));
        }
        assert!((200..=300).contains(&passed), "{passed}");
    }
}
