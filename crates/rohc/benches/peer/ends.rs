//! Ends of a channel by another implementation: the programs of `THINAIR_PEER_COMPRESSOR` and `THINAIR_PEER_DECOMPRESSOR`, or those of
//! `make peers`. The protocols are in the heads of `tests/workspace/tests/peer_compressor.rs` and `peer_decompressor.rs`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use thinair_rohc::{Instant, Mode};

use crate::damage::{ChannelEnds, SentPacket};
use crate::program::PeerProgram;

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
        // Feedback that is rejected is no error here.
        let start = |program: &Path, arguments: &[&str]| {
            PeerProgram::start(program.as_os_str(), arguments, Stdio::null())
        };
        PeerEnds {
            compressor: start(&self.compressor, &["small", "15", "v1"]),
            decompressor: start(&self.decompressor, &["small", "15", "v1", mode.letter()]),
            feedback: Vec::new(),
            payload,
        }
    }
}

/// Both ends of a channel.
pub(crate) struct PeerEnds {
    compressor: PeerProgram,
    decompressor: PeerProgram,
    /// Elements for the compressor.
    feedback: Vec<u8>,
    payload: usize,
}

impl ChannelEnds for PeerEnds {
    fn compress(&mut self, now: Instant, packet: &[u8], rohc: &mut [u8]) -> SentPacket {
        self.compressor.write(&now.as_nanos().to_le_bytes());
        self.compressor.put(packet);
        let feedback = std::mem::take(&mut self.feedback);
        self.compressor.put(&feedback);
        self.compressor.flush();
        let sent = self.compressor.octets();
        assert_eq!(self.compressor.octet(), 0, "the other compressor rejects a packet");
        rohc[..sent.len()].copy_from_slice(&sent);
        SentPacket { len: sent.len(), payload: self.payload }
    }

    fn decompress(&mut self, _: Instant, rohc: &[u8], back: &mut [u8]) -> Option<usize> {
        self.decompressor.put(rohc);
        self.decompressor.flush();
        let packet = self.decompressor.octets();
        let is_right = self.decompressor.octet() == 0;
        self.feedback = self.decompressor.octets();
        back.get_mut(..packet.len())?.copy_from_slice(&packet);
        (is_right && !packet.is_empty()).then_some(packet.len())
    }
}
