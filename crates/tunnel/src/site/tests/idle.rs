//! Packets that a host sends for itself, and datagrams of an idle tunnel.

use super::*;

/// An IPv4 datagram of UDP to a port.
fn to_port(from: [u8; 4], to: [u8; 4], port: u16) -> Vec<u8> {
    let mut packet = datagram(from, to);
    packet[22..24].copy_from_slice(&port.to_be_bytes());
    packet
}

/// An IPv6 packet with `rest` behind its header, from a link-local address.
fn ipv6(to: &str, next: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 255];
    for address in ["fe80::1", to] {
        packet.extend(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
    }
    packet.extend(rest);
    packet
}

/// Multicast of a host with the address 10.0.0.1 for itself.
fn for_itself() -> Vec<Vec<u8>> {
    let mut igmp = datagram([10, 0, 0, 1], [224, 0, 0, 22]);
    igmp[9] = 2;
    let mld = [58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0];
    vec![
        to_port([10, 0, 0, 1], [224, 0, 0, 251], 5_353),
        to_port([10, 0, 0, 1], [224, 0, 0, 252], 5_355),
        to_port([10, 0, 0, 1], [239, 255, 255, 250], 1_900),
        igmp,
        ipv6("ff02::2", 58, &[133, 0, 0, 0, 0, 0, 0, 0]),
        ipv6("ff02::16", 0, &mld),
        ipv6("ff02::fb", 17, &[0x14, 0xe9, 0x14, 0xe9, 0, 8, 0, 0]),
        ipv6("ff02::1:3", 17, &[0x14, 0xeb, 0x14, 0xeb, 0, 8, 0, 0]),
    ]
}

fn sent(text: &str, packets: &[Vec<u8>]) -> (u64, u64) {
    let mut host = host(text, 1, 10);
    for packet in packets {
        send(&mut host, Instant::ZERO, packet);
    }
    let sent = host.site.pipelines[0].channel.counters().sent.packets;
    (sent, drops(&host, Drop::HostMulticast))
}

#[test]
fn multicast_of_the_host_for_itself_stays_here_and_other_multicast_is_carried() {
    let ours = for_itself();
    let count = ours.len() as u64;
    let point_to_point = text(7_001, 7_002, KEY);
    assert_eq!(sent(&point_to_point, &ours), (0, count));
    // Forwarded from another host, to a group of an application, to one host, and neighbor discovery.
    let others = [
        to_port([10, 20, 0, 7], [239, 255, 255, 250], 1_900),
        to_port([10, 0, 0, 1], [239, 1, 2, 3], 5_004),
        to_port([10, 0, 0, 1], [10, 0, 0, 2], 5_353),
        ipv6("ff02::1:ff00:2", 58, &[135, 0, 0, 0, 0, 0, 0, 0]),
        ipv6("fe80::2", 58, &[133, 0, 0, 0, 0, 0, 0, 0]),
    ];
    assert_eq!(sent(&point_to_point, &others), (others.len() as u64, 0));
    // With routed multicast all of it is carried.
    let routed = point_to_point.replace("\"::/0\"", "\"::/0\", \"224.0.0.0/4\"");
    assert_eq!(sent(&routed, &ours), (count, 0));
    // No octets are a packet, and none of them panics.
    for len in 0..48 {
        let host = HostMulticast::of(&config(&point_to_point)).unwrap();
        ours.iter().for_each(|packet| _ = host.has(packet.get(..len).unwrap_or(packet)));
    }
}

/// Octets of both ends in each of three days, between two ends of which one has a keepalive and a budget.
fn idle_days(budget: &str) -> (SiteConfig, [u64; 3]) {
    let first = text(7_001, 7_002, KEY).replace("listen", &format!("keepalive = \"25s\"\n{budget}listen"));
    let mut hosts = vec![host(&first, 1, 10), host(&text(7_002, 7_001, KEY), 1, 20)];
    let config = hosts[0].config.clone();
    let octets =
        |hosts: &[Host]| hosts.iter().map(|host| host.site.counters().sent.carrier_octets).sum::<u64>();
    let mut now = Instant::from_millis(1);
    let mut days = [0; 3];
    for (day, spent) in days.iter_mut().enumerate() {
        let before = octets(&hosts);
        let end = Instant::from_millis(1) + crate::idle::DAY * (day as u32 + 1);
        settle(&mut hosts, now, &mut |_| 1);
        while let Some(at) = hosts.iter().filter_map(|host| host.site.poll_at()).min().filter(|at| *at <= end)
        {
            now = at.max(now);
            settle(&mut hosts, now, &mut |_| 1);
        }
        *spent = octets(&hosts) - before;
    }
    (config, days)
}

#[test]
fn a_budget_for_idle_octets_is_kept_and_told() {
    let (config, days) = idle_days("");
    assert!(config.idle.is_none() && days.iter().all(|octets| *octets > 160_000), "{days:?}");
    for budget in [2_000, 16_000, 100_000, 1_000_000] {
        let (config, days) = idle_days(&format!("idle_budget = {budget}\n"));
        println!("budget {budget}: {days:?}");
        assert!(days.iter().all(|octets| *octets <= budget), "{budget}: {days:?}");
        let idle = config.idle.unwrap();
        let Others::Peers(peers) = &config.others else { panic!("peers") };
        assert_eq!(peers[0].keepalive, Some(idle.keepalive));
        // Most of the budget is used, or as much as is wanted.
        assert!(idle.keepalive == idle.wanted || days[1] > budget / 2, "{budget}: {days:?}");
        assert_eq!(idle.keepalive == idle.wanted, idle.reachable() >= 1.0);
    }
}

#[test]
fn a_budget_is_kept_while_nobody_answers() {
    let first = text(7_001, 7_002, KEY).replace("listen", "keepalive = \"25s\"\nidle_budget = 16000\nlisten");
    let mut hosts = vec![host(&first, 1, 10)];
    let end = Instant::ZERO + crate::idle::DAY;
    while let Some(at) = hosts[0].site.poll_at().filter(|at| *at <= end) {
        settle(&mut hosts, at, &mut |_| 1);
    }
    let octets = hosts[0].site.counters().sent.carrier_octets;
    assert!((10_000..=16_000).contains(&octets), "{octets}");
}
