//! State of a flow that compressor and decompressor share; a provisioned base consists of it, too. Sections 3 and 4
//! of `docs/coap-profile.md`.

use core::fmt;

use thinair_wire::checksum::Sum;
use thinair_wire::coder::Word;
use thinair_wire::crc::Check;
use thinair_wire::header::protocol;

pub(super) use super::template::PortMode;
pub use super::template::{ChecksumMode, IpIdMode, MessageIdMode, Template, TokenMode};
use super::{HeaderFields, header};
pub(super) use crate::exchange::{CoapToken, FlowName};
use crate::storage::Slots;

/// Templates of one context.
pub(super) const TEMPLATES: usize = 16;

/// Octets for the outlines of all templates of one context.
const ARENA: usize = 112;

/// No template, and the end of the list of free ones.
const NONE: u16 = u16::MAX;

/// Templates of all contexts of a channel.
#[derive(Debug)]
pub(crate) struct Templates<'m> {
    slots: Slots<'m, Template>,
    /// Index of the first free one. Free ones are linked through `used`.
    free: u16,
}

impl<'m> Templates<'m> {
    pub(crate) fn new(mut slots: Slots<'m, Template>) -> Self {
        let len = slots.len().min(usize::from(NONE));
        for (i, slot) in slots.iter_mut().enumerate().take(len) {
            let next = if i + 1 < len { i as u32 + 1 } else { u32::from(NONE) };
            *slot = Template { used: next, ..Template::EMPTY };
        }
        Self { slots, free: if len == 0 { NONE } else { 0 } }
    }

    fn alloc(&mut self) -> Option<u16> {
        let place = self.free;
        let slot = self.slots.get(usize::from(place))?;
        self.free = slot.used as u16;
        Some(place)
    }

    fn release(&mut self, place: u16) {
        let free = self.free;
        if let Some(slot) = self.slots.get_mut(usize::from(place)) {
            *slot = Template { used: u32::from(free), ..Template::EMPTY };
            self.free = place;
        }
    }
}

/// Flow Label of IPv6, 20 bits, in the order of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowLabel([u8; 3]);

impl FlowLabel {
    pub(super) const ZERO: Self = Self([0; 3]);

    /// The label in place of an IP-ID: 16 bits that differ where one of the 20 does.
    #[inline]
    pub(super) fn folded(self) -> u16 {
        let Self([a, b, c]) = self;
        u16::from_be_bytes([b, c]) ^ u16::from(a)
    }
}

impl Word for FlowLabel {
    #[inline]
    fn to_u32(self) -> u32 {
        let Self([a, b, c]) = self;
        u32::from_be_bytes([0, a, b, c])
    }

    #[inline]
    fn from_u32(value: u32) -> Self {
        let [_, a, b, c] = value.to_be_bytes();
        Self([a, b, c])
    }
}

/// The IP and UDP fields of a flow, and its control fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoapPath {
    // Static part. IPv4 addresses use the first four octets.
    pub(super) source: [u8; 16],
    pub(super) destination: [u8; 16],
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) v6: bool,
    // Dynamic part, by the names of IPv4; Traffic Class and Hop Limit in IPv6.
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) df: bool,
    pub(super) flow_label: FlowLabel,
    // Control fields.
    pub(super) checksum: ChecksumMode,
    pub(super) ip_id_mode: IpIdMode,
    pub(super) port_mode: PortMode,
    /// Every short format carries its template.
    pub(super) switching: bool,
    /// `pt_0` is in use. If it is not, damage cannot turn a format with a longer check into it.
    pub(super) pt_0: bool,
}

impl CoapPath {
    /// Octets of an address.
    #[inline]
    pub(super) fn address_len(&self) -> usize {
        if self.v6 { 16 } else { 4 }
    }

    /// Octets of the IP header.
    #[inline]
    pub(super) fn ip_len(&self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    /// True if every packet carries its flow label.
    #[inline]
    pub(super) fn has_label_in_each(&self) -> bool {
        self.v6 && self.ip_id_mode == IpIdMode::Irregular
    }

    /// True if packets have an IP-ID, or a flow label in its place.
    #[inline]
    pub(super) fn has_ip_id(&self) -> bool {
        !self.v6 || self.ip_id_mode == IpIdMode::Irregular
    }

    /// True if addresses and ports are equal.
    pub(super) fn is_flow_of(&self, other: &Self) -> bool {
        (self.source, self.destination, self.source_port, self.destination_port, self.v6)
            == (other.source, other.destination, other.source_port, other.destination_port, other.v6)
    }

    /// Port of the client.
    #[inline]
    pub(super) fn port(&self) -> u16 {
        if self.port_mode == PortMode::Destination { self.destination_port } else { self.source_port }
    }

    /// Source and destination port of a packet, by the port of the client.
    #[inline]
    pub(super) fn ports(&self, port: u16) -> [u16; 2] {
        match self.port_mode {
            PortMode::Destination => [self.source_port, port],
            PortMode::Fixed | PortMode::Source | PortMode::SourceInEach => [port, self.destination_port],
        }
    }

    /// The path with another port of the client.
    pub(super) fn with_port(self, port: u16) -> Self {
        let [source_port, destination_port] = self.ports(port);
        Self { source_port, destination_port, ..self }
    }

    /// True if a context of a flow goes on with another path.
    pub(super) fn keeps(&self, next: &Self) -> bool {
        self.is_flow_of(next) || next.port_mode != PortMode::Fixed && self.is_alike(next)
    }

    /// True if two flows differ in the port of the client at most.
    #[inline]
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let end = |path: &Self| match path.port_mode {
            PortMode::Destination => (true, path.source_port),
            PortMode::Fixed | PortMode::Source | PortMode::SourceInEach => (false, path.destination_port),
        };
        (self.source, self.destination, self.v6, end(self))
            == (other.source, other.destination, other.v6, end(other))
    }

    /// Name of the flow, equal at both ends. Flows that differ in a port of the client that may change have one name.
    pub(super) fn name(&self) -> FlowName {
        let fold = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * u128::from(0xA076_1D64_78BD_642F_u64);
            product as u64 ^ (product >> 64) as u64
        };
        let end = |address: &[u8; 16], port: u16| {
            let (high, low) = address.split_at(8);
            let words = [high, low].map(|half| half.try_into().map_or(0, u64::from_be_bytes));
            fold(fold(fold(0x2D35_8DCC_AA6C_78A5, words[0]), words[1]), u64::from(port) + 1)
        };
        let is_fixed = self.port_mode == PortMode::Fixed;
        let [from, to] = self.ports(if is_fixed { self.source_port } else { 0 });
        let both = end(&self.source, from).wrapping_add(end(&self.destination, to));
        FlowName::new((both >> 32) as u32, (self.source, from) < (self.destination, to))
    }
}

/// The part of a context that both ends share.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoapState {
    pub(super) path: CoapPath,
    /// Template of the last packet.
    pub(super) current: u8,
    /// MSN, including the turns of its 16 bits.
    pub(super) msn: u32,
    /// Anchor of the IP-ID if it counts, otherwise the last one.
    pub(super) ip_id: u16,
    /// Anchors of own and of echoed Message IDs.
    pub(super) own: u16,
    pub(super) echoed: u16,
    /// MSN of the message of the other direction that a packet refers to, minus its own.
    pub(super) request: u16,
    /// MSN of the last message referred to.
    pub(super) named: u16,
    /// Last number of a class that refers to it.
    pub(super) last_number: u32,
    templates: [u16; TEMPLATES],
    arena: [u8; ARENA],
    arena_len: u8,
    /// Sum of the constant IP and UDP fields that the UDP checksum covers, without the port of the client.
    pub(super) sum: u16,
    pub(super) checks: PathChecks,
}

/// Checks over the constant IP and UDP fields. They are computed for the first packet that needs them: many flows end with an IR.
#[derive(Clone, Copy)]
pub(super) struct PathChecks {
    /// States of the CRCs, without the ports.
    pub(super) crcs: [u8; 3],
    /// Digest of the fields that the UDP checksum does not cover.
    pub(super) digest: u16,
    are_known: bool,
}

/// Tests compare contexts by their `Debug` output: two that differ only in whether checks are computed yet are equal.
impl fmt::Debug for PathChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathChecks")
    }
}

impl CoapState {
    pub(super) const fn new() -> Self {
        Self {
            path: CoapPath {
                source: [0; 16],
                destination: [0; 16],
                source_port: 0,
                destination_port: 0,
                v6: false,
                tos: 0,
                ttl: 0,
                df: false,
                flow_label: FlowLabel::ZERO,
                checksum: ChecksumMode::Zero,
                ip_id_mode: IpIdMode::Constant,
                port_mode: PortMode::Fixed,
                switching: false,
                pt_0: false,
            },
            current: 0,
            msn: 0,
            ip_id: 0,
            own: 0,
            echoed: 0,
            request: 0,
            named: 0,
            last_number: 0,
            templates: [NONE; TEMPLATES],
            arena: [0; ARENA],
            arena_len: 0,
            sum: 0,
            checks: PathChecks { crcs: [0; 3], digest: 0, are_known: false },
        }
    }

    /// Returns the state with another path.
    pub(super) fn on_path(self, path: CoapPath) -> Self {
        let mut state = Self { path, ..self };
        state.settle();
        state
    }

    /// Sets the fields that follow from the IP and UDP fields, except those of [`check`](Self::check).
    pub(super) fn settle(&mut self) {
        if self.path.has_label_in_each() {
            self.path.flow_label = FlowLabel::ZERO;
        }
        let [source, destination] = self.path.ports(0);
        let sum = Sum::ZERO.octets(&self.path.source).octets(&self.path.destination);
        self.sum = sum.word(source).word(destination).word(u16::from(protocol::UDP)).fold();
        self.checks.are_known = false;
    }

    /// Computes the states of checks of other packets than IR and IR-CR, unless they are known.
    #[inline(always)]
    pub(super) fn check(&mut self) {
        if !self.checks.are_known {
            self.compute_checks();
        }
    }

    #[cold]
    fn compute_checks(&mut self) {
        let FlowLabel([e, f, g]) = self.path.flow_label;
        let kind =
            [u8::from(self.path.v6) << 1 | u8::from(self.path.df), self.path.tos, self.path.ttl, e, f, g];
        // In one piece, the CRC-3 needs no table for each octet.
        let mut all = [0; 6 + 16 + 16];
        all[..6].copy_from_slice(&kind);
        all[6..22].copy_from_slice(&self.path.source);
        all[22..].copy_from_slice(&self.path.destination);
        for (state, check) in self.checks.crcs.iter_mut().zip([Check::Crc3, Check::Crc7, Check::Crc8]) {
            *state = check.of(&all);
        }
        self.checks.digest = digest(&kind);
        self.checks.are_known = true;
    }

    /// Returns the entry of a template in the pool.
    #[inline]
    pub(super) fn template<'t>(&self, number: u8, pool: &'t Templates<'_>) -> Option<&'t Template> {
        let place = *self.templates.get(usize::from(number))?;
        pool.slots.get(usize::from(place))
    }

    #[inline]
    pub(super) fn template_mut<'t>(
        &self,
        number: u8,
        pool: &'t mut Templates<'_>,
    ) -> Option<&'t mut Template> {
        let place = *self.templates.get(usize::from(number))?;
        pool.slots.get_mut(usize::from(place))
    }

    /// The outline of a template.
    #[inline]
    pub(super) fn outline(&self, template: &Template) -> &[u8] {
        let at = usize::from(template.at);
        self.arena.get(at..at + usize::from(template.len)).unwrap_or_default()
    }

    /// Updates the state by the fields of a packet that was sent, or verified.
    #[inline(always)]
    pub(super) fn accept(&mut self, x: &HeaderFields<'_>, template: &mut Template) {
        let low = x.msn as u16;
        let carries = x.carries;
        // A late packet, or a duplicate, may be one of the flow before.
        if x.port != self.path.port() && x.msn.wrapping_sub(self.msn).cast_signed() >= 0 {
            [self.path.source_port, self.path.destination_port] = self.path.ports(x.port);
        }
        if x.names_request {
            self.named = x.request_msn;
            self.request = x.request_msn.wrapping_sub(low);
        }
        if carries.message_id && template.message_id == MessageIdMode::Counted {
            let anchor = x.message_id.wrapping_sub(low);
            if Template::is_own(x.message_type) {
                self.own = anchor;
            } else {
                self.echoed = anchor;
            }
        }
        if carries.token || carries.numbers {
            header::set_anchors(template, x);
        }
        self.advance(x, template);
    }

    /// Updates the state by a packet that follows from it.
    #[inline(always)]
    pub(super) fn advance(&mut self, x: &HeaderFields<'_>, template: &mut Template) {
        self.msn = x.msn;
        self.current = x.template;
        self.ip_id = match self.path.ip_id_mode {
            IpIdMode::Counted => x.ip_id.wrapping_sub(x.msn as u16),
            IpIdMode::Constant | IpIdMode::Lsb | IpIdMode::Irregular => x.ip_id,
        };
        template.used = x.msn;
        if !template.is_plain() {
            self.last_number = x.observed().unwrap_or(self.last_number);
        }
    }

    /// Iterates over the numbers that have a template.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        let templates = self.templates;
        (0..TEMPLATES as u8).filter(move |&number| templates[usize::from(number)] != NONE)
    }

    /// Returns a number without a template.
    pub(super) fn free_number(&self) -> Option<u8> {
        (0..TEMPLATES as u8).find(|&number| self.templates[usize::from(number)] == NONE)
    }

    /// Returns the least recently used template, except two.
    pub(super) fn oldest(&self, pool: &Templates<'_>, but: [u8; 2]) -> Option<u8> {
        self.numbers()
            .filter(|number| !but.contains(number))
            // By the distance from the last MSN, since after an IR packet the two ends count the turns of the 16
            // bits differently.
            .min_by_key(|&number| {
                self.template(number, pool).map_or(0, |template| template.used.wrapping_sub(self.msn) as i32)
            })
    }

    /// Defines a template, which is settled. If there is no room for its outline, the least recently used templates are removed. False
    /// if that is not enough, or the pool has no template left.
    pub(super) fn define(
        &mut self,
        number: u8,
        template: &Template,
        outline: &[u8],
        pool: &mut Templates<'_>,
    ) -> bool {
        self.forget(number, pool);
        let at = loop {
            match self.keep(outline, pool) {
                Some(at) => break at,
                None => match self.oldest(pool, [number; 2]) {
                    Some(oldest) => self.forget(oldest, pool),
                    None => return false,
                },
            }
        };
        let place = loop {
            match pool.alloc() {
                Some(place) => break place,
                None => match self.oldest(pool, [number; 2]) {
                    Some(oldest) => self.forget(oldest, pool),
                    None => return false,
                },
            }
        };
        let template = Template { at, ..*template };
        if let (Some(slot), Some(entry)) =
            (pool.slots.get_mut(usize::from(place)), self.templates.get_mut(usize::from(number)))
        {
            *slot = template;
            *entry = place;
        }
        true
    }

    /// Returns a template to the pool.
    pub(super) fn forget(&mut self, number: u8, pool: &mut Templates<'_>) {
        if let Some(entry) = self.templates.get_mut(usize::from(number)) {
            pool.release(*entry);
            *entry = NONE;
        }
    }

    /// Returns every template to the pool.
    pub(super) fn forget_all(&mut self, pool: &mut Templates<'_>) {
        for number in 0..TEMPLATES as u8 {
            self.forget(number, pool);
        }
        self.arena_len = 0;
    }

    /// Copies an outline into the arena, or finds an equal one of another template.
    fn keep(&mut self, outline: &[u8], pool: &mut Templates<'_>) -> Option<u8> {
        let same = self.numbers().find_map(|number| {
            let template = self.template(number, pool)?;
            (self.outline(template) == outline).then_some(template.at)
        });
        if same.is_some() {
            return same;
        }
        if usize::from(self.arena_len) + outline.len() > ARENA {
            self.compact(pool);
        }
        let at = usize::from(self.arena_len);
        self.arena.get_mut(at..at + outline.len())?.copy_from_slice(outline);
        self.arena_len += outline.len() as u8;
        Some(at as u8)
    }

    /// Moves the outlines in use together. Outlines of two templates are either identical or disjoint, so they fit.
    fn compact(&mut self, pool: &mut Templates<'_>) {
        let old = self.arena;
        // Old and new index of each outline.
        let mut moved = [(0, 0, 0); TEMPLATES];
        let mut count = 0;
        self.arena_len = 0;
        for number in self.numbers() {
            let Some(template) = self.template_mut(number, pool) else { continue };
            let (from, len) = (template.at, template.len);
            let same = moved.iter().take(count).find(|(was, length, _)| (*was, *length) == (from, len));
            if let Some(&(_, _, to)) = same {
                template.at = to;
                continue;
            }
            let (at, to) = (usize::from(from), usize::from(self.arena_len));
            let (octets, end) = (usize::from(len), to + usize::from(len));
            let (Some(outline), Some(room)) = (old.get(at..at + octets), self.arena.get_mut(to..end)) else {
                continue;
            };
            room.copy_from_slice(outline);
            template.at = to as u8;
            moved[count] = (from, len, to as u8);
            count += 1;
            self.arena_len = end as u8;
        }
    }
}

/// Returns a 16-bit digest of the few octets that the UDP checksum does not cover: CRC-16/IBM-3740 (also
/// CCITT-FALSE), without a table, since it is computed only when one of them changes.
fn digest(octets: &[u8]) -> u16 {
    octets.iter().fold(0xFFFF, |crc: u16, &octet| {
        // The high octet, divided by the polynomial x^16 + x^12 + x^5 + 1.
        let high = crc >> 8 ^ u16::from(octet);
        let quotient = high ^ high >> 4;
        crc << 8 ^ quotient << 12 ^ quotient << 5 ^ quotient
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pool(count: usize) -> Templates<'static> {
        Templates::new(Slots::owned(alloc::vec![Template::EMPTY; count]))
    }

    fn template(used: u32, outline: &[u8]) -> Template {
        let mut template = Template { used, ..Template::EMPTY };
        template.settle(outline);
        template
    }

    #[test]
    fn the_digest_is_the_crc_of_its_name() {
        use crc::{CRC_16_IBM_3740, Crc};
        assert_eq!(digest(b"123456789"), CRC_16_IBM_3740.check);
        assert_eq!(digest(&[1, 0, 64]), Crc::<u16>::new(&CRC_16_IBM_3740).checksum(&[1, 0, 64]));
    }

    #[test]
    fn tokens_are_uints_of_a_width() {
        assert_eq!(CoapToken::of(&[1, 2]).uint(), 0x0102);
        assert_eq!(CoapToken::of_uint(0x0102, 4).as_slice(), [0, 0, 1, 2]);
        assert_eq!(CoapToken::of_shortest_uint(0x0102).as_slice(), [1, 2]);
        assert!(CoapToken::of_shortest_uint(0).as_slice().is_empty());
        assert_eq!(CoapToken::of(&[0xFF; 8]).uint(), u64::MAX);
        assert_eq!(CoapToken::of_uint(u64::MAX, 0).uint(), 0);
    }

    #[test]
    fn the_oldest_template_is_found_over_a_wraparound() {
        let mut pool = pool(4);
        let mut state = CoapState::new();
        state.msn = 3;
        for (number, used) in [(0, 1), (1, u32::MAX - 1), (2, 3)] {
            let outline = [0x10 | number, 0];
            assert!(state.define(number, &template(used, &outline), &outline, &mut pool));
        }
        assert_eq!(state.oldest(&pool, [9; 2]), Some(1));
    }

    #[test]
    fn templates_share_outlines_and_give_way_when_there_is_no_room() {
        let mut pool = pool(32);
        let mut state = CoapState::new();
        for number in 0..4 {
            assert!(state.define(number, &template(0, b"\xb4time"), b"\xb4time", &mut pool));
        }
        assert_eq!(state.arena_len, 5);
        for number in 4..16 {
            let outline = [number; 14];
            assert!(state.define(number, &template(u32::from(number), &outline), &outline, &mut pool));
        }
        assert_eq!(state.outline(state.template(15, &pool).unwrap()), [15; 14]);
        // The oldest of the long ones are gone; the others are in their places.
        for number in state.numbers() {
            let outline = state.outline(state.template(number, &pool).unwrap());
            assert!(outline == b"\xb4time" || outline == [number; 14], "{number}: {outline:?}");
        }
        assert!(state.numbers().count() >= 8);
        state.forget_all(&mut pool);
        let all = (0..32).map(|_| pool.alloc()).filter(Option::is_some).count();
        assert_eq!(all, 32);
    }
}
