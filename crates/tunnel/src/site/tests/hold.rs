//! Packets that wait for others, and what that saves.

use thinair_link::tariff::{CountedDirections, Tariff};

use super::*;
use crate::site::hold::time_of;
use crate::site::trial::{Trial, TrialCause, TrialOctets};

const HOLD: &str = "hold = [{ dst_port = 9000, time = \"5min\" }]\n";
const SENSOR_EVERY: Duration = Duration::from_secs(30);

/// A datagram of UDP, or of another protocol with ports there, with `payload`.
fn packet(protocol: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = datagram([10, 0, 0, 1], [10, 0, 0, 2]);
    packet.truncate(20);
    let length = (8 + payload.len()) as u16;
    packet[2..4].copy_from_slice(&(20 + length).to_be_bytes());
    packet[9] = protocol;
    packet[10..12].fill(0);
    let sum = thinair_wire::checksum::checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    let mut udp = [40_000_u16.to_be_bytes(), port.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
    udp.extend(payload);
    let pseudo = [&packet[12..20], &[0, protocol], &length.to_be_bytes(), &udp].concat();
    udp[6..8].copy_from_slice(&thinair_wire::checksum::checksum(&pseudo).to_be_bytes());
    packet.extend(udp);
    packet
}

fn reading(number: u64) -> Vec<u8> {
    reading_to(9_000, number)
}

fn reading_to(port: u16, number: u64) -> Vec<u8> {
    packet(17, port, &number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes())
}

/// Octets of a sensor with a reading every 30 s for a day, to a port.
fn sensor_day(hold: &str, port: u16) -> TrialOctets {
    let mut trial = Trial::new(&config(&(hold.to_owned() + &text(7_001, 7_002, KEY))), 0).unwrap();
    let start = Duration::from_secs(60);
    trial.run_to(start);
    let before = trial.spent();
    for number in 0..2_880_u64 {
        trial.send(start + SENSOR_EVERY * number as u32, false, &reading_to(port, number));
    }
    trial.run_to(start + crate::idle::DAY + Duration::from_secs(300));
    assert_eq!(trial.delivered(), [0, 2_880]);
    trial.spent().since(&before)
}

/// Price of datagrams that count at least 50 octets each, with `more` octets in each.
fn floor_50(sizes: &std::collections::BTreeMap<u32, u64>, more: u32) -> u64 {
    sizes.iter().map(|(octets, count)| u64::from((octets + more).max(50)) * count).sum()
}

/// Least price of the readings: all ways to pack consecutive ones, none of which waits for more than 5 minutes.
fn optimum(unit: u64) -> u64 {
    let mut least = vec![0];
    for last in 0..2_880_usize {
        let packed = |first: usize| {
            let count = (last - first + 1) as u64;
            least[first] + (48 + count * unit + (count - 1)).max(50)
        };
        let first = last.saturating_sub((300 / SENSOR_EVERY.as_secs()) as usize);
        least.push((first..=last).map(packed).min().unwrap());
    }
    least[2_880]
}

/// Price of waiting readings, as a multiple of the least one. `now`: those that do not wait.
fn of_optimum(now: &TrialOctets, waits: &TrialOctets) -> f64 {
    // A reading alone in its datagram.
    let (alone, _) = now.datagrams[0].iter().max_by_key(|(_, count)| **count).unwrap();
    let besides = waits.of(TrialCause::KeyExchanges) + waits.of(TrialCause::Keepalives);
    let price: u64 = waits.datagrams.iter().map(|sizes| floor_50(sizes, 0)).sum();
    (price - besides) as f64 / optimum(u64::from(*alone) - 48) as f64
}

#[test]
fn readings_at_the_port_of_coap_that_are_no_messages_cost_as_much_as_others() {
    let rule = HOLD.replace("9000", "5683");
    let packing = of_optimum(&sensor_day("", 5_683), &sensor_day(&rule, 5_683));
    println!("at port 5683: {packing:.3} of the least");
    assert!(packing <= 1.05, "{packing}");
}

#[test]
fn a_sensor_whose_readings_wait_pays_a_quarter() {
    let (now, waits) = (sensor_day("", 9_000), sensor_day(HOLD, 9_000));
    // Each datagram had the whole counter before, behind 10 s of silence, and was answered by a keepalive with it.
    let before = [floor_50(&now.datagrams[0], 6), 54 * 2_880];
    let [up, down] = [0, 1].map(|end| floor_50(&waits.datagrams[end], 0));
    let both = (up + down) as f64 / (before[0] + before[1]) as f64;
    let one = up as f64 / before[0] as f64;
    let packing = of_optimum(&now, &waits);
    println!(
        "price of a day under a floor of 50: {} before, {} without waiting, {} with it ({both:.3}; up {one:.3}; {packing:.3} \
         of the least)",
        before[0] + before[1],
        floor_50(&now.datagrams[0], 0) + floor_50(&now.datagrams[1], 0),
        up + down
    );
    assert!(both <= 0.25 && one <= 0.30 && packing <= 1.05, "{both} {one} {packing}");
}

/// A price list with a step, for these directions.
fn tariff(step: u32, directions: CountedDirections) -> Tariff {
    let text = "name = \"a\"\nsource = \"a\"\nread = 2026-11-30\ncurrency = \"octet\"\nprice = { amount = 1, octets = 1 }\n\
                packet = { floor = 0, step = 1 }\ndirections = \"both\"\nallowance = 0\n";
    Tariff { step, directions, ..Tariff::read(text).unwrap() }
}

/// Datagrams with readings, one every 30 s for a day, of this end, by size.
fn sizes(tariff: Option<Tariff>) -> std::collections::BTreeMap<u32, u64> {
    let rules = HOLD.replace("5min", "2h");
    let config = SiteConfig { tariff, ..config(&(rules + &text(7_001, 7_002, KEY))) };
    let mut trial = Trial::new(&config, 0).unwrap();
    for number in 0..2_880 {
        trial.send(SENSOR_EVERY * number as u32 + Duration::from_secs(60), false, &reading(number));
    }
    trial.run_to(crate::idle::DAY + Duration::from_secs(3 * 3_600));
    assert_eq!(trial.delivered(), [0, 2_880]);
    trial.spent().datagrams[0].clone()
}

#[test]
fn packets_wait_until_a_step_of_the_price_is_full() {
    let price = |sizes: &std::collections::BTreeMap<u32, u64>, step: u32| -> u64 {
        sizes.iter().map(|(octets, count)| u64::from(octets.div_ceil(step) * step) * count).sum()
    };
    let without = sizes(None);
    for step in [1, 50, 400, 700, 1_000] {
        let with = sizes(Some(tariff(step, CountedDirections::Both)));
        let (before, now) = (price(&without, step), price(&with, step));
        println!("step of {step}: {before} without the price list, {now} with it");
        assert!(now <= before, "step of {step}: {now} instead of {before}");
        // Two steps of 1,000 are in no datagram.
        assert!(step < 1_000 || now * 100 <= before * 80, "step of {step}: {now} instead of {before}");
    }
}

#[test]
fn packets_that_cost_nothing_do_not_wait() {
    let free = Tariff { octet: 0.0, ..tariff(1, CountedDirections::Both) };
    for tariff in [tariff(50, CountedDirections::Down), free] {
        assert!(sizes(Some(tariff)).values().sum::<u64>() >= 2_880);
    }
}

#[test]
fn only_packets_that_a_rule_names_wait() {
    let rules = "hold = [{ protocol = \"udp\", time = \"60s\" }]\n";
    let mut hosts = vec![
        host(&(rules.to_owned() + &text(7_001, 7_002, KEY)), 1, 10),
        host(&text(7_002, 7_001, KEY), 1, 20),
    ];
    let mut now = Instant::from_millis(1);
    settle(&mut hosts, now, &mut |_| 1);
    now = now + Duration::from_secs(5);
    settle(&mut hosts, now, &mut |_| 1);
    let delivered = |hosts: &mut [Host], now, packet: &[u8]| {
        send(&mut hosts[0], now, packet);
        settle(hosts, now, &mut |_| 1);
        std::mem::take(&mut hosts[1].delivered)
    };
    // Two wait, and leave with a packet that does not, which is first.
    let (first, second) = (reading(1), reading(2));
    assert!(delivered(&mut hosts, now, &first).is_empty() && delivered(&mut hosts, now, &second).is_empty());
    let tcp = packet(6, 5_683, &[0; 12]);
    assert_eq!(delivered(&mut hosts, now, &tcp), [tcp.clone(), first.clone(), second.clone()]);
    for at_once in
        [tcp, packet(1, 5_683, &[8]), packet(17, 53, b"a question"), packet(17, 5_353, b"mDNS by unicast")]
    {
        assert_eq!(delivered(&mut hosts, now, &at_once), std::slice::from_ref(&at_once));
    }
    // The first one determines when the others leave.
    assert!(delivered(&mut hosts, now, &first).is_empty());
    assert!(delivered(&mut hosts, now + Duration::from_secs(59), &second).is_empty());
    settle(&mut hosts, now + Duration::from_secs(60), &mut |_| 1);
    assert_eq!(std::mem::take(&mut hosts[1].delivered), [first.clone(), second.clone()]);
    now = now + Duration::from_secs(100);
    // A full datagram leaves.
    let long = packet(17, 9, &[7; 400]);
    let mut count = 0;
    while delivered(&mut hosts, now, &long).is_empty() {
        count += 1;
    }
    assert!((1..=3).contains(&count), "{count}");
    // So does everything at the end.
    assert!(delivered(&mut hosts, now, &first).is_empty());
    hosts[0].handle(|site| site.farewell(now));
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!(std::mem::take(&mut hosts[1].delivered), [first]);
}

#[test]
fn a_packet_that_waits_leaves_in_place_of_a_keepalive() {
    let keepalive = text(7_001, 7_002, KEY).replace("listen", "keepalive = \"25s\"\nlisten");
    let mut trial = Trial::new(&config(&(HOLD.to_owned() + &keepalive)), 0).unwrap();
    trial.run_to(Duration::from_secs(60));
    let before = trial.spent();
    for number in 0..40 {
        trial.send(Duration::from_secs(61 + 25 * number), false, &reading(number));
    }
    trial.run_to(Duration::from_secs(61 + 40 * 25));
    assert_eq!(trial.delivered()[1], 40);
    let spent = trial.spent().since(&before);
    assert!(spent.datagrams[0].values().sum::<u64>() <= 42, "{spent:?}");
}

#[test]
fn no_octets_are_a_datagram_and_fragments_do_not_wait() {
    let rules = config(&(HOLD.to_owned() + &text(7_001, 7_002, KEY))).hold;
    let whole = reading(1);
    assert!(time_of(&rules, &whole).is_some());
    for len in 0..24 {
        assert_eq!(time_of(&rules, &whole[..len]), None);
    }
    let mut fragment = whole.clone();
    fragment[6] = 0x20;
    assert_eq!(time_of(&rules, &fragment), None);
    let mut v6 = vec![0x60; 1];
    v6.extend([0; 5]);
    v6.extend([17, 64]);
    v6.extend([0; 32]);
    v6.extend(&whole[20..]);
    assert!(time_of(&rules, &v6).is_some());
}
