//! Flows that come back for a context that another flow took from them after it had paid.
//!
//! Where some more flows than contexts follow each other in turn, each that gets a context takes it from the one that needs it
//! next. Once this is seen, one in [`SHARED`] requests gets a context: enough for the others to keep theirs for longer.

/// Requests that share a context while flows come back. Odd, since a packet may request two.
const SHARED: u16 = 3;

/// Number of flows that are known when they come back.
const TAKEN: usize = 4;

/// What a flow that comes back adds to the count of returns; a context that has paid and ends subtracts 1.
const RETURN: u8 = 2;

/// Count of returns from which on contexts are shared, and its upper limit.
const RETURNS: u8 = 16;
const MOST_RETURNS: u8 = 32;

/// Contexts that were taken from their flows, and requests for others.
#[derive(Debug)]
pub(super) struct Churn {
    returns: u8,
    /// Requests since a context was given.
    asked: u16,
    /// Bits of the hashes of the flows whose contexts were taken last after they had paid; 0 for none.
    taken: [u16; TAKEN],
    at: u8,
}

impl Churn {
    pub(super) const fn new() -> Self {
        Self { returns: 0, asked: 0, taken: [0; TAKEN], at: 0 }
    }

    /// Records that another flow takes the context of the flow with that hash, which has paid.
    pub(super) fn note_end(&mut self, hash: u32) {
        self.returns = self.returns.saturating_sub(1);
        self.taken[usize::from(self.at) % TAKEN] = hash as u16 | 1;
        self.at = self.at.wrapping_add(1);
    }

    /// Counts the request of a new flow, and returns true if it may take a context.
    pub(super) fn admits(&mut self, hash: u32) -> bool {
        if let Some(taken) = self.taken.iter_mut().find(|taken| **taken == hash as u16 | 1) {
            *taken = 0;
            self.returns = (self.returns + RETURN).min(MOST_RETURNS);
        }
        self.asked = self.asked.saturating_add(1);
        let is_given = self.returns < RETURNS || self.asked >= SHARED;
        self.asked *= u16::from(!is_given);
        is_given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_in_turn_share_the_contexts_that_have_paid() {
        let mut churn = Churn::new();
        // One flow more than contexts: the flow that loses its context is the next one.
        let mut given = 0;
        for flow in (1..601).step_by(2) {
            if churn.admits(flow) {
                churn.note_end(flow + 2);
                given += 1;
            }
        }
        assert!((100..200).contains(&given), "{given}");
    }
}
