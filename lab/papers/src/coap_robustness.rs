//! `coap-robustness`: what comes through a link that loses, reorders, doubles and damages packets.

mod condition;
mod expected;
mod run;
mod show;

use condition::Condition;
use run::{Case, Count, Job, Policy, simulate};
use thinair_rohc::Mode;

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::Row;
use crate::sweep::sweep;
use crate::traffic::{Kind, Version};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapRobustness;

const ABOUT: About = About {
    name: "coap-robustness",
    title: "CoAP headers over a link that loses, reorders, doubles and damages packets",
    source: "simulation of the design of profile 0x0081 (formats pt_0, pt_1, pt_0c)",
    claim: &[
        "A packet that is delivered with a wrong header is the worst that compression can do. With the default formats \
            none is, up to a loss of 20 % in bursts of 5 packets on average, and hardly one in a million beyond; what \
            arrives is delivered.",
        "The format of 1 octet is not safe on such links: 7.5 % of what was received came out wrong at 20 % in bursts of \
            5 without feedback.",
    ],
    method: &[
        "A packet each 10 ms through a compressor, a link and a decompressor; in O-mode feedback goes back over a link \
            that loses as much. Loss: the simple Gilbert model (1, 5, 10, 20, 30 %; bursts of 1, 2, 5, 10 on average). \
            Late: one in ten, by up to 1, 4 or 8 places. Twice: one in ten, up to 8 places later. Mixed: all of these with \
            a loss of 10 % in bursts of 5. Damage: bit error rates of 1 in 10,000 and 1 in 1,000, with a CRC-32 of the \
            link and without.",
        "wrong: delivered with another header than was sent, octet by octet; damage in the payload under a carried \
            checksum is told apart. dropped: arrived undamaged and not delivered, for reasons of compression; percent of \
            what arrived. octets: mean of a packet sent, payload included, feedback not.",
        "The default policy (formats auto, U-mode, default refreshes) is held to the bars over flows a on IPv6 \
            and d on IPv4, with the checksum carried and elided: in full 1,000,000 packets through each loss cell for each of 10 \
            seeds. Every policy, flow and mode goes through every cell with fewer packets (in full 20,000 for each of 10 seeds). --seed is the first of the seeds. \
            A quick run loses nothing of the first 64 packets, as its shares would else hang on them.",
    ],
    theirs: &[
        "Wrong deliveries of pt_0 at 20 % in bursts of 5 and at 30 % in bursts of 10 without feedback, from the simulation \
            that the design began with: 60,000 packets, a decoder of Message IDs.",
        "expected: after a run of lost packets that the bits of the MSN do not bridge, each wrong MSN that is tried passes \
            the check with 2^-w: runs x sum over the tries of (1 - 1/b)^(X - 1) x 2^-w, where X packets lost in a row make \
            that try wrong. A check that is bound to the MSN does better.",
        "crc-bound: damaged packets that reached the decompressor, times 2^-w.",
    ],
    why_different: &[
        "pt_0 is sent only as long as a context is settled; a decompressor that fails often gives its context up and waits \
            for a refresh, so that it delivers fewer wrong packets, and drops more, than one that goes on guessing.",
        "The bound of a CRC holds for damage that looks random to it. Single bits are always found; a damaged first octet \
            may name another format, with a shorter check.",
    ],
};

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Packets and seeds of a cell of the default policy.
    default: (u64, u64),
    /// Packets and seeds of any other.
    others: (u64, u64),
    /// Packets at the start that nothing happens to.
    spared: u64,
}

const FULL: Scale = Scale { default: (1_000_000, 10), others: (20_000, 10), spared: 0 };
const QUICK: Scale = Scale { default: (20_000, 3), others: (400, 3), spared: 64 };

/// The flows that the default policy is held to.
const HELD: [(Kind, Version); 2] = [(Kind::A, Version::V6), (Kind::D, Version::V4)];
const KINDS: [Kind; 4] = [Kind::A, Kind::D, Kind::CCount, Kind::H];

/// A case under a condition, with the mean of its seeds.
#[derive(Clone, Copy, Debug)]
struct Cell {
    case: Case,
    condition: Condition,
    packets: u64,
    seeds: u64,
    count: Count,
}

impl Paper for CoapRobustness {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let scale = if plan.quick { QUICK } else { FULL };
        let cells = cells(&scale);
        measure(plan, scale.spared, cells, progress)
    }
}

fn measure(plan: &Plan, spared: u64, cells: Vec<Cell>, progress: Progress<'_>) -> Result<Findings, Error> {
    let seeds = |cell: &Cell| (0..cell.seeds).map(|more| plan.seed.wrapping_add(more));
    let job = |cell: &Cell, seed| Job {
        case: cell.case,
        condition: cell.condition,
        packets: cell.packets,
        spared,
        seed,
    };
    let jobs: Vec<_> = cells.iter().flat_map(|cell| seeds(cell).map(|seed| job(cell, seed))).collect();
    let counts = sweep(&jobs, plan.threads, progress, |job| job.packets, simulate)?;
    let mut counts = counts.into_iter();
    let cells: Vec<_> = cells
        .into_iter()
        .map(|cell| Cell { count: counts.by_ref().take(cell.seeds as usize).sum(), ..cell })
        .collect();
    Ok(Findings {
        rows: cells.iter().flat_map(Cell::rows).collect(),
        ours: show::sections(&cells),
        left_out: Vec::new(),
    })
}

/// Every policy, flow, version and mode under every condition.
fn cells(scale: &Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for policy in Policy::ALL {
            for (kind, version) in
                KINDS.into_iter().flat_map(|kind| Version::ALL.map(|version| (kind, version)))
            {
                let case = Case { kind, version, policy, mode };
                for condition in Condition::all() {
                    let held = case.is_held() && condition.loss().is_some();
                    let (packets, seeds) = if held { scale.default } else { scale.others };
                    cells.push(Cell { case, condition, packets, seeds, count: Count::default() });
                }
            }
        }
    }
    cells
}

impl Case {
    /// Whether it is held to the bars: the default policy and one of its flows.
    fn is_held(&self) -> bool {
        matches!(self.policy, Policy::AutoCarried | Policy::AutoElided)
            && self.mode == Mode::Unidirectional
            && HELD.contains(&(self.kind, self.version))
    }
}

impl Cell {
    /// The bar for wrong deliveries, a seed.
    fn most_wrong(&self) -> Option<f64> {
        let (rate, burst) = self.condition.loss().filter(|_| self.case.is_held())?;
        Some(match (rate, burst) {
            (..=20, ..=5) => 0.0,
            (..=20, _) => 0.1,
            _ => 0.5,
        })
    }

    /// The bar for what is dropped, in percent of what arrived.
    fn most_dropped(&self) -> Option<f64> {
        self.condition.loss().filter(|_| self.case.is_held()).map(|_| 0.1)
    }

    /// Mean wrong deliveries of a seed.
    fn wrong(&self) -> f64 {
        self.count.wrong as f64 / self.seeds as f64
    }

    /// What the formats let expect of a seed under loss, in U-mode.
    fn expected(&self) -> Option<f64> {
        let (rate, burst) = self.condition.loss().filter(|_| self.case.mode == Mode::Unidirectional)?;
        Some(expected::wrong(self.case.policy.format()?, self.packets, rate, burst))
    }

    /// Damaged packets that pass a check of the format by chance, a seed.
    fn crc_bound(&self) -> Option<f64> {
        let bits = self.case.policy.check_bits();
        let damaged = self.count.damaged as f64 / self.seeds as f64;
        self.condition.damages().then_some(damaged / f64::from(1_u32 << bits))
    }

    /// What the design was begun with: wrong packets of 60,000, as so many of ours.
    fn theirs(&self) -> Option<f64> {
        if self.case.policy != Policy::Pt0 || self.case.mode != Mode::Unidirectional {
            return None;
        }
        let of_sixty_thousand = match self.condition.loss()? {
            (20, 5) => 3_630.0,
            (30, 10) => 4_832.0,
            _ => return None,
        };
        Some(of_sixty_thousand * self.packets as f64 / 60_000.0)
    }

    fn rows(&self) -> Vec<Row> {
        let id = format!("{}/{}", self.case.name(), self.condition.name());
        let over =
            format!("{} over {}, {}", self.case.kind.what(), self.case.version.name(), self.condition.what());
        let mut rows = vec![
            Row::new(
                format!("{id}/wrong"),
                format!("{over}: delivered wrong, mean of {} seeds of {} packets", self.seeds, self.packets),
                "packets",
                self.wrong(),
            )
            .theirs(self.theirs())
            .peer("expected", self.expected())
            .peer("crc-bound", self.crc_bound())
            .at_most(self.most_wrong()),
            Row::new(
                format!("{id}/dropped"),
                format!("{over}: arrived and not delivered"),
                "%",
                self.count.dropped_percent(),
            )
            .at_most(self.most_dropped()),
            Row::new(
                format!("{id}/octets"),
                format!("{over}: mean of a packet"),
                "octets",
                self.count.mean_octets(),
            ),
        ];
        if self.condition.damages() {
            rows.push(Row::new(
                format!("{id}/payload"),
                format!("{over}: delivered with a right header and a damaged payload"),
                "packets",
                self.count.payload as f64 / self.seeds as f64,
            ));
        }
        rows
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TINY: Scale = Scale { default: (300, 2), others: (60, 1), spared: 10 };

    /// Of every seventh cell, which come to all conditions and policies.
    fn found(plan: &Plan) -> Findings {
        let cells = cells(&TINY).into_iter().step_by(7).collect();
        measure(plan, TINY.spared, cells, &|_, _| ()).unwrap()
    }

    #[test]
    fn a_seed_determines_every_figure_whatever_the_threads() {
        let one = found(&Plan { seed: 7, threads: 1, ..Plan::default() });
        let again = found(&Plan { seed: 7, threads: 3, ..Plan::default() });
        assert_eq!(one.rows, again.rows);
        let other = found(&Plan { seed: 8, threads: 2, ..Plan::default() });
        assert_ne!(one.rows, other.rows);
    }

    #[test]
    fn every_loss_cell_of_the_default_policy_is_held_to_both_bars() {
        let cells = cells(&FULL);
        let held: Vec<_> = cells.iter().filter(|cell| cell.most_wrong().is_some()).collect();
        assert_eq!(held.len(), 20 * 2 * HELD.len());
        assert!(held.iter().all(|cell| (cell.packets, cell.seeds) == (1_000_000, 10)));
        assert!(held.iter().all(|cell| cell.most_dropped() == Some(0.1)));
        for (loss, most) in
            [((1, 1), 0.0), ((20, 5), 0.0), ((10, 10), 0.1), ((20, 10), 0.1), ((30, 1), 0.5), ((30, 10), 0.5)]
        {
            let cell = held.iter().find(|cell| cell.condition.loss() == Some(loss)).unwrap();
            assert_eq!(cell.most_wrong(), Some(most), "{loss:?}");
        }
    }

    #[test]
    fn ids_are_unique() {
        let cells = cells(&TINY);
        let rows: Vec<_> = cells.iter().flat_map(Cell::rows).collect();
        let ids: BTreeSet<_> = rows.iter().map(Row::id).collect();
        assert_eq!(ids.len(), rows.len());
        assert!(ids.contains("u/auto-carried/a/v6/loss/20/5/wrong"));
    }
}
