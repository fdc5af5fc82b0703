//! Our TCP against that of smoltcp, in virtual time: every octet arrives, whichever side opens, and resets are handled.

#![allow(clippy::unwrap_used)]

use core::time::Duration;
use std::collections::VecDeque;

use smoltcp::iface::{Config as InterfaceConfig, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp as theirs;
use smoltcp::time::Instant as TheirInstant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use thinair_simulation::tcp::{CongestionAlgorithm, Nagle, TcpConfig, TcpConnection, TcpEvent, TcpSegment};
use thinair_simulation::{EventQueue, Purpose, RandomStream, RandomStreams};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::time::Instant;

const OURS: [u8; 4] = [10, 0, 0, 1];
const THEIRS: [u8; 4] = [10, 0, 0, 2];
const PORTS: [u16; 2] = [5_683, 40_000];

/// Parameters of a run, derived from its seed.
struct Scene {
    seed: u64,
    config: TcpConfig,
    we_open: bool,
    /// Buffers of smoltcp, in octets.
    buffers: [usize; 2],
    cubic: bool,
    /// smoltcp uses timestamps.
    timestamps: bool,
    /// Octets of ours, and of smoltcp's.
    sizes: [usize; 2],
    /// Losses, and late packets, in percent.
    loss: u64,
    late: u64,
    delay: Duration,
    /// Interval at which applications read; `None`: at once.
    idle: Option<Duration>,
}

impl Scene {
    /// A link without losses, and small data in both directions.
    fn calm(seed: u64, we_open: bool) -> Self {
        Self {
            seed,
            config: TcpConfig::default(),
            we_open,
            buffers: [65_535; 2],
            cubic: false,
            timestamps: true,
            sizes: [5_000, 3_000],
            loss: 0,
            late: 0,
            delay: Duration::from_millis(50),
            idle: None,
        }
    }

    fn drawn(seed: u64) -> Self {
        let mut draws = RandomStreams::new(seed).stream(0, 0, Purpose::Choice);
        let mut yes = || draws.below(2) == 1;
        let (sack, timestamps, limited_transmit, tail_loss_probe) = (yes(), yes(), yes(), yes());
        let (we_open, cubic, slow, small) = (yes(), yes(), yes(), yes());
        let algorithm = if yes() { CongestionAlgorithm::Reno } else { CongestionAlgorithm::Cubic };
        let nagle = if yes() { Nagle::On } else { Nagle::Minshall };
        let mut between = |low: u64, high: u64| low + draws.below(high - low);
        let most = if small { 4_000 } else { 65_000 };
        Self {
            seed,
            config: TcpConfig {
                sack,
                timestamps,
                limited_transmit,
                tail_loss_probe,
                algorithm,
                nagle,
                mss: between(60, 1_460) as u16,
                receive_buffer: between(600, most) as u32,
                ..TcpConfig::default()
            },
            we_open,
            buffers: [between(600, most) as usize, between(600, most) as usize],
            cubic,
            timestamps: between(0, 2) == 1,
            sizes: [between(1, 60_000) as usize, between(1, 60_000) as usize],
            loss: between(0, 15),
            late: between(0, 20),
            delay: Duration::from_millis(between(1, 200)),
            idle: slow.then(|| Duration::from_millis(between(1, 900))),
        }
    }

    fn content(&self, side: usize) -> Vec<u8> {
        (0..self.sizes[side]).map(|i| (i * 31 + i / 251 + 7 * side) as u8).collect()
    }
}

fn address(octets: [u8; 4]) -> IpAddress {
    IpAddress::Ipv4(octets.into())
}

/// Packets between the wire and smoltcp's interface.
struct Queues {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct ReceivedPacket(Vec<u8>);

struct SentPacket<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::Device for Queues {
    type RxToken<'a> = ReceivedPacket;
    type TxToken<'a> = SentPacket<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, 1_500);
        capabilities
    }

    fn receive(&mut self, _: TheirInstant) -> Option<(ReceivedPacket, SentPacket<'_>)> {
        let packet = self.received.pop_front()?;
        Some((ReceivedPacket(packet), SentPacket(&mut self.sent)))
    }

    fn transmit(&mut self, _: TheirInstant) -> Option<SentPacket<'_>> {
        Some(SentPacket(&mut self.sent))
    }
}

impl phy::RxToken for ReceivedPacket {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for SentPacket<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}

#[derive(Clone, Debug)]
enum SceneEvent {
    /// Arrival of a packet, at us (0) or at smoltcp.
    Packet(usize, Vec<u8>),
    Timer(usize),
    /// Applications read.
    Look,
}

struct SceneWorld {
    scene: Scene,
    queue: EventQueue<SceneEvent>,
    draws: RandomStream,
    ours: TcpConnection,
    events: Vec<TcpEvent>,
    interface: Interface,
    device: Queues,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// Octets of ours, and of smoltcp's, that were written, and that the other side has read.
    written: [usize; 2],
    content: [Vec<u8>; 2],
    read: [Vec<u8>; 2],
    packets: [u64; 2],
    /// Times of our next timer and of smoltcp's.
    at: [Option<Instant>; 2],
}

impl SceneWorld {
    fn new(scene: Scene) -> Self {
        let mut device = Queues { received: VecDeque::new(), sent: VecDeque::new() };
        let mut config = InterfaceConfig::new(HardwareAddress::Ip);
        config.random_seed = scene.seed;
        let mut interface = Interface::new(config, &mut device, TheirInstant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address(THEIRS), 24)).unwrap();
        });
        let buffer = |octets| theirs::SocketBuffer::new(vec![0; octets]);
        let mut socket = theirs::Socket::new(buffer(scene.buffers[0]), buffer(scene.buffers[1]));
        if scene.cubic {
            socket.set_congestion_control(theirs::CongestionControl::Cubic);
        }
        if scene.timestamps {
            socket.set_tsval_generator(Some(|| 77));
        }
        let ours = if scene.we_open {
            socket.listen(PORTS[1]).unwrap();
            TcpConnection::connect(scene.config, Instant::ZERO, 0xFFFF_F000)
        } else {
            let remote = (address(OURS), PORTS[0]);
            socket.connect(interface.context(), remote, PORTS[1]).unwrap();
            TcpConnection::listen(scene.config, 0xFFFF_F000)
        };
        let mut sockets = SocketSet::new(vec![]);
        let handle = sockets.add(socket);
        let draws = RandomStreams::new(scene.seed).stream(0, 0, Purpose::Link);
        let mut queue = EventQueue::new();
        queue.schedule(Instant::ZERO, SceneEvent::Look);
        Self {
            queue,
            draws,
            ours,
            events: Vec::new(),
            interface,
            device,
            sockets,
            handle,
            written: [0; 2],
            content: [scene.content(0), scene.content(1)],
            read: [Vec::new(), Vec::new()],
            packets: [0; 2],
            at: [None; 2],
            scene,
        }
    }

    fn theirs(&mut self) -> &mut theirs::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    /// Runs until `end`, or until no event is left.
    fn run(&mut self, end: Duration) {
        while let Some((now, what)) = self.queue.next_before(Instant::ZERO + end) {
            match what {
                SceneEvent::Packet(0, packet) => {
                    if let Some(segment) = read(&packet) {
                        self.ours.handle_segment(now, &segment);
                    }
                }
                SceneEvent::Packet(_, packet) => self.device.received.push_back(packet),
                SceneEvent::Timer(end) if self.at[end] == Some(now) => {
                    self.at[end] = None;
                    if end == 0 {
                        self.ours.handle_timeout(now);
                    }
                }
                SceneEvent::Timer(_) => continue,
                SceneEvent::Look => {
                    self.apply(now);
                    if let Some(idle) = self.scene.idle.filter(|_| !self.ours.is_closed()) {
                        self.queue.schedule(now + idle, SceneEvent::Look);
                    }
                }
            }
            self.flush(now);
            if self.scene.idle.is_none() {
                self.apply(now);
                self.flush(now);
            }
        }
    }

    /// Both applications write as much as there is room for, read everything, and close after the last octet.
    fn apply(&mut self, now: Instant) {
        self.written[0] += self.ours.write(now, &self.content[0][self.written[0]..]);
        if self.written[0] == self.content[0].len() {
            self.ours.close(now);
        }
        self.read[0].extend(self.ours.read(usize::MAX));

        let rest = &self.content[1][self.written[1]..];
        let socket = self.sockets.get_mut::<theirs::Socket<'_>>(self.handle);
        let mut got = Vec::new();
        while socket.can_recv() {
            let _ = socket.recv(|octets| {
                got.extend_from_slice(octets);
                (octets.len(), ())
            });
        }
        let mut sent = 0;
        if socket.may_send() {
            sent = socket.send_slice(rest).unwrap_or(0);
            if sent == rest.len() {
                socket.close();
            }
        }
        self.written[1] += sent;
        self.read[1].extend(got);
    }

    fn flush(&mut self, now: Instant) {
        while let Some(segment) = self.ours.poll_transmit(now) {
            self.send(now, 0, write(&segment));
        }
        self.events.extend(std::iter::from_fn(|| self.ours.poll_event()));
        let theirs = TheirInstant::from_micros((now.as_nanos() / 1_000) as i64);
        self.interface.poll(theirs, &mut self.device, &mut self.sockets);
        while let Some(packet) = self.device.sent.pop_front() {
            self.send(now, 1, packet);
        }
        let ours = self.ours.poll_timeout();
        // smoltcp counts microseconds.
        let theirs = self.interface.poll_at(theirs, &self.sockets).map(|at| {
            Instant::from_nanos(1_000 * at.total_micros() as u64).max(now + Duration::from_micros(1))
        });
        for (end, at) in [ours, theirs].into_iter().enumerate() {
            if let Some(at) = at.filter(|at| self.at[end].is_none_or(|before| *at < before)) {
                self.at[end] = Some(at);
                self.queue.schedule(at, SceneEvent::Timer(end));
            }
        }
    }

    fn send(&mut self, now: Instant, from: usize, packet: Vec<u8>) {
        self.packets[from] += 1;
        assert!(self.packets[from] < 100_000, "it never ends");
        let lost = self.draws.below(100) < self.scene.loss;
        let more = if self.draws.below(100) < self.scene.late { self.draws.below(80) } else { 0 };
        if !lost {
            let at = now + self.scene.delay + Duration::from_millis(more);
            self.queue.schedule(at, SceneEvent::Packet(1 - from, packet));
        }
    }

    /// True if smoltcp waits for nothing, although octets or a FIN of it are unacknowledged: smoltcp 0.14 sets no timer
    /// for segments that it sends when a closed window opens. If such a segment is lost, both sides wait forever.
    fn check_stalled(&mut self) -> bool {
        let now = TheirInstant::from_micros((self.queue.now().as_nanos() / 1_000) as i64);
        let waits = self.interface.poll_at(now, &self.sockets).is_some();
        let socket = self.theirs();
        let closes = matches!(
            socket.state(),
            theirs::State::FinWait1 | theirs::State::Closing | theirs::State::LastAck
        );
        let owes = closes || socket.send_queue() > 0;
        !waits && owes && self.ours.status().in_flight == 0
    }

    /// Checks that all octets have arrived and both ends have closed.
    fn check(&mut self) {
        let state = self.theirs().state();
        let what = format!(
            "seed {}: {} of {} octets here, {} of {} there, {:?}, {:?}",
            self.scene.seed,
            self.read[0].len(),
            self.scene.sizes[1],
            self.read[1].len(),
            self.scene.sizes[0],
            self.ours.status(),
            state,
        );
        assert!(self.read[0] == self.content[1] && self.read[1] == self.content[0], "{what}");
        assert!(self.ours.is_closed(), "{what}");
        assert!(matches!(state, theirs::State::Closed | theirs::State::TimeWait), "{what}");
        // smoltcp's TIME-WAIT is 10 s: a side that loses the last acknowledgment and waits longer then finds no
        // connection.
        let ended = [TcpEvent::Finished, TcpEvent::Reset].iter().any(|event| self.events.contains(event));
        assert!(ended && self.events.contains(&TcpEvent::PeerClosed), "{what}, {:?}", self.events);
    }
}

fn pseudo(from: [u8; 4], to: [u8; 4]) -> Sum {
    Sum::ZERO.octets(&from).octets(&to).word(6)
}

/// Packet of one of our segments.
fn write(segment: &TcpSegment) -> Vec<u8> {
    let octets = segment.write(PORTS[0], PORTS[1], pseudo(OURS, THEIRS));
    let header = Ipv4 {
        total_length: (Ipv4::LEN + octets.len()) as u16,
        df: true,
        ttl: 64,
        protocol: 6,
        source: OURS,
        destination: THEIRS,
        ..Ipv4::default()
    };
    let mut packet = vec![0; Ipv4::LEN];
    header.write(&mut packet, 0).unwrap();
    let checksum = Ipv4::checksum_of(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(octets);
    packet
}

/// Segment of a packet of smoltcp, whose checksums are right.
fn read(packet: &[u8]) -> Option<TcpSegment> {
    let ip = Ipv4::read(packet).unwrap();
    assert!(Ipv4::checksum_is_right(&packet[..Ipv4::LEN]));
    let octets = &packet[Ipv4::LEN..usize::from(ip.total_length)];
    (ip.protocol == 6).then(|| TcpSegment::read(octets, pseudo(THEIRS, OURS)).unwrap().2)
}

#[test]
fn whoever_opens_octets_arrive_both_ways_and_both_ends_close() {
    for we_open in [true, false] {
        let mut world = SceneWorld::new(Scene::calm(1, we_open));
        world.run(Duration::from_secs(60));
        world.check();
        assert!(world.events.contains(&TcpEvent::Finished) && !world.events.contains(&TcpEvent::Reset));
        assert_eq!(world.ours.status().retransmissions, 0);
        assert_eq!(world.ours.status().smoothed_rtt.map(|rtt| rtt.as_millis() / 10), Some(10));
    }
}

/// Losses, late packets, small buffers, applications that do not read: an hour is enough for all of them.
#[test]
fn octets_arrive_whatever_is_lost_and_however_small_windows_are() {
    let (mut again, mut refused, mut stalled) = (0, 0, 0);
    for seed in 0..1_000 {
        let mut world = SceneWorld::new(Scene::drawn(seed));
        world.run(Duration::from_secs(3_600));
        if world.check_stalled() {
            stalled += 1;
            continue;
        }
        world.check();
        again += world.ours.status().retransmissions;
        refused += u32::from(world.events.contains(&TcpEvent::Reset));
    }
    assert!(again > 1_000 && refused < 50, "{again} retransmissions, {refused} last acknowledgments missed");
    assert!(stalled <= 5, "{stalled} of 1,000 stalled");
}

#[test]
fn a_reset_of_one_end_is_heard_by_the_other() {
    for seed in 0..20 {
        let scene = |seed| Scene { sizes: [1 << 20; 2], ..Scene::calm(seed, seed % 2 == 0) };
        let mut world = SceneWorld::new(scene(seed));
        world.run(Duration::from_millis(300 + 37 * seed));
        let now = world.queue.now();
        assert!(world.ours.is_open());
        world.ours.abort();
        world.flush(now);
        world.run(Duration::from_secs(10));
        assert_eq!(world.theirs().state(), theirs::State::Closed, "seed {seed}");

        let mut world = SceneWorld::new(scene(seed));
        world.run(Duration::from_millis(300 + 37 * seed));
        let now = world.queue.now();
        world.theirs().abort();
        world.flush(now);
        world.run(Duration::from_secs(10));
        assert!(world.ours.is_closed() && world.events.contains(&TcpEvent::Reset), "seed {seed}");
    }
}

#[test]
fn where_nobody_listens_a_connection_is_refused() {
    let mut world = SceneWorld::new(Scene::calm(1, true));
    world.theirs().abort();
    world.run(Duration::from_secs(10));
    assert_eq!(world.events, [TcpEvent::Reset]);
    assert!(world.ours.is_closed());
}
