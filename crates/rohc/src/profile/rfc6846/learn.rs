//! Learning at the compressor: the behavior of IP-IDs, acknowledgment numbers and ECN.

use super::state::Behavior;

/// Largest distance of an IP-ID from the last one for it to count: other flows of the host use some, too.
const NEAR: u16 = 16;

/// Number of IP-IDs in a row that must count before they are treated as counting.
const COUNTS: u8 = 4;

/// Number of IP-IDs that do not count, less half of those that do, from which on they are treated as random.
const MISSES: u8 = 6;

/// Number of acknowledgments in a row that must be multiples of a stride before it is used.
const STRIDES: u8 = 24;

/// Smallest stride that is considered, in octets.
const LEAST_STRIDE: u32 = 128;

/// Largest number of strides in one acknowledgment.
const MAX_STRIDES: u32 = 8;

/// Number of packets without a change after which ECN counts as unused.
const QUIET: u8 = 48;

/// Observes the IP-ID of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IpIds {
    counts: u8,
    swapped: u8,
    zeros: u8,
    misses: u8,
}

impl IpIds {
    /// Returns the behavior for the first packet.
    pub(super) fn first(id: u16) -> Behavior {
        if id == 0 { Behavior::Constant } else { Behavior::Sequential }
    }

    /// Returns the behavior for the next packet. While the IP-ID `is_full` in every packet, a change costs
    /// nothing.
    pub(super) fn watch(&mut self, behavior: Behavior, last: u16, id: u16, is_full: bool) -> Behavior {
        let run = |run: u8, goes_on: bool| if goes_on { run.saturating_add(1) } else { 0 };
        let is_near = |from: u16, to: u16| (1..=NEAR).contains(&to.wrapping_sub(from));
        self.counts = run(self.counts, is_near(last, id));
        self.swapped = run(self.swapped, is_near(last.swap_bytes(), id.swap_bytes()));
        self.zeros = run(self.zeros, id == 0);
        // Normally it continues as before.
        match behavior {
            Behavior::Constant if id == 0 => return Behavior::Constant,
            Behavior::Sequential | Behavior::Swapped => {
                let counts = if behavior == Behavior::Sequential { self.counts } else { self.swapped };
                if counts > 0 {
                    self.misses = self.misses.saturating_sub(1);
                    return behavior;
                }
            }
            Behavior::Constant | Behavior::Random => {}
        }
        let next = self.best(if is_full { 1 } else { COUNTS });
        match behavior {
            // Linux has 0 in a SYN-ACK, and counts from then on.
            Behavior::Constant => next.unwrap_or(Behavior::Sequential),
            Behavior::Random => next.unwrap_or(Behavior::Random),
            Behavior::Sequential | Behavior::Swapped => {
                if let Some(next) = next.filter(|next| *next != behavior) {
                    self.misses = 0;
                    return next;
                }
                self.misses += 2;
                if self.misses >= MISSES || is_full {
                    self.misses = 0;
                    return Behavior::Random;
                }
                behavior
            }
        }
    }

    fn best(&self, enough: u8) -> Option<Behavior> {
        if self.zeros >= enough {
            Some(Behavior::Constant)
        } else if self.counts >= enough {
            Some(Behavior::Sequential)
        } else if self.swapped >= enough {
            Some(Behavior::Swapped)
        } else {
            None
        }
    }
}

/// Detects a stride of acknowledgment numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strides {
    candidate: u16,
    run: u8,
}

impl Strides {
    /// Records a step of the acknowledgment number. Returns a stride that is worth using.
    #[inline]
    pub(super) fn watch(&mut self, step: u32) -> Option<u16> {
        if step == 0 {
            return None;
        }
        let candidate = u32::from(self.candidate);
        if candidate != 0 && step.is_multiple_of(candidate) && step / candidate <= MAX_STRIDES {
            self.run = self.run.saturating_add(1);
        } else {
            self.run = 0;
            self.candidate = if step >= LEAST_STRIDE { u16::try_from(step).unwrap_or(0) } else { 0 };
        }
        (self.run >= STRIDES).then_some(self.candidate)
    }
}

/// Detects the use of ECN: from its first change on, until nothing has changed for long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    quiet: u8,
}

impl Ecn {
    #[inline]
    pub(super) fn watch(&mut self, is_used: bool, has_changed: bool) -> bool {
        self.quiet = if has_changed { 0 } else { self.quiet.saturating_add(1) };
        has_changed || is_used && self.quiet < QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(ids: &[u16]) -> std::vec::Vec<Behavior> {
        let mut watcher = IpIds::default();
        let mut behavior = IpIds::first(ids[0]);
        let mut seen = std::vec![behavior];
        for (i, pair) in ids.windows(2).enumerate() {
            behavior = watcher.watch(behavior, pair[0], pair[1], i < 2);
            seen.push(behavior);
        }
        seen
    }

    #[test]
    fn ip_ids_are_told_apart() {
        use Behavior::{Constant, Random, Sequential, Swapped};
        assert_eq!(watch(&[5, 6, 9, 10, 11]), [Sequential; 5]);
        assert_eq!(watch(&[0, 0, 0, 0]), [Constant; 4]);
        assert_eq!(watch(&[0, 700, 701, 702]), [Constant, Sequential, Sequential, Sequential]);
        assert_eq!(watch(&[0, 0, 0, 700, 701]), [Constant, Constant, Constant, Sequential, Sequential]);
        assert_eq!(watch(&[0x0500, 0x0600, 0x0700, 0x0800])[1..], [Swapped; 3]);
        assert_eq!(watch(&[5, 900, 50, 7, 10_000])[1..], [Random; 4]);
        // One jump does not change the behavior, three do.
        assert_eq!(watch(&[5, 6, 7, 8, 900, 901, 902])[6], Sequential);
        assert_eq!(watch(&[5, 6, 7, 8, 900, 50, 7000, 3])[7], Random);
        assert_eq!(watch(&[5, 900, 50, 7, 8, 9, 10, 11])[7], Sequential);
    }

    #[test]
    fn a_stride_is_found_once_it_pays() {
        let mut strides = Strides::default();
        let found: std::vec::Vec<_> = (0..40).map(|_| strides.watch(2896)).collect();
        assert!(found[..20].iter().all(Option::is_none));
        assert_eq!(found[39], Some(2896));
        assert_eq!(
            (strides.watch(2896 * 3), strides.watch(1448), strides.watch(1448)),
            (Some(2896), None, None)
        );
    }
}
