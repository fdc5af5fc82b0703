//! Movement of an IP-ID against the sequence number, as a decompressor sees it: other flows of the host take IP-IDs, too. RFC 3095, section
//! 4.5.5; RFC 5225, section 6.6.7.
//!
//! No checksum covers the IP-ID. Behind a gap the bits that a packet has of it stand for several, of which the window of the sender
//! excludes all but one only as long as few packets are lost. Then nothing but the CRC tells a wrong one, so that a packet is not delivered
//! if the IP-ID may have grown by more than its bits tell, and the next packet that has enough of them is waited for.

use super::ip_id::SMALL_STEP;
use crate::flow::caution::REPEATED;

/// Factor: an IP-ID that has moved within that many times the packets of a gap may have moved in the gap.
const MEMORY: u32 = 8;

/// Parts of an IP-ID in which its growth is kept.
const PARTS: u32 = 4;

/// Packets over which the growth is averaged.
const AVERAGED: u32 = 16;

/// Packets without growth after which half of it is forgotten.
const HALF: u8 = 11;

/// Movement of the IP-IDs of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Movement {
    /// Growth of the offset in one packet, in [`PARTS`], averaged up to the last packet in which it has moved.
    growth: u8,
    /// Packets since it has moved, at most 255; 255 if it never has.
    calm: u8,
}

impl Movement {
    /// Of a flow without packets.
    pub(crate) const NONE: Self = Self { growth: 0, calm: u8::MAX };

    /// Records a packet whose offset is that of the packet before.
    #[inline(always)]
    pub(crate) fn note_calm(&mut self) {
        self.calm = self.calm.saturating_add(1);
    }

    /// Records a packet `packets` behind the last one, whose offset is `moved` larger. 0: its number stands still or has gone back.
    pub(crate) fn note(&mut self, moved: u16, packets: u32) {
        if moved == 0 {
            return self.note_calm();
        }
        let calm = self.calm;
        *self = Self { growth: self.growth_now(), calm: 0 };
        // A step that is larger than those of a counter, or goes back, is a jump, and no growth.
        if packets == 0 || u32::from(moved) >= packets.saturating_mul(SMALL_STEP.into()) {
            return;
        }
        let packets = packets + u32::from(calm);
        let parts = u32::from(moved) * PARTS;
        let each = if packets == 1 { parts } else { parts / packets } as u8;
        // Rounded up, since small deviations would otherwise never change it.
        let part = |off: u8| (u32::from(off) * packets.min(AVERAGED)).div_ceil(AVERAGED) as u8;
        if each > self.growth {
            self.growth += part(each - self.growth);
        } else {
            self.growth -= part(self.growth - each);
        }
    }

    /// True if the IP-ID may have moved in that many packets: it has moved not long before.
    pub(crate) fn is_likely_in(self, packets: u32) -> bool {
        self.calm < u8::MAX && u32::from(self.calm) < packets.saturating_mul(MEMORY)
    }

    /// True if a packet `packets` behind the last one has enough bits of the IP-ID: they tell offsets apart that are up to `room` larger.
    /// In a few packets the sender sees to that, as it knows their offsets.
    pub(crate) fn is_told(self, room: u32, packets: u32) -> bool {
        packets <= REPEATED as u32 || self.most(packets) <= u64::from(room)
    }

    fn growth_now(self) -> u8 {
        self.growth >> (self.calm / HALF).min(7)
    }

    /// Largest likely growth in that many packets: a quarter more than the average, and two packets more.
    fn most(self, packets: u32) -> u64 {
        u64::from(self.growth_now()) * (u64::from(packets) * 5 / 4 + 2) / u64::from(PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(steps: impl IntoIterator<Item = u16>) -> Movement {
        let mut movement = Movement::NONE;
        steps.into_iter().for_each(|moved| movement.note(moved, 1));
        movement
    }

    #[test]
    fn a_counter_that_is_not_shared_needs_no_bits() {
        let movement = behind([0; 300]);
        assert!(movement.is_told(0, 1_000) && !movement.is_likely_in(1_000));
    }

    /// Steps of 1 to 12, in a fixed order: 5.5 more than the sequence number, on average.
    #[test]
    fn a_busy_host_needs_the_bits_of_its_growth() {
        let movement = behind((0..100).map(|i| i * 5 % 12));
        for (bits, told) in [(5, 4), (6, 7), (8, 30), (11, 270)] {
            let room = (1 << bits) - 1;
            assert!(movement.is_told(room, told), "{bits} bits, {movement:?}");
            assert!(!movement.is_told(room, 2 * told), "{bits} bits, {movement:?}");
        }
    }

    #[test]
    fn growth_is_forgotten() {
        let mut movement = behind([11; 100]);
        assert!(!movement.is_told(63, 64));
        (0..80).for_each(|_| movement.note_calm());
        assert!(movement.is_told(0, 64), "{movement:?}");
        // A jump, as of a host that has served others in a pause, is none.
        movement.note(5_000, 1);
        assert!(movement.is_told(0, 64) && movement.is_likely_in(5), "{movement:?}");
    }
}
