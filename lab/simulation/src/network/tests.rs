use core::time::Duration;

use thinair_coap::congestion::{Algorithm, Transmission};
use thinair_coap::{Config, Request, Timing};
use thinair_link::preset::by_name;
use thinair_link::{Airtime, Direction, LinkModel, LossModel, Probability, Rate};

use super::*;
use crate::tcp;

fn scenario(model: &LinkModel<'static>, transport: MessageTransport, nstart: u16) -> Scenario {
    let transmission = Transmission { nstart, ..Transmission::default() };
    Scenario {
        model: *model,
        rohc: None,
        clients: 1,
        transport,
        config: Config {
            timing: Timing { transmission, congestion: Algorithm::Rfc7252, ..Timing::default() },
            ..Config::default()
        },
        requests: Requests {
            request: Request::get("/tmp"),
            count: 100,
            start: Instant::from_millis(2_000),
            pace: RequestPace::Open { interval: Duration::from_micros(100_700) },
        },
        spread: Duration::ZERO,
        content: 23,
        stepping: false,
        download: None,
        download_octets: None,
        warm_up: 0,
        pause: None,
        end: Instant::from_millis(600_000),
    }
}

const UDP: MessageTransport = MessageTransport::Udp { protection: 0 };

fn link(bps: u64, delay: Duration) -> LinkModel<'static> {
    let airtime = Airtime::Rate(Rate::from_bps(bps).unwrap());
    let direction = Direction { airtime, delay, ..Direction::IDEAL };
    LinkModel { a_to_b: direction, b_to_a: direction, ..LinkModel::default() }
}

/// 37 and 58 octets, 50 ms one-way delay: times computed by hand.
#[test]
fn an_exchange_takes_what_the_link_says() {
    let outcome = scenario(&link(8_000, Duration::from_millis(50)), UDP, 50).run(1, 0);
    let client = &outcome.clients[0];
    assert_eq!(client.took().collect::<Vec<_>>(), [Duration::from_millis(37 + 50 + 58 + 50); 100]);
    assert_eq!([outcome.totals[0].octets, outcome.totals[1].octets], [3_700, 5_800]);
    assert_eq!(client.retransmissions, 0);
    assert_eq!(client.completed_after(), Some(Duration::from_micros(99 * 100_700 + 195_000)));
}

/// Messages of the endpoint, with 13 octets and the kid more in a request, and 11 in a response: RFC 8613, section 6.3.
#[test]
fn messages_of_many_clients_are_protected() {
    let outcome = scenario(&link(8_000, Duration::from_millis(50)), MessageTransport::Oscore, 50).run(1, 0);
    assert_eq!(outcome.clients[0].took().count(), 100);
    assert_eq!([outcome.totals[0].octets, outcome.totals[1].octets], [100 * (37 + 14), 100 * (58 + 11)]);
    // The kid of the later ones has two octets.
    let base = scenario(&link(8_000_000, Duration::from_millis(50)), MessageTransport::Oscore, 1);
    let requests = Requests { count: 1, ..base.requests.clone() };
    let outcome = Scenario { clients: 300, requests, ..base }.run(1, 0);
    assert_eq!(outcome.clients.iter().map(|client| client.took().count()).sum::<usize>(), 300);
    assert_eq!(outcome.totals[0].octets, 256 * (37 + 14) + 44 * (37 + 15));
}

/// A handshake of 270 and 217 octets in three datagrams each way, and sessions that add 32 octets to a request, and 29 to a response.
#[test]
fn messages_of_clients_are_in_sessions() {
    let outcome = scenario(&link(8_000, Duration::from_millis(50)), MessageTransport::Dtls, 50).run(1, 0);
    assert_eq!(outcome.clients[0].took().count(), 100);
    let handshake = [270 + 3 * 28, 217 + 3 * 28];
    let octets = [handshake[0] + 100 * (37 + 32), handshake[1] + 100 * (58 + 29)];
    assert_eq!(outcome.totals.map(|totals| totals.octets), octets);
    // Losses of both directions delay sessions, and prevent none.
    let mut model = link(800_000, Duration::from_millis(20));
    for direction in [&mut model.a_to_b, &mut model.b_to_a] {
        direction.loss = LossModel::Random(Probability::from_percent(20).unwrap());
    }
    let base = scenario(&model, MessageTransport::Dtls, 1);
    let requests =
        Requests { count: 5, pace: RequestPace::Closed { think: Duration::ZERO }, ..base.requests.clone() };
    let outcome = Scenario { clients: 20, requests, ..base }.run(5, 0);
    assert!(outcome.clients.iter().all(|client| client.exchanges.len() == 5));
    assert!(outcome.clients.iter().map(|client| client.took().count()).sum::<usize>() > 90);
}

/// Packets that are sent in a pause are lost, and those that would arrive in it; the next behind it is not.
#[test]
fn a_pause_loses_what_is_under_way() {
    let mut paused = scenario(&link(8_000, Duration::from_millis(50)), UDP, 1);
    paused.requests.count = 1;
    let took = |from, length| {
        let pause = Some((Instant::from_millis(from), Duration::from_millis(length)));
        let client = Scenario { pause, ..paused.clone() }.run(1, 0).clients.remove(0);
        (client.took().next(), client.retransmissions)
    };
    let unharmed = Duration::from_millis(195);
    // The request arrives at 2,087 ms, its response at 2,195 ms.
    assert_eq!(took(2_195, 60_000).0, None);
    assert_eq!(took(2_196, 60_000), (Some(unharmed), 0));
    for (from, length) in [(2_000, 1), (2_087, 1), (2_195, 1), (1_000, 1_001)] {
        let (took, retransmissions) = took(from, length);
        assert!(took.is_some_and(|took| took > Duration::from_secs(2)), "{from} {took:?}");
        assert_eq!(retransmissions, 1, "{from}");
    }
    assert_eq!(took(2_001, 80), (Some(unharmed), 0), "nothing is sent or arrives then");
}

#[test]
fn lost_messages_are_sent_again_and_every_exchange_ends() {
    let mut model = link(80_000, Duration::from_millis(20));
    model.b_to_a.loss = LossModel::Random(Probability::from_percent(20).unwrap());
    let outcome = scenario(&model, UDP, 50).run(5, 0);
    let client = &outcome.clients[0];
    assert_eq!(client.took().count(), 100);
    assert!((10..45).contains(&client.retransmissions), "{}", client.retransmissions);
}

/// Over a stream, Nagle's algorithm gathers requests while the first is not acknowledged.
#[test]
fn coap_over_tcp_waits_for_acknowledgments_unless_it_is_told_not_to() {
    let mean = |nagle| {
        let tcp = tcp::TcpConfig { nagle, ..tcp::TcpConfig::default() };
        let outcome =
            scenario(&link(20_000, Duration::from_millis(72)), MessageTransport::Tcp(tcp), 50).run(1, 0);
        assert_eq!(outcome.clients[0].took().count(), 100);
        outcome.clients[0].mean().unwrap()
    };
    let (held, free) = (mean(tcp::Nagle::Minshall), mean(tcp::Nagle::Off));
    assert!(free > Duration::from_millis(180) && free < Duration::from_millis(230), "{free:?}");
    assert!(held > free + Duration::from_millis(40), "{held:?}");
}

#[test]
fn a_download_fills_the_link_and_delays_everybody() {
    let preset = by_name("gprs").unwrap();
    let config = tcp::TcpConfig { window: Some(4), ..tcp::TcpConfig::default() };
    let outcome = Scenario { download: Some(config), ..scenario(&preset.model, UDP, 100) }.run(3, 0);
    let mean = outcome.clients[0].mean().unwrap();
    assert!(mean > Duration::from_millis(900) && mean < Duration::from_millis(1_500), "{mean:?}");
    let seconds = outcome.ended.since(Instant::ZERO).as_secs_f64();
    assert!(outcome.downloaded as f64 / seconds > 0.8 * 5_000.0, "{}", outcome.downloaded);
}

#[test]
fn clients_share_the_link_and_what_they_learned_is_kept() {
    let base = scenario(&by_name("gprs").unwrap().model, UDP, 1);
    let requests =
        Requests { count: 10, pace: RequestPace::Closed { think: Duration::ZERO }, ..base.requests.clone() };
    let shared = Scenario { clients: 20, requests, spread: Duration::from_secs(1), ..base };
    let outcome = shared.run(1, 0);
    assert_eq!(outcome.clients.iter().map(|client| client.took().count()).sum::<usize>(), 200);
    assert_ne!(outcome.clients[0].exchanges[0].made, outcome.clients[1].exchanges[0].made);
    let warm = Scenario { warm_up: 2, ..shared }.run(1, 0);
    assert_eq!(warm.clients.iter().map(|client| client.took().count()).sum::<usize>(), 200);
    assert!(warm.totals[0].packets >= 3 * 200);
}

#[test]
fn a_seed_and_a_run_determine_everything() {
    let scenario = scenario(&by_name("gprs").unwrap().model, UDP, 50);
    assert_eq!(scenario.run(1, 0), scenario.run(1, 0));
    assert_ne!(scenario.run(1, 0), scenario.run(2, 0));
    assert_ne!(scenario.run(1, 0), scenario.run(1, 1));
}
