use std::time::Duration;

use thinair_rohc::Mode;
use thinair_wire::time::Instant;

use super::cell::{HeaderTreatment, LinkCarrier, run};
use super::flow::{IperfFlow, Meter, ticks};
use super::*;

#[test]
fn a_run_depends_on_its_seed_alone() {
    for carrier in [LinkCarrier::Link, LinkCarrier::Udp, LinkCarrier::Ule] {
        let condition = Condition { loss: 5, ..Condition::default() };
        let scenario = LinkScenario { carrier, condition, load: 15, payload: 500 };
        let way = HeaderTreatment::Rohc(Mode::Optimistic);
        let [one, again, other] =
            [(1, 0), (1, 0), (1, 1)].map(|seed| run(scenario, way, true, seed).expect("it runs"));
        assert_eq!(one, again);
        assert_ne!(one, other);
    }
}

/// Computed by hand: 2 Mbit/s of packets of 128 octets, of which 100 are payload, and a queue that is never empty.
#[test]
fn goodput_without_compression_is_that_of_the_link() {
    let full =
        LinkScenario { carrier: LinkCarrier::Link, condition: Condition::default(), load: 30, payload: 100 };
    let sample = run(full, HeaderTreatment::Plain, true, (1, 0)).expect("it runs");
    assert!((sample.goodput - 2.0 * 100.0 / 128.0).abs() < 0.001, "{sample:?}");
    assert_eq!((sample.wrong, sample.undelivered, sample.octets), (0.0, 0.0, 128.0));
    let half = LinkScenario { load: 5, ..full };
    let sample = run(half, HeaderTreatment::Plain, true, (1, 0)).expect("it runs");
    assert!((sample.goodput - 1.0).abs() < 0.01, "{sample:?}");
}

#[test]
fn a_packet_with_another_ip_id_is_wrong() {
    let flow = IperfFlow::new(20, 7);
    let mut meter = Meter::new(&flow, Instant::ZERO..Instant::from_millis(10));
    let mut packet = flow.packet(3, Instant::from_millis(2));
    meter.deliver(Instant::from_millis(5), &packet);
    packet[5] ^= 1;
    meter.deliver(Instant::from_millis(6), &packet);
    let sample = meter.sample(0, 48);
    assert_eq!((sample.delivered, sample.wrong, sample.outage), (1.0, 1.0, 5.0));
}

#[test]
fn the_sender_pauses_now_and_then() {
    let ticks = ticks(1, Duration::from_secs(10));
    let gaps = || ticks.iter().zip(ticks.iter().skip(1)).map(|(a, b)| *b - *a);
    let pauses = gaps().filter(|gap| *gap > Duration::from_millis(1)).count();
    assert!((250..600).contains(&pauses), "{pauses}");
    assert!(gaps().all(|gap| gap <= Duration::from_millis(10)));
}
