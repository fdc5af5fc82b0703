//! New flows where more flows than contexts are in use.
//!
//! A context that another flow takes before it has paid has cost octets for nothing. Once contexts end like this, or their flows
//! come back soon, a new flow has to show that it is used more than the context that it would take: it goes uncompressed until it
//! has sent some packets while the least recently used context had none. So a flow of one packet takes no context, and of flows
//! in turn those that have contexts keep them.
//!
//! All of it takes constant time and memory: nothing for the packets of flows with contexts.

/// Number of flows without contexts that are known when they come back.
const KNOWN: usize = 32;

/// Packets of a flow without one for the packet that the least recently used context does not have: if that has paid, and if
/// not.
const PACKETS_PAID: u8 = 4;
const PACKETS_UNPAID: u8 = 8;

/// What a flow adds to the count of wasted contexts if it comes back for one that had a single use.
const RETURN: u8 = 3;

/// Count of wasted contexts from which on flows have to wait, and its upper limit.
const WASTED: u8 = 6;
const MOST_WASTED: u8 = 64;

/// How the context of a flow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has cost more octets than it has saved.
    Unpaid,
    /// Its IR packets alone were smaller than plain ones.
    Even,
    /// It has saved octets.
    Paid,
}

/// A flow without a context.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Bits of its hash.
    hash: u16,
    /// [`Churn::turn`] of its packets.
    turn: u16,
    /// Number of its packets since then.
    packets: u8,
    /// What it adds to the count of wasted contexts when it comes back.
    adds: u8,
}

/// Contexts that were taken from their flows, and flows without one.
#[derive(Debug)]
pub(super) struct Churn {
    /// Contexts that were not worth it, in excess of those that were.
    wasted: u8,
    /// Number of times that the least recently used context was used or taken, modulo 2^16.
    turn: u16,
    known: [Known; KNOWN],
    /// The next to be replaced.
    at: u8,
}

impl Churn {
    pub(super) const fn new() -> Self {
        let known = Known { hash: 0, turn: 0, packets: 0, adds: 0 };
        Self { wasted: 0, turn: 0, known: [known; KNOWN], at: 0 }
    }

    /// Records that the least recently used context is another one from now on.
    #[inline]
    pub(super) fn note_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Records that another flow takes the context of the flow with that hash.
    pub(super) fn note_end(&mut self, hash: u32, end: End) {
        match end {
            End::Unpaid => self.waste(2),
            End::Even => self.wasted = self.wasted.saturating_sub(1),
            End::Paid => self.wasted = self.wasted.saturating_sub(1 + u8::from(self.wasted < WASTED)),
        }
        let adds = if end == End::Paid { 1 } else { RETURN };
        self.know(Known { hash: hash as u16, turn: self.turn, packets: 0, adds });
    }

    /// Counts a packet of a flow without context. Returns true if it may take one; `has_paid` tells whether that has.
    pub(super) fn admits(&mut self, hash: u32, has_paid: bool) -> bool {
        let found =
            self.known.iter().position(|known| known.hash == hash as u16 && known.packets | known.adds > 0);
        if let Some(at) = found {
            let adds = core::mem::take(&mut self.known[at].adds);
            self.waste(adds);
        }
        if self.wasted < WASTED {
            return true;
        }
        let turn = self.turn;
        let at = found.unwrap_or_else(|| self.know(Known { hash: hash as u16, turn, packets: 0, adds: 0 }));
        let known = &mut self.known[at];
        if known.turn != turn {
            (known.turn, known.packets) = (turn, 0);
        }
        known.packets = known.packets.saturating_add(1);
        let packets = known.packets;
        let is_given = packets >= PACKETS_UNPAID || packets >= PACKETS_PAID && has_paid;
        if is_given {
            self.known[at].packets = 0;
        }
        is_given
    }

    fn waste(&mut self, count: u8) {
        self.wasted = (self.wasted + count).min(MOST_WASTED);
    }

    /// Notes a flow in place of the one noted first. Returns its index.
    fn know(&mut self, flow: Known) -> usize {
        let at = usize::from(self.at) % KNOWN;
        self.at = self.at.wrapping_add(1);
        self.known[at] = flow;
        at
    }
}
