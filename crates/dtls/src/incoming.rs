//! Handshake messages from their fragments. RFC 6347, section 4.2.3.
//!
//! Fragments extend a prefix of the next message. What arrives early is dropped and comes again with the flight: the memory of
//! a handshake is that of one message.

use alloc::vec::Vec;

use crate::message::{Fragment, MESSAGE_HEADER, header};

/// Longest message, in octets: longer ones do not occur in handshakes with pre-shared keys.
const LONGEST: usize = 1_024;

/// The next message, as far as it has arrived.
pub(crate) struct Incoming {
    /// Its number.
    next: u16,
    /// Header, as of a message in one fragment, and the prefix of the body; empty before the first fragment.
    octets: Vec<u8>,
}

impl Incoming {
    pub(crate) const fn new(next: u16) -> Self {
        Self { next, octets: Vec::new() }
    }

    /// Adds a fragment. Returns true if the message is complete: then [`message`](Self::message) returns it, and
    /// [`advance`](Self::advance) follows.
    pub(crate) fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        if fragment.sequence != self.next || fragment.len > LONGEST {
            return false;
        }
        let whole = header(fragment.kind, fragment.len, fragment.sequence, 0, fragment.len);
        if self.octets.is_empty() {
            self.octets.extend_from_slice(&whole);
        } else if self.octets.get(..MESSAGE_HEADER) != Some(&whole) {
            // It belongs to another message with this number: one of both is forged.
            return false;
        }
        let arrived = self.octets.len() - MESSAGE_HEADER;
        if let Some(new) = arrived.checked_sub(fragment.offset).and_then(|known| fragment.body.get(known..)) {
            self.octets.extend_from_slice(new);
        }
        self.octets.len() - MESSAGE_HEADER == fragment.len
    }

    /// Expects another message, whatever has arrived.
    pub(crate) fn expect(&mut self, number: u16) {
        self.next = number;
        self.octets.clear();
    }

    /// Returns the type of the complete message, and all its octets.
    pub(crate) fn message(&self) -> (u8, &[u8]) {
        (self.octets.first().copied().unwrap_or_default(), &self.octets)
    }

    /// Expects the message after the complete one.
    pub(crate) fn advance(&mut self) {
        self.expect(self.next.wrapping_add(1));
    }
}

/// Returns the body of a message.
pub(crate) fn body(message: &[u8]) -> &[u8] {
    message.get(MESSAGE_HEADER..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fragments that overlap, repeat, or come early.
        #[test]
        fn a_message_is_complete_once_all_its_octets_have_arrived_in_order(
            len in 0_usize..300,
            pieces in proptest::collection::vec((0_usize..300, 0_usize..100), 0..40),
        ) {
            let text: Vec<u8> = (0..len).map(|place| place as u8).collect();
            let mut incoming = Incoming::new(3);
            let mut arrived = 0;
            for (offset, piece) in pieces {
                let offset = offset.min(len);
                let end = (offset + piece).min(len);
                let fragment = Fragment { kind: 16, len, sequence: 3, offset, body: &text[offset..end] };
                if offset <= arrived {
                    arrived = arrived.max(end);
                }
                prop_assert_eq!(incoming.add(&fragment), arrived == len);
            }
            let rest = Fragment { kind: 16, len, sequence: 3, offset: arrived, body: &text[arrived..] };
            prop_assert!(incoming.add(&rest));
            let (kind, message) = incoming.message();
            prop_assert_eq!((kind, body(message)), (16, &text[..]));
            prop_assert_eq!(&message[..MESSAGE_HEADER], header(16, len, 3, 0, len));
        }
    }

    #[test]
    fn a_length_of_the_peer_determines_no_memory() {
        let mut incoming = Incoming::new(0);
        let len = (1 << 24) - 1;
        assert!(!incoming.add(&Fragment { kind: 16, len, sequence: 0, offset: 0, body: &[0; 1_000] }));
        assert_eq!(incoming.octets.capacity(), 0);
    }

    #[test]
    fn a_fragment_with_another_length_is_not_of_the_message() {
        let mut incoming = Incoming::new(0);
        assert!(!incoming.add(&Fragment { kind: 16, len: 4, sequence: 0, offset: 0, body: &[1, 2] }));
        assert!(!incoming.add(&Fragment { kind: 16, len: 2, sequence: 0, offset: 0, body: &[3, 4] }));
        assert!(!incoming.add(&Fragment { kind: 20, len: 4, sequence: 0, offset: 2, body: &[3, 4] }));
        assert!(incoming.add(&Fragment { kind: 16, len: 4, sequence: 0, offset: 2, body: &[3, 4] }));
    }
}
