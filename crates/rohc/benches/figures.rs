//! Tables of the memory that compression takes and of the octets that it saves. They do not depend on the speed of
//! the machine.
//!
//! `cargo bench -p thinair-rohc --bench figures` prints
//!
//! - octets of memory per context and side, of this machine's build;
//! - octets of compressed TCP headers, by the content of a flow, in U-mode and O-mode, without and with timestamps;
//! - octets of a CoAP GET on the wire: in IR (the first packet), FO (the first IR-DYN) and SO (the first UO-0), on
//!   CID 0 of a channel with small CIDs, beside those of rohc-lib for the same packet.
//!
//! The figures of rohc-lib (master of 2019-09-24) were measured elsewhere, with a GET of the same length.

use thinair_rohc::storage::{TcpRoom, Template};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileId, ProfileSet, Refresh,
};

use common::tcp::{Outer, TcpPacket, timestamps};

#[path = "../tests/common/mod.rs"]
mod common;
mod get;

/// Octets of the index of flows per context: two buckets of two octets.
const INDEX: usize = 2 * 2;

/// Limit for the octets per context and side, with a block of extension headers and without templates.
const BAR: usize = 512;

/// Limit for the octets per context and side with the place of a flow of TCP.
const TCP_BAR: usize = 768;

/// Creates the packet with that count.
type Get = fn(u16) -> Vec<u8>;

fn main() {
    memory();
    connections();
    sizes();
}

/// Kind of a TCP flow: its name, the number of packets before those that are counted, the number of those, and the
/// changes before each.
type TcpFlowKind = (&'static str, usize, usize, fn(&mut TcpPacket, usize));

/// Average header of rohc-lib for acknowledgments with timestamps over IPv4, in octets (measured elsewhere).
const ROHC_LIB_ACKS: &str = "10.47 (acknowledgments over IPv4 with timestamps)";

const KINDS: [TcpFlowKind; 6] = [
    ("new connection, 6 packets", 20 * 6, 6, short),
    ("acknowledgments, from the first", 0, 500, acknowledge),
    ("acknowledgments, settled", 100, 400, acknowledge),
    ("segments of 1,448, settled", 100, 400, bulk),
    ("exchanges of 60 octets, settled", 100, 400, exchange),
    ("keep-alives, settled", 100, 400, |_, _| ()),
];

fn connections() {
    println!(
        "Octets of a TCP header on the wire, mean; connections are opened one after the other to one host"
    );
    println!("{:<34}{:^22}{:^22}", "", "IPv4, IP-ID counts", "IPv6");
    print!("{:<34}", "");
    (0..4).for_each(|i| print!("{:>11}", if i % 2 == 0 { "plain" } else { "stamps" }));
    println!();
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for (name, before, counted, change) in KINDS {
            print!("{:<34}", format!("{} {name}", mode.letter()));
            for (six, stamps) in [(false, false), (false, true), (true, false), (true, true)] {
                print!("{:>11.2}", mean(mode, six, stamps, before, counted, change));
            }
            println!();
        }
    }
    println!("rohc-lib: {ROHC_LIB_ACKS}");
    println!();
}

fn mean(
    mode: Mode,
    six: bool,
    stamps: bool,
    before: usize,
    counted: usize,
    change: fn(&mut TcpPacket, usize),
) -> f64 {
    let profiles = ProfileSet::v1().with(ProfileId::Tcp).expect("it has no rival");
    let channel = Channel::new(CidSpace::Small, 15, profiles).expect("15 is a small CID");
    let end = || {
        let compressor = Compressor::new(
            CompressorConfig::new(channel),
            CompressorMemory::owned(channel.sizes().blocks(0)),
        );
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::new(
            compressor,
            Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(0))),
        )
    };
    let (mut near, mut far) = (end(), end());
    let mut packet = TcpPacket::new(vec![Outer::new(six)], 4_000);
    let (mut rohc, mut back) = ([0; 2_048], [0; 2_048]);
    let mut octets = 0;
    for count in 0..before + counted {
        let now = Instant::from_millis(20 * count as u64);
        packet.ips[0].id = packet.ips[0].id.wrapping_add(1);
        change(&mut packet, count);
        let time = 1_000 + 3 * count as u32;
        let is_syn = packet.tcp.syn;
        packet.options = match (is_syn, stamps) {
            (false, false) => Vec::new(),
            (false, true) => timestamps(time, time - 40),
            (true, false) => vec![2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7],
            (true, true) => [&[2, 4, 5, 180, 4, 2][..], &timestamps(time, 0)[2..], &[1, 3, 3, 7]].concat(),
        };
        let whole = packet.octets();
        let sent = near.send(now, &whole, &mut rohc).expect("the packet is sound");
        let len = sent.len;
        let got = far.receive(now, &rohc[..len], &mut back).expect("nothing is lost");
        assert_eq!(back[..got.len], whole);
        if count >= before {
            octets += sent.header_out;
        }
        // A packet of the other direction carries feedback.
        let len = far.send(now, &[0x60; 40], &mut rohc).expect("there is room").len;
        near.receive(now, &rohc[..len], &mut back).expect("nothing is lost");
    }
    octets as f64 / counted as f64
}

/// SYN, ACK, a request, two acknowledgments, FIN.
fn short(packet: &mut TcpPacket, count: usize) {
    let (connection, step) = ((count / 6) as u32, count % 6);
    let tcp = &mut packet.tcp;
    tcp.source_port = 40_000 + 3 * connection as u16;
    let first = 77_777_u32.wrapping_mul(connection + 1);
    tcp.sequence_number = first.wrapping_add([0, 1, 1, 101, 101, 101][step]);
    tcp.acknowledgment_number =
        if step == 0 { 0 } else { first.rotate_left(9).wrapping_add([0, 1, 1, 1, 1_449, 2_897][step]) };
    (tcp.syn, tcp.ack, tcp.fin) = (step == 0, step > 0, step == 5);
    packet.payload = vec![7; if step == 2 { 100 } else { 0 }];
}

fn acknowledge(packet: &mut TcpPacket, _: usize) {
    packet.tcp.acknowledgment_number = packet.tcp.acknowledgment_number.wrapping_add(2 * 1_448);
}

fn bulk(packet: &mut TcpPacket, _: usize) {
    packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(packet.payload.len() as u32);
    packet.payload = vec![7; 1_448];
}

fn exchange(packet: &mut TcpPacket, count: usize) {
    packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(packet.payload.len() as u32);
    packet.tcp.acknowledgment_number = packet.tcp.acknowledgment_number.wrapping_add(40 + count as u32 % 7);
    packet.tcp.psh = true;
    packet.payload = vec![7; 60];
}

fn memory() {
    println!("Octets of memory per context, for two IP headers, a window of 16 and 16 templates");
    println!(
        "{:<14}{:>9}{:>7}{:>7}{:>6}{:>6}{:>10}",
        "", "context", "block", "index", "sum", "bar", "template"
    );
    let template = size_of::<Template>();
    let (context, block) = Compressor::octets_per_context();
    let sum = context + block + INDEX;
    println!("{:<14}{context:>9}{block:>7}{INDEX:>7}{sum:>6}{BAR:>6}{template:>10}", "compressor");
    let (context, block) = Decompressor::octets_per_context();
    let sum = context + block;
    println!("{:<14}{context:>9}{block:>7}{:>7}{sum:>6}{BAR:>6}{template:>10}", "decompressor", "-");
    println!(
        "A block holds the extension headers of one list, and is taken when there are any; a template is taken"
    );
    println!("for each kind of CoAP message, at most 16 a context.");
    let place = size_of::<TcpRoom>();
    let (compressor, decompressor) =
        (Compressor::octets_per_context().0, Decompressor::octets_per_context().0);
    println!(
        "A flow of TCP takes a place of {place} and no block: {} and {}, of at most {TCP_BAR}",
        compressor + INDEX + place,
        decompressor + place
    );
    println!();
}

fn sizes() {
    println!("Octets of a CoAP GET on the wire; the last {} of them are never compressed here", get::PAYLOAD);
    println!("{:<12}{:>7}   {:>17}   {:>17}   {:>17}", "", "", "IR", "FO (IR-DYN)", "SO (UO-0)");
    print!("{:<12}{:>7}", "profile", "plain");
    (0..3).for_each(|_| print!("   {:>8}{:>9}", "thinair", "rohc-lib"));
    println!();
    // Table 3b of the measurements of rohc-lib: IR, IR-DYN and UO-0 with the payload.
    let rows: [(_, _, Get, [usize; 3]); 4] = [
        ("UDP/IPv4", ProfileId::Udp, ipv4, [36, 22, 12]),
        ("IP/IPv4", ProfileId::Ip, ipv4, [38, 28, 18]),
        ("UDP/IPv6", ProfileId::Udp, ipv6, [60, 20, 12]),
        ("IP/IPv6", ProfileId::Ip, ipv6, [62, 26, 18]),
    ];
    for (name, profile, packet, rohc_lib) in rows {
        let ours = [Format::Ir, Format::IrDyn, Format::Uo0].map(|format| first(profile, packet, format));
        print!("{name:<12}{:>7}", packet(0).len());
        for (size, theirs) in ours.iter().zip(rohc_lib) {
            print!("   {size:>8}{theirs:>9}");
        }
        println!();
    }
}

/// Octets of the first packet of a flow in this format; an IR-DYN packet is sent half way between two refreshes.
fn first(profile: ProfileId, packet: Get, format: Format) -> usize {
    let profiles = ProfileSet::of(&[profile]).expect("one profile has no rival");
    let channel = Channel::new(CidSpace::Small, 15, profiles).expect("15 is a small CID");
    let refresh = Refresh::Periodic { packets: Some(64), time: None, backoff: false };
    let config = CompressorConfig { refresh, ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
    let mut decompressor = Decompressor::new(
        DecompressorConfig::new(channel),
        DecompressorMemory::owned(channel.sizes().blocks(0)),
    );
    let (mut rohc, mut back) = ([0; 128], [0; 128]);
    for count in 0..=u16::MAX {
        let (now, packet) = (Instant::from_millis(10 * u64::from(count)), packet(count));
        let sent = compressor.compress(now, &packet, &mut rohc).expect("the packet is sound");
        let got = decompressor.decompress(now, &rohc[..sent.len], &mut back).expect("nothing is lost");
        assert_eq!(back[..got.len], packet);
        if sent.format == format {
            return sent.len;
        }
    }
    unreachable!("no {} in 65,536 packets", format.name())
}

fn ipv4(count: u16) -> Vec<u8> {
    get::over_ipv4(1, count).to_vec()
}

fn ipv6(_: u16) -> Vec<u8> {
    get::IPV6.to_vec()
}
