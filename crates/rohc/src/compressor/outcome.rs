//! Outcome of compressing one packet, as every profile returns it.

use thinair_wire::coder::NoRoom;

use super::{CompressError, Compressed};

/// Reason a context cannot compress a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The caller's buffer is too short.
    NoRoom,
    /// The profile cannot carry this packet, or not in this state; profile 0x0000 can.
    ByThisPacket,
}

impl From<NoRoom> for Refused {
    #[inline]
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl Refused {
    /// The outcome for the caller; `Ok(None)` if profile 0x0000 has to carry the packet.
    pub(crate) fn or_none(
        outcome: Result<Compressed, Self>,
        out: &[u8],
    ) -> Result<Option<Compressed>, CompressError> {
        match outcome {
            Ok(compressed) => Ok(Some(compressed)),
            Err(Self::NoRoom) => Err(CompressError::OutputTooSmall { have: out.len() }),
            Err(Self::ByThisPacket) => Ok(None),
        }
    }
}
