use thinair_rohc::Cid;
use thinair_rohc::feedback::{AckType, Feedback};

use super::*;

/// A unit with one element.
fn element(cid: u16, ack: AckType) -> Owned {
    let feedback = Feedback { protected: true, ..Feedback::new(Cid::new(cid).unwrap(), ack) };
    let mut octets = [0; 32];
    let len = feedback.write(CidSpace::Small, &mut octets).unwrap();
    Owned { protocol: Protocol::Rohc, to: None, large: false, octets: octets[..len].to_vec() }
}

#[test]
fn a_storm_of_nacks_costs_a_few_large_packets() {
    let config = config(Mode::Optimistic);
    let run = |nacks: u64, ack| {
        let mut ends = pair(&setup(&config));
        let mut octets = 0;
        for i in 0..10_000_u16 {
            let now = Instant::from_nanos(u64::from(i) * 1_000_000);
            let [a, b] = &mut ends;
            let packet = udp6(1, i, 20);
            let (sent, units) = send(a, now, &packet);
            octets += sent.unwrap().octets;
            assert_eq!(receive(b, now, None, &units[0]), (Ok(()), vec![packet]));
            for _ in 0..nacks {
                receive(a, now, None, &element(0, ack)).0.unwrap();
            }
            settle(&mut ends, now);
        }
        let counters = ends[0].counters().feedback_received;
        assert_eq!(counters.nacks + counters.static_nacks, nacks * 10_000);
        (octets, counters.too_many)
    };
    let (calm, _) = run(0, AckType::Nack);
    let (stormy, too_many) = run(5, AckType::StaticNack);
    // 100 of them take effect, and each enlarges 4 packets by less than 60 octets.
    assert_eq!(too_many, 50_000 - 100);
    assert!(stormy < calm + 100 * 4 * 60, "{calm} octets, and {stormy} in the storm");
    assert!(stormy > calm + 100 * 20);
}

#[test]
fn a_restarted_decompressor_is_heard_at_once() {
    let config = config(Mode::Optimistic);
    let mut ends = pair(&setup(&config));
    let mut missed = 0;
    for i in 0..300 {
        let now = ms(20 * u64::from(i));
        let [a, b] = &mut ends;
        if i == 150 {
            // It restarts without informing the other end.
            *b = Channel::new(&setup(&config)).unwrap();
        }
        for flow in 1..=8 {
            let packet = udp6(flow, i, 20);
            let (_, units) = send(a, now, &packet);
            let (_, packets) = receive(b, now, None, &units[0]);
            missed += u32::from(packets != [packet]);
        }
        settle(&mut ends, ms(20 * u64::from(i) + 20));
    }
    assert!((8..=16).contains(&missed), "{missed} packets of 8 flows");
    assert!(ends[0].counters().feedback_received.static_nacks >= 8);
}

#[test]
fn garbage_is_answered_seldom() {
    let config = config(Mode::Optimistic);
    let [_, mut b] = pair(&setup(&config));
    let mut octets = 0;
    for i in 0..20_000_u64 {
        let now = Instant::from_nanos(i * 100_000);
        let garbage = Owned {
            protocol: Protocol::Rohc,
            to: None,
            large: false,
            octets: vec![i as u8 | 0xE1, 0x12, 0x34, 0x56],
        };
        let _ = receive(&mut b, now, None, &garbage);
        octets += poll(&mut b, now).iter().map(|unit| unit.octets.len()).sum::<usize>();
    }
    let sent = b.counters().feedback_sent;
    // For two seconds and 16 CIDs.
    assert!((16..=200).contains(&sent.static_nacks), "{sent:?}");
    assert!(octets < 200 * 8, "{octets} octets");
}

#[test]
fn feedback_keeps_its_interval() {
    let config = config(Mode::Optimistic);
    let mut ends = pair(&Setup { feedback_interval: Duration::from_secs(1), ..setup(&config) });
    let mut times = Vec::new();
    for i in 0..500_u16 {
        let now = ms(10 * u64::from(i));
        let [a, b] = &mut ends;
        // Flows begin again and again, so that there is much to acknowledge; packets are sent in both
        // directions. Each pays for its context, for which none waits.
        carry(a, b, now, &udp6(i / 20, i, 20));
        let before = b.counters().feedback_sent;
        carry(b, a, now, &udp6(9_000, i, 20));
        settle(&mut ends, now);
        let after = ends[1].counters().feedback_sent;
        if (after.in_front, after.alone) != (before.in_front, before.alone) {
            times.push(i);
        }
    }
    assert!(times.len() >= 5 && times.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{times:?}");
}
