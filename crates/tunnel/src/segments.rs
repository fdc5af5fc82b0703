//! The size of TCP segments of connections that begin on this machine, by what is seen of them on their way through the
//! tunnel: what was sent again was lost, what was acknowledged has arrived.
//!
//! Nothing is changed in any packet. For each host at the far end there is a control ([`thinair_segment`]); the longest packet
//! that its size asks for is to be told to the system as the MTU of a route to this very host, which the system then
//! keeps to, also where it sends again. It holds for all packets to this host: what else is longer is cut into fragments,
//! or refused.

use std::collections::VecDeque;
use std::net::IpAddr;

use thinair_segment::{LossDetection, SegmentSizer as _, Sizer};
use thinair_wire::header::tcp::{Tcp, kind};
use thinair_wire::header::{ipv4::Ipv4, ipv6::Ipv6};
use thinair_wire::time::Instant;

use crate::status::SegmentStatus;

/// Hosts that are remembered.
const HOSTS: usize = 64;

/// Connections that are remembered.
const FLOWS: usize = 256;

/// Segments of a connection whose ends are remembered.
const ENDS: usize = 128;

/// Acknowledgments of the same in a row by which a loss is told (RFC 5681, section 2).
const DUPLICATES: u32 = 3;

/// Octets of the shortest packet that is asked for: what IPv4 needs (RFC 791, section 3.2).
const SHORTEST: u16 = 68;

/// Octets of timestamps, with their padding.
const TIMESTAMPS: usize = 12;

/// Protocol number of TCP.
const TCP: u8 = 6;

/// A limit that is to be told to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The host.
    pub host: IpAddr,
    /// One of the own addresses, from which connections to it come.
    pub own: IpAddr,
    /// Octets of the longest packet; `None`: it is forgotten.
    pub octets: Option<u16>,
}

/// A host at the far end.
#[derive(Debug)]
struct Host {
    address: IpAddr,
    own: IpAddr,
    sizer: Sizer,
    /// Octets of headers of the last segment with payload.
    headers: u16,
    /// What was last to be told.
    told: Option<u16>,
    /// Segments that were acknowledged, and that were sent again.
    acknowledged: u64,
    sent_again: u64,
    used: Instant,
}

/// A connection.
#[derive(Debug)]
struct Flow {
    host: IpAddr,
    own: IpAddr,
    /// Of this machine, and of the host.
    ports: (u16, u16),
    /// What comes after all that was sent.
    next: u32,
    /// What was acknowledged.
    acknowledged: u32,
    duplicates: u32,
    /// Where the first segment begins that is not acknowledged, and where it and those after it end, as they were cut first.
    begin: u32,
    ends: VecDeque<u32>,
    used: Instant,
}

/// All connections through a tunnel, and their hosts.
#[derive(Debug)]
pub struct Segments {
    fresh: Sizer,
    own: Vec<IpAddr>,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    /// Hosts that were forgotten.
    forgotten: Vec<Limit>,
}

/// What counts of a TCP segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: IpAddr,
    to: IpAddr,
    ports: (u16, u16),
    sequence: u32,
    acknowledgment: Option<u32>,
    begins: bool,
    ends: bool,
    headers: u16,
    payload: u32,
}

/// Whether `a` is before `b` (RFC 9293, section 3.4).
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Segments {
    /// For connections from these addresses; each host begins with a copy of `fresh`.
    pub fn new(fresh: Sizer, own: Vec<IpAddr>) -> Self {
        Self { fresh, own, hosts: Vec::new(), flows: Vec::new(), forgotten: Vec::new() }
    }

    /// A packet goes into the tunnel.
    pub fn sent(&mut self, now: Instant, packet: &[u8]) {
        let Some(segment) = segment(packet) else { return };
        if !self.own.contains(&segment.from) {
            return;
        }
        let length = segment.payload + u32::from(segment.begins) + u32::from(segment.ends);
        if length == 0 {
            return;
        }
        let end = segment.sequence.wrapping_add(length);
        let host = self.host(now, segment.to, segment.from);
        let flow = self.flow(now, &segment);
        // What carries nothing, or a probe of one octet, says nothing of sizes.
        let counts = segment.payload > 1;
        // One that is sent again may be cut anew: it was lost once, with its first piece.
        let begins = flow.begin == segment.sequence || flow.ends.contains(&segment.sequence);
        let is_lost = counts && begins && is_before(segment.sequence, flow.next);
        let how = if flow.duplicates >= DUPLICATES { LossDetection::Fast } else { LossDetection::Rto };
        if is_before(flow.next, end) {
            flow.next = end;
            if counts && flow.ends.len() < ENDS {
                flow.ends.push_back(end);
            }
        }
        let Some(host) = self.hosts.get_mut(host) else { return };
        if counts || segment.begins {
            host.headers = segment.headers;
        }
        if is_lost {
            host.sizer.on_lost(how, now);
            host.sent_again += 1;
        }
    }

    /// A packet has come out of the tunnel.
    pub fn received(&mut self, now: Instant, packet: &[u8]) {
        let Some(segment) = segment(packet) else { return };
        let Some(acknowledgment) = segment.acknowledgment else { return };
        let ports = (segment.ports.1, segment.ports.0);
        let mut flows = self.flows.iter_mut();
        let of = |flow: &&mut Flow| (flow.own, flow.host, flow.ports) == (segment.to, segment.from, ports);
        let Some(flow) = flows.find(of) else { return };
        flow.used = now;
        if acknowledgment == flow.acknowledged {
            flow.duplicates += u32::from(segment.payload == 0);
            return;
        }
        // What was never sent cannot be acknowledged.
        if is_before(acknowledgment, flow.acknowledged) || is_before(flow.next, acknowledgment) {
            return;
        }
        let octets = acknowledgment.wrapping_sub(flow.acknowledged);
        (flow.acknowledged, flow.duplicates) = (acknowledgment, 0);
        let mut segments = 0;
        while let Some(end) = flow.ends.front().filter(|end| !is_before(acknowledgment, **end)) {
            flow.begin = *end;
            flow.ends.pop_front();
            segments += 1;
        }
        if flow.ends.is_empty() {
            flow.begin = flow.next;
        }
        let Some(host) = self.hosts.iter_mut().find(|host| host.address == segment.from) else { return };
        for _ in 0..segments {
            host.sizer.on_acked(octets / segments, None, now);
        }
        host.acknowledged += u64::from(segments);
    }

    /// A limit that has changed since it was told.
    pub fn poll(&mut self) -> Option<Limit> {
        if let Some(forgotten) = self.forgotten.pop() {
            return Some(forgotten);
        }
        let own = |host: &Host| host.sizer.size().saturating_add(host.headers).max(SHORTEST);
        let host = self.hosts.iter_mut().find(|host| host.headers > 0 && host.told != Some(own(host)))?;
        let octets = own(host);
        host.told = Some(octets);
        Some(Limit { host: host.address, own: host.own, octets: Some(octets) })
    }

    /// Octets of the longest packet to the host that takes the shortest ones; `None`: nobody was told of any.
    pub fn shortest_limit(&self) -> Option<u16> {
        self.hosts.iter().filter_map(|host| host.told).min()
    }

    /// All limits that were told, to be taken back.
    pub fn told(&self) -> impl Iterator<Item = Limit> + '_ {
        let told = self.hosts.iter().filter(|host| host.told.is_some());
        told.map(|host| Limit { host: host.address, own: host.own, octets: None })
    }

    /// How it stands with each host.
    pub fn status(&self) -> Vec<SegmentStatus> {
        let hosts = self.hosts.iter().map(|host| SegmentStatus {
            host: host.address.to_string(),
            size: host.sizer.size(),
            longest_packet: host.told,
            acknowledged: host.acknowledged,
            sent_again: host.sent_again,
        });
        hosts.collect()
    }

    /// The number of a host, which may be new: then the one that was not used for longest is forgotten for it.
    fn host(&mut self, now: Instant, address: IpAddr, own: IpAddr) -> usize {
        if let Some(number) = self.hosts.iter().position(|host| host.address == address) {
            if let Some(host) = self.hosts.get_mut(number) {
                (host.used, host.own) = (now, own);
            }
            return number;
        }
        if self.hosts.len() >= HOSTS {
            let oldest = self.hosts.iter().enumerate().min_by_key(|(_, host)| host.used);
            if let Some(oldest) = oldest.map(|(number, _)| number) {
                let gone = self.hosts.swap_remove(oldest);
                self.flows.retain(|flow| flow.host != gone.address);
                if gone.told.is_some() {
                    self.forgotten.push(Limit { host: gone.address, own: gone.own, octets: None });
                }
            }
        }
        let sizer = self.fresh.clone();
        self.hosts.push(Host {
            address,
            own,
            sizer,
            headers: 0,
            told: None,
            acknowledged: 0,
            sent_again: 0,
            used: now,
        });
        self.hosts.len() - 1
    }

    /// The connection of a segment that is sent, which may be new.
    fn flow(&mut self, now: Instant, segment: &Segment) -> &mut Flow {
        let of = |flow: &Flow| (flow.own, flow.host, flow.ports) == (segment.from, segment.to, segment.ports);
        let found = self.flows.iter().position(of);
        let begins_anew = segment.begins && found.is_some();
        let number = match found {
            Some(number) => number,
            None => {
                if self.flows.len() >= FLOWS {
                    let oldest = self.flows.iter().enumerate().min_by_key(|(_, flow)| flow.used);
                    oldest.map(|(number, _)| number).map(|oldest| self.flows.swap_remove(oldest));
                }
                self.flows.push(Flow {
                    host: segment.to,
                    own: segment.from,
                    ports: segment.ports,
                    next: segment.sequence,
                    acknowledged: segment.sequence,
                    duplicates: 0,
                    begin: segment.sequence.wrapping_add(segment.begins.into()),
                    ends: VecDeque::new(),
                    used: now,
                });
                self.flows.len() - 1
            }
        };
        let flow = &mut self.flows[number];
        flow.used = now;
        // Ports can be used again, with other numbers; a SYN that goes again has the same.
        if begins_anew && flow.next != segment.sequence.wrapping_add(1) {
            (flow.next, flow.acknowledged, flow.duplicates) = (segment.sequence, segment.sequence, 0);
            flow.begin = segment.sequence.wrapping_add(1);
            flow.ends.clear();
        }
        flow
    }
}

/// The TCP segment in a packet, if there is a whole one.
fn segment(packet: &[u8]) -> Option<Segment> {
    let (from, to, header, length): (IpAddr, IpAddr, usize, usize) = match packet.first()? >> 4 {
        4 => {
            let ip = Ipv4::read(packet).ok()?;
            if ip.protocol != TCP || ip.mf || ip.fragment_offset > 0 {
                return None;
            }
            (ip.source.into(), ip.destination.into(), ip.len(), ip.total_length.into())
        }
        6 => {
            let ip = Ipv6::read(packet).ok()?;
            if ip.next_header != TCP {
                return None;
            }
            (ip.source.into(), ip.destination.into(), Ipv6::LEN, Ipv6::LEN + usize::from(ip.payload_length))
        }
        _ => return None,
    };
    let tcp = Tcp::read(packet.get(header..)?).ok()?;
    // Timestamps are in all segments or in none (RFC 7323, section 3.2); other options are in few.
    let has_timestamps = tcp.walk().any(|(kind, _)| kind == kind::TIMESTAMPS);
    let usual = Tcp::LEN + if has_timestamps { TIMESTAMPS } else { 0 };
    Some(Segment {
        from,
        to,
        ports: (tcp.source_port, tcp.destination_port),
        sequence: tcp.sequence_number,
        acknowledgment: tcp.ack.then_some(tcp.acknowledgment_number),
        begins: tcp.syn,
        ends: tcp.fin,
        headers: (header + usual) as u16,
        payload: length.checked_sub(header + tcp.len())? as u32,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
