//! TD_COAP_CORE_01 to 23.

use std::time::Duration;

use thinair_coap::Type;
use thinair_coap::{Builder, Token};

use super::wire::{ClientEvent, Down, PlugtestBench, SeenMessage, Up};
use super::{ACK, CON, Code, NON, Request, code, number};

/// Sends one request, and checks the properties of every piggybacked exchange: CON and ACK with equal Message ID and
/// Token.
#[track_caller]
fn piggybacked(bench: &mut PlugtestBench, request: &Request<'_>, answer: Code) -> [SeenMessage; 2] {
    bench.ask(request);
    let [asked, answered] = bench.take();
    asked.is(Up, CON, request.method);
    answered.is(Down, ACK, answer);
    assert_eq!((answered.mid, &answered.token), (asked.mid, &asked.token));
    [asked, answered]
}

/// Sends one NON request, and checks the response: a NON message with the Token, and a Message ID of the server.
#[track_caller]
fn non_confirmable(bench: &mut PlugtestBench, request: &Request<'_>, answer: Code) -> [SeenMessage; 2] {
    bench.ask(&request.clone().non_confirmable());
    let [asked, answered] = bench.take();
    asked.is(Up, NON, request.method);
    answered.is(Down, NON, answer);
    assert_eq!(answered.token, asked.token);
    [asked, answered]
}

/// Asserts that a representation is text, with its Content-Format.
#[track_caller]
fn is_text(message: &SeenMessage) {
    assert_eq!(message.uint(number::CONTENT_FORMAT), Some(0), "{message:?}");
    assert!(!message.text().is_empty());
}

#[test]
fn cc01_get_con() {
    let [asked, answered] = piggybacked(&mut PlugtestBench::new(), &Request::get("/test"), Code::CONTENT);
    assert_eq!(asked.texts(number::URI_PATH), ["test"]);
    is_text(&answered);
}

#[test]
fn cc02_delete_con() {
    piggybacked(&mut PlugtestBench::new(), &Request::delete("/test"), code::DELETED);
}

#[test]
fn cc03_put_con() {
    let request = Request::put("/test", &b"TD_COAP_CORE_03"[..]).format(0);
    let [asked, _] = piggybacked(&mut PlugtestBench::new(), &request, Code::CHANGED);
    assert_eq!((asked.text(), asked.uint(number::CONTENT_FORMAT)), ("TD_COAP_CORE_03", Some(0)));
}

#[test]
fn cc04_post_con() {
    let request = Request::post("/test", &b"TD_COAP_CORE_04"[..]).format(0);
    let [asked, _] = piggybacked(&mut PlugtestBench::new(), &request, code::CREATED);
    assert_eq!((asked.text(), asked.uint(number::CONTENT_FORMAT)), ("TD_COAP_CORE_04", Some(0)));
}

#[test]
fn cc05_get_non() {
    let [_, answered] = non_confirmable(&mut PlugtestBench::new(), &Request::get("/test"), Code::CONTENT);
    is_text(&answered);
}

#[test]
fn cc06_delete_non() {
    non_confirmable(&mut PlugtestBench::new(), &Request::delete("/test"), code::DELETED);
}

#[test]
fn cc07_put_non() {
    let request = Request::put("/test", &b"TD_COAP_CORE_07"[..]).format(0);
    let [asked, _] = non_confirmable(&mut PlugtestBench::new(), &request, Code::CHANGED);
    assert_eq!(asked.text(), "TD_COAP_CORE_07");
}

#[test]
fn cc08_post_non() {
    let request = Request::post("/test", &b"TD_COAP_CORE_08"[..]).format(0);
    let [asked, _] = non_confirmable(&mut PlugtestBench::new(), &request, code::CREATED);
    assert_eq!(asked.text(), "TD_COAP_CORE_08");
}

/// A request, its Empty acknowledgement, the response in a CON message of its own, and the acknowledgement of that.
#[track_caller]
fn separate(bench: &mut PlugtestBench) -> [SeenMessage; 4] {
    bench.ask(&Request::get("/separate"));
    let messages: [SeenMessage; 4] = bench.take();
    let [asked, acknowledged, answered, done] = &messages;
    asked.is(Up, CON, Code::GET);
    acknowledged.is(Down, ACK, Code::EMPTY);
    assert_eq!((acknowledged.mid, acknowledged.token.len(), acknowledged.payload.len()), (asked.mid, 0, 0));
    answered.is(Down, CON, Code::CONTENT);
    assert_eq!(answered.token, asked.token);
    is_text(answered);
    done.is(Up, ACK, Code::EMPTY);
    assert_eq!((done.mid, done.token.len(), done.payload.len()), (answered.mid, 0, 0));
    assert!(answered.at - acknowledged.at >= Duration::from_millis(500));
    messages
}

#[test]
fn cc09_get_separate() {
    separate(&mut PlugtestBench::new());
}

#[test]
fn cc10_token_comes_back() {
    let [asked, answered] = piggybacked(&mut PlugtestBench::new(), &Request::get("/test"), Code::CONTENT);
    assert!((1..=8).contains(&asked.token.len()), "{asked:?}");
    is_text(&answered);
}

#[test]
fn cc11_token_comes_back_in_a_separate_response() {
    let [asked, _, answered, _] = separate(&mut PlugtestBench::new());
    assert!((1..=8).contains(&asked.token.len()), "{asked:?}");
    assert_eq!(answered.token, asked.token);
}

#[test]
fn cc12_no_token_comes_back() {
    let mut bench = PlugtestBench::new();
    let mut octets = [0; 64];
    let mut message = Builder::new(&mut octets, CON, Code::GET, 0x7D34, &Token::EMPTY).unwrap();
    message.option(number::URI_PATH, b"test").unwrap();
    let len = message.finish();
    bench.inject(&octets[..len]);
    bench.run(1_000);
    let [asked, answered] = bench.take();
    assert_eq!(asked.token.len(), 0);
    answered.is(Down, ACK, Code::CONTENT);
    assert_eq!((answered.mid, answered.token.len()), (0x7D34, 0));
    is_text(&answered);
}

#[test]
fn cc13_segments_of_uri_path() {
    let [asked, answered] =
        piggybacked(&mut PlugtestBench::new(), &Request::get("/seg1/seg2/seg3"), Code::CONTENT);
    assert_eq!(asked.texts(number::URI_PATH), ["seg1", "seg2", "seg3"]);
    is_text(&answered);
}

#[test]
fn cc14_arguments_of_uri_query() {
    let request = Request::get("/query?first=1&second=2&third=3");
    let [asked, answered] = piggybacked(&mut PlugtestBench::new(), &request, Code::CONTENT);
    assert_eq!(asked.texts(number::URI_QUERY), ["first=1", "second=2", "third=3"]);
    is_text(&answered);
    for argument in ["first=1", "second=2", "third=3"] {
        assert!(answered.text().contains(argument), "{}", answered.text());
    }
}

/// Asserts that the second message repeats the first, ACK_TIMEOUT to 1.5 times as much later.
#[track_caller]
fn is_again(first: &SeenMessage, second: &SeenMessage) {
    let waited = second.at - first.at;
    assert!((Duration::from_secs(2)..=Duration::from_secs(3)).contains(&waited), "{first:?} {second:?}");
    assert_eq!((second, second.lost), (&SeenMessage { at: second.at, lost: false, ..first.clone() }, false));
}

#[test]
fn cc15_lost_messages_of_a_piggybacked_exchange() {
    // The request is lost.
    let mut bench = PlugtestBench::new();
    bench.lose = vec![0];
    bench.ask(&Request::get("/test"));
    let [lost, asked, answered] = bench.take();
    is_again(&lost, &asked);
    answered.is(Down, ACK, Code::CONTENT);
    assert_eq!((answered.mid, &answered.token, bench.handled), (asked.mid, &asked.token, 1));

    // The response is lost: the server recognizes the request, and sends the response again.
    let mut bench = PlugtestBench::new();
    bench.lose = vec![1];
    bench.ask(&Request::get("/test"));
    let [first, lost, asked, answered] = bench.take();
    is_again(&first, &asked);
    assert_eq!(answered, SeenMessage { at: answered.at, lost: false, ..lost });
    is_text(&answered);
    assert_eq!(bench.handled, 1);
}

#[test]
fn cc16_lost_messages_of_a_separate_exchange() {
    let response = |bench: &PlugtestBench| {
        let responses =
            bench.client_events.iter().filter(|event| matches!(event, ClientEvent::Response(..))).count();
        assert_eq!((responses, bench.client_events.len(), bench.handled), (1, 1, 1), "{:#?}", bench.seen);
    };
    // The request.
    let mut bench = PlugtestBench::new();
    bench.lose = vec![0];
    bench.ask(&Request::get("/separate"));
    response(&bench);
    let [lost, asked, acknowledged, answered, done] = bench.take();
    is_again(&lost, &asked);
    acknowledged.is(Down, ACK, Code::EMPTY);
    answered.is(Down, CON, Code::CONTENT);
    assert_eq!(done.is(Up, ACK, Code::EMPTY).mid, answered.mid);

    // Its acknowledgement is lost: the response implies it.
    let mut bench = PlugtestBench::new();
    bench.lose = vec![1];
    bench.ask(&Request::get("/separate"));
    response(&bench);
    let [asked, _, answered, done] = bench.take();
    assert_eq!(answered.is(Down, CON, Code::CONTENT).token, asked.token);
    assert_eq!(done.is(Up, ACK, Code::EMPTY).mid, answered.mid);

    // The response.
    let mut bench = PlugtestBench::new();
    bench.lose = vec![2];
    bench.ask(&Request::get("/separate"));
    response(&bench);
    let [_, _, lost, answered, done] = bench.take();
    is_again(&lost, &answered);
    assert_eq!(done.is(Up, ACK, Code::EMPTY).mid, answered.mid);

    // The acknowledgement of the response: the response comes twice, and is acknowledged twice.
    let mut bench = PlugtestBench::new();
    bench.lose = vec![3];
    bench.ask(&Request::get("/separate"));
    response(&bench);
    let [_, _, answered, lost, again, done] = bench.take();
    is_again(&answered, &again);
    assert_eq!(done, SeenMessage { at: done.at, lost: false, ..lost });
}

#[test]
fn cc17_separate_response_to_non() {
    let mut bench = PlugtestBench::new();
    bench.ask(&Request::get("/separate").non_confirmable());
    let [asked, answered] = bench.take();
    asked.is(Up, NON, Code::GET);
    answered.is(Down, NON, Code::CONTENT);
    assert_eq!(answered.token, asked.token);
    assert!(answered.at - asked.at >= Duration::from_millis(500));
    is_text(&answered);
}

#[test]
fn cc18_post_is_answered_with_location_path() {
    let request = Request::post("/test", &b"TD_COAP_CORE_18"[..]).format(0);
    let [_, answered] = piggybacked(&mut PlugtestBench::new(), &request, code::CREATED);
    assert_eq!(answered.texts(number::LOCATION_PATH), ["location1", "location2", "location3"]);
}

#[test]
fn cc19_post_is_answered_with_location_query() {
    let request = Request::post("/location-query", &b"TD_COAP_CORE_19"[..]).format(0);
    let [_, answered] = piggybacked(&mut PlugtestBench::new(), &request, code::CREATED);
    assert_eq!(answered.texts(number::LOCATION_QUERY), ["first=1", "second=2"]);
}

#[test]
fn cc20_accept_chooses_the_content_format() {
    for format in [0, 41, 50, 60] {
        let request = Request::get("/multi-format").accept(format);
        let [asked, answered] = piggybacked(&mut PlugtestBench::new(), &request, Code::CONTENT);
        assert_eq!(asked.uint(number::ACCEPT), Some(u32::from(format)));
        assert_eq!(answered.uint(number::CONTENT_FORMAT), Some(u32::from(format)));
        assert!(!answered.payload.is_empty());
    }
    let request = Request::get("/multi-format").accept(42);
    piggybacked(&mut PlugtestBench::new(), &request, code::NOT_ACCEPTABLE);
}

#[track_caller]
fn etag(message: &SeenMessage) -> Vec<u8> {
    let etags = message.all(number::ETAG);
    assert!(etags.len() == 1 && (1..=8).contains(&etags[0].len()), "{message:?}");
    etags[0].to_vec()
}

#[test]
fn cc21_etag_validates() {
    let mut bench = PlugtestBench::new();
    let [_, answered] = piggybacked(&mut bench, &Request::get("/validate"), Code::CONTENT);
    let first = etag(&answered);
    assert!(!answered.payload.is_empty());

    let validating = Request::get("/validate").etag(&first);
    let [asked, answered] = piggybacked(&mut bench, &validating, code::VALID);
    assert_eq!(asked.all(number::ETAG), [&first[..]]);
    assert_eq!((etag(&answered), answered.payload.len()), (first.clone(), 0));

    let changing = Request::put("/validate", &b"It should change"[..]).format(0);
    piggybacked(&mut bench, &changing, Code::CHANGED);
    let [_, answered] = piggybacked(&mut bench, &validating, Code::CONTENT);
    assert_ne!(etag(&answered), first);
    assert_eq!(answered.text(), "It should change");
}

#[test]
fn cc22_if_match_guards() {
    let mut bench = PlugtestBench::new();
    let [_, answered] = piggybacked(&mut bench, &Request::get("/validate"), Code::CONTENT);
    let first = etag(&answered);
    let guarded = |text: &'static str| {
        Request::put("/validate", text.as_bytes()).format(0).option(number::IF_MATCH, &first)
    };
    let [asked, _] = piggybacked(&mut bench, &guarded("TD_COAP_CORE_22 Part A"), Code::CHANGED);
    assert_eq!(asked.all(number::IF_MATCH), [&first[..]]);

    let [_, answered] = piggybacked(&mut bench, &Request::get("/validate"), Code::CONTENT);
    assert_ne!(etag(&answered), first);
    assert_eq!(answered.text(), "TD_COAP_CORE_22 Part A");

    piggybacked(&mut bench, &guarded("TD_COAP_CORE_22 Part B"), code::PRECONDITION_FAILED);
    let [_, answered] = piggybacked(&mut bench, &Request::get("/validate"), Code::CONTENT);
    assert_eq!(answered.text(), "TD_COAP_CORE_22 Part A");
}

#[test]
fn cc23_if_none_match_guards() {
    let mut bench = PlugtestBench::new();
    let create = |text: &'static str| {
        Request::put("/create1", text.as_bytes()).format(0).option(number::IF_NONE_MATCH, &[])
    };
    let [asked, _] = piggybacked(&mut bench, &create("TD_COAP_CORE_23 Part A"), code::CREATED);
    assert_eq!(asked.all(number::IF_NONE_MATCH), [&[0_u8; 0][..]]);
    piggybacked(&mut bench, &create("TD_COAP_CORE_23 Part B"), code::PRECONDITION_FAILED);
}

/// Types are those of the header, so that a wrong test cannot pass: 0 is CON, 1 NON, 2 ACK, 3 RST.
#[test]
fn types_have_their_numbers() {
    let first = |kind: Type| {
        let mut octets = [0; 8];
        Builder::new(&mut octets, kind, Code::GET, 1, &Token::EMPTY).unwrap().finish();
        octets[0] >> 4 & 0b11
    };
    assert_eq!([CON, NON, ACK, super::RST].map(first), [0, 1, 2, 3]);
}
