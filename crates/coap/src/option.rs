//! Options of a message: those that were received, and those to send. RFC 7252, sections 3.1 and 5.4.
//!
//! Both are the octets of a message, in order: what is received is looked at where it lies, what is to be sent is copied
//! as it stands.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use thinair_wire::coder::Writer;
use thinair_wire::header::coap::{CoapOption, CoapOptions as Walk, option_header};

use crate::number;

/// Longest value that Option Length can say.
pub const MAX_VALUE: usize = 65_804;

/// Options of a message that was received; every one of them is well formed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options<'p>(Cow<'p, [u8]>);

impl<'p> Options<'p> {
    /// `octets` are options, and nothing else: somebody has walked over them.
    #[inline]
    pub(crate) const fn walked(octets: &'p [u8]) -> Self {
        Self(Cow::Borrowed(octets))
    }

    /// The same, on their own.
    pub(crate) fn into_owned(self) -> Options<'static> {
        Options(Cow::Owned(self.0.into_owned()))
    }

    /// As they stand in the message.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// One after the other.
    #[inline]
    pub fn iter(&self) -> Walk<'_> {
        Walk::new(&self.0)
    }

    /// Values of the options with this number.
    #[inline]
    pub fn all(&self, number: u16) -> impl Iterator<Item = &[u8]> {
        self.iter()
            .skip_while(move |option| option.number < number)
            .take_while(move |option| option.number == number)
            .map(|option| option.value)
    }

    /// Value of the first option with this number.
    pub fn first(&self, number: u16) -> Option<&[u8]> {
        self.iter()
            .take_while(|option| option.number <= number)
            .find(|option| option.number == number)
            .map(|o| o.value)
    }

    /// Value of the first option with this number as a uint; nothing if it is longer than 4 octets.
    pub fn uint(&self, number: u16) -> Option<u32> {
        let value = self.first(number)?;
        CoapOption { number, value, octets: &[] }.uint()
    }

    /// Segments of Uri-Path. A request for `/` has none, or an empty one.
    #[inline]
    pub fn path(&self) -> impl Iterator<Item = &[u8]> {
        self.all(number::URI_PATH)
    }

    /// Whether Uri-Path is `path`, as in `a/b`, with or without a slash in front.
    #[inline]
    pub fn is_path(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path).as_bytes();
        let mut left = Some(path);
        for option in self.iter() {
            if option.number < number::URI_PATH {
                continue;
            } else if option.number > number::URI_PATH {
                break;
            }
            let Some(path) = left else { return false };
            let end = path.iter().position(|&octet| octet == b'/');
            if path.get(..end.unwrap_or(path.len())) != Some(option.value) {
                return false;
            }
            left = end.and_then(|end| path.get(end + 1..));
        }
        left.is_none_or(|left| path.is_empty() && left.is_empty())
    }

    /// Arguments of Uri-Query.
    pub fn query(&self) -> impl Iterator<Item = &[u8]> {
        self.all(number::URI_QUERY)
    }

    /// Content-Format.
    pub fn content_format(&self) -> Option<u16> {
        self.uint(number::CONTENT_FORMAT)?.try_into().ok()
    }

    /// Accept.
    pub fn accept(&self) -> Option<u16> {
        self.uint(number::ACCEPT)?.try_into().ok()
    }

    /// The first ETag.
    pub fn etag(&self) -> Option<&[u8]> {
        self.first(number::ETAG).filter(|value| number::allows(number::ETAG, value.len()))
    }

    /// Max-Age in seconds, 60 if it is absent. RFC 7252, section 5.10.5.
    pub fn max_age(&self) -> u32 {
        self.uint(number::MAX_AGE).unwrap_or(60)
    }

    /// Whether a client already has a representation with this ETag, and 2.03 is what it needs. RFC 7252, section
    /// 5.10.6.2.
    pub fn validates(&self, etag: &[u8]) -> bool {
        self.all(number::ETAG).any(|had| had == etag)
    }

    /// Whether If-Match and If-None-Match let a request be done to a resource that has this ETag, or that does not exist.
    /// RFC 7252, section 5.10.8. A request that may not be done is answered with 4.12.
    pub fn permits(&self, exists: bool, etag: Option<&[u8]>) -> bool {
        if self.first(number::IF_NONE_MATCH).is_some() && exists {
            return false;
        }
        let mut wanted = self.all(number::IF_MATCH).peekable();
        wanted.peek().is_none() || exists && wanted.any(|wanted| wanted.is_empty() || Some(wanted) == etag)
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0)
    }
}

/// Octets of options that need no allocation.
const INLINE: usize = 46;

/// Options to send, in their order whatever the order in which they come.
#[derive(Clone)]
pub struct OptionList {
    octets: Octets,
    last: u16,
    refused: bool,
}

#[derive(Clone)]
enum Octets {
    Inline { len: u8, octets: [u8; INLINE] },
    Heap(Vec<u8>),
}

impl Default for OptionList {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl OptionList {
    /// None.
    #[inline]
    pub const fn new() -> Self {
        Self { octets: Octets::Inline { len: 0, octets: [0; INLINE] }, last: 0, refused: false }
    }

    /// The options that were received, to be sent in their turn.
    pub fn copied(options: &Options<'_>) -> Self {
        let mut list = Self::new();
        list.splice(0, 0, &[options.octets()]);
        list.last = options.iter().last().map_or(0, |option| option.number);
        list
    }

    /// As they stand in a message.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        match &self.octets {
            Octets::Inline { len, octets } => octets.get(..usize::from(*len)).unwrap_or_default(),
            Octets::Heap(octets) => octets,
        }
    }

    /// One after the other.
    pub fn iter(&self) -> Walk<'_> {
        Walk::new(self.octets())
    }

    /// For a look as at options that were received.
    pub fn as_options(&self) -> Options<'_> {
        Options::walked(self.octets())
    }

    /// Whether an option was left out because its value has more than [`MAX_VALUE`] octets. Such options are not sent:
    /// whatever would send them refuses.
    #[inline]
    pub const fn is_incomplete(&self) -> bool {
        self.refused
    }

    /// One more option, behind those with its number.
    #[inline]
    pub fn push(&mut self, number: u16, value: &[u8]) {
        if value.len() > MAX_VALUE {
            self.refused = true;
            return;
        }
        if number >= self.last {
            self.append(number - self.last, value);
            self.last = number;
            return;
        }
        self.insert(number, value);
    }

    /// One more option in front of others: the one behind has another delta from now on.
    fn insert(&mut self, number: u16, value: &[u8]) {
        let mut previous = 0;
        let mut walk = self.iter();
        let (at, next) = loop {
            let at = walk.offset();
            match walk.next() {
                Some(option) if option.number <= number => previous = option.number,
                other => break (at, other),
            }
        };
        let head = Head::new(number - previous, value.len());
        let (cut, behind) = next.map_or((0, None), |next| {
            let head = Head::new(next.number - number, next.value.len());
            (next.octets.len() - next.value.len(), Some(head))
        });
        let behind = behind.as_ref().map_or(&[][..], Head::octets);
        self.splice(at, cut, &[head.octets(), value, behind]);
    }

    /// One more option with a uint in as few octets as it needs. RFC 7252, section 3.2.
    #[inline]
    pub fn push_uint(&mut self, number: u16, value: u32) {
        let octets = value.to_be_bytes();
        let zeros = value.leading_zeros() as usize / 8;
        self.push(number, octets.get(zeros..).unwrap_or_default());
    }

    /// Without the options that have this number.
    pub fn remove(&mut self, number: u16) {
        if self.as_options().first(number).is_none() {
            return;
        }
        let mut kept = Self { refused: self.refused, ..Self::new() };
        for option in self.iter().filter(|option| option.number != number) {
            kept.push(option.number, option.value);
        }
        *self = kept;
    }

    #[inline]
    fn append(&mut self, delta: u16, value: &[u8]) {
        let end = self.octets().len();
        // Most options have one octet in front of their value.
        if let Octets::Inline { len, octets } = &mut self.octets
            && delta < 13
            && value.len() < 13
            && let Some([head, place @ ..]) = octets.get_mut(end..end + 1 + value.len())
        {
            *head = (delta as u8) << 4 | value.len() as u8;
            place.copy_from_slice(value);
            *len += 1 + value.len() as u8;
            return;
        }
        self.splice(end, 0, &[Head::new(delta, value.len()).octets(), value]);
    }

    fn splice(&mut self, at: usize, cut: usize, parts: &[&[u8]]) {
        let more: usize = parts.iter().map(|part| part.len()).sum();
        let len = self.octets().len();
        match &mut self.octets {
            Octets::Inline { len: short, octets } if len - cut + more <= INLINE => {
                octets.copy_within(at + cut..len, at + more);
                let mut at = at;
                for part in parts {
                    octets[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                }
                *short = (len - cut + more) as u8;
            }
            Octets::Inline { .. } => {
                let mut octets = Vec::with_capacity(len + more);
                octets.extend_from_slice(self.octets());
                octets.splice(at..at + cut, parts.concat());
                self.octets = Octets::Heap(octets);
            }
            Octets::Heap(octets) => {
                octets.splice(at..at + cut, parts.iter().flat_map(|part| part.iter().copied()));
            }
        }
    }
}

impl fmt::Debug for OptionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, self.octets())
    }
}

impl PartialEq for OptionList {
    fn eq(&self, other: &Self) -> bool {
        self.octets() == other.octets() && self.refused == other.refused
    }
}

impl Eq for OptionList {}

fn list(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    f.debug_map()
        .entries(Walk::new(octets).map(|option| (option.number, option.value.escape_ascii())))
        .finish()
}

/// Option Delta and Option Length.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    octets: [u8; 5],
    len: u8,
}

impl Head {
    /// The length is at most [`MAX_VALUE`]; more is cut to nothing.
    #[inline]
    pub(crate) fn new(delta: u16, length: usize) -> Self {
        let mut octets = [0; 5];
        if delta < 13 && length < 13 {
            octets[0] = (delta as u8) << 4 | length as u8;
            return Self { octets, len: 1 };
        }
        let mut writer = Writer::new(&mut octets, 0);
        let mut length = u32::try_from(length).unwrap_or(u32::MAX);
        let done = option_header(&mut writer, &mut u32::from(delta), &mut length);
        let len = done.ok().and_then(|()| writer.finish().ok()).unwrap_or(0);
        Self { octets, len: len as u8 }
    }

    #[inline]
    pub(crate) fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn listed(list: &OptionList) -> Vec<(u16, Vec<u8>)> {
        list.iter().map(|option| (option.number, option.value.to_vec())).collect()
    }

    #[test]
    fn a_path_is_compared_by_segments() {
        let mut list = OptionList::new();
        list.push(number::URI_PATH, b"a");
        list.push(number::URI_PATH, b"b");
        let options = list.as_options();
        assert!(options.is_path("/a/b") && options.is_path("a/b"));
        assert!(!options.is_path("/a") && !options.is_path("/a/b/c") && !options.is_path("/"));
        assert!(Options::default().is_path("/") && Options::default().is_path(""));
        assert!(!Options::default().is_path("/a"));
        let with = |segments: &[&[u8]]| {
            let mut list = OptionList::new();
            list.push(number::IF_MATCH, b"1");
            segments.iter().for_each(|segment| list.push(number::URI_PATH, segment));
            list.push(number::URI_QUERY, b"x");
            ["/", "/a", "/a/b", "/a/", "//a"].map(|path| list.as_options().is_path(path))
        };
        assert_eq!(with(&[]), [true, false, false, false, false]);
        assert_eq!(with(&[b""]), [true, false, false, false, false]);
        assert_eq!(with(&[b"a/b"]), [false; 5]);
        assert_eq!(with(&[b"a", b"b"]), [false, false, true, false, false]);
        assert_eq!(with(&[b"a", b""]), [false, false, false, true, false]);
        assert_eq!(with(&[b"", b"a"]), [false, false, false, false, true]);
        assert_eq!(with(&[b"", b""]), [false; 5]);
    }

    #[test]
    fn a_uint_has_no_octets_to_spare() {
        let mut list = OptionList::new();
        for value in [0, 1, 255, 256, u32::MAX] {
            list.push_uint(number::MAX_AGE, value);
        }
        let lengths: Vec<_> = list.iter().map(|option| option.value.len()).collect();
        assert_eq!(lengths, [0, 1, 1, 2, 4]);
    }

    /// RFC 7252, section 5.10.8.
    #[test]
    fn preconditions_say_when_a_request_may_be_done() {
        let with = |options: &[(u16, &[u8])]| {
            let mut list = OptionList::new();
            options.iter().for_each(|(number, value)| list.push(*number, value));
            let options = list.as_options();
            [(false, None), (true, None), (true, Some(&b"1"[..])), (true, Some(b"2"))]
                .map(|(exists, etag)| options.permits(exists, etag))
        };
        assert_eq!(with(&[]), [true; 4]);
        assert_eq!(with(&[(number::IF_MATCH, b"1")]), [false, false, true, false]);
        assert_eq!(with(&[(number::IF_MATCH, b"")]), [false, true, true, true]);
        assert_eq!(with(&[(number::IF_MATCH, b"1"), (number::IF_MATCH, b"2")]), [false, false, true, true]);
        assert_eq!(with(&[(number::IF_NONE_MATCH, b"")]), [true, false, false, false]);
    }

    #[test]
    fn what_cannot_be_said_is_left_out_and_told() {
        let mut list = OptionList::new();
        list.push(number::URI_PATH, &[b'a'; MAX_VALUE + 1]);
        assert!(list.is_incomplete() && list.octets().is_empty());
        let mut list = OptionList::new();
        list.push(number::URI_PATH, &[b'a'; MAX_VALUE]);
        assert!(!list.is_incomplete());
        assert_eq!(list.octets().len(), MAX_VALUE + 3);
    }

    proptest! {
        #[test]
        fn options_stand_in_order_whatever_the_order_of_their_coming(
            plan in vec((prop_oneof![0..40_u16, 250..300_u16, any::<u16>()], vec(any::<u8>(), 0..20)), 0..12),
            removed in 0..12_usize,
        ) {
            let mut list = OptionList::new();
            for (number, value) in &plan {
                list.push(*number, value);
            }
            let mut expected = plan.clone();
            expected.sort_by_key(|(number, _)| *number);
            prop_assert_eq!(&listed(&list), &expected);
            prop_assert_eq!(&OptionList::copied(&list.as_options()), &list);
            if let Some((number, _)) = plan.get(removed) {
                list.remove(*number);
                expected.retain(|(other, _)| other != number);
                prop_assert_eq!(&listed(&list), &expected);
            }
        }
    }
}
