//! Treatment of damage by the link layer: it delivers damaged frames, or drops them if its check sequence detects
//! the damage.

use crc::{CRC_16_IBM_SDLC, CRC_32_ISO_HDLC, Crc};

use crate::bit_errors::BitErrors;
use crate::probability::Probability;
use crate::random::Random;

/// FCS-16 of RFC 1662, section C.2, as in HDLC.
static FCS16: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);
/// FCS-32 of RFC 1662, section C.3, as in Ethernet.
static FCS32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Check of a link layer over a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// No check: damage is delivered.
    #[default]
    None,
    /// A check of `width` bits that is not computed: a damaged frame is dropped, except for one in 2^`width`. The
    /// check sequence itself is not damaged.
    ///
    /// Real checks always detect short bursts and few errors; this one does not.
    Modelled {
        /// Width in bits. 0 detects nothing; from 64 on, everything is detected.
        width: u8,
    },
    /// FCS-16 of RFC 1662, computed. Its two octets follow the frame and are damaged like it, so that a frame may be
    /// dropped for them alone.
    Crc16,
    /// FCS-32 of RFC 1662, computed, of four octets.
    Crc32,
}

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Received unchanged.
    Intact,
    /// Damaged, and delivered.
    Damaged {
        /// Number of flipped bits, at least 1.
        flipped: u64,
    },
    /// Dropped, because the check detected damage.
    Discarded,
}

impl Integrity {
    /// Carries a frame over a link that damages bits, in place. `random` decides for [`Integrity::Modelled`].
    pub fn carry(self, octets: &mut [u8], errors: &mut BitErrors, random: &mut Random) -> CheckOutcome {
        match self {
            Self::None => delivered(errors.damage(octets)),
            Self::Modelled { width } => {
                let flipped = errors.damage(octets);
                if flipped > 0 && !random.happens(Probability::power_of_half(width)) {
                    return CheckOutcome::Discarded;
                }
                delivered(flipped)
            }
            Self::Crc16 => checked(octets, |octets| FCS16.checksum(octets).to_le_bytes(), errors),
            Self::Crc32 => checked(octets, |octets| FCS32.checksum(octets).to_le_bytes(), errors),
        }
    }
}

fn checked<const N: usize>(
    octets: &mut [u8],
    check: impl Fn(&[u8]) -> [u8; N],
    errors: &mut BitErrors,
) -> CheckOutcome {
    let mut sequence = check(octets);
    let flipped = errors.damage(octets);
    errors.damage(&mut sequence);
    if check(octets) == sequence { delivered(flipped) } else { CheckOutcome::Discarded }
}

const fn delivered(flipped: u64) -> CheckOutcome {
    match flipped {
        0 => CheckOutcome::Intact,
        _ => CheckOutcome::Damaged { flipped },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bit_errors::BitErrorModel;

    /// Carries 40,000 frames of 16 octets at a bit error rate of 2 %: delivered unchanged, delivered damaged,
    /// dropped.
    fn carried(integrity: Integrity) -> (u32, u32, u32) {
        let mut random = Random::new(11);
        let rate = Probability::from_percent(2).unwrap_or_default();
        let mut errors = BitErrors::new(BitErrorModel::Random(rate), random.split());
        let (mut intact, mut damaged, mut dropped) = (0, 0, 0);
        for i in 0..40_000_u32 {
            let sent = [i.to_be_bytes(); 4];
            let mut frame = sent;
            match integrity.carry(frame.as_flattened_mut(), &mut errors, &mut random) {
                CheckOutcome::Intact => {
                    assert_eq!(frame, sent);
                    intact += 1;
                }
                CheckOutcome::Damaged { flipped } => {
                    let pairs = frame.as_flattened().iter().zip(sent.as_flattened());
                    assert_eq!(pairs.map(|(a, b)| u64::from((a ^ b).count_ones())).sum::<u64>(), flipped);
                    assert!(flipped > 0);
                    damaged += 1;
                }
                CheckOutcome::Discarded => dropped += 1,
            }
        }
        (intact, damaged, dropped)
    }

    #[test]
    fn without_a_check_damage_is_delivered() {
        let (intact, damaged, dropped) = carried(Integrity::None);
        // 0.98^128 of 40,000 are 3,013 with a deviation of 53; 4 of them.
        assert!(u32::abs_diff(intact, 3_013) < 212, "{intact}");
        assert_eq!((intact + damaged, dropped), (40_000, 0));
        assert_eq!(carried(Integrity::Modelled { width: 0 }), (intact, damaged, 0));
    }

    #[test]
    fn a_modelled_check_lets_one_in_two_to_its_width_pass() {
        let (without, _, _) = carried(Integrity::None);
        let (intact, damaged, dropped) = carried(Integrity::Modelled { width: 4 });
        assert_eq!((intact, intact + damaged + dropped), (without, 40_000));
        // One in 16 of 36,987 is 2,312 with a deviation of 47; 4 of them.
        assert!(u32::abs_diff(damaged, 2_312) < 188, "{damaged}");
        assert_eq!(carried(Integrity::Modelled { width: 64 }).1, 0);
        assert_eq!(carried(Integrity::Modelled { width: 255 }).1, 0);
    }

    #[test]
    fn a_computed_check_drops_what_it_finds() {
        let (intact, damaged, dropped) = carried(Integrity::Crc32);
        // 0.98^160 of 40,000 are 1,579 with a deviation of 39; 4 of them. One in 2^32 would pass.
        assert!(u32::abs_diff(intact, 1_579) < 156, "{intact}");
        assert_eq!((damaged, dropped), (0, 40_000 - intact));
        let (intact, damaged, _) = carried(Integrity::Crc16);
        // 0.98^144 of 40,000 are 2,181 with a deviation of 45. One in 2^16 of the rest passes; 5 or more do once in
        // 3,000 seeds.
        assert!(u32::abs_diff(intact, 2_181) < 180, "{intact}");
        assert!(damaged < 5, "{damaged}");
    }

    /// The generator of FCS-16 is (x + 1) times a primitive polynomial of degree 15, so it divides the polynomial of
    /// 8 * 32,767 ones: it cannot detect that many errors in frame and check sequence together.
    #[test]
    fn a_check_that_collides_lets_damage_pass() {
        let all = BitErrorModel::Random(Probability::ALWAYS);
        let (mut errors, mut random) = (BitErrors::new(all, Random::new(1)), Random::new(2));
        let mut frame = std::vec![0xA5; 32_765];
        let received = Integrity::Crc16.carry(&mut frame, &mut errors, &mut random);
        assert_eq!(received, CheckOutcome::Damaged { flipped: 8 * 32_765 });
        let received = Integrity::Crc16.carry(&mut frame[1..], &mut errors, &mut random);
        assert_eq!(received, CheckOutcome::Discarded);
    }
}
