//! TD_COAP_LINK_01 to 09.

use thinair_coap::link_format::{WebLink, links};

use super::wire::{Down, PlugtestBench, Up};
use super::{ACK, CON, Code, Request, number};

/// Returns the links that a GET of this path and query lists, with their attributes. Checks every
/// message of the exchange.
#[track_caller]
fn list(bench: &mut PlugtestBench, path: &str) -> Vec<(String, Vec<(String, String)>)> {
    let response = bench.ask(&Request::get(path));
    assert_eq!(response.options.content_format(), Some(40));
    for exchange in bench.all().chunks(2) {
        let [asked, answered] = exchange else { panic!("{exchange:#?}") };
        asked.is(Up, CON, Code::GET);
        answered.is(Down, ACK, Code::CONTENT);
        assert_eq!((answered.mid, &answered.token), (asked.mid, &asked.token));
        assert_eq!(answered.uint(number::CONTENT_FORMAT), Some(40));
        if let Some((_, query)) = path.split_once('?') {
            assert_eq!(asked.texts(number::URI_QUERY), [query]);
        }
    }
    let text = String::from_utf8(response.payload.into_owned()).unwrap();
    let owned = |link: WebLink<'_>| {
        let attributes = link.attributes().map(|(name, value)| (name.to_owned(), value.to_owned()));
        (link.target.to_owned(), attributes.collect())
    };
    links(&text).map(|link| owned(link.unwrap())).collect()
}

#[track_caller]
fn targets(path: &str) -> Vec<String> {
    list(&mut PlugtestBench::new(), path).into_iter().map(|(target, _)| target).collect()
}

/// Returns the targets of the whole list for which `is_it` is true: the expected result of a filter.
fn expected(is_it: impl Fn(&str, &[(String, String)]) -> bool) -> Vec<String> {
    let all = list(&mut PlugtestBench::new(), "/.well-known/core");
    all.into_iter()
        .filter(|(target, attributes)| is_it(target, attributes))
        .map(|(target, _)| target)
        .collect()
}

/// True if one of the values in a list of values fits.
fn has(attributes: &[(String, String)], name: &str, fits: impl Fn(&str) -> bool) -> bool {
    attributes.iter().any(|(other, value)| other == name && value.split(' ').any(&fits))
}

#[test]
fn cl01_well_known_core_lists_what_is_there() {
    let targets = targets("/.well-known/core");
    for path in ["/test", "/separate", "/large", "/obs", "/validate", "/link1"] {
        assert!(targets.iter().any(|target| target == path), "{path}: {targets:?}");
    }
}

#[test]
fn cl02_filter_of_one_rt() {
    assert_eq!(targets("/.well-known/core?rt=Type1"), ["/link1", "/link3"]);
}

#[test]
fn cl03_filter_of_any_rt() {
    let wanted = expected(|_, attributes| has(attributes, "rt", |_| true));
    assert!(wanted.len() > 3);
    assert_eq!(targets("/.well-known/core?rt=*"), wanted);
}

#[test]
fn cl04_filter_of_one_rt_among_several() {
    assert_eq!(targets("/.well-known/core?rt=Type2"), ["/link1", "/link2"]);
}

#[test]
fn cl05_filter_of_if_with_a_wildcard() {
    assert_eq!(targets("/.well-known/core?if=If*"), ["/link1", "/link2"]);
}

#[test]
fn cl06_filter_of_any_sz() {
    let wanted = expected(|_, attributes| has(attributes, "sz", |_| true));
    assert!(wanted.iter().any(|target| target == "/large"));
    assert_eq!(targets("/.well-known/core?sz=*"), wanted);
}

#[test]
fn cl07_filter_of_href() {
    assert_eq!(targets("/.well-known/core?href=/link1"), ["/link1"]);
}

#[test]
fn cl08_filter_of_href_with_a_wildcard() {
    assert_eq!(targets("/.well-known/core?href=/link*"), ["/link1", "/link2", "/link3"]);
}

#[test]
fn cl09_a_collection_lists_what_is_below() {
    let mut bench = PlugtestBench::new();
    let lists = list(&mut bench, "/.well-known/core?ct=40");
    assert!(lists.iter().any(|(target, _)| target == "/path"), "{lists:?}");
    let below = list(&mut bench, "/path");
    assert!(!below.is_empty());
    for (target, _) in below {
        assert!(target.starts_with("/path/"));
        bench.ask(&Request::get(&target));
        let [asked, answered] = bench.take();
        asked.is(Up, CON, Code::GET);
        answered.is(Down, ACK, Code::CONTENT);
        assert!(!answered.payload.is_empty());
    }
}
