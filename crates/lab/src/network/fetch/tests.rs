//! Expected figures are sums of octets, at 0.4 ms each and 20 ms a packet; those of kernels are also what `thinair fetch` and
//! `thinair serve` take on Linux 6.18 over `thinair link run --rate 20k --delay 20ms --mtu 128`, within 2 ms.

use super::*;
use thinair_link::preset::{ZIGBEE_20K, ZIGBEE_250K};
use thinair_link::{LossModel, Probability};
use thinair_rohc::{Channel, CidSpace, CompressorConfig, DecompressorConfig, ProfileId, ProfileSet};

fn zigbee(service: Service, octets: usize) -> Fetch {
    Fetch::new(service, octets, ZIGBEE_20K.model, 128)
}

/// Packets, octets of IP, of UDP or TCP and of application headers, and microseconds.
fn figures(fetch: &Fetch) -> (usize, usize, usize, usize, u128) {
    let fetched = fetch.run(1);
    assert_eq!(fetched.octets.object, fetch.octets);
    assert!(fetched.packets.iter().all(|packet| packet.arrived.is_some()));
    let Octets { ip, transport, header, .. } = fetched.octets;
    assert_eq!(fetched.packets.iter().map(|packet| packet.packet.len()).sum::<usize>(), fetched.total());
    assert_eq!(
        fetched.totals.iter().map(|totals| totals.carried_octets).sum::<u64>(),
        fetched.total() as u64
    );
    (fetched.packets.len(), ip, transport, header, fetched.took.unwrap().as_micros())
}

#[test]
fn kernels_take_what_is_measured_and_rfc_7413_allows_less() {
    use Close::{Request, Reset, Response};
    use Service::{Coap, Http, IotHttp, IotSpdy};
    use Stack::{Best, Kernel};
    for (service, stack, close, octets, expected) in [
        (Coap, Kernel, Response, 10, (2, 40, 16, 14, 72_000)),
        // Ten fragments.
        (Coap, Kernel, Response, 1_000, (11, 220, 16, 16, 540_800)),
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
/// SYN-ACK that is acknowledged by itself.
#[test]
fn the_published_headers_of_iot_http_come_out() {
    let options = TcpOptions { window_scaling: true, cookie: Some(8), ..TcpOptions::LEAN };
    let fetch = Fetch { options, holds: false, ..zigbee(Service::IotHttp, 10) };
    assert_eq!(figures(&fetch), (6, 120, 148, 39, 118_800));
    let lean = Fetch { options: TcpOptions::LEAN, ..fetch };
    assert_eq!(figures(&lean), (6, 120, 128, 39, 110_800));
}

/// As on Linux without any sysctl but that of Fast Open.
#[test]
fn options_of_kernels_are_paid_for() {
    let fetch = Fetch { options: TcpOptions::DEFAULT, ..zigbee(Service::IotHttp, 10) };
    let (packets, ip, transport, header, _) = figures(&fetch);
    // SYN: MSS, SACK and timestamps, window scale, cookie; SYN-ACK: the same without a cookie; then 12 octets each.
    assert_eq!((packets, ip, transport, header), (5, 100, (20 + 32) + (20 + 20) + 3 * 32, 39));
    let cookieless = TcpOptions { cookie: None, ..TcpOptions::DEFAULT };
    assert_eq!(figures(&Fetch { options: cookieless, ..fetch }).2, transport - 12);
}

#[test]
fn what_rides_in_the_syn_and_in_its_answer() {
    let sent = |stack| {
        let fetched = Fetch { stack, ..zigbee(Service::IotSpdy, 10) }.run(1);
        fetched.packets.iter().map(|packet| (packet.from, packet.octets.header)).collect::<Vec<_>>()
    };
    let kernel = [(Side::A, 48), (Side::B, 0), (Side::A, 35), (Side::B, 50), (Side::A, 0), (Side::B, 0)];
    assert_eq!(sent(Stack::Kernel), kernel);
    assert_eq!(sent(Stack::Best), [(Side::A, 83), (Side::B, 50), (Side::A, 0), (Side::B, 0)]);
    // The shortest host there is leaves room for a cookie, too.
    let options = TcpOptions { cookie: Some(8), ..TcpOptions::LEAN };
    let named = Fetch { host: "a".to_owned(), stack: Stack::Best, options, ..zigbee(Service::IotSpdy, 10) };
    assert_eq!(named.run(1).packets[0].octets.header, 71);
}

#[test]
fn a_faster_link_with_larger_packets() {
    for (service, packets) in [(Service::Coap, 2), (Service::IotHttp, 5), (Service::IotSpdy, 5)] {
        let fetch = Fetch::new(service, 1_000, ZIGBEE_250K.model, 1_280);
        assert_eq!(figures(&fetch).0, packets, "{service:?}");
    }
}

/// Headers of UDP and TCP go through ROHC, and the object is the same.
#[test]
fn compressed_packets_bring_the_same_object() {
    let profiles = ProfileSet::v1().with(ProfileId::Tcp).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let rohc = RohcChannel {
        compressor: CompressorConfig::new(channel),
        decompressor: DecompressorConfig::new(channel),
        bases: Vec::new(),
        feedback_wait: Duration::ZERO,
    };
    for service in [Service::Coap, Service::IotHttp, Service::IotSpdy] {
        let plain = zigbee(service, 200).run(1);
        let fetched = Fetch { rohc: Some(rohc.clone()), ..zigbee(service, 200) }.run(1);
        assert_eq!(fetched.octets, plain.octets, "{service:?}");
        assert!(fetched.took.is_some());
        let carried =
            |fetched: &Fetched| fetched.totals.iter().map(|totals| totals.carried_octets).sum::<u64>();
        assert!(carried(&fetched) != carried(&plain), "{service:?}");
    }
}

/// Whatever is lost, the object comes or nothing does; and the same seed gives the same packets.
#[test]
fn losses_are_repaired_or_told() {
    let mut came = 0;
    for seed in 0..20 {
        for service in [Service::Coap, Service::Http, Service::IotHttp, Service::IotSpdy] {
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

/// One client of many is as one alone; of many that share a short queue, some wait for a retransmission.
#[test]
fn a_crowd_shares_the_link() {
    for service in [Service::Coap, Service::IotHttp, Service::IotSpdy] {
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

#[test]
fn fewer_acknowledgments_are_fewer_packets() {
    let plain = zigbee(Service::IotHttp, 1_000);
    let thinned = Fetch { thins: true, ..plain.clone() };
    assert!(figures(&thinned).0 < figures(&plain).0);
}
