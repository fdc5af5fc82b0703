//! Expectations of the test descriptions on responses, except the types of messages.

#![allow(clippy::unwrap_used)]

use thinair_coap::Request;

use super::*;
use crate::coap::server::resource::Resources;
use crate::coap::server::resources::support::{answer, ask, at, get, received, state};

fn asked(tests: &mut Tests, request: &Request<'_>) -> Response<'static> {
    ask(tests, at(0), request).unwrap()
}

fn values(response: &Response<'_>, number: u16) -> Vec<Vec<u8>> {
    response.options.as_options().all(number).map(<[u8]>::to_vec).collect()
}

#[test]
fn each_method_has_its_code() {
    let mut tests = Tests::new();
    for (request, expected) in [
        (get("/test"), Code::CONTENT),
        (Request::post("/test", &b"x"[..]), code::CREATED),
        (Request::put("/test", &b"x"[..]), Code::CHANGED),
        (Request::delete("/test"), code::DELETED),
        (get("/seg1/seg2/seg3"), Code::CONTENT),
        (Request::put("/seg1", &b"x"[..]), code::METHOD_NOT_ALLOWED),
        (get("/path/sub2"), Code::CONTENT),
        (get("/link3"), Code::CONTENT),
        (get("/location-query"), code::METHOD_NOT_ALLOWED),
        (get("/create1"), code::NOT_FOUND),
        (get("/large-create/1"), code::NOT_FOUND),
        (Request::put("/test", &b"x"[..]).option(number::IF_NONE_MATCH, &[]), code::PRECONDITION_FAILED),
    ] {
        assert_eq!(asked(&mut tests, &request).code, expected, "{request:?}");
    }
    assert_eq!(ask(&mut tests, at(0), &get("/other")), None);
    assert_eq!(ask(&mut tests, at(0), &get("/seg1/other")), None);
}

#[test]
fn locations_are_reported() {
    let mut tests = Tests::new();
    let created = asked(&mut tests, &Request::post("/test", &b"x"[..]));
    assert_eq!(values(&created, number::LOCATION_PATH), [b"location1", b"location2", b"location3"]);
    let created = asked(&mut tests, &Request::post("/location-query", &b"x"[..]));
    assert_eq!(values(&created, number::LOCATION_QUERY), [&b"first=1"[..], b"second=2"]);
    for _ in 0..10 {
        asked(&mut tests, &Request::post("/large-create", &b"body"[..]).format(50));
    }
    let body = asked(&mut tests, &get("/large-create/10"));
    assert_eq!((&*body.payload, body.options.as_options().content_format()), (&b"body"[..], Some(50)));
    assert_eq!(asked(&mut tests, &get("/large-create/2")).code, code::NOT_FOUND, "there are 8 at a time");
}

#[test]
fn queries_formats_and_cases() {
    let mut tests = Tests::new();
    let answered = asked(&mut tests, &get("/query?first=1&second=2"));
    assert_eq!(&*answered.payload, b"query:\nfirst=1\nsecond=2");
    for format in [TEXT, XML, JSON, CBOR] {
        let response = asked(&mut tests, &get("/multi-format").accept(format));
        assert_eq!(response.options.as_options().content_format(), Some(format));
    }
    assert_eq!(asked(&mut tests, &get("/multi-format").accept(40)).code, code::NOT_ACCEPTABLE);
    let upper = asked(&mut tests, &Request::post("/large-post", &b"mixed Case"[..]));
    assert_eq!((upper.code, &*upper.payload), (Code::CHANGED, &b"MIXED CASE"[..]));
    let large = asked(&mut tests, &get("/large"));
    assert_eq!(large.payload.len(), 64 * LARGE_LINES);
}

/// TD_COAP_CORE_21 and 22.
#[test]
fn validate_knows_its_etag() {
    let mut tests = Tests::new();
    let first = asked(&mut tests, &get("/validate"));
    let etag = first.options.as_options().etag().unwrap().to_vec();
    assert_eq!(asked(&mut tests, &get("/validate").etag(&etag)), Response::valid(&etag));
    let matching = Request::put("/validate", &b"new"[..]).option(number::IF_MATCH, &etag);
    assert_eq!(asked(&mut tests, &matching).code, Code::CHANGED);
    assert_eq!(asked(&mut tests, &matching).code, code::PRECONDITION_FAILED);
    let now = asked(&mut tests, &get("/validate").etag(&etag));
    assert_eq!((now.code, &*now.payload), (Code::CONTENT, &b"new"[..]));
}

/// TD_COAP_CORE_23.
#[test]
fn create1_is_made_once() {
    let mut tests = Tests::new();
    let create = Request::put("/create1", &b"made"[..]).option(number::IF_NONE_MATCH, &[]);
    let codes = [(); 3].map(|()| asked(&mut tests, &create).code);
    assert_eq!(codes, [code::CREATED, code::PRECONDITION_FAILED, code::CREATED]);
    assert_eq!(&*asked(&mut tests, &get("/create1")).payload, b"made");
    assert_eq!(asked(&mut tests, &Request::put("/create1", &b"again"[..])).code, Code::CHANGED);
}

#[test]
fn separate_takes_a_second_and_obs_reset_a_word() {
    let mut tests = Tests::new();
    let separate = answer(&mut tests, at(0), &get("/separate")).unwrap();
    assert!(matches!(separate, ResourceAnswer::After(SEPARATE, response) if response.code == Code::CONTENT));
    let word = answer(&mut tests, at(0), &Request::post("/obs-reset", &b"sesame"[..])).unwrap();
    assert_eq!(word, ResourceAnswer::Forget(Response::new(Code::CHANGED)));
    assert_eq!(asked(&mut tests, &Request::post("/obs-reset", &b"open"[..])).code, code::FORBIDDEN);
}

#[test]
fn what_is_observed_changes_with_time_and_with_what_is_put() {
    let mut tests = Tests::new();
    let mut versions = vec![state(&mut tests, at(1), "/obs").unwrap()];
    assert_eq!(state(&mut tests, at(4), "/obs"), versions.last().copied());
    versions.push(state(&mut tests, at(5), "/obs").unwrap());
    let put = Request::put("/obs", &b"put"[..]).format(TEXT);
    assert_eq!(ask(&mut tests, at(6), &put).unwrap().code, Code::CHANGED);
    versions.push(state(&mut tests, at(6), "/obs").unwrap());
    assert_eq!(&*ask(&mut tests, at(9), &get("/obs")).unwrap().payload, b"put");
    assert_eq!(&*ask(&mut tests, at(10), &get("/obs")).unwrap().payload, b"2\n");
    let last = ResourceAnswer::End(Response::new(code::DELETED), Response::new(code::NOT_FOUND));
    assert_eq!(answer(&mut tests, at(10), &Request::delete("/obs")), Some(last));
    let last = ResourceAnswer::End(Response::new(Code::CHANGED), Response::new(code::NOT_ACCEPTABLE));
    assert_eq!(answer(&mut tests, at(10), &Request::put("/obs", &b"{}"[..]).format(JSON)), Some(last));
    assert_eq!(ask(&mut tests, at(10), &get("/obs").accept(TEXT)).unwrap().code, Code::CONTENT);
    let mut numbers: Vec<_> = versions.iter().map(|state| state.version).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 3);
    assert!(versions[0].confirmable && !state(&mut tests, at(1), "/obs-non").unwrap().confirmable);
    assert_eq!(state(&mut tests, at(1), "/test"), None);
}

/// TD_COAP_LINK_01 to 09.
#[test]
fn links_are_found_by_their_attributes() {
    let mut site = Resources::new();
    site.add(Tests::new());
    let mut found = |query: &str| {
        let request = received(&get(&format!("/.well-known/core{query}")));
        let (None, ResourceAnswer::Now(response)) = site.handle(at(0), &request) else { panic!() };
        assert_eq!(response.options.as_options().content_format(), Some(LINKS));
        String::from_utf8(response.payload.into_owned()).unwrap()
    };
    assert!(found("").contains("</test>;ct=0"));
    for (query, links) in [
        ("?rt=Type1", &["</link1>", "</link3>"][..]),
        ("?rt=Type2", &["</link1>", "</link2>"]),
        ("?if=If*", &["</link1>", "</link2>"]),
        ("?href=/link1", &["</link1>"]),
        ("?href=/link*", &["</link1>", "</link2>", "</link3>"]),
        ("?ct=40", &["</path>", "</large-create>"]),
        ("?sz=*", &["</large>", "</validate>", "</large-update>"]),
    ] {
        let list = found(query);
        assert!(links.iter().all(|link| list.contains(link)), "{query}: {list}");
        assert_eq!(list.matches('<').count(), links.len(), "{query}: {list}");
    }
    let all: Vec<_> = found("?rt=*").split(",<").map(|link| link.contains("rt=")).collect();
    assert!(!all.is_empty() && all.into_iter().all(|has| has));
}

/// RFC 8132: FETCH selects, PATCH and iPATCH change a part, all or nothing; iPATCH twice is iPATCH once.
#[test]
fn parts_of_a_resource_are_fetched_and_changed() {
    let mut tests = Tests::new();
    let mut run = |method: Code, body: &'static str| {
        let response = asked(&mut tests, &Request { method, ..Request::post("/values", body.as_bytes()) });
        (response.code, String::from_utf8_lossy(&response.payload).into_owned())
    };
    let content = |text: &str| (Code::CONTENT, text.to_owned());
    let changed = (Code::CHANGED, String::new());
    assert_eq!(run(code::FETCH, "humidity\ntemperature"), content("humidity=40\ntemperature=21\n"));
    assert_eq!(run(code::FETCH, "nothing"), content(""));
    for _ in 0..2 {
        assert_eq!(run(code::IPATCH, "humidity=41\nwind=3\npressure="), changed);
        assert_eq!(run(Code::GET, ""), content("humidity=41\ntemperature=21\nwind=3\n"));
    }
    assert_eq!(run(code::PATCH, "wind+=4"), changed);
    assert_eq!(run(code::PATCH, "wind+=4"), changed);
    assert_eq!(run(code::FETCH, "wind"), content("wind=11\n"));
    for (method, body) in [(code::IPATCH, "wind+=4"), (code::PATCH, "wind=1\nnothing"), (code::PATCH, "a+=x")]
    {
        assert_eq!(run(method, body).0, code::BAD_REQUEST);
    }
    assert_eq!(run(code::FETCH, "wind"), content("wind=11\n"));
    assert_eq!(run(Code::DELETE, "").0, code::METHOD_NOT_ALLOWED);
    let other = Request { method: code::PATCH, ..Request::post("/values", &b"a=1"[..]) }
        .uint(number::CONTENT_FORMAT, 60);
    assert_eq!(asked(&mut tests, &other).code, code::UNSUPPORTED_CONTENT_FORMAT);
}
