//! Endpoints that talk to each other in virtual time.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::vec::Vec;

use thinair_link::Random;
use thinair_wire::time::Instant;

use crate::*;

/// The one peer of an endpoint.
pub(crate) const PEER: u8 = 1;

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn endpoint(seed: u64) -> Endpoint<u8> {
    endpoint_with(seed, Config::default())
}

pub(crate) fn endpoint_with(seed: u64, config: Config) -> Endpoint<u8> {
    let mut random = Random::new(seed);
    Endpoint::new(config, move || random.next_u64())
}

/// An endpoint whose randomness is zero: Message IDs and Tokens count from 0, timeouts are not dithered.
pub(crate) fn plain(config: Config) -> Endpoint<u8> {
    Endpoint::new(config, || 0)
}

/// Everything that is to be sent.
pub(crate) fn sent(endpoint: &mut Endpoint<u8>, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2_000];
    let mut datagrams = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        datagrams.push(buffer[..transmit.len].to_vec());
    }
    datagrams
}

/// Everything that happens with a datagram.
pub(crate) fn received(endpoint: &mut Endpoint<u8>, now: Instant, datagram: &[u8]) -> Vec<Event<'static, u8>> {
    let mut events: Vec<_> = endpoint.handle_datagram(now, PEER, datagram).map(owned).into_iter().collect();
    events.extend(std::iter::from_fn(|| endpoint.poll_event()));
    events
}

pub(crate) fn owned(event: Event<'_, u8>) -> Event<'static, u8> {
    event.into_owned()
}
