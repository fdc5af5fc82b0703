//! The models have the configured rates.
//!
//! Bounds are 4 standard deviations, from the theoretical variance of the model: one seed in 16,000 would exceed a
//! bound if the model is right, and the seeds are fixed.

#![allow(clippy::unwrap_used)]

use thinair_link::{
    BitErrorModel, BitErrors, Duplicate, GilbertElliott, LossModel, LossProcess, MeanBurst, Probability,
    Random, Reorder,
};

const DRAWS: usize = 1_000_000;

fn percent(percent: u32) -> Probability {
    Probability::from_percent(percent).unwrap()
}

fn bursts(rate: Probability, burst: u32) -> GilbertElliott {
    GilbertElliott::bursts(rate, MeanBurst::from_units(burst).unwrap()).unwrap()
}

#[track_caller]
fn assert_near(seen: f64, expected: f64, variance: f64) {
    let bound = 4.0 * variance.sqrt();
    assert!((seen - expected).abs() < bound, "{seen}, expected {expected} +- {bound}");
}

fn lost(model: LossModel<'_>, seed: u64) -> Vec<bool> {
    let mut loss = LossProcess::new(model, Random::new(seed));
    (0..DRAWS).map(|_| loss.takes_next(20)).collect()
}

fn share(errors: &[bool]) -> f64 {
    errors.iter().filter(|is_error| **is_error).count() as f64 / errors.len() as f64
}

/// Number and mean length of the runs of errors.
fn runs(errors: &[bool]) -> (f64, f64) {
    let runs: Vec<_> = errors.split(|is_error| !is_error).map(<[bool]>::len).filter(|len| *len > 0).collect();
    (runs.len() as f64, runs.iter().sum::<usize>() as f64 / runs.len() as f64)
}

/// The variance of the share of errors in `n` units of a chain. With the shares g and b of its states, its memory
/// m = 1 - p - r and the error rates x and y in the states: that of independent draws, rate (1 - rate), and twice
/// the covariance of units t apart, g b (x - y)^2 m^t, summed over t.
fn variance_of_share(chain: GilbertElliott, n: f64) -> f64 {
    let [p, r, k, h] = [chain.p, chain.r, chain.k, chain.h].map(Probability::as_f64);
    let (b, m, rate) = (p / (p + r), 1.0 - p - r, chain.rate().as_f64());
    (rate * (1.0 - rate) + 2.0 * b * (1.0 - b) * (k - h).powi(2) * m / (1.0 - m)) / n
}

/// Runs that end with probability r after each unit are geometric: mean 1 / r, variance (1 - r) / r^2.
#[track_caller]
fn assert_runs(errors: &[bool], r: f64) {
    let (count, mean) = runs(errors);
    assert_near(mean, 1.0 / r, (1.0 - r) / (r * r) / count);
}

#[test]
fn independent_loss_has_its_rate_and_the_bursts_of_chance() {
    for (seed, ppm) in [100, 10_000, 50_000, 300_000, 900_000].into_iter().enumerate() {
        let rate = Probability::from_ppm(ppm).unwrap();
        let p = rate.as_f64();
        let one = GilbertElliott::bursts(rate, MeanBurst::ONE).unwrap();
        for model in [LossModel::Random(rate), LossModel::Bursts(one)] {
            let errors = lost(model, seed as u64);
            assert_near(share(&errors), p, p * (1.0 - p) / DRAWS as f64);
            assert_runs(&errors, 1.0 - p);
        }
    }
}

#[test]
fn bursty_loss_has_its_rate_and_its_mean_burst() {
    for (seed, (rate, burst)) in
        [(1, 2), (5, 5), (10, 10), (20, 4), (30, 50), (60, 3)].into_iter().enumerate()
    {
        let chain = bursts(percent(rate), burst);
        let errors = lost(LossModel::Bursts(chain), 100 + seed as u64);
        assert_near(share(&errors), f64::from(rate) / 100.0, variance_of_share(chain, DRAWS as f64));
        assert_runs(&errors, 1.0 / f64::from(burst));
    }
}

#[test]
fn the_general_chain_has_its_rate_and_its_memory() {
    let chain = GilbertElliott { p: percent(2), r: percent(10), k: percent(99), h: percent(40) };
    let errors = lost(LossModel::Bursts(chain), 200);
    assert_near(share(&errors), chain.rate().as_f64(), variance_of_share(chain, DRAWS as f64));
    // Two adjacent errors: good to good, good to bad, bad to good, bad to bad. Their deviation is taken from 1,000
    // batches, each much longer than the memory of the chain, which is 1 / (p + r), or 8 packets.
    let pairs: Vec<_> = errors.windows(2).map(|pair| pair[0] && pair[1]).collect();
    let batches: Vec<_> = pairs.chunks_exact(999).map(share).collect();
    let both = share(&pairs);
    let variance = batches.iter().map(|batch| (batch - both).powi(2)).sum::<f64>() / batches.len() as f64;
    let (good, bad, x, y) = (10.0 / 12.0, 2.0 / 12.0, 0.01, 0.6);
    let expected = good * x * (0.98 * x + 0.02 * y) + bad * y * (0.1 * x + 0.9 * y);
    assert_near(both, expected, variance / batches.len() as f64);
}

#[test]
fn a_chain_starts_in_its_steady_state() {
    let chain = bursts(percent(20), 100);
    let first = (0..20_000)
        .filter(|seed| LossProcess::new(LossModel::Bursts(chain), Random::new(*seed)).takes_next(20));
    assert_near(first.count() as f64 / 20_000.0, 0.2, 0.2 * 0.8 / 20_000.0);
}

/// Bits of consecutive packets of 125 octets.
fn bits(model: BitErrorModel, seed: u64, packets: usize) -> Vec<bool> {
    let mut errors = BitErrors::new(model, Random::new(seed));
    let mut bits = Vec::new();
    for _ in 0..packets {
        let mut packet = [0; 125];
        errors.damage(&mut packet);
        bits.extend(packet.iter().flat_map(|octet| (0..8).map(move |bit| octet & 0x80 >> bit != 0)));
    }
    bits
}

#[test]
fn independent_bit_errors_have_their_rate_and_runs() {
    for (seed, ppm) in [1_000, 20_000, 300_000, 800_000].into_iter().enumerate() {
        let rate = Probability::from_ppm(ppm).unwrap();
        let p = rate.as_f64();
        let errors = bits(BitErrorModel::Random(rate), 300 + seed as u64, 2_000);
        assert_near(share(&errors), p, p * (1.0 - p) / errors.len() as f64);
        assert_runs(&errors, 1.0 - p);
    }
}

#[test]
fn small_bit_error_rates_have_as_many_errors_as_they_should() {
    // 10^9 bits in frames of 12,500 octets: 1,000 and 100,000 errors, with deviations of 32 and 316.
    for (seed, expected) in [1_000_u32, 100_000].into_iter().enumerate() {
        let rate = Probability::from_ratio(u64::from(expected), 1_000_000_000).unwrap();
        let mut errors = BitErrors::new(BitErrorModel::Random(rate), Random::new(400 + seed as u64));
        let mut frame = vec![0; 12_500];
        let flipped: u64 = (0..10_000).map(|_| errors.damage(&mut frame)).sum();
        assert_near(flipped as f64, f64::from(expected), f64::from(expected));
    }
}

/// Chi-square of `seen` against probabilities, both with a last bin for the rest.
fn chi_square(seen: &[u64], probabilities: &[f64]) -> f64 {
    let total = seen.iter().sum::<u64>() as f64;
    seen.iter()
        .zip(probabilities)
        .map(|(seen, p)| {
            let expected = total * p;
            assert!(expected >= 5.0, "a bin too small for the test");
            (*seen as f64 - expected).powi(2) / expected
        })
        .sum()
}

#[test]
fn jumps_between_bit_errors_are_geometric() {
    for (seed, p, bins) in [(500, 0.5, 12), (501, 0.1, 60), (502, 0.01, 300)] {
        let mut random = Random::new(seed);
        let probability = Probability::from_f64(p).unwrap();
        let mut seen = vec![0_u64; bins + 1];
        for _ in 0..DRAWS {
            let jump = random.failures_before_success(probability);
            seen[usize::try_from(jump).unwrap().min(bins)] += 1;
        }
        let mut probabilities: Vec<_> = (0..bins as i32).map(|i| p * (1.0 - p).powi(i)).collect();
        probabilities.push((1.0 - p).powi(bins as i32));
        // Chi-square with n degrees of freedom: mean n, variance 2 n.
        let n = bins as f64;
        assert_near(chi_square(&seen, &probabilities), n, 2.0 * n);
    }
}

#[test]
fn long_jumps_are_geometric_in_all_their_digits() {
    // In 16 bins of equal probability: their borders are the quantiles ln(1 - i/16) / ln(1 - p).
    for (seed, p) in [(510, 1e-4), (511, 1e-7), (512, 1e-10)] {
        let mut random = Random::new(seed);
        let probability = Probability::from_f64(p).unwrap();
        let borders: Vec<_> =
            (1..16).map(|i| ((-f64::from(i) / 16.0).ln_1p() / (-p).ln_1p()).ceil() as u64).collect();
        let below = |border: u64| -(border as f64 * (-p).ln_1p()).exp_m1();
        let mut shares: Vec<_> = borders.iter().map(|border| below(*border)).chain([1.0]).collect();
        for i in (1..16).rev() {
            shares[i] -= shares[i - 1];
        }
        let mut seen = vec![0_u64; 16];
        for _ in 0..200_000 {
            let jump = random.failures_before_success(probability);
            seen[borders.partition_point(|border| *border <= jump)] += 1;
        }
        assert_near(chi_square(&seen, &shares), 15.0, 30.0);
    }
}

#[test]
fn bursty_bit_errors_have_their_rate_and_mean_burst() {
    for (seed, (ppm, burst)) in [(1_000, 10), (10_000, 40), (200_000, 3)].into_iter().enumerate() {
        let chain = bursts(Probability::from_ppm(ppm).unwrap(), burst);
        let errors = bits(BitErrorModel::Bursts(chain), 600 + seed as u64, 2_000);
        assert_near(share(&errors), f64::from(ppm) / 1e6, variance_of_share(chain, errors.len() as f64));
        assert_runs(&errors, 1.0 / f64::from(burst));
    }
    let chain = GilbertElliott { p: percent(1), r: percent(20), k: percent(99), h: percent(50) };
    let errors = bits(BitErrorModel::Bursts(chain), 610, 2_000);
    assert_near(share(&errors), chain.rate().as_f64(), variance_of_share(chain, errors.len() as f64));
}

#[test]
fn late_packets_and_copies_come_as_often_as_asked_and_by_every_place_alike() {
    let mut random = Random::new(700);
    let reorder = Reorder { probability: percent(20), up_to: 5 };
    let duplicate = Duplicate { probability: percent(10), up_to: 4 };
    let (mut late, mut copies) = ([0; 6], [0; 5]);
    for _ in 0..DRAWS {
        late[usize::from(reorder.draw(&mut random))] += 1;
        if let Some(later) = duplicate.draw(&mut random) {
            copies[usize::from(later)] += 1;
        }
    }
    for (seen, p) in late.iter().zip([0.8, 0.04, 0.04, 0.04, 0.04, 0.04]) {
        assert_near(f64::from(*seen), p * 1e6, p * (1.0 - p) * 1e6);
    }
    for seen in copies {
        assert_near(f64::from(seen), 0.02 * 1e6, 0.02 * 0.98 * 1e6);
    }
    let never = Reorder { probability: Probability::ALWAYS, up_to: 0 };
    assert_eq!(never.draw(&mut random), 0);
}
