//! Helpers of the tests: octets from hexadecimal, streams, and owned deliveries.

#![allow(dead_code, reason = "each test uses a part of it")]

use thinair_ule::{
    Delivery, Encapsulator, EncapsulatorConfig, Npa, Payload, Pid, Receiver, ReceiverConfig,
    ReceiverCounters, Sndu, TsPacket,
};
use thinair_wire::time::Instant;

/// PID of the example of RFC 4326, appendix B, in published research.
pub(crate) fn pid() -> Pid {
    Pid::new(0x35).expect("it has 13 bits")
}

pub(crate) fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let text = std::str::from_utf8(&digits).expect("digits are ASCII");
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("they are digits"))
        .collect()
}

/// An owned delivery: destination, Type (1 for frames, 2 for TS Packets), time stamp, and octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) destination: Option<Npa>,
    pub(crate) type_field: u16,
    pub(crate) time_stamp: Option<u32>,
    pub(crate) octets: Vec<u8>,
}

impl From<Delivery<'_>> for Got {
    fn from(delivery: Delivery<'_>) -> Self {
        let (type_field, octets) = match delivery.payload {
            Payload::Pdu(ether_type, pdu) => (ether_type.value(), pdu),
            Payload::Bridged(frame) => (1, frame.octets()),
            Payload::TsPackets(packets) => (2, packets.as_flattened()),
        };
        Self {
            destination: delivery.destination,
            type_field,
            time_stamp: delivery.time_stamp.map(|time_stamp| time_stamp.micros()),
            octets: octets.to_vec(),
        }
    }
}

/// Returns the deliveries and counters of a Receiver.
pub(crate) fn received(config: ReceiverConfig, packets: &[TsPacket]) -> (Vec<Got>, ReceiverCounters) {
    let mut buffer = vec![0; thinair_ule::sndu::LONGEST];
    let mut receiver = Receiver::new(config, &mut buffer);
    let mut got = Vec::new();
    for packet in packets {
        receiver.receive(packet, &mut |delivery| got.push(delivery.into()));
    }
    (got, *receiver.counters())
}

/// Returns the TS Packets of SNDUs that are pushed in a row, and the rest flushed.
pub(crate) fn pushed(config: EncapsulatorConfig, sndus: &[Sndu<'_>]) -> Vec<TsPacket> {
    let mut encapsulator = Encapsulator::new(config);
    let mut packets = Vec::new();
    for sndu in sndus {
        encapsulator.push(Instant::ZERO, sndu, &mut |packet| packets.push(*packet)).expect("it can be sent");
    }
    encapsulator.flush(&mut |packet| packets.push(*packet));
    packets
}

/// A TS Packet of the PID in which an SNDU given as octets starts; the rest is padding.
pub(crate) fn packet_with(sndu: &[u8]) -> TsPacket {
    let mut packet = [0xFF; 188];
    packet[..5].copy_from_slice(&[0x47, 0x40, 0x35, 0x10, 0x00]);
    packet[5..5 + sndu.len()].copy_from_slice(sndu);
    packet
}
