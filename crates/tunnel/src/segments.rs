//! Size of TCP segments of connections that begin on this machine, controlled by observing them in the
//! tunnel: a retransmitted segment was lost, an acknowledged one has arrived.
//!
//! Packets are not modified. Each host at the far end has a control ([`thinair_segment`]); the maximum packet
//! size that it demands is set in the system as the MTU of a route to this host, and the system adheres to
//! it, also for retransmissions. It applies to all packets to this host: other packets that are longer are
//! fragmented, or rejected.

use std::collections::VecDeque;
use std::net::IpAddr;

use thinair_segment::{LossDetection, SegmentSizer as _, Sizer};
use thinair_wire::header::tcp::{Tcp, kind};
use thinair_wire::header::{ipv4::Ipv4, ipv6::Ipv6};
use thinair_wire::time::Instant;

use crate::status::SegmentStatus;

/// Maximum number of hosts remembered.
const HOSTS: usize = 64;

/// Maximum number of connections remembered.
const FLOWS: usize = 256;

/// Maximum number of segments of a connection whose ends are remembered.
const ENDS: usize = 128;

/// Number of consecutive duplicate acknowledgments that indicate a loss (RFC 5681, section 2).
const DUPLICATES: u32 = 3;

/// Minimum packet size in octets: that of IPv4 (RFC 791, section 3.2).
const SHORTEST: u16 = 68;

/// Octets of the Timestamps option with padding.
const TIMESTAMPS: usize = 12;

/// Protocol number of TCP.
const TCP: u8 = 6;

/// A limit to set in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Host at the far end.
    pub host: IpAddr,
    /// Local address of the connections to it.
    pub own: IpAddr,
    /// Maximum size of a packet in octets; `None`: the limit is removed.
    pub octets: Option<u16>,
}

/// A host at the far end.
#[derive(Debug)]
struct RemoteHost {
    address: IpAddr,
    own: IpAddr,
    sizer: Sizer,
    /// Octets of headers of the last segment with payload.
    headers: u16,
    /// Last reported limit.
    told: Option<u16>,
    /// Number of acknowledged segments, and of retransmitted ones.
    acknowledged: u64,
    sent_again: u64,
    used: Instant,
}

/// A connection.
#[derive(Debug)]
struct TcpConnection {
    host: IpAddr,
    own: IpAddr,
    /// Ports of this machine and of the host.
    ports: (u16, u16),
    /// Sequence number after all octets sent.
    next: u32,
    /// Acknowledged sequence number.
    acknowledged: u32,
    duplicates: u32,
    /// Start of the first segment that is not acknowledged, and the ends of it and of later ones, as first
    /// sent.
    begin: u32,
    ends: VecDeque<u32>,
    used: Instant,
}

/// All connections through a tunnel, and their hosts.
#[derive(Debug)]
pub struct Segments {
    fresh: Sizer,
    own: Vec<IpAddr>,
    hosts: Vec<RemoteHost>,
    flows: Vec<TcpConnection>,
    /// Limits of hosts that are no longer remembered.
    forgotten: Vec<Limit>,
}

/// Relevant fields of a TCP segment.
#[derive(Clone, Copy, Debug)]
struct ObservedSegment {
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

/// True if `a` is before `b` (RFC 9293, section 3.4).
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Segments {
    /// Returns the control for connections from these addresses; each host begins with a copy of `fresh`.
    pub fn new(fresh: Sizer, own: Vec<IpAddr>) -> Self {
        Self { fresh, own, hosts: Vec::new(), flows: Vec::new(), forgotten: Vec::new() }
    }

    /// Observes a packet sent into the tunnel.
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
        // Segments without payload, and probes of one octet, are irrelevant for sizes.
        let counts = segment.payload > 1;
        // A retransmission may be cut to other sizes: it counts as one loss, with its first piece.
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

    /// Observes a packet received from the tunnel.
    pub fn received(&mut self, now: Instant, packet: &[u8]) {
        let Some(segment) = segment(packet) else { return };
        let Some(acknowledgment) = segment.acknowledgment else { return };
        let ports = (segment.ports.1, segment.ports.0);
        let mut flows = self.flows.iter_mut();
        let of = |flow: &&mut TcpConnection| {
            (flow.own, flow.host, flow.ports) == (segment.to, segment.from, ports)
        };
        let Some(flow) = flows.find(of) else { return };
        flow.used = now;
        if acknowledgment == flow.acknowledged {
            flow.duplicates += u32::from(segment.payload == 0);
            return;
        }
        // Ignores acknowledgments of octets that were never sent.
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

    /// Returns a limit that has changed since it was reported.
    pub fn poll(&mut self) -> Option<Limit> {
        if let Some(forgotten) = self.forgotten.pop() {
            return Some(forgotten);
        }
        let own = |host: &RemoteHost| host.sizer.size().saturating_add(host.headers).max(SHORTEST);
        let host = self.hosts.iter_mut().find(|host| host.headers > 0 && host.told != Some(own(host)))?;
        let octets = own(host);
        host.told = Some(octets);
        Some(Limit { host: host.address, own: host.own, octets: Some(octets) })
    }

    /// Returns the smallest limit of all hosts in octets; `None`: there is none.
    pub fn shortest_limit(&self) -> Option<u16> {
        self.hosts.iter().filter_map(|host| host.told).min()
    }

    /// Returns all reported limits, for removing them.
    pub fn told(&self) -> impl Iterator<Item = Limit> + '_ {
        let told = self.hosts.iter().filter(|host| host.told.is_some());
        told.map(|host| Limit { host: host.address, own: host.own, octets: None })
    }

    /// Returns the state of each host.
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

    /// Returns the index of a host. A new one replaces the host that was unused for longest, if there are too
    /// many.
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
        self.hosts.push(RemoteHost {
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

    /// Returns the connection of a sent segment, which may be new.
    fn flow(&mut self, now: Instant, segment: &ObservedSegment) -> &mut TcpConnection {
        let of = |flow: &TcpConnection| {
            (flow.own, flow.host, flow.ports) == (segment.from, segment.to, segment.ports)
        };
        let found = self.flows.iter().position(of);
        let begins_anew = segment.begins && found.is_some();
        let number = match found {
            Some(number) => number,
            None => {
                if self.flows.len() >= FLOWS {
                    let oldest = self.flows.iter().enumerate().min_by_key(|(_, flow)| flow.used);
                    oldest.map(|(number, _)| number).map(|oldest| self.flows.swap_remove(oldest));
                }
                self.flows.push(TcpConnection {
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
        // Ports can be reused, with other sequence numbers; a retransmitted SYN has the same.
        if begins_anew && flow.next != segment.sequence.wrapping_add(1) {
            (flow.next, flow.acknowledged, flow.duplicates) = (segment.sequence, segment.sequence, 0);
            flow.begin = segment.sequence.wrapping_add(1);
            flow.ends.clear();
        }
        flow
    }
}

/// Parses the TCP segment in a packet, if it is complete.
fn segment(packet: &[u8]) -> Option<ObservedSegment> {
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
    // Timestamps are in all segments or in none (RFC 7323, section 3.2); other options are rare.
    let has_timestamps = tcp.walk().any(|(kind, _)| kind == kind::TIMESTAMPS);
    let usual = Tcp::LEN + if has_timestamps { TIMESTAMPS } else { 0 };
    Some(ObservedSegment {
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
