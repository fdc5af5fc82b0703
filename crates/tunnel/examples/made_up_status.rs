//! A status socket with simulated traffic, for `thinair tunnel page`: `cargo run -p thinair-tunnel --example made_up_status --
//! PATH [busy|quiet|costly] [speed]`.
//!
//! `speed`: speed of the simulated daemon relative to real time. Default: 1.

use std::path::Path;
use std::time::{Duration, Instant};

use thinair_tunnel::status::socket::StatusSocket;
use thinair_tunnel::status::{
    CarrierLoss, CarrierStatus, ContextCount, Counters, Drop, Failure, Identity, InsideStatus, PeerCounters,
    PeerKind, PeerStatus, Side, Status,
};
use thinair_wire::time::Instant as Time;

/// Time step of the simulated daemon, in seconds.
const STEP: f64 = 0.25;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give the path of the socket")?;
    let kind = arguments.next().unwrap_or("busy".to_owned());
    let speed: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let mut socket = StatusSocket::bind(Path::new(&path))?;
    println!("thinair tunnel page {path}");
    let begun = Instant::now();
    let mut made_up = MadeUp::new(&kind);
    loop {
        while made_up.uptime < 20.0 + speed * begun.elapsed().as_secs_f64() {
            made_up.step();
        }
        let now = Time::from_millis(begun.elapsed().as_millis() as u64);
        socket.accept_and_answer(now, || made_up.status());
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct MadeUp {
    kind: String,
    uptime: f64,
    random: u64,
    counters: Counters,
    peers: [PeerCounters; 2],
}

impl MadeUp {
    fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            uptime: 0.0,
            random: 1,
            counters: Counters::new(64),
            peers: [PeerCounters::default(); 2],
        }
    }

    /// Returns a pseudorandom number from 0 to 1 (xorshift).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Simulates calls that come and go, and requests of sensors.
    fn step(&mut self) {
        self.uptime += STEP;
        if self.kind == "quiet" {
            return;
        }
        let calls = 6.0 + 5.0 * (self.uptime / 47.0).sin() + 2.0 * (self.uptime / 11.0).sin();
        let packets = (STEP * (50.0 * calls + 40.0 * self.draw())) as usize;
        for _ in 0..packets {
            let payload = if self.kind == "costly" { 20 } else { 20 + 100 * usize::from(self.draw() < 0.1) };
            let (inside, compressed) = (40 + payload, 3 + payload);
            let peer = usize::from(self.draw() < 0.2);
            let several = if self.kind == "costly" { 1 } else { 4 };
            let way_out = self.draw() < 0.55;
            let took = 18_000.0 + 22_000.0 * self.draw() + 400_000.0 * self.draw().powi(40);
            let (counters, peer) = (&mut self.counters, &mut self.peers[peer]);
            let datagram = several as usize * (compressed + 1) + 47;
            if way_out {
                counters.sent.packet(inside, compressed);
                peer.sent.packet(inside, compressed);
                counters.latency_sent.record(took as u64);
                if peer.sent.packets.is_multiple_of(several) {
                    counters.sent_datagram(datagram);
                    peer.sent.datagram(datagram);
                }
            } else {
                counters.received.packet(inside, compressed);
                peer.received.packet(inside, compressed);
                counters.latency_received.record(took as u64);
                if peer.received.packets.is_multiple_of(several) {
                    counters.received_datagram(datagram);
                    peer.received.datagram(datagram);
                }
            }
            if self.draw() < 0.002 {
                self.counters.drops.count(Drop::Replayed);
            }
            if self.draw() < 0.001 {
                self.counters.drops.count(Drop::Decompression);
                self.peers[0].failures.count(Failure::Crc);
                self.peers[0].feedback.sent.nacks += 1;
                self.peers[1].feedback.received.nacks += 1;
            }
        }
        if self.uptime > 60.0 && self.draw() < 0.01 {
            self.counters.drops.count(Drop::TooLong);
        }
    }

    fn status(&self) -> Status {
        let identity = Identity {
            site: None,
            inside: InsideStatus {
                name: "air0".to_owned(),
                bridged: false,
                mtu: 1400,
                addresses: vec!["10.9.0.1/24".to_owned(), "fd00:9::1/64".to_owned()],
                up: true,
                offloads: Vec::new(),
            },
            carrier: CarrierStatus {
                url: "udp://0.0.0.0:4754".to_owned(),
                mtu: 1500,
                overhead: 48,
                ..CarrierStatus::default()
            },
            security: "Noise NNpsk0, ChaCha20-Poly1305, tag of 16 octets".to_owned(),
        };
        let mut status = Status::new(identity, &self.counters, self.uptime, self.uptime * 0.031);
        let is_quiet = self.kind == "quiet";
        for (at, name) in ["hill-station", "valley"].into_iter().enumerate() {
            let count = |side, profile: &str, state: &str, contexts| ContextCount {
                side,
                profile: profile.to_owned(),
                mode: "O".to_owned(),
                state: state.to_owned(),
                contexts,
            };
            let contexts = vec![
                count(Side::Compressor, "rtp", "SO", 5),
                count(Side::Compressor, "coap", "FO", 1),
                count(Side::Decompressor, "rtp", "FC", 5),
                count(Side::Decompressor, "coap", "FC", 2),
            ];
            status.peers.push(PeerStatus {
                suite: None,
                source_not_allowed: None,
                name: name.to_owned(),
                kind: PeerKind::Peer,
                address: (at == 0 || !is_quiet).then(|| format!("198.51.100.{}:4754", 7 + at)),
                session_seconds: (!is_quiet).then_some(self.uptime),
                heard_seconds: (!is_quiet).then_some(0.02),
                trouble: None,
                loss: (!is_quiet).then(|| CarrierLoss::new(12, 4_000)),
                round_trip_seconds: (!is_quiet).then_some(0.58),
                cids: None,
                nat: None,
                counters: self.peers[at],
                contexts: if is_quiet { Vec::new() } else { contexts },
            });
        }
        status
    }
}
