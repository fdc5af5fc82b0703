//! Another implementation of ROHC in a separate program, and the captures for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[path = "../../../crates/rohc/benches/peer/program.rs"]
mod program;

pub use program::PeerProgram;
use thinair_capture::{Error, Reader};
use thinair_rohc::{Channel, CidSpace, Instant, ProfileId, ProfileSet};

use super::{files, root};

/// Sets of profiles that both rohc-lib and this implementation have: those of RFC 3095 and RFC 3843, or those of RFC 5225, whose
/// profile 0x0101 rohc-lib sends and reads as IR packets alone; with that of RFC 6846.
pub const PROFILES: [(&str, &[&str]); 2] = [
    ("v1", &["uncompressed", "rtp", "udp", "esp", "ip", "tcp"]),
    ("v2", &["uncompressed", "udp-v2", "esp-v2", "ip-v2", "tcp"]),
];

/// CID spaces with a MAX_CID. Large CIDs include two-octet ones, from 128 on.
pub const CIDS: [(&str, CidSpace, u16); 2] =
    [("small", CidSpace::Small, 15), ("large", CidSpace::Large, 1_023)];

pub const MODES: [&str; 2] = ["u", "o"];

/// Destination ports of RTP in the captures of rohc-lib.
pub const RTP_PORTS: [u16; 6] = [1_234, 36_780, 33_238, 5_020, 5_002, 5_006];

/// Number of blocks for extension headers.
pub const BLOCKS: usize = 64;

/// Program around another implementation: that of the variable, or that of `make peers` by its name; `None`, and a message, without
/// both.
pub fn program(variable: &str, name: &str, packets: &str) -> Option<OsString> {
    let built = || {
        let target = super::text(&super::metadata(), "target_directory");
        Some(Path::new(&target).join("peers").join(name)).filter(|path| path.exists()).map(Into::into)
    };
    let program = std::env::var_os(variable).or_else(built);
    if program.is_none() {
        println!("skipped: {variable} is not set, and `make peers` was not run ({packets})");
    }
    program
}

/// Packets with the time since the start of the capture, and its name.
pub struct CaptureStream {
    pub name: String,
    pub packets: Vec<(Instant, Vec<u8>)>,
}

/// One stream through one channel.
pub struct StreamRun<'r> {
    pub program: &'r OsStr,
    pub profiles: (&'r str, &'r [&'r str]),
    pub mode: &'r str,
    pub cids: (&'r str, CidSpace, u16),
    pub stream: &'r CaptureStream,
}

impl StreamRun<'_> {
    pub fn channel(&self) -> Channel {
        let (_, space, max_cid) = self.cids;
        let profiles: Vec<ProfileId> =
            self.profiles.1.iter().map(|name| ProfileId::by_name(name).unwrap()).collect();
        Channel::new(space, max_cid, ProfileSet::of(&profiles).unwrap()).unwrap()
    }

    /// Starts the program: kind of CIDs, highest CID and set of profiles come before its other `arguments`.
    pub fn start(&self, arguments: &[&str]) -> PeerProgram {
        let (kind, _, max_cid) = self.cids;
        let max_cid = max_cid.to_string();
        let arguments = [&[kind, &max_cid, self.profiles.0], arguments].concat();
        PeerProgram::start(self.program, &arguments, Stdio::inherit())
    }
}

/// Available captures, by folder.
pub fn groups() -> Vec<(String, Vec<CaptureStream>)> {
    let mut folders = vec![("captures".to_owned(), root().join("captures"))];
    match std::env::var_os("THINAIR_VECTORS").map(PathBuf::from) {
        Some(shared) => {
            let below = ["captures/open", "vectors/rohc-lib", "captures/own", "captures/repro"];
            assert!(shared.join(below[1]).is_dir(), "THINAIR_VECTORS is set, but there are no vectors");
            folders.extend(below.map(|folder| (folder.to_owned(), shared.join(folder))));
        }
        None => println!("skipped: THINAIR_VECTORS is not set (captures of others)"),
    }
    let mut groups = BTreeMap::<String, Vec<CaptureStream>>::new();
    for (name, folder) in folders {
        let (pcap, pcapng) = (files(&folder, ".pcap"), files(&folder, ".pcapng"));
        for path in pcap.into_iter().chain(pcapng) {
            let file = path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
            let parts: Vec<&str> = file.split('/').collect();
            // Output of another compressor is not an input.
            if parts.last().is_some_and(|name| name.starts_with("rohc")) {
                continue;
            }
            let packets = packets(&path);
            if !packets.is_empty() {
                let group = [&[name.as_str()], &parts[..parts.len().min(3) - 1]].concat().join("/");
                groups.entry(group).or_default().push(CaptureStream { name: file, packets });
            }
        }
    }
    groups.into_iter().collect()
}

/// Complete IP packets of a capture.
fn packets(path: &Path) -> Vec<(Instant, Vec<u8>)> {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let (mut packets, mut start, mut now) = (Vec::new(), None, 0);
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(Error::Truncated { .. }) => break,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let time = record.time.as_nanos();
        // Some captures go back in time.
        now = now.max(time.saturating_sub(*start.get_or_insert(time)));
        if let Ok(network) = record.network_packet() {
            packets.push((Instant::from_nanos(now), network.packet.to_vec()));
        }
    }
    packets
}

pub fn hex(octets: &[u8]) -> String {
    const MOST: usize = 160;
    let text: String = octets.iter().take(MOST).map(|octet| format!("{octet:02x}")).collect();
    if octets.len() > MOST { format!("{text}... ({} octets)", octets.len()) } else { text }
}
