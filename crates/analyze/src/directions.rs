//! The IP packets of a capture with the side of the link that each comes from, as an analysis sees them.

use std::collections::BTreeMap;

use thinair_capture::Record;
use thinair_lowpan::Contexts;

use crate::flow::Directory;
use crate::sides::Side;
use crate::unpack::Unpack;

/// Finds the packets of a capture, and their directions.
///
/// **Every record of the capture is given to [`packet`](Self::packet), in order:** directions are learned from addresses,
/// and fragments are put together.
pub struct Directions {
    unpack: Unpack,
    flows: Directory<Side>,
}

impl Directions {
    /// Directions of a capture in which compressed addresses refer to these contexts of 6LoWPAN.
    pub fn new(contexts: Contexts) -> Self {
        Self::of(Unpack::new(contexts))
    }

    /// Directions of the packets that `unpack` finds.
    pub fn of(unpack: Unpack) -> Self {
        Self { unpack, flows: Directory::default() }
    }

    /// Number of packets that were taken out of a tunnel: see [`Unpack::unwrapped`].
    pub fn unwrapped(&self) -> &BTreeMap<&'static str, u64> {
        self.unpack.unwrapped()
    }

    /// The IP packet that a record has or completes, and its sender's side.
    ///
    /// # Errors
    /// A stable name of the reason why there is no packet.
    pub fn packet<'p>(&'p mut self, record: &Record<'p>) -> Result<(Side, &'p [u8]), &'static str> {
        let packet = self.unpack.packet(record)?;
        Ok((*self.flows.of(&packet, |side| side), packet.octets))
    }
}
