//! Number of wrong deliveries that the formats predict under loss, from the formula for their states.

/// Properties of a format: `docs/coap-profile.md`, sections 6 and 7.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormatProperties {
    /// Number of MSN bits sent.
    msn_bits: u32,
    /// Number of values before the reference that the bits can encode.
    behind: u32,
    /// Number of bits of the check.
    check_bits: u32,
    /// Number of MSN values tried after the first, each 2^`msn_bits` further.
    repairs: u32,
}

/// 6 bits of the MSN, CRC-8.
pub(super) const PT_1: FormatProperties =
    FormatProperties { msn_bits: 6, behind: 8, check_bits: 8, repairs: 3 };
/// 7 bits of the MSN, CHECK of 16 bits.
pub(super) const PT_0C: FormatProperties =
    FormatProperties { msn_bits: 7, behind: 8, check_bits: 16, repairs: 3 };

/// Wrong deliveries of `packets` packets through the simple Gilbert model that loses `rate` percent in bursts of
/// `burst` on average, 1 for independent losses: as if every wrong MSN that is tried passed the check by chance.
pub(super) fn wrong(format: FormatProperties, packets: u64, rate: u32, burst: u32) -> f64 {
    let rate = f64::from(rate) / 100.0;
    // The chain leaves a loss burst with probability r.
    let r = if burst == 1 { 1.0 - rate } else { 1.0 / f64::from(burst) };
    let runs = packets as f64 * rate * r;
    let modulus = 1 << format.msn_bits;
    // After this many losses in a row the first candidate is wrong; after a modulus more, the second, and so on.
    let bridged = modulus - 1 - format.behind;
    let tries = (0..=format.repairs).map(|repair| f64::from(bridged + repair * modulus));
    let wrong_tries: f64 = tries.map(|lost| power(1.0 - r, lost - 1.0)).sum();
    runs * wrong_tries / f64::from(1_u32 << format.check_bits)
}

/// `base` to the power of a small whole number, by products alone, which gives the same result on any machine.
fn power(base: f64, exponent: f64) -> f64 {
    (0..exponent as u32).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_counts_runs_that_are_too_long() {
        // Half of the packets in bursts of 2: 250,000 bursts, of which 2^-(L - 1) have a length of L or more. With 3
        // bits and no value before the reference, 7 losses in a row are too many: 2^-6 of the bursts, half of which
        // pass a check of one bit.
        let format = FormatProperties { msn_bits: 3, behind: 0, check_bits: 1, repairs: 0 };
        assert_eq!(wrong(format, 1_000_000, 50, 2), 250_000.0 / 64.0 / 2.0);
        // A second candidate at 15 losses adds 2^-14.
        let format = FormatProperties { repairs: 1, ..format };
        assert_eq!(wrong(format, 1_000_000, 50, 2), 250_000.0 * (1.0 / 64.0 + 1.0 / 16_384.0) / 2.0);
    }

    #[test]
    fn a_lossless_link_and_a_longer_check_do_better() {
        assert_eq!(wrong(PT_1, 1_000_000, 0, 5), 0.0);
        assert!(wrong(PT_0C, 1_000_000, 30, 10) < wrong(PT_1, 1_000_000, 30, 10));
        assert!(wrong(PT_1, 1_000_000, 20, 10) < wrong(PT_1, 1_000_000, 30, 10));
    }
}
