//! Host behind an interface with an MTU: longer packets are fragmented, and reassembled at the other end. RFC 791,
//! section 3.2.

use std::collections::{BTreeMap, VecDeque};

use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::time::Instant;

use crate::network::NetworkHost;

/// Host and its interface.
pub(super) struct Fragmenting<H> {
    pub(super) host: H,
    mtu: usize,
    /// Fragments that wait to be sent.
    fragments: VecDeque<Vec<u8>>,
    /// Fragments of incomplete packets, by Identification and offset.
    parts: BTreeMap<(u16, u16), Vec<u8>>,
}

impl<H> Fragmenting<H> {
    pub(super) fn new(host: H, mtu: u16) -> Self {
        // RFC 791, section 3.2: every link carries 68 octets.
        Self { host, mtu: usize::from(mtu.max(68)), fragments: VecDeque::new(), parts: BTreeMap::new() }
    }

    /// Returns the whole packet, if this was its last missing fragment.
    fn whole(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let header = Ipv4::read(packet).ok()?;
        if !header.mf && header.fragment_offset == 0 {
            return Some(packet.to_vec());
        }
        if !Ipv4::checksum_is_right(packet.get(..Ipv4::LEN)?) {
            return None;
        }
        let id = header.identification;
        self.parts.insert((id, header.fragment_offset), packet.to_vec());
        let parts: Vec<Vec<u8>> =
            self.parts.range((id, 0)..=(id, u16::MAX)).map(|(_, part)| part.clone()).collect();
        let mut payload = Vec::new();
        let mut complete = false;
        for part in &parts {
            let header = Ipv4::read(part).ok()?;
            if usize::from(header.fragment_offset) * 8 != payload.len() {
                return None;
            }
            payload.extend_from_slice(part.get(Ipv4::LEN..)?);
            complete = !header.mf;
        }
        if !complete {
            return None;
        }
        self.parts.retain(|(other, _), _| *other != id);
        packet_of(&Ipv4 { mf: false, fragment_offset: 0, ..header }, &payload)
    }
}

/// Packet of a header, with its length and checksum, and a payload.
fn packet_of(header: &Ipv4<'_>, payload: &[u8]) -> Option<Vec<u8>> {
    let total_length = u16::try_from(Ipv4::LEN + payload.len()).ok()?;
    let mut packet = vec![0; Ipv4::LEN];
    Ipv4 { total_length, header_checksum: 0, ..*header }.write(&mut packet, 0).ok()?;
    let checksum = Ipv4::checksum_of(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(payload);
    Some(packet)
}

/// Fragments of a packet that are no longer than the MTU. RFC 791, section 3.2.
fn fragments(packet: &[u8], mtu: usize) -> VecDeque<Vec<u8>> {
    let header = match Ipv4::read(packet) {
        Ok(header) if packet.len() > mtu => header,
        _ => return VecDeque::from([packet.to_vec()]),
    };
    let payload = packet.get(Ipv4::LEN..).unwrap_or_default();
    // In units of 8 octets.
    let room = (mtu - Ipv4::LEN) / 8 * 8;
    let pieces = payload.chunks(room).enumerate().filter_map(|(index, piece)| {
        let mf = (index + 1) * room < payload.len();
        let fragment_offset = (index * room / 8) as u16;
        packet_of(&Ipv4 { mf, fragment_offset, df: false, ..header }, piece)
    });
    pieces.collect()
}

impl<H: NetworkHost> NetworkHost for Fragmenting<H> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        if let Some(whole) = self.whole(packet) {
            self.host.handle_packet(now, &whole);
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        if self.fragments.is_empty() && self.host.poll_packet(now, packet) {
            self.fragments = fragments(packet, self.mtu);
        }
        let Some(next) = self.fragments.pop_front() else { return false };
        *packet = next;
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }
}
