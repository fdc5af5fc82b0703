//! Loss of packets.

use crate::gilbert_elliott::GilbertElliott;
use crate::probability::Probability;
use crate::random::Random;
#[cfg(feature = "rohctunnel16")]
use crate::rohc_tunnel16::Counter;

/// Model of the loss of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossModel<'a> {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost independently with this probability.
    Random(Probability),
    /// Packets are lost in bursts.
    Bursts(GilbertElliott),
    /// A packet is lost where the pattern, which repeats, is `true`. An empty one loses none.
    Pattern(&'a [bool]),
    /// The packets of these numbers are lost, counted from 0, in any order.
    Listed(&'a [u64]),
    /// Deterministic loss of the packet that completes each sequence of `octets` octets, as in the tunnel of
    /// rohc-lib 1.6.0. 125 for a bit error rate of 10^-3.
    ///
    /// The counter restarts with the excess of the packet, to which the whole packet is added once more.
    #[cfg(feature = "rohctunnel16")]
    RohcTunnel16 {
        /// 1 / (8 * the bit error rate).
        octets: u32,
    },
}

/// Generator of the losses of a [`LossModel`].
#[derive(Clone, Debug)]
pub struct LossProcess<'a> {
    model: LossModel<'a>,
    random: Random,
    /// State of the chain, if there is one.
    is_bad: bool,
    /// Number of the next packet.
    next: u64,
    #[cfg(feature = "rohctunnel16")]
    counter: Counter,
}

impl<'a> LossProcess<'a> {
    /// Creates a generator before the first packet.
    pub fn new(model: LossModel<'a>, mut random: Random) -> Self {
        let is_bad = match model {
            LossModel::Bursts(chain) => chain.starts_bad(&mut random),
            _ => false,
        };
        Self {
            model,
            random,
            is_bad,
            next: 0,
            #[cfg(feature = "rohctunnel16")]
            counter: Counter::default(),
        }
    }

    /// Draws the loss of the next packet, of `len` octets.
    #[cfg_attr(
        not(feature = "rohctunnel16"),
        expect(unused_variables, reason = "one model alone asks for it")
    )]
    pub fn takes_next(&mut self, len: usize) -> bool {
        let number = self.next;
        self.next += 1;
        match self.model {
            LossModel::None => false,
            LossModel::Random(rate) => self.random.happens(rate),
            LossModel::Bursts(chain) => {
                let is_lost = self.random.happens(chain.error(self.is_bad));
                self.is_bad ^= self.random.happens(chain.leaves(self.is_bad));
                is_lost
            }
            LossModel::Pattern(pattern) => {
                // An empty pattern has no remainder, and no packet to lose.
                let place = number.checked_rem(pattern.len() as u64);
                place.is_some_and(|place| pattern[place as usize])
            }
            LossModel::Listed(numbers) => numbers.contains(&number),
            #[cfg(feature = "rohctunnel16")]
            LossModel::RohcTunnel16 { octets } => self.counter.drops(len as u64, u64::from(octets)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(model: LossModel<'_>, packets: usize) -> std::vec::Vec<usize> {
        let mut loss = LossProcess::new(model, Random::new(1));
        (0..packets).filter(|_| loss.takes_next(20)).collect()
    }

    #[test]
    fn a_pattern_begins_again() {
        assert_eq!(lost(LossModel::Pattern(&[false, true, true]), 8), [1, 2, 4, 5, 7]);
        assert_eq!(lost(LossModel::Pattern(&[]), 8), []);
    }

    #[test]
    fn a_list_names_the_packets() {
        assert_eq!(lost(LossModel::Listed(&[7, 0, 3]), 8), [0, 3, 7]);
    }

    #[test]
    fn a_chain_that_cannot_change_stays_as_it_starts() {
        let (never, always) = (Probability::NEVER, Probability::ALWAYS);
        let good = GilbertElliott { p: never, r: never, k: always, h: never };
        assert_eq!(lost(LossModel::Bursts(good), 100), []);
        let bad = GilbertElliott { p: always, ..good };
        assert_eq!(lost(LossModel::Bursts(bad), 100).len(), 100);
        let alternating = lost(LossModel::Bursts(GilbertElliott { r: always, ..bad }), 100);
        assert!(alternating.len() == 50 && alternating.windows(2).all(|pair| pair[1] == pair[0] + 2));
    }
}
