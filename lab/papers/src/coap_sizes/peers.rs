//! Flows of the size table by schemes without state per flow: SCHC (RFC 8724) and 6LoWPAN (RFC 6282).

use thinair_analyze::schc::{Direction, Learner};
use thinair_lowpan::{
    Contexts, LinkAddress, Links, LowpanContext, LowpanSettings, UdpChecksum, compress, decompress,
};

use crate::traffic::{TrafficKind, TrafficPacket, TrafficVersion, packets};

/// Maximum size of a packet, in octets.
const ROOM: usize = 512;

/// Mean size of a packet, in octets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Peers {
    /// SCHC with the best rules for these packets, checksums elided.
    pub(super) schc: f64,
    /// 6LoWPAN with checksums carried; `None` over IPv4.
    pub(super) lowpan_carried: Option<f64>,
    /// 6LoWPAN with checksums elided; `None` over IPv4.
    pub(super) lowpan_elided: Option<f64>,
    /// Packets that were not restored exactly.
    pub(super) not_exact: u64,
}

/// Measures the packets of the other schemes' flows, from packet `start` on.
pub(super) fn measure(
    kind: TrafficKind,
    version: TrafficVersion,
    seed: u64,
    count: usize,
    start: usize,
) -> Peers {
    let packets = packets(kind, version, seed, count);
    let mut peers = Peers::default();
    let mean = |octets: usize| octets as f64 / (count - start) as f64;
    peers.schc = mean(schc(&packets, start, &mut peers.not_exact));
    if version == TrafficVersion::V6 {
        let mut of = |checksum| mean(lowpan(&packets[start..], checksum, &mut peers.not_exact));
        peers.lowpan_carried = Some(of(UdpChecksum::InLine));
        peers.lowpan_elided = Some(of(UdpChecksum::Elided));
    }
    peers
}

/// Octets from packet `start` on.
fn schc(packets: &[TrafficPacket], start: usize, not_exact: &mut u64) -> usize {
    let mut learner = Learner::default();
    for packet in packets {
        learner.observe(Direction::Up, &packet.octets);
    }
    let rules = learner.finish();
    let mut octets = 0;
    for packet in &packets[start..] {
        let (mut sent, mut back) = (Vec::new(), Vec::new());
        rules.compress(Direction::Up, &packet.octets, &mut sent);
        let restored = rules.decompress(Direction::Up, &sent, &mut back);
        *not_exact += u64::from(restored.is_err() || back != packet.octets);
        octets += sent.len();
    }
    octets
}

/// Best case: one context for the prefix of both hosts, whose interface identifiers derive from their link addresses.
fn lowpan(packets: &[TrafficPacket], udp_checksum: UdpChecksum, not_exact: &mut u64) -> usize {
    let mut octets = 0;
    for packet in packets {
        let [source, destination] = [8, 24].map(|at| address(&packet.octets, at));
        let contexts = LowpanContext::new(source, 64).and_then(|prefix| Contexts::default().with(0, prefix));
        let settings = LowpanSettings { contexts: contexts.unwrap_or_default(), udp_checksum };
        let links = Links { source: link_address(source), destination: link_address(destination) };
        let (mut sent, mut back) = ([0; ROOM], [0; ROOM]);
        let len = compress(&settings, links, &packet.octets, &mut sent).map_or(0, |done| done.len);
        let restored = decompress(&settings, links, &sent[..len], &mut back);
        *not_exact += u64::from(!restored.is_ok_and(|done| back[..done.len] == packet.octets));
        octets += len;
    }
    octets
}

fn address(packet: &[u8], at: usize) -> [u8; 16] {
    packet.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

/// Link address of an interface identifier. RFC 4291, appendix A.
fn link_address(address: [u8; 16]) -> LinkAddress {
    let [.., first, b, c, d, e, f, g, h] = address;
    LinkAddress::Extended([first ^ 0x02, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of microschc with rules for any Message ID, over IPv6, and two octets more over IPv4. Flow f-req has the
    /// fields of RFC 8824, c-count a random token.
    const PUBLISHED: [f64; 13] = [3.0, 18.0, 5.0, 7.0, 5.0, 29.0, 7.0, 75.0, 20.0, 30.0, 7.0, 3.0, 22.0];

    #[test]
    fn peers_restore_every_packet_and_need_no_more_than_is_published() {
        for (kind, schc) in TrafficKind::ALL.into_iter().zip(PUBLISHED) {
            for (version, ip_id) in TrafficVersion::ALL.into_iter().zip([2.0, 0.0]) {
                let peers = measure(kind, version, 3, 500, 200);
                assert_eq!(peers.not_exact, 0, "{kind:?} {version:?}");
                assert!(peers.schc <= schc + ip_id, "{kind:?} {version:?}: {}", peers.schc);
            }
        }
        assert_eq!(measure(TrafficKind::A, TrafficVersion::V6, 3, 500, 200).schc, 3.0);
    }

    #[test]
    fn lowpan_leaves_the_ports_and_the_checksum() {
        // IPHC 2, NHC 1, ports 4, checksum 2, and the CoAP message of 9.
        let peers = measure(TrafficKind::A, TrafficVersion::V6, 3, 20, 10);
        assert_eq!((peers.lowpan_carried, peers.lowpan_elided), (Some(18.0), Some(16.0)));
        assert_eq!(measure(TrafficKind::A, TrafficVersion::V4, 3, 20, 10).lowpan_carried, None);
    }
}
