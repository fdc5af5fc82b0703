//! State of peers, and its lifetime.

use crate::config::{Limits, Timing};
use core::time::Duration;

use super::support::*;
use crate::congestion::{Algorithm, FasorConfig};
use crate::*;

fn exchange(client: &mut Endpoint<u8>, millis: u64, peer: u8) {
    client.request(at(millis), peer, &Request::get("/a")).unwrap();
    let request = sent(client, at(millis)).pop().unwrap();
    let response = [0x61, 0x45, request[2], request[3], request[4], 0xFF, 1];
    assert!(client.handle_datagram(at(millis + 100), peer, &response).is_some());
}

/// Measurements survive a flood of peers without measurements; after 255 s they make room.
#[test]
fn what_was_measured_is_kept_for_255_s() {
    let congestion = Algorithm::Fasor(FasorConfig::default());
    let mut client = plain(Config {
        timing: Timing { congestion, ..Timing::default() },
        limits: Limits { max_peers: 4, ..Limits::default() },
        ..Config::default()
    });
    exchange(&mut client, 0, 1);
    exchange(&mut client, 1_000, 2);
    let flood = |client: &mut Endpoint<u8>, millis: u64| {
        for peer in 100..200 {
            client.handle_datagram(at(millis), peer, b"\x50\x00\x00\x00");
            assert!(client.peers() <= 4);
        }
    };
    let known =
        |client: &Endpoint<u8>, millis, peer| client.peer(at(millis), &peer).map(|status| status.samples);
    flood(&mut client, 255_099);
    assert_eq!((known(&client, 255_099, 1), known(&client, 255_099, 2)), (Some(1), Some(1)));
    flood(&mut client, 255_100);
    assert_eq!((known(&client, 255_100, 1), known(&client, 255_100, 2)), (None, Some(1)));
    // If all of them are measured, the least recently active one is dropped.
    for (i, peer) in [3, 4, 5].into_iter().enumerate() {
        exchange(&mut client, 255_200 + i as u64 * 200, peer);
    }
    exchange(&mut client, 255_900, 6);
    assert_eq!(
        [2, 3, 4, 5, 6].map(|peer| known(&client, 256_100, peer)),
        [None, Some(1), Some(1), Some(1), Some(1)]
    );
    exchange(&mut client, 256_200, 7);
    assert_eq!(
        [3, 4, 5, 6, 7].map(|peer| known(&client, 256_400, peer)),
        [None, Some(1), Some(1), Some(1), Some(1)]
    );
}

#[test]
fn the_state_of_a_path_can_be_seen_and_set() {
    let mut client = plain(Config::default());
    assert_eq!(client.peer(at(0), &PEER), None);
    let transmission = congestion::Transmission { nstart: 3, ..Default::default() };
    assert!(client.set_peer(PEER, transmission, &Algorithm::Fasor(FasorConfig::default())));
    exchange(&mut client, 0, PEER);
    for _ in 0..5 {
        client.request(at(200), PEER, &Request::get("/b")).unwrap();
    }
    client.handle_timeout(at(375));
    let status = client.peer(at(375), &PEER).unwrap();
    assert_eq!(
        (status.rto, status.srtt, status.samples),
        (Duration::from_millis(150), Some(Duration::from_millis(100)), 1)
    );
    assert_eq!((status.in_flight, status.waiting, status.retransmissions), (3, 2, 3));
    assert_eq!((status.transmission, status.has_sample), (transmission, true));
}

/// draft-ietf-core-fasor-02, section 4.5: the last octet of the Token counts.
#[test]
fn a_count_in_the_token_identifies_which_transmission_was_answered() {
    let fasor = FasorConfig { count_in_token: true, ..FasorConfig::default() };
    let mut client = plain(Config {
        timing: Timing { congestion: Algorithm::Fasor(fasor), ..Timing::default() },
        ..Config::default()
    });
    let call = client.request(at(0), PEER, &Request::get("/a")).unwrap();
    let mut tokens = std::vec![];
    for millis in [0, 2_167, 6_501] {
        client.handle_timeout(at(millis));
        for datagram in sent(&mut client, at(millis)) {
            assert_eq!(datagram[2..4], [0, 0]);
            tokens.push(Message::read(&datagram).unwrap().token.octets().to_vec());
        }
    }
    assert_eq!(tokens, [[0, 0], [0, 1], [0, 2]]);
    // Another Message ID, another call, a transmission that did not happen: no sample.
    for wrong in [b"\x62\x45\x00\x01\x00\x01\xffA", b"\x62\x45\x00\x00\x01\x01\xffA"] {
        assert!(received(&mut client, at(6_581), wrong).is_empty());
    }
    let events = received(&mut client, at(6_601), b"\x62\x45\x00\x00\x00\x02\xffA");
    assert!(
        matches!(&events[..], [Event::Response { call: answered, .. }] if *answered == call),
        "{events:?}"
    );
    // The retransmission was sent when the timer was processed: 6,501 ms.
    let status = client.peer(at(6_601), &PEER).unwrap();
    assert_eq!(status.srtt, Some(Duration::from_millis(100)));
    // An observation keeps its Token.
    client.request(at(7_000), PEER, &Request::get("/a").observe()).unwrap();
    let first = sent(&mut client, at(7_000));
    client.handle_timeout(client.poll_timeout().unwrap());
    assert_eq!(sent(&mut client, at(9_000)), first);
}

/// RFC 7252, section 4.5: a duplicate is one even if the state of its peer was dropped for others meanwhile.
#[test]
fn a_duplicate_is_recognized_after_its_peer_was_dropped() {
    let mut server =
        plain(Config { limits: Limits { max_peers: 2, ..Limits::default() }, ..Config::default() });
    let post = b"\x40\x02\x00\x01\xb1a";
    let Some(Event::Request { id, .. }) = server.handle_datagram(at(0), 1, post) else { panic!() };
    server.respond(at(0), id, &Response::new(Code::CHANGED)).unwrap();
    let answer = sent(&mut server, at(0));
    for peer in 2..10 {
        let Some(Event::Request { id, .. }) = server.handle_datagram(at(1), peer, post) else { panic!() };
        server.respond(at(1), id, &Response::new(Code::CHANGED)).unwrap();
        sent(&mut server, at(1));
    }
    assert!(server.peer(at(2), &1).is_none());
    assert!(server.handle_datagram(at(2), 1, post).is_none());
    assert_eq!((sent(&mut server, at(2)), server.counters().duplicates), (answer, 1));
}
