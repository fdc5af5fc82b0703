//! The packets of a capture as messages between hosts: who sent what to whom, and when.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

use serde::Serialize;
use thinair_capture::{Error, Reader};
use thinair_lowpan::Contexts;
use thinair_rohc::Ports;

use crate::follow::Follower;
pub use crate::follow::Octets;
use crate::unpack::Unpack;

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
    pub coap_ports: Ports,
    /// Contexts of 6LoWPAN of captured frames.
    pub contexts: Contexts,
    /// Leave tunnels as they are, instead of showing the packets in them.
    pub keep_tunnels: bool,
}

impl Default for Choice {
    /// The first 100 of all packets.
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            port: None,
            skip: 0,
            most: 100,
            coap_ports: Ports::COAP,
            contexts: Contexts::NONE,
            keep_tunnels: false,
        }
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

/// Reads a capture.
///
/// # Errors
/// The octets are no capture at all, or cannot be read.
pub fn read<R: Read>(source: R, choice: &Choice) -> Result<Chart, Error> {
    let mut reader = Reader::new(source)?;
    let mut unpack =
        Unpack::new(choice.contexts).keeping_tunnels(choice.keep_tunnels).filling_payload(choice.coap_ports);
    let mut chart = Chart::default();
    let (mut hosts, mut flows) = (Vec::<IpAddr>::new(), Follower::new(choice.coap_ports));
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
        let said = flows.follow(&packet);
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
