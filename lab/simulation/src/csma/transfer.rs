//! Transfer of a file by TCP over some hops, with segment sizes of a control.

use core::time::Duration;

use thinair_segment::{LossDetection, SegmentSizer};
use thinair_wire::time::Instant;

use super::CsmaConfig;
use super::counters::{NodeCounters, Total};
use super::network::CsmaNetwork;
use crate::streams::RandomStreams;
use crate::tcp::{self, CongestionAlgorithm, Floor, Nagle, TcpConnection, TcpEvent, TcpSegment};

/// Content of the file.
static ZEROS: [u8; 4_096] = [0; 4_096];

/// File from one node to another.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Network.
    pub network: CsmaConfig,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Size of the file, in octets.
    pub octets: u64,
    /// TCP of both ends. Its MSS bounds the sizes of the control.
    pub tcp: tcp::TcpConfig,
    /// Time after which a transfer is given up.
    pub limit: Duration,
    /// True if changes of the size are recorded.
    pub trace: bool,
}

/// Change of the segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time since the connection was established.
    pub at: Duration,
    /// Octets of the file that were acknowledged by then.
    pub acknowledged: u64,
    /// Size in octets.
    pub size: u16,
}

/// Costs of a transfer, without the handshake.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferOutcome {
    /// True if all octets were acknowledged in time.
    pub is_complete: bool,
    /// Time since the connection was established.
    pub duration: Duration,
    /// Acknowledged octets.
    pub acknowledged: u64,
    /// Segments with data, including retransmissions.
    pub segments: u64,
    /// Retransmissions, which `segments` includes.
    pub retransmissions: u64,
    /// Losses detected by TCP: by the timer, and by acknowledgments.
    pub losses: (u64, u64),
    /// Mean data of a segment, in octets.
    pub mean_size: f64,
    /// Counters by node.
    pub nodes: Vec<NodeCounters>,
    /// Energy of all nodes together.
    pub energy: Total,
    /// Events that the network has handled, including those of the handshake.
    pub events: u64,
    /// Changes of the size, if they were recorded.
    pub sizes: Vec<Point>,
}

impl TransferOutcome {
    /// Sum of all counters.
    pub fn all(&self) -> NodeCounters {
        self.nodes.iter().fold(NodeCounters::default(), |mut all, node| {
            all += node;
            all
        })
    }
}

impl Transfer {
    /// TCP as in simulators: no options, immediate acknowledgments, NewReno, a minimum timeout of 1 s, and at most
    /// `window` segments in flight.
    pub fn tcp(mss: u16, window: u32) -> tcp::TcpConfig {
        tcp::TcpConfig {
            mss,
            algorithm: CongestionAlgorithm::Reno,
            window: Some(window),
            sack: false,
            timestamps: false,
            nagle: Nagle::Off,
            delayed_ack: None,
            tail_loss_probe: false,
            floor: Floor::Timeout(Duration::from_secs(1)),
            longest_timeout: Duration::from_secs(60),
            retries: u8::MAX,
            syn_retries: u8::MAX,
            ..tcp::TcpConfig::default()
        }
    }

    /// Sends the file. Equal `streams`, `run` and control give equal outcomes.
    pub fn run(&self, sizer: &mut impl SegmentSizer, streams: RandomStreams, run: u32) -> TransferOutcome {
        let mut state = Running::new(self, streams, run);
        let end = Instant::ZERO + self.limit;
        while state.step(self, sizer, end) {}
        state.outcome(self)
    }
}

/// Transfer in progress, which can be suspended and resumed.
#[derive(Debug)]
pub struct Running {
    network: CsmaNetwork<TcpSegment>,
    client: TcpConnection,
    server: TcpConnection,
    /// Octets that the client was given, and that were acknowledged.
    written: u64,
    acknowledged: u64,
    /// Time at which the connection was established.
    began: Option<Instant>,
    ended: Option<Instant>,
    /// Counters of frames that the control has last seen.
    reported: (u64, u64, u64),
    segments: u64,
    payload: u64,
    losses: (u64, u64),
    sizes: Vec<Point>,
}

impl Running {
    /// Starts at time zero, before the SYN.
    pub fn new(plan: &Transfer, streams: RandomStreams, run: u32) -> Self {
        Self {
            network: CsmaNetwork::new(&plan.network, streams, run),
            client: TcpConnection::connect(plan.tcp, Instant::ZERO, 0),
            server: TcpConnection::listen(plan.tcp, 0),
            written: 0,
            acknowledged: 0,
            began: None,
            ended: None,
            reported: (0, 0, 0),
            segments: 0,
            payload: 0,
            losses: (0, 0),
            sizes: Vec::new(),
        }
    }

    /// Continues until a packet has arrived or a timer has expired, but not beyond `end`. Returns true if there is more
    /// to do before that.
    pub fn step(&mut self, plan: &Transfer, sizer: &mut impl SegmentSizer, end: Instant) -> bool {
        if self.ended.is_some() || self.client.is_closed() {
            return false;
        }
        let now = self.network.now();
        self.feed(plan, now);
        self.client.set_segment_size(sizer.size());
        while let Some(segment) = self.client.poll_transmit(now) {
            if !segment.payload.is_empty() {
                self.segments += 1;
                self.payload += segment.payload.len() as u64;
            }
            self.network.send(plan.from, plan.to, segment);
        }
        while let Some(segment) = self.server.poll_transmit(now) {
            self.network.send(plan.to, plan.from, segment);
        }
        let timer = [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
        let until = timer.map_or(end, |timer| timer.min(end));
        match self.network.next_before(until) {
            Some(arrival) if arrival.to == plan.to => {
                self.server.handle_segment(arrival.at, &arrival.packet);
                while self.server.readable() > 0 {
                    self.server.read(usize::MAX);
                }
                while self.server.poll_event().is_some() {}
            }
            Some(arrival) => self.client.handle_segment(arrival.at, &arrival.packet),
            None if until < end || timer == Some(end) => {
                self.client.handle_timeout(until);
                self.server.handle_timeout(until);
            }
            None => return false,
        }
        self.report_events(plan, sizer);
        true
    }

    /// Gives the client just enough of the file that no segment is short.
    fn feed(&mut self, plan: &Transfer, now: Instant) {
        let wanted = u64::from(plan.tcp.window.unwrap_or(64)) * u64::from(plan.tcp.mss);
        while self.written < plan.octets {
            let missing = wanted.saturating_sub(self.client.status().unacknowledged as u64);
            let len = (plan.octets - self.written).min(missing).min(ZEROS.len() as u64) as usize;
            let taken = self.client.write(now, ZEROS.get(..len).unwrap_or(&ZEROS));
            if taken == 0 {
                return;
            }
            self.written += taken as u64;
        }
    }

    /// Passes the client's events to the control of sizes.
    fn report_events(&mut self, plan: &Transfer, sizer: &mut impl SegmentSizer) {
        let now = self.network.now();
        while let Some(event) = self.client.poll_event() {
            match event {
                TcpEvent::Connected => {
                    self.began = Some(now);
                    self.network.clear_counters();
                    self.note(plan, sizer.size(), now);
                }
                TcpEvent::Acked { octets, rtt } => {
                    self.tell_frames(plan, sizer, now);
                    self.acknowledged += octets;
                    sizer.on_acked(octets.min(u32::MAX.into()) as u32, rtt, now);
                    self.note(plan, sizer.size(), now);
                    if self.acknowledged >= plan.octets {
                        self.ended = Some(now);
                    }
                }
                TcpEvent::Lost(loss) if self.began.is_some() => {
                    self.tell_frames(plan, sizer, now);
                    let loss = match loss {
                        tcp::LossDetection::Fast => LossDetection::Fast,
                        tcp::LossDetection::Timeout => LossDetection::Rto,
                    };
                    match loss {
                        LossDetection::Rto => self.losses.0 += 1,
                        LossDetection::Fast => self.losses.1 += 1,
                    }
                    sizer.on_lost(loss, now);
                    self.note(plan, sizer.size(), now);
                }
                _ => {}
            }
        }
    }

    fn tell_frames(&mut self, plan: &Transfer, sizer: &mut impl SegmentSizer, now: Instant) {
        let NodeCounters { sent, unacknowledged, access_failures, .. } = self.network.counters(plan.from);
        let reported = std::mem::replace(&mut self.reported, (sent, unacknowledged, access_failures));
        let new = (sent - reported.0, unacknowledged - reported.1, access_failures - reported.2);
        sizer.on_frames(new.0 as u32, new.1 as u32, new.2 as u32, now);
    }

    fn note(&mut self, plan: &Transfer, size: u16, now: Instant) {
        let Some(began) = self.began.filter(|_| plan.trace) else { return };
        if self.sizes.last().is_none_or(|last| last.size != size) {
            self.sizes.push(Point { at: now.since(began), acknowledged: self.acknowledged, size });
        }
    }

    /// Contents of frames.
    #[cfg(test)]
    pub(super) const fn load(&self) -> &super::network::Loads<TcpSegment> {
        self.network.load()
    }

    /// Costs so far.
    pub fn outcome(&self, plan: &Transfer) -> TransferOutcome {
        let now = self.ended.unwrap_or(self.network.now());
        let began = self.began.unwrap_or(now);
        let nodes: Vec<_> =
            (0..plan.network.topology.nodes()).map(|node| self.network.counters(node)).collect();
        TransferOutcome {
            is_complete: self.ended.is_some(),
            duration: now.since(began),
            acknowledged: self.acknowledged,
            segments: self.segments,
            retransmissions: self.client.status().retransmissions,
            losses: self.losses,
            mean_size: self.payload as f64 / (self.segments as f64).max(1.0),
            energy: Total::of(&nodes),
            nodes,
            events: self.network.events(),
            sizes: self.sizes.clone(),
        }
    }
}
