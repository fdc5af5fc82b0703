//! A carrier of constant rate, which packets wait for.

use super::*;

#[test]
fn no_packet_is_dropped_if_packets_wait_while_the_site_is_full() {
    let text = |port, peer: u16, pids| {
        let url = format!("ule+udp://127.0.0.1:{peer}?bitrate=1M&{pids}");
        text(port, peer, KEY).replace(&format!("udp://127.0.0.1:{peer}"), &url)
    };
    let mut hosts = [
        host(&text(7_001, 7_002, "pid=0x40&peer-pid=0x41"), 1, 10),
        host(&text(7_002, 7_001, "pid=0x41&peer-pid=0x40"), 1, 20),
    ];
    let packets: Vec<_> = captured().into_iter().cycle().take(200).collect();
    let mut waiting = packets.iter();
    let mut was_full = false;
    for at in 0..2_000 {
        let now = Instant::from_millis(at);
        settle(&mut hosts, now, &mut |_| 1);
        while !hosts[0].site.is_full()
            && let Some(packet) = waiting.next()
        {
            hosts[0].handle(|site| site.handle_packet(now, packet));
        }
        was_full |= hosts[0].site.is_full();
        hosts[0].handle(|site| site.pause(now));
    }
    assert!(was_full);
    assert_eq!(drops(&hosts[0], Drop::CarrierFull), 0);
    assert_eq!(hosts[1].delivered, packets);
}
