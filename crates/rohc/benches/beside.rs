//! Time of a packet beside rohc-lib.
//!
//! `extras/peers/times.c` is one program, linked with rohc-lib and with our `librohc` by turns. Called as `PROGRAM CASE`, it
//! prints `CASE COMPRESS DECOMPRESS VERSION`: nanoseconds of processor time a packet, and the version of its library. A batch of 1,024
//! packets is compressed, and then decompressed; the times are medians of 128 batches, in U-mode without refreshes, with large CIDs,
//! room for 16,384 contexts, and no clock of the caller. The engine itself takes the same batches here, in Rust.
//!
//! `cargo bench -p thinair-rohc --bench beside` prints the medians of five turns, and what part of the time of rohc-lib ours takes. The
//! programs are those that `THINAIR_TIMES` and `THINAIR_PEER_TIMES` name, or else `beside/times` and `peers/times` in the target folder,
//! as `make bench` and `make peers` build them. Without them the engine stands alone.
//!
//! | case | packets |
//! |---|---|
//! | `udp-ipv4` | a 9-octet GET over UDP and IPv4; the IP-ID counts from 0 (`get::over_ipv4`) |
//! | `udp-ipv6` | the same over IPv6 (`get::IPV6`) |
//! | `rtp-ipv4` | voice (`flows::rtp`) |
//! | `esp-ipv4` | a VPN (`flows::esp`) |
//! | `udp-v2-ipv4` | that of `udp-ipv4`, with ROHCv2 |
//! | `tcp-ipv4` | segments of 20 octets with timestamps (`flows::tcp`) |
//! | `tcp-acks-ipv4` | acknowledgments with timestamps |
//! | `udp-ipv4-16384` | the GET of 16,384 hosts that take turns |
//! | `new-flow-16384` | the GET of a host never seen before, while every context is in use |

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant as Clock};

use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, ProfileId, ProfileSet, Refresh, RtpDetection,
};

mod flows;
mod get;

const CASES: [&str; 9] = [
    "udp-ipv4",
    "udp-ipv6",
    "rtp-ipv4",
    "esp-ipv4",
    "udp-v2-ipv4",
    "tcp-ipv4",
    "tcp-acks-ipv4",
    "udp-ipv4-16384",
    "new-flow-16384",
];

/// As in `extras/peers/times.c`.
const CONTEXTS: u32 = 16_384;
const BATCH: usize = 1_024;
const BATCHES: usize = 128;
const WARM: usize = 16 * CONTEXTS as usize / BATCH;
const BLOCKS: usize = 64;
const ROOM: usize = 128;

/// Number of turns of each case.
const TURNS: usize = 5;

/// Nanoseconds of a packet: compress, decompress.
type Times = [f64; 2];

fn main() {
    let peer = Library::find("THINAIR_PEER_TIMES", "peers", false);
    let ours = Library::find("THINAIR_TIMES", "beside", true);
    println!(
        "| compress / decompress | rohc-lib, ns | librohc, ns | of rohc-lib | in Rust, ns | of rohc-lib |"
    );
    println!("|---|---|---|---|---|---|");
    for case in CASES {
        let mut turns: [[Vec<f64>; 2]; 5] = Default::default();
        for _ in 0..TURNS {
            let [theirs, ours] = [&peer, &ours].map(|library| library.as_ref().map(|it| it.times(case)));
            let engine = engine(case);
            let part = |of: Times| theirs.map(|theirs| [of[0] / theirs[0], of[1] / theirs[1]]);
            let values = [theirs, ours, ours.and_then(part), Some(engine), part(engine)];
            for (turns, value) in turns.iter_mut().zip(values) {
                turns
                    .iter_mut()
                    .zip(value.into_iter().flatten())
                    .for_each(|(turns, value)| turns.push(value));
            }
        }
        let [theirs, ours, part, engine, engine_part] = turns.map(|turns| turns.map(median));
        println!(
            "| {case} | {} | {} | {} | {} | {} |",
            text(theirs, 0),
            text(ours, 0),
            text(part, 3),
            text(engine, 0),
            text(engine_part, 3)
        );
    }
}

fn text(pair: [Option<f64>; 2], digits: usize) -> String {
    match pair {
        [Some(compress), Some(decompress)] => format!("{compress:.digits$} / {decompress:.digits$}"),
        _ => "-".to_owned(),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The program, linked with one of the two libraries.
struct Library(PathBuf);

impl Library {
    fn find(variable: &str, folder: &str, is_ours: bool) -> Option<Self> {
        let built = || {
            let program = std::env::current_exe().ok()?;
            // The target folder is above release/deps/beside-...
            Some(program.ancestors().nth(3)?.join(folder).join("times")).filter(|path| path.exists())
        };
        let library = std::env::var_os(variable).map(PathBuf::from).or_else(built).map(Self);
        match &library {
            Some(library) => {
                let version = library.run(CASES[0])[3..].join(" ");
                assert_eq!(version.contains("thinair"), is_ours, "{variable}: the library is {version}");
            }
            None => println!("skipped: {variable} is not set, and {folder}/times is not built"),
        }
        library
    }

    fn run(&self, case: &str) -> Vec<String> {
        let output = Command::new(&self.0).arg(case).output().expect("it is a program");
        let words = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn times(&self, case: &str) -> Times {
        let words = self.run(case);
        [1, 2].map(|i| words[i].parse().expect("it is a number"))
    }
}

/// Packet `count` of a case.
fn packet(case: &str, count: u32) -> Vec<u8> {
    let get = |host, ip_id: u32| get::over_ipv4(host, ip_id as u16).to_vec();
    match case {
        "udp-ipv6" => get::IPV6.to_vec(),
        "rtp-ipv4" => flows::rtp(count).to_vec(),
        "esp-ipv4" => flows::esp(count).to_vec(),
        "tcp-ipv4" => flows::tcp(count, false),
        "tcp-acks-ipv4" => flows::tcp(count, true),
        "udp-ipv4-16384" => get(count % CONTEXTS, count / CONTEXTS),
        "new-flow-16384" => get(count, 0),
        _ => get(0, count),
    }
}

/// Times of the engine.
fn engine(case: &str) -> Times {
    use ProfileId::{Esp, EspV2, Ip, IpV2, Rtp, Tcp, Udp, UdpV2};
    let profiles =
        if case == "udp-v2-ipv4" { &[UdpV2, EspV2, IpV2, Tcp][..] } else { &[Rtp, Udp, Esp, Ip, Tcp] };
    let profiles = ProfileSet::of(profiles).expect("none has a rival");
    let channel =
        Channel::new(CidSpace::Large, CONTEXTS as u16 - 1, profiles).expect("the highest CID is a CID");
    let config = CompressorConfig {
        refresh: Refresh::Off,
        rtp: RtpDetection::of_ports(&[5_004]).expect("it is one port"),
        ..CompressorConfig::new(channel)
    };
    let sizes = channel.sizes().blocks(BLOCKS).tcp_flows(CONTEXTS as usize);
    let memory = CompressorMemory::owned(sizes);
    let mut compressor = Compressor::new(config, memory);
    let memory = DecompressorMemory::owned(sizes);
    let mut decompressor = Decompressor::new(DecompressorConfig::new(channel), memory);
    let mut rohc = vec![([0; ROOM], 0); BATCH];
    let mut times = [const { Vec::new() }; 2];
    for batch in 0..WARM + BATCHES {
        let packets: Vec<_> = (batch * BATCH..(batch + 1) * BATCH).map(|i| packet(case, i as u32)).collect();
        let start = Clock::now();
        for (packet, (out, len)) in packets.iter().zip(rohc.iter_mut()) {
            let done = compressor.compress(Instant::ZERO, black_box(packet), out);
            *len = done.expect("there is room").len;
        }
        let compressed = start.elapsed();
        let (mut back, mut octets) = ([0; ROOM], 0);
        let start = Clock::now();
        for (octets_of, len) in &rohc {
            let done = decompressor.decompress(Instant::ZERO, black_box(&octets_of[..*len]), &mut back);
            octets += done.expect("nothing is lost").len;
            black_box(&back);
        }
        let decompressed = start.elapsed();
        assert_eq!(octets, packets.iter().map(Vec::len).sum());
        if batch >= WARM {
            let nanos = |time: Duration| time.as_secs_f64() * 1e9 / BATCH as f64;
            times[0].push(nanos(compressed));
            times[1].push(nanos(decompressed));
        }
    }
    times.map(|times| median(times).expect("there are batches"))
}
