//! Ethernet frames of a TAP interface: to the only peer, or to all sites of a mesh.

use super::*;

/// Frames to a station, to all, and to groups; the first nibbles of their addresses are no versions of IP.
fn frames() -> Vec<Vec<u8>> {
    let frame = |to: [u8; 6], ether_type: [u8; 2], payload: &[u8]| {
        [&to[..], &[0x02, 0, 0, 0, 0, 9], &ether_type, payload].concat()
    };
    let four = datagram([10, 0, 0, 1], [10, 0, 0, 2]);
    let six = captured().swap_remove(0);
    vec![
        frame([0x02, 0, 0, 0, 0, 1], [0x08, 0x00], &four),
        frame([0xFF; 6], [0x08, 0x06], &[7; 28]),
        frame([0x33, 0x33, 0, 0, 0, 1], [0x86, 0xDD], &six),
        frame([0x46, 0, 0, 0, 0, 1], [0x08, 0x00], &four),
        frame([0x62, 0, 0, 0, 0, 1], [0x88, 0xB5], &[]),
    ]
}

#[test]
fn frames_go_to_the_only_peer() {
    for security in [KEY, "insecure = true"] {
        let bridged = |port, peer, start| {
            host(&text(port, peer, security).replace("[carrier]", "tap = true\n[carrier]"), 1, start)
        };
        let mut hosts = [bridged(7_001, 7_002, 10), bridged(7_002, 7_001, 20)];
        for (frame, at) in frames().iter().cycle().take(50).zip(0..) {
            let now = Instant::from_millis(20 * at);
            send(&mut hosts[0], now, frame);
            settle(&mut hosts, now, &mut |_| 1);
            send(&mut hosts[1], now, frame);
            settle(&mut hosts, now, &mut |_| 1);
        }
        let sent: Vec<_> = frames().into_iter().cycle().take(50).collect();
        assert!(hosts.iter().all(|host| host.delivered == sent), "{security}");
    }
}

#[test]
fn frames_go_to_all_sites_of_a_mesh() {
    let [mut one, mut two, mut three] = [1, 2, 3].map(|own| mesh::site(own, "tap = true", None));
    for frame in frames() {
        one.handle_packet(Instant::ZERO, &frame);
        one.pause(Instant::ZERO);
        while let Some(SiteOutput::Datagram { octets, .. }) = one.poll_output() {
            for other in [&mut two, &mut three] {
                other.handle_datagram(Instant::ZERO, None, &mut octets.to_vec());
                let delivered = other.poll_output();
                assert!(matches!(delivered, Some(SiteOutput::Packet { octets, .. }) if octets == frame));
            }
        }
        assert_eq!(one.counters().drops.sum(), 0);
    }
    assert!([two, three].iter().all(|site| site.counters().received.packets == frames().len() as u64));
}

#[test]
fn no_one_is_asked_for_shorter_frames() {
    let config = config(&text(7_001, 7_002, KEY).replace("[carrier]", "tap = true\n[carrier]"));
    let budget = Budget::of(&config).unwrap();
    let seal = Seal::Insecure(Insecure::peers(vec![None]));
    let mut site = Site::new(Instant::ZERO, &config, &budget, Some(seal), &mut random(1)).unwrap();
    // As an IPv4 packet, it would be too long, and must not be fragmented.
    let mut frame = datagram([192, 0, 2, 1], [192, 0, 2, 2]);
    frame.resize(3_000, 0);
    site.handle_packet(Instant::ZERO, &frame);
    assert!(site.poll_output().is_none());
    assert_eq!(site.counters().drops.of(Drop::TooLong), 1);
}
