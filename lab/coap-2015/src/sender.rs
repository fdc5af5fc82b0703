//! The way out: CoAP messages to a compressor of profile 0x0002, and its packets to those of profile 0x0080.

use thinair_rohc::feedback::{AckType, Feedback};
use thinair_rohc::{
    Cid, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, Format, Instant, Mode, Ports,
    ProfileId,
};
use thinair_wire::checksum;
use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::header::chain::HeaderChain;

use crate::check::{self, ip_len};
use crate::header::{CoapHeader, KeptHeader, MAX_OPTIONS, coap_dynamic, coap_static, copy, sum_with};
use crate::{CONTEXTS, Coap2015Compressed, PROFILE_OCTET, ROOM, UDP, is_supported};

/// Octets of the longest header: an IR packet over IPv6.
const HEAD: usize = 96 + MAX_OPTIONS;

/// Packets with CRC-7 behind a static change that CRC-3 does not show, in O-mode, where no refresh comes soon.
const SURE: u8 = 48;

/// A compressor of profile 0x0002, alone or in an endpoint.
pub(crate) trait Outbound<'m> {
    fn compressor(&mut self) -> &mut Compressor<'m>;

    /// Compresses a packet to the start of `out`, behind feedback.
    fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError>;
}

/// Addresses, flow label and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    addresses: [u8; 36],
    ports: [u8; 4],
}

impl Path {
    fn of(packet: &[u8]) -> Self {
        let (ip, mut path) = (ip_len(packet), Self { addresses: [0; 36], ports: [0; 4] });
        copy(&mut path.ports, packet.get(ip..).unwrap_or_default());
        if let Some(label) = packet.get(..4).filter(|_| ip > 20) {
            copy(&mut path.addresses, &[0, label[1] & 0xF, label[2], label[3]]);
            copy(&mut path.addresses[4..], packet.get(8..40).unwrap_or_default());
        } else {
            copy(&mut path.addresses, packet.get(12..20).unwrap_or_default());
        }
        path
    }
}

/// A flow with a context.
#[derive(Clone, Copy, Debug)]
struct SentFlow {
    path: Path,
    kept: KeptHeader,
    /// TOS, TTL and DF, or Traffic Class and Hop Limit, of the last packet, and CRC-3 after its CRC-STATIC octets once that was used.
    dynamic: [u8; 3],
    crc_static: Option<u8>,
    /// Packets left that must not use CRC-3.
    strong: u8,
    /// SN of the packet with the static change.
    since: u32,
}

/// The flows of a compressor, by CID.
#[derive(Debug)]
pub(crate) struct Sender {
    flows: [Option<SentFlow>; CONTEXTS],
    /// Flows with options that may have a context.
    most: usize,
    ports: Ports,
    repetitions: u8,
    is_on: bool,
    packet: [u8; ROOM],
}

impl Sender {
    pub(crate) fn new(config: &CompressorConfig, most: usize) -> Self {
        let is_on = is_supported(&config.channel);
        let (ports, repetitions) = (config.coap.ports, config.repetitions.max(1));
        Self { flows: [None; CONTEXTS], most, ports, repetitions, is_on, packet: [0; ROOM] }
    }

    /// Reads the CoAP header of a packet that may use the profile.
    fn header<'p>(&self, packet: &'p [u8]) -> Option<CoapHeader<'p>> {
        if !self.is_on || packet.len() > ROOM {
            return None;
        }
        let chain = HeaderChain::parse(packet).ok()?;
        let udp = chain.udp().filter(|_| chain.is_plain() && chain.ips().len() == 1)?;
        let datagram = packet.get(chain.ip_end()..)?;
        let is_coap = self.ports.has(udp.source_port) || self.ports.has(udp.destination_port);
        let is_coap =
            is_coap && chain.ip_end() == ip_len(packet) && usize::from(udp.length) == datagram.len();
        CoapHeader::read(datagram.get(UDP..)?).filter(|_| is_coap)
    }

    /// Compresses a packet.
    pub(crate) fn compress<'m>(
        &mut self,
        inner: &mut impl Outbound<'m>,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Coap2015Compressed, CompressError> {
        let header = self.header(packet);
        let path = Path::of(packet);
        let known = header.as_ref().and_then(|header| self.find(&path, header));
        let Some(mut header) = header.filter(|header| known.is_some() || self.has_place_for(header)) else {
            let compressed = inner.send(now, packet, out)?;
            self.note_other(&compressed)?;
            return Ok(Coap2015Compressed { compressed, is_coap: false });
        };
        let mut flow = match known.and_then(|at| self.flows[at]) {
            Some(flow) => flow,
            None => SentFlow {
                path,
                kept: KeptHeader::new(&header),
                dynamic: dynamic(packet),
                crc_static: None,
                strong: 0,
                since: 0,
            },
        };
        let turns = !flow.kept.token_changing && flow.kept.header(0).token != header.token;
        if let Some(cid) = known.filter(|_| turns).and_then(|at| Cid::new(at as u16)) {
            flow.kept.token_changing = true;
            inner.compressor().restart(cid);
        }
        header.token_changing = flow.kept.token_changing;

        let at = ip_len(packet);
        copy(&mut self.packet, packet);
        self.disguise(at, &flow);
        let inside = self.packet.get(..packet.len()).unwrap_or_default();
        let compressed = inner.send(now, inside, out)?;
        if compressed.profile != ProfileId::Udp {
            // The UDP header is payload.
            self.flows[compressed.cid.index() % CONTEXTS] = None;
            let from = (compressed.len + at).saturating_sub(packet.len());
            copy(out.get_mut(from..).unwrap_or_default(), packet.get(at..at + UDP).unwrap_or_default());
            return Ok(Coap2015Compressed { compressed, is_coap: false });
        }
        let here = compressed.cid.index() % CONTEXTS;
        if compressed.format != Format::Ir && known != Some(here) {
            // Another flow has equal ports inside.
            return Err(CompressError::NoContexts);
        }
        let state = inner.compressor().context(compressed.cid);
        let two_way = state.is_some_and(|state| state.mode != Mode::Unidirectional);
        let sn = state.and_then(|state| state.sn).unwrap_or_default();
        let is_strong = flow.strong > 0;
        self.note_static(
            &mut flow,
            packet,
            &header,
            (compressed.format, turns && known.is_some()),
            two_way,
            sn,
        );
        self.flows[here] = Some(flow);
        let compressed = rewrite(&compressed, packet, &mut header, is_strong.then_some(sn), out)?;
        Ok(Coap2015Compressed { compressed, is_coap: true })
    }

    fn find(&self, path: &Path, header: &CoapHeader<'_>) -> Option<usize> {
        let is_it = |flow: &SentFlow| flow.path == *path && flow.kept.is_flow_of(header);
        self.flows.iter().position(|flow| flow.as_ref().is_some_and(is_it))
    }

    /// True if a new flow may have a context.
    fn has_place_for(&self, header: &CoapHeader<'_>) -> bool {
        header.options.is_empty()
            || self.flows.iter().flatten().filter(|flow| flow.kept.has_options()).count() < self.most
    }

    /// Records a packet that another profile has compressed.
    fn note_other(&mut self, compressed: &Compressed) -> Result<(), CompressError> {
        let Some(place) = self.flows.get_mut(compressed.cid.index()).filter(|place| place.is_some()) else {
            return Ok(());
        };
        if compressed.profile == ProfileId::Udp && compressed.format != Format::Ir {
            // Its ports are those that a flow has inside.
            return Err(CompressError::NoContexts);
        }
        *place = None;
        Ok(())
    }

    /// Gives the packet inside, whose UDP header is at octet `at`, ports that tell flows apart.
    fn disguise(&mut self, at: usize, flow: &SentFlow) {
        let Some(udp) = self.packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<UDP>) else { return };
        let ports = flow.kept.inner_ports(flow.path.ports);
        let sum = sum_with([udp[6], udp[7]], flow.path.ports, ports);
        udp[..4].copy_from_slice(&ports);
        udp[6..].copy_from_slice(&sum);
    }

    /// Records the CRC-STATIC octets of a packet. RFC 3095, section 5.9.2: if a change leaves CRC-3 as it was, that "cannot catch the
    /// error consisting in the decompressor not having updated the static context".
    fn note_static(
        &self,
        flow: &mut SentFlow,
        packet: &[u8],
        header: &CoapHeader<'_>,
        (format, turns): (Format, bool),
        is_two_way: bool,
        sn: u32,
    ) {
        flow.strong = flow.strong.saturating_sub(1);
        let headers = packet.get(..ip_len(packet) + UDP + header.len()).unwrap_or_default();
        let now = check::static_coap(Check::Crc3, headers, header.changing());
        let dynamic = dynamic(packet);
        let is_changed = turns || dynamic != flow.dynamic;
        if is_changed && flow.crc_static.is_none_or(|before| is_unseen(before ^ now, flow.dynamic, packet)) {
            flow.strong = if is_two_way { SURE } else { self.repetitions.saturating_mul(2) };
            flow.since = sn;
        }
        // The first packets of a flow have no CRC over these octets.
        if flow.crc_static.is_some() || is_changed || format != Format::Ir {
            flow.crc_static = Some(now);
        }
        flow.dynamic = dynamic;
    }

    /// Reads a feedback element: a packet that has carried the static change is acknowledged.
    pub(crate) fn note_feedback(&mut self, data: &[u8]) {
        let Ok(feedback) = Feedback::read(data, CidSpace::Small) else { return };
        if let Some(Some(flow)) = self.flows.get_mut(feedback.cid.index())
            && feedback.ack == AckType::Ack
            && feedback.sn_bits > 0
        {
            let half = 1 << (feedback.sn_bits.min(16) - 1);
            let ahead = feedback.sn.wrapping_sub(flow.since) & (2 * half - 1);
            if ahead < half {
                flow.strong = flow.strong.min(self.repetitions.saturating_mul(2));
            }
        }
    }
}

/// True if CRC-3 is the same in a decompressor that has missed the changes of a packet. `difference` is that of the states after the
/// CRC-STATIC octets. The IPv4 checksum, which is not among them, changes, too.
fn is_unseen(difference: u8, before: [u8; 3], packet: &[u8]) -> bool {
    let Some(h) = packet.first_chunk::<20>().filter(|_| ip_len(packet) == 20) else { return difference == 0 };
    let mut missed = *h;
    [missed[1], missed[8], missed[6]] = before;
    [missed[10], missed[11]] = [0; 2];
    let [a, b] = checksum::checksum(&missed).to_be_bytes();
    Check::Crc3.update(difference, &[0, 0, 0, 0, a ^ h[10], b ^ h[11]]) == 0
}

/// TOS, TTL and DF, or Traffic Class and Hop Limit.
fn dynamic(packet: &[u8]) -> [u8; 3] {
    let octet = |at: usize| packet.get(at).copied().unwrap_or_default();
    if ip_len(packet) == 20 {
        [octet(1), octet(8), octet(6)]
    } else {
        [octet(0) << 4 | octet(1) >> 4, octet(7), 0]
    }
}

/// Makes a packet of profile 0x0002 at the end of `out` one of profile 0x0080, with CRC-7 if an SN is given. The octets before it,
/// feedback, stay.
fn rewrite(
    compressed: &Compressed,
    packet: &[u8],
    header: &mut CoapHeader<'_>,
    strong: Option<u32>,
    out: &mut [u8],
) -> Result<Compressed, CompressError> {
    let have = out.len();
    let no_room = CompressError::OutputTooSmall { have };
    let udp = ip_len(packet);
    let coap_end = udp + UDP + header.len();
    let start = (compressed.len + compressed.header_in)
        .checked_sub(compressed.header_out + packet.len())
        .ok_or(no_room)?;
    let inside = out.get(start..start + compressed.header_out).ok_or(no_room)?;
    let headers = packet.get(..coap_end).ok_or(no_room)?;
    let mut room = [0; HEAD];
    let (head, format) = head(compressed, inside, headers, header, strong, &mut room).ok_or(no_room)?;
    let (rest, len) = (packet.get(coap_end..).unwrap_or_default(), start + head + packet.len() - coap_end);
    let to = out.get_mut(start..len).ok_or(no_room)?;
    copy(to, room.get(..head).unwrap_or_default());
    copy(to.get_mut(head..).unwrap_or_default(), rest);
    Ok(Compressed { header_in: coap_end, header_out: head, len, format, ..*compressed })
}

/// Writes the compressed header of profile 0x0080 for that of profile 0x0002, and returns its length and format.
fn head(
    compressed: &Compressed,
    inside: &[u8],
    headers: &[u8],
    header: &mut CoapHeader<'_>,
    strong: Option<u32>,
    out: &mut [u8; HEAD],
) -> Option<(usize, Format)> {
    let udp = ip_len(headers);
    // Behind an Add-CID octet.
    let at = usize::from(compressed.cid != Cid::ZERO);
    let (ports, sum) = (headers.get(udp..udp + 4)?, headers.get(udp + 6..udp + UDP)?);
    let (changing, mut tkl) = (header.changing(), header.token.len());
    let mut len = 0;
    let mut put = |octets: &[u8]| -> Option<usize> {
        copy(out.get_mut(len..len + octets.len())?, octets);
        len += octets.len();
        Some(len)
    };
    if !compressed.format.is_initialization() {
        // The UDP checksum ends the header, if there is one.
        let sum = if sum == [0, 0] { &[] } else { sum };
        let head = inside.get(..inside.len().checked_sub(sum.len())?)?;
        let sn = strong.filter(|_| compressed.format == Format::Uo0);
        let format = if let Some(sn) = sn {
            put(inside.get(..at)?)?;
            put(&[0b1100_0000 | (sn & 0x1F) as u8, 0])?;
            put(head.get(at + 1..)?)?;
            Format::Uor2
        } else {
            put(head)?;
            compressed.format
        };
        let end = put(sum)?;
        let end = dynamic_to(out, end, header, tkl)?;
        let (crc, check) = check::place(*out.get(at)?, at);
        let octet = out.get_mut(crc)?;
        *octet = *octet & !check.start() | check::of_coap(check, headers, changing);
        return Some((end, format));
    }
    // Type, profile and CRC-8, then the chains; the last one ends with checksum and SN.
    let chains = inside.get(at + 3..inside.len().checked_sub(4)?)?;
    let sn = inside.get(inside.len() - 2..)?;
    put(inside.get(..at + 1)?)?;
    let mut end = put(&[PROFILE_OCTET, 0])?;
    let mut dynamic = chains;
    if compressed.format == Format::Ir {
        let (ip, behind) = chains.split_at_checked(static_len(udp))?;
        put(ip)?;
        end = put(ports)?;
        dynamic = behind.get(4..)?;
        let mut writer = Writer::new(out, end);
        coap_static(&mut writer, header, &mut tkl).ok()?;
        end = writer.finish().ok()?;
    }
    for octets in [dynamic, sum] {
        copy(out.get_mut(end..end + octets.len())?, octets);
        end += octets.len();
    }
    end = dynamic_to(out, end, header, tkl)?;
    copy(out.get_mut(end..end + 2)?, sn);
    end += 2;
    let crc = check::crc8(out.get(..end)?, at + 2);
    *out.get_mut(at + 2)? = crc;
    Some((end, compressed.format))
}

/// Writes the dynamic fields of CoAP, and returns their end.
fn dynamic_to(out: &mut [u8], at: usize, header: &mut CoapHeader<'_>, tkl: usize) -> Option<usize> {
    let mut writer = Writer::new(out, at);
    coap_dynamic(&mut writer, header, tkl).ok()?;
    writer.finish().ok()
}

/// Octets of the static part of an IP header with that many octets.
pub(crate) fn static_len(ip: usize) -> usize {
    if ip == 20 { 10 } else { 36 }
}
