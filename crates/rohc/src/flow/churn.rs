//! New flows where more flows than contexts are in use.
//!
//! A new flow takes the least recently used context. If that had not paid, its IR packets were for nothing; if its flow comes back
//! soon, they are sent again. Once this happens often, a new flow has to show that it needs a context more than the one that would
//! lose it: it goes by another profile, at last 0x0000, until it has sent some packets while the least recently used context had
//! none. So a flow of one packet takes no context, and of flows in turn those that have a context keep it.
//!
//! All of it takes constant time for each packet of a flow without context, none for others, and constant memory.

/// Number of flows without context that are known when they come back.
const KNOWN: usize = 32;

/// Packets of a flow without any of the least recently used context after which the flow may take that: if it has paid, and if it
/// has not.
pub(crate) const IF_PAID: u8 = 4;
pub(crate) const IF_UNPAID: u8 = 8;

/// Waste of a context that ends before it has paid, and of a flow that comes back for a context that had IR packets alone, or others.
const UNPAID: u8 = 2;
const BACK_FOR_IR: u8 = 3;
const BACK: u8 = 1;

/// Waste from which on flows have to wait, and its upper limit.
const WASTE: u8 = 6;
const MOST_WASTE: u8 = 12;

/// How a context has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It has cost more octets than it has saved.
    Unpaid,
    /// Its IR packets were no larger than plain ones.
    Even,
    /// It has saved octets.
    Paid,
}

/// A flow without context.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Bits of its hash.
    hash: u16,
    /// [`Churn::turn`] of its packets.
    turn: u16,
    /// Number of its packets in this turn.
    packets: u8,
    /// Waste that is added when it comes back.
    adds: u8,
}

/// Waste of contexts, and flows without any.
#[derive(Debug)]
pub(crate) struct Churn {
    waste: u8,
    /// Number of times that the least recently used context was used or taken, modulo 2^16.
    turn: u16,
    waiting: [Waiting; KNOWN],
    /// Index of the flow that was noted first.
    first: u8,
    /// Packets of flows that waited before, modulo 2^32.
    again: u32,
}

impl Churn {
    pub(crate) const fn new() -> Self {
        let none = Waiting { hash: 0, turn: 0, packets: 0, adds: 0 };
        Self { waste: 0, turn: 0, waiting: [none; KNOWN], first: 0, again: 0 }
    }

    /// Records that another context is the least recently used one from now on.
    #[inline]
    pub(crate) fn note_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Records that another flow takes the context of the flow with that hash.
    pub(crate) fn note_end(&mut self, hash: u32, end: End) {
        match end {
            End::Unpaid => self.add(UNPAID),
            End::Even => self.waste = self.waste.saturating_sub(1),
            // Flows that pay for contexts and come back for them waste nothing: while none waits, the end counts for more
            // than the return.
            End::Paid => self.waste = self.waste.saturating_sub(1 + u8::from(!self.is_waiting())),
        }
        let adds = if end == End::Paid { BACK } else { BACK_FOR_IR };
        let at = self.entry(hash);
        self.waiting[at] = Waiting { hash: hash as u16, turn: self.turn, packets: 0, adds };
    }

    /// True if a flow without context has had a packet before.
    pub(crate) fn knows(&self, hash: u32) -> bool {
        self.find(hash).is_some()
    }

    /// Records a packet of a flow that gets no context for now.
    pub(crate) fn note_without(&mut self, hash: u32) {
        let at = self.entry(hash);
        self.waiting[at] = Waiting { hash: hash as u16, turn: self.turn, packets: 1, adds: 0 };
    }

    /// Counts a packet of a flow without context. Returns the number of its packets since the least recently used context had
    /// one; `None` if flows need not wait.
    pub(crate) fn count(&mut self, hash: u32) -> Option<u8> {
        let known = self.find(hash);
        if let Some(at) = known {
            let adds = core::mem::take(&mut self.waiting[at].adds);
            self.add(adds);
        }
        if !self.is_waiting() {
            return None;
        }
        self.again = self.again.wrapping_add(u32::from(known.is_some()));
        let (at, turn) = (self.entry(hash), self.turn);
        let flow = &mut self.waiting[at];
        let before = if flow.hash == hash as u16 && flow.turn == turn { flow.packets } else { 0 };
        *flow = Waiting { hash: hash as u16, turn, packets: before.saturating_add(1), adds: 0 };
        Some(flow.packets)
    }

    /// Packets of flows that waited for a context before, modulo 2^32.
    pub(crate) const fn again(&self) -> u32 {
        self.again
    }

    /// True if new flows have to wait.
    const fn is_waiting(&self) -> bool {
        self.waste >= WASTE
    }

    fn add(&mut self, waste: u8) {
        self.waste = (self.waste + waste).min(MOST_WASTE);
    }

    /// Index of a flow that is known.
    fn find(&self, hash: u32) -> Option<usize> {
        self.waiting.iter().position(|flow| flow.hash == hash as u16)
    }

    /// Index of a flow; if it is not known, that of the one that was noted first.
    fn entry(&mut self, hash: u32) -> usize {
        self.find(hash).unwrap_or_else(|| {
            let first = usize::from(self.first) % KNOWN;
            self.first = self.first.wrapping_add(1);
            first
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Churn after `count` contexts that have ended like this, of flows that do not come back.
    fn after(count: u32, end: End) -> Churn {
        let mut churn = Churn::new();
        (0..count).for_each(|i| churn.note_end(10_000 + i, end));
        churn
    }

    #[test]
    fn flows_wait_while_contexts_end_before_they_have_paid() {
        for (count, end, waits) in [(2, End::Unpaid, false), (3, End::Unpaid, true), (500, End::Even, false)]
        {
            assert_eq!(after(count, end).count(1).is_some(), waits, "{count} {end:?}");
        }
        let mut churn = after(500, End::Unpaid);
        let paid = (0..500).take_while(|i| {
            churn.count(50_000 + i).is_some() && {
                churn.note_end(20_000 + i, End::Paid);
                true
            }
        });
        assert_eq!(paid.count(), usize::from(MOST_WASTE - WASTE + 1));
    }

    #[test]
    fn packets_count_while_the_least_recently_used_context_has_none() {
        let mut churn = after(3, End::Unpaid);
        let counts = [1, 2, 1, 1].map(|flow| churn.count(flow));
        assert_eq!(counts, [Some(1), Some(1), Some(2), Some(3)]);
        churn.note_turn();
        assert_eq!([1, 2, 1].map(|flow| churn.count(flow)), [Some(1), Some(1), Some(2)]);
        // More flows in turn than are known.
        assert_eq!(churn.again(), 5);
        (100..200).for_each(|flow| assert_eq!(churn.count(flow), Some(1)));
        assert_eq!(churn.count(1), Some(1));
        assert_eq!(churn.again(), 5);
    }

    #[test]
    fn flows_in_turn_wait_and_flows_in_bursts_do_not() {
        // One flow more than contexts: the flow that loses its context is the next one.
        for (end, waits) in [(End::Even, true), (End::Paid, false)] {
            let mut churn = Churn::new();
            let given = (0..17_000_u32).take_while(|i| {
                churn.count(i % 17).is_none() && {
                    churn.note_end((i + 1) % 17, end);
                    true
                }
            });
            assert_eq!(given.count() < 20, waits, "{end:?}");
        }
    }
}
