//! Table of the figures with a limit for this crate: nanoseconds, instructions and octets, beside those of rohc-lib.
//!
//! `cargo bench -p thinair-rohc --bench numbers` measures time and memory itself, and reads the instructions from the
//! output of the benchmark `instructions` in the target folder; `make bench` runs that first. Packets are in steady
//! state (UO-0), except in the row of new flows, where each one opens a flow and every context is in use. Pairs are
//! compress/decompress; a dash stands for a value that was not published or not measured.
//!
//! Times are medians over batches, on this machine at this time. Those of rohc-lib (the best of 2.2.0, 2.3.0 and
//! master of 2019-09-24) were measured elsewhere, so that only ratios are comparable between machines: `throughput`
//! prints them if rohc-lib is available.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant as Clock;

use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, ProfileId, ProfileSet, Refresh,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

mod get;

/// Number of contexts of the channel: the largest with large CIDs.
const CONTEXTS: u32 = 16_384;

/// Number of packets between two readings of the clock: few, so that they stay in the cache, and a batch seldom meets
/// an interrupt.
const BATCH: usize = 1_024;

/// Number of batches per time.
const BATCHES: usize = 301;

/// Limit for the octets of memory per context and side, with a block of extension headers.
const MEMORY_BAR: usize = 512;

/// Values of compressor and decompressor.
type SidePair = [u32; 2];

/// A row of the table.
struct FigureRow {
    name: &'static str,
    /// Values of rohc-lib, and limits: nanoseconds, instructions.
    theirs: [Option<SidePair>; 2],
    bar: [Option<SidePair>; 2],
    /// Number of flows that take turns. `None`: each packet opens one.
    flows: Option<u32>,
    /// Creates the packet of a flow with that count.
    packet: fn(u32, u32) -> Vec<u8>,
    /// The case of the benchmark `instructions`.
    case: Option<&'static str>,
}

const ROWS: [FigureRow; 8] = [
    FigureRow {
        name: "UDP/IPv4",
        theirs: [Some([147, 153]), Some([2_179, 2_224])],
        bar: [Some([60, 60]), Some([800, 800])],
        flows: Some(1),
        packet: udp_ipv4,
        case: Some("udp_ipv4_uo_0"),
    },
    FigureRow {
        name: "RTP/UDP/IPv4",
        theirs: [Some([232, 182]), Some([3_170, 2_590])],
        bar: [Some([90, 90]), Some([1_200, 1_200])],
        flows: Some(1),
        packet: rtp_udp_ipv4,
        case: Some("rtp_udp_ipv4_uo_0"),
    },
    FigureRow {
        name: "ESP/IPv4",
        theirs: [Some([156, 147]), Some([3_779, 2_125])],
        bar: [Some([60, 60]), None],
        flows: Some(1),
        packet: esp_ipv4,
        case: Some("esp_ipv4_uo_0"),
    },
    FigureRow {
        name: "UDP/IPv6",
        theirs: [Some([341, 150]), Some([5_391, 2_118])],
        bar: [Some([70, 70]), Some([900, 900])],
        flows: Some(1),
        packet: udp_ipv6,
        case: Some("udp_ipv6_uo_0"),
    },
    FigureRow {
        name: "TCP/IPv4, ACKs",
        theirs: [Some([319, 336]), Some([4_764, 4_609])],
        bar: [Some([150, 150]), Some([1_800, 1_800])],
        flows: Some(1),
        packet: tcp_acks,
        case: Some("tcp_ipv4_acks_with_timestamps_seq_4"),
    },
    FigureRow {
        name: "TCP/IPv4, 20 octets",
        theirs: [Some([319, 336]), Some([4_764, 4_609])],
        bar: [Some([150, 150]), Some([1_800, 1_800])],
        flows: Some(1),
        packet: tcp_data,
        case: Some("tcp_ipv4_20_octets_with_timestamps_seq_2"),
    },
    FigureRow {
        name: "16,384 flows, UDP",
        theirs: [Some([692, 447]), None],
        bar: [Some([120, 120]), None],
        flows: Some(CONTEXTS),
        packet: udp_ipv4,
        case: None,
    },
    FigureRow {
        name: "new flow, table full",
        theirs: [Some([17_775, 440]), None],
        bar: [Some([400, 400]), None],
        flows: None,
        packet: udp_ipv4,
        case: None,
    },
];

fn main() {
    println!("{:<22}{:^26}{:^26}{:^26}", "", "rohc-lib", "at most", "thinair");
    print!("{:<22}", "compress/decompress");
    (0..3).for_each(|_| print!("{:>11}{:>15}", "ns", "instructions"));
    println!();
    for row in &ROWS {
        print!("{:<22}", row.name);
        let ours = [Some(times(row)), row.case.and_then(instructions)];
        for [ns, instructions] in [row.theirs, row.bar, ours] {
            print!("{:>11}{:>15}", text(ns), text(instructions));
        }
        println!();
    }
    let (context, block) = Compressor::octets_per_context();
    // A context also takes two buckets of two octets each.
    let compressor = context + block + 2 * 2;
    let (context, block) = Decompressor::octets_per_context();
    let ours = format!("{compressor}/{}", context + block);
    println!("{:<22}{:>11}{:>26}{ours:>26}", "octets of a context", "69232/69441", MEMORY_BAR);
}

fn text(pair: Option<SidePair>) -> String {
    pair.map_or("-".to_owned(), |[compress, decompress]| format!("{compress}/{decompress}"))
}

fn udp_ipv4(flow: u32, count: u32) -> Vec<u8> {
    get::over_ipv4(flow, count as u16).to_vec()
}

fn udp_ipv6(_: u32, _: u32) -> Vec<u8> {
    get::IPV6.to_vec()
}

/// A voice packet of 20 ms: 160 octets at 8 kHz.
fn rtp_udp_ipv4(flow: u32, count: u32) -> Vec<u8> {
    let mut datagram = Vec::from(*b"\x80\0\x13\x8a\0\xb4\x12\x34\x80\0");
    datagram.extend_from_slice(&(count as u16).to_be_bytes());
    datagram.extend_from_slice(&(160 * count).to_be_bytes());
    datagram.extend_from_slice(b"\xde\xad\xbe\xef");
    datagram.resize(datagram.len() + 160, 0x55);
    ipv4(flow, count, protocol::UDP, &datagram)
}

fn esp_ipv4(flow: u32, count: u32) -> Vec<u8> {
    let mut behind = Vec::from(*b"\0\0\x01\x02");
    behind.extend_from_slice(&count.to_be_bytes());
    behind.resize(behind.len() + 24, 0x55);
    ipv4(flow, count, protocol::ESP, &behind)
}

/// Acknowledgments of two segments each, with timestamps.
fn tcp_acks(flow: u32, count: u32) -> Vec<u8> {
    segment(flow, count, Tcp { acknowledgment_number: count.wrapping_mul(2 * 1_448), ..Tcp::default() }, &[])
}

/// Segments of 20 octets, with timestamps.
fn tcp_data(flow: u32, count: u32) -> Vec<u8> {
    segment(flow, count, Tcp { sequence_number: count.wrapping_mul(20), ..Tcp::default() }, &[7; 20])
}

fn segment(flow: u32, count: u32, tcp: Tcp<'_>, payload: &[u8]) -> Vec<u8> {
    let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    options[4..8].copy_from_slice(&(count * 2).to_be_bytes());
    options[8..].copy_from_slice(&(count * 2).to_be_bytes());
    let tcp =
        Tcp { source_port: 4_000, destination_port: 80, ack: true, window: 0x2000, options: &options, ..tcp };
    let mut behind = vec![0; tcp.len()];
    tcp.write(&mut behind, 0).expect("there is room");
    behind.extend_from_slice(payload);
    let mut packet = ipv4(flow, count, protocol::TCP, &behind);
    let sum = Sum::ZERO.octets(&packet[12..20]).word(6).word(behind.len() as u16).octets(&behind);
    packet[36..38].copy_from_slice(&sum.checksum().to_be_bytes());
    packet
}

fn ipv4(flow: u32, count: u32, next: u8, behind: &[u8]) -> Vec<u8> {
    let mut packet = get::over_ipv4(flow, count as u16)[..Ipv4::LEN].to_vec();
    packet[3] = (Ipv4::LEN + behind.len()) as u8;
    packet[9] = next;
    let sum = Ipv4::checksum_of(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(behind);
    packet
}

/// Number of instructions for one packet on each side, from the last run of callgrind.
fn instructions(case: &str) -> Option<SidePair> {
    let program = std::env::current_exe().ok()?;
    // The target folder is above release/deps/numbers-...
    let target = program.ancestors().nth(3)?;
    let count = |side: &str| {
        let id = format!("{side}.{case}");
        let file = ["gungraun/thinair-rohc/instructions/packet", &id, &format!("callgrind.{id}.out")];
        let text = fs::read_to_string(target.join(file.iter().collect::<PathBuf>())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
    };
    Some([count("compress")?, count("decompress")?])
}

/// Nanoseconds for one packet on each side.
fn times(row: &FigureRow) -> SidePair {
    let highest = CidSpace::Large.highest();
    let is_tcp = row.name.starts_with("TCP");
    let profiles = ProfileSet::v1();
    let profiles = if is_tcp { profiles.with(ProfileId::Tcp).expect("it has no rival") } else { profiles };
    // A flow of TCP has a place of its own.
    let highest = if is_tcp { 15 } else { highest };
    let channel = Channel::new(CidSpace::Large, highest, profiles).expect("the highest CID is a CID");
    let mut config = CompressorConfig::new(channel);
    config.refresh = Refresh::Off;
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
    let mut decompressor = Decompressor::new(
        DecompressorConfig::new(channel),
        DecompressorMemory::owned(channel.sizes().blocks(0)),
    );
    let packet = |count: usize| match row.flows {
        Some(flows) => (row.packet)(count as u32 % flows, count as u32 / flows),
        None => (row.packet)(count as u32, 0),
    };
    let (settling, format) = match row.flows {
        Some(flows) => (8 * flows as usize, Format::Uo0),
        None => (CONTEXTS as usize, Format::Ir),
    };
    let mut times = [const { Vec::new() }; 2];
    let mut count = 0;
    while times[0].len() < BATCHES {
        let packets: Vec<_> = (count..count + BATCH).map(packet).collect();
        let mut rohc = vec![[0; 256]; BATCH];
        let mut lengths = vec![(0, Format::Normal); BATCH];
        let start = Clock::now();
        for ((packet, rohc), length) in packets.iter().zip(&mut rohc).zip(&mut lengths) {
            if let Ok(done) = compressor.compress(Instant::ZERO, black_box(packet), rohc) {
                *length = (done.len, done.format);
            }
        }
        let compressed = start.elapsed();
        let mut back = [0; 256];
        let mut delivered = 0;
        let start = Clock::now();
        for (rohc, (len, _)) in rohc.iter().zip(&lengths) {
            let done = decompressor.decompress(Instant::ZERO, black_box(&rohc[..*len]), &mut back);
            delivered += usize::from(done.is_ok());
            black_box(&back);
        }
        let decompressed = start.elapsed();
        assert_eq!(delivered, BATCH);
        count += BATCH;
        if count > settling.next_multiple_of(BATCH) {
            // Without feedback TCP sends larger packets now and then.
            assert!(is_tcp || lengths.iter().all(|(_, each)| *each == format));
            times[0].push(compressed);
            times[1].push(decompressed);
        }
    }
    times.map(|mut times| {
        times.sort();
        (times[BATCHES / 2].as_nanos() / BATCH as u128) as u32
    })
}
