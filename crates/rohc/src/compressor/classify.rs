//! Which profile a packet goes by: the highest that restores it exactly.

use thinair_wire::header::chain::{HeaderChain, Ip, IpHeader, MAX_IP};
use thinair_wire::header::extension::AH_FIXED;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use crate::channel::ProfileSet;
use crate::profile::ProfileId;
use crate::profile::coap::{self, CoapPorts};
use crate::profile::rfc3095::coap_2015;

/// IP headers that profile 0x0002 takes (RFC 3095, section 5.7), and up to which extension headers are kept.
const BASE_IPS: usize = 2;

/// Most extension headers of one list, and octets of one of them.
const MAX_ITEMS: usize = 8;
const MAX_ITEM: usize = 125;

/// A packet and the profile it goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'p> {
    /// 0x0002, 0x0004 or 0x0080.
    pub(crate) profile: ProfileId,
    /// The whole packet.
    pub(crate) packet: &'p [u8],
    /// Its IP headers, of which `ip_count` are compressed.
    pub(crate) ips: &'p [Ip<'p>],
    pub(crate) ip_count: usize,
    /// The static chain ends although an IP header follows (RFC 3843, section 3.1).
    pub(crate) terminates: bool,
    /// The UDP header, in profiles 0x0002 and 0x0080.
    pub(crate) udp: Udp,
    /// The CoAP header, in profile 0x0080.
    pub(crate) coap: Option<coap_2015::Header<'p>>,
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

    /// Whether it has CoAP options, for which a context takes memory.
    pub(crate) fn has_options(&self) -> bool {
        self.coap.as_ref().is_some_and(coap_2015::Header::has_options)
    }

    /// What follows the headers.
    #[inline]
    pub(crate) fn payload(&self) -> &'p [u8] {
        self.packet.get(self.header_len..).unwrap_or_default()
    }
}

/// What tells flows apart.
pub(crate) trait Key {
    /// Gives it, word by word.
    fn key(&self, word: impl FnMut(u64));
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
                    for address in [&header.source, &header.destination] {
                        for half in address.chunks_exact(8) {
                            word(half.try_into().map_or(0, u64::from_ne_bytes));
                        }
                    }
                }
            }
        }
        let ports = u64::from(self.udp.source_port) << 16 | u64::from(self.udp.destination_port);
        let next = self.ips().last().map_or(0, |ip| ip.next);
        word(ports << 16 | u64::from(next) << 8 | self.profile as u64);
        if let Some(coap) = &self.coap {
            coap.key(word);
        }
    }
}

impl Key for coap::Path {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        let (ports, addresses) = self.ends();
        for half in addresses {
            word(half);
        }
        word(u64::from(ports) << 16 | ProfileId::Coap as u64);
    }
}

/// The profile for a packet; `None` is profile 0x0000. Profile 0x0080 is taken for packets with one of `ports`, if
/// the flow `has_place`.
#[inline]
pub(super) fn plan<'p>(
    chain: &'p HeaderChain<'p>,
    profiles: ProfileSet,
    ports: &CoapPorts,
    has_place: impl FnOnce(&Plan<'p>) -> bool,
) -> Option<Plan<'p>> {
    let ips = chain.ips();
    let packet = chain.packet();
    let sound = ips.iter().take(MAX_IP).enumerate().take_while(|(i, ip)| restorable(ip, *i)).count();
    if (profiles.has(ProfileId::Udp) || profiles.has(ProfileId::Coap2015))
        && sound == ips.len()
        && sound <= BASE_IPS
        && let Some(udp) = chain.udp()
        && usize::from(udp.length) == packet.len() - chain.ip_end()
        && ips.last().is_some_and(|ip| ip.next == protocol::UDP)
    {
        let header_len = chain.ip_end() + Udp::LEN;
        let is_on_coap_port = profiles.has(ProfileId::Coap2015)
            && (ports.has(udp.source_port) || ports.has(udp.destination_port));
        let plan = Plan {
            profile: ProfileId::Udp,
            packet,
            ips,
            ip_count: sound,
            terminates: false,
            udp: *udp,
            coap: None,
            header_len,
        };
        if is_on_coap_port && let Some(plan) = plan.with_coap().filter(has_place) {
            return Some(plan);
        }
        if profiles.has(ProfileId::Udp) {
            return Some(plan);
        }
    }
    let last = ips.get(..sound)?.last()?;
    profiles.has(ProfileId::Ip).then(|| Plan {
        profile: ProfileId::Ip,
        packet,
        ips,
        ip_count: sound,
        terminates: matches!(last.next, protocol::IPV4 | protocol::IPV6),
        udp: Udp::default(),
        coap: None,
        header_len: last.end(),
    })
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
