//! Number of instructions for one packet, by profile and format. It does not depend on the speed and load of the machine.
//!
//! `cargo bench -p thinair-rohc --bench instructions` counts the instructions of one call of `Compressor::compress` and of one of
//! `Decompressor::decompress` with valgrind. It needs valgrind and `gungraun-runner` in the version of the `gungraun` crate;
//! `make bench` installs both. Flows are established before the count begins, with the default refresh: the packet measured is
//! the first of the named format after the 16th packet, unless the name states otherwise (`coap_new_client_...`: the first of a
//! flow, behind others of its kind). Payloads have 9 octets, those of CoAP
//! (`coap_...`) at most 20; CIDs are small. The second number of a line is that of the previous run. The benchmark `figures`
//! prints the counts of steady state beside those of rohc-lib. `scripts/instructions` compares all counts with the recorded ones
//! in `instructions.txt`.
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

use callgrind::instructions_alone;
use gungraun::{library_benchmark, library_benchmark_group, main};
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint, Format,
    Instant, Integrity, ProfileId, ProfileSet, Refresh,
};

use CoapStream::{Flow, NewClients};
use Format::{CoCommon, Ir, IrDyn, Normal, Pt0Crc3, Pt0c, Pt1, Pt1SeqTs, Pt2};
use Format::{Rnd2, Rnd4, Seq2, Seq4, Uo0, Uo1, Uo1Ts, Uor2Ext3};
use common::coap::FlowName::{A, D, HRsp};
use common::coap::{CoapFlow, CoapSide, FlowName, TestMessage, datagram_of};
use common::dtls::DtlsFlow;
use common::media::{Media, MediaKind};
use common::tcp::{Outer, TcpPacket, timestamps};
use common::{IpLayer, SplitMix64, TestFlow};

#[path = "common/callgrind.rs"]
mod callgrind;

#[path = "../tests/common/mod.rs"]
mod common;

/// Number of packets after which a flow is in steady state.
const SETTLED: usize = 16;

/// Number of blocks for extension headers.
const BLOCKS: usize = 4;

/// Octets for a packet, compressed or not.
const ROOM: usize = 256;

/// Defines a function that is measured with each case. (The attributes of gungraun require that the macro generates the whole
/// function.)
macro_rules! measure {
    ($name:ident: $side:ty) => {
        #[library_benchmark]
        #[bench::udp_ipv4_uo_0(PreparedCall::before(udp(&[V4]).until(Uo0)))]
        #[bench::udp_ipv4_uo_1_ip_id_steps_by_5(PreparedCall::before(udp(&[V4]).stepping_by_5().until(Uo1)))]
        #[bench::udp_ipv4_uor_2_ext_3_ttl_changes(PreparedCall::before(udp(&[V4]).changing_ttl().until(Uor2Ext3)))]
        #[bench::udp_ipv4_ir_dyn(PreparedCall::before(udp(&[V4]).refreshed_half_way().until(IrDyn)))]
        #[bench::udp_ipv4_ir_of_a_refresh(PreparedCall::before(udp(&[V4]).until(Ir)))]
        #[bench::udp_ipv4_ir_of_a_new_flow(PreparedCall::before(udp(&[V4]).opening().until(Ir)))]
        #[bench::udp_ipv6_uo_0(PreparedCall::before(udp(&[V6]).until(Uo0)))]
        #[bench::udp_ipv6_ir_of_a_refresh(PreparedCall::before(udp(&[V6]).until(Ir)))]
        #[bench::udp_ipv6_2_extension_headers_uo_0(PreparedCall::before(udp(&[V6]).with_extension_headers().until(Uo0)))]
        #[bench::udp_ipv4_in_ipv4_uo_0(PreparedCall::before(udp(&[V4, V4]).until(Uo0)))]
        #[bench::rtp_udp_ipv4_uo_0(PreparedCall::before(media(MediaKind::Rtp, &[V4]).until(Uo0)))]
        #[bench::rtp_udp_ipv4_uo_1_ts(PreparedCall::before(media(MediaKind::Rtp, &[V4]).pausing().until(Uo1Ts)))]
        #[bench::rtp_udp_ipv6_uo_0(PreparedCall::before(media(MediaKind::Rtp, &[V6]).until(Uo0)))]
        #[bench::esp_ipv4_uo_0(PreparedCall::before(media(MediaKind::Esp, &[V4]).until(Uo0)))]
        #[bench::esp_ipv6_uo_0(PreparedCall::before(media(MediaKind::Esp, &[V6]).until(Uo0)))]
        #[bench::udp_lite_ipv4_uo_0(PreparedCall::before(media(MediaKind::UdpLite, &[V4]).until(Uo0)))]
        #[bench::ip_ipv4_uo_0(PreparedCall::before(ip(&[V4]).until(Uo0)))]
        #[bench::ip_ipv6_uo_0(PreparedCall::before(ip(&[V6]).until(Uo0)))]
        #[bench::tcp_ipv4_acks_with_timestamps_seq_4(PreparedCall::before(acks(V4).until(Seq4)))]
        #[bench::tcp_ipv6_acks_with_timestamps_rnd_4(PreparedCall::before(acks(V6).until(Rnd4)))]
        #[bench::tcp_ipv4_20_octets_with_timestamps_seq_2(PreparedCall::before(data(V4).until(Seq2)))]
        #[bench::tcp_ipv6_20_octets_with_timestamps_rnd_2(PreparedCall::before(data(V6).until(Rnd2)))]
        #[bench::v2_udp_ipv4_pt_0_crc3(PreparedCall::before(udp(&[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_udp_ipv6_pt_0_crc3(PreparedCall::before(udp(&[V6]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_udp_ipv4_co_common_ttl_changes(PreparedCall::before(udp(&[V4]).changing_ttl().by_v2().until(CoCommon)))]
        #[bench::v2_rtp_udp_ipv4_pt_0_crc3(PreparedCall::before(media(MediaKind::Rtp, &[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_rtp_udp_ipv4_pt_1_seq_ts(PreparedCall::before(media(MediaKind::Rtp, &[V4]).pausing().by_v2().until(Pt1SeqTs)))]
        #[bench::v2_esp_ipv4_pt_0_crc3(PreparedCall::before(media(MediaKind::Esp, &[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::v2_ip_ipv4_pt_0_crc3(PreparedCall::before(ip(&[V4]).by_v2().until(Pt0Crc3)))]
        #[bench::dtls_ipv4_pt_0c(PreparedCall::before(dtls(V4).until(Pt0c)))]
        #[bench::dtls_ipv6_pt_0c(PreparedCall::before(dtls(V6).until(Pt0c)))]
        #[bench::dtls_ipv6_pt_1(PreparedCall::before(dtls(V6).elided().until(Pt1)))]
        #[bench::uncompressed_normal(PreparedCall::before(udp(&[V4]).uncompressed().until(Normal)))]
        fn $name(ready: &'static mut PreparedCall<$side>) -> Result<<$side as MeasuredSide>::Done, <$side as MeasuredSide>::Error> {
            ready.go()
        }
    };
}

measure!(compress: Compressor<'static>);
measure!(decompress: Decompressor<'static>);

/// Defines a function that is measured with each CoAP case, by endpoints, which call the compressor and the decompressor.
macro_rules! measure_coap {
    ($name:ident: $get_ready:ident) => {
        #[library_benchmark]
        #[bench::coap_get_ipv4_pt_0c(CoapConversation::$get_ready(Flow(A), V4, Pt0c))]
        #[bench::coap_get_ipv4_pt_1(CoapConversation::$get_ready(Flow(A), V4, Pt1))]
        #[bench::coap_get_ipv6_pt_0c(CoapConversation::$get_ready(Flow(A), V6, Pt0c))]
        #[bench::coap_get_ipv6_pt_1(CoapConversation::$get_ready(Flow(A), V6, Pt1))]
        #[bench::coap_new_client_ipv4_pt_0c(CoapConversation::$get_ready(NewClients(1), V4, Pt0c))]
        #[bench::coap_new_client_ipv4_pt_1(CoapConversation::$get_ready(NewClients(1), V4, Pt1))]
        #[bench::coap_new_client_ipv6_pt_1(CoapConversation::$get_ready(NewClients(1), V6, Pt1))]
        #[bench::coap_new_client_of_three_ipv4_pt_2(CoapConversation::$get_ready(NewClients(3), V4, Pt2))]
        #[bench::coap_new_client_of_three_ipv6_pt_2(CoapConversation::$get_ready(NewClients(3), V6, Pt2))]
        #[bench::coap_notification_ipv4_pt_0c(CoapConversation::$get_ready(Flow(D), V4, Pt0c))]
        #[bench::coap_notification_ipv4_pt_1(CoapConversation::$get_ready(Flow(D), V4, Pt1))]
        #[bench::coap_notification_ipv6_pt_0c(CoapConversation::$get_ready(Flow(D), V6, Pt0c))]
        #[bench::coap_notification_ipv6_pt_1(CoapConversation::$get_ready(Flow(D), V6, Pt1))]
        #[bench::coap_response_ipv4_pt_0c(CoapConversation::$get_ready(Flow(HRsp), V4, Pt0c))]
        #[bench::coap_response_ipv4_pt_1(CoapConversation::$get_ready(Flow(HRsp), V4, Pt1))]
        #[bench::coap_response_ipv6_pt_0c(CoapConversation::$get_ready(Flow(HRsp), V6, Pt0c))]
        #[bench::coap_response_ipv6_pt_1(CoapConversation::$get_ready(Flow(HRsp), V6, Pt1))]
        fn $name(ready: &'static mut CoapConversation) -> usize {
            ready.$name()
        }
    };
}

measure_coap!(compress_coap: ready_to_compress);
measure_coap!(decompress_coap: ready_to_decompress);

library_benchmark_group!(name = packet, benchmarks = [compress, decompress, compress_coap, decompress_coap]);

main!(config = instructions_alone(), library_benchmark_groups = packet);

/// Change before a packet of a connection.
type PacketChange = fn(&mut TcpPacket);

/// A flow, and the packet of it that is measured.
struct MeasuredCase {
    flow: TestFlow,
    profiles: ProfileSet,
    /// Change before each packet. It gets the number of packets sent.
    change: fn(&mut TestFlow, usize),
    /// Number of packets before the search for the one that is measured.
    settled: usize,
    format: Format,
    refresh: Refresh,
    /// A connection instead of the flow, and the change before each of its packets.
    segment: Option<(TcpPacket, PacketChange)>,
    /// Records instead of the flow.
    records: Option<DtlsFlow>,
    integrity: Integrity,
}

const V4: bool = false;
const V6: bool = true;

fn udp(versions: &[bool]) -> MeasuredCase {
    let layers = versions.iter().zip(1..).map(|(&six, address)| IpLayer::new(six, address)).collect();
    MeasuredCase {
        flow: TestFlow::udp(layers),
        profiles: ProfileSet::v1(),
        change: |_, _| (),
        settled: SETTLED,
        format: Uo0,
        refresh: Refresh::default(),
        segment: None,
        records: None,
        integrity: Integrity::None,
    }
}

/// Records of DTLS 1.2 with 9 octets of plaintext and CCM_8.
fn dtls(six: bool) -> MeasuredCase {
    let mut case = udp(&[six]);
    case.profiles = ProfileSet::v1().with(ProfileId::Dtls).expect("it has no rival");
    case.records = Some(DtlsFlow::new(six));
    case
}

/// Removes UDP behind the IP headers.
fn ip(versions: &[bool]) -> MeasuredCase {
    let mut case = udp(versions);
    case.flow.protocol = 58;
    case
}

/// Voice in RTP, or ESP, after its stride is established, and before the first refresh.
fn media(kind: MediaKind, versions: &[bool]) -> MeasuredCase {
    let mut case = udp(versions);
    case.flow.media = Some(Media::new(kind));
    case.settled = 3 * SETTLED;
    case
}

/// A connection, after its strides are established.
fn segments(six: bool, change: PacketChange) -> MeasuredCase {
    let mut case = udp(&[six]);
    case.profiles = ProfileSet::v1().with(ProfileId::Tcp).expect("it has no rival");
    case.segment = Some((TcpPacket::new(vec![Outer::new(six)], 4_000), change));
    // Changes are repeated until then.
    case.settled = 14 * SETTLED;
    case
}

/// Acknowledgments of two segments each.
fn acks(six: bool) -> MeasuredCase {
    segments(six, |packet| {
        packet.ips[0].id += 1;
        packet.tcp.acknowledgment_number = packet.tcp.acknowledgment_number.wrapping_add(2 * 1_448);
        packet.options =
            timestamps(packet.tcp.acknowledgment_number >> 10, packet.tcp.acknowledgment_number >> 10);
    })
}

/// Segments with 20 octets each.
fn data(six: bool) -> MeasuredCase {
    segments(six, |packet| {
        packet.ips[0].id += 1;
        packet.payload = vec![7; 20];
        packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(20);
        packet.options = timestamps(packet.tcp.sequence_number >> 3, packet.tcp.sequence_number >> 3);
    })
}

impl MeasuredCase {
    /// Makes each packet after the start the first one of a talkspurt.
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

    /// Uses IR-DYN packets as well, which a budget does not send.
    fn refreshed_half_way(mut self) -> Self {
        self.refresh = Refresh::Periodic { packets: Some(64), time: None, backoff: false };
        self
    }

    /// Leaves the UDP checksum out where the profile may.
    fn elided(mut self) -> Self {
        self.integrity = Integrity::Crc32;
        self
    }

    fn opening(mut self) -> Self {
        self.settled = 0;
        self
    }

    /// Measures the first packet of this format after the start of the flow.
    fn until(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    fn channel(&self) -> Channel {
        let channel = Channel::new(CidSpace::Small, 15, self.profiles).expect("15 is a small CID");
        channel.with_integrity_below(self.integrity)
    }

    /// Returns the packets up to the one that is measured, each with its compressed form.
    fn packets(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut compressor, mut random) = (Compressor::start(self.channel(), self.refresh), SplitMix64(1));
        let mut packets = Vec::new();
        loop {
            (self.change)(&mut self.flow, packets.len());
            let packet = match (&mut self.segment, &mut self.records) {
                (Some((packet, change)), _) => {
                    change(packet);
                    packet.octets()
                }
                (None, Some(records)) => records.next(&mut random),
                (None, None) => self.flow.packet(&mut random),
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

/// A state from which one call is measured.
struct PreparedCall<S> {
    side: S,
    now: Instant,
    octets: Vec<u8>,
    out: [u8; ROOM],
}

impl<S: MeasuredSide> PreparedCall<S> {
    /// Returns the state before the measured call. It is leaked, so that the measurement includes no deallocation.
    fn before(mut case: MeasuredCase) -> &'static mut Self {
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
trait MeasuredSide {
    type Done;
    type Error;

    fn start(channel: Channel, refresh: Refresh) -> Self;

    fn packet(&mut self, now: Instant, octets: &[u8], out: &mut [u8]) -> Result<Self::Done, Self::Error>;

    /// Returns the input of this side and its expected output, of a packet and its compressed form.
    fn given_and_expected(pair: &(Vec<u8>, Vec<u8>)) -> (&[u8], &[u8]);
}

impl MeasuredSide for Compressor<'static> {
    type Done = Compressed;
    type Error = CompressError;

    fn start(channel: Channel, refresh: Refresh) -> Self {
        let config = CompressorConfig { refresh, ..CompressorConfig::new(channel) };
        Self::new(config, CompressorMemory::owned(channel.sizes().blocks(BLOCKS)))
    }

    #[inline]
    fn packet(&mut self, now: Instant, octets: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        self.compress(now, octets, out)
    }

    fn given_and_expected((packet, rohc): &(Vec<u8>, Vec<u8>)) -> (&[u8], &[u8]) {
        (packet, rohc)
    }
}

impl MeasuredSide for Decompressor<'static> {
    type Done = Decompressed;
    type Error = DecompressError;

    fn start(channel: Channel, _: Refresh) -> Self {
        Self::new(DecompressorConfig::new(channel), DecompressorMemory::owned(channel.sizes().blocks(BLOCKS)))
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

/// CoAP packets between two endpoints.
#[derive(Clone, Copy)]
enum CoapStream {
    /// A flow of the table in `docs/coap-profile.md`. Its 200th packet is measured.
    Flow(FlowName),
    /// Clients with a port of their own for so many requests each, with Tokens of one octet. The first request of one is measured.
    NewClients(u16),
}

/// Returns the packets of a turn of a stream, each with its sender.
type NextPackets = Box<dyn FnMut(usize) -> Vec<(CoapSide, Vec<u8>)>>;

/// Packets of [`CoapStream::NewClients`].
struct Clients {
    random: SplitMix64,
    requests: u16,
    six: bool,
    port: u16,
}

impl Clients {
    /// Returns a request and its response.
    fn exchange(&mut self, i: u16) -> [(CoapSide, Vec<u8>); 2] {
        if i.is_multiple_of(self.requests) {
            self.port = self.random.next() as u16 | 0x8000;
        }
        let id = self.random.next() as u16;
        let request = TestMessage { token: vec![id as u8], ..TestMessage::get(id, &[b"time"]) };
        let response = TestMessage {
            kind: 2,
            code: 69,
            options: vec![(12, vec![])],
            payload: vec![b'1'; 6],
            ..request.clone()
        };
        [(CoapSide::Client, request), (CoapSide::Server, response)].map(|(side, message)| {
            let ip_id = if self.six { 0 } else { self.random.next() as u16 };
            (side, datagram_of((self.six, 9, self.port), side, ip_id, 64, &message.octets(), true))
        })
    }
}

/// Two endpoints, one of which sends a CoAP flow, before the measured call.
struct CoapConversation {
    near: Endpoint<'static>,
    far: Endpoint<'static>,
    now: Instant,
    octets: Vec<u8>,
    out: [u8; ROOM],
}

impl CoapConversation {
    fn ready_to_compress(stream: CoapStream, six: bool, format: Format) -> &'static mut Self {
        let (talk, packet) = Self::settled(stream, six, format);
        talk.octets = packet;
        talk
    }

    fn ready_to_decompress(stream: CoapStream, six: bool, format: Format) -> &'static mut Self {
        let (talk, packet) = Self::settled(stream, six, format);
        let done = talk.near.send(talk.now, &packet, &mut talk.out).expect("there is room");
        let len = done.len;
        assert_eq!(done.format, format);
        talk.octets = talk.out[..len].to_vec();
        talk
    }

    /// Returns the endpoints after about 200 packets of a stream, and the next packet.
    fn settled(stream: CoapStream, six: bool, format: Format) -> (&'static mut Self, Vec<u8>) {
        let profiles = ProfileSet::v1().with(ProfileId::Coap).expect("it has no rival");
        let integrity = if format == Pt0c { Integrity::None } else { Integrity::Crc32 };
        let channel = Channel::new(CidSpace::Small, 15, profiles).expect("15 is a small CID");
        let mut config = CompressorConfig::new(channel.with_integrity_below(integrity));
        config.refresh = Refresh::Off;
        let endpoint = || {
            let channel = config.channel;
            let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(BLOCKS)));
            let decompressor = DecompressorConfig::new(channel);
            Endpoint::new(
                compressor,
                Decompressor::new(decompressor, DecompressorMemory::owned(channel.sizes().blocks(BLOCKS))),
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
        let (count, of_flow, mut next): (usize, CoapSide, NextPackets) = match stream {
            Flow(name) => {
                let mut flow = CoapFlow::new(name, six, 1);
                (200, flow.side, Box::new(move |_| flow.next()))
            }
            NewClients(requests) => {
                let mut clients = Clients { random: SplitMix64(1), requests, six, port: 0 };
                let count = usize::from(200 - 200 % requests);
                (count, CoapSide::Client, Box::new(move |i| clients.exchange(i as u16).into()))
            }
        };
        for i in 0.. {
            talk.now = at(i);
            for (side, packet) in next(i) {
                if side == of_flow && i == count {
                    return (Box::leak(Box::new(talk)), packet);
                }
                talk.carry(side == of_flow, &packet);
            }
        }
        unreachable!("the stream goes on")
    }

    /// Carries a packet of the flow, or one of the other direction that it answers.
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

/// Time of a packet; they are 10 ms apart.
fn at(count: usize) -> Instant {
    Instant::from_millis(10 * count as u64)
}
