//! A packet of a settled flow, of which nothing has changed but what changes with every packet: SN, IP-ID,
//! lengths, checksums. It goes in `UO-0` or `UO-1`, and most packets do.

use thinair_wire::coder::{Lsb, Writer};
use thinair_wire::crc::Check;
use thinair_wire::lsb::Shift;
use thinair_wire::time::Instant;

use super::compress::{Context, frame};
use super::header::Layout;
use super::tail::udp_checksum;
use super::{IP_ID, IpFields, SN, Version, sn_plus, sn_shift, type0, type1};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig, Glance};
use crate::profile::{Format, ProfileId};

impl Context {
    /// Whether a packet belongs to this flow, and the flow has settled.
    #[inline]
    pub(crate) fn is_settled_flow_of(&self, glance: &Glance<'_>) -> bool {
        let ip = &self.ips[0];
        let same_path = match glance {
            Glance::V4(h) => {
                ip.version == Version::V4 && ip.source[..4] == h[12..16] && ip.destination[..4] == h[16..20]
            }
            Glance::V6(h) => {
                ip.version == Version::V6 && ip.source[..] == h[8..24] && ip.destination[..] == h[24..40]
            }
        };
        let ports = match glance {
            Glance::V4(h) => [h[20], h[21], h[22], h[23]],
            Glance::V6(h) => [h[40], h[41], h[42], h[43]],
        };
        let [a, b] = self.udp.source_port.to_be_bytes();
        let [c, d] = self.udp.destination_port.to_be_bytes();
        self.settled
            && self.profile == ProfileId::Udp
            && self.ip_count == 1
            && same_path
            && ports == [a, b, c, d]
    }

    /// Compresses a packet of this flow; `None` if there is more to say than these formats can.
    #[inline]
    pub(crate) fn compress_settled(
        &mut self,
        now: Instant,
        glance: &Glance<'_>,
        packet: &[u8],
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let ip = &self.ips[0];
        let header = glance.octets();
        let payload = packet.get(header.len()..)?;
        if self.may_be_rtp(payload, config) {
            return None;
        }
        let (same, id) = match glance {
            Glance::V4(h) => {
                let same = h[1] == ip.tos && h[6] == u8::from(ip.df) << 6 && h[8] == ip.ttl;
                (same, u16::from_be_bytes([h[4], h[5]]))
            }
            Glance::V6(h) => {
                let word = 6 << 28 | u32::from(ip.tos) << 20 | ip.flow_label;
                let same = [h[0], h[1], h[2], h[3]] == word.to_be_bytes() && h[7] == ip.ttl;
                (same, 0)
            }
        };
        let mut checksum = u16::from_be_bytes([header[header.len() - 2], header[header.len() - 1]]);
        let counted = IpFields { id, ..*ip }.counted_id();
        let counts = ip.version == Version::V6 || self.watchers[0].expects(ip, id);
        let [crc_static, _] = self.crc_static.known()?;
        if !same || !counts || (checksum == 0) != (self.udp.checksum == 0) || !self.timer.is_quiet(now) {
            return None;
        }

        let sn = sn_plus(self.profile, self.sn, 1);
        let offset = counted.wrapping_sub(sn as u16);
        let space = config.channel.cids();
        let (before, inside) = (cid.octets_before(space), cid.octets_inside(space));
        let mut writer = Writer::new(out, before + inside);
        let needed = self.sns.needed_bits(sn as u16, sn_shift(self.profile));
        writer.offer(SN, Lsb { value: sn, needed });
        if ip.holds_ip_id() {
            let needed = if ip.sid { 0 } else { self.offsets[0].needed_bits(offset, Shift::Zero) };
            writer.offer(IP_ID, Lsb { value: u32::from(offset), needed });
        }
        let mut format = Format::Uo0;
        if type0::uo_0(&mut writer, false).is_err() || !writer.is_complete() {
            writer.rewind();
            format = Format::Uo1;
            if type1::uo_1(&mut writer).is_err() || !writer.is_complete() {
                return None;
            }
        }
        if checksum != 0 {
            udp_checksum(&mut writer, &mut checksum).ok()?;
        }
        // Of a layout that is known beforehand, nothing is left to look at.
        writer.fill_crc(match glance {
            Glance::V4(_) => Layout::UDP_V4.crc_dynamic(Check::Crc3, crc_static, header),
            Glance::V6(_) => Layout::UDP_V6.crc_dynamic(Check::Crc3, crc_static, header),
        });
        let end = writer.finish().ok()?;
        let len = end + payload.len();
        out.get_mut(end..len)?.copy_from_slice(payload);
        frame(out, cid, before, inside);

        let width = usize::from(config.window);
        self.timer.count();
        self.sn = sn;
        self.sns.push(sn as u16, width);
        if self.ips[0].version == Version::V4 {
            self.offsets[0].push(offset, width);
            self.ips[0].id = id;
        }
        Some(Compressed {
            cid,
            profile: ProfileId::Udp,
            format,
            header_in: header.len(),
            header_out: end,
            len,
            refresh: false,
        })
    }
}
