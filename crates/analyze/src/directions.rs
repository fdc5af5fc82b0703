//! IP packets of a capture with their directions, as an analysis assigns them.

use std::collections::BTreeMap;

use thinair_capture::Record;
use thinair_lowpan::Contexts;

use crate::flow::Directory;
use crate::sides::CaptureSide;
use crate::unpack::Unpack;

/// Extracts the packets of a capture, and their directions.
///
/// **Pass every record of the capture to [`packet`](Self::packet), in order:** directions are learned from
/// addresses, and fragments are reassembled.
pub struct Directions {
    unpack: Unpack,
    flows: Directory<CaptureSide>,
}

impl Directions {
    /// Returns directions of a capture in which compressed addresses refer to these 6LoWPAN contexts.
    pub fn new(contexts: Contexts) -> Self {
        Self::of(Unpack::new(contexts))
    }

    /// Returns directions of the packets that `unpack` extracts.
    pub fn of(unpack: Unpack) -> Self {
        Self { unpack, flows: Directory::default() }
    }

    /// Number of packets extracted from tunnels: see [`Unpack::unwrapped`].
    pub fn unwrapped(&self) -> &BTreeMap<&'static str, u64> {
        self.unpack.unwrapped()
    }

    /// Returns the IP packet that a record contains or completes, and the side that sent it.
    ///
    /// # Errors
    /// A stable name of the reason why there is no packet.
    pub fn packet<'p>(&'p mut self, record: &Record<'p>) -> Result<(CaptureSide, &'p [u8]), &'static str> {
        let packet = self.unpack.packet(record)?;
        Ok((*self.flows.of(&packet, |side| side), packet.octets))
    }
}
