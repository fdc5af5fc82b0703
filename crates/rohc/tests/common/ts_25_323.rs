//! The bench for ROHC of 3GPP TS 25.323, Annex A (normative): header sizes of profile 0x0001 for nine sequences of RTP
//! packets, each over IPv4 and IPv6.
//!
//! 70 packets: SN 0 to 69, timestamp 160 times the SN, IP-ID the SN, DF 1, payload type 96, marker 0, UDP checksum, 32
//! octets of payload. The compressor starts in U-mode; between SN 5 and 6 a FEEDBACK-2 acknowledges SN 0 and requests
//! O-mode (tests `a`) or R-mode (tests `b`). In R-mode each header that starts like an update is acknowledged at once. The
//! limits are averages of octets of the compressed header, without CID, padding and feedback.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use core::fmt::{self, Display};
use core::time::Duration;

use thinair_rohc::feedback::{AckType, Feedback};
use thinair_rohc::{
    Channel, Cid, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, Interop, Mode, ProfileSet, RtpDetection,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

/// Number of packets that establish a context, N. An input of Annex A, below 8; 4 in Annex B.2.3.
const N: usize = 4;

const PACKETS: usize = 70;
const PAYLOAD: usize = 32;
const PORT: u16 = 5004;

/// SN after which the mode is requested.
const ASKED: usize = 5;

/// A stretch after changes of a sequence: its first and last SN in O-mode, and the limit. In R-mode it ends with the first
/// UOR-2, IR-DYN or IR that has the last change.
type Stretch = (usize, usize, f64);

/// One of the nine tests.
pub struct Test {
    pub name: &'static str,
    mode: Mode,
    /// Timestamp of an SN, in packets of 160.
    steps: fn(usize) -> usize,
    /// True if an SN is left out.
    skips: fn(usize) -> bool,
    stretches: &'static [Stretch],
}

/// All tests. Tests 2, 5 and 7b of Annex A are void or absent.
pub const TESTS: [Test; 9] = [
    Test { name: "1a", mode: Mode::Optimistic, steps: |sn| sn, skips: |_| false, stretches: &[] },
    Test { name: "1b", mode: Mode::Reliable, steps: |sn| sn, skips: |_| false, stretches: &[] },
    Test { name: "3a", mode: Mode::Optimistic, steps: jumps, skips: |_| false, stretches: &JUMPS },
    Test { name: "3b", mode: Mode::Reliable, steps: jumps, skips: |_| false, stretches: &JUMPS },
    Test { name: "4a", mode: Mode::Optimistic, steps: |sn| sn, skips: is_single, stretches: &[] },
    Test { name: "4b", mode: Mode::Reliable, steps: |sn| sn, skips: is_single, stretches: &[] },
    Test {
        name: "6a",
        mode: Mode::Optimistic,
        steps: small_jumps,
        skips: |_| false,
        stretches: &SMALL_JUMPS,
    },
    Test { name: "6b", mode: Mode::Reliable, steps: small_jumps, skips: |_| false, stretches: &SMALL_JUMPS },
    Test {
        name: "7a",
        mode: Mode::Optimistic,
        steps: |sn| sn,
        skips: is_relocation,
        stretches: &[(60, 59 + N, 8.0)],
    },
];

const JUMPS: [Stretch; 3] = [(20, 19 + N, 10.0), (30, 29 + N, 10.0), (40, 39 + N, 10.0)];
const SMALL_JUMPS: [Stretch; 3] = [(20, 22 + N, 15.0), (30, 34 + N, 15.0), (40, 46 + N, 15.0)];

fn jumps(sn: usize) -> usize {
    sn + [(20, 32), (30, 128), (40, 2048)].iter().filter(|(at, _)| sn >= *at).map(|(_, by)| by).sum::<usize>()
}

fn small_jumps(sn: usize) -> usize {
    sn + 7 * [20..=22, 30..=34, 40..=46].into_iter().flatten().filter(|&at| sn >= at).count()
}

fn is_single(sn: usize) -> bool {
    matches!(sn, 20 | 30 | 40)
}

fn is_relocation(sn: usize) -> bool {
    (10..=59).contains(&sn)
}

/// One limit of a test, and the measured average.
pub struct LimitRow {
    pub test: &'static str,
    pub version: u8,
    /// First and last SN.
    pub sns: (usize, usize),
    /// In octets.
    pub limit: f64,
    pub octets: f64,
}

impl LimitRow {
    pub fn passes(&self) -> bool {
        self.octets <= self.limit
    }
}

impl Display for LimitRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test, version, sns: (first, last), limit, octets } = self;
        let verdict = if self.passes() { "pass" } else { "FAIL" };
        write!(f, "| {test} | {version} | {first}..{last} | {limit:.0} | {octets:.2} | {verdict} |")
    }
}

/// A run of one test.
pub struct AnnexRun {
    pub rows: Vec<LimitRow>,
    /// Octets of each header, by SN; `None` if the SN is left out.
    pub headers: Vec<Option<(usize, Format)>>,
    /// Number of packets that arrived and were not delivered correctly.
    pub lost: usize,
    pub wrong: usize,
}

impl AnnexRun {
    pub fn passes(&self) -> bool {
        self.lost + self.wrong == 0 && self.rows.iter().all(LimitRow::passes)
    }
}

/// Sets the options that the bench needs.
pub fn configure(config: &mut CompressorConfig) {
    config.interop = Interop::TS_25_323;
}

impl Test {
    /// Runs the test over IPv4 or IPv6, with the default configuration except the port of RTP and `change`.
    pub fn run(&self, version: u8, change: impl Fn(&mut CompressorConfig)) -> AnnexRun {
        self.run_with_loss(version, change, &[])
    }

    /// Runs the test with packets that do not arrive at the decompressor.
    pub fn run_with_loss(
        &self,
        version: u8,
        change: impl Fn(&mut CompressorConfig),
        missing: &[usize],
    ) -> AnnexRun {
        let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
        let mut config = CompressorConfig::new(channel);
        config.rtp = RtpDetection::of_ports(&[PORT]).unwrap();
        change(&mut config);
        let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(8)));
        let config = DecompressorConfig { mode: self.mode, ..DecompressorConfig::new(channel) };
        let mut decompressor =
            Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(8)));
        let mut headers = vec![None; PACKETS];
        let (mut rohc, mut back, mut lost, mut wrong) = ([0; 200], [0; 200], 0, 0);
        for sn in (0..PACKETS).filter(|&sn| !(self.skips)(sn)) {
            let now = Instant::ZERO + Duration::from_millis(20 * sn as u64);
            let packet = packet(version, sn, (self.steps)(sn));
            let done = compressor.compress(now, &packet, &mut rohc).unwrap();
            headers[sn] = Some((done.header_out, done.format));
            if !missing.contains(&sn) {
                let came_back = decompressor.decompress(now, &rohc[..done.len], &mut back);
                match came_back {
                    Ok(got) => wrong += usize::from(back[..got.len] != packet),
                    Err(_) => lost += 1,
                }
            }
            // The bench has its own feedback.
            while decompressor.poll_feedback(&mut [0; 64]).is_some() {}
            if sn == ASKED {
                acknowledge(&mut compressor, now, 0, self.mode);
            } else if sn > ASKED && self.mode == Mode::Reliable && is_update(rohc[0]) {
                acknowledge(&mut compressor, now, sn, self.mode);
            }
        }
        let rows = self.rows(version, &headers);
        AnnexRun { rows, headers, lost, wrong }
    }

    fn rows(&self, version: u8, headers: &[Option<(usize, Format)>]) -> Vec<LimitRow> {
        // The first UOR-2, IR-DYN or IR from an SN on.
        let x = |from: usize| {
            (from..PACKETS).find(|&sn| headers[sn].is_some_and(|(_, format)| is_x(format))).unwrap_or(PACKETS)
        };
        let mut limits = vec![(0, N - 1, if version == 4 { 44.0 } else { 68.0 })];
        let mut next = N;
        if self.mode == Mode::Reliable {
            limits.extend([(N, ASKED, 5.0), (ASKED + 1, x(ASKED + 1), 9.0)]);
            next = x(ASKED + 1) + 1;
        }
        for &(first, last, limit) in self.stretches {
            let last = if self.mode == Mode::Reliable { x(first.max(last - N)) } else { last };
            limits.extend([(next, first - 1, 5.0), (first, last, limit)]);
            next = last + 1;
        }
        limits.push((next, PACKETS - 1, 5.0));
        let row = |(first, last, limit): (usize, usize, f64)| {
            let mut sent = (first..=last).filter_map(|sn| Some((sn, headers[sn]?.0)));
            let (count, octets) =
                sent.clone().fold((0, 0), |(count, sum), (_, octets)| (count + 1, sum + octets));
            let sns = (first, sent.next_back().map_or(first, |(sn, _)| sn));
            LimitRow { test: self.name, version, sns, limit, octets: octets as f64 / count as f64 }
        };
        limits.into_iter().map(row).collect()
    }
}

/// True for formats that can be x of Annex A.
fn is_x(format: Format) -> bool {
    format.is_initialization() || format.name().starts_with("UOR-2")
}

/// True if a header begins like R-0-CRC, UOR-2, IR or IR-DYN.
fn is_update(first: u8) -> bool {
    first >> 6 == 0b01 || first >> 5 == 0b110 || first >> 1 == 0b111_1110 || first == 0b1111_1000
}

/// FEEDBACK-2 with a CRC option: `f4`, 2 octets, 2 octets.
fn acknowledge(compressor: &mut Compressor<'_>, now: Instant, sn: usize, mode: Mode) {
    let ack = Feedback::new(Cid::ZERO, AckType::Ack);
    let ack = Feedback { mode: Some(mode), sn: sn as u32, sn_bits: 12, protected: true, ..ack };
    let mut element = [0; 16];
    let len = ack.write(CidSpace::Small, &mut element).unwrap();
    assert_eq!((element[0], len), (0xF4, 5));
    compressor.receive_feedback(now, &element[1..len]).unwrap();
}

/// An RTP packet of 72 octets over IPv4, 92 over IPv6.
fn packet(version: u8, sn: usize, step: usize) -> Vec<u8> {
    let length = (8 + 12 + PAYLOAD) as u16;
    let mut packet = if version == 4 {
        let mut ip =
            vec![0x45, 0, 0, 20 + length as u8, 0, sn as u8, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = Ipv4::checksum_of(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip
    } else {
        let mut ip = vec![0x60, 0, 0, 0, 0, length as u8, 17, 64];
        ip.extend_from_slice(&[0xFD; 16]);
        ip.extend_from_slice(&[0xFE; 16]);
        ip
    };
    let udp = packet.len();
    for word in [PORT, PORT, length, 0] {
        packet.extend_from_slice(&word.to_be_bytes());
    }
    packet.extend_from_slice(&[0x80, 96, 0, sn as u8]);
    packet.extend_from_slice(&(160 * step as u32).to_be_bytes());
    packet.extend_from_slice(&0x1122_3344_u32.to_be_bytes());
    packet.resize(udp + usize::from(length), sn as u8);
    let addresses = if version == 4 { 12..20 } else { 8..40 };
    let sum = Sum::ZERO.octets(&packet[addresses]).octets(&packet[udp..]).word(17).word(length).checksum();
    packet[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
    packet
}
