//! Packets per second between two hosts, and their round trips, for any connection of the hosts.
//!
//! Each host is a network namespace with a TUN device [`INTERFACE`] and an address. The connection of the devices is a
//! function: the [plain forwarder](forward), a thread that reads packets from one and writes them to the other, or two
//! ends of a tunnel. Everything runs on one machine, including the generator, so that figures are only comparable with
//! others of one run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use thinair_os::{Error, EventLoop, Interface, Namespace, Ping, Route, Tun, TunKind, Waker, clock, udp};

/// Name of the device in both namespaces.
pub const INTERFACE: &str = "link0";

/// Address of the sending host.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 1);

/// Address of the receiving host.
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 2);

/// Maximum number of packets read from one device before the other.
const AT_A_TIME: usize = 64;

/// Port of the datagrams.
const PORT: u16 = 9_999;

/// Time that the load runs before the measurement.
const WARM_UP: Duration = Duration::from_millis(300);

/// Time limit for the hosts to be connected.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two hosts, removed on drop.
#[derive(Debug)]
pub struct LoadHosts {
    here: Namespace,
    there: Namespace,
}

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadPlan {
    /// Payload of a UDP datagram, in octets: at least 8.
    pub payload: usize,
    /// Datagrams per second; `None`: as fast as a thread can send.
    pub rate: Option<u64>,
    /// Duration of the load.
    pub time: Duration,
    /// Number of consecutive echo requests before the load.
    pub pings: usize,
}

/// Results of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// Datagrams sent per second.
    pub sent: f64,
    /// Packets per second that left the far device.
    pub delivered: f64,
    /// Round trips of echo requests, the shortest first.
    pub round_trips: Vec<Duration>,
    /// Echo requests that were not answered.
    pub unanswered: usize,
    /// Threads or processes that connected the hosts.
    pub ends: Vec<LoadEnd>,
}

/// Thread or process that carries packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadEnd {
    /// Name.
    pub name: String,
    /// Packets that it carried, in both directions.
    pub packets: u64,
    /// CPU time.
    pub processor: Duration,
}

/// Reason that a load could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system rejected an operation.
    #[error(transparent)]
    Os(#[from] Error),
    /// A packet could not be sent or received.
    #[error("cannot send or receive packets")]
    Io(#[from] io::Error),
    /// The connection of the hosts failed.
    #[error("the connection of the hosts failed: {0}")]
    Ends(String),
    /// No echo request was answered.
    #[error("no packet passed between the hosts within {} s", PATIENCE.as_secs())]
    NotJoined,
}

impl LoadOutcome {
    /// Median round trip; `None` if no request was answered.
    pub fn median(&self) -> Option<Duration> {
        self.round_trips.get(self.round_trips.len() / 2).copied()
    }
}

impl LoadEnd {
    /// CPU time per packet, in microseconds.
    pub fn cost(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.packets.max(1) as f64
    }
}

impl LoadHosts {
    /// Creates two hosts without a connection.
    ///
    /// # Errors
    /// The caller may not create namespaces (root).
    pub fn create() -> Result<Self, LoadError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let make = |which: &str| -> Result<Namespace, Error> {
            let namespace =
                Namespace::create(&format!("thinair-load-{}-{number}{which}", std::process::id()))?;
            namespace.quiet()?;
            namespace.allow_pings()?;
            Ok(namespace)
        };
        Ok(Self { here: make("a")?, there: make("b")? })
    }

    /// Sending host.
    pub fn here(&self) -> &Namespace {
        &self.here
    }

    /// Receiving host.
    pub fn there(&self) -> &Namespace {
        &self.there
    }

    /// Creates the device of both hosts, with address and route, for connections that do not create it.
    ///
    /// # Errors
    /// There is a device of that name, or the caller may create none.
    pub fn tuns(&self) -> Result<[Tun; 2], LoadError> {
        let make = |namespace: &Namespace, own: Ipv4Addr, other: Ipv4Addr| -> Result<Tun, Error> {
            namespace.within(|| {
                let tun = Tun::open(INTERFACE, TunKind::Tun)?;
                let interface = Interface::named(INTERFACE)?;
                interface.quiet()?;
                interface.up()?;
                interface.add_address(own.into(), 32)?;
                let route =
                    Route { to: (other.into(), 32), from: Some(own.into()), mtu: 0, congestion: None };
                interface.add_route(&route)?;
                Ok(tun)
            })?
        };
        Ok([make(&self.here, HERE, THERE)?, make(&self.there, THERE, HERE)?])
    }

    /// Measures a load while `join` connects the hosts, in its own thread. `join` must return its counters when the
    /// waker wakes it.
    ///
    /// # Errors
    /// The connection fails, ends too early, or delivers nothing.
    pub fn measure(
        &self,
        load: &LoadPlan,
        join: impl FnOnce(&Waker) -> Result<Vec<LoadEnd>, String> + Send,
    ) -> Result<LoadOutcome, LoadError> {
        let stop = Waker::new()?;
        std::thread::scope(|scope| {
            let joining = scope.spawn(|| join(&stop));
            let measured = self.pings_and_load(load, || joining.is_finished());
            stop.ring();
            let ends = joining.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let ends = ends.map_err(LoadError::Ends)?;
            Ok(LoadOutcome { ends, ..measured? })
        })
    }

    fn pings_and_load(&self, load: &LoadPlan, is_over: impl Fn() -> bool) -> Result<LoadOutcome, LoadError> {
        let mut ping = self.wait_until_joined(is_over)?;
        let mut round_trips = Vec::with_capacity(load.pings);
        for _ in 0..load.pings {
            // Separates the echo requests, so that back-to-back handling is not measured.
            std::thread::sleep(Duration::from_millis(1));
            round_trips.extend(ping.once(&[0; 56], Duration::from_millis(100))?);
        }
        round_trips.sort_unstable();
        let unanswered = load.pings - round_trips.len();
        let (sent, delivered) = self.load(load)?;
        Ok(LoadOutcome { sent, delivered, round_trips, unanswered, ends: Vec::new() })
    }

    /// Waits until the device exists and a request is answered.
    fn wait_until_joined(&self, is_over: impl Fn() -> bool) -> Result<Ping, LoadError> {
        let end = clock::now() + PATIENCE;
        while clock::now() < end && !is_over() {
            let ping = self.here.within(|| Ping::to(IpAddr::V4(THERE)))?;
            if let Ok(mut ping) = ping
                && let Ok(Some(_)) = ping.once(&[0; 56], Duration::from_millis(100))
            {
                return Ok(ping);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(LoadError::NotJoined)
    }

    /// Returns datagrams sent and packets delivered per second.
    fn load(&self, load: &LoadPlan) -> Result<(f64, f64), LoadError> {
        // A socket must listen, or each datagram would be answered by an error. It is not read: deliveries are counted
        // at the device, which leaves CPU time to the measured code.
        let _listener = self.there.within(|| UdpSocket::bind((THERE, PORT)))??;
        let socket = self.here.within(|| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((HERE, 0))?;
            socket.connect((THERE, PORT))?;
            Ok(socket)
        })??;
        let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
        let look = || -> Result<_, LoadError> {
            Ok((clock::now(), sent.load(Ordering::Relaxed), received(&self.there)?))
        };
        std::thread::scope(|scope| {
            let generator = scope.spawn(|| generate(&socket, load, &stop, &sent));
            std::thread::sleep(WARM_UP);
            let before = look();
            std::thread::sleep(load.time);
            let after = look();
            stop.store(true, Ordering::Relaxed);
            generator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let (before, after) = (before?, after?);
            let seconds = after.0.since(before.0).as_secs_f64();
            Ok(((after.1 - before.1) as f64 / seconds, after.2.saturating_sub(before.2) as f64 / seconds))
        })
    }
}

/// Sends numbered datagrams until it is stopped.
fn generate(socket: &UdpSocket, load: &LoadPlan, stop: &AtomicBool, sent: &AtomicU64) -> io::Result<()> {
    let mut payloads = vec![vec![0; load.payload.max(8)]; udp::MOST];
    let begin = clock::now();
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let due = load.rate.map_or(u64::MAX, |rate| {
            let all = rate as f64 * clock::now().since(begin).as_secs_f64();
            (all as u64).saturating_sub(number)
        });
        let count = due.min(udp::MOST as u64) as usize;
        if count == 0 {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        for (number, payload) in (number..).zip(&mut payloads[..count]) {
            payload[..8].copy_from_slice(&number.to_be_bytes());
        }
        let slices: [&[u8]; udp::MOST] = std::array::from_fn(|i| &payloads[i][..]);
        match udp::send(socket, None, &slices[..count]) {
            Ok(count) => number += count as u64,
            // The queue of the device is full.
            Err(why) if why.raw_os_error() == Some(NO_BUFFER) => number += 1,
            Err(why) => return Err(why),
        }
        sent.store(number, Ordering::Relaxed);
    }
    Ok(())
}

/// ENOBUFS.
const NO_BUFFER: i32 = 105;

/// Packets that left the device of a host.
fn received(namespace: &Namespace) -> Result<u64, LoadError> {
    // proc_pid_net(5): `link0: octets packets ...`
    let text = namespace.within(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let line = text.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'));
    let packets = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    packets.ok_or_else(|| io::Error::other("the device is not there").into())
}

/// Plain forwarder, the reference for two ends of a tunnel: one thread, no header compression, no encryption.
///
/// # Errors
/// A device was removed, or the system has no room for another file.
pub fn forward(tuns: [&Tun; 2], stop: &Waker) -> Result<LoadEnd, LoadError> {
    let mut events = EventLoop::new(Duration::ZERO)?;
    for (token, tun) in tuns.iter().enumerate() {
        events.add(tun, token as u64)?;
    }
    events.add(stop, 2)?;
    let begin = clock::of_this_thread();
    let mut packets = 0;
    let (mut ready, mut packet) = (Vec::new(), vec![0; 65_536]);
    loop {
        events.wait(None, &mut ready)?;
        for &token in &ready {
            let (from, to) = match token {
                0 => (tuns[0], tuns[1]),
                1 => (tuns[1], tuns[0]),
                _ => {
                    let processor = clock::of_this_thread().saturating_sub(begin);
                    return Ok(LoadEnd { name: "forwarder".to_owned(), packets, processor });
                }
            };
            for _ in 0..AT_A_TIME {
                match from.read(&mut packet) {
                    Ok(len) => {
                        // A packet that the other device rejects is lost, as on any link.
                        packets += u64::from(to.write(&packet[..len]).is_ok());
                    }
                    Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                    Err(why) => return Err(why.into()),
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SHORT: LoadPlan =
        LoadPlan { payload: 64, rate: Some(2_000), time: Duration::from_millis(300), pings: 20 };

    fn hosts() -> Option<LoadHosts> {
        match LoadHosts::create() {
            Err(LoadError::Os(why)) if why.is_permission() => {
                println!("skipped: {why}, which needs root");
                None
            }
            hosts => Some(hosts.unwrap()),
        }
    }

    #[test]
    fn what_is_forwarded_is_counted() {
        let Some(hosts) = hosts() else { return };
        let [a, b] = hosts.tuns().unwrap();
        let outcome = hosts.measure(&SHORT, |stop| {
            forward([&a, &b], stop).map(|end| vec![end]).map_err(|why| why.to_string())
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.round_trips.len() + outcome.unanswered, 20);
        assert!(outcome.median().is_some());
        // Packets that are late on a busy machine are not lost.
        assert!(outcome.delivered > 0.0 && outcome.sent > 0.0, "{outcome:?}");
        let [end] = &outcome.ends[..] else { panic!("{outcome:?}") };
        assert!(end.packets as usize > 2 * outcome.round_trips.len() && end.cost() > 0.0, "{end:?}");
    }

    #[test]
    fn hosts_that_nobody_joins_are_told() {
        let Some(hosts) = hosts() else { return };
        let refused = hosts.measure(&SHORT, |_| Err("no key".to_owned())).unwrap_err();
        assert_eq!(refused.to_string(), "the connection of the hosts failed: no key");
        let early = hosts.measure(&SHORT, |_| Ok(Vec::new())).unwrap_err();
        assert!(matches!(early, LoadError::NotJoined), "{early}");
    }
}
