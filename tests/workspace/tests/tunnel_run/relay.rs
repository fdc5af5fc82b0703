//! Relay between two ends, for datagrams or octets of a line, with impairments from a seed.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thinair_os::serial::Pty;
use thinair_os::{EventLoop, Namespace, clock};

/// Number of datagrams that are kept, for attacks derived from them.
const KEPT: usize = 512;

/// Random numbers from a seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct RelayRandom(pub(crate) u64);

impl RelayRandom {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// True with a probability in a million.
    fn happens(&mut self, in_a_million: u32) -> bool {
        self.next() % 1_000_000 < u64::from(in_a_million)
    }

    pub(crate) fn octets(&mut self, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes());
        words.take(len).collect()
    }

    fn flip_a_bit(&mut self, octets: &mut [u8]) {
        if !octets.is_empty() {
            let at = self.below(octets.len());
            octets[at] ^= 1 << self.below(8);
        }
    }
}

/// Impairments: each rate is per million datagrams, or octets of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harm {
    pub(crate) lost: u32,
    /// One bit is flipped.
    pub(crate) damaged: u32,
    /// Every datagram is sent a second time after this delay.
    pub(crate) again: Option<Duration>,
    /// Every datagram is also sent back to its sender.
    pub(crate) reflected: bool,
}

impl Harm {
    pub(crate) const NONE: Self = Self { lost: 0, damaged: 0, again: None, reflected: false };
    /// For datagrams.
    pub(crate) const BAD: Self = Self { lost: 20_000, damaged: 10_000, ..Self::NONE };
    /// For octets of a line: an event in 20,000 of them.
    pub(crate) const BAD_LINE: Self = Self { lost: 25, damaged: 25, ..Self::NONE };
}

/// Counters and configuration of a relay.
#[derive(Debug, Default)]
struct RelayState {
    harm: Mutex<Harm>,
    stop: AtomicBool,
    lost: AtomicU64,
    damaged: AtomicU64,
    kept: Mutex<VecDeque<Vec<u8>>>,
    /// True if datagrams to end B come from another port.
    has_moved: AtomicBool,
}

/// Relay, ended on drop.
#[derive(Debug)]
pub(crate) struct Relay {
    shared: Arc<RelayState>,
    threads: Vec<JoinHandle<()>>,
    /// Sockets that face the ends, and a second one for end B.
    sockets: Vec<Arc<UdpSocket>>,
    ends: Vec<SocketAddr>,
}

impl Relay {
    /// Creates a relay between two ends: each has a socket of the relay for the other one.
    pub(crate) fn of_datagrams(
        namespace: &Namespace,
        sockets: [SocketAddr; 2],
        ends: [SocketAddr; 2],
    ) -> Self {
        let shared = Arc::new(RelayState::default());
        let elsewhere = SocketAddr::new(sockets[1].ip(), 0);
        let bound = [sockets[0], sockets[1], elsewhere].map(|address| {
            let socket = namespace.within(|| UdpSocket::bind(address)).unwrap().unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            let _ = thinair_os::udp::set_receive_room(&socket, 4 << 20);
            Arc::new(socket)
        });
        let threads = [(0, [1, 2]), (1, [0, 0]), (2, [0, 0])].map(|(near, far)| {
            let (shared, bound) = (Arc::clone(&shared), bound.clone());
            std::thread::spawn(move || {
                let way = RelayDirection {
                    near: (&bound[near], ends[near.min(1)]),
                    far: far.map(|far| &*bound[far]),
                    to: ends[far[0]],
                };
                carry_datagrams(&shared, &way, RelayRandom(0x5eed + near as u64));
            })
        });
        Self { shared, threads: threads.into(), sockets: bound.to_vec(), ends: ends.to_vec() }
    }

    /// Creates a relay between two lines.
    pub(crate) fn of_lines(lines: [Pty; 2]) -> Self {
        let shared = Arc::new(RelayState::default());
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || carry_octets(&shared, &lines)
        });
        Self { shared, threads: vec![thread], sockets: Vec::new(), ends: Vec::new() }
    }

    /// Sets the impairments from now on.
    pub(crate) fn set(&self, harm: Harm) {
        *self.shared.harm.lock().unwrap() = harm;
    }

    /// Moves end A to another port, or back, as end B sees it.
    pub(crate) fn roam(&self) {
        self.shared.has_moved.fetch_xor(true, Ordering::Relaxed);
    }

    /// Sends a datagram to an end, in the name of the other one. Returns whether it left.
    pub(crate) fn send(&self, side: usize, datagram: &[u8]) -> bool {
        self.sockets[side].send_to(datagram, self.ends[side]).is_ok()
    }

    /// Number of datagrams, or octets, that were lost and damaged.
    pub(crate) fn done(&self) -> (u64, u64) {
        (self.shared.lost.load(Ordering::Relaxed), self.shared.damaged.load(Ordering::Relaxed))
    }

    /// Socket that faces an end: its datagrams come from the apparent address of the other end.
    pub(crate) fn socket(&self, side: usize) -> &UdpSocket {
        &self.sockets[side]
    }

    /// Latest datagrams that passed.
    pub(crate) fn kept(&self) -> Vec<Vec<u8>> {
        self.shared.kept.lock().unwrap().iter().cloned().collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One direction of datagrams: the relay's socket and the end on this side, its sockets on the other side, before and after a move, and the
/// end there.
struct RelayDirection<'a> {
    near: (&'a UdpSocket, SocketAddr),
    far: [&'a UdpSocket; 2],
    to: SocketAddr,
}

fn carry_datagrams(shared: &RelayState, way: &RelayDirection<'_>, mut random: RelayRandom) {
    let mut later: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut room = vec![0; 65_536];
    while !shared.stop.load(Ordering::Relaxed) {
        let received = way.near.0.recv_from(&mut room);
        let harm = *shared.harm.lock().unwrap();
        let far = way.far[usize::from(shared.has_moved.load(Ordering::Relaxed))];
        while later.front().is_some_and(|(at, _)| *at <= Instant::now()) {
            let _ = far.send_to(&later.pop_front().unwrap().1, way.to);
        }
        let Ok((len, from)) = received else { continue };
        if from != way.near.1 {
            continue;
        }
        let datagram = &mut room[..len];
        {
            let mut kept = shared.kept.lock().unwrap();
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(datagram.to_vec());
        }
        if harm.reflected {
            let _ = way.near.0.send_to(datagram, way.near.1);
        }
        if let Some(wait) = harm.again {
            later.push_back((Instant::now() + wait, datagram.to_vec()));
        }
        if random.happens(harm.lost) {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        if random.happens(harm.damaged) {
            shared.damaged.fetch_add(1, Ordering::Relaxed);
            random.flip_a_bit(datagram);
        }
        let _ = far.send_to(datagram, way.to);
    }
}

/// Octets that may wait for a line that accepts no more.
const WAITING: usize = 8_192;

fn carry_octets(shared: &RelayState, lines: &[Pty; 2]) {
    let mut events = EventLoop::new(Duration::ZERO).unwrap();
    for (line, token) in lines.iter().zip(0..) {
        events.add(line, token).unwrap();
    }
    let mut random = RelayRandom(0x11e5);
    // Octets that wait for each line.
    let mut waiting = [Vec::new(), Vec::new()];
    let (mut ready, mut room) = (Vec::new(), [0; 4_096]);
    while !shared.stop.load(Ordering::Relaxed) {
        let stuck = waiting.iter().any(|waiting: &Vec<u8>| !waiting.is_empty());
        if stuck {
            // The line is read soon; epoll would not wait if the other direction has input.
            std::thread::sleep(Duration::from_micros(200));
        } else {
            events.wait(Some(clock::now() + Duration::from_millis(20)), &mut ready).unwrap();
        }
        let harm = *shared.harm.lock().unwrap();
        for (from, line) in lines.iter().enumerate() {
            let waiting = &mut waiting[1 - from];
            if waiting.len() < WAITING
                && let Ok(len) = line.read(&mut room)
            {
                for &octet in &room[..len] {
                    if random.happens(harm.lost) {
                        shared.lost.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let is_damaged = random.happens(harm.damaged);
                    shared.damaged.fetch_add(u64::from(is_damaged), Ordering::Relaxed);
                    waiting.push(if is_damaged { octet ^ (1 << random.below(8)) } else { octet });
                }
            }
            while let Ok(len @ 1..) = if waiting.is_empty() { Ok(0) } else { lines[1 - from].write(waiting) }
            {
                waiting.drain(..len);
            }
        }
    }
}
