//! Work of a decompressor on one packet, which tests count: nothing is left of this in a program.

#[cfg(test)]
pub(crate) use count::Work;

/// Counts steps that take about as long as one octet of CRC-7, or eight octets that are copied, or of which a CRC-3 or a checksum is
/// computed at once, or a message that is looked at.
#[inline(always)]
#[cfg_attr(not(test), allow(unused_variables, reason = "they are counted in tests"))]
pub(crate) fn note(steps: usize) {
    #[cfg(test)]
    Work::add(Work { candidates: 0, steps });
}

/// Counts a candidate, which is resolved, and compared with a CRC.
#[inline(always)]
pub(crate) fn note_candidate() {
    #[cfg(test)]
    Work::add(Work { candidates: 1, steps: 16 });
}

#[cfg(test)]
mod count {
    use core::cell::Cell;

    std::thread_local! {
        static WORK: Cell<Work> = const { Cell::new(Work { candidates: 0, steps: 0 }) };
    }

    /// Work that was counted.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Work {
        pub(crate) candidates: usize,
        pub(crate) steps: usize,
    }

    impl Work {
        /// Returns the work of this thread since the last call.
        pub(crate) fn take() -> Self {
            WORK.take()
        }

        pub(super) fn add(more: Self) {
            WORK.with(|work| {
                let Self { candidates, steps } = work.get();
                work.set(Self { candidates: candidates + more.candidates, steps: steps + more.steps });
            });
        }
    }
}

#[cfg(test)]
#[path = "../tests/common/hostile.rs"]
mod hostile;

#[cfg(test)]
mod tests {
    use std::println;
    use std::vec;

    use thinair_link::Random;

    use super::Work;
    use super::hostile::{HostileFlow, Run, all_gaps};
    use crate::flow::search::TRIALS;

    /// Largest number of steps for one packet, as [`note`](super::note) counts them.
    const STEPS: usize = 12_288;

    /// Candidates beside those at distances from the last packet: the one as read, late ones, and those behind a jump of a timestamp.
    const OTHERS: usize = 16;

    /// Whatever a packet is, and whatever was lost before it, the work of a decompressor is bounded. `cargo bench --bench damage` prints
    /// the time that it takes.
    #[test]
    fn the_work_on_any_packet_is_bounded() {
        for flow in HostileFlow::all() {
            let mut worst = Work::default();
            let mut out = vec![0; 4_096];
            for (mode, gap) in all_gaps() {
                let run = Run::new(flow, mode, gap, 5);
                run.attack(&mut Random::new(3), 5, |end, arrival, packet| {
                    Work::take();
                    let _ = end.receive(arrival, packet, &mut out);
                    let work = Work::take();
                    worst.candidates = worst.candidates.max(work.candidates);
                    worst.steps = worst.steps.max(work.steps);
                });
            }
            println!("{} {}: {worst:?}", flow.engine(), flow.name);
            assert!(worst.candidates <= TRIALS as usize + OTHERS, "{flow:?}: {worst:?}");
            assert!(worst.steps <= STEPS, "{flow:?}: {worst:?}");
        }
    }
}
