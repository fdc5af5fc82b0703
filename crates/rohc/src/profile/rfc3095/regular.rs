//! Fast path of an established flow. In a regular packet only numbers and checksums have changed, and the numbers by the step that the
//! decompressor infers: `UO-0` carries it. All other packets take the full path, `Context::try_compress`. RFC 3095, section 5.7.1.

use thinair_wire::coder::{Coder, Lsb, Writer};
use thinair_wire::crc::Check;
use thinair_wire::time::Instant;

use super::classify::Plan;
use super::compress::{Context, layout};
use super::{BASE_IPS, SN, Upper, Version, has_own_sn, sn_shift, tail, type0, upper};
use crate::cid::Cid;
use crate::compressor::{Compressed, CompressorConfig};
use crate::framing::Frame;
use crate::profile::Format;

/// Bits of the SN in `UO-0`.
const SN_BITS: u32 = 4;

/// Steps of a sequence number of the packet's own that its bits say without ambiguity.
const MAX_STEP: u32 = 7;

impl Context {
    /// Compresses a regular packet of this flow; `None`, and nothing has changed, if it is none.
    #[inline]
    pub(super) fn compress_regular(
        &mut self,
        now: Instant,
        plan: &Plan<'_>,
        cid: Cid,
        config: &CompressorConfig,
        out: &mut [u8],
    ) -> Option<Compressed> {
        let kind = upper(self.profile);
        let is_of_two = !plan.has_extensions && plan.ip_count <= BASE_IPS && kind != Upper::UdpLite;
        if !(self.established && is_of_two && self.timer.is_quiet(now)) || self.mode.is_pending() {
            return None;
        }
        let crc_static = self.crc_static.known()?[0];
        let sn = plan.sn().unwrap_or(self.next_sn());
        let step = sn.wrapping_sub(self.sn);
        let low = sn as u16;
        let fits = self.sns.fits(low, SN_BITS, sn_shift(self.profile))
            && (!has_own_sn(self.profile) || (1..=MAX_STEP).contains(&step))
            && self.caution.is_quiet(now);
        let has_sum = self.udp.checksum != 0;
        if !fits || self.pending_since == low || kind == Upper::Udp && has_sum != (plan.udp.checksum != 0) {
            return None;
        }
        let rtp = match (self.own.rtp(), &plan.rtp) {
            (Some(rtp), Some(header)) if step == 1 => Some(rtp.regular(header, plan.timer.as_ref())?),
            (Some(_), _) => return None,
            (None, _) => None,
        };
        let sid = self.sid_allowed(config);
        let mut watchers = self.watchers;
        for (i, header) in plan.ips().iter().enumerate() {
            let kept = &self.ips[i];
            let mut ip = *kept;
            ip.header.update(header);
            if ip.header.version == Version::V4 {
                watchers[i].next(&mut ip, kept.header.id, sid);
                let offset = ip.counted_id().wrapping_sub(low);
                if !(ip.rnd || ip.sid || self.offsets[i].holds_only(offset)) {
                    return None;
                }
            }
            if !ip.is_like(kept) {
                return None;
            }
        }

        let frame = Frame::new(cid, config.channel.cids());
        let mut writer = Writer::new(out, frame.len());
        writer.offer(SN, Lsb { value: sn, needed: SN_BITS });
        type0::uo_0(&mut writer, false).ok()?;
        for (ip, header) in self.ips.iter().zip(plan.ips()).filter(|(ip, _)| ip.rnd) {
            let mut ip = ip.header;
            ip.update(header);
            writer.uint("IP-ID", 16, &mut ip.id).ok()?;
        }
        if kind == Upper::Udp && has_sum {
            tail::udp_checksum(&mut writer, &mut { plan.udp.checksum }).ok()?;
        }
        let layout = layout(plan, None);
        let header = plan.packet.get(..layout.len)?;
        writer.fill_crc(layout.crc_dynamic(Check::Crc3, crc_static, header));
        let end = writer.finish().ok()?;
        let len = frame.close(end, plan.payload(), out).ok()?;

        let width = usize::from(config.window);
        self.caution.sent(now, step.max(1), config.repetitions);
        self.sn = sn;
        self.sns.push(low, width);
        if let (Some(own), Some(rtp)) = (self.own.rtp_mut(), rtp) {
            own.go_on(rtp, width);
        }
        self.watchers = watchers;
        for (i, header) in plan.ips().iter().enumerate() {
            let ip = &mut self.ips[i];
            ip.header.update(header);
            if ip.sid {
                self.offsets[i].push(ip.counted_id().wrapping_sub(low), width);
            }
        }
        self.timer.count(len);
        Some(Compressed {
            cid,
            profile: self.profile,
            format: Format::Uo0,
            header_in: layout.len,
            header_out: end,
            len,
            refresh: false,
        })
    }
}
