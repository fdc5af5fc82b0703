//! Past messages of one direction to which the other direction refers: a CoAP response repeats the token of its request, an
//! acknowledgement its Message ID (RFC 7252, sections 4.2 and 5.3). Section 8 of `docs/coap-profile.md`.

use crate::channel::Channel;
use crate::id::ProfileId;
#[cfg(feature = "alloc")]
use crate::storage::Heap;
use crate::storage::{Places, Slots};
use crate::work;

/// Value for a message without a Block option.
const NO_BLOCK: u32 = u32::MAX;

/// Number of messages of a flow that are searched, newest first. A compressor uses the newer half.
pub(crate) const OF_A_FLOW: usize = 64;

/// Token of a CoAP message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoapToken {
    /// Octets behind the token are zero.
    pub(crate) octets: [u8; 8],
    pub(crate) len: u8,
}

impl CoapToken {
    /// No token.
    pub(crate) const EMPTY: Self = Self { octets: [0; 8], len: 0 };

    /// Returns the token in at most 8 octets.
    #[inline]
    pub(crate) fn of(octets: &[u8]) -> Self {
        let mut token = Self { octets: [0; 8], len: octets.len().min(8) as u8 };
        for (to, from) in token.octets.iter_mut().zip(octets) {
            *to = *from;
        }
        token
    }

    /// Splits `octets` into a token of `len` octets and the octets behind it.
    #[inline]
    pub(crate) fn at_start_of(octets: &[u8], len: u8) -> Option<(Self, &[u8])> {
        let (token, behind) = octets.split_at_checked(usize::from(len))?;
        let token = match octets.first_chunk() {
            Some(chunk) => Self::of_uint(Self { octets: *chunk, len }.uint(), len),
            None => Self::of(token),
        };
        Some((token, behind))
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The token as a uint.
    #[inline]
    pub(crate) fn uint(&self) -> u64 {
        u64::from_be_bytes(self.octets).checked_shr(64 - 8 * u32::from(self.len)).unwrap_or(0)
    }

    /// Returns a uint in `len` octets.
    #[inline]
    pub(crate) fn of_uint(value: u64, len: u8) -> Self {
        let shifted = value.checked_shl(64 - 8 * u32::from(len.min(8))).unwrap_or(0);
        Self { octets: shifted.to_be_bytes(), len: len.min(8) }
    }

    /// Returns a uint in its shortest form.
    #[inline]
    pub(crate) fn of_shortest_uint(value: u64) -> Self {
        Self::of_uint(value, (8 - value.leading_zeros() / 8) as u8)
    }
}

/// Hash of both endpoints of a flow, in the direction of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowName(u32);

impl FlowName {
    /// The name of no flow.
    pub(crate) const NONE: Self = Self(0);

    /// Bit of the direction, and one that is always set.
    const BACKWARDS: u32 = 1 << 31;
    const SOME: u32 = 1 << 30;

    /// Returns a name by a hash that is equal in both directions.
    pub(crate) const fn new(hash: u32, is_forward: bool) -> Self {
        let name = hash >> 2 | Self::SOME;
        Self(if is_forward { name } else { name | Self::BACKWARDS })
    }

    /// The flow of the other direction.
    #[inline]
    pub(crate) const fn answers(self) -> Self {
        Self(self.0 ^ Self::BACKWARDS)
    }
}

/// Messages of both directions, which an endpoint lends to its compressor and decompressor.
pub(crate) struct Linked<'a, 'm> {
    /// Messages that this end has sent.
    pub(crate) sent: &'a mut Exchanges<'m>,
    /// Messages that this end has received.
    pub(crate) received: &'a mut Exchanges<'m>,
}

impl<'m> Linked<'_, 'm> {
    #[inline]
    pub(crate) fn reborrow(&mut self) -> Linked<'_, 'm> {
        Linked { sent: self.sent, received: self.received }
    }
}

/// A message that was sent, or that was received and verified.
#[derive(Clone, Copy, Debug)]
pub struct CoapExchange {
    /// Both endpoints, in the direction of the message, without a port of the client that may change.
    flow: FlowName,
    token: CoapToken,
    block: u32,
    msn: u16,
    pub(crate) message_id: u16,
    /// Port of the client.
    pub(crate) port: u16,
    /// The other end has answered it, so that it has arrived.
    is_answered: bool,
    /// Number of the previous message in its chain; 0 for none.
    before: u32,
    /// Number of the newest message in the chain whose head is in this place. Independent of the message in the place.
    newest: u32,
}

impl CoapExchange {
    /// No message.
    pub const EMPTY: Self = Self {
        flow: FlowName::NONE,
        token: CoapToken::EMPTY,
        block: NO_BLOCK,
        msn: 0,
        message_id: 0,
        port: 0,
        is_answered: false,
        before: 0,
        newest: 0,
    };

    pub(crate) fn new(
        flow: FlowName,
        msn: u16,
        message_id: u16,
        token: CoapToken,
        block: Option<u32>,
    ) -> Self {
        let block = block.unwrap_or(NO_BLOCK);
        Self { flow, token, block, msn, message_id, ..Self::EMPTY }
    }

    pub(crate) fn token(&self) -> CoapToken {
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

/// The last messages of one direction, in a ring. Messages of flows with equal hashes are chained, so that a search takes no
/// longer with many flows.
#[derive(Debug)]
pub struct Exchanges<'m> {
    ring: Slots<'m, CoapExchange>,
    /// Number of places in use: a power of two, or 0.
    len: usize,
    /// Number of the newest message, from 1 on. Its place is the remainder of the division by the length of the ring.
    newest: u32,
}

impl<'m> Exchanges<'m> {
    /// Creates an empty ring. With `n` places, `n` rounded down to a power of two, a response can refer to the last `n / 2`
    /// messages of the other direction, and to the last 32 of its flow. The number is a parameter of the channel: see
    /// [`places`](Self::places).
    pub fn new(ring: impl Into<Slots<'m, CoapExchange>>) -> Self {
        let mut ring = ring.into();
        ring.fill(CoapExchange::EMPTY);
        let len = ring.len().checked_ilog2().map_or(0, |bits| 1 << bits);
        Self { ring, len, newest: 0 }
    }

    /// Creates a ring without places, which never holds a message.
    pub fn none() -> Self {
        Self { ring: Slots::Lent(&mut []), len: 0, newest: 0 }
    }

    /// Creates an owned ring of `n` places, rounded down to a power of two.
    #[cfg(feature = "alloc")]
    pub fn owned(n: usize) -> Self {
        Self::new(Slots::owned(alloc::vec![CoapExchange::EMPTY; n]))
    }

    /// Creates an owned ring with as many [`places`](Self::places) as a channel needs; none without profile 0x0181.
    #[cfg(feature = "alloc")]
    pub fn for_channel(channel: &Channel) -> Self {
        Self::of(channel, &mut Heap)
    }

    /// [`for_channel`](Self::for_channel), in memory of a source.
    pub fn of(channel: &Channel, source: &mut impl Places<'m>) -> Self {
        let has_coap = channel.profiles().has(ProfileId::Coap);
        Self::new(source.places(CoapExchange::EMPTY, if has_coap { Self::places(channel) } else { 0 }))
    }

    /// Octets of all places.
    pub fn octets(&self) -> usize {
        self.ring.octets()
    }

    /// Recommended number of places for a channel, a power of two: four per context, and at least 64.
    pub fn places(channel: &Channel) -> usize {
        (4 * channel.contexts()).next_power_of_two().max(OF_A_FLOW)
    }

    /// Copies all messages from a ring with as many places.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        if self.ring.len() == other.ring.len() {
            self.ring.copy_from_slice(&other.ring);
            self.newest = other.newest;
        }
    }

    pub(crate) fn note(&mut self, exchange: CoapExchange) {
        // 0 is not used as a number.
        let number = self.newest.wrapping_add(1).max(1);
        let chain = self.place(exchange.flow.0);
        let Some(head) = self.ring.get_mut(chain) else { return };
        let before = core::mem::replace(&mut head.newest, number);
        let place = self.place(number);
        if let Some(of_message) = self.ring.get_mut(place) {
            *of_message = CoapExchange { before, newest: of_message.newest, ..exchange };
            self.newest = number;
        }
    }

    /// Returns the newest message with that MSN, and with that port if one is given.
    #[inline]
    pub(crate) fn by_msn(&self, flow: FlowName, port: Option<u16>, msn: u16) -> Option<&CoapExchange> {
        self.all_by_msn(flow, port, msn).next()
    }

    /// Iterates over the messages with that MSN, newest first: MSNs go back with the Message IDs.
    #[inline]
    pub(crate) fn all_by_msn(
        &self,
        flow: FlowName,
        port: Option<u16>,
        msn: u16,
    ) -> impl Iterator<Item = &CoapExchange> {
        let is_it = move |exchange: &CoapExchange| {
            exchange.msn == msn && port.is_none_or(|port| exchange.port == port)
        };
        self.of_flow(flow, self.len).take(OF_A_FLOW).filter(move |exchange| is_it(exchange))
    }

    /// Records that the newest message with that port and MSN was answered.
    #[inline]
    pub(crate) fn note_answer(&mut self, flow: FlowName, port: u16, msn: u16) {
        let is_it = |exchange: &CoapExchange| exchange.msn == msn && exchange.port == port;
        let place = {
            let mut messages = self.places_of_flow(flow, self.len).take(OF_A_FLOW);
            messages.find(|(_, exchange)| is_it(exchange)).map(|(place, _)| place)
        };
        if let Some(of_message) = place.and_then(|place| self.ring.get_mut(place)) {
            of_message.is_answered = true;
        }
    }

    /// MSN of the newest message of a flow that was answered.
    #[inline]
    pub(crate) fn answered(&self, flow: FlowName, port: u16) -> Option<u16> {
        let is_it = |exchange: &&CoapExchange| exchange.is_answered && exchange.port == port;
        self.of_flow(flow, self.len).take(OF_A_FLOW).find(is_it).map(CoapExchange::msn)
    }

    /// Returns the MSNs of the messages of a flow, newest first.
    pub(crate) fn msns<'r>(&self, flow: FlowName, room: &'r mut [u16; OF_A_FLOW]) -> &'r [u16] {
        let mut count = 0;
        for (msn, exchange) in room.iter_mut().zip(self.of_flow(flow, self.len)) {
            *msn = exchange.msn;
            count += 1;
        }
        room.get(..count).unwrap_or_default()
    }

    /// Returns the newest message with that Message ID, among those that the other end has for certain: it has sent those
    /// that this end has received, and perhaps as many others that were lost.
    #[inline]
    pub(crate) fn by_message_id(&self, flow: FlowName, port: u16, message_id: u16) -> Option<&CoapExchange> {
        let is_it = |exchange: &&CoapExchange| exchange.message_id == message_id && exchange.port == port;
        let found = self.certain(flow).find(is_it);
        found.filter(|found| self.is_newest(found))
    }

    /// Returns the newest message with that token, among those that the other end has for certain.
    #[inline]
    pub(crate) fn by_token(&self, flow: FlowName, port: u16, token: &CoapToken) -> Option<&CoapExchange> {
        let is_it = |exchange: &&CoapExchange| exchange.token == *token && exchange.port == port;
        let found = self.certain(flow).find(is_it);
        found.filter(|found| self.is_newest(found))
    }

    /// True if no newer message has its MSN, of whatever port.
    #[inline]
    fn is_newest(&self, exchange: &CoapExchange) -> bool {
        self.by_msn(exchange.flow, None, exchange.msn).is_some_and(|newest| core::ptr::eq(newest, exchange))
    }

    /// Returns the place of a message by its number, or the place that has the head of a chain, by the hash of a flow.
    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & self.len.wrapping_sub(1)
    }

    /// Iterates over the messages of a flow among the newest `most` of all, newest first.
    #[inline]
    fn of_flow(&self, flow: FlowName, most: usize) -> impl Iterator<Item = &CoapExchange> {
        self.places_of_flow(flow, most).map(|(_, exchange)| exchange)
    }

    /// [`of_flow`](Self::of_flow), with the places of the messages.
    #[inline]
    fn places_of_flow(&self, flow: FlowName, most: usize) -> impl Iterator<Item = (usize, &CoapExchange)> {
        let mut number = self.ring.get(self.place(flow.0)).map_or(0, |head| head.newest);
        let mut left = most;
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            work::note(1);
            let age = self.newest.wrapping_sub(number) as usize;
            let place = self.place(number);
            let exchange = self.ring.get(place).filter(|_| number != 0 && age < most)?;
            number = exchange.before;
            Some((place, exchange))
        })
        .filter(move |(_, exchange)| exchange.flow == flow)
    }

    #[inline]
    fn certain(&self, flow: FlowName) -> impl Iterator<Item = &CoapExchange> {
        self.of_flow(flow, self.len / 2).take(OF_A_FLOW / 2)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::channel::ProfileSet;
    use crate::cid::CidSpace;

    #[test]
    fn the_newest_half_is_certain() {
        let mut exchanges = Exchanges::new(Slots::owned(alloc::vec![CoapExchange::EMPTY; 4]));
        for msn in 0..6 {
            exchanges.note(CoapExchange::new(FlowName(7), msn, 100 + msn, CoapToken::EMPTY, None));
        }
        assert_eq!(exchanges.by_message_id(FlowName(7), 0, 105).map(CoapExchange::msn), Some(5));
        assert_eq!(exchanges.by_message_id(FlowName(7), 0, 104).map(CoapExchange::msn), Some(4));
        assert!(exchanges.by_message_id(FlowName(7), 0, 103).is_none());
        assert_eq!(exchanges.by_msn(FlowName(7), None, 2).unwrap().message_id, 102);
        assert!(exchanges.by_msn(FlowName(7), None, 1).is_none());
        assert!(exchanges.by_msn(FlowName(8), None, 5).is_none());
        assert_eq!(exchanges.msns(FlowName(7), &mut [0; OF_A_FLOW]), [5, 4, 3, 2]);
    }

    /// Every message of two flows of one chain among the newest is found, and no other.
    #[test]
    fn a_chain_forgets_what_the_ring_forgets() {
        let mut exchanges = Exchanges::new(Slots::owned(alloc::vec![CoapExchange::EMPTY; 300]));
        assert_eq!(exchanges.len, 256);
        // Two flows of one chain, one message in three, among others.
        let flow =
            |number: u32| FlowName(if number.is_multiple_of(3) { 5 + 256 * (number % 2) } else { number });
        for number in 1..2_000_u32 {
            exchanges.note(CoapExchange::new(
                flow(number),
                number as u16,
                number as u16,
                CoapToken::EMPTY,
                None,
            ));
            let found = |looked: u32| exchanges.by_msn(flow(looked), None, looked as u16).is_some();
            let certain = |looked: u32| exchanges.by_message_id(flow(looked), 0, looked as u16).is_some();
            for looked in number.saturating_sub(400).max(1)..=number {
                let age = number - looked;
                // One in six is of the same flow.
                let of_its_flow = if looked % 3 == 0 { age / 6 } else { 0 };
                assert_eq!(found(looked), age < 256 && of_its_flow < 64, "{looked} of {number}");
                assert_eq!(certain(looked), age < 128 && of_its_flow < 32, "{looked} of {number}");
            }
        }
    }

    #[test]
    fn the_number_of_messages_may_turn() {
        let mut exchanges = Exchanges::owned(64);
        exchanges.newest = u32::MAX - 100;
        for msn in 0..1_000 {
            exchanges.note(CoapExchange::new(FlowName(7), msn, msn, CoapToken::EMPTY, None));
            for back in 0..msn.min(30) {
                assert_eq!(
                    exchanges.by_message_id(FlowName(7), 0, msn - back).map(CoapExchange::msn),
                    Some(msn - back)
                );
            }
        }
    }

    #[test]
    fn a_ring_has_places_for_each_context() {
        let channel = |max_cid| Channel::new(CidSpace::Large, max_cid, ProfileSet::v1()).unwrap();
        let places = |max_cid| Exchanges::places(&channel(max_cid));
        assert_eq!([0, 15, 16, 999, 16_383].map(places), [64, 64, 128, 4_096, 65_536]);
    }
}
