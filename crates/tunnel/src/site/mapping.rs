//! Timeouts of NATs before this end, which its probes find, and answers to probes of other ends.

use std::net::SocketAddr;
use std::time::Duration;

use thinair_session::mapping::{LONGEST, LearnedTimeout, MappingProbe, MappingSearch};
use thinair_session::{AddressPair, Destination, MappingMessage};
use thinair_wire::time::Instant;

use super::pipeline::{Link, Outlet, Pipeline};
use super::{CommonParts, Site, SiteEvent};
use crate::status::Drop;

/// An answer that a peer has requested. Another request replaces it: a peer has one answer for each datagram at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwedAnswer {
    id: u16,
    to: AddressPair,
    pub(super) at: Instant,
}

impl Site {
    /// Sets the result of an earlier search for the timeout of mappings to the peer of that name.
    pub fn remember_mapping(&mut self, now: Instant, name: &str, learned: LearnedTimeout) {
        let of_name = self.pipelines.iter_mut().filter(|pipeline| pipeline.name == name);
        for mapping in of_name.filter_map(|pipeline| pipeline.link.mapping.as_mut()) {
            *mapping = MappingSearch::new(now, Some(learned));
        }
        self.note_all_times();
    }

    /// Results of searches for the timeout of mappings, with the name of the peer.
    pub fn learned_mappings(&self) -> impl Iterator<Item = (&str, LearnedTimeout)> {
        self.pipelines.iter().filter_map(|Pipeline { name, link, .. }| {
            Some((name.as_str(), link.mapping.as_ref()?.learned()?))
        })
    }

    /// Addresses of peers to which mappings are probed.
    pub fn probed_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let probed = self.pipelines.iter().filter(|pipeline| pipeline.link.mapping.is_some());
        probed.filter_map(|pipeline| pipeline.link.address(self.common.seal.as_ref()))
    }

    /// Records that this end may have another address: timeouts are those of the NAT before it.
    pub fn note_moved(&mut self, now: Instant) {
        for Pipeline { link, .. } in &mut self.pipelines {
            if let Some(mapping) = &mut link.mapping {
                mapping.restart(now);
            }
        }
        if let Some(seal) = &mut self.common.seal {
            seal.show_address(now);
        }
        self.note_all_times();
    }

    /// Handles a message on a mapping, which came from `from`.
    pub(super) fn handle_mapping(
        &mut self,
        now: Instant,
        number: usize,
        from: Option<AddressPair>,
        message: MappingMessage,
    ) {
        let Some(Pipeline { link, .. }) = self.pipelines.get_mut(number) else { return };
        match (message, from) {
            (MappingMessage::Request { id, delay }, Some(to)) if delay <= LONGEST => {
                link.owed = Some(OwedAnswer { id, to, at: now + delay });
            }
            (MappingMessage::Request { .. }, _) => {}
            (MappingMessage::Answer { id, address }, _) => {
                if let Some(mapping) = &mut link.mapping {
                    mapping.handle_answer(now, id, address);
                }
            }
        }
        // The interval of keepalives may be another one now.
        self.schedule.by(number, Some(now));
    }

    /// Sends the probes and answers that are due between this end and a peer, and sets the interval of keepalives.
    pub(super) fn poll_mapping(&mut self, now: Instant, number: usize) {
        let Self { pipelines, common, .. } = self;
        let Some(Pipeline { link, .. }) = pipelines.get_mut(number) else { return };
        if let Some(OwedAnswer { id, to, .. }) = link.owed.take_if(|owed| owed.at <= now) {
            let address = to.peer.ip().to_canonical();
            if seal(now, common, link, &MappingMessage::Answer { id, address }) {
                Outlet { now, common, link }.carry_datagram(Some(to));
            }
        }
        while let Some(MappingProbe { id, delay }) =
            link.mapping.as_mut().and_then(|mapping| mapping.poll(now))
        {
            if !send_probe(now, common, link, &MappingMessage::Request { id, delay })
                && let Some(mapping) = &mut link.mapping
            {
                mapping.postpone(now);
            }
        }
        let Some(mapping) = &link.mapping else { return };
        let keepalive = mapping.keepalive();
        if let Some(seal) = &mut common.seal {
            seal.set_keepalive(now, number, keepalive);
        }
        let result = mapping.learned().map(|learned| Some(learned.timeout));
        let result = result.or(mapping.is_unanswered().then_some(None));
        if result.is_some() && link.reported != result {
            link.reported = result;
            let timeout: Option<Duration> = result.flatten();
            common.outputs.push_event(Some(number), SiteEvent::Mapping { timeout, keepalive });
        }
    }
}

/// Encrypts a message where it will wait. False: there are no keys.
fn seal(now: Instant, common: &mut CommonParts, link: &Link, message: &MappingMessage) -> bool {
    let CommonParts { seal: Some(seal), outputs, .. } = common else { return false };
    let Destination::Peer(peer) = link.destination else { return false };
    seal.seal_mapping(now, peer, message, outputs.begin_datagram()).is_ok()
}

/// Sends a message from the second socket. False: there are no keys, or no address.
fn send_probe(now: Instant, common: &mut CommonParts, link: &mut Link, message: &MappingMessage) -> bool {
    let Some(to) = link.pair(common.seal.as_ref()) else { return false };
    if !seal(now, common, link, message) {
        return false;
    }
    let CommonParts { counters, outer, outputs, .. } = common;
    if !outputs.has_room(outputs.begun()) {
        counters.drops.count(Drop::CarrierFull);
        return false;
    }
    let octets = outputs.begun() + *outer;
    outputs.push_probe(to.peer);
    counters.sent_datagram(octets);
    link.sent.datagram(octets);
    true
}
