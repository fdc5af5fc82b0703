//! Path MTU of each peer: probes go out, confirmations and reports come in, and packaging and channel keep to what is found.

use std::net::SocketAddr;

use thinair_wire::time::Instant;

use super::way::{Link, Way};
use super::{Notice, Shell, Site};
use crate::seal::{Destination, PathSeal, Seal};
use crate::status::{Counters, Drop};

impl Site {
    /// A router, or this machine, reports that a datagram to `to` was too long for a link of that MTU. `local`: for an
    /// interface of this machine, which is believed; a report of a router is a hint.
    pub fn note_too_big(
        &mut self,
        now: Instant,
        to: SocketAddr,
        mtu: u32,
        local: bool,
        shell: &mut dyn Shell,
    ) {
        let outer = self.outer;
        for way in &mut self.ways {
            let address = way.link.address(self.seal.as_ref());
            let is_to = |address: SocketAddr| {
                address.ip().to_canonical() == to.ip().to_canonical()
                    && (local || address.port() == to.port())
            };
            if !address.is_some_and(is_to) {
                continue;
            }
            if let Some(path) = &mut way.link.path {
                if local {
                    let limit = u16::try_from(mtu).ok().filter(|mtu| usize::from(*mtu) > outer);
                    path.handle_refusal(now, path.size(), limit);
                } else {
                    path.handle_report(now, mtu);
                }
            }
        }
        self.keep_to_paths(shell);
    }

    /// Datagrams were refused because an interface of this machine takes less.
    pub fn note_refused_too_long(&mut self, times: u64) {
        self.counters.drops.add(Drop::CarrierTooLong, times);
    }

    /// MTU that the interface should have: the smallest that a peer has room for.
    pub fn inside_mtu(&self) -> Option<u16> {
        self.ways
            .iter()
            .filter_map(|way| Some(self.narrow.on_path(way.link.path.as_ref()?.settled()).mtu))
            .min()
    }

    /// A peer has confirmed a length of the payload of UDP.
    pub(super) fn confirmed(&mut self, now: Instant, number: usize, octets: u16, shell: &mut dyn Shell) {
        let outer = u16::try_from(self.outer).unwrap_or(u16::MAX);
        if let Some(path) = self.ways.get_mut(number).and_then(|way| way.link.path.as_mut()) {
            path.handle_confirmation(now, octets.saturating_add(outer));
        }
        self.keep_to_paths(shell);
    }

    /// Confirms to a peer that a datagram of that payload has arrived.
    pub(super) fn confirm(&mut self, now: Instant, number: usize, octets: usize, shell: &mut dyn Shell) {
        let Self { ways, seal: Some(seal), counters, datagram, outer, .. } = self else { return };
        let Some(way) = ways.get_mut(number) else { return };
        let octets = u16::try_from(octets).unwrap_or(u16::MAX);
        carry(now, &mut way.link, seal, counters, datagram, *outer, PathSeal::Confirmation(octets), shell);
    }

    /// Sends the probes that are due.
    pub(super) fn poll_paths(&mut self, now: Instant, shell: &mut dyn Shell) {
        let Self { ways, seal, counters, datagram, outer, .. } = self;
        let Some(seal) = seal else { return };
        for Way { link, .. } in ways {
            while let Some(octets) = link.path.as_mut().and_then(|path| path.poll(now)) {
                let padding = PathSeal::Padding(octets.saturating_sub(*outer as u16));
                let is_sent = carry(now, link, seal, counters, datagram, *outer, padding, shell);
                if !is_sent && let Some(path) = &mut link.path {
                    path.postpone(now);
                }
            }
        }
        self.keep_to_paths(shell);
    }

    /// Units and bodies are as long as each path allows.
    fn keep_to_paths(&mut self, shell: &mut dyn Shell) {
        for Way { name, channel, packager, link } in &mut self.ways {
            let Some(path) = &link.path else { continue };
            if link.limited_to != Some(path.size()) {
                link.limited_to = Some(path.size());
                let narrow = self.narrow.on_path(path.size());
                packager.limit(narrow.body);
                channel.limit(narrow.unit);
            }
            if link.settled != path.settled() {
                link.settled = path.settled();
                shell.notice(Notice::PathMtu { name, octets: path.settled() });
            }
        }
    }
}

/// Seals and sends; whether there were keys and an address.
#[allow(clippy::too_many_arguments, reason = "parts of a site, borrowed apart")]
fn carry(
    now: Instant,
    link: &mut Link,
    seal: &mut Seal,
    counters: &mut Counters,
    datagram: &mut Vec<u8>,
    outer: usize,
    path: PathSeal<'_>,
    shell: &mut dyn Shell,
) -> bool {
    let (Destination::Peer(peer), Some(address)) = (link.destination, link.address(Some(seal))) else {
        return false;
    };
    if seal.seal_path(now, peer, path, datagram).is_err() {
        return false;
    }
    counters.sent_datagram(datagram.len() + outer);
    link.sent.datagram(datagram.len() + outer);
    shell.carry(Some(address), datagram);
    true
}
