//! The TCP checksum as a proof. RFC 6846 carries it unchanged, and does not require it to be correct.
//!
//! If that of the last packet with 7 bits of CRC or more was correct, and packets were lost or damaged lately, a packet is
//! delivered only if its own is correct as well. The compressor here sends an IR-DYN packet when checksums begin to be wrong,
//! others do not. A wrong checksum therefore does not indicate damage without another sign of it, or if it is known to be the
//! sender's.

use thinair_wire::checksum::Sum;
use thinair_wire::header::protocol;

use super::decompress::{ReadPacket, TcpReceiverContext};
use super::doubt::TURN;
use super::formats::has_crc7;
use super::state::TcpState;
use crate::flow::arrival::Moment;
use crate::state::DecompressorState;

/// Number of packets in sequence after a gap or a failure from which on a wrong TCP checksum may be the sender's. A flow begins
/// with this value, so that at most one damaged packet can pass by that.
pub(super) const CALM: u8 = u8::MAX;

impl TcpReceiverContext {
    /// True if a wrong TCP checksum may be the sender's. The compressor here sends such a packet as IR-DYN, others in any format,
    /// and RFC 6846 does not require a correct one. It indicates no damage or loss without another sign.
    #[cold]
    pub(super) fn may_be_wrong(
        &self,
        now: Moment,
        found: &ReadPacket<'_>,
        last: &TcpState,
        ahead: i16,
    ) -> bool {
        let is_next = self.health.state == DecompressorState::Fc && ahead == 1 && found.next.goes_on(last);
        is_next && (has_crc7(found.format) || self.calm == CALM && self.arrivals.is_next(now, TURN as u32))
    }
}

/// True if the TCP checksum of a rebuilt packet is correct.
#[inline]
pub(super) fn is_right(packet: &ReadPacket<'_>, out: &[u8], len: usize) -> bool {
    sum(packet, out, len) == u16::MAX
}

/// Sum of a rebuilt packet: 2^16 - 1 if its TCP checksum is correct. With a routing header it seems wrong.
#[inline]
pub(super) fn sum(packet: &ReadPacket<'_>, out: &[u8], len: usize) -> u16 {
    let tcp = out.get(packet.next.ip_len()..len).unwrap_or_default();
    pseudo_header(packet, tcp.len()).octets(tcp).octets(packet.payload).fold()
}

/// True if the TCP checksum is the sum of the pseudo-header alone, for the network interface to complete.
pub(super) fn is_to_come(packet: &ReadPacket<'_>, len: usize) -> bool {
    packet.next.checksum == pseudo_header(packet, len - packet.next.ip_len()).fold()
}

/// Sum of the pseudo-header of a packet with `tcp_len` octets of TCP header.
#[inline]
fn pseudo_header(packet: &ReadPacket<'_>, tcp_len: usize) -> Sum {
    packet.next.inner().header.pseudo_header(protocol::TCP, tcp_len + packet.payload.len())
}
