//! Instructions of one packet, by profile and format; the machine's speed and load play no part.
//!
//! `cargo bench -p thinair-rohc --bench instructions` has valgrind count the instructions of one call of
//! `Compressor::compress` and of one of `Decompressor::decompress`. It needs valgrind and `gungraun-runner` in the
//! version of the `gungraun` crate; `make bench` installs both. Flows settle before the count begins, with the
//! default refresh: the packet measured is the first of the named format behind the 16th packet, except where the
//! name says otherwise. Payloads have 9 octets, those of CoAP (`coap_...`) at most 20; CIDs are small. The second number of a line
//! is that of the run before. The benchmark `figures` puts the counts of
//! steady state beside those of rohc-lib. `scripts/instructions` holds all counts against those on record, in `instructions.txt`.
//!
//! For comparison, rohc-lib (master of 2019-09-24; for UDP/IPv4 and RTP the best of its releases) in steady state, per
//! packet. Measured elsewhere, with callgrind, on synthetic flows of the same kinds:
//!
//! | profile      | compress | decompress |
//! |--------------|---------:|-----------:|
//! | UDP/IPv4     |    2,179 |      2,224 |
//! | UDP/IPv6     |    5,391 |      2,118 |
//! | RTP/UDP/IPv4 |    3,170 |      2,590 |
//! | ESP/IPv4     |    3,779 |      2,125 |
//! | IP/IPv4      |    3,692 |      1,985 |
//! | TCP/IPv4     |    4,764 |      4,609 |
//! | Uncompressed |      619 |        826 |

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, OutputFormat, library_benchmark, library_benchmark_group,
    main,
};
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint, Format,
    Instant, Integrity, ProfileId, ProfileSet, Refresh,
};

use Format::{CoCommon, Ir, IrDyn, Normal, Pt0Crc3, Pt0c, Pt1, Pt1SeqTs};
use Format::{Rnd2, Rnd4, Seq2, Seq4, Uo0, Uo1, Uo1Ts, Uor2Ext3};
use common::coap::FlowName;
use common::media::{Kind, Media};
use common::tcp::{Outer, Packet, timestamps};
use common::{Flow, Layer, Random};

#[path = "../tests/common/mod.rs"]
mod common;

/// Packets after which a flow is in steady state.
const SETTLED: usize = 16;

/// Blocks for extension headers.
const BLOCKS: usize = 4;

/// Octets for a packet, compressed or not.
const ROOM: usize = 256;

/// A function that is measured with each case. (The attributes of gungraun take a function from a macro only if all of
/// it is the macro's.)
macro_rules! measure {
    ($name:ident: $side:ty) => {
        #[library_benchmark]
        #[bench::udp_ipv4_uo_0(Ready::before(udp(&[V4]).until(Uo0)))]
        #[bench::udp_ipv4_uo_1_ip_id_steps_by_5(Ready::before(udp(&[V4]).stepping_by_5().until(Uo1)))]
        #[bench::udp_ipv4_uor_2_ext_3_ttl_changes(Ready::before(udp(&[V4]).changing_ttl().until(Uor2Ext3)))]
        #[bench::udp_ipv4_ir_dyn(Ready::before(udp(&[V4]).refreshed_half_way().until(IrDyn)))]
        #[bench::udp_ipv4_ir_of_a_refresh(Ready::before(udp(&[V4]).until(Ir)))]
        #[bench::udp_ipv4_ir_of_a_new_flow(Ready::before(udp(&[V4]).opening().until(Ir)))]
        #[bench::udp_ipv6_uo_0(Ready::before(udp(&[V6]).until(Uo0)))]
        #[bench::udp_ipv6_ir_of_a_refresh(Ready::before(udp(&[V6]).until(Ir)))]
        #[bench::udp_ipv6_2_extension_headers_uo_0(Ready::before(udp(&[V6]).with_extension_headers().until(Uo0)))]
        #[bench::udp_ipv4_in_ipv4_uo_0(Ready::before(udp(&[V4, V4]).until(Uo0)))]
        #[bench::rtp_udp_ipv4_uo_0(Ready::before(media(Kind::Rtp, &[V4]).until(Uo0)))]
        #[bench::rtp_udp_ipv4_uo_1_ts(Ready::before(media(Kind::Rtp, &[V4]).pausing().until(Uo1Ts)))]
        #[bench::rtp_udp_ipv6_uo_0(Ready::before(media(Kind::Rtp, &[V6]).until(Uo0)))]
        #[bench::esp_ipv4_uo_0(Ready::before(media(Kind::Esp, &[V4]).until(Uo0)))]
        #[bench::esp_ipv6_uo_0(Ready::before(media(Kind::Esp, &[V6]).until(Uo0)))]
        #[bench::ip_ipv4_uo_0(Ready::before(ip(&[V4]).until(Uo0)))]
        #[bench::ip_ipv6_uo_0(Ready::before(ip(&[V6]).until(Uo0)))]
        #[bench::tcp_ipv4_acks_with_timestamps_seq_4(Ready::before(acks(V4).until(Seq4)))]
        #[bench::tcp_ipv6_acks_with_timestamps_rnd_4(Ready::before(acks(V6).until(Rnd4)))]
        #[bench::tcp_ipv4_20_octets_with_timestamps_seq_2(Ready::before(data(V4).until(Seq2)))]
        #[bench::tcp_ipv6_20_octets_with_timestamps_rnd_2(Ready::before(data(V6).until(Rnd2)))]
        #[bench::v2_udp_ipv4_pt_0_crc3(Ready::before(udp(&[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_udp_ipv6_pt_0_crc3(Ready::before(udp(&[V6]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_udp_ipv4_co_common_ttl_changes(Ready::before(udp(&[V4]).changing_ttl().by_v2().until(CoCommon)))]
        #[bench::v2_rtp_udp_ipv4_pt_0_crc3(Ready::before(media(Kind::Rtp, &[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_rtp_udp_ipv4_pt_1_seq_ts(Ready::before(media(Kind::Rtp, &[V4]).pausing().by_v2().until(Pt1SeqTs)))]
        #[bench::v2_esp_ipv4_pt_0_crc3(Ready::before(media(Kind::Esp, &[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_ip_ipv4_pt_0_crc3(Ready::before(ip(&[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::uncompressed_normal(Ready::before(udp(&[V4]).uncompressed().until(Normal)))]
        fn $name(ready: &'static mut Ready<$side>) -> Result<<$side as Side>::Done, <$side as Side>::Error> {
            ready.go()
        }
    };
}

measure!(compress: Compressor<'static>);
measure!(decompress: Decompressor<'static>);

/// The same for CoAP, by endpoints: the functions of the others are called through them.
macro_rules! measure_coap {
    ($name:ident: $get_ready:ident) => {
        #[library_benchmark]
        #[bench::coap_get_ipv4_pt_0c(Talk::$get_ready(FlowName::A, V4, Pt0c))]
        #[bench::coap_get_ipv4_pt_1(Talk::$get_ready(FlowName::A, V4, Pt1))]
        #[bench::coap_get_ipv6_pt_0c(Talk::$get_ready(FlowName::A, V6, Pt0c))]
        #[bench::coap_get_ipv6_pt_1(Talk::$get_ready(FlowName::A, V6, Pt1))]
        #[bench::coap_notification_ipv4_pt_0c(Talk::$get_ready(FlowName::D, V4, Pt0c))]
        #[bench::coap_notification_ipv4_pt_1(Talk::$get_ready(FlowName::D, V4, Pt1))]
        #[bench::coap_notification_ipv6_pt_0c(Talk::$get_ready(FlowName::D, V6, Pt0c))]
        #[bench::coap_notification_ipv6_pt_1(Talk::$get_ready(FlowName::D, V6, Pt1))]
        #[bench::coap_response_ipv4_pt_0c(Talk::$get_ready(FlowName::HRsp, V4, Pt0c))]
        #[bench::coap_response_ipv4_pt_1(Talk::$get_ready(FlowName::HRsp, V4, Pt1))]
        #[bench::coap_response_ipv6_pt_0c(Talk::$get_ready(FlowName::HRsp, V6, Pt0c))]
        #[bench::coap_response_ipv6_pt_1(Talk::$get_ready(FlowName::HRsp, V6, Pt1))]
        fn $name(ready: &'static mut Talk) -> usize {
            ready.$name()
        }
    };
}

measure_coap!(compress_coap: ready_to_compress);
measure_coap!(decompress_coap: ready_to_decompress);

library_benchmark_group!(name = packet, benchmarks = [compress, decompress, compress_coap, decompress_coap]);

main!(config = instructions_alone(), library_benchmark_groups = packet);

/// Caches are not simulated.
fn instructions_alone() -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.format([EventKind::Ir]);
    let mut output = OutputFormat::default();
    output.truncate_description(Some(0));
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind).output_format(output);
    config
}

/// What changes before a packet of a connection.
type Change = fn(&mut Packet);

/// A flow and which packet of it is measured.
struct Case {
    flow: Flow,
    profiles: ProfileSet,
    /// Before each packet, told how many were sent.
    change: fn(&mut Flow, usize),
    /// Packets before the one that is looked for.
    settled: usize,
    format: Format,
    refresh: Refresh,
    /// A connection instead of the flow, and what changes before each of its packets.
    segment: Option<(Packet, Change)>,
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
        refresh: Refresh::default(),
        segment: None,
    }
}

/// No UDP behind the IP headers.
fn ip(versions: &[bool]) -> Case {
    let mut case = udp(versions);
    case.flow.protocol = 58;
    case
}

/// Voice in RTP, or ESP: until its stride is sure, and before the first refresh.
fn media(kind: Kind, versions: &[bool]) -> Case {
    let mut case = udp(versions);
    case.flow.media = Some(Media::new(kind));
    case.settled = 3 * SETTLED;
    case
}

/// A connection, once its strides are known.
fn segments(six: bool, change: Change) -> Case {
    let mut case = udp(&[six]);
    case.profiles = ProfileSet::v1().with(ProfileId::Tcp).expect("it has no rival");
    case.segment = Some((Packet::new(vec![Outer::new(six)], 4_000), change));
    // Until then changes are repeated.
    case.settled = 14 * SETTLED;
    case
}

/// Acknowledgments of two segments each.
fn acks(six: bool) -> Case {
    segments(six, |packet| {
        packet.ips[0].id += 1;
        packet.tcp.acknowledgment_number = packet.tcp.acknowledgment_number.wrapping_add(2 * 1_448);
        packet.options =
            timestamps(packet.tcp.acknowledgment_number >> 10, packet.tcp.acknowledgment_number >> 10);
    })
}

/// Segments with 20 octets each.
fn data(six: bool) -> Case {
    segments(six, |packet| {
        packet.ips[0].id += 1;
        packet.payload = vec![7; 20];
        packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(20);
        packet.options = timestamps(packet.tcp.sequence_number >> 3, packet.tcp.sequence_number >> 3);
    })
}

impl Case {
    /// Each packet behind the settled flow begins a talkspurt.
    fn pausing(mut self) -> Self {
        self.change = |flow, sent| {
            if let Some(media) = flow.media.as_mut().filter(|_| sent > 3 * SETTLED) {
                media.ts = media.ts.wrapping_add(160 * 4);
            }
        };
        self
    }

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

    fn by_v2(mut self) -> Self {
        self.profiles = ProfileSet::v2();
        self
    }

    fn uncompressed(mut self) -> Self {
        self.profiles = ProfileSet::UNCOMPRESSED;
        self
    }

    /// By IR-DYN, too, which a budget does not send.
    fn refreshed_half_way(mut self) -> Self {
        self.refresh = Refresh::Periodic { packets: Some(64), time: None, backoff: false };
        self
    }

    fn opening(mut self) -> Self {
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

    /// The packets up to the one that is measured, each with its compressed form.
    fn packets(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut compressor, mut random) = (Compressor::start(self.channel(), self.refresh), Random(1));
        let mut packets = Vec::new();
        loop {
            (self.change)(&mut self.flow, packets.len());
            let packet = match &mut self.segment {
                Some((packet, change)) => {
                    change(packet);
                    packet.octets()
                }
                None => self.flow.packet(&mut random),
            };
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
    octets: Vec<u8>,
    out: [u8; ROOM],
}

impl<S: Side> Ready<S> {
    /// Never freed: what is measured frees nothing.
    fn before(mut case: Case) -> &'static mut Self {
        let mut side = S::start(case.channel(), case.refresh);
        let mut packets = case.packets();
        let last = packets.pop().expect("there is a last packet");
        for (i, pair) in packets.iter().enumerate() {
            let (given, expected) = S::given_and_expected(pair);
            let mut out = [0; ROOM];
            assert!(side.packet(at(i), given, &mut out).is_ok());
            assert!(out.starts_with(expected));
        }
        let octets = S::given_and_expected(&last).0.to_vec();
        Box::leak(Box::new(Self { side, now: at(packets.len()), octets, out: [0; ROOM] }))
    }

    #[inline]
    fn go(&mut self) -> Result<S::Done, S::Error> {
        self.side.packet(self.now, black_box(&self.octets), &mut self.out)
    }
}

/// A compressor or a decompressor.
trait Side {
    type Done;
    type Error;

    fn start(channel: Channel, refresh: Refresh) -> Self;

    fn packet(&mut self, now: Instant, octets: &[u8], out: &mut [u8]) -> Result<Self::Done, Self::Error>;

    /// Of a packet and its compressed form, what this side is given and what it should make of it.
    fn given_and_expected(pair: &(Vec<u8>, Vec<u8>)) -> (&[u8], &[u8]);
}

impl Side for Compressor<'static> {
    type Done = Compressed;
    type Error = CompressError;

    fn start(channel: Channel, refresh: Refresh) -> Self {
        let config = CompressorConfig { refresh, ..CompressorConfig::new(channel) };
        Self::new(config, CompressorMemory::owned(&channel, BLOCKS))
    }

    #[inline]
    fn packet(&mut self, now: Instant, octets: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        self.compress(now, octets, out)
    }

    fn given_and_expected((packet, rohc): &(Vec<u8>, Vec<u8>)) -> (&[u8], &[u8]) {
        (packet, rohc)
    }
}

impl Side for Decompressor<'static> {
    type Done = Decompressed;
    type Error = DecompressError;

    fn start(channel: Channel, _: Refresh) -> Self {
        Self::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel, BLOCKS))
    }

    #[inline]
    fn packet(
        &mut self,
        now: Instant,
        octets: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        self.decompress(now, octets, out)
    }

    fn given_and_expected((packet, rohc): &(Vec<u8>, Vec<u8>)) -> (&[u8], &[u8]) {
        (rohc, packet)
    }
}

/// Two endpoints of which one sends a CoAP flow of the table in `docs/coap-profile.md`, one call away from what is
/// measured.
struct Talk {
    near: Endpoint<'static>,
    far: Endpoint<'static>,
    now: Instant,
    octets: Vec<u8>,
    out: [u8; ROOM],
}

impl Talk {
    fn ready_to_compress(name: FlowName, six: bool, format: Format) -> &'static mut Self {
        let (talk, packet) = Self::settled(name, six, format);
        talk.octets = packet;
        talk
    }

    fn ready_to_decompress(name: FlowName, six: bool, format: Format) -> &'static mut Self {
        let (talk, packet) = Self::settled(name, six, format);
        let done = talk.near.send(talk.now, &packet, &mut talk.out).expect("there is room");
        let len = done.len;
        assert_eq!(done.format, format);
        talk.octets = talk.out[..len].to_vec();
        talk
    }

    /// The endpoints behind 200 packets of the flow, and the next one.
    fn settled(name: FlowName, six: bool, format: Format) -> (&'static mut Self, Vec<u8>) {
        let profiles = ProfileSet::v1().with(ProfileId::Coap).expect("it has no rival");
        let integrity = if format == Pt0c { Integrity::None } else { Integrity::Crc32 };
        let channel = Channel::new(CidSpace::Small, 15, profiles).expect("15 is a small CID");
        let mut config = CompressorConfig::new(channel.with_integrity_below(integrity));
        config.refresh = Refresh::Off;
        let endpoint = || {
            let channel = config.channel;
            let compressor = Compressor::new(config, CompressorMemory::owned(&channel, BLOCKS));
            let decompressor = DecompressorConfig::new(channel);
            Endpoint::new(
                compressor,
                Decompressor::new(decompressor, DecompressorMemory::owned(&channel, BLOCKS)),
            )
            .with_exchanges(Exchanges::owned(64), Exchanges::owned(64))
        };
        let mut talk = Self {
            near: endpoint(),
            far: endpoint(),
            now: Instant::ZERO,
            octets: Vec::new(),
            out: [0; ROOM],
        };
        let mut flow = common::coap::Flow::new(name, six, 1);
        for i in 0.. {
            talk.now = at(i);
            for (side, packet) in flow.next() {
                if side == flow.side && i == 200 {
                    return (Box::leak(Box::new(talk)), packet);
                }
                talk.carry(side == flow.side, &packet);
            }
        }
        unreachable!("the flow goes on")
    }

    /// A packet of the flow, or one of the other direction that it answers.
    fn carry(&mut self, of_flow: bool, packet: &[u8]) {
        let (from, to) =
            if of_flow { (&mut self.near, &mut self.far) } else { (&mut self.far, &mut self.near) };
        let mut back = [0; ROOM];
        let len = from.send(self.now, packet, &mut self.out).expect("there is room").len;
        let done = to.receive(self.now, &self.out[..len], &mut back).expect("nothing is lost");
        assert_eq!(back[..done.len], *packet);
    }

    #[inline]
    fn compress_coap(&mut self) -> usize {
        self.near.send(self.now, black_box(&self.octets), &mut self.out).map_or(0, |done| done.len)
    }

    #[inline]
    fn decompress_coap(&mut self) -> usize {
        self.far.receive(self.now, black_box(&self.octets), &mut self.out).map_or(0, |done| done.len)
    }
}

/// A packet every 10 ms.
fn at(count: usize) -> Instant {
    Instant::from_millis(10 * count as u64)
}
