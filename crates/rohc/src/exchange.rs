//! Messages that went by in one direction, for the other direction to refer to: a CoAP response repeats the token
//! of its request, an acknowledgement its Message ID (RFC 7252, sections 4.2 and 5.3). Section 8 of
//! `docs/coap-profile.md`.

use crate::profile::coap::Token;
use crate::storage::Slots;

/// No Block option.
const NO_BLOCK: u32 = u32::MAX;

/// A message that was sent, or that was received and verified.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Both endpoints, in the direction of the message; 0 is none.
    flow: u32,
    token: Token,
    block: u32,
    msn: u16,
    pub(crate) message_id: u16,
}

impl Exchange {
    /// No message.
    pub const EMPTY: Self = Self { flow: 0, token: Token::EMPTY, block: NO_BLOCK, msn: 0, message_id: 0 };

    pub(crate) fn new(flow: u32, msn: u16, message_id: u16, token: Token, block: Option<u32>) -> Self {
        Self { flow, token, block: block.unwrap_or(NO_BLOCK), msn, message_id }
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// NUM of its Block option.
    pub(crate) fn block(&self) -> Option<u32> {
        (self.block != NO_BLOCK).then_some(self.block)
    }

    pub(crate) fn msn(&self) -> u16 {
        self.msn
    }
}

/// The last messages of one direction, in a ring.
#[derive(Debug)]
pub struct Exchanges<'m> {
    ring: Slots<'m, Exchange>,
    /// The place of the next one.
    next: usize,
}

impl<'m> Exchanges<'m> {
    /// An empty ring. With `n` places, a response can refer to the last `n / 2` messages of the other direction.
    pub fn new(mut ring: Slots<'m, Exchange>) -> Self {
        ring.fill(Exchange::EMPTY);
        Self { ring, next: 0 }
    }

    /// No ring: nothing is noted, and nothing found.
    pub fn none() -> Self {
        Self { ring: Slots::Lent(&mut []), next: 0 }
    }

    /// An owned ring of `n` places.
    #[cfg(feature = "alloc")]
    pub fn owned(n: usize) -> Self {
        Self::new(Slots::owned(alloc::vec![Exchange::EMPTY; n]))
    }

    /// Takes over all messages of a ring with as many places.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        if self.ring.len() == other.ring.len() {
            self.ring.copy_from_slice(&other.ring);
            self.next = other.next;
        }
    }

    pub(crate) fn note(&mut self, exchange: Exchange) {
        if let Some(place) = self.ring.get_mut(self.next) {
            *place = exchange;
            self.next = if self.next + 1 == self.ring.len() { 0 } else { self.next + 1 };
        }
    }

    /// The newest message with that MSN.
    #[inline]
    pub(crate) fn by_msn(&self, flow: u32, msn: u16) -> Option<&Exchange> {
        self.newest_first().find(|exchange| exchange.flow == flow && exchange.msn == msn)
    }

    /// The newest message with that Message ID, among those that the other end has for certain: it has sent those
    /// that this end received, and perhaps as many others that were lost.
    #[inline]
    pub(crate) fn by_message_id(&self, flow: u32, message_id: u16) -> Option<&Exchange> {
        let found =
            self.certain().find(|exchange| exchange.flow == flow && exchange.message_id == message_id);
        found.filter(|found| self.is_newest(found))
    }

    /// The newest message with that token, among those that the other end has for certain.
    #[inline]
    pub(crate) fn by_token(&self, flow: u32, token: &Token) -> Option<&Exchange> {
        let found = self.certain().find(|exchange| exchange.flow == flow && exchange.token == *token);
        found.filter(|found| self.is_newest(found))
    }

    /// Whether its MSN names it, and no newer message.
    #[inline]
    fn is_newest(&self, exchange: &Exchange) -> bool {
        self.by_msn(exchange.flow, exchange.msn).is_some_and(|newest| core::ptr::eq(newest, exchange))
    }

    #[inline]
    fn newest_first(&self) -> impl Iterator<Item = &Exchange> {
        let (newer, older) = self.ring.split_at(self.next.min(self.ring.len()));
        newer.iter().rev().chain(older.iter().rev())
    }

    #[inline]
    fn certain(&self) -> impl Iterator<Item = &Exchange> {
        self.newest_first().take(self.ring.len() / 2)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_half_is_certain() {
        let mut exchanges = Exchanges::new(Slots::owned(alloc::vec![Exchange::EMPTY; 4]));
        for msn in 0..6 {
            exchanges.note(Exchange::new(7, msn, 100 + msn, Token::EMPTY, None));
        }
        assert_eq!(exchanges.by_message_id(7, 105).map(Exchange::msn), Some(5));
        assert_eq!(exchanges.by_message_id(7, 104).map(Exchange::msn), Some(4));
        assert!(exchanges.by_message_id(7, 103).is_none());
        assert_eq!(exchanges.by_msn(7, 2).unwrap().message_id, 102);
        assert!(exchanges.by_msn(7, 1).is_none());
        assert!(exchanges.by_msn(8, 5).is_none());
    }
}
