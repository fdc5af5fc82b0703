//! Changed fields, each of which is repeated until enough packets have carried it, or one of them is acknowledged: the optimistic
//! approach. RFC 3095, section 5.3.1.1.1; RFC 5225, section 5.2.1; RFC 6846, section 5.2.1.

/// Packets that carry a change of a field that no checksum covers, until one is acknowledged: more in a row than are likely to be lost. A
/// CRC of 3 bits lets one such change in eight go by for ever. Routes change seldom.
pub(crate) const SURE: u8 = 48;

/// Packets left that must carry each of `N` fields, since it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending<const N: usize>([u8; N]);

impl<const N: usize> Pending<N> {
    /// No field has changed.
    pub(crate) const NONE: Self = Self([0; N]);

    /// True if no field is to be repeated.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0 == [0; N]
    }

    /// True if a packet must carry the field.
    #[inline]
    pub(crate) fn has(&self, field: usize) -> bool {
        self.0[field] > 0
    }

    /// Returns the fields that a packet must carry, a bit each.
    #[inline]
    pub(crate) fn fields(&self) -> u16 {
        if self.is_none() { 0 } else { self.all_fields() }
    }

    #[cold]
    fn all_fields(&self) -> u16 {
        self.0.iter().enumerate().fold(0, |fields, (field, left)| fields | u16::from(*left > 0) << field)
    }

    /// Requires that a number of packets carry the field, which has changed.
    #[inline]
    pub(crate) fn require(&mut self, field: usize, packets: u8) {
        self.0[field] = packets;
    }

    /// Requires that `repetitions` packets carry each of the `changed` fields, and [`SURE`] those that are `uncovered`: a bit each.
    #[cold]
    pub(crate) fn require_all(&mut self, changed: u16, uncovered: u16, repetitions: u8) {
        for (field, left) in self.0.iter_mut().enumerate().filter(|(field, _)| changed >> field & 1 == 1) {
            *left = if uncovered >> field & 1 == 1 { repetitions.max(SURE) } else { repetitions };
        }
    }

    /// Counts a packet that has carried the field, if it has.
    #[inline]
    pub(crate) fn count(&mut self, field: usize, is_carried: bool) {
        self.0[field] = self.0[field].saturating_sub(u8::from(is_carried));
    }

    /// Counts a packet that has carried every field that it had to.
    #[inline]
    pub(crate) fn count_all(&mut self) {
        if !self.is_none() {
            self.0.iter_mut().for_each(|left| *left = left.saturating_sub(1));
        }
    }

    /// Drops fields of a set for which fewer packets are left, so that those remain which have just changed.
    pub(crate) fn drop_older(&mut self, fields: u16, packets: u8) {
        let older = |(field, left): &(usize, &mut u8)| fields >> field & 1 == 1 && **left < packets;
        self.0.iter_mut().enumerate().filter(older).for_each(|(_, left)| *left = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_carried_until_enough_packets_have() {
        let mut pending = Pending::<3>::NONE;
        pending.require_all(0b101, 0, 2);
        assert_eq!((pending.fields(), pending.has(0), pending.has(1)), (0b101, true, false));
        pending.count_all();
        pending.require(0, 2);
        pending.count_all();
        assert_eq!(pending.fields(), 0b001);
        pending.count(0, false);
        assert!(pending.has(0));
        pending.count(0, true);
        assert!(pending.is_none());
    }

    #[test]
    fn what_no_checksum_covers_is_repeated_more_often() {
        let mut pending = Pending::<3>::NONE;
        pending.require_all(0b11, 0b10, 4);
        assert_eq!(pending, Pending([4, SURE, 0]));
    }

    #[test]
    fn the_newest_change_remains_and_others_of_the_set_are_dropped() {
        let mut pending = Pending([2, 3, 2]);
        pending.drop_older(0b011, 3);
        assert_eq!(pending, Pending([0, 3, 2]));
    }
}
