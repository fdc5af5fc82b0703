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
            offloads: Vec::new(),
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

/// ENETUNREACH, EPERM, ENOBUFS: the system reports them after the site has queued the datagram.
#[test]
fn what_the_carrier_refuses_was_not_sent() {
    for security in [KEY, "insecure = true"] {
        let mut hosts = pair(security);
        let packets = captured();
        let now = Instant::from_millis(10);
        settle(&mut hosts, now, &mut |_| 1);
        let packets: Vec<_> = packets.iter().step_by(2).take(22).collect();
        send(&mut hosts[0], now, packets[0]);
        settle(&mut hosts, now, &mut |_| 1);
        let before = totals(&hosts[0], now);
        // Two packets share a datagram, and one has its own. None of them leaves.
        hosts[0].numbers.clear();
        for packets in packets[1..].chunks(3) {
            hosts[0].handle(|site| {
                packets[..2].iter().for_each(|packet| site.handle_packet(now, packet));
                site.pause(now);
                site.handle_packet(now, packets[2]);
                site.pause(now);
            });
        }
        hosts[0].out.clear();
        let queued = totals(&hosts[0], now);
        assert_eq!(queued.sent.packets, before.sent.packets + 21, "{security}");
        let numbers = std::mem::take(&mut hosts[0].numbers);
        assert_eq!(numbers.len() as u64, queued.sent.datagrams - before.sent.datagrams);
        for number in &numbers {
            hosts[0].site.note_refused_datagram(*number, Drop::CarrierRefused);
        }
        let after = totals(&hosts[0], now);
        assert_eq!((after.sent, after.ratio), (before.sent, before.ratio), "{security}");
        assert_eq!(after.arrived, before.arrived);
        assert_eq!(drops(&hosts[0], Drop::CarrierRefused), numbers.len() as u64);
        let counters = hosts[0].site.counters();
        assert_eq!(counters.billing.sent.datagrams, before.sent.datagrams);
    }
}

/// Datagrams of the interface and of the carrier alternate: the other end is heard before the carrier refuses.
#[test]
fn what_the_carrier_refuses_late_has_not_arrived() {
    let mut hosts = pair(KEY);
    let now = Instant::from_millis(10);
    settle(&mut hosts, now, &mut |_| 1);
    let packet = captured()[0].clone();
    send(&mut hosts[0], now, &packet);
    settle(&mut hosts, now, &mut |_| 1);
    let before = totals(&hosts[0], now);
    hosts[0].numbers.clear();
    send(&mut hosts[0], now, &packet);
    hosts[0].out.clear();
    let number = hosts[0].numbers[0];
    send(&mut hosts[1], now, &captured()[1]);
    settle(&mut hosts, now, &mut |_| 1);
    let heard = totals(&hosts[0], now);
    assert!(heard.arrived.unwrap().packets > before.arrived.unwrap().packets);
    hosts[0].site.note_refused_datagram(number, Drop::CarrierRefused);
    let after = totals(&hosts[0], now);
    assert_eq!(after.sent.packets, 1);
    assert_eq!(after.arrived.unwrap().packets, 1);
}
