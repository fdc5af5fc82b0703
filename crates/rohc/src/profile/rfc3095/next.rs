//! Fast path of an established flow, at both ends. In a regular packet only numbers and checksums have changed, and the numbers by the
//! step that the decompressor infers, so that `UO-0` carries it. All other packets take the full path,
//! `Rfc3095SenderContext::compress` and `Rfc3095ReceiverContext::compressed`. RFC 3095, section 5.7.1.

use thinair_wire::coder::{Lsb, Reader, Writer};
use thinair_wire::crc::Check;
use thinair_wire::header::chain::{HeaderChain, Ip, IpHeader};
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use super::cce::Coverage;
use super::classify::{ClassifiedPacket, rtp_header};
use super::compress::Rfc3095SenderContext;
use super::decompress::{Rfc3095ReceiverContext, UpperFields};
use super::header::{self, ChainFields, ExtensionLists, TransportLayout, datagram_len, ip_dynamic};
use super::ip_id::behavior;
use super::rtp::RtpFields;
use super::tail::{random_ip_id, udp_checksum};
use super::{
    BASE_IPS, IpVersion, SN, UdpFields, Upper, has_own_sn, has_rtp, rtp, sn_plus, sn_shift, tail, timestamp,
    type0, upper,
};
use crate::channel::ProfileSet;
use crate::compressor::{Compressed, CompressorConfig};
use crate::decompressor::Verified;
use crate::field::ip_id::{Behavior, Watcher};
use crate::field::timer::TimerLimits;
use crate::flow::arrival::Moment;
use crate::flow::sender::Departure;
use crate::framing::CidFrame;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;
use crate::state::DecompressorState;

/// Number of bits of the SN in `UO-0`.
const SN_BITS: u32 = 4;

/// Largest unambiguous step of a sequence number that the compressor does not generate.
const MAX_STEP: u32 = 7;

/// Octets of a UDP or ESP header.
const UPPER_LEN: usize = 8;

/// Headers of a packet that may be regular.
struct RegularHeaders<'a> {
    chain: &'a HeaderChain<'a>,
    rtp: Option<&'a rtp::RtpHeader<'a>>,
    /// Octets of all headers.
    len: usize,
    timer: Option<&'a TimerLimits>,
}

impl Rfc3095SenderContext {
    /// Compresses a regular packet of the flow of the previous packet, without a search for profile and context. Most packets are
    /// regular. Others change nothing.
    #[inline(always)]
    pub(super) fn compress_expected(
        &mut self,
        chain: &HeaderChain<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        let (timer, profiles) = (departure.timer(), departure.config.channel.profiles());
        let mut rtp = None;
        if self.established
            && self.caution.is_in(departure.group)
            && let Some(len) = self.headers_of(chain, profiles, &mut rtp)
        {
            let headers = RegularHeaders { chain, rtp: rtp.as_ref(), len, timer: timer.as_ref() };
            let done = self.compress_regular(&headers, departure);
            departure.is_irregular = done.is_none();
            return done;
        }
        None
    }

    /// Reads the RTP header of a packet of this flow, if it has one, and returns the octets of all headers; `None` if the packet may
    /// need another profile or context.
    #[inline]
    fn headers_of<'p>(
        &self,
        chain: &HeaderChain<'p>,
        profiles: ProfileSet,
        rtp: &mut Option<rtp::RtpHeader<'p>>,
    ) -> Option<usize> {
        let (ips, ip_end) = (chain.ips(), chain.ip_end());
        let is_path = chain.is_plain()
            && ips.len() == usize::from(self.ip_count)
            && self.ips.iter().zip(ips).all(|(kept, ip)| !kept.terminates && kept.header.is_path_of(ip));
        let datagram = chain.packet().get(ip_end..).filter(|_| is_path)?;
        let mut len = ip_end + UPPER_LEN;
        let is_flow = match upper(self.profile) {
            Upper::None => {
                use protocol::{ESP, IPV4, IPV6, UDP, UDP_LITE};
                len = ip_end;
                !matches!(ips.last()?.next, UDP | UDP_LITE | ESP | IPV4 | IPV6)
            }
            Upper::Esp => self.own.is_spi(u32::from_be_bytes(*datagram.first_chunk()?)),
            Upper::Udp => {
                let (udp, payload) = (chain.udp()?, datagram.get(UPPER_LEN..)?);
                if self.own.rtp().is_some() {
                    // The SSRC is compared with the fields that may change.
                    let header = rtp_header(payload)?;
                    len += header.len();
                    *rtp = Some(header);
                }
                (rtp.is_some() || !profiles.has(ProfileId::Rtp) || !rtp::may_be(payload))
                    && (udp.source_port, udp.destination_port)
                        == (self.udp.source_port, self.udp.destination_port)
                    && usize::from(udp.length) == datagram.len()
            }
            Upper::UdpLite => false,
        };
        is_flow.then_some(len)
    }

    /// [`compress_regular`](Self::compress_regular) after the profile was chosen.
    #[inline]
    pub(super) fn compress_as_regular(
        &mut self,
        plan: &ClassifiedPacket<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        if !plan.chain.is_plain() {
            return None;
        }
        let ClassifiedPacket { chain, rtp, timer, .. } = plan;
        let headers =
            RegularHeaders { chain, rtp: rtp.as_ref(), len: plan.header_len, timer: timer.as_ref() };
        self.compress_regular(&headers, departure)
    }

    /// Compresses a regular packet of this flow, without extension headers. `None`, without a change, if it is not regular.
    fn compress_regular(
        &mut self,
        headers: &RegularHeaders<'_>,
        departure: &mut Departure<'_, '_>,
    ) -> Option<Compressed> {
        let RegularHeaders { chain, rtp, len, timer } = *headers;
        let (now, cid, config) = (departure.now, departure.cid, departure.config);
        let out = &mut *departure.out;
        let (packet, ips) = (chain.packet(), chain.ips());
        let waited = self.caution.waited(now);
        let may_be = self.established && ips.len() <= BASE_IPS;
        // Behind any pause the decompressor may need the checksum of RTP, which is not verified here.
        let may_need_sum = has_rtp(self.profile) && self.caution.is_behind_any_pause(now);
        let is_quiet = self.caution.is_quiet(waited) && !may_need_sum;
        if !may_be || !self.establishment.is_quiet(now) || self.mode.is_pending() || !is_quiet {
            return None;
        }
        let header = packet.get(..len)?;
        let above = header.get(chain.ip_end()..)?;
        let sn = self.regular_sn(above, rtp)?;
        let (step, low) = (sn.wrapping_sub(self.sn), sn as u16);
        let rtp = match (self.own.rtp(), rtp) {
            (None, _) => None,
            (Some(rtp), Some(header)) if step == 1 => Some(rtp.regular(header, timer)?),
            (Some(_), _) => return None,
        };

        let frame = CidFrame::new(cid, config.channel.cids());
        let mut writer = Writer::new(out, frame.len());
        writer.offer(SN, Lsb { value: sn, needed: SN_BITS });
        type0::uo_0(&mut writer, false).ok()?;
        let mut watchers = self.watchers;
        let crc = self.write_regular_ips(&mut writer, ips, header, low, &mut watchers, config)?;
        let datagram = packet.get(chain.ip_end()..)?;
        let coverage = self.write_regular_udp(&mut writer, datagram, low, config)?;
        writer.fill_crc(TransportLayout::of(self.profile, 0).crc_dynamic(Check::Crc3, crc, header));
        let end = writer.finish().ok()?;
        let sent = frame.close(end, packet.get(len..)?, out).ok()?;

        let width = usize::from(config.window);
        self.caution.sent_quietly(now, waited, step.max(1));
        self.sn = sn;
        self.sns.push(low, width);
        if let (Some(own), Some(rtp)) = (self.own.rtp_mut(), rtp) {
            own.go_on(rtp, width);
        }
        self.watchers = watchers;
        if let Some(coverage) = coverage {
            self.coverage = coverage;
        }
        for (i, ip) in ips.iter().enumerate() {
            let kept = &mut self.ips[i];
            // Everything else is as it was.
            if let IpHeader::V4(header) = ip.header() {
                kept.header.id = header.identification;
            }
            if kept.sid {
                self.offsets[i].push(kept.counted_id().wrapping_sub(low), width);
            }
        }
        self.establishment.count_quiet(sent);
        Some(Compressed {
            cid,
            profile: self.profile,
            format: Format::Uo0,
            header_in: len,
            header_out: end,
            len: sent,
            refresh: false,
        })
    }

    /// SN of a packet with these headers behind IP, if `UO-0` carries it.
    #[inline(always)]
    fn regular_sn(&self, above: &[u8], rtp: Option<&rtp::RtpHeader<'_>>) -> Option<u32> {
        let sn = match (upper(self.profile), rtp) {
            (Upper::Esp, _) => u32::from_be_bytes(*above.last_chunk()?),
            (_, Some(rtp)) if has_rtp(self.profile) => u32::from(rtp.sn),
            _ => self.next_sn(),
        };
        let (step, low) = (sn.wrapping_sub(self.sn), sn as u16);
        let is_step = !has_own_sn(self.profile) || (1..=MAX_STEP).contains(&step);
        let fits = is_step && self.sns.fits(low, SN_BITS, sn_shift(self.profile));
        (fits && self.pending_since != low).then_some(sn)
    }

    /// Writes random IP-IDs, if nothing else of the IP headers has to be sent. Returns the state of CRC-3 behind their CRC-DYNAMIC
    /// octets.
    #[inline(always)]
    fn write_regular_ips(
        &self,
        writer: &mut Writer<'_>,
        ips: &[Ip<'_>],
        header: &[u8],
        sn: u16,
        watchers: &mut [Watcher; BASE_IPS],
        config: &CompressorConfig,
    ) -> Option<u8> {
        let mut crc = self.crc_static.known()?[0];
        let sid = self.sid_allowed(config);
        for (i, ip) in ips.iter().enumerate() {
            let kept = &self.ips[i];
            let mut next = kept.header;
            if let IpHeader::V4(header) = ip.header() {
                let (mut id, behavior) = (header.identification, behavior(kept));
                let offset = behavior.counted(id).wrapping_sub(sn);
                let goes_on = match behavior {
                    Behavior::Random => random_ip_id(writer, true, &mut id).is_ok(),
                    Behavior::Constant => true,
                    Behavior::Sequential | Behavior::Swapped => self.offsets[i].holds_only(offset),
                };
                if !goes_on || watchers[i].next(behavior, id, kept.header.id, sid) != behavior {
                    return None;
                }
            }
            next.update(ip);
            if !next.is_like(&kept.header) {
                return None;
            }
            crc = ip_dynamic(Check::Crc3, crc, header.get(ip.offset..)?, kept.header.version);
        }
        Some(crc)
    }

    /// Writes the checksum of UDP or UDP-Lite, and its coverage, of which it returns the next behavior.
    #[inline(always)]
    fn write_regular_udp(
        &self,
        writer: &mut Writer<'_>,
        datagram: &[u8],
        sn: u16,
        config: &CompressorConfig,
    ) -> Option<Option<Coverage>> {
        let kind = upper(self.profile);
        if !matches!(kind, Upper::Udp | Upper::UdpLite) {
            return Some(None);
        }
        let mut coverage = None;
        let mut checksum = u16::from_be_bytes(*datagram.get(UPPER_LEN - 2..)?.first_chunk()?);
        if kind == Upper::UdpLite {
            let (next, mut field) = self.next_coverage(datagram, sn, config)?;
            if next.is_present() {
                tail::coverage(writer, &mut field).ok()?;
            }
            coverage = Some(next);
        } else if (checksum != 0) != (self.udp.checksum != 0) {
            return None;
        }
        if checksum != 0 || coverage.is_some() {
            udp_checksum(writer, &mut checksum).ok()?;
        }
        Some(coverage)
    }

    /// The behavior of the Checksum Coverage behind a packet of UDP-Lite, and the field; `None` if that has to be a CCE packet.
    #[cold]
    fn next_coverage(&self, datagram: &[u8], sn: u16, config: &CompressorConfig) -> Option<(Coverage, u16)> {
        let (mut coverage, mut since) = (self.coverage, self.pending_since);
        let field = Udp::read(datagram).ok()?.length;
        let kind = coverage.note(field, datagram.len(), config.repetitions, sn, &mut since);
        kind.is_none().then_some((coverage, field))
    }
}

impl Rfc3095ReceiverContext {
    /// Decompresses the packet that is next by its `UO-0`, in a context without doubt, where no other SN, reference, or list is
    /// possible. `None`, without a change, if it is another one, or its CRC does not match.
    #[inline(always)]
    pub(crate) fn next_in_line(
        &mut self,
        now: Moment,
        packet: &PacketHeader<'_>,
        out: &mut [u8],
    ) -> Option<Verified> {
        let sn = sn_plus(self.profile, self.sn, 1);
        if u32::from(packet.first >> 3) != sn & 0xF || !self.awaits_next(now) {
            return None;
        }
        let (check, mut crc) = (Check::Crc3, self.crc_static.known()?[0]);
        let (ips, mut ids, mut udp) = (self.ips.get(..usize::from(self.ip_count))?, [0; BASE_IPS], self.udp);
        let mut reader = Reader::contiguous(packet.rest);
        let transport = TransportLayout::of(self.profile, 0);
        let mut len = transport.len();
        for (id, ip) in ids.iter_mut().zip(ips) {
            len += ip.header.version.header_len();
            let behavior = behavior(ip);
            *id = ip.header.id;
            if ip.header.version == IpVersion::V4 && behavior.is_sequential() {
                *id = behavior.counted(behavior.counted(*id).wrapping_add(1));
            }
            random_ip_id(&mut reader, ip.is_random(), id).ok()?;
        }
        if matches!(transport, TransportLayout::Udp | TransportLayout::Rtp(_)) {
            if upper(self.profile) == Upper::UdpLite {
                self.udp_lite_in_line(&mut reader, &mut udp)?;
            } else if udp.checksum != 0 {
                udp_checksum(&mut reader, &mut udp.checksum).ok()?;
            }
        }
        let (mut rtp, mut spi) = (RtpFields::INITIAL, 0);
        match &self.own {
            UpperFields::Rtp(kept) if matches!(transport, TransportLayout::Rtp(_)) => {
                rtp = RtpFields { ts: timestamp::ahead_of(kept, 1), ..*kept };
            }
            UpperFields::Rtp(_) => {}
            UpperFields::Esp(kept) => spi = *kept,
        }
        let payload = reader.remaining();
        let total = len + payload.len();
        let headers = out.get_mut(..len)?;
        let mut at = 0;
        for (id, ip) in ids.iter().zip(ips) {
            let behind = total - at - ip.header.version.header_len();
            let end = ip.header.write(*id, ip.header.protocol, behind, headers, at).ok()?;
            crc = ip_dynamic(check, crc, headers.get(at..end)?, ip.header.version);
            at = end;
        }
        let (udp, rtp) = (&udp, &rtp);
        let chain =
            ChainFields { profile: self.profile, sn, ips, udp, spi, rtp, version: self.sums.version() };
        header::write_upper(&chain, &ExtensionLists::default(), total, headers, at).ok()?;
        if transport.crc_dynamic(check, crc, headers) != packet.first & 7 {
            return None;
        }
        let verified = Verified::deliver(packet, Format::Uo0, len, payload, out).ok()?;
        for (kept, id) in self.ips.iter_mut().zip(ids) {
            kept.header.id = id;
        }
        if let (TransportLayout::Rtp(_), UpperFields::Rtp(kept)) = (transport, &mut self.own) {
            kept.ts = rtp.ts;
        }
        self.arrivals.note(now, 1);
        self.sn = sn;
        self.movement.note_calm();
        Some(verified)
    }

    /// Reads the fields of UDP-Lite of a packet without extension.
    #[inline]
    fn udp_lite_in_line(&self, reader: &mut Reader<'_>, udp: &mut UdpFields) -> Option<()> {
        tail::udp_lite(reader, udp, self.coverage.present).ok()?;
        if !self.coverage.present && self.coverage.inferred {
            udp.coverage = datagram_len(self.profile, 0, reader.remaining().len()) as u16;
        }
        Some(())
    }

    /// True if nothing is in doubt, and the next packet can only be the one after the last.
    #[inline]
    fn awaits_next(&self, now: Moment) -> bool {
        self.health.state == DecompressorState::Fc
            && self.mode.mode() != Mode::Reliable
            && !self.doubt.is_open()
            && !self.health.is_doubtful()
            && self.arrivals.has_not_failed()
            && self.is_next(now, 1 << 4)
    }
}
