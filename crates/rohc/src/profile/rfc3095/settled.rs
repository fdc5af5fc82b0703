//! A packet of a settled flow, of which nothing has changed but what changes with every packet: SN, IP-ID,
//! lengths, checksums. It goes in `UO-0` or `UO-1`, and most packets do.

use thinair_wire::coder::{Lsb, Writer};
use thinair_wire::crc::Check;
use thinair_wire::time::Instant;

use super::compress::Context;
use super::header::Layout;
use super::own::Own;
use super::tail::udp_checksum;
use super::{IP_ID, IpFields, SN, Version, has_rtp, sn_plus, sn_shift, type0, type1};
use crate::cid::Cid;
use crate::compressor::{Above, Compressed, CompressorConfig, Glance, Sight};
use crate::framing::Frame;
use crate::profile::Format;

impl Context {
    /// Whether a packet belongs to this flow.
    #[inline]
    pub(crate) fn is_flow_at_sight(&self, sight: &Sight<'_>) -> bool {
        let ip = &self.ips[0];
        // As arrays, which are compared in registers.
        let same_path = match sight.glance {
            Glance::V4(h) => {
                ip.version == Version::V4
                    && ip.source.first_chunk::<4>() == h[12..].first_chunk()
                    && ip.destination.first_chunk::<4>() == h[16..].first_chunk()
            }
            Glance::V6(h) => {
                ip.version == Version::V6
                    && Some(&ip.source) == h[8..].first_chunk()
                    && Some(&ip.destination) == h[24..].first_chunk()
            }
        };
        let [first, _] = sight.glance.upper();
        let ports = u32::from(self.udp.source_port) << 16 | u32::from(self.udp.destination_port);
        let same_upper = match (&sight.above, &self.own) {
            (Above::Esp, Own::Esp(spi)) => first == *spi,
            (Above::Rtp(header), Own::Rtp(rtp)) => first == ports && header.fields.ssrc == rtp.fields.ssrc,
            (Above::Udp, _) => first == ports,
            (Above::Esp | Above::Rtp(_), _) => false,
        };
        self.profile == sight.profile() && self.ip_count == 1 && same_path && same_upper
    }

    /// The SN and the UDP checksum of a packet, if all of its headers behind IP can be told from these.
    #[inline]
    fn settled_upper(
        &self,
        sight: &Sight<'_>,
        payload: &[u8],
        config: &CompressorConfig,
    ) -> Option<(u32, u16)> {
        let next = sn_plus(self.profile, self.sn, 1);
        let [_, second] = sight.glance.upper();
        let checksum = second as u16;
        let (sn, is_expected) = match (&sight.above, &self.own) {
            (Above::Esp, _) => return (second == next).then_some((next, 0)),
            (Above::Rtp(header), Own::Rtp(rtp)) => (u32::from(header.sn), rtp.expects(header)),
            (Above::Rtp(_) | Above::Udp, _) => (next, !self.may_be_rtp(payload, config)),
        };
        let same_use = (checksum == 0) == (self.udp.checksum == 0);
        (is_expected && sn == next && same_use).then_some((next, checksum))
    }

    /// Compresses a packet of this flow; `None` if the flow has not settled, the Flow Label is another one, or there is more to say than these formats
    /// can.
    #[inline]
    pub(crate) fn compress_settled(
        &mut self,
        now: Instant,
        sight: &Sight<'_>,
        packet: &[u8],
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let ip = &self.ips[0];
        let (header, payload) = packet.split_at_checked(sight.header_len())?;
        let (same, id) = match sight.glance {
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
        let counted = IpFields { id, ..*ip }.counted_id();
        let counts = ip.version == Version::V6 || self.watchers[0].expects(ip, id);
        let [crc_static, _] = self.crc_static.known()?;
        let (sn, mut checksum) = self.settled_upper(sight, payload, config)?;
        if !self.settled || !same || !counts || !self.timer.is_quiet(now) || !self.caution.is_quiet(now) {
            return None;
        }

        let offset = counted.wrapping_sub(sn as u16);
        let frame = Frame::new(cid, config.channel.cids());
        let mut writer = Writer::new(out, frame.len());
        let needed = self.sns.needed_bits(sn as u16, sn_shift(self.profile));
        writer.offer(SN, Lsb { value: sn, needed });
        let mut ip_id_bits = 0;
        if ip.holds_ip_id() && !ip.sid {
            ip_id_bits = self.moving_id_bits(0, sn, offset, config.counted);
            writer.offer(IP_ID, Lsb { value: u32::from(offset), needed: ip_id_bits });
        }
        let mut format = Format::Uo0;
        if type0::uo_0(&mut writer, false).is_err() || !writer.is_complete() {
            // Without bits of an IP-ID it is the turn of UOR-2, which is as long, and with RTP of another one.
            if ip_id_bits == 0 || has_rtp(self.profile) {
                return None;
            }
            writer.rewind();
            format = Format::Uo1;
            if type1::uo_1(&mut writer).is_err() || !writer.is_complete() {
                return None;
            }
        }
        if checksum != 0 {
            udp_checksum(&mut writer, &mut checksum).ok()?;
        }
        let layout = Layout::of_one_ip(ip.version, self.profile);
        writer.fill_crc(layout.crc_dynamic(Check::Crc3, crc_static, header));
        let end = writer.finish().ok()?;
        let len = frame.close(end, payload, out).ok()?;

        let width = usize::from(config.window);
        self.timer.count(len);
        self.caution.sent(now, 1, config.repetitions);
        if let (Above::Rtp(header), Own::Rtp(rtp)) = (&sight.above, &mut self.own) {
            rtp.go_on(now, header, (sn, self.sn), config);
        }
        self.sn = sn;
        self.sns.push(sn as u16, width);
        if self.ips[0].version == Version::V4 {
            self.offsets[0].push(offset, width);
            self.ips[0].id = id;
        }
        Some(Compressed {
            cid,
            profile: self.profile,
            format,
            header_in: header.len(),
            header_out: end,
            len,
            refresh: false,
        })
    }
}
