//! Clients that fetch an object repeatedly over one link, whose ROHC contexts persist between rounds.

use core::ops::{Add, Sub};
use core::time::Duration;
use std::collections::VecDeque;

use thinair_http::Target;
use thinair_link::Side;
use thinair_wire::time::Instant;

use super::fragmenting::Fragmenting;
use super::{ConnectionEnd, END, Fetch};
use crate::network::any_host::AnyHost;
use crate::network::ip::{Address, HostSocket};
use crate::network::{HostNetwork, NetworkHost};
use crate::streams::{Purpose, RandomStreams};
use thinair_emulator::DirectionTotals;

/// First port of a client.
const FIRST_PORT: u16 = 40_000;

/// Maximum step of ports: for the next connection to the same server, Linux takes a port higher by 2 to 16, in steps of
/// 2.
const PORT_STEP: u64 = 2;
const PORT_STEPS: u64 = 8;

/// Maximum number of a host's connections: one that may still be closing, and the latest one.
const CONNECTIONS: usize = 2;

/// Parameters of repeated fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Number of clients, each with its own server at the other end. A CoAP client keeps its port in all rounds; others
    /// open a new connection each time, except with [`ConnectionEnd::Never`].
    pub clients: u16,
    /// Number of fetches of each client.
    pub rounds: usize,
    /// Time within which clients begin in a round, at random.
    pub spread: Duration,
    /// Time from the end of a round's last fetch to the next round.
    pub pause: Duration,
}

/// Results of one round, including the pause after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Duration by client; `None` where the object did not arrive.
    pub took: Vec<Option<Duration>>,
    /// Load of the link in both directions.
    pub carried: LinkLoad,
}

/// Load of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLoad {
    /// Number of IP packets for the link.
    pub packets: u64,
    /// Octets of these packets.
    pub ip_octets: u64,
    /// Octets that the link was given for them: with ROHC, its packets and feedback.
    pub octets: u64,
    /// Packets delivered, each compared with the sent one.
    pub delivered: u64,
    /// Packets delivered altered, which `delivered` includes.
    pub altered: u64,
    /// Packets that arrived and were not decompressed.
    pub not_decompressed: u64,
}

impl LinkLoad {
    fn of(totals: [DirectionTotals; 2]) -> Self {
        let [up, down] = totals.map(|of| Self {
            packets: of.packets,
            ip_octets: of.octets,
            octets: of.carried_octets,
            delivered: of.delivered,
            altered: of.altered,
            not_decompressed: of.not_decompressed(),
        });
        up + down
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            packets: of(self.packets, other.packets),
            ip_octets: of(self.ip_octets, other.ip_octets),
            octets: of(self.octets, other.octets),
            delivered: of(self.delivered, other.delivered),
            altered: of(self.altered, other.altered),
            not_decompressed: of(self.not_decompressed, other.not_decompressed),
        }
    }
}

impl Add for LinkLoad {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::add)
    }
}

impl Sub for LinkLoad {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

/// Host with its connections.
struct Ongoing {
    /// Connections, the latest one last.
    connections: VecDeque<AnyHost>,
}

impl Ongoing {
    fn latest(&self) -> Option<&AnyHost> {
        self.connections.back()
    }

    fn push(&mut self, connection: AnyHost) {
        if self.connections.len() == CONNECTIONS {
            self.connections.pop_front();
        }
        self.connections.push_back(connection);
    }
}

impl NetworkHost for Ongoing {
    /// Passes the packet to all connections, which compare its ports.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.connections.iter_mut().for_each(|connection| connection.handle_packet(now, packet));
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.connections.iter_mut().any(|connection| connection.poll_packet(now, packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connections.iter().filter_map(NetworkHost::poll_timeout).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connections.iter_mut().for_each(|connection| connection.handle_timeout(now));
    }
}

impl Fetch {
    /// Fetches in rounds. `seed` determines every octet.
    pub fn rounds(&self, rounds: &Rounds, seed: u64) -> Vec<Round> {
        let mut network: HostNetwork<Fragmenting<Ongoing>> =
            HostNetwork::new(&self.model, seed, self.rohc.as_ref());
        for number in 0..rounds.clients {
            // Servers precede their clients.
            for side in [Side::B, Side::A] {
                let host = Ongoing { connections: VecDeque::new() };
                network.add(Address::new(side, number), Fragmenting::new(host, self.mtu));
            }
        }
        let mut begins = RandomStreams::new(seed).random(0, 0, Purpose::Arrivals);
        let mut start = Instant::ZERO;
        let (mut ports, mut before) = (vec![FIRST_PORT; rounds.clients.into()], LinkLoad::default());
        let mut done = Vec::new();
        for round in 0..rounds.rounds {
            for (number, port) in (0..rounds.clients).zip(&mut ports) {
                let begin = start + Duration::from_nanos(begins.below(rounds.spread.as_nanos() as u64 + 1));
                let seed = seed.wrapping_mul(u64::from(u16::MAX)).wrapping_add(number.into());
                self.again(&mut network, number, *port, begin, seed.wrapping_add((round as u64) << 40));
                let step =
                    RandomStreams::new(seed).stream(round as u32, 0, Purpose::Arrivals).below(PORT_STEPS);
                *port = port.wrapping_add((PORT_STEP * (1 + step)) as u16).max(FIRST_PORT);
            }
            network.wake();
            let mut waits = vec![true; rounds.clients.into()];
            let mut left = rounds.clients;
            network.run_until(start + END, |number, host| {
                let over = host.host.latest().is_some_and(AnyHost::is_over);
                if number % 2 == 1 && over && waits.get_mut(number / 2).is_some_and(core::mem::take) {
                    left -= 1;
                }
                left == 0
            });
            start = network.now() + rounds.pause;
            network.run_until(start, |_, _| false);
            let carried = LinkLoad::of(Side::ALL.map(|side| network.totals(side)));
            let clients = network.hosts().skip(1).step_by(2);
            let took = clients.map(|client| client.host.latest().and_then(AnyHost::took)).collect();
            done.push(Round { took, carried: carried - before });
            before = carried;
        }
        done
    }

    /// Fetches once with this many clients on the link; each begins at a random time within `spread`. Returns the
    /// duration of each; `None` where the object did not arrive.
    pub fn crowd(&self, clients: u16, spread: Duration, seed: u64) -> Vec<Option<Duration>> {
        let rounds = Rounds { clients, rounds: 1, spread, pause: Duration::ZERO };
        self.rounds(&rounds, seed).pop().map(|round| round.took).unwrap_or_default()
    }

    /// Starts a client's next fetch.
    fn again(
        &self,
        network: &mut HostNetwork<Fragmenting<Ongoing>>,
        number: u16,
        port: u16,
        begin: Instant,
        seed: u64,
    ) {
        let [client, server] = Side::ALL.map(|side| HostSocket { address: Address::new(side, number), port });
        let server = HostSocket { port: self.port(), ..server };
        let mut hosts = network.hosts_mut().skip(2 * usize::from(number));
        let (Some(at_server), Some(at_client)) = (hosts.next(), hosts.next()) else { return };
        let path = self.path();
        let goes_on = match at_client.host.connections.back_mut() {
            Some(AnyHost::CoapClient(client)) => {
                client.begin(self.requests(begin));
                true
            }
            // A connection that closes is not reused: losses may delay its end for long.
            Some(AnyHost::Client(client)) if self.close == ConnectionEnd::Never => {
                client.ask(begin, Target { host: &self.host, path: &path })
            }
            _ => false,
        };
        if goes_on {
            return;
        }
        if let Some([asks, serves]) = self.ends(client, server, begin, seed) {
            at_server.host.push(serves);
            at_client.host.push(asks);
        }
    }
}
