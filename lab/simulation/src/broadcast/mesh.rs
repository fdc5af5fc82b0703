//! Sites that send to each other over a satellite: each is heard by all others (a mesh of unidirectional links), or by
//! a hub that forwards (a star).
//!
//! In the mesh every site has a channel to all others, on its own PID; in U-mode one compressor serves any number of
//! decompressors. In the star the hub decompresses and compresses again, with all flows on one channel.

use std::collections::VecDeque;
use std::time::Duration;

use thinair_rohc::{CompressorConfig, Mode, Refresh};
use thinair_ule::{Pid, TsPacket};
use thinair_wire::time::Instant;

use super::listener::Listener;
use super::sender::StreamSender;
use super::{BroadcastError, Delays, SECOND, StreamCarrier};
use crate::queue::EventQueue;
use crate::streams::{Purpose, RandomStreams};
use thinair_emulator::{ProtocolStack, StackFlow};

/// PID of the first site; the hub has the one before.
const FIRST_PID: u16 = 0x40;

/// Maximum number of sites: each has a flow with a small CID.
pub const MOST_SITES: u8 = 16;

/// Room for an SNDU: plans with larger packets are rejected.
const MOST_PACKET: usize = 2_000;

/// Connections between stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Every site receives every other site.
    Mesh,
    /// Every site receives the hub, and the hub every site.
    Star,
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshPlan {
    /// Connections between stations.
    pub topology: Topology,
    /// Number of sites besides the hub: 2 to [`MOST_SITES`].
    pub sites: u8,
    /// Carrier of each site, and of the hub.
    pub carrier: StreamCarrier,
    /// Headers of the packets.
    pub stack: ProtocolStack,
    /// Payload of a packet, in octets.
    pub payload: usize,
    /// Packets per second of each site, to all others; at least 1.
    pub packets_per_second: u32,
    /// Refreshes of contexts; `None`: packets are not compressed.
    pub refresh: Option<Refresh>,
    /// Time before the window.
    pub warm_up: Duration,
    /// Time in which events are counted.
    pub window: Duration,
    /// Time at which one station fails permanently: the hub, or in a mesh the first site. `None`: never.
    pub failure: Option<Duration>,
    /// Seed of flows and packet times.
    pub seed: u64,
}

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshOutcome {
    /// Delays from a packet's site to another site, in the window.
    pub delays: Delays,
    /// TS packets of all stations that were not null, in the window.
    pub ts_packets: u64,
    /// Packets that were not restored exactly, in the whole run.
    pub wrong: u64,
    /// Deliveries expected after the failure, between sites that have not failed.
    pub expected_after: u64,
    /// Deliveries among these.
    pub delivered_after: u64,
}

#[derive(Clone, Debug)]
enum MeshEvent {
    /// Next packet of a site.
    Arrival(usize),
    /// Next TS packet of every station.
    Slot,
    /// Possible end of a station's Packing Threshold.
    Poll(usize),
    /// Arrival of a packet at the hub.
    AtHub(Vec<u8>),
}

/// Runs a plan.
///
/// # Errors
///
/// There are too few or too many sites, the payload does not fit, or a packet is rejected.
pub fn run(plan: &MeshPlan) -> Result<MeshOutcome, BroadcastError> {
    if !(2..=MOST_SITES).contains(&plan.sites) {
        return Err(BroadcastError::Unfit("a mesh has 2 to 16 sites"));
    }
    let sites = usize::from(plan.sites);
    let flows = flows(plan)?;
    let mut memory = vec![vec![0; MOST_PACKET]; sites * sites];
    let mut run = MeshRun::new(plan, flows, &mut memory)?;
    let mut queue = EventQueue::new();
    for site in 0..sites {
        queue.schedule(run.arrival(site, 0), MeshEvent::Arrival(site));
    }
    queue.schedule(Instant::ZERO, MeshEvent::Slot);
    while let Some((now, event)) = queue.next_before(run.end) {
        match event {
            MeshEvent::Arrival(site) => {
                let number = run.next[site];
                run.next[site] += 1;
                queue.schedule(run.arrival(site, number + 1), MeshEvent::Arrival(site));
                run.count(site, number);
                run.flows[site].packet(number, &mut run.packet);
                let packet = run.packet.clone();
                run.give(now, site, packet, &mut queue)?;
            }
            MeshEvent::AtHub(packet) => run.give(now, run.hub(), packet, &mut queue)?,
            MeshEvent::Slot => run.slot(now, &mut queue)?,
            MeshEvent::Poll(station) => {
                let Station { sender, waiting, .. } = &mut run.stations[station];
                sender.poll(now, !waiting.is_empty());
                run.schedule_poll(station, &mut queue);
            }
        }
    }
    let mut outcome = run.outcome;
    outcome.delays.sort();
    Ok(outcome)
}

fn flows(plan: &MeshPlan) -> Result<Vec<StackFlow>, BroadcastError> {
    let flow = |site: u8| {
        let seed = RandomStreams::new(plan.seed).stream(0, u32::from(site), Purpose::Content).next_u64();
        StackFlow::new(plan.stack, plan.payload, site, seed)
            .filter(|flow| flow.packet_len() + 100 < MOST_PACKET)
            .ok_or(BroadcastError::Unfit("the payload does not fit into a packet"))
    };
    (0..plan.sites).map(flow).collect()
}

struct Station {
    sender: StreamSender,
    waiting: VecDeque<Vec<u8>>,
    polled_at: Option<Instant>,
}

/// Receiver of one station's stream.
struct Ear<'m> {
    /// Index of the sending station.
    from: usize,
    /// Index of the receiving station.
    to: usize,
    listener: Listener<'m>,
    /// Number of the next packet of each site.
    expected: Vec<u32>,
}

struct MeshRun<'p, 'm> {
    plan: &'p MeshPlan,
    flows: Vec<StackFlow>,
    /// Time of each site's first packet, in nanoseconds.
    phases: Vec<u64>,
    next: Vec<u32>,
    /// Stations: the sites, then the hub if there is one.
    stations: Vec<Station>,
    ears: Vec<Ear<'m>>,
    slot: u64,
    begin: Instant,
    end: Instant,
    failure: Option<Instant>,
    outcome: MeshOutcome,
    packet: Vec<u8>,
}

impl<'p, 'm> MeshRun<'p, 'm> {
    fn new(
        plan: &'p MeshPlan,
        flows: Vec<StackFlow>,
        memory: &'m mut [Vec<u8>],
    ) -> Result<Self, BroadcastError> {
        let sites = flows.len();
        let channel = |flows: u16| -> Result<Option<(CompressorConfig, Mode)>, BroadcastError> {
            let config = plan.refresh.map(|refresh| plan.stack.compressor(flows, refresh)).transpose()?;
            Ok(config.map(|config| (config, Mode::Unidirectional)))
        };
        let pid = |station: usize| {
            let offset = if station == sites { None } else { Some(station as u16) };
            Pid::new(offset.map_or(FIRST_PID - 1, |offset| FIRST_PID + offset))
                .ok_or(BroadcastError::Unfit("no PID"))
        };
        let has_hub = plan.topology == Topology::Star;
        let mut stations = Vec::new();
        for station in 0..sites + usize::from(has_hub) {
            let flows = if station == sites { sites as u16 } else { 1 };
            let sender = StreamSender::new(pid(station)?, &plan.carrier, channel(flows)?);
            stations.push(Station { sender, waiting: VecDeque::new(), polled_at: None });
        }
        let pairs: Vec<(usize, usize, u16)> = match plan.topology {
            Topology::Mesh => (0..sites)
                .flat_map(|from| (0..sites).filter(move |to| *to != from).map(move |to| (from, to, 1)))
                .collect(),
            Topology::Star => (0..sites)
                .map(|from| (from, sites, 1))
                .chain((0..sites).map(|to| (sites, to, sites as u16)))
                .collect(),
        };
        let mut ears = Vec::new();
        for ((from, to, flows), memory) in pairs.into_iter().zip(memory) {
            let listener = Listener::new(pid(from)?, memory, channel(flows)?);
            ears.push(Ear { from, to, listener, expected: vec![0; sites] });
        }
        let interval = (SECOND / u128::from(plan.packets_per_second.max(1))) as u64;
        let phase = |site: usize| {
            RandomStreams::new(plan.seed).stream(0, site as u32, Purpose::Arrivals).below(interval)
        };
        let begin = Instant::ZERO + plan.warm_up;
        Ok(Self {
            plan,
            phases: (0..sites).map(phase).collect(),
            next: vec![0; sites],
            stations,
            ears,
            slot: 0,
            begin,
            end: begin + plan.window,
            failure: plan.failure.map(|after| Instant::ZERO + after),
            outcome: MeshOutcome::default(),
            packet: Vec::new(),
            flows,
        })
    }

    /// Index of the hub among the stations.
    fn hub(&self) -> usize {
        self.flows.len()
    }

    /// Arrival time of packet `number` of a site.
    fn arrival(&self, site: usize, number: u32) -> Instant {
        let rate = u128::from(self.plan.packets_per_second.max(1));
        let nanos = u128::from(self.phases[site]) + u128::from(number) * SECOND / rate;
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Index of the station that fails.
    fn failing(&self) -> usize {
        match self.plan.topology {
            Topology::Mesh => 0,
            Topology::Star => self.hub(),
        }
    }

    fn has_failed(&self, station: usize, now: Instant) -> bool {
        station == self.failing() && self.failure.is_some_and(|failure| failure <= now)
    }

    /// True if a packet that arrives at `came` counts as expected after the failure: its whole transit is after the
    /// failure, and within the run.
    fn is_after(&self, came: Instant) -> bool {
        let way = self.plan.carrier.delay * 2 + Duration::from_millis(100);
        self.failure.is_some_and(|failure| failure <= came) && came + way < self.end
    }

    fn count(&mut self, site: usize, number: u32) {
        let receivers = (0..self.flows.len()).filter(|to| *to != site && *to != self.failing()).count();
        if site != self.failing() && self.is_after(self.arrival(site, number)) {
            self.outcome.expected_after += receivers as u64;
        }
    }

    /// Passes a packet to a station for sending.
    fn give(
        &mut self,
        now: Instant,
        station: usize,
        packet: Vec<u8>,
        queue: &mut EventQueue<MeshEvent>,
    ) -> Result<(), BroadcastError> {
        if self.has_failed(station, now) {
            return Ok(());
        }
        self.stations[station].waiting.push_back(packet);
        self.feed(now, station, queue)
    }

    fn feed(
        &mut self,
        now: Instant,
        at: usize,
        queue: &mut EventQueue<MeshEvent>,
    ) -> Result<(), BroadcastError> {
        let station = &mut self.stations[at];
        while station.sender.is_ready() {
            let Some(packet) = station.waiting.pop_front() else { break };
            station.sender.take(now, &packet)?;
            station.sender.go(now)?;
        }
        self.schedule_poll(at, queue);
        Ok(())
    }

    fn schedule_poll(&mut self, at: usize, queue: &mut EventQueue<MeshEvent>) {
        let station = &mut self.stations[at];
        let poll_at = station.sender.poll_at();
        if poll_at != station.polled_at
            && let Some(time) = poll_at
        {
            queue.schedule(time, MeshEvent::Poll(at));
        }
        station.polled_at = poll_at;
    }

    /// Sends a TS packet of every station.
    fn slot(&mut self, now: Instant, queue: &mut EventQueue<MeshEvent>) -> Result<(), BroadcastError> {
        let there = self.plan.carrier.arrival(self.slot);
        for station in 0..self.stations.len() {
            if self.has_failed(station, now) {
                continue;
            }
            if let Some(packet) = self.stations[station].sender.slot() {
                self.outcome.ts_packets += u64::from(now >= self.begin);
                self.broadcast(there, station, &packet, queue);
            }
            self.feed(now, station, queue)?;
        }
        self.slot += 1;
        queue.schedule(self.plan.carrier.slot(self.slot), MeshEvent::Slot);
        Ok(())
    }

    fn broadcast(
        &mut self,
        there: Instant,
        from: usize,
        packet: &TsPacket,
        queue: &mut EventQueue<MeshEvent>,
    ) {
        let mut ears = std::mem::take(&mut self.ears);
        for ear in ears.iter_mut().filter(|ear| ear.from == from) {
            let Ear { to, listener, expected, .. } = ear;
            listener.receive(there, packet, &mut |delivered| match delivered {
                None => self.outcome.wrong += 1,
                Some(packet) if *to == self.hub() => {
                    if !self.has_failed(*to, there) {
                        queue.schedule(there, MeshEvent::AtHub(packet.to_vec()));
                    }
                }
                Some(packet) => self.deliver(there, *to, packet, expected),
            });
        }
        self.ears = ears;
    }

    /// Delivers a packet at a site, which may be its own: the hub sends to all.
    fn deliver(&mut self, there: Instant, to: usize, packet: &[u8], expected: &mut [u32]) {
        let site = self.plan.stack.host(packet).map(usize::from).filter(|site| *site < self.flows.len());
        let Some(site) = site else {
            self.outcome.wrong += 1;
            return;
        };
        let number = expected[site];
        expected[site] += 1;
        self.flows[site].packet(number, &mut self.packet);
        if self.packet != packet {
            self.outcome.wrong += 1;
            return;
        }
        if site == to || self.has_failed(to, there) {
            return;
        }
        let came = self.arrival(site, number);
        if (self.begin..self.end).contains(&there) {
            self.outcome.delays.note(came, there);
        }
        self.outcome.delivered_after +=
            u64::from(self.is_after(came) && site != self.failing() && to != self.failing());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_ule::Since;

    use super::*;
    use crate::broadcast::Filling;

    const PLAN: MeshPlan = MeshPlan {
        topology: Topology::Mesh,
        sites: 3,
        carrier: StreamCarrier {
            bitrate: 3_507_000,
            delay: Duration::from_millis(250),
            filling: Filling::Push { wait: Duration::from_millis(3), since: Since::Last },
            concat: 1,
        },
        stack: ProtocolStack::IPV6_UDP,
        payload: 40,
        packets_per_second: 400,
        refresh: Some(Refresh::Cycle { ir: 3, so: 50, direct: true }),
        warm_up: Duration::from_millis(600),
        window: Duration::from_millis(1_400),
        failure: None,
        seed: 1,
    };

    #[test]
    fn a_hub_doubles_way_and_ts_packets() {
        let mesh = run(&PLAN).unwrap();
        let star = run(&MeshPlan { topology: Topology::Star, ..PLAN }).unwrap();
        assert_eq!((mesh.wrong, star.wrong), (0, 0));
        // 3 sites, each received by 2 others; several packets may arrive at once.
        assert!((3_330..=3_390).contains(&mesh.delays.len()), "{}", mesh.delays.len());
        let [near, far] = [&mesh, &star].map(|outcome| outcome.delays.mean_ms().unwrap());
        assert!((250.0..265.0).contains(&near) && (500.0..525.0).contains(&far), "{near} {far}");
        // The hub receives packets once per TS packet, so that gaps end its wait for another packet.
        let ratio = star.ts_packets as f64 / mesh.ts_packets as f64;
        assert!((1.9..2.3).contains(&ratio), "{ratio}");
    }

    #[test]
    fn without_its_hub_a_star_is_dark_and_a_mesh_lacks_one_site() {
        let failure = Some(Duration::from_millis(700));
        let mesh = run(&MeshPlan { failure, ..PLAN }).unwrap();
        assert!(mesh.expected_after > 500);
        assert_eq!((mesh.delivered_after, mesh.wrong), (mesh.expected_after, 0));
        let star = run(&MeshPlan { failure, topology: Topology::Star, ..PLAN }).unwrap();
        assert!(star.expected_after > 500);
        assert_eq!((star.delivered_after, star.wrong), (0, 0));
    }

    #[test]
    fn a_plan_determines_its_outcome() {
        let star = MeshPlan { topology: Topology::Star, refresh: None, ..PLAN };
        assert_eq!(run(&star).unwrap(), run(&star).unwrap());
        assert!(run(&MeshPlan { sites: 1, ..PLAN }).is_err());
        assert!(run(&MeshPlan { sites: 17, ..PLAN }).is_err());
        assert!(run(&MeshPlan { payload: 2_000, ..PLAN }).is_err());
    }
}
