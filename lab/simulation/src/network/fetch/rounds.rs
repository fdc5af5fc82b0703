//! Clients that fetch their object again and again over one link: what ROHC has learned of a round helps the next one.

use core::ops::{Add, Sub};
use core::time::Duration;
use std::collections::VecDeque;

use thinair_http::Target;
use thinair_link::Side;
use thinair_wire::time::Instant;

use super::fragmenting::Fragmenting;
use super::party::Party;
use super::{Close, END, Fetch};
use crate::network::ip::{Address, Socket};
use crate::network::{Host, Network};
use crate::streams::{Purpose, Streams};
use thinair_emulator::DirectionTotals;

/// The first port of a client.
const FIRST_PORT: u16 = 40_000;

/// Linux takes a port that is higher by 2 to 16 for the next connection to the same server, in steps of 2.
const PORT_STEP: u64 = 2;
const PORT_STEPS: u64 = 8;

/// Connections of a host that may still be ending, and the latest one.
const CONNECTIONS: usize = 2;

/// Who fetches, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Clients, each with a server of its own at the other end. A client of CoAP goes on from round to round, from the same
    /// port; others make a new connection each time, but with [`Close::Never`].
    pub clients: u16,
    /// How often each of them fetches it.
    pub rounds: usize,
    /// In a round each begins at a random time within so long.
    pub spread: Duration,
    /// From when the last one has its object, or none any more, to the next round.
    pub pause: Duration,
}

/// What one round took, with the pause behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Client by client; nothing where the object did not come.
    pub took: Vec<Option<Duration>>,
    /// Both ways.
    pub carried: Carried,
}

/// What the link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// IP packets that were to go over the link, and octets of them.
    pub packets: u64,
    /// Octets of them.
    pub ip_octets: u64,
    /// Octets that the link was given for them: with ROHC, its packets and feedback.
    pub octets: u64,
    /// Packets that came out, each compared with what went in.
    pub delivered: u64,
    /// Of those, packets that were not, bit for bit, what went in.
    pub altered: u64,
    /// Packets that have arrived and that a decompressor did not give back.
    pub not_decompressed: u64,
}

impl Carried {
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

impl Add for Carried {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::add)
    }
}

impl Sub for Carried {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

/// A host with its connections.
struct Ongoing {
    /// The latest one is the last.
    parties: VecDeque<Party>,
}

impl Ongoing {
    fn latest(&self) -> Option<&Party> {
        self.parties.back()
    }

    fn push(&mut self, party: Party) {
        if self.parties.len() == CONNECTIONS {
            self.parties.pop_front();
        }
        self.parties.push_back(party);
    }
}

impl Host for Ongoing {
    /// Whose packet it is, each finds out by ports.
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.parties.iter_mut().for_each(|party| party.handle_packet(now, packet));
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.parties.iter_mut().any(|party| party.poll_packet(now, packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.parties.iter().filter_map(Host::poll_timeout).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.parties.iter_mut().for_each(|party| party.handle_timeout(now));
    }
}

impl Fetch {
    /// Fetches it in rounds. `seed` determines every octet.
    pub fn rounds(&self, rounds: &Rounds, seed: u64) -> Vec<Round> {
        let mut network: Network<Fragmenting<Ongoing>> = Network::new(&self.model, seed, self.rohc.as_ref());
        for number in 0..rounds.clients {
            // Servers stand before their clients.
            for side in [Side::B, Side::A] {
                let host = Ongoing { parties: VecDeque::new() };
                network.add(Address::new(side, number), Fragmenting::new(host, self.mtu));
            }
        }
        let mut begins = Streams::new(seed).random(0, 0, Purpose::Arrivals);
        let mut start = Instant::ZERO;
        let (mut ports, mut before) = (vec![FIRST_PORT; rounds.clients.into()], Carried::default());
        let mut done = Vec::new();
        for round in 0..rounds.rounds {
            for (number, port) in (0..rounds.clients).zip(&mut ports) {
                let begin = start + Duration::from_nanos(begins.below(rounds.spread.as_nanos() as u64 + 1));
                let seed = seed.wrapping_mul(u64::from(u16::MAX)).wrapping_add(number.into());
                self.again(&mut network, number, *port, begin, seed.wrapping_add((round as u64) << 40));
                let step = Streams::new(seed).stream(round as u32, 0, Purpose::Arrivals).below(PORT_STEPS);
                *port = port.wrapping_add((PORT_STEP * (1 + step)) as u16).max(FIRST_PORT);
            }
            network.wake();
            let mut waits = vec![true; rounds.clients.into()];
            let mut left = rounds.clients;
            network.run_until(start + END, |number, host| {
                let over = host.host.latest().is_some_and(Party::is_over);
                if number % 2 == 1 && over && waits.get_mut(number / 2).is_some_and(core::mem::take) {
                    left -= 1;
                }
                left == 0
            });
            start = network.now() + rounds.pause;
            network.run_until(start, |_, _| false);
            let carried = Carried::of(Side::ALL.map(|side| network.totals(side)));
            let clients = network.hosts().skip(1).step_by(2);
            let took = clients.map(|client| client.host.latest().and_then(Party::took)).collect();
            done.push(Round { took, carried: carried - before });
            before = carried;
        }
        done
    }

    /// So many clients share the link; each begins at a time within `spread`. How long each took; nothing where the object
    /// did not come.
    pub fn crowd(&self, clients: u16, spread: Duration, seed: u64) -> Vec<Option<Duration>> {
        let rounds = Rounds { clients, rounds: 1, spread, pause: Duration::ZERO };
        self.rounds(&rounds, seed).pop().map(|round| round.took).unwrap_or_default()
    }

    /// A client asks for it, once more or for the first time.
    fn again(
        &self,
        network: &mut Network<Fragmenting<Ongoing>>,
        number: u16,
        port: u16,
        begin: Instant,
        seed: u64,
    ) {
        let [client, server] = Side::ALL.map(|side| Socket { address: Address::new(side, number), port });
        let server = Socket { port: self.port(), ..server };
        let mut hosts = network.hosts_mut().skip(2 * usize::from(number));
        let (Some(at_server), Some(at_client)) = (hosts.next(), hosts.next()) else { return };
        let path = self.path();
        let goes_on = match at_client.host.parties.back_mut() {
            Some(Party::CoapClient(client)) => {
                client.begin(self.requests(begin));
                true
            }
            // One that closes is not asked: what is lost may hold it up for long.
            Some(Party::Client(client)) if self.close == Close::Never => {
                client.ask(begin, Target { host: &self.host, path: &path })
            }
            _ => false,
        };
        if goes_on {
            return;
        }
        if let Some([asks, serves]) = self.parties(client, server, begin, seed) {
            at_server.host.push(serves);
            at_client.host.push(asks);
        }
    }
}
