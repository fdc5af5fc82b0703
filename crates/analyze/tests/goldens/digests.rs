//! One digest per stream and mode of every octet that our compressors send, and of all feedback to them: it
//! reveals unintended changes of the output.
//!
//! `digests/captures.txt` and `digests/goldens.txt` contain a line per digest: stream, mode, packets sent,
//! octets in both directions with feedback, FNV-1a of all lengths and octets. `THINAIR_BLESS=1 cargo test -p
//! thinair-analyze --test goldens digests` rewrites them, the second one only if `THINAIR_VECTORS` points to
//! its streams.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use thinair_analyze::{Directions, endpoint};
use thinair_capture::{Error, Reader};
use thinair_lowpan::Contexts;
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, Mode, ProfileId, ProfileSet,
    RtpDetection,
};

use crate::{ROOM, RTP_PORTS, captures, files, records, stem, vectors};

/// Modes by their names in the files, with the CIDs of the channel.
const MODES: [(&str, Mode, CidSpace, u16); 4] = [
    ("u", Mode::Unidirectional, CidSpace::Small, 15),
    ("o", Mode::Optimistic, CidSpace::Small, 15),
    ("r", Mode::Reliable, CidSpace::Small, 15),
    ("o-large", Mode::Optimistic, CidSpace::Large, 127),
];

/// A packet of a stream: the end that sends it (0 or 1), time, and octets.
type StreamPacket = (usize, Instant, Vec<u8>);

/// Name and mode, and the rest of the line.
type Digests = BTreeMap<(String, String), StreamDigest>;

#[test]
fn captures_are_sent_octet_for_octet_as_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut digests = Digests::new();
    for path in captures(&folder) {
        add(&mut digests, stem(&path), &of_capture(&path), RtpDetection::default());
    }
    compare(&digests, "captures.txt", 44);
}

#[test]
fn sources_of_goldens_are_sent_octet_for_octet_as_before() {
    let Some(folder) = vectors("digests of 121 source streams in 4 modes") else { return };
    let folder = folder.join("non_regression");
    let mut digests = Digests::new();
    for path in files(&folder, &|name| name == "source.pcap") {
        let name = path.parent().unwrap().strip_prefix(&folder).unwrap();
        let name: Vec<_> =
            name.iter().map(|part| part.to_str().unwrap()).filter(|&part| part != "inputs").collect();
        // One direction, at a constant interval.
        let packets: Vec<_> =
            (0..).zip(records(&path)).map(|(i, packet)| (0, Instant::from_millis(10 * i), packet)).collect();
        add(&mut digests, &name.join("/"), &packets, RtpDetection::of_ports(&RTP_PORTS).unwrap());
    }
    compare(&digests, "goldens.txt", 121);
}

/// Returns the packets of a capture in both directions, at their times.
fn of_capture(path: &Path) -> Vec<StreamPacket> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut directions = Directions::new(Contexts::NONE);
    let (mut packets, mut first) = (Vec::new(), None);
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(Error::Truncated { .. }) => break,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let nanos = record.time.as_nanos();
        let now = Instant::from_nanos(nanos - *first.get_or_insert(nanos));
        if let Ok((side, packet)) = directions.packet(&record) {
            packets.push((side.index(), now, packet.to_vec()));
        }
    }
    packets
}

/// Sends a stream in each mode, and adds the digests.
fn add(digests: &mut Digests, name: &str, packets: &[StreamPacket], rtp: RtpDetection) {
    for (mode_name, mode, cids, highest) in MODES {
        let more = [ProfileId::Coap, ProfileId::Dtls, ProfileId::Tcp];
        let profiles = more.iter().fold(ProfileSet::v1(), |set, profile| set.with(*profile).unwrap());
        let channel = Channel::new(cids, highest, profiles).unwrap();
        let end = || {
            endpoint(
                CompressorConfig { rtp, ..CompressorConfig::new(channel) },
                DecompressorConfig { mode, ..DecompressorConfig::new(channel) },
                &[],
            )
        };
        let sum = carry([end(), end()], packets, &format!("{name} {mode_name}"));
        digests.insert((name.to_owned(), mode_name.to_owned()), sum);
    }
}

/// Sends every packet that can be compressed to the other end, and returns feedback at once.
fn carry(mut ends: [Endpoint<'static>; 2], packets: &[StreamPacket], what: &str) -> StreamDigest {
    let (mut rohc, mut back) = (vec![0; ROOM], vec![0; ROOM]);
    let mut sum = StreamDigest::new();
    for (i, (from, now, packet)) in packets.iter().enumerate() {
        let Ok(done) = ends[*from].send(*now, packet, &mut rohc) else { continue };
        let len = done.len;
        sum.add(&rohc[..len]);
        sum.packets += 1;
        let got = ends[1 - from].receive(*now, &rohc[..len], &mut back);
        let got = got.unwrap_or_else(|error| panic!("{what}: packet {}: {error}, {done:?}", i + 1));
        assert!(back[..got.len] == **packet, "{what}: packet {} is delivered wrong: {done:?}", i + 1);
        while let Some(len) = ends[1 - from].poll_feedback(&mut rohc) {
            sum.add(&rohc[..len]);
            // No packet follows the feedback, so nothing is delivered.
            let _ = ends[*from].receive(*now, &rohc[..len], &mut []);
        }
    }
    sum
}

/// FNV-1a with 64 bits of all packets, each after its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StreamDigest {
    packets: usize,
    octets: usize,
    digest: u64,
}

impl StreamDigest {
    const fn new() -> Self {
        Self { packets: 0, octets: 0, digest: 0xCBF2_9CE4_8422_2325 }
    }

    fn add(&mut self, sent: &[u8]) {
        self.octets += sent.len();
        for &octet in u32::try_from(sent.len()).unwrap().to_be_bytes().iter().chain(sent) {
            self.digest = (self.digest ^ u64::from(octet)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn line(self) -> String {
        format!("{} {} {:016x}", self.packets, self.octets, self.digest)
    }
}

/// Compares digests with those of a file, or rewrites the file.
fn compare(digests: &Digests, file: &str, streams: usize) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/digests")).join(file);
    assert_eq!(digests.len(), streams * MODES.len(), "streams were added, or are missing");
    if std::env::var_os("THINAIR_BLESS").is_some() {
        let lines = digests.iter().map(|((name, mode), sum)| format!("{name} {mode} {}\n", sum.line()));
        fs::write(&path, lines.collect::<String>()).unwrap();
        println!("{} is written", path.display());
        return;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut expected = Digests::new();
    for line in text.lines() {
        let [name, mode, packets, octets, digest] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let sum = StreamDigest {
            packets: packets.parse().unwrap(),
            octets: octets.parse().unwrap(),
            digest: u64::from_str_radix(digest, 16).unwrap(),
        };
        expected.insert((name.to_owned(), mode.to_owned()), sum);
    }
    let keys: BTreeSet<_> = expected.keys().chain(digests.keys()).collect();
    let mut differing = 0;
    for key in keys {
        let (old, new) = (expected.get(key), digests.get(key));
        if old != new {
            let text = |sum: Option<&StreamDigest>| sum.map_or("absent".to_owned(), |sum| sum.line());
            println!("{} {}: {} -> {}", key.0, key.1, text(old), text(new));
            differing += 1;
        }
    }
    let octets = |digests: &Digests| digests.values().map(|sum| sum.octets).sum::<usize>();
    let totals = format!("{} -> {} octets in all", octets(&expected), octets(digests));
    println!("{} digests of {streams} streams, {differing} differ; {totals}", digests.len());
    assert_eq!(
        differing, 0,
        "digests differ (see above: packets, octets, digest; {totals}). If that is meant: \
         THINAIR_BLESS=1 cargo test -p thinair-analyze --test goldens digests"
    );
}
