//! Memory of an endpoint, compared with its documentation.

use crate::config::Limits;
use core::mem::size_of;
use core::time::Duration;
use std::net::SocketAddr;
use std::vec::Vec;

use thinair_link::Random;

use super::support::*;
use crate::endpoint::flight::Flight;
use crate::endpoint::observers::Observer;
use crate::endpoint::peer::PeerState;
use crate::endpoint::remembered::StoredMessage;
use crate::endpoint::server::PendingRequest;
use crate::*;

/// Octets of an entry of the index by hash: two buckets at most, and a link.
const INDEX: usize = 2 * 4 + 8;
/// Octets that a slot adds to its value, with its place in an order.
const SLOT: usize = 8;
const ORDER: usize = 8;

#[test]
fn octets_of_each_are_those_of_the_documentation() {
    let peer = size_of::<PeerState<SocketAddr>>() + SLOT + INDEX + ORDER;
    let remembered = size_of::<StoredMessage>() + INDEX;
    let request = size_of::<PendingRequest>() + SLOT + ORDER;
    std::println!(
        "peer {peer}, remembered {remembered}, request {request}, flight {}, observer {}",
        size_of::<Flight>(),
        size_of::<Observer>()
    );
    assert!(peer <= 336, "{peer}");
    assert!(remembered <= 72, "{remembered}");
    assert!(request <= 176, "{request}");
}

impl<P: Copy + Eq + core::hash::Hash> Endpoint<P> {
    /// Octets of memory, and number of entries in trees.
    fn memory(&self) -> (usize, usize) {
        let octets = self.peers.capacity()
            + self.remembered.capacity()
            + self.octets.capacity()
            + self.outgoing.capacity() * size_of::<crate::endpoint::QueuedSend>()
            + self.flights.capacity()
            + self.requests.capacity()
            + self.unacknowledged.capacity()
            + self.calls.capacity()
            + self.observers.capacity()
            + self.events.capacity() * size_of::<Event<'static, P>>()
            + self.held_octets();
        let entries =
            self.by_message.len() + self.by_token.len() + self.by_observer.len() + self.timers.len();
        (octets, entries)
    }
}

/// Random datagrams of all kinds, often with a valid header, from ever new addresses.
fn garbage(random: &mut Random) -> (u32, Vec<u8>) {
    let word = random.next_u64();
    let mut octets: Vec<u8> = (0..word % 40).map(|_| random.next_u64() as u8).collect();
    if word >> 8 & 3 > 0 && octets.len() >= 4 {
        octets[0] = 0x40 | octets[0] & 0x31;
        octets[1] = [1, 1, 2, 3, 5, 0x45, 0x5F, 0][(word >> 16 & 7) as usize];
        if word >> 20 & 1 == 1 {
            octets.truncate(4 + usize::from(octets[0] & 0xF));
            octets.extend(*b"\xb1a\xd1\x03\x08\xff0123456789abcdef");
        }
    }
    ((word >> 32) as u32 % 100_000, octets)
}

/// A million datagrams: memory is that of the first hundred thousand, and below the configured bound.
#[test]
fn memory_is_flat_under_a_flood_of_garbage() {
    let mut random = Random::new(5);
    let mut seeds = Random::new(6);
    let mut server = Endpoint::<u32>::new(Config::default(), move || seeds.next_u64());
    let (mut now, mut buffer) = (at(0), [0; 1_152]);
    let mut before = None;
    for i in 0..1_000_000 {
        let (peer, octets) = garbage(&mut random);
        now = now + Duration::from_micros(100);
        if let Some(Event::Request { id, .. }) = server.handle_datagram(now, peer, &octets) {
            match i % 3 {
                0 => server.dismiss(id),
                // Some are never answered, until there are too many.
                1 if i % 1_000 == 1 => {}
                _ => drop(server.respond(now, id, &Response::content(&b"22.3 C"[..]))),
            }
        }
        server.handle_timeout(now);
        while server.poll_transmit(now, &mut buffer).is_some() {}
        while server.poll_event().is_some() {}
        if i == 200_000 {
            before = Some(server.memory().0 - server.held_octets());
        }
    }
    let (octets, entries) = server.memory();
    std::println!("{octets} octets, {entries} entries, {:?}", server.counters());
    assert_eq!(Some(octets - server.held_octets()), before);
    assert!(octets < 2 << 20, "{octets}");
    // A timer for each transfer.
    assert!(entries <= 2 * 64, "{entries}");
    assert!(server.counters().malformed > 100_000 && server.counters().received == 1_000_000);
}

/// Uploads that are never completed, a block now and then, from many peers: memory stays constant, and they
/// end.
#[test]
fn memory_is_flat_under_uploads_that_never_end() {
    let config = Config { limits: Limits { max_bodies: 200_000, ..Limits::default() }, ..Config::default() };
    let mut server = Endpoint::<u32>::new(config, || 7);
    let mut buffer = [0; 1_152];
    let mut most = 0;
    for num in 0..60_u32 {
        for peer in 0..2_000_u32 {
            let now = at(u64::from(num) * 20_000 + u64::from(peer) * 10);
            let value = Block { num, more: true, size: BlockSize::MAX }.to_uint();
            let mut out = [0; 1_100];
            let mut builder =
                Builder::new(&mut out, Type::Confirmable, Code::PUT, num as u16, &Token::EMPTY).unwrap();
            builder.option(number::URI_PATH, b"a").unwrap();
            builder.uint(number::BLOCK1, value).unwrap();
            let len = builder.payload(&[7; 1_024]).unwrap();
            assert!(server.handle_datagram(now, peer, &out[..len]).is_none());
            server.handle_timeout(now);
            while server.poll_transmit(now, &mut buffer).is_some() {}
            assert!(server.held_octets() <= 200_000);
        }
        most = most.max(server.memory().0);
        assert!(server.peers() <= 1_024 && server.memory().1 <= 64);
    }
    std::println!("{most} octets at most");
    assert!(most < 2 << 20, "{most}");
    while let Some(now) = server.poll_timeout() {
        server.handle_timeout(now);
    }
    assert_eq!((server.held_octets(), server.memory().1), (0, 0));
}
