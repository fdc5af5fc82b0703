//! Lists of links, for `/.well-known/core`. RFC 6690.
//!
//! A server writes its list once ([`LinkList`]) and answers with the links that match a query ([`LinkList::response`]);
//! a client reads it ([`links`]).
//!
//! ```
//! use thinair_coap::link_format::{LinkList, links};
//!
//! let mut list = LinkList::new();
//! list.add("/sensors/temp", &[("rt", "temperature-c"), ("ct", "60"), ("obs", "")]);
//! list.add("/sensors/light", &[("rt", "light-lux"), ("if", "sensor")]);
//! let found = list.filtered([&b"rt=light*"[..]]);
//! assert_eq!(found, r#"</sensors/light>;rt="light-lux";if="sensor""#);
//! let targets: Vec<_> = links(list.as_str()).map(|link| link.map(|link| link.target)).collect();
//! assert_eq!(targets, [Ok("/sensors/temp"), Ok("/sensors/light")]);
//! ```

use alloc::string::String;

use crate::number;
use crate::option::Options;
use crate::request::Response;

/// Path of a server's list of resources. Section 4.
pub const WELL_KNOWN_CORE: &str = "/.well-known/core";

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLink<'a> {
    /// Target: the text between the angle brackets.
    pub target: &'a str,
    attributes: &'a str,
    text: &'a str,
}

/// Error: malformed list of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// Place of the error, in octets from the start.
    pub offset: usize,
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "malformed link {} octets into the list", self.offset)
    }
}

impl core::error::Error for LinkError {}

/// Iterates over the links of a list, up to the first malformed one.
pub fn links(text: &str) -> impl Iterator<Item = Result<WebLink<'_>, LinkError>> {
    let mut at = 0;
    let mut broken = false;
    core::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty() && !broken)?;
        let rest = rest.trim_start();
        let start = text.len() - rest.len();
        let Some((link, len)) = read_link(rest) else {
            broken = true;
            return Some(Err(LinkError { offset: start }));
        };
        at = start + len;
        Some(Ok(link))
    })
}

/// Returns the link at the start of `text`, and the start of the next one.
fn read_link(text: &str) -> Option<(WebLink<'_>, usize)> {
    let inner = text.strip_prefix('<')?;
    let target = inner.get(..inner.find('>')?)?;
    let front = target.len() + 2;
    let end = end_of(text.get(front..)?, ',')? + front;
    let attributes = text.get(front..end)?;
    if !(attributes.trim().is_empty() || attributes.trim_start().starts_with(';')) {
        return None;
    }
    let link = WebLink { target, attributes, text: text.get(..end)? };
    // The comma.
    let next = if end < text.len() { end + 1 } else { end };
    Some((link, next))
}

/// Returns the position of the first `mark` outside of quotes, or the end of `text`. `None` if quotes are not closed.
fn end_of(text: &str, mark: char) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if character == mark && !quoted => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(text.len())
}

impl<'a> WebLink<'a> {
    /// Iterates over attributes: name and value, without quotes; the value is empty if there is none. Escapes are not
    /// decoded.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut rest = self.attributes;
        core::iter::from_fn(move || {
            rest = rest.trim_start().strip_prefix(';')?;
            let end = end_of(rest, ';')?;
            let (attribute, behind) = rest.split_at(end);
            rest = behind;
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim();
            let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            Some((name.trim(), unquoted.unwrap_or(value)))
        })
    }

    /// Returns the value of the first attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// True if the link matches a filter as in `rt=light*`. Section 4.1. A filter without `=` matches nothing.
    pub fn matches(&self, filter: &[u8]) -> bool {
        let Some((name, pattern)) =
            core::str::from_utf8(filter).ok().and_then(|filter| filter.split_once('='))
        else {
            return false;
        };
        let fits = |value: &str| match pattern.strip_suffix('*') {
            Some(prefix) => value.starts_with(prefix),
            None => value == pattern,
        };
        match name {
            "href" => fits(self.target),
            // Lists of values with spaces between them.
            "rt" | "if" | "rel" | "rev" | "ct" => self
                .attributes()
                .filter(|(other, _)| *other == name)
                .any(|(_, value)| fits(value) || value.split(' ').any(fits)),
            _ => self.attributes().any(|(other, value)| other == name && fits(value)),
        }
    }
}

/// A list of links to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkList(String);

impl LinkList {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Returns the text of the list.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds a link. An attribute with an empty value is written without one; numbers are written without quotes.
    pub fn add(&mut self, target: &str, attributes: &[(&str, &str)]) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push('<');
        self.0.push_str(target);
        self.0.push('>');
        for (name, value) in attributes {
            self.0.push(';');
            self.0.push_str(name);
            if value.is_empty() {
                continue;
            }
            self.0.push('=');
            if value.bytes().all(|octet| octet.is_ascii_digit()) {
                self.0.push_str(value);
                continue;
            }
            self.0.push('"');
            for character in value.chars() {
                if matches!(character, '"' | '\\') {
                    self.0.push('\\');
                }
                self.0.push(character);
            }
            self.0.push('"');
        }
    }

    /// Returns the links that match every filter.
    pub fn filtered<'q>(&self, filters: impl IntoIterator<Item = &'q [u8]> + Clone) -> String {
        let mut list = String::new();
        for link in links(&self.0).map_while(Result::ok) {
            if filters.clone().into_iter().all(|filter| link.matches(filter)) {
                if !list.is_empty() {
                    list.push(',');
                }
                list.push_str(link.text);
            }
        }
        list
    }

    /// Returns the response to a GET of [`WELL_KNOWN_CORE`] with these options.
    pub fn response(&self, options: &Options<'_>) -> Response<'static> {
        let filters: alloc::vec::Vec<&[u8]> = options.query().collect();
        let list = self.filtered(filters.iter().copied());
        Response::content(list.into_bytes()).format(number::LINK_FORMAT)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::request::Request;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// RFC 6690, section 5, third example.
    const EXAMPLE: &str = concat!(
        r#"</sensors>;ct=40;title="Sensor Index","#,
        r#"</sensors/temp>;rt="temperature-c";if="sensor","#,
        r#"</sensors/light>;rt="light-lux";if="sensor","#,
        r#"<http://www.example.com/sensors/t123>;anchor="/sensors/temp";rel="describedby","#,
        r#"</t>;anchor="/sensors/temp";rel="alternate""#
    );

    #[test]
    fn the_example_of_section_5_is_read() {
        let read: Vec<_> = links(EXAMPLE).map(Result::unwrap).collect();
        let targets: Vec<_> = read.iter().map(|link| link.target).collect();
        assert_eq!(
            targets,
            ["/sensors", "/sensors/temp", "/sensors/light", "http://www.example.com/sensors/t123", "/t"]
        );
        assert_eq!(read[0].attributes().collect::<Vec<_>>(), [("ct", "40"), ("title", "Sensor Index")]);
        assert_eq!(read[4].attribute("rel"), Some("alternate"));
    }

    #[test]
    fn filters_let_through_what_section_4_1_says() {
        let list = LinkList(EXAMPLE.into());
        let targets = |query: &str| {
            let request = Request::get(&std::format!("/.well-known/core?{query}"));
            let response = list.response(&request.options.as_options());
            assert_eq!(response.options.as_options().content_format(), Some(40));
            let text = String::from_utf8(response.payload.into_owned()).unwrap();
            links(&text).map(|link| String::from(link.unwrap().target)).collect::<Vec<_>>()
        };
        assert_eq!(targets("rt=light-lux"), ["/sensors/light"]);
        assert_eq!(targets("rt=temp*&if=sensor"), ["/sensors/temp"]);
        assert_eq!(targets("href=/sensors*"), ["/sensors", "/sensors/temp", "/sensors/light"]);
        assert_eq!(targets("anchor=/sensors/temp"), ["http://www.example.com/sensors/t123", "/t"]);
        assert_eq!(targets("rt=light"), Vec::<String>::new());
        assert_eq!(targets("rt"), Vec::<String>::new());
    }

    #[test]
    fn values_in_lists_are_found_one_by_one() {
        let mut list = LinkList::new();
        list.add("/a", &[("rt", "one two"), ("title", "say \"hi\"; you, there"), ("obs", "")]);
        list.add("/b", &[]);
        assert_eq!(list.filtered([&b"rt=two"[..]]).matches('<').count(), 1);
        assert_eq!(list.filtered([&b"rt=two thr*"[..]]), "");
        assert_eq!(links(list.as_str()).count(), 2);
        let first = links(list.as_str()).next().unwrap().unwrap();
        assert_eq!(first.attribute("title"), Some(r#"say \"hi\"; you, there"#));
    }

    #[test]
    fn what_is_no_link_is_reported() {
        for (text, offset) in [("x", 0), ("</a>,b", 5), ("</a", 0), ("</a>x", 0), (r#"</a>;t="x"#, 0)] {
            let last = links(text).last();
            assert_eq!(last, Some(Err(LinkError { offset })), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read(links_of in proptest::collection::vec(("[a-z/]{0,8}", "[ -~]{1,12}"), 0..5)) {
            let mut list = LinkList::new();
            for (target, value) in &links_of {
                list.add(target, &[("title", value), ("obs", "")]);
            }
            prop_assert_eq!(links(list.as_str()).filter_map(Result::ok).count(), links_of.len());
            prop_assert_eq!(&list.filtered([]), list.as_str());
        }

        #[test]
        fn no_text_disturbs(text in "[<>;,=\"\\\\a-c ]{0,40}") {
            links(&text).for_each(|link| assert!(link.map_or(0, |link| link.attributes().count()) < 60));
        }
    }
}
