//! TD_COAP_OBS_01 to 10. The resources change every 5 s.

use std::time::Duration;

use thinair_coap::{CallError, CallId, Gone};

use super::wire::{ClientEvent, Down, PlugtestBench, SeenMessage, Up};
use super::{ACK, CON, Code, NON, RST, Request, code, number};

/// Registers, and checks the request and the first notification.
#[track_caller]
fn register(bench: &mut PlugtestBench, path: &str) -> (CallId, Vec<u8>) {
    let call = bench.request(&Request::get(path).observe());
    bench.run(100);
    let [asked, answered] = bench.take();
    asked.is(Up, CON, Code::GET);
    assert_eq!(asked.uint(number::OBSERVE), Some(0));
    answered.is(Down, ACK, Code::CONTENT);
    assert_eq!((answered.mid, &answered.token), (asked.mid, &asked.token));
    assert!(answered.uint(number::OBSERVE).is_some(), "{answered:?}");
    assert_eq!(answered.uint(number::CONTENT_FORMAT), Some(0));
    assert!(!answered.payload.is_empty());
    (call, asked.token)
}

/// Asserts that a message is a notification.
#[track_caller]
fn is_notification(message: &SeenMessage, token: &[u8], kind: thinair_coap::Type) {
    message.is(Down, kind, Code::CONTENT);
    assert_eq!(message.token, token);
    assert_eq!(message.uint(number::CONTENT_FORMAT), Some(0));
    assert!(message.uint(number::OBSERVE).is_some() && !message.payload.is_empty(), "{message:?}");
}

/// Asserts that the messages are confirmable notifications, each with its acknowledgement, in the order of Observe.
#[track_caller]
fn are_acknowledged(seen: &[SeenMessage], token: &[u8]) {
    let mut sequence = 0;
    for pair in seen.chunks(2) {
        let [notification, acknowledgement] = pair else { panic!("{seen:#?}") };
        is_notification(notification, token, CON);
        acknowledgement.is(Up, ACK, Code::EMPTY);
        assert_eq!((acknowledgement.mid, acknowledgement.token.len()), (notification.mid, 0));
        let number = notification.uint(number::OBSERVE).unwrap();
        assert!(number > sequence, "{seen:#?}");
        sequence = number;
    }
}

fn notifications(bench: &PlugtestBench) -> usize {
    bench.client_events.iter().filter(|event| matches!(event, ClientEvent::Notification(..))).count()
}

#[test]
fn co01_observe_with_con() {
    let mut bench = PlugtestBench::new();
    let (_, token) = register(&mut bench, "/obs");
    bench.run(15_000);
    let seen = bench.all();
    assert_eq!(seen.len(), 6, "{seen:#?}");
    are_acknowledged(&seen, &token);
    assert_eq!(notifications(&bench), 4);
    let mut texts: Vec<_> =
        seen.iter().filter(|message| message.way == Down).map(SeenMessage::text).collect();
    texts.dedup();
    assert_eq!(texts.len(), 3, "each is a state of its own");
}

#[test]
fn co02_observe_with_non() {
    let mut bench = PlugtestBench::new();
    let (_, token) = register(&mut bench, "/obs-non");
    bench.run(15_000);
    let seen: [SeenMessage; 3] = bench.take();
    seen.iter().for_each(|message| is_notification(message, &token, NON));
    assert!(seen.is_sorted_by_key(|message| message.uint(number::OBSERVE)));
    assert_eq!(notifications(&bench), 4);
}

#[test]
fn co03_observe_is_ended_by_the_client() {
    let mut bench = PlugtestBench::new();
    let (call, token) = register(&mut bench, "/obs");
    bench.run(5_000);
    are_acknowledged(&bench.all(), &token);
    assert!(bench.client.deregister(bench.now, call));
    bench.run(20_000);
    // Observe 1 with the Token of the observation; the response is not a notification, and none follow.
    let [asked, answered] = bench.take();
    asked.is(Up, CON, Code::GET);
    assert_eq!((asked.uint(number::OBSERVE), &asked.token), (Some(1), &token));
    answered.is(Down, ACK, Code::CONTENT);
    assert_eq!((answered.uint(number::OBSERVE), &answered.token), (None, &token));
    assert_eq!(bench.gone, [Gone::Deregistered]);
}

#[test]
fn co04_client_registers_again_when_max_age_is_over() {
    let mut bench = PlugtestBench::new();
    let (_, token) = register(&mut bench, "/obs");
    bench.run(5_000);
    are_acknowledged(&bench.all(), &token);
    // The server removes its observers, like one that was restarted.
    bench.request(&Request::post("/obs-reset", &b"sesame"[..]));
    bench.run(100);
    let [_, answered] = bench.take();
    answered.is(Down, ACK, Code::CHANGED);
    // Max-Age is 5 s; RFC 7641, section 3.3.1, adds 5 to 15 s.
    bench.run(26_000);
    let seen = bench.all();
    let [asked, answered, rest @ ..] = seen.as_slice() else { panic!("{seen:#?}") };
    asked.is(Up, CON, Code::GET);
    assert_eq!((asked.uint(number::OBSERVE), &asked.token), (Some(0), &token));
    answered.is(Down, ACK, Code::CONTENT);
    assert!(answered.uint(number::OBSERVE).is_some() && answered.token == token);
    let waited = asked.at - Duration::from_secs(5);
    assert!((Duration::from_secs(10)..Duration::from_secs(21)).contains(&waited), "{waited:?}");
    are_acknowledged(rest, &token);
}

#[test]
fn co05_server_gives_up_a_client_that_is_off() {
    let mut bench = PlugtestBench::new();
    let (_, token) = register(&mut bench, "/obs");
    bench.client_off = true;
    // The client is silent: its endpoint is not used for less than the time after which it registers again.
    bench.client = thinair_coap::Endpoint::new(Default::default(), || 1);
    bench.run(120_000);
    let seen = bench.all();
    // One transmission, four more, and the one with which MAX_TRANSMIT_SPAN ends.
    assert_eq!(seen.len(), 6, "{seen:#?}");
    seen.iter().for_each(|message| is_notification(message, &token, CON));
    let waits: Vec<_> = seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect();
    for (number, waited) in waits.iter().take(4).enumerate() {
        let least = f64::from(1 << number) * 2.0;
        assert!((least..=least * 1.5).contains(waited), "{waits:?}");
    }
    assert!((45.0..=56.25).contains(&waits.iter().sum::<f64>()), "{waits:?}");
    assert_eq!(bench.gone, [Gone::Timeout { transmissions: 6 }]);
}

#[test]
fn co06_server_gives_up_a_client_that_rejects() {
    let mut bench = PlugtestBench::new();
    let (call, token) = register(&mut bench, "/obs");
    bench.run(5_000);
    are_acknowledged(&bench.all(), &token);
    bench.client.cancel(bench.now, call);
    bench.run(20_000);
    let [notification, rejected] = bench.take();
    is_notification(&notification, &token, CON);
    rejected.is(Up, RST, Code::EMPTY);
    assert_eq!((rejected.mid, rejected.token.len(), rejected.payload.len()), (notification.mid, 0, 0));
    assert_eq!(bench.gone, [Gone::Reset]);
    assert_eq!(bench.client_events.last(), Some(&ClientEvent::Failed(call, CallError::Cancelled)));
}

/// Changes an observed resource so that it can no longer be observed: the observer gets a last response, and it
/// ends.
#[track_caller]
fn ends_with(change: &Request<'_>, answer: Code, last: Code) {
    let mut bench = PlugtestBench::new();
    let (call, token) = register(&mut bench, "/obs");
    bench.run(5_000);
    are_acknowledged(&bench.all(), &token);
    bench.request(change);
    bench.run(30_000);
    let mut seen = bench.all();
    seen.sort_by_key(|message| message.token == token || message.code == Code::EMPTY);
    let [asked, answered, notification, acknowledged] = seen.as_slice() else { panic!("{seen:#?}") };
    asked.is(Up, CON, change.method);
    answered.is(Down, ACK, answer);
    notification.is(Down, CON, last);
    assert_eq!((&notification.token, notification.uint(number::OBSERVE)), (&token, None));
    assert_eq!(acknowledged.is(Up, ACK, Code::EMPTY).mid, notification.mid);
    let is_it = |one: &&ClientEvent| matches!(one, ClientEvent::Response(other, message) if *other == call && message.code == last);
    assert!(bench.client_events.iter().find(is_it).is_some(), "{:?}", bench.client_events);
    assert_eq!(bench.gone, [Gone::Error]);
}

#[test]
fn co07_delete_ends_observations() {
    ends_with(&Request::delete("/obs"), code::DELETED, code::NOT_FOUND);
}

#[test]
fn co08_another_content_format_ends_observations() {
    let change = Request::put("/obs", &b"{}"[..]).format(50);
    ends_with(&change, Code::CHANGED, code::NOT_ACCEPTABLE);
}

#[test]
fn co09_put_notifies_observers() {
    let mut bench = PlugtestBench::new();
    let (_, token) = register(&mut bench, "/obs");
    bench.run(5_000);
    are_acknowledged(&bench.all(), &token);
    let changing = bench.request(&Request::put("/obs", &b"New value"[..]).format(0));
    bench.run(100);
    let mut seen = bench.all();
    seen.sort_by_key(|message| message.token == token || message.code == Code::EMPTY);
    let [asked, answered, rest @ ..] = seen.as_slice() else { panic!("{seen:#?}") };
    asked.is(Up, CON, Code::PUT);
    assert_eq!(answered.is(Down, ACK, Code::CHANGED).mid, asked.mid);
    are_acknowledged(rest, &token);
    assert_eq!((rest.len(), rest[0].text()), (2, "New value"));
    let is_done = |event: &ClientEvent| matches!(event, ClientEvent::Response(call, _) if *call == changing);
    assert!(bench.client_events.iter().any(is_done));
    // The observation continues.
    bench.run(10_000);
    let seen = bench.all();
    assert_eq!(seen.len(), 4, "{seen:#?}");
    are_acknowledged(&seen, &token);
}

#[test]
fn co10_get_does_not_end_observations() {
    let mut bench = PlugtestBench::new();
    let (_, token) = register(&mut bench, "/obs");
    bench.run(5_000);
    are_acknowledged(&bench.all(), &token);
    bench.request(&Request::get("/obs"));
    bench.run(100);
    let [asked, answered] = bench.take();
    assert_ne!(asked.is(Up, CON, Code::GET).token, token);
    answered.is(Down, ACK, Code::CONTENT);
    assert_eq!((&answered.token, answered.uint(number::OBSERVE)), (&asked.token, None));
    bench.run(10_000);
    let seen = bench.all();
    assert_eq!(seen.len(), 4, "{seen:#?}");
    are_acknowledged(&seen, &token);
    assert!(bench.gone.is_empty());
}
