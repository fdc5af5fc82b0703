//! Balance of the octets that each context costs and saves, so that no pattern of packets makes the headers of a channel larger
//! for long.
//!
//! Each context has a credit of octets. A packet that is larger than its plain headers reduces it, a smaller one restores it, and
//! an IR packet never counts as smaller. When it is used up, the flow uses the next lower profile, at last 0x0000, for [`REST`]
//! packets. Then the context restarts, and each further rest is twice as long until it has saved octets.
//!
//! A flow of a few packets ends before its context has saved anything: [`churn`](super::churn).
//!
//! All of it takes constant time per packet, three octets per context (in the padding of its link), and 2 octets for each of
//! [`PAIRS`] hashes of two hosts.

use super::churn::End;

/// Number of packets of the first rest, for which a flow uses another profile.
const REST: i16 = 128;

/// Largest number of times that the rest doubles: up to 8,192 packets.
const DOUBLED: u8 = 6;

/// Bits of [`Balance::state`]: index of its two hosts.
const PAIR: u8 = 0b1111;

/// Bit of [`Balance::state`]: the context has saved more than it has cost.
const PAID: u8 = 1 << 7;

/// Position in [`Balance::state`] of the number of times that the rest has doubled.
const TIMES: u8 = 4;

/// Number of entries for two hosts with contexts. Hosts with equal hashes share an entry.
const PAIRS: usize = 15;

/// Cost of a context so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    /// Octets that it may still cost above plain headers; below 0, number of packets left that use another profile.
    pub(crate) credit: i16,
    /// [`PAIR`], [`PAID`] and [`TIMES`].
    pub(crate) state: u8,
}

impl Balance {
    /// Creates the balance of a new context. `full` credit is more than it has: only a context that has saved something has it.
    pub(crate) const fn new(full: i16, pair: u8) -> Self {
        Self { credit: full - 1, state: pair & PAIR }
    }

    /// Index of its two hosts.
    pub(crate) const fn pair(self) -> u8 {
        self.state & PAIR
    }

    /// True if the context has saved more than it has cost.
    pub(crate) const fn has_paid(self) -> bool {
        self.state & PAID != 0
    }

    /// How it ends if another flow takes it now.
    pub(crate) const fn end(self, full: i16) -> End {
        match self.has_paid() {
            false => End::Unpaid,
            true if self.credit < full => End::Even,
            true => End::Paid,
        }
    }

    /// Records that a context has saved more than it has cost even if this is its last packet.
    pub(crate) const fn note_paid(&mut self) {
        self.state |= PAID;
    }

    /// Records octets that were saved.
    pub(crate) fn gain(&mut self, octets: usize, full: i16) {
        self.credit = self.credit.saturating_add(i16::try_from(octets).unwrap_or(i16::MAX)).min(full);
        if self.credit == full {
            self.state = self.pair() | PAID;
        }
    }

    /// Records a packet whose headers had `before` octets, and `sent` octets when compressed. Returns true if the context stays
    /// in use.
    pub(crate) fn note(&mut self, before: usize, sent: usize, is_initialization: bool, full: i16) -> bool {
        if sent < before && !is_initialization {
            self.gain(before - sent, full);
            return true;
        }
        let cost = sent.saturating_sub(before).max(1);
        self.credit = self.credit.saturating_sub(i16::try_from(cost).unwrap_or(i16::MAX));
        if self.credit >= 0 {
            return true;
        }
        let doubled = (self.state & !PAID) >> TIMES;
        self.credit = -(REST << doubled);
        self.state = self.pair() | (doubled + 1).min(DOUBLED) << TIMES;
        false
    }

    /// Counts a packet of a flow whose context rests.
    pub(crate) fn rest(&mut self, full: i16) {
        self.credit += 1;
        if self.credit == 0 {
            self.credit = full - 1;
        }
    }
}

/// Number of contexts of a channel by their hosts.
#[derive(Debug)]
pub(crate) struct HostPairs([u16; PAIRS]);

impl HostPairs {
    pub(crate) const fn new() -> Self {
        Self([0; PAIRS])
    }

    /// Index without hosts: the context of profile 0x0000.
    pub(crate) const NONE: u8 = PAIR;

    /// Returns a hash of the two hosts of a packet.
    pub(crate) fn hash(packet: &[u8], key: u64) -> u64 {
        let addresses = match packet.first().map(|first| first >> 4) {
            Some(4) => packet.get(12..20),
            Some(6) => packet.get(8..40),
            _ => None,
        };
        addresses.unwrap_or_default().chunks_exact(4).fold(key, |hash, word| {
            let word = word.try_into().map_or(0, u32::from_be_bytes);
            (hash ^ u64::from(word)).wrapping_mul(0xA076_1D64_78BD_642F).rotate_left(29)
        })
    }

    /// Returns the index of two hosts.
    pub(crate) const fn of(hash: u64) -> u8 {
        (hash >> 32) as u8 % PAIRS as u8
    }

    fn get_mut(&mut self, pair: u8) -> Option<&mut u16> {
        self.0.get_mut(usize::from(pair))
    }

    /// Number of contexts of two hosts.
    pub(crate) fn count(&self, pair: u8) -> u16 {
        self.0.get(usize::from(pair)).copied().unwrap_or_default()
    }

    pub(crate) fn count_more(&mut self, pair: u8) {
        if let Some(pair) = self.get_mut(pair) {
            *pair = pair.saturating_add(1);
        }
    }

    pub(crate) fn count_less(&mut self, pair: u8) {
        if let Some(pair) = self.get_mut(pair) {
            *pair = pair.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: i16 = 128;

    /// Sends packets, each of which costs 5 octets while the context is used. Returns the numbers with and without the context.
    fn spend(balance: &mut Balance, packets: usize) -> (usize, usize) {
        let mut used = 0;
        for _ in 0..packets {
            if balance.credit < 0 {
                balance.rest(FULL);
            } else {
                balance.note(40, 45, true, FULL);
                used += 1;
            }
        }
        (used, packets - used)
    }

    #[test]
    fn a_context_that_never_pays_rests_for_twice_as_long_each_time() {
        let mut balance = Balance::new(FULL, 3);
        // 26 IR packets, and 128, 256 and 512 packets of rest.
        assert_eq!(spend(&mut balance, 26 + 128), (26, 128));
        assert_eq!(spend(&mut balance, 26 + 256), (26, 256));
        assert_eq!(spend(&mut balance, 26 + 512), (26, 512));
        spend(&mut balance, 1 << 20);
        let (used, _) = spend(&mut balance, 10 * ((128 << DOUBLED) + 26));
        assert_eq!((used, balance.pair()), (260, 3));
    }

    #[test]
    fn a_context_that_has_paid_begins_with_the_shortest_rest_again() {
        let mut balance = Balance::new(FULL, 3);
        spend(&mut balance, 26 + 128 + 26 + 256);
        assert!(balance.note(40, 2, false, FULL));
        assert_eq!(balance.credit, FULL);
        assert_eq!(spend(&mut balance, 26 + 128 + 26), (52, 128));
    }

    #[test]
    fn an_ir_packet_is_no_gain_however_small_it_is() {
        let mut balance = Balance::new(FULL, 0);
        let packets = (0..1_000).take_while(|_| balance.note(40, 30, true, FULL)).count();
        assert_eq!(packets, FULL as usize - 1);
    }
}
