//! The TCP checksum as a proof. RFC 6846 carries it as it stands, and asks for no right one.
//!
//! Where that of the last packet with 7 bits of CRC or more was right, and packets were lost or damaged lately, a packet is
//! delivered only if its own is right as well. Our compressor sends an IR-DYN packet where checksums are wrong from now on, others
//! do not; so a wrong checksum is no damage where there is no other sign of it, or where it shows that it is the sender's.

use thinair_wire::checksum::Sum;
use thinair_wire::header::protocol;

use super::decompress::{ReadPacket, TcpReceiverContext};
use super::doubt::TURN;
use super::formats::has_crc7;
use super::state::TcpState;
use crate::arrival::Moment;
use crate::state::DecompressorState;

/// Packets behind a gap or a failure that must come one after the other before a wrong TCP checksum may be the sender's. A
/// flow begins with as many: one damaged packet in its life is all that may pass by that.
pub(super) const CALM: u8 = u8::MAX;

impl TcpReceiverContext {
    /// True if a wrong TCP checksum may be the sender's. A compressor of ours sends such a packet as IR-DYN, others in any
    /// format, and nothing asks for a right one (RFC 6846). It is no sign of damage or loss where there is no other.
    #[cold]
    pub(super) fn may_be_wrong(
        &self,
        now: Moment,
        found: &ReadPacket<'_>,
        len: usize,
        last: &TcpState,
        ahead: i16,
    ) -> bool {
        let is_next = self.state == DecompressorState::Fc && ahead == 1 && found.next.goes_on(last);
        is_next && (has_crc7(found.format) || self.calm == CALM && self.arrivals.is_next(now, TURN as u32))
            || is_to_come(found, len)
    }
}

/// True if the TCP checksum of a packet that was rebuilt is right.
#[inline]
pub(super) fn is_right(packet: &ReadPacket<'_>, out: &[u8], len: usize) -> bool {
    sum(packet, out, len) == u16::MAX
}

/// Sum of a packet that was rebuilt: 2^16 - 1 if its TCP checksum is right. Behind a routing header it seems wrong.
#[inline]
pub(super) fn sum(packet: &ReadPacket<'_>, out: &[u8], len: usize) -> u16 {
    let tcp = out.get(packet.next.ip_len()..len).unwrap_or_default();
    pseudo_header(packet, tcp.len()).octets(tcp).octets(packet.payload).fold()
}

/// True if the TCP checksum is the sum of the pseudo-header alone: the sender has left the rest to its network interface.
pub(super) fn is_to_come(packet: &ReadPacket<'_>, len: usize) -> bool {
    packet.next.checksum == pseudo_header(packet, len - packet.next.ip_len()).fold()
}

/// Sum of the pseudo-header of a packet with so many octets of TCP header.
#[inline]
fn pseudo_header(packet: &ReadPacket<'_>, tcp_len: usize) -> Sum {
    packet.next.inner().header.pseudo_header(protocol::TCP, tcp_len + packet.payload.len())
}
