//! One call by the clock. The figures depend on this machine and its load.

use std::hint::black_box;
use std::time::Instant;

use super::exchange::{CallCompressor, CallDecompressor, PreparedCall, ROOM};

/// Sides per round: enough that reading the clock weighs little, few enough for a processor's caches.
const SIDES: u32 = 8;

/// Time of a call, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time {
    /// Median of all rounds.
    pub(super) median: f64,
    /// Time of the fastest round.
    pub(super) least: f64,
}

/// Time to compress and to decompress a packet, on sides that `before` sets up directly before it. `None` without
/// rounds.
pub(super) fn times(
    rounds: usize,
    ready: &PreparedCall,
    before: impl Fn() -> (CallCompressor<'static>, CallDecompressor<'static>),
) -> Option<[Time; 2]> {
    let (mut compress, mut decompress) = (Vec::new(), Vec::new());
    let mut out = [0; ROOM];
    for _ in 0..rounds {
        let (mut near, mut far): (Vec<_>, Vec<_>) = (0..SIDES).map(|_| before()).unzip();

        let start = Instant::now();
        for side in &mut near {
            let _ = black_box(side.compress(ready.now, black_box(ready.packet()), &mut out));
        }
        compress.push(per_call(start));

        let start = Instant::now();
        for side in &mut far {
            let _ = black_box(side.decompress(ready.now, black_box(ready.rohc()), &mut out));
        }
        decompress.push(per_call(start));
    }
    Some([time(&mut compress)?, time(&mut decompress)?])
}

fn per_call(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / f64::from(SIDES)
}

fn time(rounds: &mut [f64]) -> Option<Time> {
    rounds.sort_by(f64::total_cmp);
    Some(Time { median: *rounds.get(rounds.len() / 2)?, least: *rounds.first()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_a_round_that_took_long() {
        let time = time(&mut [70.0, 90_000.0, 50.0, 60.0, 80.0]);
        assert_eq!(time, Some(Time { median: 70.0, least: 50.0 }));
    }
}
