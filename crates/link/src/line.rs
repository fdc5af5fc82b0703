//! Order of arrival: a bounded buffer that holds back late packets.
//!
//! It orders items by place: octets of a packet, a handle to them, or a number.

use core::fmt;
use core::marker::PhantomData;

use crate::link::LinkArrival;

/// Place of arrival among the packets of a link. The lower of two arrives first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrivalPlace {
    // Compared in this order: a place is that of the packet which entered then, and was on time; after it come
    // those that waited for it, in the order in which they entered; a copy comes after its original.
    place: u64,
    is_late: bool,
    entered: u64,
    is_copy: bool,
}

impl ArrivalPlace {
    /// Returns the place of the packet that entered as number `entered`, from 0, and is `late` places late.
    pub(crate) const fn of(entered: u64, late: u16) -> Self {
        Self { place: entered.saturating_add(late as u64), is_late: late > 0, entered, is_copy: false }
    }

    /// Returns the place of the copy of a packet, `later` places later.
    pub(crate) const fn copy(self, later: u16) -> Self {
        let place = self.place.saturating_add(later as u64);
        Self { place, is_late: self.is_late || later > 0, is_copy: true, ..self }
    }

    /// Returns the number of places after the one in which the packet was sent.
    pub const fn late_by(self) -> u64 {
        self.place - self.entered
    }
}

/// Memory for a packet in a [`ReorderBuffer`].
pub type ReorderSlot<T> = Option<(ArrivalPlace, T)>;

/// Packets under way, in slots of the caller (an array, a slice, a vector).
///
/// **After each packet that was offered to the link, put it here if it arrives, then poll until there are no more.**
/// At the end, flush. [`Impairments::slots`](crate::Impairments::slots) slots always suffice.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T, S> {
    slots: S,
    /// Latest packet that has entered.
    now: u64,
    held: PhantomData<T>,
}

/// Error: no free slot for a packet and its copy, because there are too few, or the caller did not poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSlot;

impl<T, S: AsMut<[ReorderSlot<T>]>> ReorderBuffer<T, S> {
    /// Creates an empty line. The content of the slots is dropped.
    pub fn new(mut slots: S) -> Self {
        slots.as_mut().fill_with(|| None);
        Self { slots, now: 0, held: PhantomData }
    }

    /// Adds a packet that arrives, and its copy if it has one.
    ///
    /// # Errors
    ///
    /// There is no slot for them; then the line is unchanged.
    pub fn put(&mut self, arrival: LinkArrival, packet: T) -> Result<(), NoSlot>
    where
        T: Clone,
    {
        let mut free = self.slots.as_mut().iter_mut().filter(|slot| slot.is_none());
        let slot = free.next().ok_or(NoSlot)?;
        if let Some(place) = arrival.copy {
            *free.next().ok_or(NoSlot)? = Some((place, packet.clone()));
        }
        *slot = Some((arrival.place, packet));
        self.now = self.now.max(arrival.place.entered);
        Ok(())
    }

    /// Returns the next packet that arrives, if it does so before another one is sent.
    pub fn poll(&mut self) -> Option<T> {
        let now = self.now;
        self.take(|place| place.place <= now)
    }

    /// Returns the next packet that arrives, if no other one is ever sent.
    pub fn flush(&mut self) -> Option<T> {
        self.take(|_| true)
    }

    fn take(&mut self, is_due: impl Fn(ArrivalPlace) -> bool) -> Option<T> {
        let slots = self.slots.as_mut();
        let places =
            slots.iter().enumerate().filter_map(|(i, slot)| slot.as_ref().map(|(place, _)| (*place, i)));
        let (place, first) = places.min()?;
        if !is_due(place) {
            return None;
        }
        slots[first].take().map(|(_, packet)| packet)
    }
}

impl fmt::Display for NoSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no free slot in the reorder buffer")
    }
}

impl core::error::Error for NoSlot {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    /// Returns the order of arrival of packets that are `late` places late, with copies `later` places later.
    fn order(packets: &[(u16, Option<u16>)]) -> Vec<usize> {
        let mut line = ReorderBuffer::new(vec![None; 8]);
        let mut arrived = Vec::new();
        for (i, &(late, later)) in packets.iter().enumerate() {
            let place = ArrivalPlace::of(i as u64, late);
            let copy = later.map(|later| place.copy(later));
            line.put(LinkArrival { place, copy, flipped: 0 }, i).unwrap();
            arrived.extend(core::iter::from_fn(|| line.poll()));
        }
        arrived.extend(core::iter::from_fn(|| line.flush()));
        arrived
    }

    #[test]
    fn a_late_packet_arrives_behind_the_packet_of_its_place() {
        assert_eq!(order(&[(0, None), (2, None), (0, None), (0, None), (0, None)]), [0, 2, 3, 1, 4]);
        assert_eq!(order(&[(0, None), (1, None), (0, None), (0, None)]), [0, 2, 1, 3]);
    }

    #[test]
    fn late_packets_of_one_place_keep_their_order() {
        assert_eq!(order(&[(3, None), (2, None), (1, None), (0, None), (0, None)]), [3, 0, 1, 2, 4]);
        assert_eq!(order(&[(1, None), (1, None), (1, None), (1, None)]), [0, 1, 2, 3]);
    }

    #[test]
    fn a_copy_arrives_behind_its_original() {
        assert_eq!(order(&[(0, Some(0)), (0, None)]), [0, 0, 1]);
        assert_eq!(order(&[(0, Some(1)), (0, None), (0, None)]), [0, 1, 0, 2]);
        assert_eq!(order(&[(1, Some(0)), (0, Some(0)), (0, None)]), [1, 1, 0, 0, 2]);
        assert_eq!(order(&[(1, Some(1)), (0, None), (0, None)]), [1, 0, 2, 0]);
    }

    #[test]
    fn what_is_under_way_arrives_at_the_end() {
        assert_eq!(order(&[(9, None), (7, Some(5)), (0, None)]), [2, 1, 0, 1]);
    }

    #[test]
    fn a_packet_without_room_changes_nothing() {
        let mut line = ReorderBuffer::new([None; 2]);
        let arrival = |entered, later: Option<u16>| {
            let place = ArrivalPlace::of(entered, 5);
            LinkArrival { place, copy: later.map(|later| place.copy(later)), flipped: 0 }
        };
        line.put(arrival(0, None), 'a').unwrap();
        assert_eq!(line.put(arrival(1, Some(0)), 'b'), Err(NoSlot));
        assert_eq!(line.poll(), None);
        line.put(arrival(1, None), 'c').unwrap();
        assert_eq!(line.put(arrival(2, None), 'd'), Err(NoSlot));
        assert_eq!((line.flush(), line.flush(), line.flush()), (Some('a'), Some('c'), None));
    }
}
