//! Guarantees for every input: a packet that is compressed is restored bit for bit, and nothing panics.

#![allow(clippy::unwrap_used)]

mod common;

use common::{datagram, packet};
use proptest::prelude::*;
use thinair_lowpan::{
    Contexts, LinkAddress, Links, LowpanContext, LowpanSettings, UdpChecksum, compress, decompress,
};
use thinair_wire::header::ipv6::Ipv6;

fn link() -> impl Strategy<Value = LinkAddress> {
    prop_oneof![
        Just(LinkAddress::None),
        (0_u16..4).prop_map(LinkAddress::Short),
        any::<u8>().prop_map(|last| LinkAddress::Extended([2, 0, 0, 0, 0, 0, 0, last % 4])),
    ]
}

/// Addresses that share octets with each other, with links and with contexts.
fn address() -> impl Strategy<Value = [u8; 16]> {
    let prefix = prop::sample::select(vec![
        [0xFE, 0x80, 0, 0, 0, 0, 0, 0],
        [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0],
        [0x20, 0x01, 0x0D, 0xB8, 0, 1, 0, 2],
        [0xFF, 0x02, 0, 0, 0, 0, 0, 0],
        [0xFF, 0x05, 0, 0, 0, 0, 0, 0],
        [0xFF, 0x3E, 0, 64, 0x20, 0x01, 0x0D, 0xB8],
        [0xFF, 0x3E, 1, 32, 0x20, 0x01, 0x0D, 0xB8],
        [0; 8],
    ]);
    let iid = prop::sample::select(vec![
        [0, 0, 0, 0xFF, 0xFE, 0, 0, 1],
        [0, 0, 0, 0xFF, 0xFE, 0, 0x12, 0x34],
        [0, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 1, 2],
        [0, 0, 0, 1, 2, 3, 4, 5],
        [2, 0, 0, 0, 0, 0, 0, 3],
        [0; 8],
    ]);
    (prefix, iid, prop::option::weighted(0.2, (0_usize..16, any::<u8>()))).prop_map(
        |(prefix, iid, change)| {
            let mut address = [0; 16];
            address[..8].copy_from_slice(&prefix);
            address[8..].copy_from_slice(&iid);
            if let Some((at, value)) = change {
                address[at] = value;
            }
            address
        },
    )
}

prop_compose! {
    fn settings()(
        contexts in prop::collection::vec((0_u8..16, address(), 0_u8..=128), 0..6),
        elided: bool,
    ) -> LowpanSettings {
        let contexts = contexts.into_iter().fold(Contexts::NONE, |all, (id, address, length)| {
            all.with(id, LowpanContext::new(address, length).unwrap()).unwrap()
        });
        LowpanSettings { contexts, udp_checksum: if elided { UdpChecksum::Elided } else { UdpChecksum::InLine } }
    }
}

prop_compose! {
    fn header()(
        tf in prop::sample::select(vec![(0, 0), (0xB9, 0), (0x02, 0x12345), (0xB8, 0xFFFFF)]),
        hop_limit in prop::sample::select(vec![0, 1, 63, 64, 255]),
        source in address(),
        destination in address(),
    ) -> Ipv6 {
        let (traffic_class, flow_label) = tf;
        Ipv6 { traffic_class, flow_label, hop_limit, source, destination, ..Ipv6::default() }
    }
}

/// A header before the content.
#[derive(Clone, Debug)]
enum HeaderLayer {
    Ip(Ipv6),
    Extension { kind: u8, options: Vec<(u8, Vec<u8>)>, units: Option<u8> },
    Udp { ports: (u16, u16), correct: bool },
}

fn layer() -> impl Strategy<Value = HeaderLayer> {
    let port = || prop_oneof![0xF0B0..=0xF0BF_u16, 0xF000..=0xF0FF_u16, any::<u16>()];
    let kind = prop::sample::select(vec![0_u8, 43, 44, 60, 135, 51]);
    let option = (prop::sample::select(vec![0_u8, 1, 5]), prop::collection::vec(0..2_u8, 0..7));
    prop_oneof![
        header().prop_map(HeaderLayer::Ip),
        (kind, prop::collection::vec(option, 0..5), prop::option::weighted(0.1, any::<u8>()))
            .prop_map(|(kind, options, units)| HeaderLayer::Extension { kind, options, units }),
        ((port(), port()), any::<bool>()).prop_map(|(ports, correct)| HeaderLayer::Udp { ports, correct }),
    ]
}

/// A packet of layers, the last one innermost; sometimes with an octet that is changed.
fn layers() -> impl Strategy<Value = Vec<u8>> {
    (
        header(),
        prop::collection::vec(layer(), 0..6),
        prop::collection::vec(any::<u8>(), 0..20),
        prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
    )
        .prop_map(|(outer, layers, mut content, change)| {
            let mut kind = 58;
            let mut around = outer;
            let ips: Vec<_> = layers
                .iter()
                .map(|layer| {
                    if let HeaderLayer::Ip(header) = layer {
                        around = *header;
                    }
                    around
                })
                .collect();
            for (layer, ip) in layers.iter().zip(ips).rev() {
                (kind, content) = match layer {
                    HeaderLayer::Ip(header) => (41, packet(*header, kind, &content)),
                    HeaderLayer::Udp { ports, correct } => {
                        let mut datagram = datagram(&ip, ports.0, ports.1, &content);
                        if !correct {
                            datagram[6..8].fill(0);
                        }
                        (17, datagram)
                    }
                    HeaderLayer::Extension { kind: this, options, units } => {
                        (*this, extension(kind, options, *units, &content))
                    }
                };
            }
            let mut whole = packet(outer, kind, &content);
            if let Some((at, value)) = change {
                let at = at.index(whole.len());
                whole[at] = value;
            }
            whole
        })
}

fn extension(next: u8, options: &[(u8, Vec<u8>)], units: Option<u8>, content: &[u8]) -> Vec<u8> {
    let mut header = vec![next, 0];
    for (kind, value) in options {
        header.push(*kind);
        if *kind != 0 {
            header.push(value.len() as u8);
            header.extend(value);
        }
    }
    match header.len().next_multiple_of(8) - header.len() {
        0 => {}
        1 => header.push(0),
        n => header.extend([&[1, n as u8 - 2][..], &[0, 0, 0, 0, 0][..n - 2]].concat()),
    }
    header[1] = units.unwrap_or((header.len() / 8 - 1) as u8);
    header.extend_from_slice(content);
    header
}

fn comes_back(settings: &LowpanSettings, links: Links, packet: &[u8]) -> Result<(), TestCaseError> {
    let mut frame = vec![0xAA; packet.len() + 1];
    let compressed = match compress(settings, links, packet, &mut frame) {
        Ok(compressed) => compressed,
        Err(error) => {
            let is_ipv6 = packet.len() >= Ipv6::LEN && packet[0] >> 4 == 6;
            prop_assert!(!is_ipv6, "{error}");
            return Ok(());
        }
    };
    let mut back = vec![0xAA; packet.len()];
    let done = decompress(settings, links, &frame[..compressed.len], &mut back);
    let done = done.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&back[..done.len], packet);
    prop_assert_eq!((done.header_in, done.header_out), (compressed.header_out, compressed.header_in));
    // Only a packet with a wrong length grows, by its dispatch octet.
    prop_assert!(compressed.len <= packet.len() || frame[0] == 0x41);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_packet_comes_back(
        settings in settings(),
        source in link(),
        destination in link(),
        packet in layers(),
    ) {
        comes_back(&settings, Links { source, destination }, &packet)?;
    }

    #[test]
    fn random_octets_come_back(
        settings in settings(),
        source in link(),
        destination in link(),
        mut octets in prop::collection::vec(any::<u8>(), 0..120),
        fix: bool,
    ) {
        if fix && octets.len() >= Ipv6::LEN {
            octets[0] = 0x60 | octets[0] & 0xF;
            let length = (octets.len() - Ipv6::LEN) as u16;
            octets[4..6].copy_from_slice(&length.to_be_bytes());
        }
        comes_back(&settings, Links { source, destination }, &octets)?;
    }

    /// The output is a packet, which is then restored itself.
    #[test]
    fn random_frames_do_not_panic(
        settings in settings(),
        source in link(),
        destination in link(),
        mut octets in prop::collection::vec(any::<u8>(), 1..90),
        room in 0_usize..400,
        fix: bool,
    ) {
        if fix {
            octets[0] = 0b0110_0000 | octets[0] & 0b1_1111;
        }
        let links = Links { source, destination };
        let mut out = vec![0; room];
        if let Ok(done) = decompress(&settings, links, &octets, &mut out) {
            comes_back(&settings, links, &out[..done.len])?;
        }
    }
}
