//! Tests of troubles: their beginnings and ends.

use super::*;

fn reason(host: &Host) -> Option<&'static str> {
    host.site.sources[0].trouble.map(|(trouble, _)| trouble.reason())
}

/// A configuration without the address of the other end.
fn listening(port: u16) -> String {
    format!("[inside]\naddress = [\"10.0.0.1/24\"]\n[carrier]\nurl = \"udp://:{port}\"\n[security]\n{KEY}\n")
}

fn hint(host: &mut Host, now: Instant, address: &str) {
    host.handle(|site| site.note_unreachable(now, address.parse().unwrap()));
}

/// Lets seconds pass.
fn pass(hosts: &mut [Host], from: u64, to: u64) -> Instant {
    for tenth in from * 10..to * 10 {
        settle(hosts, Instant::from_millis(100 * tenth), &mut |_| 1);
    }
    Instant::from_millis(1_000 * to)
}

#[test]
fn keys_that_differ_are_reported_at_both_ends() {
    // One only listens: it receives requests, and the other one no answers.
    let mut hosts = vec![host(&text(7_001, 7_002, KEY), 1, 10), host(&listening(7_002), 2, 20)];
    hosts[1].address = "127.0.0.1:7002".parse().unwrap();
    settle(&mut hosts, Instant::ZERO, &mut |_| 1);
    assert_eq!((reason(&hosts[0]), reason(&hosts[1])), (None, Some("other_key")));
    pass(&mut hosts, 0, 5);
    assert_eq!((reason(&hosts[0]), reason(&hosts[1])), (Some("no_answer"), Some("other_key")));
    let of = |key: u8| Key::new([key; 32]).id().to_string();
    let trouble = hosts[1].site.sources[0].trouble.unwrap().0.to_string();
    assert!(trouble.contains(&of(1)) && trouble.contains(&of(2)) && trouble.contains("127.0.0.1:7001"));
    // Now with the right key.
    hosts[0] = host(&text(7_001, 7_002, KEY), 2, 30);
    settle(&mut hosts, Instant::from_millis(5_000), &mut |_| 1);
    assert_eq!((reason(&hosts[0]), reason(&hosts[1])), (None, None));
}

#[test]
fn a_hint_is_shown_until_something_is_heard_and_is_less_than_what_is_authentic() {
    let mut hosts = pair(KEY);
    settle(&mut hosts, Instant::ZERO, &mut |_| 1);
    let now = Instant::from_millis(100);
    hint(&mut hosts[0], now, "127.0.0.1:7777");
    assert_eq!(reason(&hosts[0]), None);
    hint(&mut hosts[0], now, "127.0.0.1:7002");
    assert_eq!(reason(&hosts[0]), Some("unreachable"));
    send(&mut hosts[1], now, &captured()[0]);
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!((reason(&hosts[0]), hosts[0].delivered.len()), (None, 1));

    hosts[1].handle(|site| site.farewell(now));
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!(reason(&hosts[0]), Some("closed"));
    hint(&mut hosts[0], now, "127.0.0.1:7002");
    assert_eq!(reason(&hosts[0]), Some("closed"));
}

#[test]
fn packets_wait_for_an_end_that_has_said_farewell() {
    let mut hosts = pair(KEY);
    let packets = captured();
    let start = Instant::from_millis(1);
    for packet in packets.iter().step_by(2).take(20) {
        send(&mut hosts[0], start, packet);
        settle(&mut hosts, start, &mut |_| 1);
    }
    assert_eq!(hosts[1].delivered.len(), 20);
    hosts[1].handle(|site| site.farewell(start));
    settle(&mut hosts, start, &mut |_| 1);
    for packet in packets.iter().step_by(2).skip(20).take(5) {
        send(&mut hosts[0], start, packet);
    }
    hosts[0].out.clear();
    hosts[1] = host(&text(7_002, 7_001, KEY), 1, 30);
    let now = Instant::from_millis(1_000);
    settle(&mut hosts, now, &mut |_| 1);
    for packet in packets.iter().step_by(2).skip(25).take(5) {
        send(&mut hosts[0], now, packet);
        settle(&mut hosts, now, &mut |_| 1);
    }
    let all: Vec<_> = packets.iter().step_by(2).skip(20).take(10).cloned().collect();
    assert_eq!(hosts[1].delivered, all, "in their order, and none is lost");
    assert_eq!((reason(&hosts[0]), reason(&hosts[1])), (None, None));
}
