use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::packaging::{Packager, PackagerConfig, rtp};
use crate::site_config::{ChannelConfig, Inside, Mesh, Peer, Rekey, Seeing, Suite};
use crate::unit::SiteId;
use thinair_wire::time::Instant;

fn config(carrier: Carrier, security: Security) -> SiteConfig {
    SiteConfig {
        inside: Inside {
            on_failure: Default::default(),
            name: "thinair0".into(),
            bridged: false,
            namespace: None,
            addresses: vec![("10.0.0.1".parse().unwrap(), 24), ("fd00::1".parse().unwrap(), 64)],
            routes: Vec::new(),
            dns: Vec::new(),
            mtu: None,
            queue: None,
            segments: None,
        },
        carrier,
        security,
        channel: ChannelConfig::new(),
        others: Others::Peers(vec![Peer {
            name: "b".into(),
            address: Some("192.0.2.1:4000".parse().unwrap()),
            host: None,
            allowed: Vec::new(),
            key: None,
            public_key: None,
            keepalive: None,
            learns_keepalive: false,
            pid: None,
        }]),
        hold: Vec::new(),
        tariff: None,
        idle: None,
        bare_keepalive: false,
        seeing: Seeing::default(),
        offloads: true,
        user: None,
        state: PathBuf::new(),
        runtime: None,
    }
}

fn udp(packaging: Packaging, mtu: u16) -> Carrier {
    let listen = "0.0.0.0:4000".parse().unwrap();
    Carrier::Udp { packaging, listen, group: None, ttl: 1, mtu, rtp: false }
}

fn serial(mtu: u16, crc: bool) -> Carrier {
    Carrier::Serial { path: PathBuf::new(), speed: None, framing: Framing::Cobs, crc, mtu }
}

fn ts(per_datagram: u8) -> Packaging {
    Packaging::Ts {
        pid: thinair_ule::Pid::new(0x100).unwrap(),
        per_datagram,
        flush: Duration::ZERO,
        psi: None,
        bitrate: None,
        npa: None,
    }
}

const GSE: Packaging = Packaging::Gse {
    flush: Duration::ZERO,
    npa: None,
    total_length: thinair_ule::gse::TotalLength::Checked,
    divided: false,
};

fn key(suite: Suite) -> Security {
    Security::Key { path: Some(PathBuf::new()), private: None, suite, negotiates: false, rekey: Rekey::Auto }
}

#[test]
fn a_sealed_datagram_over_ipv4() {
    let budget = Budget::of(&config(udp(Packaging::Packed, 1_500), key(Suite::ChaCha20Poly1305))).unwrap();
    // 1,500 less IP, UDP, a header with the whole counter, and the tag.
    assert_eq!((budget.largest_datagram, budget.largest_body, budget.largest_unit), (1_472, 1_446, 1_445));
    assert_eq!((budget.mtu, budget.mrru, budget.is_cut), (1_429, 1_536, false));
    assert_eq!(budget.overhead(), 48);
    assert_eq!(
        budget.to_string(),
        "TUN MTU            1429 octets, the maximum of the carrier, at least 1280\n\
         largest datagram   1472 octets\n\
         largest unit       1445 octets\n\
         MRRU               1536 octets: segments only for long chains of headers\n\
         around a packet      48 octets\n\
         \x20 outer IPv4         20\n\
         \x20 UDP                 8\n\
         \x20 seal header         4 (and 6 with the whole counter)\n\
         \x20 tag                16\n\
         \x20 packaging           0 (and 1 or 2 per further packet in a datagram)\n"
    );
}

#[test]
fn a_way_over_ipv6_has_less_room() {
    let mut config = config(udp(Packaging::Packed, 1_500), Security::Insecure);
    assert_eq!(Budget::of(&config).unwrap().mtu, 1_454);
    let Others::Peers(peers) = &mut config.others else { unreachable!() };
    peers[0].address = Some("[::ffff:192.0.2.1]:4000".parse().unwrap());
    assert_eq!(Budget::of(&config).unwrap().mtu, 1_454);
    let Others::Peers(peers) = &mut config.others else { unreachable!() };
    peers[0].address = Some("[2001:db8::1]:4000".parse().unwrap());
    let budget = Budget::of(&config).unwrap();
    assert_eq!((budget.mtu, budget.layers[0].name), (1_434, "outer IPv6"));
    let Others::Peers(peers) = &mut config.others else { unreachable!() };
    peers[0].address = None;
    assert_eq!(Budget::of(&config).unwrap().mtu, 1_454);
    if let Carrier::Udp { listen, .. } = &mut config.carrier {
        *listen = "[::]:4000".parse().unwrap();
    }
    assert_eq!(Budget::of(&config).unwrap().mtu, 1_434);
}

/// MRRU must be equal at both ends, which have MTUs of their own.
#[test]
fn mrru_is_the_same_with_every_mtu_up_to_1500() {
    for mtu in [576, 1_492, 1_500] {
        let config = config(udp(Packaging::Packed, mtu), key(Suite::ChaCha20Poly1305));
        assert_eq!(Budget::of(&config).unwrap().mrru, 1_536);
    }
    let jumbo = config(udp(Packaging::Packed, 9_000), key(Suite::ChaCha20Poly1305));
    let budget = Budget::of(&jumbo).unwrap();
    assert_eq!(budget.mrru, budget.mtu + 32 + 4);
}

#[test]
fn ts_packets_behind_an_rtp_header_have_room() {
    let mut carrier = udp(ts(7), 1_500);
    if let Carrier::Udp { rtp, .. } = &mut carrier {
        *rtp = true;
    }
    let config = config(carrier, Security::Open);
    let budget = Budget::of(&config).unwrap();
    let start = rtp::Start { ssrc: 1, sequence_number: 1 };
    let packager = PackagerConfig { rtp: Some(start), ..PackagerConfig::new(budget.largest_body) };
    assert!(Packager::new(Instant::ZERO, &ts(7), &config.others, packager).is_ok());
}

#[test]
fn a_narrow_line_cuts_packets() {
    let mut config = config(serial(256, true), key(Suite::AesCcm8));
    let budget = Budget::of(&config).unwrap();
    assert_eq!((budget.mtu, budget.largest_body, budget.is_cut), (1_280, 239, true));
    assert_eq!(budget.mrru, 1_500 + 32 + 4);
    assert_eq!(budget.overhead(), 2 + 4 + 3 + 8);
    config.channel.mrru = Some(0);
    let error = Budget::of(&config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "packets of 1280 octets need units of 1296, and the carrier has room for 238: set MRRU, which is 0, to at least \
         1300 to segment them (or omit it), or raise the MTU of the carrier"
    );
    config.channel.mrru = Some(1_299);
    assert!(matches!(Budget::of(&config), Err(BudgetError::Mrru { least: 1_300, .. })));
    config.channel.mrru = Some(1_300);
    assert_eq!(Budget::of(&config).unwrap().mrru, 1_300);
    config.inside.bridged = true;
    assert!(matches!(Budget::of(&config), Err(BudgetError::Bridge { mtu: 1_280, need: 1_310, room: 238 })));
    config.inside.bridged = false;
    config.security = Security::Insecure;
    config.carrier = serial(21, true);
    assert!(matches!(Budget::of(&config), Err(BudgetError::Narrow { mtu: 21, overhead: 7 })));
}

/// A handshake cannot be segmented: if its messages do not fit, there will be no session.
#[test]
fn keys_are_agreed_on_in_one_datagram() {
    let mut config = config(serial(90, true), key(Suite::AesCcm8));
    assert_eq!(
        Budget::of(&config).unwrap_err().to_string(),
        "a carrier MTU of 90 octets allows datagrams of 90, and the key exchange needs 91: set the carrier's `mtu` to at \
         least 91 at both ends"
    );
    config.carrier = serial(91, true);
    assert!(Budget::of(&config).is_ok());
    config.carrier = serial(64, true);
    config.security = Security::Insecure;
    assert!(Budget::of(&config).is_ok());
    // Announcements are shorter than requests.
    config.security = key(Suite::AesCcm8);
    config.others = mesh();
    config.carrier = udp(Packaging::Packed, 28 + 74);
    assert!(matches!(Budget::of(&config), Err(BudgetError::Keys { room: 74, need: 75, least: 103, .. })));
    config.carrier = udp(Packaging::Packed, 103);
    assert!(Budget::of(&config).is_ok());
}

#[test]
fn what_is_not_sealed_says_whose_it_is_where_there_are_many() {
    let mut config = config(udp(Packaging::Packed, 1_500), Security::Insecure);
    assert_eq!(Budget::of(&config).unwrap().largest_body, 1_471);
    config.others = mesh();
    let budget = Budget::of(&config).unwrap();
    assert_eq!((budget.largest_body, budget.layers[2].octets), (1_470, 2));
}

fn mesh() -> Others {
    Others::Mesh(Mesh { own: SiteId::new(1), to: None, feedback: false, sites: Vec::new() })
}

#[test]
fn a_given_mtu_is_honoured_and_checked() {
    let mut config = config(udp(Packaging::Packed, 1_500), key(Suite::ChaCha20Poly1305));
    config.inside.mtu = Some(1_500);
    let budget = Budget::of(&config).unwrap();
    assert_eq!((budget.mtu, budget.is_given, budget.is_cut), (1_500, true, true));
    config.inside.mtu = Some(1_279);
    assert_eq!(Budget::of(&config).unwrap_err(), BudgetError::TooSmallForIpv6(1_279));
    config.inside.addresses.pop();
    assert_eq!(Budget::of(&config).unwrap().mtu, 1_279);
    config.inside.routes.push(("::".parse().unwrap(), 0));
    assert_eq!(Budget::of(&config).unwrap_err(), BudgetError::TooSmallForIpv6(1_279));
    config.inside.routes.clear();
    config.inside.mtu = Some(67);
    assert_eq!(Budget::of(&config).unwrap_err(), BudgetError::TooSmall(67));
    config.inside.mtu = Some(65_535);
    assert_eq!(Budget::of(&config).unwrap_err(), BudgetError::TooLarge(65_535));
}

#[test]
fn transport_streams_carry_packets_of_any_length() {
    let budget = Budget::of(&config(udp(ts(7), 1_500), Security::Open)).unwrap();
    assert_eq!((budget.largest_body, budget.mtu, budget.is_cut), (1_316, 1_500, false));
    assert_eq!(
        Budget::of(&config(udp(ts(7), 1_300), Security::Open)).unwrap_err(),
        BudgetError::TsPackets { asked: 7, fit: 6, mtu: 1_300 }
    );
    let sealed = Budget::of(&config(udp(ts(7), 1_370), key(Suite::ChaCha20Poly1305))).unwrap();
    assert_eq!(sealed.largest_body, 1_316);
    assert!(Budget::of(&config(udp(ts(7), 1_369), key(Suite::ChaCha20Poly1305))).is_err());
    let budget = Budget::of(&config(udp(GSE, 600), Security::Open)).unwrap();
    assert_eq!((budget.largest_body, budget.mtu, budget.is_cut), (572, 1_500, false));
    assert!(matches!(Budget::of(&config(udp(GSE, 60), Security::Open)), Err(BudgetError::Narrow { .. })));
    let file = Carrier::File { packaging: ts(7), from: None, to: None };
    assert_eq!(Budget::of(&config(file, Security::Open)).unwrap().mtu, 1_500);
}

#[test]
fn integrity_is_that_of_carrier_and_seal() {
    use Integrity::{Crc32, Mic, None};
    let packed = || udp(Packaging::Packed, 1_500);
    for (carrier, security, integrity) in [
        (packed(), key(Suite::ChaCha20Poly1305), Mic),
        (packed(), key(Suite::AesCcm8), Mic),
        (packed(), key(Suite::AesCcm4), None),
        (packed(), Security::Insecure, None),
        (serial(512, true), key(Suite::AesCcm8), Mic),
        (serial(512, true), key(Suite::AesCcm4), Crc32),
        (serial(512, false), key(Suite::AesCcm4), None),
        (serial(512, false), key(Suite::AesCcm8), Mic),
        (serial(512, true), Security::Insecure, Crc32),
        (serial(512, false), Security::Insecure, None),
        (udp(ts(7), 1_500), Security::Open, Crc32),
        (udp(ts(7), 1_500), key(Suite::AesCcm4), Crc32),
        (udp(GSE, 1_500), Security::Open, None),
        (udp(GSE, 1_500), key(Suite::ChaCha20Poly1305), Mic),
    ] {
        assert_eq!(
            super::integrity(&config(carrier.clone(), security.clone())),
            integrity,
            "{carrier:?} {security:?}"
        );
    }
}
