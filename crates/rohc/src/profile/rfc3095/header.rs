//! Uncompressed headers: rebuilding from fields, and the CRC over them.

use thinair_wire::checksum::Sum;
use thinair_wire::crc::Check;
use thinair_wire::header::chain::MAX_IP;
use thinair_wire::header::esp::Esp;
use thinair_wire::header::extension::{AH_FIXED, Extensions};
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::rtp::Rtp;
use thinair_wire::header::udp::Udp;

use super::list::{Item, MAX_ITEMS};
use super::rtp::{CSRC_LEN, RtpFields};
use super::{CSRC, IpFields, IpVersion, LISTS, UdpFields, Upper, has_rtp, upper};
use crate::decompressor::Unbuildable;
use crate::field::ip;
use crate::id::ProfileId;
use crate::work;

/// An extension header of one packet, resolved. Its changing fields are filled in on rebuilding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtensionItem<'i> {
    pub(super) item: Item<'i>,
    /// Sequence number and Integrity Check Value of a compressed AH.
    pub(super) ah: Option<(u32, &'i [u8])>,
}

/// Data of a packet in the memory of the channel: the extension headers of both base headers, and the CSRC identifiers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtensionLists<'i> {
    /// `None` while there is none, so that packets without lists do not pay for the memory.
    items: Option<[[ExtensionItem<'i>; MAX_ITEMS]; LISTS]>,
    len: [usize; LISTS],
}

impl<'i> ExtensionLists<'i> {
    /// Returns the extension headers of an IP header.
    #[inline]
    pub(super) fn of(&self, ip: usize) -> &[ExtensionItem<'i>] {
        match (&self.items, self.len.get(ip)) {
            (Some(items), Some(&len)) if len > 0 => {
                items.get(ip).and_then(|items| items.get(..len)).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Returns `len` extension headers of an IP header, to be filled in.
    pub(super) fn set_len(&mut self, ip: usize, len: usize) -> &mut [ExtensionItem<'i>] {
        if let Some(slot) = self.len.get_mut(ip) {
            *slot = len;
        }
        if len == 0 {
            return &mut [];
        }
        let items = self.items.get_or_insert_with(Default::default);
        items.get_mut(ip).and_then(|items| items.get_mut(..len)).unwrap_or_default()
    }

    /// Returns the extension headers of an IP header for changes.
    pub(super) fn of_mut(&mut self, ip: usize) -> &mut [ExtensionItem<'i>] {
        let len = self.len.get(ip).copied().unwrap_or(0);
        match &mut self.items {
            Some(items) => items.get_mut(ip).and_then(|items| items.get_mut(..len)).unwrap_or_default(),
            None => &mut [],
        }
    }

    /// Octets of the CSRC identifiers.
    #[inline]
    pub(super) fn csrc_len(&self) -> usize {
        self.len[CSRC] * CSRC_LEN
    }

    /// Octets of all AHs, which are CRC-DYNAMIC, and the number of headers among which they are; 0 without one.
    pub(super) fn authenticated(&self) -> usize {
        let all = || (0..LISTS).flat_map(|ip| self.of(ip)).map(|e| e.item);
        let octets: usize = all().filter(|item| item.kind == protocol::AH).map(|item| item.len()).sum();
        if octets == 0 { 0 } else { octets + all().count() }
    }

    /// True if there is no extension header at all.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_none()
    }
}

/// Headers behind the IP headers of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TransportLayout {
    #[default]
    None,
    /// UDP or UDP-Lite.
    Udp,
    /// RTP with that many octets of CSRC identifiers, in UDP or UDP-Lite.
    Rtp(u8),
    Esp,
}

/// Layout of a header chain in a packet, for CRCs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// Start and version of each IP header, and the octets of its extension headers. Packets have at most 65,575 octets, of which
    /// headers in these profiles take a few hundred.
    ips: [(u16, IpVersion, u16); MAX_IP],
    ip_count: u8,
    transport: TransportLayout,
    /// Octets of the whole chain.
    pub(super) len: usize,
    /// An AH is among the extension headers.
    has_ah: bool,
}

impl Layout {
    /// Returns the layout of the headers of fields and lists.
    #[inline(always)]
    fn of(x: &ChainFields<'_>, lists: &ExtensionLists<'_>) -> Self {
        let mut layout = Self::default();
        for (i, ip) in x.ips.iter().enumerate() {
            let extensions = lists.of(i);
            let octets = extensions.iter().map(|e| e.item.len()).sum();
            layout.ip(ip.header.version, octets, extensions.iter().any(|e| e.item.kind == protocol::AH));
        }
        layout.upper(x.profile, lists.csrc_len());
        layout
    }

    /// Adds an IP header with `extensions` octets of extension headers behind it.
    #[inline]
    pub(super) fn ip(&mut self, version: IpVersion, extensions: usize, has_ah: bool) {
        if let Some(ip) = self.ips.get_mut(usize::from(self.ip_count)) {
            *ip = (self.len as u16, version, extensions as u16);
            self.ip_count += 1;
            self.len += fixed_len(version) + extensions;
            self.has_ah |= has_ah;
        }
    }

    /// Adds the headers of a profile behind the IP headers, with that many octets of CSRC identifiers.
    #[inline]
    pub(super) const fn upper(&mut self, profile: ProfileId, csrc_len: usize) {
        self.transport = TransportLayout::of(profile, csrc_len);
        self.len += self.transport.len();
    }

    /// Start and version of each IP header, and the octets of its extension headers.
    #[inline]
    pub(super) fn ips(&self) -> impl Iterator<Item = (usize, IpVersion, usize)> + '_ {
        let ips = self.ips.get(..usize::from(self.ip_count)).unwrap_or_default();
        ips.iter().map(|&(at, version, extensions)| (usize::from(at), version, usize::from(extensions)))
    }

    /// True if the checksum of UDP or UDP-Lite is correct, and covers all headers from there on. RFC 768; RFC 3828, section 3.1.
    /// With a Routing header it seems to be wrong.
    pub(super) fn has_right_sum(&self, headers: &[u8], payload: &[u8]) -> bool {
        self.sum(headers, payload) == Some(0)
    }

    /// Returns the checksum over a datagram, its own included: 0 if that is right. `None` without one.
    pub(super) fn sum(&self, headers: &[u8], payload: &[u8]) -> Option<u16> {
        let (at, version, extensions) = self.ips().last()?;
        let start = at + fixed_len(version) + extensions;
        let (ip, upper) = headers.get(at..self.len)?.split_at_checked(start - at)?;
        let (addresses, kind) = match version {
            IpVersion::V4 => (ip.get(12..20)?, ip.get(9)?),
            IpVersion::V6 => (ip.get(8..40)?, ip.get(6)?),
        };
        let len = upper.len() + payload.len();
        let coverage = u16::from_be_bytes(*upper.get(4..6)?.first_chunk()?);
        let is_lite = *kind == protocol::UDP_LITE;
        let covered = if is_lite && coverage != 0 { usize::from(coverage) } else { len };
        let behind = covered.checked_sub(upper.len())?;
        let checksum = upper.get(6..8)?;
        work::note(covered / 8);
        let sum = Sum::ZERO.octets(addresses).word(u16::from(*kind)).word(len as u16);
        let payload = payload.get(..behind)?;
        // An odd octet forms a word with the next one.
        let sum = match (upper.split_last(), payload.split_first()) {
            (Some((a, upper)), Some((b, payload))) if upper.len().is_multiple_of(2) => {
                sum.octets(upper).word(u16::from_be_bytes([*a, *b])).octets(payload)
            }
            _ => sum.octets(upper).octets(payload),
        };
        (checksum != [0, 0]).then(|| sum.checksum())
    }

    /// Returns the state of a check after the CRC-STATIC octets of `header`. RFC 3095, sections 5.7.7.3 to 5.7.7.5, 5.8.7.
    pub(super) fn crc_static(&self, check: Check, header: &[u8]) -> u8 {
        work::note(self.len);
        let mut crc = check.start();
        let mut add = |from: usize, to: usize| {
            crc = check.update(crc, header.get(from..to).unwrap_or_default());
        };
        for (at, version, extensions) in self.ips() {
            let fixed = at + fixed_len(version);
            match version {
                IpVersion::V4 => {
                    add(at, at + 2);
                    add(at + 6, at + 10);
                    add(at + 12, fixed);
                }
                IpVersion::V6 => {
                    add(at, at + 4);
                    add(at + 6, fixed);
                }
            }
            if self.has_ah {
                for (kind, from, to) in walk(header, version, fixed, extensions) {
                    if kind != protocol::AH {
                        add(from, to);
                    }
                }
            } else {
                add(fixed, fixed + extensions);
            }
        }
        match self.transport {
            TransportLayout::None => {}
            TransportLayout::Udp | TransportLayout::Esp => add(self.len - UDP_LEN, self.len - 4),
            TransportLayout::Rtp(csrc_len) => {
                let rtp = self.len - Rtp::LEN - usize::from(csrc_len);
                add(rtp - UDP_LEN, rtp - 4);
                add(rtp, rtp + 1);
                add(rtp + 8, self.len);
            }
        }
        crc
    }

    /// Returns the check over the CRC-DYNAMIC octets of `header`, from the state after the static ones.
    #[inline(always)]
    pub(super) fn crc_dynamic(&self, check: Check, mut crc: u8, header: &[u8]) -> u8 {
        for i in 0..usize::from(self.ip_count).min(MAX_IP) {
            let (at, version, extensions) = self.ips[i];
            let (at, extensions) = (usize::from(at), usize::from(extensions));
            crc = ip_dynamic(check, crc, header.get(at..).unwrap_or_default(), version);
            if self.has_ah {
                for (kind, from, to) in walk(header, version, at + fixed_len(version), extensions) {
                    if kind == protocol::AH {
                        work::note(to - from);
                        crc = check.update(crc, header.get(from..to).unwrap_or_default());
                    }
                }
            }
        }
        self.transport.crc_dynamic(check, crc, header)
    }
}

impl TransportLayout {
    /// Returns the headers of a profile behind the IP headers, with that many octets of CSRC identifiers.
    #[inline]
    pub(super) const fn of(profile: ProfileId, csrc_len: usize) -> Self {
        match upper(profile) {
            Upper::None => Self::None,
            Upper::Esp => Self::Esp,
            Upper::Udp | Upper::UdpLite if has_rtp(profile) => Self::Rtp(csrc_len as u8),
            Upper::Udp | Upper::UdpLite => Self::Udp,
        }
    }

    /// Number of octets.
    #[inline]
    pub(super) const fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Esp => ESP_LEN,
            Self::Udp => UDP_LEN,
            Self::Rtp(csrc_len) => UDP_LEN + Rtp::LEN + csrc_len as usize,
        }
    }

    /// Returns the check over its CRC-DYNAMIC octets at the end of `header`, from the state after those before.
    #[inline(always)]
    pub(super) fn crc_dynamic(self, check: Check, crc: u8, header: &[u8]) -> u8 {
        match self {
            Self::None => crc,
            // Length and checksum, or the Sequence Number of ESP.
            Self::Udp | Self::Esp => header.last_chunk::<4>().map_or(crc, |last| check.update(crc, last)),
            Self::Rtp(csrc_len) => {
                let octets = header.len().checked_sub(4 + Rtp::LEN + usize::from(csrc_len));
                match octets.and_then(|at| header.get(at..)?.first_chunk::<12>()) {
                    Some(&[a, b, c, d, _, ref marker_to_timestamp @ ..]) => {
                        check.update(check.update(crc, &[a, b, c, d]), marker_to_timestamp)
                    }
                    None => crc,
                }
            }
        }
    }
}

/// Returns the check over the CRC-DYNAMIC octets of the IP header at the start of `octets`, from the state after those before.
#[inline(always)]
pub(super) fn ip_dynamic(check: Check, crc: u8, octets: &[u8], version: IpVersion) -> u8 {
    match (version, octets.first_chunk::<12>()) {
        (IpVersion::V4, Some(&[_, _, a, b, c, d, .., e, f])) => check.update(crc, &[a, b, c, d, e, f]),
        (IpVersion::V6, Some(&[_, _, _, _, a, b, ..])) => check.update(crc, &[a, b]),
        (IpVersion::V4 | IpVersion::V6, None) => crc,
    }
}

/// Octets of a UDP or UDP-Lite header.
const UDP_LEN: usize = Udp::LEN;
/// Octets of an ESP header.
const ESP_LEN: usize = Esp::LEN;

/// Number of octets from the UDP or UDP-Lite header on, of a packet with that much payload.
#[inline]
pub(super) fn datagram_len(profile: ProfileId, csrc_len: usize, payload: usize) -> usize {
    UDP_LEN + payload + if has_rtp(profile) { Rtp::LEN + csrc_len } else { 0 }
}

/// Octets of an IP header without options and extension headers.
#[inline]
pub(super) const fn fixed_len(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => Ipv4::LEN,
        IpVersion::V6 => Ipv6::LEN,
    }
}

/// Iterates over type, start and end of each of the extension headers that start at `from`.
fn walk(
    header: &[u8],
    version: IpVersion,
    from: usize,
    extensions: usize,
) -> impl Iterator<Item = (u8, usize, usize)> + '_ {
    let first = match version {
        IpVersion::V4 => from.checked_sub(11),
        IpVersion::V6 => from.checked_sub(34),
    };
    let kind = first.and_then(|at| header.get(at)).copied().unwrap_or_default();
    let octets = header.get(from..from + extensions).unwrap_or_default();
    let mut at = from;
    Extensions::new(kind, octets).map(move |(kind, octets)| {
        let start = at;
        at += octets.len();
        (kind, start, at)
    })
}

/// Fields from which the headers of a packet are rebuilt, except lists.
pub(super) struct ChainFields<'a> {
    pub(super) profile: ProfileId,
    pub(super) sn: u32,
    pub(super) ips: &'a [IpFields],
    pub(super) udp: &'a UdpFields,
    /// SPI of ESP.
    pub(super) spi: u32,
    pub(super) rtp: &'a RtpFields,
    /// V of RTP.
    pub(super) version: u8,
}

/// Writes the header chain of a packet with `payload` octets of payload to the start of `out`, and returns its
/// layout. Lengths and checksums are inferred.
#[inline(always)]
pub(super) fn rebuild(
    x: &ChainFields<'_>,
    lists: &ExtensionLists<'_>,
    payload: usize,
    out: &mut [u8],
) -> Result<Layout, Unbuildable> {
    let layout = Layout::of(x, lists);
    let total = layout.len + payload;
    let room = out.len();
    let out = out.get_mut(..layout.len).filter(|_| total <= room).ok_or(Unbuildable::NoRoom(total))?;
    work::note(layout.len / 8);
    let mut start = 0;
    for (i, ip) in x.ips.iter().enumerate() {
        let extensions = lists.of(i);
        let first = extensions.first().map_or(ip.header.protocol, |e| e.item.kind);
        let behind = total - start - fixed_len(ip.header.version);
        start = ip.header.write(ip.header.id, first, behind, out, start)?;
        for (j, extension) in extensions.iter().enumerate() {
            let next = extensions.get(j + 1).map_or(ip.header.protocol, |e| e.item.kind);
            start = write_extension(extension, next, out, start).ok_or(Unbuildable::NoRoom(total))?;
        }
    }
    write_upper(x, lists, total, out, start)?;
    Ok(layout)
}

/// Changes headers that were [rebuilt](rebuild), with that layout, to those of the same packet with another SN.
#[inline(never)]
pub(super) fn renumber(x: &ChainFields<'_>, lists: &ExtensionLists<'_>, layout: &Layout, out: &mut [u8]) {
    let mut write = |at: usize, octets: &[u8]| {
        if let Some(room) = out.get_mut(at..at + octets.len()) {
            room.copy_from_slice(octets);
        }
    };
    if layout.has_ah {
        for (i, (at, version, _)) in layout.ips().enumerate() {
            let mut at = at + fixed_len(version);
            for extension in lists.of(i) {
                if let Some((sn, _)) = extension.ah {
                    write(at + AH_FIXED - 4, &sn.to_be_bytes());
                }
                at += extension.item.len();
            }
        }
    }
    match layout.transport {
        TransportLayout::Esp => write(layout.len - 4, &x.sn.to_be_bytes()),
        TransportLayout::Rtp(csrc_len) => {
            let rtp = layout.len - usize::from(csrc_len) - Rtp::LEN;
            write(rtp + 2, &(x.sn as u16).to_be_bytes());
            write(rtp + 4, &x.rtp.ts.to_be_bytes());
        }
        TransportLayout::None | TransportLayout::Udp => {}
    }
    for ((at, version, _), ip) in layout.ips().zip(x.ips) {
        if version == IpVersion::V4 {
            ip::set_id(out, at, ip.header.id);
        }
    }
}

/// Writes the headers behind the IP headers of a packet of `total` octets.
#[inline(always)]
pub(super) fn write_upper(
    x: &ChainFields<'_>,
    lists: &ExtensionLists<'_>,
    total: usize,
    out: &mut [u8],
    at: usize,
) -> Result<(), Unbuildable> {
    let no_room = |_| Unbuildable::NoRoom(total);
    let length = match upper(x.profile) {
        Upper::None => return Ok(()),
        Upper::Esp => {
            let esp = Esp { spi: x.spi, sequence_number: x.sn };
            return esp.write(out, at).map(|_| ()).map_err(no_room);
        }
        Upper::Udp => u16::try_from(total - at).map_err(|_| Unbuildable::Malformed)?,
        // The two headers differ in one field, which is no length in UDP-Lite.
        Upper::UdpLite => x.udp.coverage,
    };
    let UdpFields { source_port, destination_port, checksum, .. } = *x.udp;
    let end = Udp { source_port, destination_port, length, checksum }.write(out, at).map_err(no_room)?;
    let written = if has_rtp(x.profile) {
        write_rtp(x.version, x.rtp, x.sn, lists.of(CSRC), out, end)
    } else {
        Some(())
    };
    written.ok_or(Unbuildable::NoRoom(total))
}

/// Writes the RTP header.
#[inline]
fn write_rtp(
    version: u8,
    rtp: &RtpFields,
    sn: u32,
    csrc: &[ExtensionItem<'_>],
    out: &mut [u8],
    at: usize,
) -> Option<()> {
    let fixed: &mut [u8; Rtp::LEN] = out.get_mut(at..at + Rtp::LEN)?.try_into().ok()?;
    fixed[0] = version << 6 | u8::from(rtp.p) << 5 | u8::from(rtp.x) << 4 | csrc.len() as u8;
    fixed[1] = u8::from(rtp.m) << 7 | rtp.pt;
    fixed[2..4].copy_from_slice(&(sn as u16).to_be_bytes());
    fixed[4..8].copy_from_slice(&rtp.ts.to_be_bytes());
    fixed[8..12].copy_from_slice(&rtp.ssrc.to_be_bytes());
    let mut room = out.get_mut(at + Rtp::LEN..)?.chunks_exact_mut(CSRC_LEN);
    for extension in csrc {
        room.next()?.copy_from_slice(extension.item.body.get(..CSRC_LEN)?);
    }
    Some(())
}

/// Writes an extension header and returns its end. The next header is of type `next`.
fn write_extension(extension: &ExtensionItem<'_>, next: u8, out: &mut [u8], at: usize) -> Option<usize> {
    let item = &extension.item;
    let room = out.get_mut(at..at + item.len())?;
    room[0] = next;
    room[1] = item.length;
    room[2..].copy_from_slice(item.body);
    if let Some((sn, icv)) = extension.ah {
        room.get_mut(AH_FIXED - 4..AH_FIXED)?.copy_from_slice(&sn.to_be_bytes());
        room.get_mut(AH_FIXED..).filter(|room| room.len() == icv.len())?.copy_from_slice(icv);
    }
    Some(at + item.len())
}
