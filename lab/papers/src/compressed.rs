//! ROHC on a simulated link.

use core::time::Duration;

use thinair_rohc::{Channel, CidSpace, CompressorConfig, DecompressorConfig, Mode, ProfileSet, Refresh};
use thinair_simulation::emulator::RohcChannel;

use crate::paper::PaperError;

/// Both ends of a channel for `flows` flows, at least one. Feedback waits up to 10 ms for a packet that it can precede.
pub(crate) fn channel(
    profiles: ProfileSet,
    flows: u16,
    mode: Mode,
    refresh: Refresh,
    seed: u64,
) -> Result<RohcChannel, PaperError> {
    let (cids, max_cid) = match flows {
        ..=16 => (CidSpace::Small, 15),
        flows => (CidSpace::Large, flows - 1),
    };
    let channel = Channel::new(cids, max_cid, profiles)?;
    Ok(RohcChannel {
        compressor: CompressorConfig { seed, refresh, ..CompressorConfig::new(channel) },
        decompressor: DecompressorConfig { mode, ..DecompressorConfig::new(channel) },
        bases: Vec::new(),
        feedback_wait: Duration::from_millis(10),
        ends: None,
    })
}
