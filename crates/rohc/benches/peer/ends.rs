//! Ends of a channel by another implementation: the programs of `THINAIR_PEER_COMPRESSOR` and `THINAIR_PEER_DECOMPRESSOR`, or those of
//! `make peers`. The protocols are in the heads of `tests/workspace/tests/peer_compressor.rs` and `peer_decompressor.rs`.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use thinair_rohc::{Instant, Mode};

use crate::damage::{ChannelEnds, SentPacket};

/// Programs of both ends.
pub(crate) struct PeerPrograms {
    compressor: PathBuf,
    decompressor: PathBuf,
}

impl PeerPrograms {
    /// `None` if one of them is missing.
    pub(crate) fn find() -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        // The target folder is above release/deps/damage-...
        let folder = program.ancestors().nth(3)?.join("peers");
        let find = |variable: &str, name: &str| {
            let path = std::env::var_os(variable).map_or_else(|| folder.join(name), PathBuf::from);
            path.exists().then_some(path)
        };
        Some(Self {
            compressor: find("THINAIR_PEER_COMPRESSOR", "compressor")?,
            decompressor: find("THINAIR_PEER_DECOMPRESSOR", "decompressor")?,
        })
    }

    /// Both ends of a new channel, for packets with `payload` octets behind headers that are compressed.
    pub(crate) fn start(&self, mode: Mode, payload: usize) -> PeerEnds {
        PeerEnds {
            compressor: PeerEnd::start(&self.compressor, &["small", "15"]),
            decompressor: PeerEnd::start(&self.decompressor, &["small", "15", mode.letter()]),
            feedback: Vec::new(),
            payload,
        }
    }
}

/// Both ends of a channel.
pub(crate) struct PeerEnds {
    compressor: PeerEnd,
    decompressor: PeerEnd,
    /// Elements for the compressor.
    feedback: Vec<u8>,
    payload: usize,
}

impl ChannelEnds for PeerEnds {
    fn compress(&mut self, now: Instant, packet: &[u8], rohc: &mut [u8]) -> SentPacket {
        self.compressor.requests.write_all(&now.as_nanos().to_le_bytes()).expect("it runs");
        self.compressor.put(packet);
        let feedback = std::mem::take(&mut self.feedback);
        self.compressor.put(&feedback);
        let sent = self.compressor.octets();
        assert_eq!(self.compressor.octet(), 0, "the other compressor rejects a packet");
        rohc[..sent.len()].copy_from_slice(&sent);
        SentPacket { len: sent.len(), payload: self.payload }
    }

    fn decompress(&mut self, _: Instant, rohc: &[u8], back: &mut [u8]) -> Option<usize> {
        self.decompressor.put(rohc);
        let packet = self.decompressor.octets();
        let is_right = self.decompressor.octet() == 0;
        self.feedback = self.decompressor.octets();
        back.get_mut(..packet.len())?.copy_from_slice(&packet);
        (is_right && !packet.is_empty()).then_some(packet.len())
    }
}

/// A program that answers each request before it reads the next one. It ends with this value.
struct PeerEnd {
    child: Child,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl PeerEnd {
    fn start(program: &PathBuf, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        // Feedback that is rejected is no error here.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let requests = BufWriter::new(child.stdin.take().expect("it is piped"));
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, requests, answers }
    }

    /// Writes a length and its octets.
    fn put(&mut self, octets: &[u8]) {
        let length = (octets.len() as u32).to_le_bytes();
        self.requests.write_all(&[&length[..], octets].concat()).expect("it runs");
    }

    /// Reads a length and its octets.
    fn octets(&mut self) -> Vec<u8> {
        self.requests.flush().expect("it runs");
        let mut length = [0; 4];
        self.answers.read_exact(&mut length).expect("it answers");
        let mut octets = vec![0; u32::from_le_bytes(length) as usize];
        self.answers.read_exact(&mut octets).expect("it answers");
        octets
    }

    fn octet(&mut self) -> u8 {
        let mut octet = [0];
        self.answers.read_exact(&mut octet).expect("it answers");
        octet[0]
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
