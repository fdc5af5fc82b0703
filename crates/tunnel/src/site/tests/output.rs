//! The queue of outputs has room for those of any input, and its memory is bounded.

use thinair_session::FEW;

use super::*;

/// A packet that its channel compresses; each number is another flow.
fn packet(number: u8, octets: usize) -> Vec<u8> {
    let mut packet = datagram([10, 0, 0, 1], [10, 0, 1, number]);
    packet.resize(octets, number);
    let octets = octets as u16;
    packet[2..4].copy_from_slice(&octets.to_be_bytes());
    packet[10..12].fill(0);
    let sum = thinair_wire::checksum::checksum(&packet[..20]).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet[24..26].copy_from_slice(&(octets - 20).to_be_bytes());
    packet
}

/// A hub with the maximum number of peers, each reachable.
fn hub() -> Host {
    let mut text = "[inside]\naddress = [\"10.0.0.1/16\"]\n[carrier]\nurl = \"udp://:7001\"\n\
                    [security]\ninsecure = true\n"
        .to_owned();
    for peer in 1..=FEW {
        text += &format!(
            "[[peer]]\nname = \"p{peer}\"\naddress = \"127.0.0.1:{}\"\nallowed = [\"10.0.1.{peer}/32\"]\n",
            8_000 + peer
        );
    }
    host(&text, 1, 10)
}

#[test]
fn bodies_of_all_peers_go_in_one_pause() {
    let mut hub = hub();
    for round in 0..5 {
        for peer in 1..=FEW as u8 {
            hub.site.handle_packet(Instant::from_millis(round), &packet(peer, 1_200));
        }
        hub.handle(|site| site.pause(Instant::from_millis(round)));
    }
    let drops = hub.site.counters().drops;
    assert_eq!(hub.out.iter().map(|(to, _)| to).collect::<std::collections::BTreeSet<_>>().len(), FEW);
    assert_eq!((drops.of(Drop::CarrierFull), drops.of(Drop::NoRoute)), (0, 0));
}

#[test]
fn the_longest_packet_and_the_fullest_datagram_fit() {
    let mut hosts = pair("insecure = true");
    let now = Instant::from_millis(1);
    // Contexts are established, so that packets compress to a few octets each.
    for _ in 0..20 {
        send(&mut hosts[0], now, &packet(1, 28));
        settle(&mut hosts, now, &mut |_| 1);
    }
    let before = hosts[1].delivered.len();
    hosts[0].site.keep_together(usize::MAX);
    let mut sent = 0;
    while hosts[0].out.is_empty() {
        hosts[0].handle(|site| site.handle_packet(now, &packet(1, 28)));
        sent += 1;
    }
    hosts[0].handle(|site| site.pause(now));
    settle(&mut hosts, now, &mut |_| 1);
    assert!(sent > 100, "{sent} packets in a datagram");
    assert_eq!(hosts[1].delivered.len() - before, sent);
    // Sent in segments.
    let long = packet(1, usize::from(Budget::of(&hosts[0].config).unwrap().mtu));
    send(&mut hosts[0], now, &long);
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!(hosts[1].delivered.last(), Some(&long));
    for host in &hosts {
        assert_eq!((drops(host, Drop::CarrierFull), drops(host, Drop::InterfaceRefused)), (0, 0));
    }
}

#[test]
fn outputs_of_a_caller_that_does_not_poll_are_dropped_and_counted() {
    let mut hosts = pair("insecure = true");
    let packet = packet(1, 1_200);
    let [here, there] = &mut hosts[..] else { panic!("a pair") };
    for number in 0..3_000 {
        let now = Instant::from_millis(number);
        here.site.handle_packet(now, &packet);
        here.site.pause(now);
    }
    let (sent, dropped) = (here.site.counters().sent.datagrams, drops(here, Drop::CarrierFull));
    assert!(dropped > 0 && sent > 500, "{sent} sent, {dropped} dropped");
    here.handle(|_| {});
    assert_eq!(here.out.len() as u64, sent);
    for _ in 0..4 {
        for (_, datagram) in &here.out {
            there.site.handle_datagram(Instant::ZERO, Some(here.address.into()), &mut datagram.clone());
        }
    }
    let delivered = there.site.counters().received.packets;
    assert!(drops(there, Drop::InterfaceRefused) > 0 && delivered > 500, "{delivered}");
    there.handle(|_| {});
    assert_eq!(there.delivered.len() as u64, delivered);
}

#[test]
fn a_packet_that_the_interface_refuses_was_not_received() {
    let mut hosts = pair("insecure = true");
    send(&mut hosts[0], Instant::ZERO, &packet(1, 100));
    let (_, mut datagram) = hosts[0].out.pop_front().unwrap();
    let from = SocketAddr::from(([127, 0, 0, 1], 7_001));
    let site = &mut hosts[1].site;
    site.handle_datagram(Instant::ZERO, Some(from.into()), &mut datagram);
    assert_eq!(site.counters().received.packets, 1);
    let Some(SiteOutput::Packet { receipt, octets }) = site.poll_output() else { panic!("no packet") };
    assert_eq!(octets.len(), 100);
    site.note_refused_packet(receipt);
    let received = site.counters().received;
    assert_eq!((received.packets, received.octets, received.compressed_octets), (0, 0, 0));
    assert_eq!(site.sources[0].counters.received.packets, 0);
    assert_eq!(drops(&hosts[1], Drop::InterfaceRefused), 1);
}
