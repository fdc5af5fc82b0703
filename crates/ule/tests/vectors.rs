//! SNDUs and TS Packets from other sources: RFC 4326, appendices A and B, and SNDUs that the receiver of the Linux
//! kernel (`dvb_net.c`, 6.1) was given; comments mark where it behaves differently.

mod common;

use std::time::Duration;

use common::{Got, octets, packet_with, pid, pushed, received};
use thinair_ule::extension::OptionalHeader;
use thinair_ule::sndu::{BadSndu, ReceivedSndu};
use thinair_ule::{
    Bridged, EncapsulatorConfig, EtherType, HLen, Npa, NpaFilter, Packing, ReceiverConfig, Since, Sndu,
    TimeStamp, TsPacket, Type,
};

/// RFC 4326, appendix B: an echo request of ping6.
const PING6: &str = "003f86dd00010203040560000000000d3a4020010db8300819650000000000000001
                     20010db825091962000000000000000280009d8c0638000400000000007c171763";

/// An IPv4 datagram of 28 octets with empty UDP.
const IPV4: &str = "4500001c000040004011b6ce0a0000010a0000021388138900080000";

/// Substitute of a ROHC packet.
const ROHC: &str = "00beef68656c6c6f";

/// Receiver of all vectors.
const NPA: &str = "00:01:02:03:04:05";

fn npa() -> Npa {
    NPA.parse().expect("it is one")
}

fn to_us() -> ReceiverConfig {
    ReceiverConfig { filter: NpaFilter::of(Some(npa())), ..ReceiverConfig::new(pid()) }
}

fn got(destination: Option<Npa>, type_field: u16, hex: &str) -> Got {
    Got { destination, type_field, time_stamp: None, octets: octets(hex) }
}

fn put_together(sndu: Sndu<'_>) -> Vec<u8> {
    let mut out = [0; 256];
    let len = sndu.write(&mut out).expect("it can be sent");
    out[..len].to_vec()
}

#[test]
fn appendix_b_is_written_and_read() {
    let sndu = octets(PING6);
    let pdu = &sndu[10..63];
    let ours = Sndu::pdu(EtherType::IPV6, pdu).to(npa());
    assert_eq!(put_together(ours), sndu);

    let packet = packet_with(&sndu);
    assert_eq!(pushed(EncapsulatorConfig::new(pid()), &[ours]), [packet]);
    let (deliveries, counters) = received(to_us(), &[packet]);
    let expected =
        Got { destination: Some(npa()), type_field: 0x86DD, time_stamp: None, octets: pdu.to_vec() };
    assert_eq!(deliveries, [expected]);
    assert_eq!((counters.sndus, counters.delivered, counters.octets), (1, 1, 53));

    let other = NpaFilter::of("00:01:02:03:04:06".parse().ok());
    let (deliveries, counters) = received(ReceiverConfig { filter: other, ..to_us() }, &[packet]);
    assert_eq!((deliveries, counters.npa_filtered, counters.delivered), (vec![], 1, 0));
}

#[test]
fn pdus_frames_and_extension_headers() {
    let frame = octets(&format!("0a0b0c0d0e0f0102030405060800{IPV4}"));
    let bridged = Bridged::read(&frame).expect("it is a frame");
    let (ipv4, rohc) = (octets(IPV4), octets(ROHC));
    let padding = |words| [OptionalHeader::padding(HLen::new(words).expect("it is a length"))];
    let (one, three) = (padding(1), padding(3));
    let time_stamp = [OptionalHeader::time_stamp_of(TimeStamp::new(1_234_567))];
    let frame_hex = format!("0a0b0c0d0e0f0102030405060800{IPV4}");
    // Name, SNDU, the SNDU to write, the delivery.
    let vectors = [
        (
            "IPv4, D=1",
            format!("80200800{IPV4}bdddf733"),
            Sndu::pdu(EtherType::IPV4, &ipv4),
            got(None, 0x0800, IPV4),
        ),
        (
            "IPv4, D=0",
            format!("00260800000102030405{IPV4}adffa594"),
            Sndu::pdu(EtherType::IPV4, &ipv4).to(npa()),
            got(Some(npa()), 0x0800, IPV4),
        ),
        (
            "ROHC, D=1",
            format!("800c22f1{ROHC}16ad2f67"),
            Sndu::pdu(EtherType::ROHC, &rohc),
            got(None, 0x22F1, ROHC),
        ),
        (
            "bridged, D=1",
            format!("802e0001{frame_hex}aab87598"),
            Sndu::bridged(bridged),
            got(None, 1, &frame_hex),
        ),
        (
            // Linux drops it, because it reads the Type at an offset 6 octets too large; RFC 4326, figure 11.
            "bridged, D=0",
            format!("00340001000102030405{frame_hex}6a721e96"),
            Sndu::bridged(bridged).to(npa()),
            got(Some(npa()), 1, &frame_hex),
        ),
        (
            "Extension-Padding of H-LEN 1",
            format!("802201000800{IPV4}34c23959"),
            Sndu::pdu(EtherType::IPV4, &ipv4).with_headers(&one),
            got(None, 0x0800, IPV4),
        ),
        (
            "Extension-Padding of H-LEN 3",
            format!("80260300000000000800{IPV4}93dc4ae5"),
            Sndu::pdu(EtherType::IPV4, &ipv4).with_headers(&three),
            got(None, 0x0800, IPV4),
        ),
        (
            "TimeStamp",
            format!("801203010012d68722f1{ROHC}055c009e"),
            Sndu::pdu(EtherType::ROHC, &rohc).with_headers(&time_stamp),
            Got { time_stamp: Some(1_234_567), ..got(None, 0x22F1, ROHC) },
        ),
    ];
    for (name, hex, sndu, delivered) in vectors {
        assert_eq!(put_together(sndu), octets(&hex), "{name}");
        let (deliveries, counters) = received(to_us(), &[packet_with(&octets(&hex))]);
        assert_eq!(deliveries, [delivered], "{name}");
        assert_eq!((counters.sndus, counters.crc_errors), (1, 0), "{name}");
    }
}

/// Linux drops it; RFC 5163, figure 6.
#[test]
fn pdus_of_a_pdu_concat_are_delivered_one_by_one() {
    let hex = format!("8024000322f10008{ROHC}0008{ROHC}0008{ROHC}5332b4fa");
    let rohc = octets(ROHC);
    let pdus = [&rohc[..]; 3];
    assert_eq!(put_together(Sndu::pdu_concat(EtherType::ROHC.into(), &pdus)), octets(&hex));
    let (deliveries, counters) = received(to_us(), &[packet_with(&octets(&hex))]);
    assert_eq!(deliveries, [(); 3].map(|()| got(None, 0x22F1, ROHC)));
    assert_eq!((counters.sndus, counters.delivered, counters.octets), (1, 3, 24));
}

#[test]
fn what_is_dropped_is_counted() {
    // Name, SNDU, expected counters: tests, type errors, npa, crc.
    let unknown = format!("802000ff{IPV4}e99942d4");
    let mut damaged = octets(&format!("800c22f1{ROHC}16ad2f67"));
    damaged[7] ^= 1;
    let vectors = [
        ("Test", octets("8008000074657374684d78a4"), [1, 0, 0, 0]),
        ("unknown mandatory", octets(&unknown), [0, 1, 0, 0]),
        (
            "to another one",
            put_together(Sndu::pdu(EtherType::IPV4, b"pdu").to(Npa::new([9; 6]).expect("it is one"))),
            [0, 0, 1, 0],
        ),
        ("damaged", damaged, [0, 0, 0, 1]),
    ];
    for (name, sndu, expected) in vectors {
        let (deliveries, counters) = received(to_us(), &[packet_with(&sndu)]);
        assert_eq!(deliveries, [], "{name}");
        let counted = [counters.tests, counters.type_errors, counters.npa_filtered, counters.crc_errors];
        assert_eq!(counted, expected, "{name}");
    }
    assert_eq!(put_together(Sndu::test(b"test")), octets("8008000074657374684d78a4"));
}

#[test]
fn one_sndu_is_read_alone() {
    let mut sndu = octets(&format!("800c22f1{ROHC}16ad2f67"));
    let expected =
        ReceivedSndu { destination: None, type_field: EtherType::ROHC.into(), octets: &octets(ROHC) };
    assert_eq!(ReceivedSndu::read(&sndu), Ok(expected));
    assert_eq!(ReceivedSndu::read(&sndu[..15]), Err(BadSndu::Length));
    sndu[15] ^= 1;
    assert_eq!(ReceivedSndu::read(&sndu), Err(BadSndu::Crc));
    assert_eq!(ReceivedSndu::read(&[]), Err(BadSndu::Length));
    assert_eq!(ReceivedSndu::read(&octets(PING6)).map(|sndu| sndu.type_field), Ok(Type::new(0x86DD)));
}

/// An SNDU of `octets` octets whose payload counts from 1.
struct OfSize {
    destination: Option<Npa>,
    pdu: Vec<u8>,
}

impl OfSize {
    fn new(octets: usize, destination: Option<Npa>) -> Self {
        let around = if destination.is_some() { 14 } else { 8 };
        Self { destination, pdu: (1..=octets - around).map(|i| i as u8).collect() }
    }

    fn sndu(&self) -> Sndu<'_> {
        let sndu = Sndu::pdu(EtherType::IPV4, &self.pdu);
        self.destination.map_or(sndu, |npa| sndu.to(npa))
    }
}

fn packed() -> EncapsulatorConfig {
    let packing = Packing::Threshold { wait: Duration::from_millis(10), since: Since::First };
    EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) }
}

/// Packs SNDUs of these sizes, receives them again, and returns TS Packets and SNDUs.
fn example(sizes: &[usize], destination: Option<Npa>) -> (Vec<TsPacket>, Vec<Vec<u8>>) {
    let sndus: Vec<_> = sizes.iter().map(|&octets| OfSize::new(octets, destination)).collect();
    let packets = pushed(packed(), &sndus.iter().map(OfSize::sndu).collect::<Vec<_>>());
    let (deliveries, _) = received(to_us(), &packets);
    assert!(deliveries.iter().map(|got| &got.octets).eq(sndus.iter().map(|sndu| &sndu.pdu)));
    let whole = sndus
        .iter()
        .map(|sndu| {
            let mut out = vec![0; 1_000];
            let len = sndu.sndu().write(&mut out).expect("it can be sent");
            out[..len].to_vec()
        })
        .collect();
    (packets, whole)
}

/// A TS Packet as drawn in appendix A: PUSI, and the octets after the header.
fn drawn(pusi: bool, cc: u8, parts: &[&[u8]]) -> TsPacket {
    let mut packet = [0xFF; 188];
    packet[..4].copy_from_slice(&[0x47, if pusi { 0x40 } else { 0x00 }, 0x35, 0x10 | cc]);
    let payload = parts.concat();
    packet[4..4 + payload.len()].copy_from_slice(&payload);
    packet
}

#[test]
fn appendix_a_1_two_pdus_of_186_octets() {
    let (packets, sndus) = example(&[200, 200], Some(npa()));
    let [a, b] = &sndus[..] else { panic!("there are two") };
    assert_eq!((&a[..2], &b[..2]), (&[0x00, 0xC4][..], &[0x00, 0xC4][..]));
    let expected = [
        drawn(true, 0, &[&[0x00], &a[..183]]),
        drawn(true, 1, &[&[0x11], &a[183..], &b[..166]]),
        drawn(false, 2, &[&b[166..], &[0xFF, 0xFF]]),
    ];
    assert_eq!(packets, expected);
}

/// The Length of SNDU D is drawn as 0x65; 185 octets have 0xB5.
#[test]
fn appendix_a_2_usage_of_the_last_byte() {
    let (packets, sndus) = example(&[183, 182, 181, 185], Some(npa()));
    let [a, b, c, d] = &sndus[..] else { panic!("there are four") };
    assert_eq!([a[1], b[1], c[1], d[1]], [0xB3, 0xB2, 0xB1, 0xB5]);
    let expected = [
        drawn(true, 0, &[&[0x00], a]),
        drawn(true, 1, &[&[0x00], b, &[0xFF]]),
        drawn(true, 2, &[&[0x00], c, &d[..2]]),
        drawn(false, 3, &[&d[2..], &[0xFF]]),
    ];
    assert_eq!(packets, expected);
}

#[test]
fn appendix_a_3_large_sndus() {
    let (packets, sndus) = example(&[732, 284], Some(npa()));
    let [a, b] = &sndus[..] else { panic!("there are two") };
    assert_eq!((&a[..2], &b[..2]), (&[0x02, 0xD8][..], &[0x01, 0x18][..]));
    let expected = [
        drawn(true, 0, &[&[0x00], &a[..183]]),
        drawn(false, 1, &[&a[183..367]]),
        drawn(false, 2, &[&a[367..551]]),
        drawn(true, 3, &[&[0xB5], &a[551..], &b[..2]]),
        drawn(false, 4, &[&b[2..186]]),
        drawn(false, 5, &[&b[186..], &[0xFF, 0xFF]]),
    ];
    assert_eq!(packets, expected);
}

#[test]
fn appendix_a_4_the_length_field() {
    let (packets, sndus) = example(&[200, 60, 60], Some(npa()));
    let [a, b, c] = &sndus[..] else { panic!("there are three") };
    assert_eq!((&b[..2], &c[..2]), (&[0x00, 0x38][..], &[0x00, 0x38][..]));
    let expected =
        [drawn(true, 0, &[&[0x00], &a[..183]]), drawn(true, 1, &[&[0x11], &a[183..], b, c, &[0xFF, 0xFF]])];
    assert_eq!(packets, expected);
}

#[test]
fn appendix_a_5_three_pdus_of_44_octets() {
    let (packets, sndus) = example(&[52, 52, 52], None);
    let [a, b, c] = &sndus[..] else { panic!("there are three") };
    assert_eq!(a[..2], [0x80, 0x30]);
    assert_eq!(packets, [drawn(true, 0, &[&[0x00], a, b, c, &[0xFF, 0xFF]])]);
}
