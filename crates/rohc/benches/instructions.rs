//! Instructions of one packet, by profile and format; the machine's speed and load play no part.
//!
//! `cargo bench -p thinair-rohc --bench instructions` has valgrind count the instructions of one call of
//! `Compressor::compress` and of one of `Decompressor::decompress`. It needs valgrind and `gungraun-runner` in the
//! version of the `gungraun` crate; `make bench` installs both. Flows settle before the count begins, with the
//! default refresh: the packet measured is the first of the named format behind the 16th packet, except where the
//! name says otherwise. Payloads have 9 octets, CIDs are small. The steady state of UDP over IPv4 has a bar of 1,000
//! instructions, and exceeding it fails the run.
//!
//! For comparison, rohc-lib (master of 2019-09-24) in steady state, per packet. Measured elsewhere, with callgrind, on
//! synthetic flows of the same kinds:
//!
//! | profile      | compress | decompress |
//! |--------------|---------:|-----------:|
//! | UDP/IPv4     |    3,894 |      2,224 |
//! | UDP/IPv6     |    5,391 |      2,118 |
//! | IP/IPv4      |    3,692 |      1,985 |
//! | Uncompressed |      619 |        826 |

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Format, Instant,
    ProfileSet,
};

use Format::{Ir, IrDyn, Normal, Uo0, Uo1, Uor2Ext3};
use common::{Flow, Layer, Random};

#[path = "../tests/common/mod.rs"]
mod common;

/// Packets after which a flow is in steady state.
const SETTLED: usize = 16;

/// Blocks for extension headers.
const BLOCKS: usize = 4;

/// Octets for a packet, compressed or not.
const ROOM: usize = 256;

/// Measures a function with each case, which `$before` makes ready.
macro_rules! measure {
    ($before:ident: $($function:tt)*) => {
        #[library_benchmark(setup = $before)]
        #[bench::udp_ipv4_uo_0(args = (udp(&[V4]).until(Uo0)), config = at_most(1_000))]
        #[bench::udp_ipv4_uo_1_ip_id_steps_by_5(udp(&[V4]).stepping_by_5().until(Uo1))]
        #[bench::udp_ipv4_uor_2_ext_3_ttl_changes(udp(&[V4]).changing_ttl().until(Uor2Ext3))]
        #[bench::udp_ipv4_ir_dyn(udp(&[V4]).until(IrDyn))]
        #[bench::udp_ipv4_ir_of_a_refresh(udp(&[V4]).until(Ir))]
        #[bench::udp_ipv4_ir_of_a_new_flow(udp(&[V4]).new().until(Ir))]
        #[bench::udp_ipv6_uo_0(udp(&[V6]).until(Uo0))]
        #[bench::udp_ipv6_ir_of_a_refresh(udp(&[V6]).until(Ir))]
        #[bench::udp_ipv6_2_extension_headers_uo_0(udp(&[V6]).with_extension_headers().until(Uo0))]
        #[bench::udp_ipv4_in_ipv4_uo_0(udp(&[V4, V4]).until(Uo0))]
        #[bench::ip_ipv4_uo_0(ip(&[V4]).until(Uo0))]
        #[bench::ip_ipv6_uo_0(ip(&[V6]).until(Uo0))]
        #[bench::uncompressed_normal(udp(&[V4]).uncompressed().until(Normal))]
        $($function)*
    };
}

measure! {
    before_compress:
    fn compress(ready: &'static mut Ready<Compressor<'static>>) -> Result<Compressed, CompressError> {
        let Ready { side, now, packet, out } = ready;
        side.compress(*now, black_box(packet), out)
    }
}

measure! {
    before_decompress:
    fn decompress(ready: &'static mut Ready<Decompressor<'static>>) -> Result<Decompressed, DecompressError> {
        let Ready { side, now, packet, out } = ready;
        side.decompress(*now, black_box(packet), out)
    }
}

library_benchmark_group!(name = packet, benchmarks = [compress, decompress]);

main!(config = counting(&mut Callgrind::default()), library_benchmark_groups = packet);

/// A bar for one case.
fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    counting(Callgrind::default().hard_limits([(EventKind::Ir, instructions)]))
}

/// Instructions alone; caches are not simulated.
fn counting(callgrind: &mut Callgrind) -> LibraryBenchmarkConfig {
    let callgrind = callgrind.args(["--cache-sim=no"]).format([EventKind::Ir]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind.clone());
    config
}

/// A flow and which packet of it is measured.
struct Case {
    flow: Flow,
    profiles: ProfileSet,
    /// Before each packet, told how many were sent.
    change: fn(&mut Flow, usize),
    /// Packets before the one that is looked for.
    settled: usize,
    format: Format,
}

const V4: bool = false;
const V6: bool = true;

fn udp(versions: &[bool]) -> Case {
    let layers = versions.iter().zip(1..).map(|(&six, address)| Layer::new(six, address)).collect();
    Case {
        flow: Flow::udp(layers),
        profiles: ProfileSet::v1(),
        change: |_, _| (),
        settled: SETTLED,
        format: Uo0,
    }
}

/// No UDP behind the IP headers.
fn ip(versions: &[bool]) -> Case {
    let mut case = udp(versions);
    case.flow.protocol = 58;
    case
}

impl Case {
    fn stepping_by_5(mut self) -> Self {
        // The flow itself adds 1.
        self.change = |flow, _| flow.layers[0].id += 4;
        self
    }

    fn changing_ttl(mut self) -> Self {
        self.change = |flow, sent| flow.layers[0].ttl = if sent < SETTLED { 64 } else { 63 };
        self
    }

    /// Hop-by-hop and destination options of 8 octets each.
    fn with_extension_headers(mut self) -> Self {
        let padding = vec![1, 4, 0, 0, 0, 0];
        self.flow.layers[0].extensions = vec![(0, padding.clone()), (60, padding)];
        self
    }

    fn uncompressed(mut self) -> Self {
        self.profiles = ProfileSet::UNCOMPRESSED;
        self
    }

    fn new(mut self) -> Self {
        self.settled = 0;
        self
    }

    /// The packet measured is the first of this format once the flow has settled.
    fn until(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    fn channel(&self) -> Channel {
        Channel::new(CidSpace::Small, 15, self.profiles).expect("15 is a small CID")
    }

    fn compressor(&self) -> Compressor<'static> {
        let channel = self.channel();
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, BLOCKS))
    }

    fn decompressor(&self) -> Decompressor<'static> {
        let channel = self.channel();
        Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel, BLOCKS))
    }

    /// The packets up to the one that is measured, each with its compressed form.
    fn packets(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut compressor, mut random) = (self.compressor(), Random(1));
        let mut packets = Vec::new();
        loop {
            (self.change)(&mut self.flow, packets.len());
            let packet = self.flow.packet(&mut random);
            let mut out = [0; ROOM];
            let done = compressor.compress(at(packets.len()), &packet, &mut out).expect("there is room");
            packets.push((packet, out[..done.len].to_vec()));
            if packets.len() > self.settled && done.format == self.format {
                return packets;
            }
            assert!(packets.len() < 1_000, "no {}", self.format.name());
        }
    }
}

/// One call away from what is measured.
struct Ready<S> {
    side: S,
    now: Instant,
    packet: Vec<u8>,
    out: [u8; ROOM],
}

impl<S> Ready<S> {
    /// Never freed: what is measured frees nothing.
    fn new(side: S, before: usize, packet: Vec<u8>) -> &'static mut Self {
        Box::leak(Box::new(Self { side, now: at(before), packet, out: [0; ROOM] }))
    }
}

fn before_compress(mut case: Case) -> &'static mut Ready<Compressor<'static>> {
    let mut packets = case.packets();
    let (packet, _) = packets.pop().expect("there is a last packet");
    let mut compressor = case.compressor();
    for (i, (packet, rohc)) in packets.iter().enumerate() {
        let mut out = [0; ROOM];
        let done = compressor.compress(at(i), packet, &mut out).expect("there is room");
        assert_eq!(out[..done.len], rohc[..]);
    }
    Ready::new(compressor, packets.len(), packet)
}

fn before_decompress(mut case: Case) -> &'static mut Ready<Decompressor<'static>> {
    let mut packets = case.packets();
    let (_, rohc) = packets.pop().expect("there is a last packet");
    let mut decompressor = case.decompressor();
    for (i, (packet, rohc)) in packets.iter().enumerate() {
        let mut out = [0; ROOM];
        let done = decompressor.decompress(at(i), rohc, &mut out).expect("nothing is lost");
        assert_eq!(out[..done.len], packet[..]);
    }
    Ready::new(decompressor, packets.len(), rohc)
}

/// A packet every 10 ms.
fn at(count: usize) -> Instant {
    Instant::from_millis(10 * count as u64)
}
