//! Table of the contexts of flows, which finds, claims and releases a context in constant time.
//!
//! A hash index finds a flow; a list through the contexts keeps them in the order of their last use. Flows get CIDs in the order
//! of their appearance. When all are taken, the least recently used flow loses its context: one of the same two hosts if these
//! have half of all contexts, so that a host with thousands of connections does not take those of others. The cost of a context
//! also decides whether a flow gets and keeps it: [`worth`](super::worth).

use thinair_wire::time::Instant;

use super::brief::{BriefFlows, FirstContext, Shape};
use super::churn::{Churn, End, IF_PAID, IF_UNPAID};
use super::worth::{Balance, HostPairs};
use crate::cid::Cid;
use crate::profile::{Held, SenderPlace as Place};
use crate::storage::Slots;

/// No context.
const NONE: u16 = u16::MAX;

/// Bits of a hash that a link keeps.
pub(crate) const HASH: u32 = 0x00FF_FFFF;

/// Number of least recently used contexts among which one of the same two hosts is searched for.
const LOOKED_AT: usize = 256;

/// One in this many claims takes the least recently used context, whoever asks for it.
const TURN: u32 = 256;

/// Place of one context.
#[derive(Clone, Copy, Debug)]
pub struct CompressorContext {
    place: Place,
}

impl CompressorContext {
    /// No context.
    pub const EMPTY: Self = Self { place: Place::Free };
}

/// Links by which a context is found, and its position in the order of use.
///
/// Links have an array of their own, so that finding one flow among thousands and updating the order of use does not load the
/// contexts of others.
#[derive(Clone, Copy, Debug)]
pub struct FlowLink {
    /// 24 bits of the hash, and above them the state of the [`Balance`].
    tag: u32,
    /// Next context in the same bucket.
    next: u16,
    /// Neighbors in the order of use.
    older: u16,
    newer: u16,
    /// Credit of the [`Balance`].
    credit: i16,
}

impl FlowLink {
    /// No flow.
    pub const EMPTY: Self = Self { tag: 0, next: NONE, older: NONE, newer: NONE, credit: 0 };

    #[inline]
    fn is(&self, hash: u32) -> bool {
        (self.tag ^ hash) & HASH == 0
    }

    fn balance(&self) -> Balance {
        Balance { credit: self.credit, state: (self.tag >> HASH.count_ones()) as u8 }
    }

    fn set(&mut self, balance: Balance) {
        self.credit = balance.credit;
        self.tag = self.tag & HASH | u32::from(balance.state) << HASH.count_ones();
    }

    /// [`Balance::note`].
    #[inline(never)]
    fn note_cost(
        &mut self,
        before: usize,
        sent: usize,
        is_initialization: bool,
        answer: u8,
        full: i16,
    ) -> bool {
        let mut balance = self.balance();
        let is_worth = balance.note(before, sent, is_initialization, full);
        if is_worth && is_initialization && sent + usize::from(answer) <= before {
            balance.note_paid();
        }
        self.set(balance);
        is_worth
    }
}

/// Passes the addresses of a flow to `word`. Those of IPv4 have the first four octets.
#[cfg(any(feature = "coap", feature = "dtls"))]
#[inline]
pub(crate) fn address_words(v6: bool, source: &[u8; 16], destination: &[u8; 16], word: &mut impl FnMut(u64)) {
    let half = |octets: &[u8]| octets.first_chunk().map_or(0, |half| u64::from_ne_bytes(*half));
    // IPv4 addresses have four octets each.
    word(half(source) ^ half(destination).rotate_left(32));
    if v6 {
        word(half(&source[8..]));
        word(half(&destination[8..]));
    }
}

/// Fields that distinguish flows.
pub(crate) trait FlowKey {
    /// Passes the fields to `word`, word by word.
    fn key(&self, word: impl FnMut(u64));

    /// True if a context has all of these fields. Otherwise flows are distinguished by their hash, too.
    #[inline]
    fn is_compared_in_full(&self) -> bool {
        true
    }
}

/// Contexts of a channel.
#[derive(Debug)]
pub(crate) struct FlowTable<'m> {
    contexts: Slots<'m, CompressorContext>,
    links: Slots<'m, FlowLink>,
    buckets: Slots<'m, u16>,
    mask: u32,
    key: u64,
    /// Number of contexts that were ever used.
    used: u16,
    /// Number of flows that have lost their context to another one.
    displaced: u32,
    capacity: u16,
    oldest: u16,
    newest: u16,
    uncompressed: Option<Cid>,
    pairs: HostPairs,
    churn: Churn,
    brief: BriefFlows,
    /// Octets of the last feedback, which an IR packet is likely to get; 0 before the first.
    answer: u8,
    /// Octets above plain headers that a context may cost at any time.
    credit: i16,
}

/// Number of contexts from which on flows wait for one: profile 0x0000 takes a large part of fewer.
const ENOUGH: u16 = 5;

impl<'m> FlowTable<'m> {
    /// Creates a table without flows. A context may cost `credit` octets above plain headers at any time.
    pub(crate) fn new(
        mut contexts: Slots<'m, CompressorContext>,
        mut links: Slots<'m, FlowLink>,
        mut buckets: Slots<'m, u16>,
        limit: usize,
        seed: u64,
        credit: i16,
    ) -> Self {
        contexts.fill(CompressorContext::EMPTY);
        links.fill(FlowLink::EMPTY);
        buckets.fill(NONE);
        let capacity = contexts.len().min(links.len()).min(limit) as u16;
        // The largest power of two for which there is room. Without any bucket, every packet starts a new flow.
        let mask = (1_u32 << buckets.len().max(1).ilog2()) - 1;
        let key = seed ^ 0x2D35_8DCC_AA6C_78A5;
        Self {
            contexts,
            links,
            buckets,
            mask,
            key,
            used: 0,
            displaced: 0,
            capacity,
            oldest: NONE,
            newest: NONE,
            uncompressed: None,
            pairs: HostPairs::new(),
            churn: Churn::new(),
            brief: BriefFlows::new(),
            answer: 0,
            credit,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        usize::from(self.capacity)
    }

    /// Returns a keyed hash (multiply and fold) of the fields that distinguish flows.
    #[inline]
    pub(crate) fn hash(&self, flow: &impl FlowKey) -> u32 {
        let mut hash = self.key;
        flow.key(|word| {
            let product =
                u128::from(hash ^ word) * u128::from(0xA076_1D64_78BD_642F_u64 ^ self.key.rotate_left(17));
            hash = product as u64 ^ (product >> 64) as u64;
        });
        hash as u32 ^ (hash >> 32) as u32
    }

    /// Returns the context of a flow with that hash for which `is_it` is true.
    #[inline]
    pub(crate) fn find<C: Held<Place>>(&self, hash: u32, is_it: impl Fn(Cid, &C) -> bool) -> Option<Cid> {
        self.find_place(hash, |cid, place| C::of(place).is_some_and(|context| is_it(cid, context)))
    }

    /// Returns the context of a flow, which is often that of the packet before; the hash of a flow that has none.
    #[inline]
    pub(crate) fn find_flow<C: Held<Place>>(
        &self,
        flow: &impl FlowKey,
        is_it: impl Fn(Cid, &C) -> bool,
    ) -> Result<Cid, u32> {
        if let Some(newest) = Cid::new(self.newest)
            && flow.is_compared_in_full()
            && self.context(newest).is_some_and(|context| is_it(newest, context))
        {
            return Ok(newest);
        }
        let hash = self.hash(flow);
        self.find(hash, is_it).ok_or(hash)
    }

    #[inline]
    fn find_place(&self, hash: u32, is_it: impl Fn(Cid, &Place) -> bool) -> Option<Cid> {
        let mut at = *self.buckets.get((hash & self.mask) as usize)?;
        while let Some(link) = self.links.get(usize::from(at)) {
            if link.is(hash)
                && let Some(context) = self.contexts.get(usize::from(at))
                && let Some(cid) = Cid::new(at)
                && is_it(cid, &context.place)
            {
                return Some(cid);
            }
            at = link.next;
        }
        None
    }

    /// True if the flow with that hash was rejected and has to wait.
    pub(crate) fn is_rejected(&self, hash: u32, now: Instant) -> bool {
        self.find_place(hash, |_, place| matches!(place, Place::Rejected { until } if now < *until)).is_some()
    }

    /// Number of contexts that [`claim`](Self::claim) took from another flow, modulo 2^32.
    pub(crate) fn displaced(&self) -> u32 {
        self.displaced
    }

    /// [`Churn::again`].
    pub(crate) fn waiting(&self) -> u32 {
        self.churn.again()
    }

    /// Returns a hash of the two hosts of a packet.
    pub(crate) fn hosts(&self, packet: &[u8]) -> u64 {
        HostPairs::hash(packet, self.key)
    }

    /// Returns the CID of a free context, or of the least recently used one.
    pub(crate) fn next(&self, pair: u8) -> Option<Cid> {
        if self.used < self.capacity {
            return Cid::new(self.used);
        }
        let is_own =
            |at: u16| self.links.get(usize::from(at)).is_some_and(|link| link.balance().pair() == pair);
        // Flows that have ended leave contexts behind, which other flows get one by one.
        let is_turn = self.displaced.is_multiple_of(TURN);
        let has_share = !is_turn && self.pairs.count(pair) >= (self.capacity / 2).max(1);
        if !has_share || is_own(self.oldest) {
            return Cid::new(self.oldest);
        }
        let mut at = self.oldest;
        for _ in 0..LOOKED_AT {
            let Some(link) = self.links.get(usize::from(at)) else { break };
            if is_own(at) {
                return Cid::new(at);
            }
            at = link.newer;
        }
        Cid::new(self.oldest)
    }

    /// Takes the [`next`](Self::next) context. Its content stays, for the caller to release and replace.
    pub(crate) fn claim(&mut self, next: Cid, hash: u32, pair: u8) -> Option<Cid> {
        if self.used == self.capacity {
            self.displaced = self.displaced.wrapping_add(1);
        }
        self.take(next, hash, pair)
    }

    /// Takes a context: the [`next`](Self::next) one, or one that was used before.
    pub(crate) fn take(&mut self, cid: Cid, hash: u32, pair: u8) -> Option<Cid> {
        let at = cid.value();
        if at == self.used && self.used < self.capacity {
            self.used += 1;
        } else {
            self.unlink_use(at);
            self.unlink_bucket(at);
            if let Some(link) = self.links.get(usize::from(at)) {
                let balance = link.balance();
                self.pairs.count_less(balance.pair());
                if balance.pair() != HostPairs::NONE {
                    self.churn.note_end(link.tag & HASH, balance.end(self.credit));
                }
            }
            self.brief.note_end(cid);
        }
        if self.uncompressed == Some(cid) {
            self.uncompressed = None;
        }
        let credit = self.credit;
        let link = self.links.get_mut(usize::from(at))?;
        link.tag = hash & HASH;
        link.set(Balance::new(credit, pair));
        self.pairs.count_more(pair);
        self.link_bucket(at);
        self.link_newest(at);
        Some(cid)
    }

    /// The bits of its hash that a context is filed under.
    #[inline]
    pub(crate) fn hash_of(&self, cid: Cid) -> u32 {
        self.links.get(cid.index()).map_or(0, |link| link.tag & HASH)
    }

    /// Files a context under another hash.
    pub(crate) fn rehash(&mut self, cid: Cid, hash: u32) {
        self.unlink_bucket(cid.value());
        if let Some(link) = self.links.get_mut(cid.index()) {
            link.tag = link.tag & !HASH | hash & HASH;
        }
        self.link_bucket(cid.value());
    }

    /// True if a new flow of two hosts may take a context from another one. Called once per flow and packet.
    pub(crate) fn admits(&mut self, hash: u32, pair: u8) -> bool {
        if self.used < self.capacity || self.capacity < ENOUGH {
            return true;
        }
        let Some(packets) = self.churn.count(hash) else { return true };
        let has_paid = |cid: Cid| self.links.get(cid.index()).is_some_and(|link| link.balance().has_paid());
        packets >= IF_UNPAID || packets >= IF_PAID && self.next(pair).is_some_and(has_paid)
    }

    /// Returns the context for a packet of a flow without one, which is its first packet or was forgotten; `has_ip` if there is an IP
    /// profile. Called once per flow and packet.
    pub(crate) fn first_context(
        &mut self,
        now: Instant,
        hash: u32,
        shape: Shape,
        has_ip: bool,
    ) -> FirstContext {
        let context = self.brief.first_context(now, shape, has_ip);
        if context == FirstContext::Own || self.churn.knows(hash) {
            return FirstContext::Own;
        }
        self.churn.note_without(hash);
        context
    }

    /// Records that a flow of a shape has got a context of its own.
    pub(crate) fn note_birth(&mut self, now: Instant, hash: u32, shape: Shape, cid: Cid) {
        self.brief.note_birth(now, shape, hash, cid);
    }

    /// Records that flows share the context of a CID from now on.
    pub(crate) fn note_shared(&mut self, cid: Cid) {
        if cid == Cid::ZERO {
            self.brief.note_shared_zero();
        }
    }

    /// Records a packet of profile 0x0000.
    pub(crate) fn note_without_profile(&mut self, cid: Cid) {
        self.brief.note_without_profile(cid);
    }

    /// Returns CID 0, which takes no octet, if a brief flow has left it to a context that flows share, or these have left it to one of its
    /// own.
    pub(crate) fn left_zero(&self, for_shared: bool) -> Option<Cid> {
        (self.brief.has_brief_zero(for_shared) && self.newest != Cid::ZERO.value()).then_some(Cid::ZERO)
    }

    /// Records the octets of feedback.
    pub(crate) fn note_answer(&mut self, octets: usize) {
        self.answer = u8::try_from(octets).unwrap_or(u8::MAX);
    }

    /// Counts a packet, and returns true if its flow uses another profile for now. Called once per packet.
    #[inline]
    pub(crate) fn rests(&mut self, cid: Cid) -> bool {
        let credit = self.credit;
        let Some(link) = self.links.get_mut(cid.index()).filter(|link| link.credit < 0) else { return false };
        let mut balance = link.balance();
        balance.rest(credit);
        link.set(balance);
        true
    }

    /// Records the octets of a header before and after compression. Returns true if the context is worth them; if not, the flow
    /// [`rests`](Self::rests) from now on.
    #[inline]
    pub(crate) fn note_cost(
        &mut self,
        cid: Cid,
        before: usize,
        sent: usize,
        is_initialization: bool,
    ) -> bool {
        let credit = self.credit;
        let Some(link) = self.links.get_mut(cid.index()) else { return true };
        if link.credit == credit && sent < before && !is_initialization {
            // The flow has a full credit, and saves octets again.
            return true;
        }
        let had_saved = link.balance().end(credit) == End::Paid;
        let is_worth = link.note_cost(before, sent, is_initialization, self.answer, credit);
        if !had_saved {
            self.brief.note_packet(link.tag & HASH, cid, link.balance().end(credit));
        }
        is_worth
    }

    /// Puts a context into a place.
    #[inline]
    pub(crate) fn set(&mut self, cid: Cid, context: impl Into<Place>) {
        let place = context.into();
        if matches!(place, Place::Uncompressed(_)) {
            self.uncompressed = Some(cid);
        }
        *self.place_mut(cid) = place;
    }

    /// Rejects the flow of a context until `until`.
    pub(crate) fn reject(&mut self, cid: Cid, until: Instant) {
        *self.place_mut(cid) = Place::Rejected { until };
    }

    /// The context of profile 0x0000, of which there is at most one.
    pub(crate) fn uncompressed(&self) -> Option<Cid> {
        self.uncompressed
    }

    #[inline]
    pub(crate) fn place_mut(&mut self, cid: Cid) -> &mut Place {
        // Every CID of this table has a place; the compressor checks CIDs from outside.
        &mut self.contexts[cid.index()].place
    }

    /// The place of a CID, if it was ever used.
    pub(crate) fn place(&self, cid: Cid) -> Option<&Place> {
        let used = self.contexts.get(..usize::from(self.used))?;
        used.get(cid.index()).map(|context| &context.place)
    }

    /// The context of a CID, if it is of this profile.
    #[inline]
    pub(crate) fn context<C: Held<Place>>(&self, cid: Cid) -> Option<&C> {
        C::of(&self.contexts.get(cid.index())?.place)
    }

    #[inline]
    pub(crate) fn context_mut<C: Held<Place>>(&mut self, cid: Cid) -> Option<&mut C> {
        C::of_mut(&mut self.contexts.get_mut(cid.index())?.place)
    }

    /// Iterates over the used places and their CIDs.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Cid, &Place)> {
        let places = self.contexts.iter().take(usize::from(self.used)).map(|context| &context.place);
        (0..).map_while(Cid::new).zip(places)
    }

    /// The most recently used CID, unless its flow [`rests`](Self::rests).
    #[inline]
    pub(crate) fn newest_in_use(&self) -> Option<Cid> {
        let link = self.links.get(usize::from(self.newest))?;
        Cid::new(self.newest).filter(|_| link.credit >= 0)
    }

    /// Iterates over the CIDs, the most recently used first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = Cid> {
        let mut at = self.newest;
        core::iter::from_fn(move || {
            let cid = Cid::new(at)?;
            at = self.links.get(cid.index())?.older;
            Some(cid)
        })
    }

    /// Makes a context the most recently used one.
    #[inline]
    pub(crate) fn touch(&mut self, cid: Cid) {
        let at = cid.value();
        if self.newest != at {
            self.unlink_use(at);
            self.link_newest(at);
        }
    }

    fn link_newest(&mut self, at: u16) {
        let before = self.newest;
        if let Some(link) = self.links.get_mut(usize::from(at)) {
            link.older = before;
            link.newer = NONE;
        }
        match self.links.get_mut(usize::from(before)) {
            Some(link) => link.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink_use(&mut self, at: u16) {
        let Some(link) = self.links.get(usize::from(at)) else { return };
        let (older, newer) = (link.older, link.newer);
        match self.links.get_mut(usize::from(older)) {
            Some(link) => link.newer = newer,
            None => {
                self.oldest = newer;
                self.churn.note_turn();
            }
        }
        match self.links.get_mut(usize::from(newer)) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
    }

    fn link_bucket(&mut self, at: u16) {
        let Some(link) = self.links.get_mut(usize::from(at)) else { return };
        if let Some(bucket) = self.buckets.get_mut((link.tag & HASH & self.mask) as usize) {
            link.next = *bucket;
            *bucket = at;
        }
    }

    fn unlink_bucket(&mut self, at: u16) {
        let Some(link) = self.links.get(usize::from(at)) else { return };
        let (hash, next) = (link.tag & HASH, link.next);
        let Some(bucket) = self.buckets.get_mut((hash & self.mask) as usize) else { return };
        if *bucket == at {
            *bucket = next;
            return;
        }
        let mut before = *bucket;
        while let Some(link) = self.links.get_mut(usize::from(before)) {
            if link.next == at {
                link.next = next;
                return;
            }
            before = link.next;
        }
    }
}
