//! Changes that CRC-3 does not notice: the packets behind one have a CRC of 7 bits, or the change. RFC 3095, section 5.9.2.

use thinair_wire::crc::Check;
use thinair_wire::header::ipv4::Ipv4;

use super::IpVersion;
use super::compress::{CrcStatic, Rfc3095SenderContext};
use super::header::Layout;
use super::pending::changes;
use crate::flow::pending::SURE;
use crate::mode::Mode;

/// Packets with CRC-7 of a flow that has taken over a CID, where CRC-3 does not tell its static chain from that of the flow before:
/// until the first refresh at 50 packets a second.
const STRONG_BEHIND_TAKEOVER: u8 = 64;

impl Rfc3095SenderContext {
    /// Stores the states of the checks of a packet that was written.
    ///
    /// RFC 3095, section 5.9.2: if a change leaves CRC-3 as it was, that "cannot catch the error consisting in the decompressor not having
    /// updated the static context". The change itself is sent in UOR-2; the next packets are at risk. So are those of a flow that has
    /// taken over the CID, until an IR packet must have arrived. A TTL whose change leaves CRC-7 as it was is repeated for longer than
    /// losses last: its polynomial is `(1 + x)(1 + x + x^3)^2`, and repeats every 14 bits. In profile 0x0004 TTL and checksum are 14
    /// octets apart.
    #[inline]
    pub(super) fn note_crc_static(
        &mut self,
        crc_static: CrcStatic,
        is_static_same: bool,
        layout: &Layout,
        header: &[u8],
        repetitions: u8,
    ) {
        self.strong = self.strong.saturating_sub(1);
        let is_at_risk = match (self.crc_static.known(), crc_static.known()) {
            (Some(before), Some(now)) => before != now && self.note_unseen(before, now, layout, header),
            // The states of the first packets are unknown.
            (None, Some(_)) => !is_static_same && !self.sns.is_empty(),
            (_, None) => false,
        };
        if is_at_risk {
            self.strong = match self.mode.mode() {
                _ if self.sns.is_empty() => STRONG_BEHIND_TAKEOVER,
                Mode::Unidirectional => repetitions.saturating_mul(2),
                // No refresh comes soon.
                Mode::Optimistic | Mode::Reliable => SURE,
            };
            self.established = false;
        }
        self.crc_static = crc_static;
    }

    /// True if CRC-3 does not notice the changes of a packet. Those that CRC-7 does not notice are repeated.
    #[cold]
    fn note_unseen(&mut self, before: [u8; 2], now: [u8; 2], layout: &Layout, header: &[u8]) -> bool {
        let (by_3, by_7) = (before[0] ^ now[0], before[1] ^ now[1]);
        // As an IP-ID counts, the checksums of the next packets carry once at most.
        let is_unseen = |carry| self.is_unseen(Check::Crc7, by_7, carry, layout, header);
        if self.pending[0].has(changes::TTL) && [0, 0x100, 0xFF00].into_iter().any(is_unseen) {
            self.pending[0].require(changes::TTL, SURE);
        }
        self.is_unseen(Check::Crc3, by_3, 0, layout, header)
    }

    /// True if a CRC is the same in a decompressor that has missed the changes of a packet. `difference` is that of its states after the
    /// static octets of both, `carry` is added to the IPv4 checksum, which is not among them, and changes, too.
    #[cold]
    #[inline(never)]
    fn is_unseen(
        &self,
        check: Check,
        mut difference: u8,
        carry: u16,
        layout: &Layout,
        header: &[u8],
    ) -> bool {
        if self.sns.is_empty() {
            return difference == 0;
        }
        // A CRC is linear: this is the CRC of the difference of both headers, over the octets that `ip_dynamic` covers.
        for (kept, (at, version, _)) in self.ips.iter().zip(layout.ips()) {
            let h = header.get(at..).and_then(<[u8]>::first_chunk::<{ Ipv4::LEN }>);
            difference = match (version, h) {
                (IpVersion::V4, Some(h)) => {
                    let mut missed = *h;
                    (missed[1], missed[8]) = (kept.header.tos, kept.header.ttl);
                    missed[6] = h[6] & !0x40 | u8::from(kept.header.df) << 6;
                    [missed[10], missed[11]] = [0; 2];
                    let missed = Ipv4::checksum_of(&missed).wrapping_add(carry);
                    let [a, b] =
                        (missed ^ u16::from_be_bytes([h[10], h[11]]).wrapping_add(carry)).to_be_bytes();
                    check.update(difference, &[0, 0, 0, 0, a, b])
                }
                _ => check.update(difference, &[0, 0]),
            };
        }
        // Behind them both are the same, and what is zero stays zero.
        difference == 0
    }
}
