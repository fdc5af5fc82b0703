//! Resources that test descriptions of ETSI for CoAP plugtests require of a server: TD_COAP_CORE, TD_COAP_LINK,
//! TD_COAP_BLOCK, TD_COAP_OBS. They allow to test a client.
//!
//! Stored content stays in memory, bounded, until the server ends.

mod observed;
mod stored;
mod values;

use std::fmt::Write as _;
use std::time::Duration;

use thinair_coap::link_format::LinkList;
use thinair_coap::{Code, Received, Response, code, number};

use super::format::{CBOR, JSON, LINKS, TEXT, XML};
use crate::coap::server::resource::{Moment, Resource, ResourceAnswer, ResourceState, accepted};

use observed::Observed;
use stored::{Created, Stored};
use values::Values;

/// Lines of `/large`, of 64 octets each: more than one block of any size.
const LARGE_LINES: usize = 24;

/// Delay of `/separate`.
const SEPARATE: Duration = Duration::from_secs(1);

/// Links of the constant resources.
const LINKS_OF: &[(&str, &[(&str, &str)])] = &[
    ("/test", &[("ct", "0"), ("title", "GET, PUT, POST and DELETE")]),
    ("/separate", &[("ct", "0"), ("title", "Answers a second later, in a message of its own")]),
    ("/seg1", &[("ct", "0"), ("title", "A path of one segment")]),
    ("/seg1/seg2", &[("ct", "0"), ("title", "A path of two segments")]),
    ("/seg1/seg2/seg3", &[("ct", "0"), ("title", "A path of three segments")]),
    ("/query", &[("ct", "0"), ("title", "Returns the Uri-Query of the request")]),
    ("/location-query", &[("title", "POST is answered with Location-Query")]),
    ("/multi-format", &[("ct", "0 41 50 60"), ("title", "Text, XML, JSON or CBOR, by Accept")]),
    ("/large", &[("ct", "0"), ("rt", "block"), ("sz", "1536"), ("title", "More than one block")]),
    ("/large-post", &[("rt", "block"), ("title", "POST is answered in upper case")]),
    ("/path", &[("ct", "40"), ("title", "Links to resources below")]),
    ("/link1", &[("rt", "Type1 Type2"), ("if", "If1")]),
    ("/link2", &[("rt", "Type2 Type3"), ("if", "If2")]),
    ("/link3", &[("rt", "Type1 Type3"), ("if", "foo")]),
    ("/obs-reset", &[("title", "POST makes the server forget all observers of these resources")]),
];

/// Resources below `/path`.
const SUB: [&str; 3] = ["/path/sub1", "/path/sub2", "/path/sub3"];

/// All test resources.
#[derive(Debug)]
pub struct Tests {
    large: String,
    validate: Stored,
    large_update: Stored,
    create1: Option<Stored>,
    created: Created,
    values: Values,
    observed: [Observed; 3],
}

impl Default for Tests {
    fn default() -> Self {
        Self::new()
    }
}

impl Tests {
    /// Creates the resources in their initial state.
    pub fn new() -> Self {
        let text = large();
        Self {
            validate: Stored::new("/validate", b"as it was at first", TEXT),
            large_update: Stored::new("/large-update", text.as_bytes(), TEXT),
            create1: None,
            created: Created::default(),
            values: Values::default(),
            observed: [
                Observed::new("/obs", true, ""),
                Observed::new("/obs-non", false, ""),
                Observed::new("/obs-large", true, &text),
            ],
            large: text,
        }
    }

    /// `/create1`: PUT with If-None-Match creates it, once. After a rejected PUT it is removed, so that the test can be
    /// repeated.
    fn create1(&mut self, request: &Received<'_>) -> Response<'_> {
        if request.code == Code::DELETE {
            self.create1 = None;
            return Response::new(code::DELETED);
        }
        if request.code == Code::PUT {
            let etag = self.create1.as_ref().map(Stored::etag);
            if !request.options.permits(etag.is_some(), etag.as_ref().map(|etag| &etag[..])) {
                self.create1 = None;
                return Response::new(code::PRECONDITION_FAILED);
            }
            let existed = self.create1.is_some();
            let stored = self.create1.get_or_insert_with(|| Stored::new("/create1", &[], TEXT));
            let response = stored.replace(request);
            return Response { code: if existed { response.code } else { code::CREATED }, ..response };
        }
        match &mut self.create1 {
            Some(stored) => stored.handle(request),
            None => Response::new(code::NOT_FOUND),
        }
    }

    /// Constant resources.
    fn plain(&self, path: &str, request: &Received<'_>) -> Option<Response<'_>> {
        let text =
            |text: &str| accepted(request, TEXT, || Response::content(text.as_bytes().to_vec()).format(TEXT));
        let refused = Response::new(code::METHOD_NOT_ALLOWED);
        let is_get = request.code == Code::GET;
        Some(match (path, request.code) {
            ("/test", _) => Self::test(request),
            ("/query", Code::GET) => text(&query(request)),
            ("/location-query", Code::POST) => Response::new(code::CREATED)
                .option(number::LOCATION_QUERY, b"first=1")
                .option(number::LOCATION_QUERY, b"second=2"),
            ("/multi-format", Code::GET) => multi_format(request),
            ("/large", Code::GET) => {
                accepted(request, TEXT, || Response::content(self.large.as_bytes()).format(TEXT))
            }
            ("/large-post", Code::POST) => {
                let upper: Vec<u8> = request.payload.to_ascii_uppercase();
                Response::new(Code::CHANGED).payload(upper).format(TEXT)
            }
            ("/path", Code::GET) => accepted(request, LINKS, || {
                let mut list = LinkList::new();
                SUB.iter().for_each(|path| list.add(path, &[("ct", "0")]));
                Response::content(list.as_str().as_bytes().to_vec()).format(LINKS)
            }),
            _ if is_get
                && (SUB.contains(&path) || path.starts_with("/link") || path.starts_with("/seg1")) =>
            {
                text(path)
            }
            _ if LINKS_OF.iter().any(|(known, _)| *known == path) || SUB.contains(&path) => refused,
            _ => return None,
        })
    }

    /// `/test`: each method has a response, and no effect.
    fn test(request: &Received<'_>) -> Response<'static> {
        match request.code {
            Code::GET => accepted(request, TEXT, || {
                Response::content(&b"a test resource"[..]).format(TEXT).max_age(30)
            }),
            _ if !request.options.permits(true, None) => Response::new(code::PRECONDITION_FAILED),
            Code::PUT => Response::new(Code::CHANGED),
            Code::POST => ["location1", "location2", "location3"]
                .into_iter()
                .fold(Response::new(code::CREATED), |response, segment| {
                    response.option(number::LOCATION_PATH, segment.as_bytes())
                }),
            Code::DELETE => Response::new(code::DELETED),
            _ => Response::new(code::METHOD_NOT_ALLOWED),
        }
    }
}

impl Resource for Tests {
    fn links(&self, list: &mut LinkList) {
        LINKS_OF.iter().for_each(|(path, attributes)| list.add(path, attributes));
        for stored in [&self.validate, &self.large_update] {
            stored.link(list, &[("rt", if stored.path() == "/validate" { "validate" } else { "block" })]);
        }
        if let Some(created) = &self.create1 {
            created.link(list, &[]);
        }
        self.created.links(list);
        Values::link(list);
        self.observed.iter().for_each(|observed| observed.link(list));
    }

    fn handle<'a>(&'a mut self, at: Moment, request: &Received<'_>) -> Option<ResourceAnswer<'a>> {
        let path = path(request)?;
        let is_plain = LINKS_OF.iter().any(|(known, _)| *known == path) || SUB.contains(&&*path);
        Some(ResourceAnswer::Now(match &*path {
            "/obs-reset" if request.code == Code::POST => return Some(reset(request)),
            "/separate" if request.code == Code::GET => {
                let response = Response::content(&b"a second later"[..]).format(TEXT);
                return Some(ResourceAnswer::After(SEPARATE, response));
            }
            _ if is_plain => self.plain(&path, request)?,
            "/validate" => self.validate.handle(request),
            "/large-update" => self.large_update.handle(request),
            "/create1" => self.create1(request),
            values::PATH => self.values.handle(request),
            path if path == "/large-create" || path.starts_with("/large-create/") => {
                self.created.handle(path, request)
            }
            path => {
                let observed = self.observed.iter_mut().find(|observed| observed.path() == path)?;
                // A request that ends observations leaves the resource unchanged for the next client.
                let is_text = request.options.content_format().is_none_or(|format| format == TEXT);
                let (done, last) = match request.code {
                    Code::DELETE => (code::DELETED, code::NOT_FOUND),
                    Code::PUT if !is_text => (Code::CHANGED, code::NOT_ACCEPTABLE),
                    _ => return Some(ResourceAnswer::Now(observed.handle(at, request))),
                };
                observed.reset();
                return Some(ResourceAnswer::End(Response::new(done), Response::new(last)));
            }
        }))
    }

    fn state(&mut self, at: Moment, request: &Received<'_>) -> Option<ResourceState> {
        let observed = self.observed.iter().find(|observed| request.options.is_path(observed.path()))?;
        Some(observed.state(at))
    }
}

/// Returns the path of a request, if it is text of ordinary length.
fn path(request: &Received<'_>) -> Option<String> {
    let mut path = String::new();
    for segment in request.options.path() {
        path.push('/');
        path.push_str(std::str::from_utf8(segment).ok()?);
        if path.len() > 64 {
            return None;
        }
    }
    Some(path)
}

/// `/obs-reset`: a POST with the right word makes the server remove its observers.
fn reset(request: &Received<'_>) -> ResourceAnswer<'static> {
    match &*request.payload {
        b"sesame" => ResourceAnswer::Forget(Response::new(Code::CHANGED)),
        _ => ResourceAnswer::Now(Response::new(code::FORBIDDEN).payload(&b"what is the word?"[..])),
    }
}

fn query(request: &Received<'_>) -> String {
    let mut text = String::from("query:");
    for argument in request.options.query() {
        let _ = write!(text, "\n{}", String::from_utf8_lossy(argument));
    }
    text
}

fn multi_format(request: &Received<'_>) -> Response<'static> {
    let (format, text): (u16, &'static [u8]) = match request.options.accept() {
        None | Some(TEXT) => (TEXT, b"one of four formats"),
        Some(XML) => (XML, b"<formats n=\"4\"/>"),
        Some(JSON) => (JSON, b"{\"formats\":4}"),
        // {"formats": 4}
        Some(CBOR) => (CBOR, b"\xA1\x67formats\x04"),
        Some(_) => return Response::new(code::NOT_ACCEPTABLE),
    };
    Response::content(text).format(format)
}

/// Returns numbered lines.
fn large() -> String {
    (1..=LARGE_LINES).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{:.<63}", format!("line {line} of {LARGE_LINES}, each of 64 octets "));
        text
    })
}

#[cfg(test)]
#[path = "test/check.rs"]
mod check;
