//! Small CIDs until 16 flows are live, then large ones, and back.

use super::*;

const AUTO: Option<u16> = Some(1_023);

fn auto(mode: Mode) -> ChannelConfig {
    ChannelConfig { large_max_cid: AUTO, ..config(mode) }
}

/// Octets of all units of `flows` flows with `rounds` packets each, alternately, including feedback. Nothing
/// is lost.
fn octets(config: &ChannelConfig, flows: u16, rounds: u16) -> (u64, u64, Cids) {
    let mut ends = pair(&setup(config));
    let mut now = Instant::ZERO;
    for round in 0..rounds {
        for flow in 0..flows {
            now = now + Duration::from_millis(2);
            let packet = udp6(1_000 + flow, round, 40 + usize::from((flow + round) % 61));
            let [a, b] = &mut ends;
            assert_eq!(carry(a, b, now, &packet), [packet]);
            settle(&mut ends, now);
        }
    }
    let [a, b] = &ends;
    (a.counters().sent.octets, a.counters().sent.unit_octets + b.counters().sent.unit_octets, a.cids())
}

#[test]
fn sixteen_flows_cost_what_they_cost_with_small_cids() {
    for flows in [1, 16] {
        let small = octets(&config(Mode::Optimistic), flows, 40);
        assert_eq!(octets(&auto(Mode::Optimistic), flows, 40), small);
    }
}

#[test]
fn a_thousand_flows_cost_about_what_they_cost_with_large_cids() {
    let large = ChannelConfig { cids: CidSpace::Large, max_cid: 1_023, ..config(Mode::Optimistic) };
    let (inside, small, _) = octets(&config(Mode::Optimistic), 1_000, 20);
    let (_, large, _) = octets(&large, 1_000, 20);
    let (_, auto, cids) = octets(&auto(Mode::Optimistic), 1_000, 20);
    println!(
        "1,000 UDP flows of 20 packets, IPv6, payloads of 40 to 100 octets; octets of units and feedback"
    );
    for (cid, octets) in [("inside", inside), ("small", small), ("auto", auto), ("large", large)] {
        println!("{cid:<7}{octets:>9}{:>7.1} %", octets as f64 * 100.0 / inside as f64);
    }
    assert_eq!((cids.sent, cids.sent_switches), (CidSpace::Large, 1));
    assert!(small > inside && auto * 5 < inside * 4, "{inside} {small} {auto}");
    assert!(auto * 100 < large * 103, "{auto} {large}");
}

#[test]
fn no_packet_is_lost_or_changed_where_the_space_changes_to_and_fro() {
    for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
        let config = auto(mode);
        let mut ends = pair(&setup(&config));
        let mut now = Instant::ZERO;
        let mut rounds = |ends: &mut [Channel; 2], flows: u16, rounds: u16, step: u64| {
            for round in 0..rounds {
                for flow in 0..flows {
                    now = now + Duration::from_millis(step);
                    let [a, b] = ends;
                    for port in [1_000, 2_000] {
                        let (from, to) = if port == 1_000 { (&mut *a, &mut *b) } else { (&mut *b, &mut *a) };
                        let packet = udp6(port + flow, round, 30);
                        assert_eq!(carry(from, to, now, &packet), [packet], "{mode:?}");
                    }
                    settle(ends, now);
                }
            }
        };
        let now_large =
            |ends: &[Channel; 2]| ends.each_ref().map(|end| (end.cids().sent, end.cids().received));
        rounds(&mut ends, 16, 5, 5);
        assert_eq!(now_large(&ends), [(CidSpace::Small, CidSpace::Small); 2]);
        rounds(&mut ends, 40, 5, 5);
        assert_eq!(now_large(&ends), [(CidSpace::Large, CidSpace::Large); 2]);
        rounds(&mut ends, 13, 100, 100);
        assert_eq!(now_large(&ends), [(CidSpace::Large, CidSpace::Large); 2], "13 flows are live");
        rounds(&mut ends, 12, 100, 100);
        assert_eq!(now_large(&ends), [(CidSpace::Small, CidSpace::Small); 2]);
        rounds(&mut ends, 40, 5, 5);
        assert_eq!(now_large(&ends), [(CidSpace::Large, CidSpace::Large); 2]);
        assert_eq!(ends[0].cids().sent_switches, 3);
        assert!(ends.iter().all(|end| end.counters().not_received.total() == 0));
    }
}

#[test]
fn what_overtakes_and_what_is_lost_takes_nothing_else_along() {
    let config = auto(Mode::Optimistic);
    let [mut a, mut b] = pair(&setup(&config));
    let mut waiting = std::collections::VecDeque::new();
    let (mut lost, mut delivered) = (0, 0);
    for round in 0..30_u16 {
        for flow in 0..40_u16 {
            // 16 flows at first, then 40.
            if round < 5 && flow >= 16 {
                continue;
            }
            let now = ms(u64::from(round) * 200 + u64::from(flow) * 5);
            let packet = udp6(1_000 + flow, round, 30);
            let (_, units) = send(&mut a, now, &packet);
            let number = usize::from(round * 40 + flow);
            if number % 20 == 7 {
                lost += 1;
            } else if number % 10 == 3 {
                waiting.push_back((3, units, packet));
            } else {
                waiting.push_back((0, units, packet));
            }
            let mut held = std::collections::VecDeque::new();
            while let Some((left, units, packet)) = waiting.pop_front() {
                if left > 0 {
                    held.push_back((left - 1, units, packet));
                    continue;
                }
                for unit in &units {
                    let (result, packets) = receive(&mut b, now, None, unit);
                    assert_eq!((result, packets), (Ok(()), vec![packet.clone()]), "{number}");
                    delivered += 1;
                }
            }
            waiting = held;
            for unit in poll(&mut b, now) {
                receive(&mut a, now, None, &unit).0.unwrap();
            }
        }
    }
    assert_eq!((a.cids().sent, b.cids().received, lost), (CidSpace::Large, CidSpace::Large, 5 + 2 * 25));
    assert_eq!(delivered + lost + waiting.len(), 5 * 16 + 25 * 40);
}

#[test]
fn a_restart_begins_with_small_cids() {
    let config = auto(Mode::Optimistic);
    let mut ends = pair(&setup(&config));
    for flow in 0..40 {
        let [a, b] = &mut ends;
        let packet = udp6(flow, 0, 30);
        assert_eq!(carry(a, b, ms(u64::from(flow)), &packet), [packet]);
    }
    ends.iter_mut().for_each(|end| end.reset(None));
    assert!(
        ends.iter().all(|end| end.cids().sent == CidSpace::Small && end.cids().received == CidSpace::Small)
    );
    for flow in 0..40 {
        let [a, b] = &mut ends;
        let packet = udp6(flow, 1, 30);
        assert_eq!(carry(a, b, ms(100 + u64::from(flow)), &packet), [packet]);
    }
    assert_eq!((ends[0].cids().sent_switches, ends[1].cids().received_switches), (3, 3));
}

#[test]
fn units_of_a_channel_that_is_not_there_are_refused() {
    let (config, wide) = (config(Mode::Optimistic), auto(Mode::Optimistic));
    let [mut a, _] = pair(&setup(&wide));
    let [mut b, _] = pair(&setup(&config));
    let (_, mut units) = send(&mut a, ms(0), &udp6(1, 0, 30));
    units[0].large = true;
    let unexpected = Err(NotReceived::Unexpected(Protocol::Rohc));
    assert_eq!(receive(&mut b, ms(0), None, &units[0]).0, unexpected);
}
