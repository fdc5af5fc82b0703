//! A path between clients and a server: losses, duplicates, reordering by a seed.

use core::time::Duration;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use thinair_wire::time::Instant;

use crate::*;

pub(super) const KEY: &[u8] = b"a secret of both";

pub(super) type Address = u8;

/// Numbers that follow from a seed (SplitMix64).
#[derive(Clone)]
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn is_one_of(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

pub(super) fn numbers(seed: u64) -> impl FnMut() -> u64 + Send {
    let mut numbers = Numbers(seed);
    move || numbers.next()
}

pub(super) fn psk(identity: &[u8]) -> Psk {
    Psk::new(identity, KEY).unwrap()
}

pub(super) fn client(config: ClientConfig) -> Client {
    Client::new(psk(b"phone"), config, numbers(1))
}

pub(super) fn server(config: ServerConfig) -> Server<Address> {
    Server::new(vec![psk(b"phone"), psk(b"tag")], config, numbers(2))
}

/// Impairments, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Impairments {
    pub(super) loss: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
}

/// A client, a server, and the path between them.
pub(super) struct Path {
    pub(super) client: Client,
    pub(super) server: Server<Address>,
    /// Address of the client.
    pub(super) address: Address,
    pub(super) now: Instant,
    pub(super) impairments: Impairments,
    numbers: Numbers,
    /// Datagrams under way: to the server from an address, or to the client at an address.
    under_way: BTreeMap<(Instant, u64), (bool, Address, Vec<u8>)>,
    count: u64,
    /// Everything that was sent: to the server or not.
    pub(super) sent: Vec<(bool, Vec<u8>)>,
    /// Application data that arrived.
    pub(super) at_client: Vec<Vec<u8>>,
    pub(super) at_server: Vec<(SessionId, Vec<u8>)>,
    pub(super) client_events: Vec<ClientEvent>,
    pub(super) server_events: Vec<ServerEvent<Address>>,
}

impl Path {
    pub(super) fn new(client: Client, server: Server<Address>) -> Self {
        Self {
            client,
            server,
            address: 1,
            now: Instant::from_millis(1_000_000),
            impairments: Impairments::default(),
            numbers: Numbers(0),
            under_way: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            at_client: Vec::new(),
            at_server: Vec::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
        }
    }

    pub(super) fn impaired(
        client: Client,
        server: Server<Address>,
        impairments: Impairments,
        seed: u64,
    ) -> Self {
        Self { impairments, numbers: Numbers(seed), ..Self::new(client, server) }
    }

    /// A path over which both are connected.
    pub(super) fn connected(client_config: ClientConfig, server_config: ServerConfig) -> Self {
        let mut path = Self::new(client(client_config), server(server_config));
        path.client.connect(path.now);
        path.run(Duration::ZERO);
        assert_eq!(path.client_events, [ClientEvent::Connected]);
        path
    }

    pub(super) fn session(&self) -> SessionId {
        let connected = self.server_events.iter().rev().find_map(|event| match event {
            ServerEvent::Connected { session, .. } => Some(*session),
            _ => None,
        });
        connected.unwrap()
    }

    fn put(&mut self, to_server: bool, address: Address, datagram: Vec<u8>) {
        self.sent.push((to_server, datagram.clone()));
        let Impairments { loss, duplicates, reordered } = self.impairments;
        let copies = if self.numbers.is_one_of(duplicates) { 2 } else { 1 };
        for _ in 0..copies {
            if self.numbers.is_one_of(loss) {
                continue;
            }
            let late = if self.numbers.is_one_of(reordered) { self.numbers.next() % 300 } else { 0 };
            self.count += 1;
            let at = self.now + Duration::from_millis(50 * u64::from(self.impairments.loss > 0) + late);
            self.under_way.insert((at, self.count), (to_server, address, datagram.clone()));
        }
    }

    /// A datagram that somebody else has put on the path.
    pub(super) fn forge(&mut self, to_server: bool, address: Address, datagram: &[u8]) {
        self.count += 1;
        self.under_way.insert((self.now, self.count), (to_server, address, datagram.to_vec()));
    }

    fn collect(&mut self) {
        let mut buffer = [0; 2_048];
        while let Some(len) = self.client.poll_datagram(self.now, &mut buffer) {
            self.put(true, self.address, buffer[..len].to_vec());
        }
        while let Some((peer, len)) = self.server.poll_datagram(self.now, &mut buffer) {
            self.put(false, peer, buffer[..len].to_vec());
        }
        self.client_events.extend(core::iter::from_fn(|| self.client.poll_event()));
        self.server_events.extend(core::iter::from_fn(|| self.server.poll_event()));
    }

    /// Sends application data of the client. Returns the datagram.
    pub(super) fn send(&mut self, content: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        let len = self.client.send(self.now, content, &mut buffer).unwrap();
        self.put(true, self.address, buffer[..len].to_vec());
        buffer[..len].to_vec()
    }

    /// Sends application data of the server. Returns the datagram.
    pub(super) fn answer(&mut self, session: SessionId, content: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        let (peer, len) = self.server.send(session, content, &mut buffer).unwrap();
        self.put(false, peer, buffer[..len].to_vec());
        buffer[..len].to_vec()
    }

    /// Runs for so long, or, with zero, until nothing is under way.
    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.collect();
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
            let next = match time.is_zero() {
                true => arrival,
                false => timers.into_iter().chain([arrival]).flatten().min().filter(|at| *at <= until),
            };
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to_server, address, mut datagram) = entry.remove();
                let mut rest = &mut datagram[..];
                while !rest.is_empty() {
                    if to_server {
                        let received = self.server.handle_datagram(self.now, address, &mut rest);
                        self.at_server.extend(received.map(|(session, content)| (session, content.to_vec())));
                    } else if address == self.address {
                        let received = self.client.handle_datagram(self.now, &mut rest);
                        self.at_client.extend(received.map(<[u8]>::to_vec));
                    } else {
                        break;
                    }
                }
                self.collect();
            }
        }
        if !time.is_zero() {
            self.now = until;
        }
    }
}
