//! Outcome of compressing one packet, as every profile returns it.

/// Reason a context cannot compress a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The caller's buffer is too short.
    NoRoom,
    /// The profile cannot carry this packet, or not in this state; profile 0x0000 can.
    ByThisPacket,
}
