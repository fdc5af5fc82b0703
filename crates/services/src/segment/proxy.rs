//! Event loop of the proxy: accepting, relaying, reporting.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use thinair_os::{EventLoop, Signal, Signals, clock, tcp};
use thinair_segment::{SegmentSizer as _, Sizer};
use thinair_wire::time::Instant;

use super::relay::{Relay, RelayState};
use super::sizers::Sizers;

/// Tokens of signals and the listener; streams have two numbers each, from 0 on.
const SIGNALS: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;

/// Octets read at a time.
const READ: usize = 16_384;

/// Delay before the next attempt to accept when the system had no room for another file.
const NO_ROOM: Duration = Duration::from_millis(200);

/// Side of the constrained network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constrained {
    /// Clients: segments towards them are sized.
    Client,
    /// Servers: segments towards them are sized.
    Server,
}

/// Settings of a proxy.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Address to listen at.
    pub listen: SocketAddr,
    /// Address that streams are relayed to.
    pub to: SocketAddr,
    /// Side of the constrained network.
    pub constrained: Constrained,
    /// Initial size control; each host of the constrained side has a copy, which it keeps from one stream to the next.
    pub sizer: Sizer,
    /// Largest number of streams; further ones wait until one ends. 0 means 1.
    pub max_connections: usize,
    /// Interval of reports about each open stream. `None`: reports at the end only.
    pub tell: Option<Duration>,
}

/// End of a stream.
#[derive(Debug)]
pub enum Ending {
    /// Both sides have closed it, and everything has arrived.
    Complete,
    /// It was aborted; both sides got a reset.
    Failed(io::Error),
}

/// State of a stream, at each interval and at its end.
#[derive(Debug)]
pub struct StreamProgress<'p> {
    /// Number of the stream, from 0.
    pub number: u64,
    /// Client.
    pub client: SocketAddr,
    /// Time since its start.
    pub age: Duration,
    /// Size of the next segment, in octets.
    pub size: u16,
    /// Smallest and largest size so far, in octets; 0 before the first segment.
    pub sizes: (u16, u16),
    /// Segments sent.
    pub segments: u64,
    /// Octets in them.
    pub octets: u64,
    /// Octets that were acknowledged.
    pub acknowledged: u64,
    /// Retransmitted segments.
    pub sent_again: u64,
    /// Octets in the opposite direction.
    pub back: u64,
    /// End, if it has ended.
    pub ending: Option<&'p Ending>,
}

/// Reason why a proxy does not start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// A system call failed.
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
}

/// A proxy. [`run`](Self::run) relays streams until the process is asked to end.
#[derive(Debug)]
pub struct Proxy {
    settings: ProxySettings,
    address: SocketAddr,
    listener: TcpListener,
    /// True if it waits for connections: there may be no room.
    is_listening: bool,
    /// Time to listen again, if no stream ends before.
    listens_at: Option<Instant>,
    events: EventLoop,
    signals: Signals,
    sizers: Sizers,
    relays: BTreeMap<u64, Relay>,
    next: u64,
    tell: Option<Instant>,
}

impl Proxy {
    /// Opens a proxy that listens. **Must be called before any other thread starts:** signals are blocked.
    ///
    /// # Errors
    /// The address is not one of this machine, or is in use.
    pub fn open(settings: ProxySettings) -> Result<Self, ProxyError> {
        let signals = Signals::take()?;
        let events = EventLoop::new(Duration::ZERO)?;
        events.add(&signals, SIGNALS)?;
        let listener = tcp::listen(settings.listen)?;
        events.add(&listener, LISTENER)?;
        let address = listener.local_addr().unwrap_or(settings.listen);
        let sizers = Sizers::new(settings.sizer.clone());
        let tell = settings.tell.map(|every| clock::now() + every);
        let (relays, next) = (BTreeMap::new(), 0);
        Ok(Self {
            settings,
            address,
            listener,
            is_listening: true,
            listens_at: None,
            events,
            signals,
            sizers,
            relays,
            next,
            tell,
        })
    }

    /// Returns its address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Relays streams until a signal asks it to end; open streams are then aborted. `watch` receives the state of
    /// streams.
    ///
    /// # Errors
    /// The system cannot wait any more.
    pub fn run(&mut self, watch: &mut dyn FnMut(&StreamProgress<'_>)) -> Result<(), ProxyError> {
        let mut ready = Vec::new();
        let mut room = vec![0; READ];
        loop {
            let dues = self.relays.values().filter_map(|relay| relay.due);
            let until = dues.chain(self.tell).chain(self.listens_at).min();
            self.events.wait(until, &mut ready)?;
            let now = clock::now();
            let mut moving: Vec<u64> = Vec::new();
            for &token in &ready {
                match token {
                    SIGNALS => {
                        while let Some(signal) = self.signals.poll() {
                            if matches!(signal, Signal::End { .. }) {
                                self.end(now, watch);
                                return Ok(());
                            }
                        }
                    }
                    LISTENER => moving.extend(self.accept(now, watch)?),
                    end => moving.push(end / 2),
                }
            }
            let is_due = |relay: &Relay| relay.due.is_some_and(|due| due <= now);
            moving.extend(self.relays.iter().filter(|(_, relay)| is_due(relay)).map(|(number, _)| *number));
            moving.sort_unstable();
            moving.dedup();
            for number in moving {
                self.turn(now, number, &mut room, watch)?;
            }
            if self.listens_at.is_some_and(|at| at <= now) {
                self.listen_again()?;
            }
            if let (Some(tell), Some(every)) = (self.tell, self.settings.tell)
                && tell <= now
            {
                self.relays.keys().copied().collect::<Vec<_>>().into_iter().for_each(|number| {
                    self.tell(now, number, None, watch);
                });
                self.tell = Some((tell + every).max(now));
            }
        }
    }

    /// Accepts connections; returns the numbers of new streams.
    fn accept(
        &mut self,
        now: Instant,
        watch: &mut dyn FnMut(&StreamProgress<'_>),
    ) -> Result<Vec<u64>, ProxyError> {
        let mut new = Vec::new();
        loop {
            if self.relays.len() >= self.settings.max_connections.max(1) {
                // They wait in the system.
                self.pause(None)?;
                return Ok(new);
            }
            let (stream, client) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(new),
                Err(why) if why.kind() == ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    self.pause(Some(now + NO_ROOM))?;
                    return Ok(new);
                }
            };
            let number = self.next;
            let to = self.settings.to;
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let connected = prepared.and_then(|()| {
                let server = tcp::connect(to).map_err(io::Error::other)?;
                server.set_nodelay(true)?;
                for stream in [&stream, &server] {
                    tcp::keep_alive(stream).map_err(io::Error::other)?;
                }
                Ok(server)
            });
            self.next += 1;
            match connected {
                Ok(server) => {
                    let is_client = self.settings.constrained == Constrained::Client;
                    let tokens = (number * 2, number * 2 + 1);
                    let relay = Relay::new(now, (stream, client), (server, to), is_client, tokens);
                    self.relays.insert(number, relay);
                    new.push(number);
                }
                Err(why) => {
                    tcp::reset(stream);
                    let ending = Ending::Failed(why);
                    watch(&StreamProgress {
                        number,
                        client,
                        age: Duration::ZERO,
                        size: 0,
                        sizes: (0, 0),
                        segments: 0,
                        octets: 0,
                        acknowledged: 0,
                        sent_again: 0,
                        back: 0,
                        ending: Some(&ending),
                    });
                }
            }
        }
    }

    fn pause(&mut self, until: Option<Instant>) -> Result<(), ProxyError> {
        if self.is_listening {
            self.events.remove(&self.listener)?;
        }
        (self.is_listening, self.listens_at) = (false, until);
        Ok(())
    }

    fn listen_again(&mut self) -> Result<(), ProxyError> {
        if !self.is_listening {
            self.events.add(&self.listener, LISTENER)?;
        }
        (self.is_listening, self.listens_at) = (true, None);
        Ok(())
    }

    fn turn(
        &mut self,
        now: Instant,
        number: u64,
        room: &mut [u8],
        watch: &mut dyn FnMut(&StreamProgress<'_>),
    ) -> Result<(), ProxyError> {
        let Some(relay) = self.relays.get_mut(&number) else { return Ok(()) };
        let ending = match relay.turn(now, &mut self.sizers, room, &self.events) {
            RelayState::Open => return Ok(()),
            RelayState::Complete => Ending::Complete,
            RelayState::Failed(why) => Ending::Failed(why),
        };
        self.tell(now, number, Some(&ending), watch);
        if let Some(relay) = self.relays.remove(&number) {
            relay.close(matches!(ending, Ending::Complete));
        }
        self.listen_again()
    }

    fn tell(
        &mut self,
        now: Instant,
        number: u64,
        ending: Option<&Ending>,
        watch: &mut dyn FnMut(&StreamProgress<'_>),
    ) {
        let Some(relay) = self.relays.get(&number) else { return };
        let counts = relay.counts();
        watch(&StreamProgress {
            number,
            client: relay.client,
            age: now.since(relay.opened),
            size: self.sizers.of(relay.host(), now).size(),
            sizes: (counts.least, counts.most),
            segments: counts.segments,
            octets: counts.octets,
            acknowledged: counts.acknowledged,
            sent_again: counts.sent_again,
            back: relay.back(),
            ending,
        });
    }

    /// Aborts open streams.
    fn end(&mut self, now: Instant, watch: &mut dyn FnMut(&StreamProgress<'_>)) {
        let numbers: Vec<_> = self.relays.keys().copied().collect();
        for number in numbers {
            let ending = Ending::Failed(io::Error::new(ErrorKind::Interrupted, "the proxy has ended"));
            self.tell(now, number, Some(&ending), watch);
            if let Some(relay) = self.relays.remove(&number) {
                relay.close(false);
            }
        }
    }
}
