//! Random packet loss as a function of seed and packet number only, so that schemes are comparable.

use crate::settings::RandomLoss;

/// A packet sent on the link because of one packet of the capture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SentPacket {
    /// The compressed packet.
    Packet,
    /// The n-th feedback packet that it caused.
    Feedback(u32),
}

impl RandomLoss {
    /// True if the link drops what is sent for packet `number` of the run.
    pub(crate) fn takes(&self, number: u64, sent: SentPacket) -> bool {
        let stream = match sent {
            SentPacket::Packet => 0,
            SentPacket::Feedback(n) => u64::from(n) + 1,
        };
        let hash = mix(mix(self.seed ^ mix(stream)).wrapping_add(number));
        // An f64 represents 53 bits exactly.
        ((hash >> 11) as f64) < self.probability * (1_u64 << 53) as f64
    }
}

/// One step of SplitMix64.
pub(crate) fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(probability: f64, seed: u64) -> usize {
        let loss = RandomLoss { probability, seed };
        (0..10_000).filter(|&number| loss.takes(number, SentPacket::Packet)).count()
    }

    #[test]
    fn the_share_is_the_probability() {
        assert_eq!((lost(0.0, 1), lost(1.0, 1)), (0, 10_000));
        for seed in 0..5 {
            assert!((900..1_100).contains(&lost(0.1, seed)), "seed {seed}: {}", lost(0.1, seed));
        }
    }

    #[test]
    fn feedback_has_a_fate_of_its_own() {
        let loss = RandomLoss { probability: 0.5, seed: 7 };
        let differs =
            (0..100).filter(|&n| loss.takes(n, SentPacket::Packet) != loss.takes(n, SentPacket::Feedback(0)));
        assert!((30..70).contains(&differs.count()));
    }
}
