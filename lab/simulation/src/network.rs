//! Hosts at both sides of a link: real protocol code, whole IP packets, and one queue of events in virtual time; or, on
//! Linux, the kernels of two network namespaces around the link in real time ([`RealTimeLink`]).
//!
//! A [`HostNetwork`] has the addresses of the hosts and the queue of events. Between the sides is an [`Engine`]: a link,
//! with ROHC at both its ends if requested. All hosts of a side share the link. A [`NetworkHost`] handles packets:
//! [`CoapClient`], [`CoapServer`], [`Download`].

mod any_host;
mod coap_client;
mod coap_server;
mod download;
mod dtls;
pub mod fetch;
mod hosts;
mod ip;
#[cfg(target_os = "linux")]
mod real_time;
mod scenario;
mod security;
mod stream;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use core::convert::Infallible;

use thinair_link::{LinkModel, Side};
use thinair_wire::time::Instant;

use crate::queue::EventQueue;
use hosts::{HostTable, HostWorld};
use thinair_emulator::{DirectionTotals, Engine, RohcChannel};

pub use coap_client::{ClientExchange, CoapClient, MessageTransport, RequestPace, Requests};
pub use coap_server::CoapServer;
pub use download::Download;
pub use ip::{Address, HostSocket};
#[cfg(target_os = "linux")]
pub use real_time::{Punctuality, RealTimeError, RealTimeLink};
pub use scenario::{ClientOutcome, Scenario, ScenarioOutcome};

/// Host: packets and time in, packets out.
pub trait NetworkHost {
    /// Handles a packet for this host, whole or damaged.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]);

    /// Replaces the contents of `packet` by the next IP packet. Returns false if there is none.
    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool;

    /// Latest time at which [`handle_timeout`](Self::handle_timeout) must be called.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Handles expired timers.
    fn handle_timeout(&mut self, now: Instant);
}

/// Hosts, and the link between them. `H` is the type of a host, usually an enum.
pub struct HostNetwork<H> {
    engine: Engine,
    hosts: HostTable<H>,
    queue: EventQueue<NetworkEvent>,
    /// Time of the next scheduled poll of the link.
    link_at: Option<Instant>,
    /// Beginning and end of a time in which every packet is lost.
    pause: Option<(Instant, Instant)>,
    events: u64,
    packet: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum NetworkEvent {
    Link,
    Host(u32),
}

impl<H: NetworkHost> HostNetwork<H> {
    /// Creates a link without hosts.
    pub fn new(model: &LinkModel<'static>, seed: u64, channel: Option<&RohcChannel>) -> Self {
        Self {
            engine: Engine::new(model, seed, channel),
            hosts: HostTable::new(),
            queue: EventQueue::new(),
            link_at: None,
            pause: None,
            events: 0,
            packet: Vec::new(),
        }
    }

    /// Loses packets that are sent or would arrive from `from` on, and before `to`.
    pub fn pause(&mut self, from: Instant, to: Instant) {
        self.pause = Some((from, to));
    }

    /// Adds a host, which is first called at its own timeout.
    pub fn add(&mut self, address: Address, host: H) {
        let number = self.hosts.add(address, host);
        self.serve(number);
    }

    /// Mutable hosts, between two runs; call [`Self::wake`] afterwards.
    pub fn hosts_mut(&mut self) -> impl Iterator<Item = &mut H> {
        self.hosts.iter_mut()
    }

    /// Schedules every host again.
    pub fn wake(&mut self) {
        (0..self.hosts.len()).for_each(|number| self.serve(number));
    }

    /// Hosts, in the order in which they were added.
    pub fn hosts(&self) -> impl Iterator<Item = &H> {
        self.hosts.iter()
    }

    /// Totals that the link has carried from that side.
    pub fn totals(&self, from: Side) -> DirectionTotals {
        self.engine.totals(from)
    }

    /// Number of events taken from the queue.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Time of the latest event.
    pub const fn now(&self) -> Instant {
        self.queue.now()
    }

    /// Processes events before `end`, until none is left, or until `done` returns true. It is called with a host and
    /// its number after every packet that arrives and every timer.
    pub fn run_until(&mut self, end: Instant, mut done: impl FnMut(usize, &H) -> bool) {
        while let Some((now, what)) = self.queue.next_before(end) {
            self.events += 1;
            match what {
                NetworkEvent::Link => {
                    if self.link_at == Some(now) {
                        self.link_at = None;
                        if self.carry(now, &mut done) {
                            return;
                        }
                    }
                }
                NetworkEvent::Host(number) => {
                    let number = number as usize;
                    let Some(placed) = self.hosts.get_mut(number).filter(|placed| placed.at == Some(now))
                    else {
                        continue;
                    };
                    placed.at = None;
                    placed.host.handle_timeout(now);
                    self.serve(number);
                    if self.hosts.get(number).is_some_and(|host| done(number, host)) {
                        return;
                    }
                }
            }
            self.watch_link();
        }
    }

    /// Passes arrived packets to their hosts. Returns true if `done` did.
    fn carry(&mut self, now: Instant, done: &mut impl FnMut(usize, &H) -> bool) -> bool {
        while let Some(passage) = self.engine.poll(now) {
            let Some(number) = self.hosts.destination(passage.from, &passage.delivered) else { continue };
            if self.is_paused(now) {
                continue;
            }
            if let Some(placed) = self.hosts.get_mut(number) {
                placed.host.handle_packet(now, &passage.delivered);
                self.serve(number);
                if self.hosts.get(number).is_some_and(|host| done(number, host)) {
                    self.watch_link();
                    return true;
                }
            }
        }
        false
    }

    /// Sends a host's packets, and schedules its next timer.
    fn serve(&mut self, number: usize) {
        let now = self.queue.now();
        let is_paused = self.is_paused(now);
        let Some(placed) = self.hosts.get_mut(number) else { return };
        while placed.host.poll_packet(now, &mut self.packet) {
            if !is_paused {
                self.engine.handle_packet(now, placed.address.side(), &self.packet);
            }
        }
        let at = placed.host.poll_timeout();
        // A timer that moves to a later time stays scheduled, and is checked again when it expires.
        if let Some(at) = at.filter(|at| placed.at.is_none_or(|before| *at < before)) {
            placed.at = Some(at.max(now));
            self.queue.schedule(at, NetworkEvent::Host(number as u32));
        }
        self.watch_link();
    }

    fn is_paused(&self, now: Instant) -> bool {
        self.pause.is_some_and(|(from, to)| (from..to).contains(&now))
    }

    fn watch_link(&mut self) {
        if let Some(at) = self.engine.poll_at() {
            let at = at.max(self.queue.now());
            if self.link_at.is_none_or(|before| at < before) {
                self.link_at = Some(at);
                self.queue.schedule(at, NetworkEvent::Link);
            }
        }
    }
}

impl<H: NetworkHost> HostWorld<H> for HostNetwork<H> {
    type Error = Infallible;

    fn add(&mut self, address: Address, host: H) -> Result<(), Infallible> {
        self.add(address, host);
        Ok(())
    }

    fn run_until(&mut self, end: Instant, done: &mut dyn FnMut(usize, &H) -> bool) -> Result<(), Infallible> {
        self.run_until(end, done);
        Ok(())
    }

    fn wake(&mut self) -> Result<(), Infallible> {
        self.wake();
        Ok(())
    }

    fn hosts(&self) -> &HostTable<H> {
        &self.hosts
    }

    fn hosts_mut(&mut self) -> &mut HostTable<H> {
        &mut self.hosts
    }

    fn totals(&self, from: Side) -> DirectionTotals {
        self.totals(from)
    }

    fn events(&self) -> u64 {
        self.events()
    }

    fn now(&self) -> Instant {
        self.now()
    }
}
