//! A compressed packet that says nothing but SN, IP-ID and UDP checksum, in a context that is whole: `UO-0`, and
//! `UO-1` without RTP, as most packets are. They are rebuilt from the context directly, without `Fields`.
//!
//! Whatever is unusual goes the long way, `Context::compressed`, with nothing changed; so this one knows no
//! failures, repairs or lists. A test holds both ways to the same outcome.

use thinair_wire::coder::{Reader, Refusal};
use thinair_wire::crc::Check;
use thinair_wire::lsb::{self, Shift};

use super::attempt::{ahead, decode_sn};
use super::decompress::{Context, DOUBTFUL, Own};
use super::header::{Layout, Plain};
use super::rtp::{RtpExtra, RtpFields};
use super::tail::udp_checksum;
use super::{IP_ID, IpFields, SN, Version, has_rtp, timestamp, type0, type1};
use crate::arrival::Moment;
use crate::decompressor::Verified;
use crate::mode::Mode;
use crate::packet::Header;
use crate::profile::{Format, ProfileId};
use crate::state::DecompressorState;

impl Context {
    /// Whether the short way knows all that matters of this context.
    #[inline]
    fn is_settled(&self, wanted: Mode) -> bool {
        matches!(self.profile, ProfileId::Rtp | ProfileId::Udp | ProfileId::Esp)
            && self.state == DecompressorState::Fc
            && self.mode.is_quiet(wanted)
            && self.ip_count == 1
            && !self.doubt.is_open()
            && self.failures & DOUBTFUL != DOUBTFUL
            && self.lists.iter().all(|list| list.current.is_empty())
    }

    /// Decompresses a packet of this context, for which a mode is wanted; `None`, and nothing has changed, if it must go
    /// the long way.
    #[inline]
    pub(crate) fn compressed_settled(
        &mut self,
        now: Moment,
        packet: &Header<'_>,
        wanted: Mode,
        out: &mut [u8],
    ) -> Option<Verified> {
        let [crc_static, _] = self.crc_static.known().filter(|_| self.is_settled(wanted))?;
        let mut reader = Reader::new(packet.first, packet.rest);
        let mut format = Format::Uo0;
        if let Err(refusal) = type0::uo_0(&mut reader, false) {
            if refusal != Refusal::NotThis || has_rtp(self.profile) {
                return None;
            }
            format = Format::Uo1;
            reader = Reader::new(packet.first, packet.rest);
            type1::uo_1(&mut reader).ok()?;
        }
        let mut headers = Plain {
            ip: self.ips[0],
            udp: self.udp,
            version: self.version,
            rtp: RtpFields::INITIAL,
            spi: 0,
            sn: self.sn,
        };
        if headers.udp.checksum != 0 {
            udp_checksum(&mut reader, &mut headers.udp.checksum).ok()?;
        }
        let (_, crc) = reader.crc_read()?;
        let payload = reader.remaining();

        let (bits, k) = reader.collected(SN);
        headers.sn = decode_sn(self.profile, bits, k, self.sn);
        let ahead = ahead(self.profile, headers.sn, self.sn);
        if ahead != 1 || !self.arrivals.is_next(now, 1 << k) {
            // Packets were lost, or it is late (RFC 4224), or damaged: that opens a doubt.
            return None;
        }
        if headers.ip.version == Version::V4 {
            headers.ip.id = self.settled_ip_id(&reader, headers.sn)?;
        }
        match &self.own {
            Own::Rtp(rtp) if has_rtp(self.profile) => {
                let extra = RtpExtra::default();
                let ts = timestamp::decode(&reader, &extra, rtp, ahead, self.arrivals.last(), now.now)?;
                headers.rtp = RtpFields { ts, ..*rtp };
            }
            Own::Esp(spi) => headers.spi = *spi,
            Own::Rtp(_) | Own::Coap(_) => {}
        }
        let layout = Layout::of_one_ip(headers.ip.version, self.profile);
        let len = layout.len + payload.len();
        let (octets, room) = out.get_mut(..len)?.split_at_mut(layout.len);
        headers.write(self.profile, len, octets).ok()?;
        if layout.crc_dynamic(Check::Crc3, crc_static, octets) != crc {
            return None;
        }
        room.copy_from_slice(payload);

        self.sn = headers.sn;
        self.ips[0].id = headers.ip.id;
        if let (true, Own::Rtp(rtp)) = (has_rtp(self.profile), &mut self.own) {
            rtp.ts = headers.rtp.ts;
        }
        self.calm = self.calm.saturating_add(1);
        self.arrivals.note(now, 1);
        self.note_success(false);
        Some(Verified { format, header_in: packet.len_before(payload), header_out: layout.len, len })
    }

    /// The IP-ID of an IPv4 header; `None` if it is not sent as an offset, or that is another one than before. RFC 3095, section 4.5.5.
    #[inline]
    fn settled_ip_id(&self, reader: &Reader<'_>, sn: u32) -> Option<u16> {
        let ip = &self.ips[0];
        if ip.rnd {
            return None;
        }
        if ip.sid {
            return Some(ip.id);
        }
        let (bits, k) = reader.collected(IP_ID);
        let expected = ip.counted_id().wrapping_sub(self.sn as u16);
        let offset = lsb::decode(bits, k, expected, Shift::Zero);
        if offset != expected {
            return None;
        }
        Some(IpFields { id: offset.wrapping_add(sn as u16), ..*ip }.counted_id())
    }
}
