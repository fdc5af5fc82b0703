//! Feedback that waits for a packet to go in front of, and how much negative feedback counts.

use std::time::Duration;

use thinair_rohc::Instant;
use thinair_rohc::cid::Cid;
use thinair_rohc::feedback::AckType;

/// Octets of feedback that may wait: some dozens of elements.
pub(super) const ROOM: usize = 512;

/// Elements behind each other that wait. Each says its own length (RFC 5795, section 5.2.4.1).
#[derive(Debug)]
pub(super) struct Waiting {
    octets: Vec<u8>,
    /// When they go alone.
    due: Option<Instant>,
    /// Nothing goes before.
    quiet_until: Instant,
    interval: Duration,
}

impl Waiting {
    /// Nothing. From one time that elements go to the next, there is at least an interval.
    pub(super) fn new(interval: Duration) -> Self {
        Self { octets: Vec::with_capacity(ROOM), due: None, quiet_until: Instant::ZERO, interval }
    }

    /// Adds an element that may wait until `due`. False if there is no room for it.
    pub(super) fn push(&mut self, element: &[u8], due: Instant) -> bool {
        let fits = self.octets.len() + element.len() <= ROOM;
        if fits {
            self.octets.extend_from_slice(element);
            self.due.get_or_insert(due.max(self.quiet_until));
        }
        fits
    }

    /// All of it, with its type octets.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether there is something that may go with a packet.
    pub(super) fn may_go(&self, now: Instant) -> bool {
        self.due.is_some() && now >= self.quiet_until
    }

    /// It has gone.
    pub(super) fn clear(&mut self, now: Instant) {
        self.octets.clear();
        self.due = None;
        self.quiet_until = now + self.interval;
    }

    /// Hands out packets of at most `most` octets that hold nothing but feedback; returns their number. An
    /// element that is longer is left out: no carrier is so narrow.
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

    /// How many elements wait.
    pub(super) fn elements(&self) -> u64 {
        let (mut at, mut elements) = (0, 0);
        while let Some(len) = element_len(&self.octets[at..]) {
            at += len;
            elements += 1;
        }
        elements
    }
}

/// Octets of the element at the start, with its type octet.
fn element_len(octets: &[u8]) -> Option<usize> {
    let len = match *octets {
        [0b1111_0000, size, ..] => 2 + usize::from(size),
        [kind, ..] => 1 + usize::from(kind & 0b111),
        [] => return None,
    };
    (len <= octets.len()).then_some(len)
}

/// Least time between two negative acknowledgments for one CID that count. The first one has made the compressor say
/// everything again in several packets; what comes right behind it was sent before those were there.
pub const NACK_INTERVAL: Duration = Duration::from_millis(100);

/// Negative acknowledgments that count on a channel in a second, at least: as many as it has contexts, if it has more.
pub const NACKS_A_SECOND: u64 = 100;

/// Limits negative acknowledgments, so that a storm of them cannot make every packet a large one.
#[derive(Debug)]
pub(super) struct Limiter {
    /// For each CID: since when, and how much was said last.
    last: Vec<Option<(Instant, u8)>>,
    /// The time at which what has passed would have passed at the rate of the limit (a leaky bucket).
    level: Instant,
    each: u64,
}

impl Limiter {
    pub(super) fn new(contexts: usize) -> Self {
        let each = 1_000_000_000 / NACKS_A_SECOND.max(contexts as u64);
        Self { last: vec![None; contexts], level: Instant::ZERO, each }
    }

    /// Whether an acknowledgment counts: a positive one does; a negative one, unless one that said as much did a moment ago,
    /// or too many have in the last second.
    pub(super) fn passes(&mut self, now: Instant, cid: Cid, ack: AckType) -> bool {
        let strength = match ack {
            AckType::Ack => return true,
            AckType::Nack => 1,
            AckType::StaticNack => 2,
        };
        // A CID that the channel does not have is refused elsewhere.
        let Some(last) = self.last.get_mut(cid.index()) else { return true };
        if let Some((at, said)) = *last
            && strength <= said
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
        let mut waiting = Waiting::new(Duration::ZERO);
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
        let mut waiting = Waiting::new(Duration::ZERO);
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
        // It says more.
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
