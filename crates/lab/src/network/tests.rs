use core::time::Duration;

use thinair_coap::congestion::{Algorithm, Transmission};
use thinair_coap::{Config, Request, Response};
use thinair_link::preset::by_name;
use thinair_link::{Airtime, Direction, LinkModel, LossModel, Probability, Rate};

use super::*;
use crate::{Purpose, Streams, tcp};

enum Party {
    Client(CoapClient),
    Server(CoapServer),
    Download(Download),
}

impl Party {
    fn host(&self) -> &dyn Host {
        match self {
            Self::Client(host) => host,
            Self::Server(host) => host,
            Self::Download(host) => host,
        }
    }

    fn host_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Client(host) => host,
            Self::Server(host) => host,
            Self::Download(host) => host,
        }
    }
}

impl Host for Party {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.host_mut().handle_packet(now, packet);
    }
    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.host_mut().poll_packet(now, packet)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.host().poll_timeout()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.host_mut().handle_timeout(now);
    }
}

fn network(model: &LinkModel<'static>, transport: Transport, seed: u64, nstart: u16) -> Network<Party> {
    let streams = Streams::new(seed);
    let mut network = Network::new(model, seed, None);
    let server = Socket { address: Address::new(Side::B, 0), port: 5_683 };
    let client = Socket { address: Address::new(Side::A, 0), port: 40_000 };
    let transmission = Transmission { nstart, ..Transmission::default() };
    let config = Config { transmission, congestion: Algorithm::Rfc7252, ..Config::default() };
    let requests = Requests {
        request: Request::get("/tmp"),
        count: 100,
        start: Instant::from_millis(2_000),
        pace: Pace::Open { interval: Duration::from_micros(100_700) },
    };
    let choices = |node| streams.stream(0, node, Purpose::Choice);
    let tcp = match transport {
        Transport::Tcp(tcp) => tcp,
        Transport::Udp { .. } => tcp::Config::default(),
    };
    let response = Response::content(&[b'x'; 23][..]).format(0);
    network.add(server.address, Party::Server(CoapServer::new(server, 0, tcp, config, response, choices(1))));
    network.add(
        client.address,
        Party::Client(CoapClient::new(client, server, transport, config, requests, choices(2))),
    );
    network
}

fn client(network: &Network<Party>) -> &CoapClient {
    network
        .hosts()
        .find_map(|host| if let Party::Client(client) = host { Some(client) } else { None })
        .unwrap()
}

fn run(network: &mut Network<Party>) -> Vec<Duration> {
    network.run_until(Instant::from_millis(600_000), |_| false);
    client(network).exchanges().iter().filter_map(Exchange::took).collect()
}

fn link(bps: u64, delay: Duration) -> LinkModel<'static> {
    let direction = Direction { airtime: Airtime::Rate(Rate::from_bps(bps).unwrap()), delay, ..Direction::IDEAL };
    LinkModel { a_to_b: direction, b_to_a: direction, ..LinkModel::default() }
}

/// 37 and 58 octets, each way 50 ms: the times of a calculation by hand.
#[test]
fn an_exchange_takes_what_the_link_says() {
    let mut network =
        network(&link(8_000, Duration::from_millis(50)), Transport::Udp { protection: 0 }, 1, 50);
    let took = run(&mut network);
    assert_eq!(took, [Duration::from_millis(37 + 50 + 58 + 50); 100]);
    assert_eq!(network.totals(Side::A).octets, 3_700);
    assert_eq!(network.totals(Side::B).octets, 5_800);
    assert_eq!(client(&network).counters().retransmissions, 0);
}

#[test]
fn lost_messages_are_sent_again_and_every_exchange_ends() {
    let loss = LossModel::Random(Probability::from_percent(20).unwrap());
    let mut model = link(80_000, Duration::from_millis(20));
    model.b_to_a.loss = loss;
    let mut network = network(&model, Transport::Udp { protection: 0 }, 5, 50);
    let took = run(&mut network);
    assert_eq!(took.len(), 100);
    let again = client(&network).counters().retransmissions;
    assert!((10..45).contains(&again), "{again}");
}

/// Over a stream, Nagle's algorithm gathers requests while the first is not acknowledged.
#[test]
fn coap_over_tcp_waits_for_acknowledgments_unless_it_is_told_not_to() {
    let mean = |nagle| {
        let tcp = tcp::Config { nagle, ..tcp::Config::default() };
        let mut network = network(&link(20_000, Duration::from_millis(72)), Transport::Tcp(tcp), 1, 50);
        let took = run(&mut network);
        assert_eq!(took.len(), 100);
        took.iter().sum::<Duration>() / 100
    };
    let (held, free) = (mean(tcp::Nagle::Minshall), mean(tcp::Nagle::Off));
    assert!(free > Duration::from_millis(180) && free < Duration::from_millis(230), "{free:?}");
    assert!(held > free + Duration::from_millis(40), "{held:?}");
}

#[test]
fn a_download_fills_the_link_and_delays_everybody() {
    let preset = by_name("gprs").unwrap();
    let mut network = network(&preset.model, Transport::Udp { protection: 0 }, 3, 100);
    let [receiver, sender] =
        [Side::A, Side::B].map(|side| Socket { address: Address::new(side, 9), port: 20 });
    let config = tcp::Config { window: Some(4), ..tcp::Config::default() };
    network
        .add(receiver.address, Party::Download(Download::receiver(receiver, sender, config, Instant::ZERO)));
    network.add(sender.address, Party::Download(Download::sender(sender, receiver, config, 1 << 40)));
    network.run_until(Instant::from_millis(13_000), |_| false);
    let took: Vec<_> = client(&network).exchanges().iter().filter_map(Exchange::took).collect();
    assert!(took.len() >= 80, "{}", took.len());
    let mean = took.iter().sum::<Duration>() / took.len() as u32;
    assert!(mean > Duration::from_millis(900) && mean < Duration::from_millis(1_500), "{mean:?}");
}

#[test]
fn a_seed_determines_everything() {
    let preset = by_name("gprs").unwrap();
    let once = |seed| {
        let mut network = network(&preset.model, Transport::Udp { protection: 0 }, seed, 50);
        (run(&mut network), network.events())
    };
    assert_eq!(once(1), once(1));
    assert_ne!(once(1).0, once(2).0);
}
