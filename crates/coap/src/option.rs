//! Options of a message: received ones, and ones to send. RFC 7252, sections 3.1 and 5.4.
//!
//! Both are the octets of a message, in order: received options are read in place, options to send are copied unchanged.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use thinair_wire::coder::Writer;
use thinair_wire::header::coap::{CoapOption, CoapOptions as Walk, option_header};

use crate::number;

/// Longest value that Option Length can encode, in octets.
pub const MAX_VALUE: usize = 65_804;

/// Options of a received message, all of them well formed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options<'p>(Cow<'p, [u8]>);

impl<'p> Options<'p> {
    /// Wraps `octets` that are known to be well-formed options.
    #[inline]
    pub(crate) const fn walked(octets: &'p [u8]) -> Self {
        Self(Cow::Borrowed(octets))
    }

    /// Returns the options with their octets copied.
    pub(crate) fn into_owned(self) -> Options<'static> {
        Options(Cow::Owned(self.0.into_owned()))
    }

    /// Returns the octets of the options as encoded in the message.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Iterates over the options.
    #[inline]
    pub fn iter(&self) -> Walk<'_> {
        Walk::new(&self.0)
    }

    /// Iterates over the values of the options with this number.
    #[inline]
    pub fn all(&self, number: u16) -> impl Iterator<Item = &[u8]> {
        self.iter()
            .skip_while(move |option| option.number < number)
            .take_while(move |option| option.number == number)
            .map(|option| option.value)
    }

    /// Returns the value of the first option with this number.
    pub fn first(&self, number: u16) -> Option<&[u8]> {
        self.iter()
            .take_while(|option| option.number <= number)
            .find(|option| option.number == number)
            .map(|o| o.value)
    }

    /// Returns the value of the first option with this number as a uint; `None` if it is longer than 4 octets.
    pub fn uint(&self, number: u16) -> Option<u32> {
        let value = self.first(number)?;
        CoapOption { number, value, octets: &[] }.uint()
    }

    /// Iterates over the segments of Uri-Path. A request for `/` has none, or an empty one.
    #[inline]
    pub fn path(&self) -> impl Iterator<Item = &[u8]> {
        self.all(number::URI_PATH)
    }

    /// True if Uri-Path is `path`, as in `a/b`, with or without a leading slash.
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

    /// Iterates over the arguments of Uri-Query.
    pub fn query(&self) -> impl Iterator<Item = &[u8]> {
        self.all(number::URI_QUERY)
    }

    /// Returns Content-Format.
    pub fn content_format(&self) -> Option<u16> {
        self.uint(number::CONTENT_FORMAT)?.try_into().ok()
    }

    /// Returns Accept.
    pub fn accept(&self) -> Option<u16> {
        self.uint(number::ACCEPT)?.try_into().ok()
    }

    /// Returns the first ETag.
    pub fn etag(&self) -> Option<&[u8]> {
        self.first(number::ETAG).filter(|value| number::allows(number::ETAG, value.len()))
    }

    /// Returns Max-Age in seconds, 60 if it is absent. RFC 7252, section 5.10.5.
    pub fn max_age(&self) -> u32 {
        self.uint(number::MAX_AGE).unwrap_or(60)
    }

    /// True if the client has a representation with this ETag, so that 2.03 suffices. RFC 7252, section 5.10.6.2.
    pub fn validates(&self, etag: &[u8]) -> bool {
        self.all(number::ETAG).any(|had| had == etag)
    }

    /// True if If-Match and If-None-Match allow a request for a resource that has this ETag, or that does not exist. RFC
    /// 7252, section 5.10.8. Otherwise the request is answered with 4.12.
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

/// Octets of options that are stored without an allocation.
const INLINE: usize = 46;

/// Options to send; sorted by number, whatever the order of insertion.
#[derive(Clone)]
pub struct OptionList {
    octets: OptionOctets,
    last: u16,
    refused: bool,
}

#[derive(Clone)]
enum OptionOctets {
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
    /// Creates an empty list.
    #[inline]
    pub const fn new() -> Self {
        Self { octets: OptionOctets::Inline { len: 0, octets: [0; INLINE] }, last: 0, refused: false }
    }

    /// Copies received options.
    pub fn copied(options: &Options<'_>) -> Self {
        let mut list = Self::new();
        list.splice(0, 0, &[options.octets()]);
        list.last = options.iter().last().map_or(0, |option| option.number);
        list
    }

    /// Returns the octets of the options as encoded in a message.
    #[inline]
    pub fn octets(&self) -> &[u8] {
        match &self.octets {
            OptionOctets::Inline { len, octets } => octets.get(..usize::from(*len)).unwrap_or_default(),
            OptionOctets::Heap(octets) => octets,
        }
    }

    /// Iterates over the options.
    pub fn iter(&self) -> Walk<'_> {
        Walk::new(self.octets())
    }

    /// Returns a view with the methods of received options.
    pub fn as_options(&self) -> Options<'_> {
        Options::walked(self.octets())
    }

    /// True if an option was left out because its value has more than [`MAX_VALUE`] octets. Messages with such options
    /// are not sent: sending fails.
    #[inline]
    pub const fn is_incomplete(&self) -> bool {
        self.refused
    }

    /// Adds an option, after those with the same number.
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

    /// Inserts an option before others: the next one gets another delta.
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
        let head = OptionHead::new(number - previous, value.len());
        let (cut, behind) = next.map_or((0, None), |next| {
            let head = OptionHead::new(next.number - number, next.value.len());
            (next.octets.len() - next.value.len(), Some(head))
        });
        let behind = behind.as_ref().map_or(&[][..], OptionHead::octets);
        self.splice(at, cut, &[head.octets(), value, behind]);
    }

    /// Adds an option with a uint in as few octets as it needs. RFC 7252, section 3.2.
    #[inline]
    pub fn push_uint(&mut self, number: u16, value: u32) {
        let octets = value.to_be_bytes();
        let zeros = value.leading_zeros() as usize / 8;
        self.push(number, octets.get(zeros..).unwrap_or_default());
    }

    /// Removes the options with this number.
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
        // Most options have a header of one octet.
        if let OptionOctets::Inline { len, octets } = &mut self.octets
            && delta < 13
            && value.len() < 13
            && let Some([head, place @ ..]) = octets.get_mut(end..end + 1 + value.len())
        {
            *head = (delta as u8) << 4 | value.len() as u8;
            place.copy_from_slice(value);
            *len += 1 + value.len() as u8;
            return;
        }
        self.splice(end, 0, &[OptionHead::new(delta, value.len()).octets(), value]);
    }

    fn splice(&mut self, at: usize, cut: usize, parts: &[&[u8]]) {
        let more: usize = parts.iter().map(|part| part.len()).sum();
        let len = self.octets().len();
        match &mut self.octets {
            OptionOctets::Inline { len: short, octets } if len - cut + more <= INLINE => {
                octets.copy_within(at + cut..len, at + more);
                let mut at = at;
                for part in parts {
                    octets[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                }
                *short = (len - cut + more) as u8;
            }
            OptionOctets::Inline { .. } => {
                let mut octets = Vec::with_capacity(len + more);
                octets.extend_from_slice(self.octets());
                octets.splice(at..at + cut, parts.concat());
                self.octets = OptionOctets::Heap(octets);
            }
            OptionOctets::Heap(octets) => {
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
pub(crate) struct OptionHead {
    octets: [u8; 5],
    len: u8,
}

impl OptionHead {
    /// Encodes the header; `length` is at most [`MAX_VALUE`], more is encoded as 0.
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
    fn preconditions_decide_if_a_request_is_allowed() {
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
    fn what_cannot_be_encoded_is_left_out_and_reported() {
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
