//! Messages that nobody acknowledges: RFC 7252, section 4.7; RFC 7641, section 4.5.1; CoCoA.

use crate::config::{Limits, Timing};
use std::vec::Vec;

use super::support::*;
use crate::congestion::{Algorithm, CocoaConfig};
use crate::*;

/// A server with `count` observers of one client.
fn observed(config: Config, count: u8) -> (Endpoint<u8>, Vec<ObserverId>) {
    let mut server = plain(config);
    let observers = (0..count)
        .map(|i| {
            let events = received(&mut server, at(0), &[0x41, 1, 0x70, i, i, 0x60]);
            let [Event::Request { id, .. }] = &events[..] else { panic!("{events:?}") };
            let observer = server.accept(at(0), *id).unwrap();
            server.respond(at(0), *id, &Response::content(b"0")).unwrap();
            observer
        })
        .collect();
    sent(&mut server, at(0));
    (server, observers)
}

/// Returns the messages sent until `end`: time, type, payload. Every Confirmable message is acknowledged after `rtt` ms.
fn run(server: &mut Endpoint<u8>, now: u64, end: u64, rtt: u64) -> Vec<(u64, Type, Vec<u8>)> {
    run_on(server, now, end, rtt, &mut Vec::new())
}

/// [`run`] with acknowledgements that are already under way.
fn run_on(
    server: &mut Endpoint<u8>,
    mut now: u64,
    end: u64,
    rtt: u64,
    acknowledgements: &mut Vec<(u64, [u8; 4])>,
) -> Vec<(u64, Type, Vec<u8>)> {
    let mut log = Vec::new();
    loop {
        for datagram in sent(server, at(now)) {
            let message = Message::read(&datagram).unwrap();
            if message.message_type == Type::Confirmable {
                acknowledgements.push((now + rtt, [0x60, 0, datagram[2], datagram[3]]));
            }
            log.push((now, message.message_type, message.payload.to_vec()));
        }
        let timeout = server.poll_timeout().map(|at| at.as_nanos().div_ceil(1_000_000));
        let acknowledgement = acknowledgements.first().map(|(at, _)| *at);
        let Some(next) = timeout.into_iter().chain(acknowledgement).min().filter(|next| *next <= end) else {
            return log;
        };
        now = next;
        if acknowledgement == Some(now) {
            received(server, at(now), &acknowledgements.remove(0).1);
        }
        server.handle_timeout(at(now));
    }
}

fn notify(server: &mut Endpoint<u8>, now: u64, observer: ObserverId, state: &str) {
    server.notify(at(now), observer, &Response::content(state.as_bytes()), false).unwrap();
}

/// RFC 7641, section 4.5.1: no more than one in 3 s if the path was not measured; the newest state is sent.
#[test]
fn notifications_that_come_too_fast_are_replaced_by_the_newest() {
    let (mut server, observers) = observed(Config::default(), 1);
    let mut log = Vec::new();
    for i in 1..=40 {
        let now = i * 100;
        notify(&mut server, now, observers[0], &std::format!("{i}"));
        log.extend(run(&mut server, now, now + 99, 10));
    }
    log.extend(run(&mut server, 4_100, 60_000, 10));
    let log: Vec<_> =
        log.into_iter().map(|(at, _, state)| (at, std::string::String::from_utf8(state).unwrap())).collect();
    assert_eq!(log, [(100, "1".into()), (3_100, "31".into()), (6_100, "40".into())]);
    assert_eq!(server.poll_timeout(), None);
}

/// A Confirmable one does not wait, and replaces a waiting state.
#[test]
fn a_confirmable_notification_goes_at_once() {
    let (mut server, observers) = observed(Config::default(), 1);
    notify(&mut server, 100, observers[0], "1");
    notify(&mut server, 200, observers[0], "2");
    server.notify(at(300), observers[0], &Response::content(b"3"), true).unwrap();
    let log = run(&mut server, 300, 60_000, 10);
    assert_eq!(log, [(300, Type::NonConfirmable, b"1".to_vec()), (300, Type::Confirmable, b"3".to_vec())]);
}

/// PROBING_RATE is always allowed: 1 kB/s, and 13 octets are 13 ms.
#[test]
fn probing_rate_is_always_allowed() {
    let mut config = Config::default();
    config.timing.transmission.probing_rate = 1_000;
    let (mut server, observers) = observed(config, 1);
    notify(&mut server, 100, observers[0], "1");
    notify(&mut server, 101, observers[0], "2");
    let log = run(&mut server, 101, 60_000, 10);
    assert_eq!(log.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [101, 109]);
}

/// Observations of one client share the path to it; the one that has waited longest is first.
#[test]
fn observers_at_one_client_take_turns() {
    let (mut server, observers) = observed(Config::default(), 3);
    for (now, i) in [(0, 0), (1, 2), (2, 1), (3, 2), (4, 0)] {
        notify(&mut server, now, observers[i], &std::format!("{i}{now}"));
    }
    let log = run(&mut server, 4, 60_000, 10);
    let log: Vec<_> =
        log.into_iter().map(|(at, _, state)| (at, std::string::String::from_utf8(state).unwrap())).collect();
    assert_eq!(log, [(4, "00".into()), (3_000, "23".into()), (6_000, "12".into()), (9_000, "04".into())]);
}

/// CoCoA: at least 2 of 16 messages in a row are Confirmable; the others are sent once per RTO.
#[test]
fn cocoa_confirms_one_in_eight_and_sends_one_an_rto() {
    let congestion = Algorithm::Cocoa(CocoaConfig::default());
    let (mut server, observers) =
        observed(Config { timing: Timing { congestion, ..Timing::default() }, ..Config::default() }, 1);
    let (mut log, mut acknowledgements) = (Vec::new(), Vec::new());
    for i in 0..20_000 {
        notify(&mut server, i * 10, observers[0], "x");
        log.extend(run_on(&mut server, i * 10, i * 10 + 9, 100, &mut acknowledgements));
    }
    let types: Vec<_> = log.iter().map(|(_, message_type, _)| *message_type).collect();
    assert!(types.len() > 100, "{}", types.len());
    for sixteen in types.windows(16) {
        assert!(sixteen.iter().filter(|message_type| **message_type == Type::Confirmable).count() >= 2);
    }
    let status = server.peer(at(200_000), &PEER).unwrap();
    assert!(
        status.has_sample
            && status.samples > 10
            && status.srtt == Some(core::time::Duration::from_millis(100))
    );
    // One per RTO: 110 ms in the end, while the resource changes every 10 ms.
    let last: Vec<_> = log.iter().rev().take(7).map(|(at, ..)| *at).collect();
    assert!(last.windows(2).all(|pair| pair[0] - pair[1] >= 100), "{last:?}");
}

/// RFC 7641, section 7: with any algorithm, and whatever the application requests, some are Confirmable; without an
/// answer the observation ends.
#[test]
fn a_client_that_never_acknowledges_is_not_notified_for_ever() {
    let (mut server, observers) = observed(Config::default(), 1);
    let mut types = Vec::new();
    for i in 0..200 {
        let response = Response::content(b"x");
        if server.notify(at(i * 5_000), observers[0], &response, false).is_err() {
            break;
        }
        server.handle_timeout(at(i * 5_000));
        types.extend(sent(&mut server, at(i * 5_000)).iter().map(|datagram| datagram[0] >> 4));
    }
    assert_eq!(types[..32], [[5; 31].as_slice(), &[4]].concat());
    // The Confirmable one six times, for MAX_TRANSMIT_SPAN.
    assert_eq!((types.len(), server.observers()), (37, 0));
}

/// RFC 7252, section 4.7: 1 B/s towards a peer that does not answer; one per RTO towards one that does, as long as it
/// does.
#[test]
fn requests_that_nobody_answers_go_slower() {
    let congestion = Algorithm::Cocoa(CocoaConfig::default());
    let mut client = plain(Config {
        timing: Timing { congestion, ..Timing::default() },
        limits: Limits { max_calls: 100, ..Limits::default() },
        ..Config::default()
    });
    client.request(at(0), PEER, &Request::get("/a")).unwrap();
    assert_eq!(sent(&mut client, at(0)), [b"\x41\x01\x00\x00\x00\xb1a"]);
    received(&mut client, at(100), b"\x61\x45\x00\x00\x00\xffA");
    for _ in 0..10 {
        client.request(at(100), PEER, &Request::get("/a").non_confirmable()).unwrap();
    }
    let times: Vec<_> = run(&mut client, 100, 60_000, 10).iter().map(|(at, ..)| *at).collect();
    // RTO 1.155 s after one strong sample of 100 ms (without dither), seven times; then 7 octets, 7 s.
    let steps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps[..6], [1_150; 6], "{steps:?}");
    assert_eq!(steps[7..], [7_000; 2], "{steps:?}");
}
