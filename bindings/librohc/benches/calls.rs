//! Instructions of a packet through the libraries for C, beside those of the same packet in Rust.
//!
//! `cargo bench -p thinair-librohc --bench calls` prints the table of `docs/c.md`, and fails where a call of C takes more than the
//! bar of its library. The program runs itself under callgrind, which counts what is called from `measured`: packets of an
//! established flow that nothing refreshes. Without valgrind nothing is counted.

#![allow(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "calls of C")]
#![allow(clippy::unwrap_used)]

use std::ffi::{c_int, c_uint, c_void};
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::ptr::null_mut;

use rohc::abi::{Buf, SMALL_CID, Time};
use rohc::comp::{Comp, functions as comp};
use rohc::decomp::{Decomp, functions as decomp};
use thinair_c::abi::{Config, Error, Packet};
use thinair_c::{Handle, functions as c};
use thinair_rohc::{
    Arrival, Channel, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, ProfileId,
    ProfileSet, Refresh, RtpDetection,
};
use thinair_wire::checksum::Sum;

/// Packets before the first one that is counted, and packets that are counted: multiples of a batch. Refreshes come before
/// and behind them.
const SETTLED: usize = 128;
const COUNTED: usize = 64;

const BATCH: usize = 32;
const ROOM: usize = 512;
const REFRESH: u32 = 1_700;
const RTP_PORT: u16 = 40_000;

/// Percent that a packet may take more than in Rust: through the native library, and in batches of it.
const BARS: [f64; 2] = [10.0, 5.0];

/// Instructions that it may take more through librohc, where it has two buffers, a callback and counters.
const LIBROHC_BAR: u64 = 200;

const FLOWS: [&str; 3] = ["UDP/IPv4", "RTP/UDP/IPv4", "TCP/IPv4"];
const WAYS: [&str; 5] = ["rust", "native", "rust-batch", "native-batch", "librohc"];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    match &arguments[..] {
        [_, flow, side, way] => {
            carry(flow, side == "compress", way);
            ExitCode::SUCCESS
        }
        _ => table(),
    }
}

/// Prints the table, and compares it with the bars.
fn table() -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("Instructions are not counted: valgrind is missing");
        return ExitCode::SUCCESS;
    }
    let mut is_above = false;
    println!(
        "| flow | in Rust | `thinair_rohc_compress` and `_decompress` | batches of {BATCH}, Rust | `..._batch` | `rohc_compress4`, `rohc_decompress3` |"
    );
    println!("|---|---|---|---|---|---|");
    for flow in FLOWS {
        let counts = WAYS.map(|way| ["compress", "decompress"].map(|side| count(flow, side, way)));
        let [rust, native, rust_batch, native_batch, librohc] = counts;
        let cells = counts.map(|[compress, decompress]| format!("{compress} / {decompress}"));
        println!("| {flow} | {} |", cells.join(" | "));
        for (before, behind) in rust.into_iter().zip(librohc) {
            if behind > before + LIBROHC_BAR {
                eprintln!("{flow}: {before} -> {behind}, and at most {LIBROHC_BAR} more may be");
                is_above = true;
            }
        }
        let pairs = [(rust, native), (rust_batch, native_batch)];
        for ((before, behind), bar) in pairs.into_iter().zip(BARS) {
            for (before, behind) in before.into_iter().zip(behind) {
                let more = 100.0 * (behind as f64 / before as f64 - 1.0);
                if more > bar {
                    eprintln!(
                        "{flow}: {before} -> {behind} are {more:.1} % more, and at most {bar} % may be"
                    );
                    is_above = true;
                }
            }
        }
    }
    if is_above { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs this program under callgrind, and returns the instructions of one packet.
fn count(flow: &str, side: &str, way: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured*"])
        .arg(std::env::current_exe().unwrap())
        .args([flow, side, way])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let total = printed.lines().find_map(|line| line.split("Collected :").nth(1)).unwrap();
    total.trim().parse::<u64>().unwrap() / COUNTED as u64
}

/// One way to carry packets: `output_len` is the result.
trait Way {
    fn open() -> Self;

    /// Gets ready for packets as a caller has them.
    fn prepare(&mut self, _now: u64, _packets: &[Packet]) {}

    fn compress(&mut self, now: u64, packets: &mut [Packet]);

    fn decompress(&mut self, now: u64, packets: &mut [Packet]);
}

/// The call that is counted.
#[inline(never)]
fn measured<W: Way>(way: &mut W, is_compression: bool, now: u64, packets: &mut [Packet]) {
    if is_compression { way.compress(now, packets) } else { way.decompress(now, packets) }
}

fn carry(flow: &str, is_compression: bool, way: &str) {
    match way {
        "rust" => carry_by::<Rust>(flow, is_compression, 1),
        "rust-batch" => carry_by::<RustBatch>(flow, is_compression, BATCH),
        "native" => carry_by::<Native>(flow, is_compression, 1),
        "native-batch" => carry_by::<NativeBatch>(flow, is_compression, BATCH),
        "librohc" => carry_by::<Librohc>(flow, is_compression, 1),
        way => panic!("no way {way}"),
    }
}

fn carry_by<W: Way>(flow: &str, is_compression: bool, batch: usize) {
    let (mut near, mut far) = (W::open(), W::open());
    for first in (0..SETTLED + COUNTED).step_by(batch) {
        let (now, is_counted) = (first as u64 * 20_000_000, first >= SETTLED);
        let mut sent: Vec<_> = (first..first + batch).map(|i| to_carry(packet(flow, i as u16))).collect();
        near.prepare(now, &sent);
        match is_counted && is_compression {
            true => measured(&mut near, true, now, &mut sent),
            false => near.compress(now, &mut sent),
        }
        let mut received: Vec<_> = sent.iter().map(|packet| to_carry(output(packet).to_vec())).collect();
        far.prepare(now, &received);
        match is_counted && !is_compression {
            true => measured(&mut far, false, now, &mut received),
            false => far.decompress(now, &mut received),
        }
        for (sent, received) in sent.iter().zip(&received) {
            assert_eq!(input(sent), output(received));
            assert!(!is_counted || sent.output_len + 15 < sent.input_len, "a refresh");
        }
    }
}

/// A packet with room for the result, for as long as the program runs.
fn to_carry(octets: Vec<u8>) -> Packet {
    let (octets, room) = (octets.leak(), vec![0; ROOM].leak());
    Packet {
        input: octets.as_ptr(),
        input_len: octets.len(),
        output: room.as_mut_ptr(),
        output_size: ROOM,
        ..unsafe { std::mem::zeroed() }
    }
}

#[inline(always)]
fn input(packet: &Packet) -> &'static [u8] {
    unsafe { std::slice::from_raw_parts(packet.input, packet.input_len) }
}

#[inline(always)]
fn room(packet: &Packet) -> &'static mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(packet.output, packet.output_size) }
}

fn output(packet: &Packet) -> &'static [u8] {
    &room(packet)[..packet.output_len]
}

/// A packet of a flow, with 20 octets of payload behind RTP and TCP headers.
fn packet(flow: &str, number: u16) -> Vec<u8> {
    let n = u32::from(number);
    let (protocol, mut upper) = match flow {
        "TCP/IPv4" => {
            let ports = [0x9C, 0x40, 0x00, 0x50];
            let numbers = [1_000 + n * 20, 77].map(u32::to_be_bytes).concat();
            (6, [&ports[..], &numbers, &[0x50, 0x10, 0x20, 0, 0, 0, 0, 0], &[number as u8; 20]].concat())
        }
        flow => {
            let port = if flow == "UDP/IPv4" { 5_000 } else { RTP_PORT };
            let rtp = [
                &[0x80, 96][..],
                &number.to_be_bytes(),
                &(n * 160).to_be_bytes(),
                &[1, 2, 3, 4],
                &[number as u8; 20],
            ];
            let payload = if port == RTP_PORT { rtp.concat() } else { vec![number as u8; 20] };
            let head = [30_000, port, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
            (17, [head, payload].concat())
        }
    };
    let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
    let pseudo = Sum::default().octets(&addresses).word(protocol).word(upper.len() as u16);
    let checksum = pseudo.octets(&upper).checksum().to_be_bytes();
    let at = if protocol == 6 { 16 } else { 6 };
    upper[at..at + 2].copy_from_slice(&checksum);
    let [len, id] = [20 + upper.len() as u16, number].map(u16::to_be_bytes);
    let mut ip = [&[0x45, 0][..], &len, &id, &[0x40, 0, 64, protocol as u8, 0, 0], &addresses].concat();
    let checksum = Sum::default().octets(&ip).checksum().to_be_bytes();
    ip[10..12].copy_from_slice(&checksum);
    [ip, upper].concat()
}

/// The engine, and one packet.
struct Rust(Endpoint<'static>);

impl Way for Rust {
    fn open() -> Self {
        let profiles = [ProfileId::Rtp, ProfileId::Udp, ProfileId::Tcp];
        let profiles = profiles.into_iter().fold(ProfileSet::UNCOMPRESSED, |set, id| set.with(id).unwrap());
        let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
        let config = CompressorConfig {
            refresh: Refresh::Periodic { packets: Some(REFRESH), time: None, backoff: true },
            rtp: RtpDetection::of_ports(&[RTP_PORT]).unwrap(),
            ..CompressorConfig::new(channel)
        };
        Self(Endpoint::owned(config, DecompressorConfig::new(channel)))
    }

    fn compress(&mut self, now: u64, packets: &mut [Packet]) {
        let [packet] = packets else { panic!("one at a time") };
        packet.output_len =
            self.0.compress(Instant::from_nanos(now), input(packet), room(packet)).unwrap().len;
    }

    fn decompress(&mut self, now: u64, packets: &mut [Packet]) {
        let [packet] = packets else { panic!("one at a time") };
        let arrival = Arrival { now: Instant::from_nanos(now), lost: Some(0) };
        packet.output_len = self.0.receive(arrival, input(packet), room(packet)).unwrap().len;
    }
}

/// The engine, and batches, of which it keeps what a batch of C has.
struct RustBatch(Rust);

impl Way for RustBatch {
    fn open() -> Self {
        Self(Rust::open())
    }

    fn compress(&mut self, now: u64, packets: &mut [Packet]) {
        let now = Instant::from_nanos(now);
        for packet in packets {
            let done = self.0.0.compress(now, input(packet), room(packet)).unwrap();
            packet.output_len = done.len;
            (packet.cid, packet.profile) = (done.cid.value(), done.profile.number());
            (packet.header_in, packet.header_out) = (done.header_in as u32, done.header_out as u32);
        }
    }

    fn decompress(&mut self, now: u64, packets: &mut [Packet]) {
        let arrival = Arrival { now: Instant::from_nanos(now), lost: Some(0) };
        for packet in packets {
            let done = self.0.0.receive(arrival, input(packet), room(packet)).unwrap();
            packet.output_len = done.len;
            (packet.cid, packet.profile) = (done.cid.value(), done.profile.number());
            (packet.header_in, packet.header_out) = (done.header_in as u32, done.header_out as u32);
        }
    }
}

/// A function of C, of which the compiler does not know which one it is.
macro_rules! unknown {
    ($function:path: ($($argument:ty),*) -> $result:ty) => {
        black_box($function as unsafe extern "C" fn($($argument),*) -> $result)
    };
}

/// A handle of the native library, and one packet.
struct Native(*mut Handle);

impl Way for Native {
    fn open() -> Self {
        let mut handle = null_mut();
        unsafe {
            let mut config = std::mem::zeroed::<Config>();
            c::thinair_rohc_config_init(&mut config);
            config.profiles = 0b1_0011;
            (config.rtp_guess, config.rtp_port_count, config.rtp_ports[0]) = (0, 1, RTP_PORT);
            config.refresh_packets = REFRESH;
            assert_eq!(c::thinair_rohc_create(&config, null_mut(), 0, &mut handle), Error::OK);
        }
        Self(handle)
    }

    fn compress(&mut self, now: u64, packets: &mut [Packet]) {
        let call = unknown!(c::thinair_rohc_compress: (*mut Handle, u64, *const u8, usize, *mut u8, usize, *mut usize) -> Error);
        let p = &mut packets[0];
        let error =
            unsafe { call(self.0, now, p.input, p.input_len, p.output, p.output_size, &mut p.output_len) };
        assert_eq!(error, Error::OK);
    }

    fn decompress(&mut self, now: u64, packets: &mut [Packet]) {
        let call = unknown!(c::thinair_rohc_decompress: (*mut Handle, u64, u32, *const u8, usize, *mut u8, usize, *mut usize) -> Error);
        let p = &mut packets[0];
        let error =
            unsafe { call(self.0, now, 0, p.input, p.input_len, p.output, p.output_size, &mut p.output_len) };
        assert_eq!(error, Error::OK);
    }
}

/// Such a handle, and batches.
struct NativeBatch(Native);

impl Way for NativeBatch {
    fn open() -> Self {
        Self(Native::open())
    }

    fn compress(&mut self, now: u64, packets: &mut [Packet]) {
        let call = unknown!(c::thinair_rohc_compress_batch: (*mut Handle, u64, *mut Packet, usize) -> usize);
        assert_eq!(unsafe { call(self.0.0, now, packets.as_mut_ptr(), packets.len()) }, packets.len());
    }

    fn decompress(&mut self, now: u64, packets: &mut [Packet]) {
        let call =
            unknown!(c::thinair_rohc_decompress_batch: (*mut Handle, u64, *mut Packet, usize) -> usize);
        assert_eq!(unsafe { call(self.0.0, now, packets.as_mut_ptr(), packets.len()) }, packets.len());
    }
}

/// The two sides of rohc-lib's interface, with input, output and feedback of a packet.
struct Librohc {
    comp: *mut Comp,
    decomp: *mut Decomp,
    buffers: [Buf; 3],
    feedback: &'static mut [u8],
}

unsafe extern "C" fn random(_: *const Comp, _: *mut c_void) -> c_int {
    1
}

unsafe extern "C" fn is_rtp(_: *const u8, udp: *const u8, _: *const u8, _: c_uint, _: *mut c_void) -> bool {
    unsafe { udp.add(2).cast::<[u8; 2]>().read() == RTP_PORT.to_be_bytes() }
}

impl Way for Librohc {
    fn open() -> Self {
        unsafe {
            let comp = comp::rohc_comp_new2(SMALL_CID, 15, Some(random), null_mut());
            let decomp = decomp::rohc_decomp_new2(SMALL_CID, 15, 1);
            for profile in [0, 1, 2, 6] {
                assert!(comp::rohc_comp_enable_profile(comp, profile));
                assert!(decomp::rohc_decomp_enable_profile(decomp, profile));
            }
            assert!(comp::rohc_comp_set_rtp_detection_cb(comp, Some(is_rtp), null_mut()));
            let time = Time { sec: 0, nsec: 0 };
            let none = Buf { time, data: null_mut(), max_len: 0, offset: 0, len: 0 };
            Self { comp, decomp, buffers: [none; 3], feedback: vec![0; 64].leak() }
        }
    }

    fn prepare(&mut self, now: u64, packets: &[Packet]) {
        let [packet] = packets else { panic!("one at a time") };
        let time = Time { sec: now / 1_000_000_000, nsec: now % 1_000_000_000 };
        let buf = |data, max_len, len| Buf { time, data, max_len, offset: 0, len };
        self.buffers = [
            buf(packet.input.cast_mut(), packet.input_len, packet.input_len),
            buf(packet.output, packet.output_size, 0),
            buf(self.feedback.as_mut_ptr(), self.feedback.len(), 0),
        ];
    }

    fn compress(&mut self, _: u64, packets: &mut [Packet]) {
        let call = unknown!(comp::rohc_compress4: (*mut Comp, Buf, *mut Buf) -> c_uint);
        let [input, out, _] = &mut self.buffers;
        assert_eq!(unsafe { call(self.comp, *input, out) }, 0);
        packets[0].output_len = out.len;
    }

    fn decompress(&mut self, _: u64, packets: &mut [Packet]) {
        let call =
            unknown!(decomp::rohc_decompress3: (*mut Decomp, Buf, *mut Buf, *mut Buf, *mut Buf) -> c_uint);
        let [input, out, send] = &mut self.buffers;
        assert_eq!(unsafe { call(self.decomp, *input, out, null_mut(), send) }, 0);
        packets[0].output_len = out.len;
    }
}
