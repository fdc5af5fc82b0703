//! Packets of a capture as messages between hosts, for sequence charts.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

use serde::Serialize;
use thinair_capture::{Error, Reader};
use thinair_lowpan::Contexts;
use thinair_rohc::Ports;

use crate::follow::Follower;
pub use crate::follow::LayerOctets;
use crate::unpack::Unpack;

/// Selection of packets.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Only packets between two of these hosts; empty: between any hosts.
    pub hosts: Vec<IpAddr>,
    /// Only packets from or to this port.
    pub port: Option<u16>,
    /// Number of packets to skip at the beginning.
    pub skip: u64,
    /// Maximum number of messages.
    pub most: usize,
    /// UDP ports of CoAP.
    pub coap_ports: Ports,
    /// 6LoWPAN contexts of captured frames.
    pub contexts: Contexts,
    /// Shows the outer packets of tunnels instead of the packets in them.
    pub keep_tunnels: bool,
}

impl Default for Choice {
    /// Selects the first 100 packets.
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

/// A packet, as one message of the chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartMessage {
    /// Nanoseconds since the first message.
    pub time_ns: u64,
    /// Sender, as an index into [`Chart::hosts`].
    pub from: usize,
    /// Receiver or group, as an index into [`Chart::hosts`].
    pub to: usize,
    /// Description in a few words.
    pub label: String,
    /// True for a retransmission: a TCP segment without new octets, or a CoAP message with a repeated Message
    /// ID.
    pub again: bool,
    /// Octets by layer.
    pub octets: LayerOctets,
}

/// Sums of the messages from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartDirection {
    /// Sender, as an index into [`Chart::hosts`].
    pub from: usize,
    /// Receiver, as an index into [`Chart::hosts`].
    pub to: usize,
    /// Number of messages.
    pub packets: u64,
    /// Number of retransmissions among them.
    pub again: u64,
    /// Octets by layer.
    pub octets: LayerOctets,
}

/// The messages of a capture, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chart {
    /// Addresses, in order of first appearance.
    pub hosts: Vec<String>,
    /// The messages.
    pub messages: Vec<ChartMessage>,
    /// Sums for each pair of hosts and direction.
    pub ways: Vec<ChartDirection>,
    /// Number of selected packets after the last message.
    pub more: u64,
    /// Records without an IP packet, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Reason why reading ended before the end of the file.
    pub ended_by: Option<String>,
}

/// Reads a capture.
///
/// # Errors
/// The data is not a capture, or cannot be read.
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
        // Flows are followed from their first packet, even if it is skipped.
        let description = flows.follow(&packet);
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
        let message = ChartMessage {
            time_ns: time.saturating_sub(*first.get_or_insert(time)),
            from: place(key.source),
            to: place(key.destination),
            label: description.label,
            again: description.again,
            octets: description.octets,
        };
        chart.count(&message);
        chart.messages.push(message);
    }
    chart.hosts = hosts.iter().map(IpAddr::to_string).collect();
    Ok(chart)
}

impl Chart {
    fn count(&mut self, message: &ChartMessage) {
        let ends = (message.from, message.to);
        let known = self.ways.iter().position(|direction| (direction.from, direction.to) == ends);
        let number = known.unwrap_or_else(|| {
            let (from, to) = ends;
            self.ways.push(ChartDirection { from, to, packets: 0, again: 0, octets: LayerOctets::default() });
            self.ways.len() - 1
        });
        if let Some(direction) = self.ways.get_mut(number) {
            direction.packets += 1;
            direction.again += u64::from(message.again);
            direction.octets.add(&message.octets);
        }
    }
}
