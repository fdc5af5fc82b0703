//! A bounded queue of PDUs in the caller's memory.

use core::fmt;

use crate::npa::Npa;
use crate::sndu::Sndu;
use crate::source::SnduSource;
use crate::type_field::Type;

/// Queue of at most `N` PDUs, in a buffer of the caller.
///
/// A PDU is stored contiguously. Where the end of the buffer has no room for it, it is stored at the start, so that
/// some octets remain unused: twice the octets that have to wait always suffice.
#[derive(Debug)]
pub struct PduQueue<'m, const N: usize> {
    octets: &'m mut [u8],
    entries: [QueueEntry; N],
    /// Index of the next entry, and number of entries.
    first: usize,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct QueueEntry {
    start: usize,
    len: usize,
    type_field: Type,
    destination: Option<Npa>,
}

/// Reason why a PDU cannot be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// There is no room at present.
    Full,
    /// Only a contiguous payload without Optional Extension Headers can be queued.
    NotPlain,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the queue is full"),
            Self::NotPlain => {
                f.write_str("the queue accepts neither PDU-Concat nor Optional Extension Headers")
            }
        }
    }
}

impl core::error::Error for QueueError {}

impl<'m, const N: usize> PduQueue<'m, N> {
    /// Creates an empty queue.
    pub fn new(octets: &'m mut [u8]) -> Self {
        let none = QueueEntry { start: 0, len: 0, type_field: Type::TEST, destination: None };
        Self { octets, entries: [none; N], first: 0, count: 0 }
    }

    /// Returns the number of queued PDUs.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// True if no PDU is queued.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a PDU, or another payload.
    pub fn push(&mut self, sndu: &Sndu<'_>) -> Result<(), QueueError> {
        let octets = sndu.plain().ok_or(QueueError::NotPlain)?;
        let start = self.room(octets.len()).filter(|_| self.count < N).ok_or(QueueError::Full)?;
        let at = (self.first + self.count) % N.max(1);
        let (Some(entry), Some(room)) =
            (self.entries.get_mut(at), self.octets.get_mut(start..start + octets.len()))
        else {
            return Err(QueueError::Full);
        };
        room.copy_from_slice(octets);
        let (type_field, destination) = (sndu.type_field(), sndu.destination());
        *entry = QueueEntry { start, len: octets.len(), type_field, destination };
        self.count += 1;
        Ok(())
    }

    /// Returns the offset of `len` free octets.
    fn room(&self, len: usize) -> Option<usize> {
        let (Some(first), Some(last)) =
            (self.entry(0), self.count.checked_sub(1).and_then(|i| self.entry(i)))
        else {
            return (len <= self.octets.len()).then_some(0);
        };
        let end = last.start + last.len;
        if last.start < first.start {
            // An empty PDU at the offset of the first one would hide that the others lie before it.
            return (end + len <= first.start && end < first.start).then_some(end);
        }
        if end + len <= self.octets.len() {
            return Some(end);
        }
        (len <= first.start && first.start > 0).then_some(0)
    }

    fn entry(&self, ahead: usize) -> Option<&QueueEntry> {
        if ahead < self.count { self.entries.get((self.first + ahead) % N) } else { None }
    }
}

impl<const N: usize> SnduSource for PduQueue<'_, N> {
    #[inline]
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        let entry = self.entry(ahead)?;
        let octets = self.octets.get(entry.start..entry.start + entry.len)?;
        Some(Sndu::of(entry.destination, entry.type_field, octets))
    }

    fn take(&mut self, count: usize) {
        let count = count.min(self.count);
        self.count -= count;
        self.first = (self.first + count) % N.max(1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::extension::OptionalHeader;
    use crate::type_field::{EtherType, HLen};
    use std::collections::VecDeque;
    use std::vec::Vec;

    #[test]
    fn what_is_put_in_comes_out_in_order_and_whole() {
        let mut octets = [0; 100];
        let mut queue = PduQueue::<5>::new(&mut octets);
        let (mut expected, mut refused) = (VecDeque::new(), 0);
        for i in 0..2_000_usize {
            let pdu: Vec<u8> = (0..i * i % 41).map(|j| (i + j) as u8).collect();
            match queue.push(&Sndu::pdu(EtherType::IPV4, &pdu)) {
                Ok(()) => expected.push_back(pdu),
                Err(error) => {
                    assert_eq!(error, QueueError::Full);
                    refused += 1;
                }
            }
            assert_eq!(queue.len(), expected.len());
            for (ahead, pdu) in expected.iter().enumerate() {
                assert_eq!(queue.peek(ahead), Some(Sndu::pdu(EtherType::IPV4, pdu)));
            }
            assert_eq!(queue.peek(expected.len()), None);
            let taken = i % 3 % (expected.len() + 1);
            queue.take(taken);
            expected.drain(..taken);
        }
        assert!((10..1_900).contains(&refused), "{refused}");
    }

    #[test]
    fn what_cannot_wait_is_refused() {
        let mut octets = [0; 100];
        let mut queue = PduQueue::<2>::new(&mut octets);
        let padding = [OptionalHeader::padding(HLen::MAX)];
        let sndu = Sndu::pdu(EtherType::IPV4, b"pdu");
        assert_eq!(queue.push(&sndu.with_headers(&padding)), Err(QueueError::NotPlain));
        assert_eq!(queue.push(&Sndu::pdu_concat(EtherType::IPV4.into(), &[])), Err(QueueError::NotPlain));
        let npa = Npa::new([1; 6]).unwrap();
        queue.push(&sndu.to(npa)).unwrap();
        assert_eq!(queue.peek(0), Some(sndu.to(npa)));
        queue.take(7);
        assert!(queue.is_empty());
        assert_eq!(PduQueue::<0>::new(&mut [0; 9]).push(&sndu), Err(QueueError::Full));
        assert_eq!(PduQueue::<1>::new(&mut [0; 2]).push(&sndu), Err(QueueError::Full));
    }
}
