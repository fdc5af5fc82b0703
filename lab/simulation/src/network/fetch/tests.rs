//! Expected figures are sums of octets, at 0.4 ms each and 20 ms a packet; those of kernels were also measured with
//! `thinair-lab fetch` and `thinair-lab serve` on Linux 6.18 over `thinair link run --rate 20k --delay 20ms --mtu 128`,
//! within 2 ms.

use super::*;
use thinair_link::preset::{ZIGBEE_20K, ZIGBEE_250K};
use thinair_link::{LossModel, Probability};
use thinair_rohc::{Channel, CidSpace, CompressorConfig, DecompressorConfig, Mode, ProfileId, ProfileSet};

fn zigbee(service: FetchService, octets: usize) -> Fetch {
    Fetch::new(service, octets, ZIGBEE_20K.model, 128)
}

/// Packets, octets of IP, of UDP or TCP and of application headers, and microseconds.
fn figures(fetch: &Fetch) -> (usize, usize, usize, usize, u128) {
    let fetched = fetch.run(1);
    assert_eq!(fetched.octets.object, fetch.octets);
    assert!(fetched.packets.iter().all(|packet| packet.arrived.is_some()));
    let LayerOctets { ip, transport, header, .. } = fetched.octets;
    assert_eq!(fetched.packets.iter().map(|packet| packet.packet.len()).sum::<usize>(), fetched.total());
    assert_eq!(
        fetched.totals.iter().map(|totals| totals.carried_octets).sum::<u64>(),
        fetched.total() as u64
    );
    (fetched.packets.len(), ip, transport, header, fetched.took.unwrap().as_micros())
}

#[test]
fn kernels_take_what_is_measured_and_rfc_7413_allows_less() {
    use ConnectionEnd::{Request, Reset, Response};
    use FetchService::{Coap, CoapDtls, CoapOscore, Http, IotHttp, IotSpdy};
    use TcpInteraction::{Best, Kernel};
    for (service, stack, close, octets, expected) in [
        (Coap, Kernel, Response, 10, (2, 40, 16, 14, 72_000)),
        // Ten fragments.
        (Coap, Kernel, Response, 1_000, (11, 220, 16, 16, 540_800)),
        // 14 octets more in the request, and 11 in the response.
        (CoapOscore, Kernel, Response, 10, (2, 40, 16, 14 + 25, 72_000 + 25 * 400)),
        // A handshake of six datagrams, two of them in two fragments, and 487 octets; 32 octets more in the request, and 29 in the response.
        (
            CoapDtls,
            Kernel,
            Response,
            10,
            (10, 200, 64, 14 + 487 + 61, 72_000 + 61 * 400 + 6 * 20_000 + (487 + 6 * 28 + 2 * 20) * 400),
        ),
        (Http, Kernel, Response, 10, (8, 160, 168, 118, 230_400)),
        (IotHttp, Kernel, Response, 10, (5, 100, 108, 39, 110_800)),
        (IotHttp, Kernel, Reset, 10, (4, 80, 88, 39, 110_800)),
        (IotHttp, Kernel, Response, 1_000, (27, 540, 548, 41, 683_600)),
        (IotHttp, Best, Response, 10, (4, 80, 88, 39, 94_800)),
        (IotHttp, Best, Reset, 10, (3, 60, 68, 39, 94_800)),
        (IotSpdy, Kernel, Response, 10, (6, 120, 128, 123, 200_400)),
        (IotSpdy, Kernel, Request, 10, (5, 100, 108, 123, 200_400)),
        (IotSpdy, Kernel, Response, 1_000, (28, 560, 568, 124, 772_800)),
        (IotSpdy, Best, Response, 10, (4, 80, 88, 123, 128_400)),
        (IotSpdy, Best, Reset, 10, (3, 60, 68, 123, 128_400)),
    ] {
        let fetch = Fetch { stack, close, ..zigbee(service, octets) };
        assert_eq!(figures(&fetch), expected, "{service:?} {stack:?} {close:?} {octets}");
    }
}

/// Six packets with 120 octets of IP and 148 of TCP, as in the table of 2014: no timestamps, no SACK, a cookie, and a
/// SYN-ACK with a separate acknowledgment.
#[test]
fn the_published_headers_of_iot_http_come_out() {
    let options = TcpOptions { window_scaling: true, cookie: Some(8), ..TcpOptions::LEAN };
    let fetch = Fetch { options, holds: false, ..zigbee(FetchService::IotHttp, 10) };
    assert_eq!(figures(&fetch), (6, 120, 148, 39, 118_800));
    let lean = Fetch { options: TcpOptions::LEAN, ..fetch };
    assert_eq!(figures(&lean), (6, 120, 128, 39, 110_800));
}

/// Defaults of Linux, with only the sysctl of Fast Open set.
#[test]
fn options_of_kernels_are_paid_for() {
    let fetch = Fetch { options: TcpOptions::DEFAULT, ..zigbee(FetchService::IotHttp, 10) };
    let (packets, ip, transport, header, _) = figures(&fetch);
    // SYN: MSS, SACK and timestamps, window scale, cookie; SYN-ACK: these without a cookie; then 12 octets each.
    assert_eq!((packets, ip, transport, header), (5, 100, (20 + 32) + (20 + 20) + 3 * 32, 39));
    let cookieless = TcpOptions { cookie: None, ..TcpOptions::DEFAULT };
    assert_eq!(figures(&Fetch { options: cookieless, ..fetch }).2, transport - 12);
}

#[test]
fn what_rides_in_the_syn_and_in_its_answer() {
    let sent = |stack| {
        let fetched = Fetch { stack, ..zigbee(FetchService::IotSpdy, 10) }.run(1);
        fetched.packets.iter().map(|packet| (packet.from, packet.octets.header)).collect::<Vec<_>>()
    };
    let kernel = [(Side::A, 48), (Side::B, 0), (Side::A, 35), (Side::B, 50), (Side::A, 0), (Side::B, 0)];
    assert_eq!(sent(TcpInteraction::Kernel), kernel);
    assert_eq!(sent(TcpInteraction::Best), [(Side::A, 83), (Side::B, 50), (Side::A, 0), (Side::B, 0)]);
    // The shortest host name leaves room for a cookie, too.
    let options = TcpOptions { cookie: Some(8), ..TcpOptions::LEAN };
    let named = Fetch {
        host: "a".to_owned(),
        stack: TcpInteraction::Best,
        options,
        ..zigbee(FetchService::IotSpdy, 10)
    };
    assert_eq!(named.run(1).packets[0].octets.header, 71);
}

#[test]
fn a_faster_link_with_larger_packets() {
    for (service, packets) in
        [(FetchService::Coap, 2), (FetchService::IotHttp, 5), (FetchService::IotSpdy, 5)]
    {
        let fetch = Fetch::new(service, 1_000, ZIGBEE_250K.model, 1_280);
        assert_eq!(figures(&fetch).0, packets, "{service:?}");
    }
}

fn rohc(mode: Mode) -> RohcChannel {
    let profiles = ProfileSet::v1().with(ProfileId::Tcp).unwrap().with(ProfileId::Coap).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    RohcChannel {
        compressor: CompressorConfig::new(channel),
        decompressor: DecompressorConfig { mode, ..DecompressorConfig::new(channel) },
        bases: Vec::new(),
        feedback_wait: Duration::from_millis(10),
        ends: None,
    }
}

const SERVICES: [FetchService; 4] =
    [FetchService::Coap, FetchService::Http, FetchService::IotHttp, FetchService::IotSpdy];

/// Headers of UDP and TCP are compressed, and the object is unchanged.
#[test]
fn compressed_packets_bring_the_same_object() {
    let rohc = rohc(Mode::Unidirectional);
    for service in [FetchService::Coap, FetchService::IotHttp, FetchService::IotSpdy] {
        let plain = zigbee(service, 200).run(1);
        let fetched = Fetch { rohc: Some(rohc.clone()), ..zigbee(service, 200) }.run(1);
        assert_eq!(fetched.octets, plain.octets, "{service:?}");
        assert!(fetched.took.is_some());
        let carried =
            |fetched: &Fetched| fetched.totals.iter().map(|totals| totals.carried_octets).sum::<u64>();
        assert!(carried(&fetched) != carried(&plain), "{service:?}");
    }
}

/// After losses the object arrives or nothing does; and equal seeds give equal packets.
#[test]
fn losses_are_repaired_or_told() {
    let mut came = 0;
    for seed in 0..20 {
        for service in [FetchService::Coap, FetchService::Http, FetchService::IotHttp, FetchService::IotSpdy]
        {
            let mut fetch = zigbee(service, 300);
            let lost = Probability::from_percent(10).unwrap();
            fetch.model.a_to_b.loss = LossModel::Random(lost);
            fetch.model.b_to_a.loss = LossModel::Random(lost);
            let fetched = fetch.run(seed);
            assert_eq!(fetched, fetch.run(seed));
            came += usize::from(fetched.took.is_some());
        }
    }
    assert!(came > 70, "{came}");
}

/// One client of a crowd behaves like a single one; of many that share a short queue, some wait for a retransmission.
#[test]
fn a_crowd_shares_the_link() {
    for service in [FetchService::Coap, FetchService::IotHttp, FetchService::IotSpdy] {
        let mut fetch = zigbee(service, 10);
        let alone = fetch.run(1).took.unwrap();
        assert_eq!(fetch.crowd(1, Duration::from_secs(1), 3), [Some(alone)], "{service:?}");
        fetch.model.a_to_b.queue = thinair_link::Queue::packets(5);
        fetch.model.b_to_a.queue = thinair_link::Queue::packets(5);
        let crowd = fetch.crowd(40, Duration::from_millis(100), 3);
        assert_eq!(crowd, fetch.crowd(40, Duration::from_millis(100), 3));
        let longest = crowd.iter().flatten().max().unwrap();
        assert!(*longest > Duration::from_secs(1) && crowd.len() == 40, "{service:?}: {longest:?}");
    }
}

const ONE_AFTER_THE_OTHER: Rounds =
    Rounds { clients: 1, rounds: 24, spread: Duration::ZERO, pause: Duration::from_secs(1) };

/// Without ROHC all rounds are equal, and equal to a single fetch.
#[test]
fn rounds_are_alike_where_nothing_is_learned() {
    for service in SERVICES {
        let fetch = zigbee(service, 10);
        let alone = fetch.run(1);
        let rounds = fetch.rounds(&ONE_AFTER_THE_OTHER, 1);
        assert_eq!(rounds.len(), 24);
        for round in &rounds {
            assert_eq!(round.took, [alone.took], "{service:?}");
            assert_eq!(round.carried.packets, alone.packets.len() as u64, "{service:?}");
            assert_eq!(round.carried.octets, alone.total() as u64, "{service:?}");
        }
    }
}

/// Contexts of a round are established in the next one, which saves octets and time.
#[test]
fn what_rohc_learns_of_a_round_helps_the_next() {
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for service in SERVICES {
            let plain = zigbee(service, 10);
            let alone = plain.run(1);
            let rounds = Fetch { rohc: Some(rohc(mode)), ..plain }.rounds(&ONE_AFTER_THE_OTHER, 1);
            let [first, .., last] = rounds.as_slice() else { panic!() };
            // Without feedback, connections share no state (RFC 6846, section 5.1.1).
            if mode == Mode::Optimistic || service == FetchService::Coap {
                assert!(last.carried.octets < first.carried.octets, "{service:?}");
            }
            assert!(last.carried.octets < alone.total() as u64, "{service:?}");
            assert!(last.took[0].unwrap() < alone.took.unwrap(), "{service:?}");
        }
    }
}

/// Every packet that ROHC delivers is compared with the sent one: bursts and bit errors lose packets, but change none.
#[test]
fn no_packet_is_altered_by_rohc_on_a_bad_link() {
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for service in SERVICES {
            let mut fetch = Fetch { rohc: Some(rohc(mode)), ..zigbee(service, 300) };
            fetch.model.a_to_b.loss = LossModel::Random(Probability::from_percent(10).unwrap());
            fetch.model.b_to_a.loss = fetch.model.a_to_b.loss;
            let rounds = fetch.rounds(&ONE_AFTER_THE_OTHER, 2);
            assert_eq!(rounds, fetch.rounds(&ONE_AFTER_THE_OTHER, 2));
            let sum = rounds.iter().fold(LinkLoad::default(), |sum, round| sum + round.carried);
            assert!(sum.delivered > 0 && sum.delivered < sum.packets, "{service:?}");
            assert_eq!(sum.altered, 0, "{service:?}");
            let came = rounds.iter().filter(|round| round.took[0].is_some()).count();
            assert!(came >= 23, "{service:?}: {came}");
        }
    }
}

/// Fragments of a retransmitted response do not fit those of the first one. RFC 6864, section 4.
#[test]
fn fragments_of_two_packets_are_not_put_together() {
    let fetched = zigbee(FetchService::Coap, 1_000).rounds(&Rounds { rounds: 2, ..ONE_AFTER_THE_OTHER }, 1);
    assert_eq!(fetched.len(), 2);
    let mut lossy = zigbee(FetchService::Coap, 1_000);
    lossy.model.b_to_a.loss = LossModel::Random(Probability::from_percent(30).unwrap());
    let run = lossy.run(5);
    let of_server = run.packets.iter().filter(|packet| packet.from == Side::B);
    let mut heads: Vec<[u8; 4]> = of_server
        .map(|packet| [packet.packet[4], packet.packet[5], packet.packet[6] & 0x1F, packet.packet[7]])
        .collect();
    let sent = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert!(sent > 10, "{sent}");
    assert_eq!(heads.len(), sent);
}

/// The second object needs no handshake: a request, a response, and its acknowledgment.
#[test]
fn a_connection_that_stays_is_paid_for_once() {
    let headers = 3 * 40;
    for (service, request, response) in [
        // Length, code, a Token of one octet, Uri-Path; and a payload marker. RFC 8323, section 3.2.
        (FetchService::CoapTcp, 1 + 1 + 1 + 3, 1 + 1 + 1 + 1),
        (FetchService::Http, 18 + 21 + 2, 17 + 20 + 2),
        // Both frames with their headers and references to previous blocks, and the header of DATA.
        (FetchService::IotSpdy, 18 + 4, 12 + 3 + 8),
    ] {
        let fetch = Fetch { close: ConnectionEnd::Never, ..zigbee(service, 10) };
        let rounds = fetch.rounds(&Rounds { rounds: 4, ..ONE_AFTER_THE_OTHER }, 1);
        let [first, next, ..] = rounds.as_slice() else { panic!() };
        let octets = headers + request + response + 10;
        assert_eq!((next.carried.packets, next.carried.ip_octets), (3, octets), "{service:?}");
        assert!(first.carried.packets >= 5 && first.carried.ip_octets > octets + 80, "{service:?}");
        assert!(rounds[3].took <= next.took, "{service:?}");
        // Each octet takes 0.4 ms, and each direction 20 ms.
        let micros = 400 * (2 * 40 + request + response + 10) + 40_000;
        assert_eq!(u128::from(micros), next.took[0].unwrap().as_micros(), "{service:?}");
        // The handshake is part of the first.
        let handshake = if service == FetchService::IotSpdy { 40 } else { 70 };
        let more = first.took[0].unwrap() - next.took[0].unwrap();
        assert!(more > Duration::from_millis(handshake), "{service:?}: {more:?}");
    }
    // The connection ends with the object.
    let fetch = Fetch { close: ConnectionEnd::Never, ..zigbee(FetchService::IotHttp, 10) };
    assert_eq!(fetch.rounds(&ONE_AFTER_THE_OTHER, 1)[0].took, [None]);
}

#[test]
fn fewer_acknowledgments_are_fewer_packets() {
    let plain = zigbee(FetchService::IotHttp, 1_000);
    let thinned = Fetch { thins: true, ..plain.clone() };
    assert!(figures(&thinned).0 < figures(&plain).0);
}
