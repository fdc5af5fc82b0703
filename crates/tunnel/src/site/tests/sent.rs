//! Packets count as sent when their datagram leaves, and for a share of octets saved if it may have arrived.

use super::*;
use crate::status::Identity;

fn totals(host: &Host, now: Instant) -> crate::status::TrafficTotals {
    let identity = Identity {
        site: None,
        inside: crate::status::InsideStatus {
            name: String::new(),
            bridged: false,
            mtu: 1_400,
            addresses: Vec::new(),
            up: true,
        },
        carrier: crate::status::CarrierStatus::default(),
        security: String::new(),
    };
    host.site.status(now, identity, 1.0, 0.0).totals
}

#[test]
fn packets_that_wait_for_keys_are_not_sent_and_nothing_is_saved_without_a_peer() {
    let mut hosts = pair(KEY);
    let packets = captured();
    let now = Instant::from_millis(10);
    // Nobody is at the other end.
    for packet in packets.iter().step_by(2).take(40) {
        send(&mut hosts[0], now, packet);
        settle(&mut hosts[..1], now, &mut |_| 0);
    }
    let sent = totals(&hosts[0], now);
    assert_eq!((sent.sent.packets, sent.sent.octets, sent.sent.compressed_octets), (0, 0, 0));
    assert_eq!((sent.ratio, sent.compressed_ratio, sent.arrived), (None, None, Some(Default::default())));
    assert_eq!(drops(&hosts[0], Drop::NoSession), 8, "32 wait");

    // It starts: those that have waited leave.
    let later = Instant::from_millis(3_000);
    settle(&mut hosts, later, &mut |_| 1);
    assert_eq!(hosts[1].delivered.len(), 32);
    let sent = totals(&hosts[0], later);
    assert_eq!(sent.sent.packets, 32);
    assert!(sent.sent.octets > 0 && sent.sent.compressed_octets > 0);

    // It is heard, and ends without a word: what is sent then is no saving.
    settle(&mut hosts, Instant::from_millis(15_000), &mut |_| 1);
    let heard = totals(&hosts[0], later);
    assert_eq!(heard.arrived.unwrap().packets, 32);
    assert!(heard.ratio.is_some());
    for packet in packets.iter().step_by(2).skip(40).take(20) {
        send(&mut hosts[0], Instant::from_millis(16_000), packet);
        settle(&mut hosts[..1], Instant::from_millis(16_000), &mut |_| 0);
    }
    let silent = totals(&hosts[0], later);
    assert_eq!((silent.sent.packets, silent.arrived.unwrap().packets), (52, 32));
    assert_eq!((silent.ratio, silent.compressed_ratio), (heard.ratio, heard.compressed_ratio));
}

#[test]
fn without_keys_everything_counts() {
    let mut hosts = pair("insecure = true");
    let now = Instant::from_millis(10);
    send(&mut hosts[0], now, &captured()[0]);
    settle(&mut hosts[..1], now, &mut |_| 0);
    let sent = totals(&hosts[0], now);
    assert_eq!((sent.sent.packets, sent.arrived), (1, None));
    assert!(sent.ratio.is_some());
}

#[test]
fn losses_and_the_round_trip_of_the_carrier_are_known() {
    let mut hosts = pair(KEY);
    let packets = captured();
    let now = Instant::from_millis(10);
    settle(&mut hosts, now, &mut |_| 1);
    for (packet, number) in packets.iter().step_by(2).zip(1..=40_u32) {
        send(&mut hosts[0], now, packet);
        settle(&mut hosts, now, &mut move |_| usize::from(!number.is_multiple_of(4)));
    }
    let source = &hosts[1].site.sources[0];
    assert_eq!(source.lost, 9, "the last one is not missed yet");
    assert!(source.arrived >= 30);
    let sample = hosts[1].site.sample(1.0);
    assert_eq!((sample.lost_units, sample.received_units), (source.lost, source.arrived));
    assert!(sample.round_trip_seconds.is_some());
}
