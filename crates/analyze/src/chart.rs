//! The packets of a capture as messages between hosts: who sent what to whom, and when.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::net::IpAddr;

use serde::Serialize;
use thinair_capture::{Error, Reader};
use thinair_lowpan::Contexts;
use thinair_rohc::profile::coap::CoapPorts;
use thinair_wire::header::coap::{Coap, Code, Type};
use thinair_wire::header::protocol;
use thinair_wire::header::tcp::Tcp;

use crate::packet::{FlowKey, Packet};
use crate::unpack::Unpack;

/// Octets of a line of text in a payload that are shown.
const LINE: usize = 60;

/// Which packets become messages.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Only packets between two of these hosts; of all if it is empty.
    pub hosts: Vec<IpAddr>,
    /// Only packets from this port or to it.
    pub port: Option<u16>,
    /// So many of them are left out at the beginning.
    pub skip: u64,
    /// So many become messages, at most.
    pub most: usize,
    /// Ports on which there is CoAP.
    pub coap_ports: CoapPorts,
    /// Contexts of 6LoWPAN of captured frames.
    pub contexts: Contexts,
}

impl Default for Choice {
    /// The first 100 of all packets.
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            port: None,
            skip: 0,
            most: 100,
            coap_ports: CoapPorts::default(),
            contexts: Contexts::NONE,
        }
    }
}

/// Octets of a packet by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Octets {
    /// Headers of IP, with extension headers.
    pub ip: u64,
    /// The header of UDP, TCP or the like.
    pub transport: u64,
    /// The header of CoAP, with token and options.
    pub application: u64,
    /// What is left.
    pub payload: u64,
}

impl Octets {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.ip + self.transport + self.application + self.payload
    }

    fn add(&mut self, other: &Self) {
        self.ip += other.ip;
        self.transport += other.transport;
        self.application += other.application;
        self.payload += other.payload;
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Nanoseconds since the first message.
    pub time_ns: u64,
    /// The host that sent it, as its place in [`Chart::hosts`].
    pub from: usize,
    /// The host that it was for, or a group.
    pub to: usize,
    /// What it is, in a few words.
    pub label: String,
    /// What was sent before: a TCP segment with nothing new, a CoAP message with the same Message ID.
    pub again: bool,
    /// Its octets.
    pub octets: Octets,
}

/// What one host sent to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// As in a message.
    pub from: usize,
    /// As in a message.
    pub to: usize,
    /// Messages.
    pub packets: u64,
    /// Of them sent again.
    pub again: u64,
    /// Their octets.
    pub octets: Octets,
}

/// All messages, in the order of the capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chart {
    /// Addresses, in the order in which they are first seen.
    pub hosts: Vec<String>,
    /// The messages.
    pub messages: Vec<Message>,
    /// Between each two hosts, one way.
    pub ways: Vec<Way>,
    /// Packets that were chosen, and came behind the last message.
    pub more: u64,
    /// Records without an IP packet, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Why reading ended before the end of the file.
    pub ended_by: Option<String>,
}

/// What is known of a TCP flow, one way: where it begins, and what comes next.
type Sequences = HashMap<FlowKey, (u32, u32)>;

/// Reads a capture.
///
/// # Errors
/// The octets are no capture at all, or cannot be read.
pub fn read<R: Read>(source: R, choice: &Choice) -> Result<Chart, Error> {
    let mut reader = Reader::new(source)?;
    let mut unpack = Unpack::new(choice.contexts);
    let mut chart = Chart::default();
    let (mut hosts, mut sequences) = (Vec::<IpAddr>::new(), Sequences::new());
    let mut identifiers = BTreeMap::new();
    let (mut first, mut chosen) = (None, 0_u64);
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(error) if error.ends_reading() => {
                chart.ended_by = Some(error.to_string());
                continue;
            }
            Err(_) => {
                *chart.skipped.entry("malformed_record").or_default() += 1;
                continue;
            }
        };
        let packet = match unpack.packet(&record) {
            Ok(packet) => packet,
            Err(reason) => {
                *chart.skipped.entry(reason).or_default() += 1;
                continue;
            }
        };
        let key = packet.key;
        let is_between = |hosts: &[IpAddr]| hosts.contains(&key.source) && hosts.contains(&key.destination);
        let is_of = |port| key.ports.is_some_and(|(from, to)| from == port || to == port);
        if !(choice.hosts.is_empty() || is_between(&choice.hosts))
            || choice.port.is_some_and(|port| !is_of(port))
        {
            continue;
        }
        // Flows are followed from their first packet on, also where that is not shown.
        let said = said(&packet, &choice.coap_ports, &mut sequences, &mut identifiers);
        chosen += 1;
        if chosen <= choice.skip {
            continue;
        }
        if chart.messages.len() >= choice.most {
            chart.more += 1;
            continue;
        }
        let mut place = |address| {
            hosts.iter().position(|host| *host == address).unwrap_or_else(|| {
                hosts.push(address);
                hosts.len() - 1
            })
        };
        let time = record.time.as_nanos();
        let message = Message {
            time_ns: time.saturating_sub(*first.get_or_insert(time)),
            from: place(key.source),
            to: place(key.destination),
            label: said.label,
            again: said.again,
            octets: said.octets,
        };
        chart.count(&message);
        chart.messages.push(message);
    }
    chart.hosts = hosts.iter().map(IpAddr::to_string).collect();
    Ok(chart)
}

impl Chart {
    fn count(&mut self, message: &Message) {
        let ends = (message.from, message.to);
        let known = self.ways.iter().position(|way| (way.from, way.to) == ends);
        let number = known.unwrap_or_else(|| {
            let (from, to) = ends;
            self.ways.push(Way { from, to, packets: 0, again: 0, octets: Octets::default() });
            self.ways.len() - 1
        });
        if let Some(way) = self.ways.get_mut(number) {
            way.packets += 1;
            way.again += u64::from(message.again);
            way.octets.add(&message.octets);
        }
    }
}

/// What is said of a packet.
struct Said {
    label: String,
    again: bool,
    octets: Octets,
}

/// Message IDs that were seen of a CoAP flow.
type Identifiers = BTreeMap<(IpAddr, u16, IpAddr, u16), Vec<(Type, u16)>>;

/// Message IDs that are remembered of a flow.
const IDENTIFIERS: usize = 32;

fn said(
    packet: &Packet<'_>,
    ports: &CoapPorts,
    sequences: &mut Sequences,
    identifiers: &mut Identifiers,
) -> Said {
    let headers = packet.headers();
    let behind = packet.octets.get(headers..).unwrap_or_default();
    let coap = packet.coap(ports).unwrap_or_default();
    let octets = Octets {
        ip: packet.ip as u64,
        transport: packet.transport as u64,
        application: coap as u64,
        payload: (behind.len() - coap.min(behind.len())) as u64,
    };
    let transport = packet.octets.get(packet.ip..).unwrap_or_default();
    let (label, again) = match packet.key.protocol {
        _ if coap > 0 => of_coap(packet.key, behind, identifiers),
        protocol::TCP if packet.transport > 0 => of_tcp(packet.key, transport, behind, sequences),
        protocol::UDP | protocol::UDP_LITE if packet.transport > 0 => {
            let name = if packet.key.protocol == protocol::UDP { "UDP" } else { "UDP-Lite" };
            let ports = packet.key.ports.map(|(from, to)| format!(" {from} > {to}")).unwrap_or_default();
            (format!("{name}{ports}, {} octets", behind.len()), false)
        }
        number => (of_other(number, transport), false),
    };
    Said { label, again, octets }
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

/// Flags, and numbers from the first one that was seen on.
fn of_tcp(key: FlowKey, octets: &[u8], payload: &[u8], sequences: &mut Sequences) -> (String, bool) {
    let Ok(tcp) = Tcp::read(octets) else { return ("TCP".to_owned(), false) };
    let from = tcp.sequence_number;
    let len = payload.len() as u32 + u32::from(tcp.syn) + u32::from(tcp.fin);
    let (start, next) = sequences.entry(key).or_insert((from, from));
    if tcp.syn && *next != from.wrapping_add(1) && from != *start {
        // The ports are used again.
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
    (format!("{}{line}", words.join(" ")), again)
}

/// The first line of a payload, if it is text.
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
