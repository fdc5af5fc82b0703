//! Selection of the schemes that the page shows.

use thinair_analyze::outcome::{Outcome, Scheme};

/// The best mode of each scheme, fewest octets first.
pub(super) struct ShownSchemes<'o> {
    outcome: &'o Outcome,
    /// Index of each scheme in the outcome, and the scheme.
    schemes: Vec<(usize, &'o Scheme)>,
}

impl<'o> ShownSchemes<'o> {
    pub(super) fn of(outcome: &'o Outcome) -> Self {
        let mut best: Vec<(usize, &Scheme)> = Vec::new();
        let is_empty = outcome.totals.packets == 0;
        for (at, scheme) in outcome.totals.schemes.iter().enumerate().filter(|_| !is_empty) {
            let rank = |scheme: &Scheme| (!is_recommended(outcome, scheme), scheme.sent_bytes());
            match best.iter_mut().find(|(_, one)| one.scheme == scheme.scheme) {
                Some(one) if rank(scheme) < rank(one.1) => *one = (at, scheme),
                Some(_) => {}
                None => best.push((at, scheme)),
            }
        }
        best.sort_by_key(|(_, scheme)| scheme.sent_bytes());
        Self { outcome, schemes: best }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &'o Scheme)> {
        self.schemes.iter().copied()
    }

    /// Returns the recommended scheme, or else the one with fewest octets; `None` if there is no packet.
    pub(super) fn best(&self) -> Option<&'o Scheme> {
        let recommended = self.iter().find(|(_, scheme)| is_recommended(self.outcome, scheme));
        recommended.or_else(|| self.iter().next()).map(|(_, scheme)| scheme)
    }
}

fn is_recommended(outcome: &Outcome, scheme: &Scheme) -> bool {
    outcome.recommendation.as_ref().is_some_and(|best| {
        best.scheme == scheme.scheme
            && scheme.mode == Some(best.mode)
            && scheme.sent_bytes() == best.bytes_out
    })
}
