//! Third-party packets: streams compressed by rohc-lib and others, decompressed by our decompressor, and
//! their sources through our own compressor.
//!
//! `THINAIR_VECTORS` points to the vectors (`vectors/rohc-lib`). The expectations of rohc-lib's own tests are
//! stated with each; no part of rohc-lib belongs to this project.

#![allow(clippy::unwrap_used)]

mod digests;
mod epochs;
mod functional;
mod robustness;
mod rohcv2;
mod streams;
mod tcp;

use std::fs;
use std::path::{Path, PathBuf};

use thinair_capture::{ETHERNET_HEADER_LEN, Error, LinkType, Reader};
use thinair_rohc::packet;
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Format, Instant,
    Interop, Mode, ProfileSet, RtpDetection,
};
use thinair_wire::checksum::checksum;

/// Longer than any packet of the vectors.
const ROOM: usize = 70_000;

/// Returns the folder of vectors, if the environment defines one.
fn vectors(skipped: &str) -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("THINAIR_VECTORS") else {
        println!("skipped: THINAIR_VECTORS is not set ({skipped})");
        return None;
    };
    let folder = Path::new(&shared).join("vectors/rohc-lib");
    assert!(folder.is_dir(), "THINAIR_VECTORS is set, but {} is absent", folder.display());
    Some(folder)
}

/// Returns the octets after the link layer header of every record, without padding.
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

/// Returns the files below a folder whose name is accepted, sorted.
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

/// Returns the captures of a folder.
fn captures(folder: &Path) -> Vec<PathBuf> {
    files(folder, &|name| name.ends_with(".pcap"))
}

/// Returns the name of a file without its extension.
fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, cids.highest(), ProfileSet::v1()).unwrap()
}

/// Returns a decompressor in O-mode for packets of rohc-lib, which sends packets without payload as IR, too.
fn decompressor(cids: CidSpace) -> Decompressor<'static> {
    let channel = channel(cids);
    let config = DecompressorConfig {
        mode: Mode::Optimistic,
        interop: Interop { deliver_empty: true, uo_1_id_updates: true, ..Interop::STANDARD },
        ..DecompressorConfig::new(channel)
    };
    Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)))
}

/// UDP destination ports of RTP in rohc-lib's tests.
const RTP_PORTS: [u16; 6] = [1234, 36780, 33238, 5020, 5002, 5006];

/// Settings of the compressor in rohc-lib's tests.
fn compressor_config(channel: Channel) -> CompressorConfig {
    let rtp = RtpDetection::of_ports(&RTP_PORTS).unwrap();
    CompressorConfig { rtp, ..CompressorConfig::new(channel) }
}

/// A compressor and a decompressor in U-mode with small CIDs, as in most of rohc-lib's tests.
struct RohcPair {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    sent: u64,
    rohc: Vec<u8>,
    back: Vec<u8>,
}

impl RohcPair {
    fn new(config: CompressorConfig, mode: Mode) -> Self {
        let profiles = config.channel.profiles();
        let decompressor =
            Channel::new(config.channel.cids(), config.channel.cids().highest(), profiles).unwrap();
        let at = DecompressorConfig { mode, ..DecompressorConfig::new(decompressor) };
        Self {
            compressor: Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(64))),
            decompressor: Decompressor::new(at, DecompressorMemory::owned(at.channel.sizes().blocks(64))),
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

    /// Decompresses a packet; feedback reaches the compressor before the next one.
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

    /// Compresses and decompresses a packet, and checks that it is restored.
    fn carry(&mut self, packet: &[u8], what: &str) -> Compressed {
        let (done, rohc) = self.compress(packet).unwrap();
        let back = self.decompress(&rohc).unwrap_or_else(|error| panic!("{what}: {error} {done:?}"));
        assert_eq!(back, packet, "{what}: {done:?}");
        done
    }
}

/// Returns the packet with an additional octet at its end, and updated lengths and checksums in its IP
/// headers; `None` if its lengths or versions are inconsistent. Many packets of the vectors have no payload:
/// rohc-lib sends such a packet as IR, our compressor does not.
fn with_payload(packet: &[u8]) -> Option<Vec<u8>> {
    let mut packet = packet.to_vec();
    packet.push(0);
    let (mut at, len) = (0, packet.len());
    let longer = |packet: &mut [u8], at: usize, whole: usize| {
        let field = packet.get_mut(at..at + 2)?;
        let length = u16::from_be_bytes([field[0], field[1]]).checked_add(1)?;
        field.copy_from_slice(&length.to_be_bytes());
        (usize::from(length) == whole).then_some(())
    };
    loop {
        let mut protocol = match packet.get(at)? >> 4 {
            4 => {
                let end = at + 4 * usize::from(packet[at] & 0xF);
                longer(&mut packet, at + 2, len - at)?;
                packet.get_mut(at + 10..at + 12)?.fill(0);
                let sum = checksum(packet.get(at..end)?);
                packet[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
                let protocol = packet[at + 9];
                at = end;
                protocol
            }
            6 => {
                longer(&mut packet, at + 4, len.checked_sub(at + 40)?)?;
                at += 40;
                packet[at - 34]
            }
            _ => return None,
        };
        // Extension headers of IPv6 with their length in octet 1 (RFC 8200, section 4).
        while matches!(protocol, 0 | 43 | 60) {
            protocol = *packet.get(at)?;
            at += 8 * (usize::from(*packet.get(at + 1)?) + 1);
        }
        match protocol {
            // One generator writes 41 for any following header.
            4 | 41 if (protocol == 4) != (packet.get(at)? >> 4 == 4) => return None,
            4 | 41 => {}
            17 => return longer(&mut packet, at + 4, len.checked_sub(at)?).map(|()| packet),
            _ => return Some(packet),
        }
    }
}

/// Name of the format without its extension, as in rohc-lib's tests.
fn base(format: Format) -> String {
    let name = format.name().to_lowercase();
    let name = name.split("-ext").next().unwrap();
    name.replace('-', "")
}
