//! Which profile a packet goes by: the highest that restores it exactly.

use thinair_wire::header::chain::{HeaderChain, Ip, IpHeader, MAX_IP};
use thinair_wire::header::esp::Esp;
use thinair_wire::header::extension::AH_FIXED;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use super::rtp_detection::RtpDetection;
use super::timer::Link;
use super::{BASE_IPS, INDICES, coap_2015, rtp};
use crate::channel::ProfileSet;
use crate::compressor::{CompressorConfig, Key};
use crate::profile::ProfileId;

/// Most items of one list, and octets of one of them.
const MAX_ITEMS: usize = INDICES as usize;
const MAX_ITEM: usize = 125;

/// A packet and the profile it goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'p> {
    /// A profile of the RFC 3095 family.
    pub(crate) profile: ProfileId,
    /// The whole packet.
    pub(crate) packet: &'p [u8],
    /// Its IP headers, of which `ip_count` are compressed.
    pub(crate) ips: &'p [Ip<'p>],
    pub(crate) ip_count: usize,
    /// The static chain ends although an IP header follows (RFC 3843, section 3.1).
    pub(crate) terminates: bool,
    /// Octets in front of what the last IP header carries.
    pub(crate) ip_end: usize,
    /// The UDP or UDP-Lite header, whose Checksum Coverage stands for the length.
    pub(crate) udp: Udp,
    /// The RTP header, in profiles 0x0001 and 0x0007; elsewhere what may be one.
    pub(crate) rtp: Option<rtp::Header<'p>>,
    /// The ESP header, in profile 0x0003.
    pub(crate) esp: Esp,
    /// The CoAP header, in profile 0x0080.
    pub(crate) coap: Option<coap_2015::Header<'p>>,
    /// What a timer for timestamps needs to know, if one may be used.
    pub(crate) timer: Option<Link>,
    /// Octets of the headers that are compressed.
    pub(crate) header_len: usize,
}

impl<'p> Plan<'p> {
    /// The IP headers that are compressed.
    #[inline]
    pub(crate) fn ips(&self) -> &'p [Ip<'p>] {
        self.ips.get(..self.ip_count).unwrap_or_default()
    }

    /// The same packet by profile 0x0080; `None` if what follows the UDP header is no CoAP message.
    #[cold]
    fn with_coap(&self) -> Option<Self> {
        let coap = coap_2015::Header::read(self.payload())?;
        let header_len = self.header_len + coap.len();
        Some(Self { profile: ProfileId::Coap2015, coap: Some(coap), header_len, ..*self })
    }

    /// The SN that the packet has.
    #[inline]
    pub(crate) fn sn(&self) -> Option<u32> {
        match self.profile {
            ProfileId::Rtp | ProfileId::RtpUdpLite => self.rtp.map(|header| u32::from(header.sn)),
            ProfileId::Esp => Some(self.esp.sequence_number),
            _ => None,
        }
    }

    /// The RTP header, if the profile has one and it has CSRC identifiers, or the context had some.
    #[inline]
    pub(crate) fn csrc(&self, is_used: bool) -> Option<&rtp::Header<'p>> {
        let is_rtp = matches!(self.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) && self.ip_count == 1;
        self.rtp.as_ref().filter(|header| is_rtp && (is_used || !header.csrc.is_empty()))
    }

    /// The same packet by a profile with RTP; `None` if what follows the ports is no RTP header, or one whose CSRC
    /// identifiers are not kept.
    pub(crate) fn with_rtp(&self, profiles: ProfileSet) -> Option<Self> {
        let profile = match self.profile {
            ProfileId::UdpLite => ProfileId::RtpUdpLite,
            _ => ProfileId::Rtp,
        };
        let header = self.rtp.as_ref()?;
        let most = if self.ip_count == 1 { usize::from(INDICES) * rtp::CSRC_LEN } else { 0 };
        let is_kept = header.csrc.len() <= most && self.ip_count <= BASE_IPS;
        let header_len = self.header_len + header.len();
        (profiles.has(profile) && is_kept).then_some(Self { profile, header_len, ..*self })
    }

    /// The packet by the next lower profile of the channel; `None` is profile 0x0000.
    #[cold]
    pub(super) fn below(&self, profiles: ProfileSet) -> Option<Self> {
        let mut plan = *self;
        loop {
            let udp_end = plan.ip_end + Udp::LEN;
            plan = match plan.profile {
                ProfileId::Rtp | ProfileId::Coap2015 => {
                    Self { profile: ProfileId::Udp, coap: None, header_len: udp_end, ..plan }
                }
                ProfileId::RtpUdpLite => Self { profile: ProfileId::UdpLite, header_len: udp_end, ..plan },
                ProfileId::Udp | ProfileId::UdpLite | ProfileId::Esp => Self {
                    profile: ProfileId::Ip,
                    udp: Udp::default(),
                    rtp: None,
                    esp: Esp::default(),
                    header_len: plan.ip_end,
                    ..plan
                },
                ProfileId::Ip | ProfileId::Uncompressed | ProfileId::Tcp | ProfileId::Coap => return None,
            };
            if profiles.has(plan.profile) {
                return Some(plan);
            }
        }
    }

    /// Whether it has CoAP options, for which a context takes memory.
    pub(crate) fn has_options(&self) -> bool {
        self.coap.as_ref().is_some_and(coap_2015::Header::has_options)
    }

    /// What follows the headers.
    #[inline]
    pub(crate) fn payload(&self) -> &'p [u8] {
        self.packet.get(self.header_len..).unwrap_or_default()
    }

    /// Without one, no packet of the profile that begins or refreshes a context "can represent" it (RFC 3095, section 5.7.7):
    /// by a lower profile, the headers above are payload. Profile 0x0080 is without this rule.
    pub(crate) fn lacks_payload(&self) -> bool {
        self.payload().is_empty() && self.profile != ProfileId::Coap2015
    }
}

impl Key for Plan<'_> {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        for ip in self.ips() {
            match &ip.header {
                IpHeader::V4(header) => {
                    let [s, d] = [header.source, header.destination].map(u32::from_be_bytes);
                    word(u64::from(s) << 32 | u64::from(d));
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
        if let Some(coap) = &self.coap {
            coap.key(word);
        }
    }
}

/// The profile for a packet; `None` is profile 0x0000. Profile 0x0080 is taken for packets with one of its ports, if
/// the flow `has_place`, RTP for those that the rule finds.
#[inline]
pub(super) fn plan<'p>(
    chain: &'p HeaderChain<'p>,
    config: &CompressorConfig,
    has_place: impl FnOnce(&Plan<'p>) -> bool,
) -> Option<Plan<'p>> {
    let profiles = config.channel.profiles();
    let ips = chain.ips();
    let packet = chain.packet();
    let ip_end = chain.ip_end();
    let sound = ips.iter().take(MAX_IP).enumerate().take_while(|(i, ip)| restorable(ip, *i)).count();
    let plan = |profile, header_len| Plan {
        profile,
        packet,
        ips,
        ip_count: sound,
        terminates: false,
        ip_end,
        udp: Udp::default(),
        rtp: None,
        esp: Esp::default(),
        coap: None,
        timer: None,
        header_len,
    };
    if sound == ips.len()
        && let Some(next) = ips.last().map(|ip| ip.next)
    {
        let datagram = packet.get(ip_end..).unwrap_or_default();
        let header_len = ip_end + Udp::LEN;
        match next {
            protocol::UDP if sound <= BASE_IPS => {
                let udp = chain.udp().filter(|udp| usize::from(udp.length) == datagram.len());
                if let Some(udp) = udp {
                    let plan = Plan { udp: *udp, ..plan(ProfileId::Udp, header_len) };
                    if let Some(plan) = above_udp(plan, config, has_place) {
                        return Some(plan);
                    }
                }
            }
            protocol::UDP_LITE => {
                if let Ok(udp) = Udp::read(datagram) {
                    let plan = Plan { udp, ..plan(ProfileId::UdpLite, header_len) };
                    if let Some(plan) = above_udp(plan, config, |_| false) {
                        return Some(plan);
                    }
                }
            }
            protocol::ESP if sound <= BASE_IPS && profiles.has(ProfileId::Esp) => {
                if let Ok(esp) = Esp::read(datagram) {
                    return Some(Plan { esp, ..plan(ProfileId::Esp, ip_end + Esp::LEN) });
                }
            }
            _ => {}
        }
    }
    let last = ips.get(..sound)?.last()?;
    let terminates = matches!(last.next, protocol::IPV4 | protocol::IPV6);
    profiles.has(ProfileId::Ip).then(|| Plan {
        terminates,
        ip_end: last.end(),
        ..plan(ProfileId::Ip, last.end())
    })
}

/// The profile of a datagram, for which `plan` is the one without what the datagram carries.
#[inline]
fn above_udp<'p>(
    mut plan: Plan<'p>,
    config: &CompressorConfig,
    has_place: impl FnOnce(&Plan<'p>) -> bool,
) -> Option<Plan<'p>> {
    let profiles = config.channel.profiles();
    let (ports, udp) = (&config.coap.ports, &plan.udp);
    if profiles.has(ProfileId::Coap2015)
        && plan.profile == ProfileId::Udp
        && (ports.has(udp.source_port) || ports.has(udp.destination_port))
        && let Some(plan) = plan.with_coap().filter(has_place)
    {
        return Some(plan);
    }
    if profiles.has(ProfileId::Rtp) || profiles.has(ProfileId::RtpUdpLite) {
        plan.rtp = RtpDetection::header(plan.payload());
        if config.rtp.has(udp.destination_port)
            && let Some(plan) = plan.with_rtp(profiles)
        {
            return Some(plan);
        }
    }
    profiles.has(plan.profile).then_some(plan)
}

/// Whether the decompressor can rebuild the header from what it is sent.
#[inline]
fn restorable(ip: &Ip<'_>, index: usize) -> bool {
    ip.oddity.is_none() && (ip.extension_count == 0 || index < BASE_IPS && list_is_kept(ip))
}

/// Whether the extension headers fit a list: not too many, not too long, and at most one AH, because the format
/// has one place for its sequence number (RFC 3095, section 5.8.5.1).
fn list_is_kept(ip: &Ip<'_>) -> bool {
    let mut ahs = 0;
    ip.extension_count <= MAX_ITEMS
        && ip.walk().take(ip.extension_count).all(|(kind, octets)| {
            ahs += usize::from(kind == protocol::AH);
            octets.len() <= MAX_ITEM && (kind != protocol::AH || octets.len() >= AH_FIXED && ahs == 1)
        })
}
