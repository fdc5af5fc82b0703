//! Choice of the profile of a packet: the highest one that restores it exactly.

use thinair_wire::header::chain::{HeaderChain, Ip, IpHeader};
use thinair_wire::header::esp::Esp;
use thinair_wire::header::extension::AH_FIXED;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;
use thinair_wire::time::Instant;

use super::{BASE_IPS, INDICES, rtp};
use crate::channel::ProfileSet;
use crate::compressor::{CompressorConfig, FlowKey};
use crate::field::timer::TimerLimits;
use crate::id::ProfileId;

/// Largest number of items in a list, and largest size of one in octets.
const MAX_ITEMS: usize = INDICES as usize;
const MAX_ITEM: usize = 125;

/// A packet and its profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassifiedPacket<'p> {
    /// A profile of the RFC 3095 family.
    pub(crate) profile: ProfileId,
    /// All headers of the packet.
    pub(crate) chain: &'p HeaderChain<'p>,
    /// Its compressed IP headers.
    ips: &'p [Ip<'p>],
    pub(crate) ip_count: usize,
    /// One of them has extension headers.
    pub(crate) has_extensions: bool,
    /// The static chain ends although an IP header follows (RFC 3843, section 3.1).
    pub(crate) terminates: bool,
    /// Index of the first octet behind the last IP header.
    pub(crate) ip_end: usize,
    /// The UDP or UDP-Lite header; its length field holds the Checksum Coverage of UDP-Lite.
    pub(crate) udp: Udp,
    /// The RTP header, in profiles 0x0001 and 0x0007; in others, data that may be one.
    pub(crate) rtp: Option<rtp::RtpHeader<'p>>,
    /// The ESP header, in profile 0x0003.
    pub(crate) esp: Esp,
    pub(super) now: Instant,
    /// Its profile may become one with RTP.
    pub(super) may_become_rtp: bool,
    /// Limits of a timer for timestamps, if one may be used.
    pub(crate) timer: Option<TimerLimits>,
    /// Octets of the compressed headers.
    pub(crate) header_len: usize,
}

impl<'p> ClassifiedPacket<'p> {
    /// Creates a packet whose profile has to be [chosen](Self::choose).
    #[inline(always)]
    pub(super) fn new(now: Instant, chain: &'p HeaderChain<'p>, timer: Option<TimerLimits>) -> Self {
        let (ips, ip_end) = (if chain.is_plain() { chain.ips() } else { restorable(chain) }, chain.ip_end());
        Self {
            profile: ProfileId::Ip,
            chain,
            ips,
            ip_count: ips.len(),
            has_extensions: !chain.is_plain() && ips.iter().any(|ip| ip.extension_count > 0),
            terminates: false,
            ip_end,
            udp: Udp::default(),
            rtp: None,
            esp: Esp::default(),
            now,
            may_become_rtp: false,
            timer,
            header_len: ip_end,
        }
    }

    /// Chooses the profile; false for profile 0x0000. Profiles with RTP are for packets that the rule detects.
    #[inline]
    pub(super) fn choose(&mut self, chain: &HeaderChain<'p>, config: &CompressorConfig) -> bool {
        let profiles = config.channel.profiles();
        let is_whole = chain.is_plain() || self.ip_count == chain.ips().len();
        if is_whole && self.rise(chain, profiles) {
            if self.profile == ProfileId::Esp {
                return true;
            }
            if (profiles.has(ProfileId::Rtp) || profiles.has(ProfileId::RtpUdpLite))
                && let Some(header) = rtp_header(self.payload())
            {
                self.rtp = Some(header);
            }
            let is_rtp = config.rtp.has(self.udp.destination_port) && self.choose_rtp(profiles);
            return is_rtp || profiles.has(self.profile) || self.fall(profiles);
        }
        let Some(last) = self.ips().last() else { return false };
        self.terminates = matches!(last.next, protocol::IPV4 | protocol::IPV6);
        (self.ip_end, self.header_len) = (last.end(), last.end());
        profiles.has(ProfileId::Ip)
    }

    /// Returns the compressed IP headers.
    #[inline]
    pub(crate) fn ips(&self) -> &'p [Ip<'p>] {
        self.ips
    }

    /// Chooses a profile of ESP, UDP or UDP-Lite; false, without a change, if the packet is none of these.
    #[inline]
    fn rise(&mut self, chain: &HeaderChain<'_>, profiles: ProfileSet) -> bool {
        let datagram = self.payload();
        match self.ips.last().map(|ip| ip.next) {
            Some(protocol::UDP) if self.ip_count <= BASE_IPS => {
                let Some(udp) = chain.udp().filter(|udp| usize::from(udp.length) == datagram.len()) else {
                    return false;
                };
                self.profile = ProfileId::Udp;
                (self.udp.source_port, self.udp.destination_port) = (udp.source_port, udp.destination_port);
                (self.udp.length, self.udp.checksum) = (udp.length, udp.checksum);
            }
            Some(protocol::UDP_LITE) => {
                let Ok(udp) = Udp::read(datagram) else { return false };
                (self.profile, self.udp) = (ProfileId::UdpLite, udp);
            }
            Some(protocol::ESP) if self.ip_count <= BASE_IPS && profiles.has(ProfileId::Esp) => {
                let Ok(esp) = Esp::read(datagram) else { return false };
                (self.profile, self.esp) = (ProfileId::Esp, esp);
            }
            _ => return false,
        }
        // Headers of UDP, UDP-Lite and ESP have equal lengths.
        self.header_len += Udp::LEN;
        true
    }

    /// SN of the packet, if its headers have one.
    #[inline]
    pub(crate) fn sn(&self) -> Option<u32> {
        match self.profile {
            ProfileId::Rtp | ProfileId::RtpUdpLite => self.rtp.map(|header| u32::from(header.sn)),
            ProfileId::Esp => Some(self.esp.sequence_number),
            _ => None,
        }
    }

    /// The RTP header, if the profile has one, and the packet or the context has CSRC identifiers.
    #[inline]
    pub(crate) fn csrc(&self, is_used: bool) -> Option<&rtp::RtpHeader<'p>> {
        let is_rtp = matches!(self.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) && self.ip_count == 1;
        self.rtp.as_ref().filter(|header| is_rtp && (is_used || !header.csrc.is_empty()))
    }

    /// Chooses a profile with RTP; false, without a change, if the data behind the ports is no RTP header, or one whose CSRC
    /// identifiers are not kept.
    pub(crate) fn choose_rtp(&mut self, profiles: ProfileSet) -> bool {
        let Some(header) = &self.rtp else { return false };
        let profile = match self.profile {
            ProfileId::UdpLite => ProfileId::RtpUdpLite,
            _ => ProfileId::Rtp,
        };
        let most = if self.ip_count == 1 { usize::from(INDICES) * rtp::CSRC_LEN } else { 0 };
        let is_kept = header.csrc.len() <= most && self.ip_count <= BASE_IPS && profiles.has(profile);
        if is_kept {
            (self.profile, self.header_len) = (profile, self.header_len + header.len());
        }
        is_kept
    }

    /// Chooses the next lower profile of the channel; false for profile 0x0000.
    #[cold]
    pub(super) fn fall(&mut self, profiles: ProfileSet) -> bool {
        loop {
            self.profile = match self.profile {
                ProfileId::Rtp => ProfileId::Udp,
                ProfileId::RtpUdpLite => ProfileId::UdpLite,
                ProfileId::Udp | ProfileId::UdpLite | ProfileId::Esp => ProfileId::Ip,
                // None is below it, and profiles of other RFCs do not occur here.
                _ => return false,
            };
            self.header_len = self.ip_end + Udp::LEN;
            if self.profile == ProfileId::Ip {
                (self.udp, self.rtp, self.esp) = (Udp::default(), None, Esp::default());
                self.header_len = self.ip_end;
            }
            if profiles.has(self.profile) {
                return true;
            }
        }
    }

    /// Octets behind the headers.
    #[inline]
    pub(crate) fn payload(&self) -> &'p [u8] {
        self.chain.packet().get(self.header_len..).unwrap_or_default()
    }

    /// Octets from the header behind the IP headers on.
    #[inline]
    pub(super) fn upper_len(&self) -> usize {
        self.chain.packet().len() - self.ip_end
    }

    /// True if a packet without payload needs a lower profile. No packet that begins or refreshes a context "can represent" it
    /// (RFC 3095, section 5.7.7); in a lower profile, the headers above are payload.
    pub(crate) fn lacks_payload(&self) -> bool {
        self.payload().is_empty()
    }
}

impl FlowKey for ClassifiedPacket<'_> {
    /// Further IP headers are distinguished by their hash alone.
    #[inline]
    fn is_compared_in_full(&self) -> bool {
        self.ip_count <= BASE_IPS
    }

    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        for ip in self.ips() {
            match ip.header() {
                IpHeader::V4(header) => {
                    let [source, destination] = [header.source, header.destination].map(u32::from_ne_bytes);
                    word(u64::from(source) << 32 | u64::from(destination));
                }
                IpHeader::V6(header) => {
                    // A static field (RFC 3095, section 5.7.7.3): each label is a flow of its own.
                    let mut label = u64::from(header.flow_label);
                    for address in [&header.source, &header.destination] {
                        for half in address.chunks_exact(8) {
                            word(half.try_into().map_or(0, u64::from_ne_bytes) ^ label);
                            label = 0;
                        }
                    }
                }
            }
        }
        let ports = u64::from(self.udp.source_port) << 16 | u64::from(self.udp.destination_port);
        let next = self.ips().last().map_or(0, |ip| ip.next);
        word(ports << 16 | u64::from(next) << 8 | self.profile as u64);
        match self.profile {
            ProfileId::Rtp | ProfileId::RtpUdpLite => {
                word(self.rtp.map_or(0, |header| u64::from(header.fields.ssrc)));
            }
            ProfileId::Esp => word(u64::from(self.esp.spi)),
            _ => {}
        }
    }
}

/// Returns the first IP headers of a chain that the decompressor can rebuild.
#[cold]
fn restorable<'p>(chain: &'p HeaderChain<'p>) -> &'p [Ip<'p>] {
    let is_kept = |(i, ip): &(usize, &Ip<'_>)| {
        ip.oddity.is_none() && (ip.extension_count == 0 || *i < BASE_IPS && list_is_kept(ip))
    };
    let count = chain.ips().iter().enumerate().take_while(is_kept).count();
    chain.ips().get(..count).unwrap_or_default()
}

/// True if the extension headers fit a list: not too many, not too long, and at most one AH, because the format has one place
/// for its sequence number (RFC 3095, section 5.8.5.1).
fn list_is_kept(ip: &Ip<'_>) -> bool {
    let mut ahs = 0;
    ip.extension_count <= MAX_ITEMS
        && ip.walk().take(ip.extension_count).all(|(kind, octets)| {
            ahs += usize::from(kind == protocol::AH);
            octets.len() <= MAX_ITEM && (kind != protocol::AH || octets.len() >= AH_FIXED && ahs == 1)
        })
}

/// Reads the header of data that may be RTP: version 2, and no packet of RTCP (RFC 5761, section 4).
#[inline]
pub(super) fn rtp_header(datagram: &[u8]) -> Option<rtp::RtpHeader<'_>> {
    if !cfg!(feature = "rtp") {
        return None;
    }
    let is_rtcp = datagram.get(1).is_some_and(|kind| (192..=223).contains(kind));
    rtp::RtpHeader::read(datagram).filter(|_| !is_rtcp)
}
