//! Hosts in real time: their packets pass through the kernels of two network namespaces.
//!
//! Each namespace has two TUN devices: that of the link, and one for the hosts of its side. The kernel forwards between
//! them, and has no other route, so that packets of hosts enter the link as from any machine. The kernels decrement the
//! TTL twice, so that compressors receive 63.

use core::fmt;
use std::io;

use thinair_link::{LinkModel, Side};
use thinair_os::clock::{self, ProcessorTime};
use thinair_os::{Error, EventLoop, Interface, RealTime, Route, Tun, TunKind};
use thinair_wire::time::Instant;

use super::hosts::{HostTable, HostWorld};
use super::{Address, NetworkHost};
use thinair_emulator::{DirectionTotals, Engine, Lateness, LinkEnds, RohcChannel, Where};

/// Maximum size of a packet in octets: only the link fragments.
const LONGEST: u32 = 65_535;

/// Queue of each TUN device, in packets.
const QUEUE: u32 = 10_000;

/// Maximum number of packets read consecutively from one device.
const BATCH: usize = 64;

/// Name of the hosts' interface.
const INTERFACE: &str = "hosts%d";

/// Event token of signals; tokens 0 and 1 belong to the link, 2 and 3 to the hosts.
const SIGNALS: u64 = 4;

/// Reason that a run in real time has ended early.
#[derive(Debug, thiserror::Error)]
pub enum RealTimeError {
    /// The system rejected an operation.
    #[error(transparent)]
    Os(#[from] Error),
    /// A signal interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// Two namespaces with hosts and a link between them. Everything is removed on drop.
///
/// From [`open`](Self::open) on, signals that would end the process end a run instead: [`RealTimeError::Interrupted`].
pub struct RealTimeLink {
    /// Devices of the hosts of each side.
    hosts: [Tun; 2],
    realtime: RealTime,
    events: EventLoop,
    // Must be dropped last.
    ends: LinkEnds,
}

impl RealTimeLink {
    /// Creates the namespaces and devices, and requests real-time scheduling and locked memory.
    ///
    /// # Errors
    /// The caller lacks privileges (CAP_SYS_ADMIN, CAP_NET_ADMIN), or the system lacks TUN.
    pub fn open() -> Result<Self, Error> {
        let ends = LinkEnds::open(&Where::Create, (LONGEST, LONGEST), "cubic")?;
        let hosts = [hosts_of(&ends, Side::A)?, hosts_of(&ends, Side::B)?];
        let realtime = RealTime::request();
        let events = EventLoop::new(realtime.spin())?;
        for side in Side::ALL {
            events.add(ends.tun(side), side as u64)?;
            events.add(&hosts[side as usize], 2 + side as u64)?;
        }
        events.add(ends.signals(), SIGNALS)?;
        Ok(Self { hosts, realtime, events, ends })
    }

    /// Real-time properties that the system did not grant, as text; empty with real-time scheduling and locked memory.
    pub fn refused(&self) -> Vec<String> {
        self.realtime.refused()
    }

    /// True if a signal to end has arrived since the last call.
    pub fn is_interrupted(&self) -> bool {
        self.ends.is_interrupted()
    }

    /// Discards packets that a previous run has left.
    fn empty(&self) {
        let mut octets = [0; 64];
        let tuns = Side::ALL.map(|side| self.ends.tun(side));
        for tun in tuns.into_iter().chain(&self.hosts) {
            while tun.read(&mut octets).is_ok() {}
        }
    }
}

impl fmt::Debug for RealTimeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealTimeLink").field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// Creates the device for the hosts of a side, and routes: to them through it, and to the other side through the link.
fn hosts_of(ends: &LinkEnds, side: Side) -> Result<Tun, Error> {
    let namespace = ends.namespace(side);
    let tun = Tun::open_in(namespace, INTERFACE, TunKind::Tun)?;
    let (link, here) = (ends.tun(side).name(), tun.name());
    namespace.within(|| {
        let [link, here] = [Interface::named(link)?, Interface::named(here)?];
        here.quiet()?;
        here.set_mtu(LONGEST)?;
        here.set_queue(QUEUE)?;
        link.set_queue(QUEUE)?;
        here.up()?;
        for (interface, of) in [(&here, side), (&link, side.other())] {
            let route = Route { to: Address::all(of), from: None, mtu: 0, congestion: None };
            interface.add_route(&route)?;
        }
        Ok::<_, Error>(())
    })??;
    namespace.allow_forwarding()?;
    Ok(tun)
}

/// Reliability of a run's times.
#[derive(Clone, Debug, Default)]
pub struct Punctuality {
    /// Lateness of packets from the link.
    pub lateness: Lateness,
    /// Packets that a kernel rejected because they were damaged.
    pub not_taken: u64,
    /// Steal time: share of the machine's time that its host gave to others; 0 on a physical machine.
    pub stolen: f64,
}

/// [`HostNetwork`](super::HostNetwork) in real time. Its time begins with its first run.
pub(super) struct RealTimeNetwork<'l, H> {
    link: &'l mut RealTimeLink,
    engine: Engine,
    hosts: HostTable<H>,
    origin: Option<Instant>,
    processors: Option<ProcessorTime>,
    now: Instant,
    events: u64,
    octets: Vec<u8>,
    packet: Vec<u8>,
    ready: Vec<u64>,
    lateness: Lateness,
    not_taken: u64,
}

impl<'l, H: NetworkHost> RealTimeNetwork<'l, H> {
    pub(super) fn new(
        link: &'l mut RealTimeLink,
        model: &LinkModel<'static>,
        seed: u64,
        channel: Option<&RohcChannel>,
    ) -> Self {
        link.empty();
        Self {
            link,
            engine: Engine::new(model, seed, channel),
            hosts: HostTable::new(),
            origin: None,
            processors: ProcessorTime::until_now(),
            now: Instant::ZERO,
            events: 0,
            octets: vec![0; LONGEST as usize],
            packet: Vec::new(),
            ready: Vec::new(),
            lateness: Lateness::new(),
            not_taken: 0,
        }
    }

    pub(super) fn punctuality(self) -> Punctuality {
        Punctuality {
            lateness: self.lateness,
            not_taken: self.not_taken,
            stolen: match (self.processors, ProcessorTime::until_now()) {
                (Some(earlier), Some(later)) => later.stolen_since(earlier),
                _ => 0.0,
            },
        }
    }

    /// Reads the clock. Time stands still before the first run.
    fn look(&mut self) -> Instant {
        self.now = self.origin.map_or(Instant::ZERO, |origin| Instant::ZERO + clock::now().since(origin));
        self.now
    }

    /// Delivers packets from the link. The kernel forwards them before this returns.
    fn deliver(&mut self) -> Result<(), RealTimeError> {
        loop {
            let now = self.look();
            let Some(passage) = self.engine.poll(now) else { return Ok(()) };
            self.events += 1;
            if passage.delivered.is_empty() {
                continue;
            }
            self.lateness.add(now.nanos_since(passage.ended));
            let to = passage.from.other();
            match self.link.ends.tun(to).write(&passage.delivered) {
                // Not an IP packet.
                Err(why) if why.kind() == io::ErrorKind::InvalidInput => self.not_taken += 1,
                taken => taken.map_err(|why| Error::new("hand a packet over to a namespace", why))?,
            }
        }
    }

    /// Passes packets that kernels have forwarded to the link.
    fn enter(&mut self) -> Result<(), RealTimeError> {
        for side in Side::ALL {
            for _ in 0..BATCH {
                let Some(len) = read(self.link.ends.tun(side), &mut self.octets)? else { break };
                let now = self.look();
                let packet = self.octets.get(..len).unwrap_or_default();
                // Packets of the kernels themselves, if any, do not belong to this network.
                if self.hosts.destination(side, packet).is_some() {
                    self.engine.handle_packet(now, side, packet);
                }
            }
        }
        Ok(())
    }

    /// Passes packets that kernels have forwarded to hosts. Returns true if `done` did.
    fn arrive(&mut self, done: &mut dyn FnMut(usize, &H) -> bool) -> Result<bool, RealTimeError> {
        for side in Side::ALL {
            for _ in 0..BATCH {
                let Some(len) = read(&self.link.hosts[side as usize], &mut self.octets)? else { break };
                let now = self.look();
                let packet = self.octets.get(..len).unwrap_or_default();
                let Some(number) = self.hosts.destination(side.other(), packet) else { continue };
                if let Some(placed) = self.hosts.get_mut(number) {
                    placed.host.handle_packet(now, packet);
                }
                self.serve(number)?;
                if self.hosts.get(number).is_some_and(|host| done(number, host)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Handles due timers. Returns true if `done` did.
    fn fire(&mut self, end: Instant, done: &mut dyn FnMut(usize, &H) -> bool) -> Result<bool, RealTimeError> {
        for number in 0..self.hosts.len() {
            let now = self.look().min(end);
            let Some(placed) =
                self.hosts.get_mut(number).filter(|placed| placed.at.is_some_and(|at| at <= now))
            else {
                continue;
            };
            placed.host.handle_timeout(now);
            self.events += 1;
            self.serve(number)?;
            if self.hosts.get(number).is_some_and(|host| done(number, host)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends a host's packets, and schedules its next timer.
    fn serve(&mut self, number: usize) -> Result<(), RealTimeError> {
        loop {
            let now = self.look();
            let Some(placed) = self.hosts.get_mut(number) else { return Ok(()) };
            if !placed.host.poll_packet(now, &mut self.packet) {
                placed.at = placed.host.poll_timeout();
                return Ok(());
            }
            let side = placed.address.side();
            let sent = self.link.hosts[side as usize].write(&self.packet);
            sent.map_err(|why| Error::new("send the packet of a host", why))?;
            // At once, so that packets enter the link when they are sent.
            self.enter()?;
        }
    }
}

/// Next packet of a device; `None` if none waits.
fn read(tun: &Tun, octets: &mut [u8]) -> Result<Option<usize>, Error> {
    match tun.read(octets) {
        Ok(len) => Ok(Some(len)),
        Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(why) => Err(Error::new(format!("read from the interface `{}`", tun.name()), why)),
    }
}

impl<H: NetworkHost> HostWorld<H> for RealTimeNetwork<'_, H> {
    type Error = RealTimeError;

    fn add(&mut self, address: Address, host: H) -> Result<(), RealTimeError> {
        self.hosts.add(address, host);
        Ok(())
    }

    fn run_until(
        &mut self,
        end: Instant,
        done: &mut dyn FnMut(usize, &H) -> bool,
    ) -> Result<(), RealTimeError> {
        if self.origin.is_none() {
            self.origin = Some(clock::now());
            self.wake()?;
        }
        let origin = self.origin.unwrap_or(Instant::ZERO);
        loop {
            self.deliver()?;
            if self.arrive(done)? || self.fire(end, done)? {
                return Ok(());
            }
            self.enter()?;
            if self.look() >= end {
                return Ok(());
            }
            let timers = (0..self.hosts.len()).filter_map(|number| self.hosts.get_mut(number)?.at).min();
            let until = [self.engine.poll_at(), timers, Some(end)].into_iter().flatten().min();
            let until = until.map(|until| origin + until.since(Instant::ZERO));
            self.link.events.wait(until, &mut self.ready)?;
            if self.ready.contains(&SIGNALS) && self.link.is_interrupted() {
                return Err(RealTimeError::Interrupted);
            }
        }
    }

    fn wake(&mut self) -> Result<(), RealTimeError> {
        (0..self.hosts.len()).try_for_each(|number| self.serve(number))
    }

    fn hosts(&self) -> &HostTable<H> {
        &self.hosts
    }

    fn hosts_mut(&mut self) -> &mut HostTable<H> {
        &mut self.hosts
    }

    fn totals(&self, from: Side) -> DirectionTotals {
        self.engine.totals(from)
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn now(&self) -> Instant {
        self.now
    }
}
