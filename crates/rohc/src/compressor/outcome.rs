//! Outcome of compressing one packet, as every profile returns it.

use thinair_wire::coder::NoRoom;

/// Reason a context cannot compress a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// As wide as the first field of a result, which is moved word by word.
#[repr(usize)]
pub(crate) enum Refused {
    /// The caller's buffer is too short.
    NoRoom,
    /// The profile cannot compress this packet, or not in its current state; profile 0x0000 can.
    ByThisPacket,
    /// The flow uses another profile for now: its context was not worth its octets.
    Rests,
}

impl From<NoRoom> for Refused {
    #[inline]
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}
