//! Ring buffer for octets of messages: the newest overwrite the oldest.

use alloc::vec::Vec;

/// Position of octets in the ring. Overwritten octets are not found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OctetSpan {
    /// Octets written before them, since the beginning.
    at: u64,
    start: u32,
    len: u32,
}

/// Ring buffer.
#[derive(Clone, Debug)]
pub(crate) struct OctetRing {
    octets: Vec<u8>,
    size: usize,
    /// Octets written since the beginning, including those skipped at the end of the memory.
    written: u64,
    /// Offset of the next octets.
    next: usize,
}

impl OctetRing {
    /// Creates a ring of `size` octets, which are allocated with the first message.
    pub(crate) const fn new(size: usize) -> Self {
        Self { octets: Vec::new(), size, written: 0, next: 0 }
    }

    /// Octets of memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.octets.capacity()
    }

    /// Reserves `most` contiguous octets; `write` returns the number of octets that it used. Returns `None` and writes
    /// nothing if `most` exceeds the size of the ring.
    #[inline]
    pub(crate) fn push(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<OctetSpan> {
        if most > self.size {
            return None;
        }
        if self.octets.is_empty() {
            self.octets.resize(self.size, 0);
        }
        let (mut start, mut at) = (self.next, self.written);
        if start + most > self.size {
            at += (self.size - start) as u64;
            start = 0;
        }
        let len = write(self.octets.get_mut(start..start + most)?);
        // A `write` that fails may have written all of the room.
        let taken = len.unwrap_or(most).min(most);
        (self.written, self.next) = (at + taken as u64, start + taken);
        Some(OctetSpan { at, start: start as u32, len: len? as u32 })
    }

    /// Returns the octets, unless they were overwritten.
    #[inline]
    pub(crate) fn get(&self, span: OctetSpan) -> Option<&[u8]> {
        if self.octets.is_empty() || span.at + (self.size as u64) < self.written {
            return None;
        }
        self.octets.get(span.start as usize..span.start as usize + span.len as usize)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn push(ring: &mut OctetRing, octets: &[u8], spare: usize) -> Option<OctetSpan> {
        ring.push(octets.len() + spare, |room| {
            room[..octets.len()].copy_from_slice(octets);
            Some(octets.len())
        })
    }

    #[test]
    fn the_newest_take_the_place_of_the_oldest() {
        let mut ring = OctetRing::new(10);
        let first = push(&mut ring, b"abcd", 0).unwrap();
        let second = push(&mut ring, b"efgh", 0).unwrap();
        let last = push(&mut ring, b"ijk", 0).unwrap();
        assert_eq!(
            [first, second, last].map(|span| ring.get(span)),
            [None, Some(&b"efgh"[..]), Some(b"ijk")]
        );
        assert_eq!(push(&mut ring, b"ij", 9), None);
    }

    proptest! {
        /// Octets that are found equal those that were written, and the last message is always found.
        #[test]
        fn octets_are_those_that_were_written(plan in vec((vec(any::<u8>(), 0..20), 0..10_usize), 1..60)) {
            let mut ring = OctetRing::new(40);
            let mut spans = std::vec![];
            for (octets, spare) in plan {
                let span = push(&mut ring, &octets, spare).unwrap();
                prop_assert_eq!(ring.get(span), Some(&octets[..]));
                spans.push((span, octets));
                for (span, octets) in &spans {
                    if let Some(found) = ring.get(*span) {
                        prop_assert_eq!(found, &octets[..]);
                    }
                }
            }
        }
    }
}
