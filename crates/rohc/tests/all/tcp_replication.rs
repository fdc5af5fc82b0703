//! Tests of context replication of profile 0x0006 (RFC 4164; RFC 6846, section 7.2): connections to a host with previous
//! connections.

use crate::common::SplitMix64;
use crate::common::tcp::{Outer, TcpPacket, timestamps};
use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileId, ProfileSet,
};

fn endpoint(cids: CidSpace, mode: Mode, seed: u64) -> Endpoint<'static> {
    let channel = Channel::new(cids, 15, ProfileSet::v1().with(ProfileId::Tcp).unwrap()).unwrap();
    let config = CompressorConfig { seed, ..CompressorConfig::new(channel) };
    let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Endpoint::new(compressor, Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))))
}

struct ReplicationLink {
    near: Endpoint<'static>,
    far: Endpoint<'static>,
    sent: u64,
    delivered: usize,
    /// Octets of feedback after each packet.
    feedback: Vec<usize>,
}

impl ReplicationLink {
    fn new(cids: CidSpace, mode: Mode) -> Self {
        Self {
            near: endpoint(cids, mode, 1),
            far: endpoint(cids, mode, 2),
            sent: 0,
            delivered: 0,
            feedback: Vec::new(),
        }
    }

    /// Carries a packet unless it `is_lost`, and feedback in the other direction.
    fn carry(&mut self, packet: &TcpPacket, is_lost: bool) -> Compressed {
        let octets = packet.octets();
        let now = Instant::from_millis(10 * self.sent);
        self.sent += 1;
        let (mut rohc, mut back) = (vec![0; 4096], vec![0; 4096]);
        let done = self.near.send(now, &octets, &mut rohc).unwrap();
        let len = done.len;
        if !is_lost && let Ok(got) = self.far.receive(now, &rohc[..len], &mut back) {
            assert_eq!(back[..got.len], octets, "packet {}, {:?}", self.sent, done.format);
            self.delivered += 1;
        }
        let mut octets = 0;
        while let Some(len) = self.far.poll_feedback(&mut rohc) {
            self.near.receive(now, &rohc[..len], &mut back).unwrap_err();
            octets += len;
        }
        self.feedback.push(octets);
        done
    }
}

/// Returns the packets of one side of a short connection.
fn connection(six: bool, count: u16) -> Vec<TcpPacket> {
    let mut packet = TcpPacket::new(vec![Outer::new(six)], 40_000 + 3 * count);
    packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_mul(u32::from(count) | 1);
    (packet.tcp.syn, packet.tcp.ack) = (true, false);
    packet.tcp.acknowledgment_number = 0;
    packet.ips[0].id = count.wrapping_mul(99);
    let stamp = u32::from(count) * 1_000;
    packet.options = [&[2, 4, 5, 180, 4, 2][..], &timestamps(stamp, 0)[2..], &[1, 3, 3, 7]].concat();
    let mut packets = vec![packet.clone()];
    (packet.tcp.syn, packet.tcp.ack) = (false, true);
    packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(1);
    packet.tcp.acknowledgment_number = 70_000 + u32::from(count);
    for i in 0..5 {
        packet.ips[0].id = packet.ips[0].id.wrapping_add(1);
        packet.options = timestamps(stamp + 1 + i, 500 + i);
        packet.payload = vec![7; if i == 1 { 100 } else { 0 }];
        packet.tcp.fin = i == 4;
        packets.push(packet.clone());
        packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(packet.payload.len() as u32);
    }
    packets
}

#[test]
fn a_new_connection_to_the_same_host_is_replicated() {
    for (six, cids) in [(false, CidSpace::Small), (true, CidSpace::Small), (false, CidSpace::Large)] {
        let mut link = ReplicationLink::new(cids, Mode::Optimistic);
        let mut first = Vec::new();
        for count in 0..40 {
            for (i, packet) in connection(six, count).iter().enumerate() {
                let done = link.carry(packet, false);
                if i == 0 {
                    first.push((done.format, done.header_out));
                }
            }
        }
        assert_eq!(link.delivered as u64, link.sent);
        println!("{six}, {cids:?}: {first:?}");
        let (format, whole) = first[0];
        assert_eq!(format, Format::Ir);
        let saves = if six { 26 } else { 4 };
        assert!(first[1..].iter().all(|(format, len)| *format == Format::IrCr && len + saves <= whole));
    }
}

/// RFC 4164, section 3.3.3.1: "a compressor is not allowed to use the context replication mechanism if a feedback channel is
/// not present".
#[test]
fn without_feedback_nothing_is_replicated() {
    let mut link = ReplicationLink::new(CidSpace::Small, Mode::Unidirectional);
    for packet in (0..20).flat_map(|count| connection(false, count)) {
        assert_ne!(link.carry(&packet, false).format, Format::IrCr);
    }
}

#[test]
fn another_host_or_a_context_in_doubt_is_no_base() {
    let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
    for packet in connection(true, 1) {
        link.carry(&packet, false);
    }
    // No field of the replicate chain has the Hop Limit, so it has to be that of the base.
    let mut packet = connection(true, 2).remove(0);
    packet.ips[0].ttl = 17;
    assert_eq!(link.carry(&packet, false).format, Format::Ir);
    // No packet of this flow has arrived since its TTL has changed.
    let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
    for (i, mut packet) in connection(false, 1).into_iter().enumerate() {
        packet.ips[0].ttl = if i < 4 { 64 } else { 50 };
        link.carry(&packet, i >= 4);
    }
    assert_eq!(link.carry(&connection(false, 2)[0], false).format, Format::Ir);
}

/// No loss makes a delivered packet wrong, and connections are replicated again.
#[test]
fn replicated_connections_stand_losses() {
    for seed in 0..20 {
        for loss in [3, 10, 50] {
            let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
            let mut random = SplitMix64(seed);
            let (mut replicated, mut arrived) = (0, 0);
            for packet in (0..60).flat_map(|count| connection(seed % 2 == 1, count)) {
                loop {
                    let (is_lost, before) = (random.once_in(loss), link.delivered);
                    let done = link.carry(&packet, is_lost);
                    replicated += usize::from(done.format == Format::IrCr);
                    arrived += usize::from(!is_lost);
                    // A host does not continue before the SYN has arrived.
                    if !packet.tcp.syn || link.delivered > before {
                        break;
                    }
                }
            }
            assert!(replicated > 10, "{seed}, 1 in {loss}: {replicated}");
            assert!(
                link.delivered * 10 > arrived * 6,
                "{seed}, 1 in {loss}: {} of {arrived}",
                link.delivered
            );
        }
    }
}

/// One side of a connection with Fast Open, without timestamps, as in Linux: three packets.
fn short_connection(is_client: bool, service: u16, count: u16, cookie: u8) -> Vec<TcpPacket> {
    let mut packet = TcpPacket::new(vec![Outer::new(false)], 40_000 + 3 * count);
    let client = packet.tcp.source_port;
    (packet.tcp.source_port, packet.tcp.destination_port) =
        if is_client { (client, service) } else { (service, client) };
    packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_mul(u32::from(count) | 1);
    packet.tcp.window = 65_472;
    packet.options = vec![2, 4, 0, 88, 3, 3, 10, 1];
    let ids = count.wrapping_mul(997);
    let mut packets = Vec::new();
    let mut push = |packet: &TcpPacket| packets.push(packet.clone());
    (packet.tcp.syn, packet.tcp.ack) = (true, !is_client);
    if is_client {
        packet.tcp.acknowledgment_number = 0;
        packet.ips[0].id = ids;
        packet.options.pop();
        packet.options.extend([34, 10, cookie, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1]);
        packet.payload = vec![b'G'; 20];
    } else {
        packet.tcp.acknowledgment_number = 70_000 * u32::from(count) + 21;
        packet.ips[0].id = 0;
    }
    push(&packet);
    packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(1 + packet.payload.len() as u32);
    (packet.tcp.syn, packet.tcp.ack) = (false, true);
    (packet.tcp.window, packet.options) = (64, Vec::new());
    if is_client {
        packet.tcp.acknowledgment_number = 900_000 * u32::from(count);
        (packet.payload, packet.ips[0].id) = (Vec::new(), ids.wrapping_add(1));
        push(&packet);
        packet.tcp.acknowledgment_number += 30;
        (packet.tcp.fin, packet.ips[0].id) = (true, ids.wrapping_add(2));
    } else {
        (packet.payload, packet.ips[0].id, packet.tcp.fin) = (vec![b'H'; 29], ids, true);
        push(&packet);
        packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(30);
        (packet.payload, packet.ips[0].id, packet.tcp.fin) = (Vec::new(), ids.wrapping_add(1), false);
        packet.tcp.acknowledgment_number += 1;
    }
    push(&packet);
    packets
}

/// The third connection leaves a pattern. Later ones take few octets, no feedback, and the CID of the first.
#[test]
fn connections_like_others_take_what_is_new_in_them() {
    for is_client in [true, false] {
        let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
        let mut octets = Vec::new();
        for count in 0..20 {
            let done: Vec<_> = short_connection(is_client, 8081, count, 7)
                .iter()
                .map(|packet| {
                    link.sent += 4;
                    link.carry(packet, false)
                })
                .collect();
            link.sent += 150;
            octets.push(done.iter().map(|done| done.header_out).collect::<Vec<_>>());
            if count >= 4 {
                assert!(done.iter().all(|done| done.cid.value() == 0), "{count}: {done:?}");
            }
        }
        assert_eq!(link.delivered as u64, 60);
        println!("{octets:?}, feedback {:?}", link.feedback);
        // After profile, CRCs and base: IP-ID, flags, MSN, sequence number, a port and the checksum; or the acknowledgment
        // number instead of the IP-ID, which is 0.
        let syn = if is_client { 21 } else { 23 };
        assert!(octets[4..].iter().all(|octets| octets[0] <= syn), "{octets:?}");
        // Nothing waits for the last packet, and it depends only on the one before it.
        let last = if is_client { 11 } else { 10 };
        assert!(octets[4..].iter().all(|octets| octets[2] <= last), "{octets:?}");
        let elements = link.feedback.iter().rposition(|len| *len > 0).unwrap();
        assert!(elements < 4 * 4, "{:?}", link.feedback);
    }
}

/// A new cookie is sent once, and is then established.
#[test]
fn a_pattern_is_renewed_when_its_options_change() {
    let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
    let mut syns = Vec::new();
    for count in 0..9 {
        let cookie = if count < 5 { 1 } else { 2 };
        for (i, packet) in short_connection(true, 8081, count, cookie).iter().enumerate() {
            let done = link.carry(packet, false);
            if i == 0 {
                syns.push(done.header_out);
            }
        }
    }
    assert!(syns[5] > syns[4] + 8 && syns[6..].iter().all(|len| *len <= syns[4] + 1), "{syns:?}");
}

/// Changes of a base since its acknowledgment may be lost, so that nothing is left out because of them.
#[test]
fn what_was_not_acknowledged_is_said_again() {
    let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
    let mut first = connection(false, 1);
    let mut next = connection(false, 2).remove(0);
    for (i, packet) in first.iter_mut().enumerate() {
        packet.tcp.window = if i < 5 { 500 } else { 700 };
        link.carry(packet, i >= 5);
    }
    next.tcp.window = 700;
    let before = link.delivered;
    assert_eq!((link.carry(&next, false).format, link.delivered), (Format::IrCr, before + 1));
}

/// Its CID belonged to another flow, whose ports an IR-DYN packet would leave.
#[test]
fn a_flow_of_which_nothing_was_heard_is_repaired_as_a_whole() {
    let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
    for count in 0..6 {
        for packet in short_connection(false, 8081, count, 1) {
            link.carry(&packet, false);
        }
        link.sent += 100;
    }
    // The response follows the SYN-ACK at once, which is lost.
    let [syn, mut response, _] = short_connection(false, 8081, 6, 1).try_into().ok().unwrap();
    let taken = link.carry(&syn, true);
    let mut formats = Vec::new();
    let before = link.delivered;
    while link.delivered == before && formats.len() < 20 {
        formats.push(link.carry(&response, false).format);
        response.ips[0].id = response.ips[0].id.wrapping_add(1);
        link.sent += 10;
    }
    assert_eq!(taken.cid.value(), 0);
    assert_eq!(formats.last(), Some(&Format::Ir), "{formats:?}");
    assert!(!formats.contains(&Format::IrDyn), "{formats:?}");
}

/// Services, options that change, a decompressor that loses its contexts, losses: delivered packets are correct (`carry`
/// checks), and most packets that arrive are delivered.
#[test]
fn patterns_stand_losses() {
    for seed in 0..60 {
        let mut random = SplitMix64(seed);
        let loss = [3, 6, 12, 40][seed as usize % 4];
        let mut link = ReplicationLink::new(CidSpace::Small, Mode::Optimistic);
        let (mut cookie, mut arrived, mut replicated) = (0, 0, 0);
        for count in 0..150 {
            if random.once_in(20) {
                cookie += 1;
            }
            if seed % 2 == 1 && random.once_in(50) {
                link.far = endpoint(CidSpace::Small, Mode::Optimistic, seed);
            }
            let service = if random.once_in(3) { 80 } else { 8081 };
            let is_client = random.once_in(2);
            let mut packets = short_connection(is_client, service, count, cookie);
            if random.once_in(5) {
                // The connection ends in one of several ways.
                packets.truncate(2);
            }
            let mut has_begun = false;
            for (i, packet) in packets.iter_mut().enumerate() {
                if random.once_in(10) {
                    packet.tcp.window = 65_000 + count;
                }
                // A server sends its response at once; otherwise a host continues only after its SYN has arrived.
                if i == 2 && !has_begun {
                    break;
                }
                loop {
                    let (is_lost, before) = (random.once_in(loss), link.delivered);
                    link.sent += random.below(20);
                    replicated += usize::from(link.carry(packet, is_lost).format == Format::IrCr);
                    arrived += usize::from(!is_lost);
                    has_begun |= i == 0 && link.delivered > before;
                    if link.delivered > before || !random.once_in(2) && (i > 0 || !is_client) {
                        break;
                    }
                }
            }
        }
        assert!(replicated > 50, "{seed}, 1 in {loss}: {replicated}");
        println!("{seed}, 1 in {loss}: {} of {arrived}, {replicated}", link.delivered);
        assert!(link.delivered * 10 > arrived * 6, "{seed}, 1 in {loss}: {} of {arrived}", link.delivered);
    }
}
