//! `coap-sizes`: octets on the wire of CoAP flows in steady state, and those of the paper that began it.

mod first;
mod leshan;
mod memory;
mod peers;
mod published;
mod table;

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapSizes;

impl Paper for CoapSizes {
    fn about(&self) -> About {
        About::read("coap-sizes", include_str!("coap_sizes/paper.md"))
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        table::measure(plan, progress, &mut findings)?;
        published::measure(plan, &mut findings)?;
        first::measure(plan, &mut findings)?;
        leshan::measure(plan, &mut findings)?;
        memory::measure(&mut findings);
        Ok(findings)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn found(plan: &Plan) -> Findings {
        CoapSizes.run(plan, &|_, _| ()).unwrap()
    }

    #[test]
    fn a_seed_determines_every_figure_whatever_the_threads() {
        let one = found(&Plan { seed: 7, threads: 1, ..Plan::default() });
        let again = found(&Plan { seed: 7, threads: 3, ..Plan::default() });
        assert_eq!(one.rows, again.rows);
    }

    #[test]
    fn ids_are_unique_and_every_packet_comes_back() {
        let found = found(&Plan { seed: 3, ..Plan::default() });
        let ids: BTreeSet<_> = found.rows.iter().map(|row| row.id()).collect();
        assert_eq!(ids.len(), found.rows.len());
        let inexact = found.rows.iter().find(|row| row.id() == "round-trip/not-exact").unwrap();
        assert_eq!(inexact.ours(), Some(0.0));
    }
}
