//! The way in: packets of profile 0x0080 to a decompressor of profile 0x0002.

use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::{Arrival, Cid, DecompressError, Decompressed, Decompressor, DecompressorConfig, Format};
use thinair_wire::coder::Reader;
use thinair_wire::crc::Check;
use thinair_wire::header::protocol;

use crate::check::{self, ip_len};
use crate::header::{CoapHeader, KeptHeader, coap_dynamic, coap_static, copy, sum_with};
use crate::sender::static_len;
use crate::{CONTEXTS, PROFILE_OCTET, ROOM, UDP, UDP_OCTET, is_supported};

/// A decompressor of profile 0x0002, alone or in an endpoint.
pub(crate) trait Inbound<'m> {
    fn decompressor(&self) -> &Decompressor<'m>;

    /// Receives a ROHC packet with the feedback in front of it.
    fn receive(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError>;
}

/// A flow with a context.
#[derive(Clone, Copy, Debug)]
struct ReceivedFlow {
    kept: KeptHeader,
    /// IP and UDP header of the last packet.
    headers: [u8; 48],
    /// UDP checksums are carried, and were right.
    has_sums: bool,
}

/// A packet inside: what profile 0x0002 gets for a packet of profile 0x0080.
struct Inside {
    len: usize,
    /// Octets of the ROHC header.
    header_in: usize,
    /// Octets of the CoAP header.
    coap: usize,
    /// Ports and UDP checksum of the packet.
    ports: [u8; 4],
    sum: [u8; 2],
    /// Octets of the token that are dynamic, and the check with the CRC of the packet.
    changing: usize,
    crc: Option<(Check, u8)>,
}

impl ReceivedFlow {
    fn ports(&self) -> [u8; 4] {
        let udp = self.headers.get(ip_len(&self.headers)..).unwrap_or_default();
        udp.first_chunk().copied().unwrap_or_default()
    }
}

impl Inside {
    /// Gives a packet that has come out its ports and UDP checksum.
    fn restore<'o>(&self, packet: &'o mut [u8]) -> &'o [u8] {
        let ip = ip_len(packet);
        copy(packet.get_mut(ip..).unwrap_or_default(), &self.ports);
        copy(packet.get_mut(ip + 6..).unwrap_or_default(), &self.sum);
        packet
    }
}

/// The flows of a decompressor, by CID.
#[derive(Debug)]
pub(crate) struct Receiver {
    flows: [Option<ReceivedFlow>; CONTEXTS],
    is_on: bool,
    packet: [u8; ROOM],
}

impl Receiver {
    pub(crate) fn new(config: &DecompressorConfig) -> Self {
        let is_on = is_supported(&config.channel);
        Self { flows: [None; CONTEXTS], is_on, packet: [0; ROOM] }
    }

    /// Decompresses a packet.
    pub(crate) fn decompress<'m>(
        &mut self,
        inner: &mut impl Inbound<'m>,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        let whole = match packet::parts(packet) {
            Ok(parts) => match parts.body {
                PacketBody::Header(whole) if self.is_on => whole,
                // A unit that was cut into segments would not come this way.
                PacketBody::Segment { .. } if self.is_on => {
                    return Err(DecompressError::Malformed(Cid::ZERO));
                }
                _ => return inner.receive(arrival, packet, out),
            },
            Err(_) => return inner.receive(arrival, packet, out),
        };
        let front = packet.len() - whole.len();
        let at = usize::from(whole.first().is_some_and(|first| first >> 4 == 0b1110));
        let cid = whole.first().filter(|_| at > 0).and_then(|first| Cid::new(u16::from(first & 0xF)));
        let cid = cid.unwrap_or(Cid::ZERO);
        let (kind, profile) = (whole.get(at).copied().unwrap_or_default(), whole.get(at + 1).copied());
        let is_ir = kind & 0b1111_1110 == 0b1111_1100;
        let known = self.flows[cid.index() % CONTEXTS];
        let malformed = DecompressError::Malformed(cid);
        if is_ir && profile == Some(PROFILE_OCTET) {
            return self.ir(inner, arrival, (packet, front, at), cid, out);
        }
        let Some(mut flow) = known else { return inner.receive(arrival, packet, out) };
        let is_dynamic = kind == 0b1111_1000;
        if is_ir || is_dynamic && profile.is_none_or(|profile| ![PROFILE_OCTET, UDP_OCTET].contains(&profile))
        {
            let done = inner.receive(arrival, packet, out)?;
            self.flows[cid.index() % CONTEXTS] = None;
            return Ok(done);
        }
        let inside = if is_dynamic {
            self.ir_dyn(&flow, (packet, front, at)).ok_or(malformed)?
        } else {
            self.compressed(inner.decompressor(), &flow, (packet, front, at)).ok_or(malformed)?
        };
        let done = inner.receive(arrival, self.packet.get(..inside.len).unwrap_or_default(), out)?;
        let delivered = inside.restore(out.get_mut(..done.len).unwrap_or_default());
        let udp_end = ip_len(delivered) + UDP;
        let Some(headers) = delivered.get(..udp_end + inside.coap) else { return Err(malformed) };
        copy(&mut flow.headers, headers.get(..udp_end).unwrap_or_default());
        let is_right = inside
            .crc
            .is_none_or(|(check, crc)| check::of_coap(check, headers, inside.changing) == crc)
            && (!flow.has_sums || headers[udp_end - 2..udp_end] == [0, 0] || check::has_right_sum(delivered));
        self.flows[cid.index() % CONTEXTS] = Some(flow);
        if !is_right {
            return Err(DecompressError::Crc(cid, done.format));
        }
        Ok(Decompressed { header_in: inside.header_in, header_out: headers.len(), ..done })
    }

    /// Decompresses an IR packet of the profile.
    fn ir<'m>(
        &mut self,
        inner: &mut impl Inbound<'m>,
        arrival: Arrival,
        (packet, front, at): (&[u8], usize, usize),
        cid: Cid,
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        let malformed = DecompressError::Malformed(cid);
        let (inside, kept, sn) = self.inside_of_ir((packet, front, at)).ok_or(malformed)?;
        let done = inner.receive(arrival, self.packet.get(..inside.len).unwrap_or_default(), out)?;
        let delivered = inside.restore(out.get_mut(..done.len).unwrap_or_default());
        let udp_end = ip_len(delivered) + UDP;
        let context = inner.decompressor().context(cid);
        // A late one changes nothing.
        if context.is_some_and(|context| context.sn == Some(u32::from(sn))) {
            let mut headers = [0; 48];
            copy(&mut headers, delivered.get(..udp_end).ok_or(malformed)?);
            let flow = ReceivedFlow { kept, headers, has_sums: check::has_right_sum(delivered) };
            self.flows[cid.index() % CONTEXTS] = Some(flow);
        }
        Ok(Decompressed { header_in: inside.header_in, header_out: udp_end + inside.coap, ..done })
    }

    /// Puts the packet inside together for an IR packet. Returns its static fields, and its SN.
    fn inside_of_ir(
        &mut self,
        (packet, front, at): (&[u8], usize, usize),
    ) -> Option<(Inside, KeptHeader, u16)> {
        let whole = packet.get(front..)?;
        let behind = whole.get(at + 3..)?;
        let ip = match behind.first()? {
            0x40 => 20,
            0x60..0x70 => 40,
            _ => return None,
        };
        let (path, behind) = behind.split_at_checked(static_len(ip))?;
        let (ports, behind) = behind.split_first_chunk::<4>()?;
        let next = *path.get(if ip == 20 { 1 } else { 3 })?;
        let (mut x, mut tkl) = (CoapHeader::default(), 0);
        let mut reader = Reader::contiguous(behind);
        coap_static(&mut reader, &mut x, &mut tkl).ok()?;
        let behind = reader.remaining();
        // Chains without dynamic part, and with extension headers, are not sent.
        let (dynamic, behind) = behind.split_at_checked(dynamic_len(ip))?;
        let is_plain = next == protocol::UDP && dynamic.last() == Some(&0) && whole.get(at)? & 1 == 1;
        let (sum, behind) = behind.split_first_chunk::<2>().filter(|_| is_plain)?;
        let mut reader = Reader::contiguous(behind);
        coap_dynamic(&mut reader, &mut x, tkl).ok()?;
        let (sn, payload) = reader.remaining().split_first_chunk::<2>()?;
        let kept = KeptHeader::new(&x);
        let inner = kept.inner_ports(*ports);
        let inner_sum = sum_with(*sum, *ports, inner);
        let parts = [packet.get(..front + at + 1)?, &[UDP_OCTET, 0], path, &inner, dynamic, &inner_sum, sn];
        let inside = self.initialization(&parts, (whole, payload), (front, at), &x, (*ports, *sum))?;
        Some((inside, kept, u16::from_be_bytes(*sn)))
    }

    /// Puts the packet inside together for an IR-DYN packet.
    fn ir_dyn(&mut self, flow: &ReceivedFlow, (packet, front, at): (&[u8], usize, usize)) -> Option<Inside> {
        let whole = packet.get(front..)?;
        if *whole.get(at + 1)? != PROFILE_OCTET {
            return None;
        }
        let (dynamic, behind) = whole.get(at + 3..)?.split_at_checked(dynamic_len(ip_len(&flow.headers)))?;
        let (sum, behind) = behind.split_first_chunk::<2>().filter(|_| dynamic.last() == Some(&0))?;
        let mut x = flow.kept.header(0);
        let mut reader = Reader::contiguous(behind);
        coap_dynamic(&mut reader, &mut x, flow.kept.tkl).ok()?;
        let (sn, payload) = reader.remaining().split_first_chunk::<2>()?;
        let ports = flow.ports();
        let inner_sum = sum_with(*sum, ports, flow.kept.inner_ports(ports));
        let parts = [packet.get(..front + at + 1)?, &[UDP_OCTET, 0], dynamic, &inner_sum, sn];
        self.initialization(&parts, (whole, payload), (front, at), &x, (ports, *sum))
    }

    /// Puts a packet inside together from the parts of its header. Its CRC-8 is wrong if that of the packet was.
    fn initialization(
        &mut self,
        parts: &[&[u8]],
        (whole, payload): (&[u8], &[u8]),
        (front, at): (usize, usize),
        x: &CoapHeader<'_>,
        (ports, sum): ([u8; 4], [u8; 2]),
    ) -> Option<Inside> {
        let mut end = 0;
        for part in parts {
            copy(self.packet.get_mut(end..end + part.len())?, part);
            end += part.len();
        }
        let header = whole.get(..whole.len() - payload.len())?;
        let difference = check::crc8(header, at + 2) ^ *header.get(at + 2)?;
        let crc = check::crc8(self.packet.get(front..end)?, at + 2) ^ difference;
        *self.packet.get_mut(front + at + 2)? = crc;
        let len = self.end(end, x, payload)?;
        let (header_in, coap, changing) = (header.len(), x.len(), x.changing());
        Some(Inside { len, header_in, coap, ports, sum, changing, crc: None })
    }

    /// Puts the packet inside together for a compressed packet.
    fn compressed(
        &mut self,
        decompressor: &Decompressor<'_>,
        flow: &ReceivedFlow,
        (packet, front, at): (&[u8], usize, usize),
    ) -> Option<Inside> {
        let whole = packet.get(front..)?;
        let mut headers = [0; 48 + 4 + 8 + crate::header::MAX_OPTIONS + 1];
        copy(&mut headers, &flow.headers);
        let ip = ip_len(&headers);
        // Fields up to the UDP checksum are those of profile 0x0002.
        let (mut bits, mut is_other, mut sum) = (0, false, [0; 2]);
        let (_, _, format) = decompressor.dissect(whole, |field| {
            bits += field.bits as usize;
            let value = field.value as u8;
            match (field.name, field.bits, ip) {
                ("TOS", 8, 20) => headers[1] = value,
                ("TTL", 8, 20) => headers[8] = value,
                ("DF", 1, 20) => headers[6] = headers[6] & !0x40 | value << 6,
                ("TOS", 8, _) => {
                    headers[0] = headers[0] & 0xF0 | value >> 4;
                    headers[1] = headers[1] & 0x0F | value << 4;
                }
                ("TTL", 8, _) => headers[7] = value,
                ("PR" | "IPX", 1, _) => is_other |= value == 1,
                ("UDP Checksum", 16, _) => sum = (field.value as u16).to_be_bytes(),
                _ => {}
            }
        })?;
        let end = at + bits / 8;
        if is_other || bits % 8 != 0 || format.is_initialization() || format == Format::Normal {
            return None;
        }
        let mut x = flow.kept.header(0);
        let mut reader = Reader::contiguous(whole.get(end..)?);
        coap_dynamic(&mut reader, &mut x, flow.kept.tkl).ok()?;
        let payload = reader.remaining();
        let ports = flow.ports();
        let inner_ports = flow.kept.inner_ports(ports);
        let inner_sum = sum_with(sum, ports, inner_ports);
        headers[ip + 6..ip + UDP].copy_from_slice(&sum);
        let coap_end = x.write(&mut headers, ip + UDP)?;
        let mut inner = headers;
        inner[ip..ip + 4].copy_from_slice(&inner_ports);
        inner[ip + 6..ip + UDP].copy_from_slice(&inner_sum);
        let (crc_at, check) = check::place(*whole.get(at)?, at);
        let crc = whole.get(crc_at)? & check.start();
        let inside = check::to_udp(check, crc, headers.get(..coap_end)?, &inner, x.changing())?;
        let head = packet.get(..front + end)?;
        copy(self.packet.get_mut(..head.len())?, head);
        let octet = self.packet.get_mut(front + crc_at)?;
        *octet = *octet & !check.start() | inside;
        if sum != [0, 0] {
            // The UDP checksum ends the header.
            copy(self.packet.get_mut(head.len().checked_sub(2)?..head.len())?, &inner_sum);
        }
        let len = self.end(head.len(), &x, payload)?;
        let header_in = whole.len() - payload.len();
        let (coap, changing) = (x.len(), x.changing());
        Some(Inside { len, header_in, coap, ports, sum, changing, crc: Some((check, crc)) })
    }

    /// Puts the message behind the header inside, and returns its end.
    fn end(&mut self, at: usize, x: &CoapHeader<'_>, payload: &[u8]) -> Option<usize> {
        let end = x.write(&mut self.packet, at)?;
        copy(self.packet.get_mut(end..end + payload.len())?, payload);
        Some(end + payload.len())
    }
}

/// Octets of the dynamic part of an IP header with that many octets, without extension headers.
fn dynamic_len(ip: usize) -> usize {
    if ip == 20 { 6 } else { 3 }
}
