//! Test packets: captured, built by hand, and generated.

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use thinair_capture::Reader;
use thinair_wire::coder::Writer;
use thinair_wire::header::coap::{Coap, Code, Type, option};
use thinair_wire::header::ipv4::Ipv4;

use crate::schc::Direction;
use crate::schc::checksum::udp_checksum;

/// A packet and its direction.
pub(in crate::schc) type DirectedPacket = (Direction, Vec<u8>);

/// Reads all captures of the workspace. The sender of the first packet is the device.
pub(in crate::schc) fn captured() -> Vec<(String, Vec<DirectedPacket>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    paths.sort();
    assert!(paths.len() > 10);
    paths
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), packets_of(path)))
        .collect()
}

fn packets_of(path: &Path) -> Vec<DirectedPacket> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    let mut device = None;
    while let Some(record) = reader.next_record() {
        let Ok(network) = record.unwrap().network_packet().map(|network| network.packet.to_vec()) else {
            continue;
        };
        let source = match network[0] >> 4 {
            4 => network[12..16].to_vec(),
            _ => network[8..24].to_vec(),
        };
        let is_up = *device.get_or_insert_with(|| source.clone()) == source;
        packets.push((if is_up { Direction::Up } else { Direction::Dw }, network));
    }
    packets
}

/// Addressing of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressing {
    pub(super) direction: Direction,
    pub(super) v4: bool,
    pub(super) dev_port: u16,
    pub(super) host: u8,
    /// IPv4 Identification.
    pub(super) id: u16,
}

pub(super) const UP6: Addressing =
    Addressing { direction: Direction::Up, v4: false, dev_port: 57_345, host: 1, id: 0 };
pub(super) const DW6: Addressing = Addressing { direction: Direction::Dw, ..UP6 };

impl Addressing {
    /// Returns a valid datagram.
    pub(super) fn packet(self, message: &[u8]) -> DirectedPacket {
        let mut packet = if self.v4 {
            let mut header = *b"\x45\0\0\0\0\0\x40\0\x40\x11\0\0\x0a\x63\0\0\x0a\x63\0\x02";
            header[15] = self.host;
            header[4..6].copy_from_slice(&self.id.to_be_bytes());
            header[2..4].copy_from_slice(&(28 + message.len() as u16).to_be_bytes());
            header.to_vec()
        } else {
            let mut header = [0; 40];
            header[0] = 0x60;
            header[4..6].copy_from_slice(&(8 + message.len() as u16).to_be_bytes());
            header[6..8].copy_from_slice(&[17, 64]);
            header[8..24].copy_from_slice(&[0xFD, 0, 0x0E, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, self.host]);
            header[24..40].copy_from_slice(&[0xFD, 0, 0x0E, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
            header.to_vec()
        };
        let (mut ports, addresses, len) =
            ([self.dev_port, 5683], packet.len() - if self.v4 { 8 } else { 32 }, packet.len());
        if self.direction == Direction::Dw {
            ports.reverse();
            packet[addresses..].rotate_left((len - addresses) / 2);
        }
        if self.v4 {
            let sum = Ipv4::checksum_of(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend((8 + message.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend_from_slice(message);
        let sum = udp_checksum(&packet, len).unwrap();
        packet[len + 6..len + 8].copy_from_slice(&sum.to_be_bytes());
        (self.direction, packet)
    }
}

/// Returns a message; options by number and value.
pub(super) fn coap(
    t: Type,
    code: Code,
    mid: u16,
    token: &[u8],
    options: &[(u16, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let mut rest = Vec::new();
    let mut before = 0;
    for (number, value) in options {
        let mut out = vec![0; value.len() + 5];
        let mut writer = Writer::new(&mut out, 0);
        let (mut delta, mut value) = (u32::from(number - before), *value);
        option(&mut writer, &mut delta, &mut value).unwrap();
        let end = writer.finish().unwrap();
        rest.extend_from_slice(&out[..end]);
        before = *number;
    }
    if !payload.is_empty() {
        rest.push(0xFF);
        rest.extend_from_slice(payload);
    }
    let message = Coap { message_type: t, code, message_id: mid, token, rest: &rest };
    let mut out = vec![0; message.len()];
    message.write(&mut out, 0).unwrap();
    out
}

fn octets(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![4 => Just(0x61), 1 => any::<u8>()], len)
}

/// Packets of few devices, which have much in common and may differ anywhere.
pub(super) fn packet() -> impl Strategy<Value = DirectedPacket> {
    let t = prop::sample::select(vec![
        Type::Confirmable,
        Type::NonConfirmable,
        Type::Acknowledgement,
        Type::Reset,
    ]);
    let code = prop::sample::select(vec![Code::GET, Code::CONTENT, Code::EMPTY]);
    let number = prop::sample::select(vec![0, 4, 6, 9, 11, 15, 23, 27, 300_u16]);
    let value = prop_oneof![
        8 => octets(0..4),
        2 => prop::sample::select(vec![vec![0x09, 5, 1], vec![0x19, 7, 2, 1, 1, 9], vec![0x02, 0, 7], vec![0x1F]]),
        1 => octets(10..20),
        1 => octets(250..300),
    ];
    let path = (any::<bool>(), any::<bool>(), 0..3_u16, 0..3_u8, any::<u16>());
    let damage =
        prop_oneof![6 => Just(None), 1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some)];
    let message = (t, code, 0..400_u16, octets(0..=8), vec((number, value), 0..4), octets(0..6));
    (path, message, damage).prop_map(
        |((up, v4, port, host, id), (t, code, mid, token, mut options, payload), damage)| {
            options.sort_by_key(|(number, _)| *number);
            let options: Vec<_> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
            let direction = if up { Direction::Up } else { Direction::Dw };
            let path = Addressing { direction, v4, dev_port: 5683 + 0x4000 * port, host, id };
            let (direction, mut packet) = path.packet(&coap(t, code, mid, &token, &options, &payload));
            if let Some((at, mask)) = damage {
                *at.get_mut(&mut packet) ^= mask;
            }
            (direction, packet)
        },
    )
}
