//! Third-party packets: streams compressed by rohc-lib and others, decoded by our decompressor, and their sources
//! through our own compressor.
//!
//! The vectors lie where `THINAIR_SHARED` points (`vectors/rohc-lib`). What rohc-lib's own tests expect of each of
//! them is said beside it; nothing of them is part of this project.

#![allow(clippy::unwrap_used)]

mod functional;
mod robustness;
mod streams;

use std::fs;
use std::path::{Path, PathBuf};

use thinair_capture::{ETHERNET_HEADER_LEN, Error, LinkType, Reader};
use thinair_rohc::packet;
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Format, Instant,
    Mode, ProfileId, ProfileSet,
};

/// Longer than any packet of the vectors.
const ROOM: usize = 70_000;

/// The folder of vectors, if the environment names one.
fn vectors(skipped: &str) -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("THINAIR_SHARED") else {
        println!("skipped, because THINAIR_SHARED is not set: {skipped}");
        return None;
    };
    let folder = Path::new(&shared).join("vectors/rohc-lib");
    assert!(folder.is_dir(), "THINAIR_SHARED is set, but {} is absent", folder.display());
    Some(folder)
}

/// Octets after the link header of every record, without padding of the link.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(Error::Truncated { .. }) => break,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let octets = match (record.rohc_packet(), record.network_packet()) {
            (Ok(rohc), _) => rohc.packet,
            (Err(_), Ok(network)) => network.packet,
            (Err(_), Err(_)) if record.link_type == LinkType::ETHERNET => {
                record.data.get(ETHERNET_HEADER_LEN..).unwrap_or_default()
            }
            (Err(_), Err(_)) => record.data,
        };
        records.push(octets.to_vec());
    }
    records
}

/// The files below a folder whose name is accepted, sorted.
fn files(folder: &Path, accept: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, accept));
        } else if accept(&path.file_name().unwrap().to_string_lossy()) {
            found.push(path);
        }
    }
    found
}

/// The captures of a folder.
fn captures(folder: &Path) -> Vec<PathBuf> {
    files(folder, &|name| name.ends_with(".pcap"))
}

/// The name of a file without its end.
fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, cids.highest(), ProfileSet::v1()).unwrap()
}

/// A decompressor in O-mode for what rohc-lib has compressed: it sends packets without payload as IR too.
fn decompressor(cids: CidSpace) -> Decompressor<'static> {
    let channel = channel(cids);
    let config = DecompressorConfig {
        mode: Mode::Optimistic,
        deliver_empty: true,
        ..DecompressorConfig::new(channel)
    };
    Decompressor::new(config, DecompressorMemory::owned(&channel, 64))
}

/// Whether the profile of that name is there.
fn is_there(profile: &str) -> bool {
    ProfileId::by_name(profile).is_some_and(|profile| ProfileSet::v1().has(profile))
}

/// What rohc-lib's tests tell their compressor: which UDP ports are those of RTP.
fn compressor_config(channel: Channel) -> CompressorConfig {
    CompressorConfig::new(channel)
}

/// A compressor and a decompressor in U-mode, as most of rohc-lib's tests have them: small CIDs.
struct Pair {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    sent: u64,
    rohc: Vec<u8>,
    back: Vec<u8>,
}

impl Pair {
    fn new(config: CompressorConfig, mode: Mode) -> Self {
        let at = DecompressorConfig { mode, ..DecompressorConfig::new(channel(config.channel.cids())) };
        Self {
            compressor: Compressor::new(config, CompressorMemory::owned(&config.channel, 64)),
            decompressor: Decompressor::new(at, DecompressorMemory::owned(&at.channel, 64)),
            sent: 0,
            rohc: vec![0; ROOM],
            back: vec![0; ROOM],
        }
    }

    fn now(&self) -> Instant {
        Instant::from_millis(10 * self.sent)
    }

    fn compress(&mut self, packet: &[u8]) -> Result<(Compressed, Vec<u8>), CompressError> {
        self.sent += 1;
        let done = self.compressor.compress(self.now(), packet, &mut self.rohc)?;
        Ok((done, self.rohc[..done.len].to_vec()))
    }

    /// What the decompressor delivers; its feedback reaches the compressor before the next packet.
    fn decompress(&mut self, rohc: &[u8]) -> Result<Vec<u8>, DecompressError> {
        let now = self.now();
        let done = self.decompressor.decompress(now, rohc, &mut self.back);
        let mut feedback = [0; 64];
        while let Some(len) = self.decompressor.poll_feedback(&mut feedback) {
            for element in packet::parts(&feedback[..len]).unwrap().feedback {
                self.compressor.receive_feedback(now, element).unwrap();
            }
        }
        done.map(|Decompressed { len, .. }| self.back[..len].to_vec())
    }

    /// Both, and that the packet comes back.
    fn carry(&mut self, packet: &[u8], what: &str) -> Compressed {
        let (done, rohc) = self.compress(packet).unwrap();
        let back = self.decompress(&rohc).unwrap_or_else(|error| panic!("{what}: {error} {done:?}"));
        assert_eq!(back, packet, "{what}: {done:?}");
        done
    }
}

/// The format without its extension, as rohc-lib's tests name it.
fn base(format: Format) -> String {
    let name = format.name().to_lowercase();
    let name = name.split("-ext").next().unwrap();
    name.replace('-', "")
}
