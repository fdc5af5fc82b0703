//! Description of a packet within its conversation: layers, type in a few words, and retransmission. TCP and
//! CoAP are decoded; for other protocols the description is name and size.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use serde::Serialize;
use thinair_rohc::Ports;
use thinair_wire::header::coap::{Coap, Code, Type};
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

use crate::packet::{FlowKey, ParsedPacket};

/// Octets of a packet by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayerOctets {
    /// IP headers with extension headers.
    pub ip: u64,
    /// Header of UDP, TCP or another transport.
    pub transport: u64,
    /// Header of CoAP with token and options.
    pub application: u64,
    /// All other octets.
    pub payload: u64,
}

impl LayerOctets {
    /// Sum of all layers.
    pub const fn total(&self) -> u64 {
        self.ip + self.transport + self.application + self.payload
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.ip += other.ip;
        self.transport += other.transport;
        self.application += other.application;
        self.payload += other.payload;
    }
}

/// Description of a packet.
pub(crate) struct Description {
    /// Type in a few words.
    pub(crate) label: String,
    /// True for a retransmission: a TCP segment without new octets, or a CoAP message with a repeated Message
    /// ID.
    pub(crate) again: bool,
    pub(crate) octets: LayerOctets,
    /// Offset of the payload in its TCP stream, from 0; `None` for other packets.
    pub(crate) place: Option<u32>,
}

/// Initial and next sequence number of each direction of a TCP flow.
type Sequences = HashMap<FlowKey, (u32, u32)>;

/// Message IDs seen in a CoAP flow.
type Identifiers = BTreeMap<(IpAddr, u16, IpAddr, u16), Vec<(Type, u16)>>;

/// Maximum number of Message IDs remembered per flow.
const IDENTIFIERS: usize = 32;

/// Maximum octets of a text line of a payload that are shown.
const LINE: usize = 60;

/// Follows flows, so that a packet can be described with respect to earlier ones.
pub(crate) struct Follower {
    coap_ports: Ports,
    sequences: Sequences,
    identifiers: Identifiers,
}

impl Follower {
    /// Returns a follower without history. CoAP is decoded on these ports only.
    pub(crate) fn new(coap_ports: Ports) -> Self {
        Self { coap_ports, sequences: Sequences::new(), identifiers: Identifiers::new() }
    }

    /// Describes the next packet. **All packets of a flow must be followed, from the first one on.**
    pub(crate) fn follow(&mut self, packet: &ParsedPacket<'_>) -> Description {
        let headers = packet.headers();
        let behind = packet.octets.get(headers..).unwrap_or_default();
        let coap = packet.coap(&self.coap_ports).unwrap_or_default();
        let octets = LayerOctets {
            ip: packet.ip as u64,
            transport: packet.transport as u64,
            application: coap as u64,
            payload: (behind.len() - coap.min(behind.len())) as u64,
        };
        let transport = packet.octets.get(packet.ip..).unwrap_or_default();
        let mut place = None;
        let (label, again) = match packet.key.protocol {
            _ if coap > 0 => of_coap(packet.key, behind, &mut self.identifiers),
            protocol::TCP if packet.transport > 0 => {
                let (label, again, at) = of_tcp(packet.key, transport, behind, &mut self.sequences);
                place = at;
                (label, again)
            }
            protocol::UDP | protocol::UDP_LITE if packet.transport > 0 => {
                let name = if packet.key.protocol == protocol::UDP { "UDP" } else { "UDP-Lite" };
                let ports = packet.key.ports.map(|(from, to)| format!(" {from} > {to}")).unwrap_or_default();
                (format!("{name}{ports}, {} octets", behind.len()), false)
            }
            number => (of_other(number, transport), false),
        };
        Description { label, again, octets, place }
    }
}

fn of_other(number: u8, octets: &[u8]) -> String {
    let name = match (number, octets.first()) {
        (1, Some(8)) | (58, Some(128)) => "Echo Request",
        (1, Some(0)) | (58, Some(129)) => "Echo Reply",
        (1, Some(3)) | (58, Some(1)) => "Destination Unreachable",
        (1, Some(11)) | (58, Some(3)) => "Time Exceeded",
        (58, Some(2)) => "Packet Too Big",
        (58, Some(133)) => "Router Solicitation",
        (58, Some(134)) => "Router Advertisement",
        (58, Some(135)) => "Neighbor Solicitation",
        (58, Some(136)) => "Neighbor Advertisement",
        (1, _) => "ICMP",
        (58, _) => "ICMPv6",
        (50, _) => "ESP",
        _ => return format!("protocol {number}"),
    };
    name.to_owned()
}

/// Returns flags and relative sequence numbers as text, true for a segment without new octets, and the offset
/// of the payload.
fn of_tcp(
    key: FlowKey,
    octets: &[u8],
    payload: &[u8],
    sequences: &mut Sequences,
) -> (String, bool, Option<u32>) {
    let Ok(tcp) = Tcp::read(octets) else { return ("TCP".to_owned(), false, None) };
    let from = tcp.sequence_number;
    let len = payload.len() as u32 + u32::from(tcp.syn) + u32::from(tcp.fin);
    let (start, next) = sequences.entry(key).or_insert((from, from));
    if tcp.syn && *next != from.wrapping_add(1) && from != *start {
        // The ports are reused.
        (*start, *next) = (from, from);
    }
    let again = len > 0 && (from.wrapping_add(len).wrapping_sub(*next) as i32) <= 0;
    let relative = from.wrapping_sub(*start);
    if !again {
        *next = from.wrapping_add(len);
    }
    let mut words = Vec::new();
    let flags = [(tcp.syn, "SYN"), (tcp.fin, "FIN"), (tcp.rst, "RST")];
    words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| (*name).to_owned()));
    if !payload.is_empty() {
        words.push(format!("{relative}:{} ({})", relative.wrapping_add(payload.len() as u32), payload.len()));
    }
    if tcp.ack {
        let back = FlowKey {
            source: key.destination,
            destination: key.source,
            ports: key.ports.map(|(source, destination)| (destination, source)),
            ..key
        };
        let acknowledged =
            sequences.get(&back).map(|(start, _)| tcp.acknowledgment_number.wrapping_sub(*start));
        words.push(acknowledged.map_or("ACK".to_owned(), |number| format!("ACK {number}")));
    }
    let line = line(payload).map(|line| format!(" {line}")).unwrap_or_default();
    // The first octet of a stream has the number after that of the SYN (RFC 9293, section 3.4).
    let place = relative.wrapping_add(u32::from(tcp.syn)).wrapping_sub(1);
    (format!("{}{line}", words.join(" ")), again, Some(place))
}

/// Returns the first line of a payload, if it is text.
fn line(payload: &[u8]) -> Option<String> {
    let end = payload.iter().position(|octet| matches!(octet, b'\r' | b'\n'))?;
    let line = payload.get(..end)?;
    let is_text = !line.is_empty() && line.iter().all(|octet| (0x20..0x7F).contains(octet));
    let shown = line.get(..LINE).unwrap_or(line);
    is_text.then(|| String::from_utf8_lossy(shown).into_owned())
}

fn of_coap(key: FlowKey, octets: &[u8], identifiers: &mut Identifiers) -> (String, bool) {
    let Ok(message) = Coap::read(octets) else { return ("CoAP".to_owned(), false) };
    let kind = match message.message_type {
        Type::Confirmable => "CON",
        Type::NonConfirmable => "NON",
        Type::Acknowledgement => "ACK",
        Type::Reset => "RST",
    };
    let mut words = vec![kind.to_owned()];
    match (message.code, message.code.class(), message.code.detail()) {
        (Code::EMPTY, ..) => {}
        (_, 0, detail) => {
            let names = ["GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH"];
            let name = names.get(usize::from(detail).wrapping_sub(1));
            words.push(name.map_or(message.code.to_string(), |name| (*name).to_owned()));
        }
        _ => words.push(message.code.to_string()),
    }
    let mut path = String::new();
    for option in message.options() {
        match option.number {
            6 => words.push(option.uint().map_or("Observe".to_owned(), |value| format!("Observe {value}"))),
            11 => path.push_str(&format!("/{}", option.value.escape_ascii())),
            23 | 27 => {
                let value = option.uint().unwrap_or_default();
                let (number, more) = (value >> 4, if value & 8 == 0 { "" } else { "+" });
                let size = 16_u32 << (value & 7);
                words.push(format!("Block{} {number}{more}/{size}", if option.number == 23 { 2 } else { 1 }));
            }
            _ => {}
        }
    }
    if !path.is_empty() {
        words.push(path);
    }
    words.push(format!("[{:04x}]", message.message_id));
    let (from, to) = key.ports.unwrap_or_default();
    let seen = identifiers.entry((key.source, from, key.destination, to)).or_default();
    let identity = (message.message_type, message.message_id);
    let again = seen.contains(&identity);
    if !again {
        if seen.len() >= IDENTIFIERS {
            seen.remove(0);
        }
        seen.push(identity);
    }
    (words.join(" "), again)
}
