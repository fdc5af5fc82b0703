//! Path MTU of each peer: probes, confirmations and reports, and the resulting limits of packaging and
//! channel.

use std::net::SocketAddr;

use thinair_wire::time::Instant;

use super::pipeline::{Outlet, Pipeline};
use super::{Site, SiteEvent};
use crate::seal::PathSeal;

impl Site {
    /// Handles a report of a router, or of this machine, that a datagram to `to` was too long for a link with
    /// this MTU. `local`: for an interface of this machine, which is trusted; a report of a router is a hint.
    pub fn note_too_big(&mut self, now: Instant, to: SocketAddr, mtu: u32, local: bool) {
        let outer = self.common.outer;
        for Pipeline { link, .. } in &mut self.pipelines {
            let address = link.address(self.common.seal.as_ref());
            let is_to = |address: SocketAddr| {
                address.ip().to_canonical() == to.ip().to_canonical()
                    && (local || address.port() == to.port())
            };
            if !address.is_some_and(is_to) {
                continue;
            }
            if let Some(path) = &mut link.path {
                if local {
                    let limit = u16::try_from(mtu).ok().filter(|mtu| usize::from(*mtu) > outer);
                    path.handle_refusal(now, path.size(), limit);
                } else {
                    path.handle_report(now, mtu);
                }
            }
        }
        self.keep_to_paths();
    }

    /// MTU that the interface should have: the smallest of all peers.
    pub fn inside_mtu(&self) -> Option<u16> {
        let paths = self.pipelines.iter().filter_map(|pipeline| pipeline.link.path.as_ref());
        paths.map(|path| self.narrow.on_path(path.settled()).mtu).min()
    }

    /// Handles a confirmation by a peer of a length of the UDP payload.
    pub(super) fn confirmed(&mut self, now: Instant, number: usize, octets: u16) {
        let outer = u16::try_from(self.common.outer).unwrap_or(u16::MAX);
        if let Some(path) = self.pipelines.get_mut(number).and_then(|pipeline| pipeline.link.path.as_mut()) {
            path.handle_confirmation(now, octets.saturating_add(outer));
        }
        self.keep_to_paths();
    }

    /// Confirms to a peer the arrival of a datagram with this payload length.
    pub(super) fn confirm(&mut self, now: Instant, number: usize, octets: usize) {
        let octets = u16::try_from(octets).unwrap_or(u16::MAX);
        let Self { pipelines, common, .. } = self;
        if let Some(Pipeline { link, .. }) = pipelines.get_mut(number) {
            Outlet { now, common, link }.carry_path(PathSeal::Confirmation(octets));
        }
    }

    /// Sends the probes that are due.
    pub(super) fn poll_paths(&mut self, now: Instant) {
        let Self { pipelines, common, .. } = self;
        for Pipeline { link, .. } in pipelines {
            while let Some(octets) = link.path.as_mut().and_then(|path| path.poll(now)) {
                let padding = PathSeal::Padding(octets.saturating_sub(common.outer as u16));
                let is_sent = Outlet { now, common, link }.carry_path(padding);
                if !is_sent && let Some(path) = &mut link.path {
                    path.postpone(now);
                }
            }
        }
        self.keep_to_paths();
    }

    /// Limits units and bodies to the MTU of each path.
    fn keep_to_paths(&mut self) {
        for (number, Pipeline { channel, packager, link, .. }) in self.pipelines.iter_mut().enumerate() {
            let Some(path) = &link.path else { continue };
            if link.limited_to != Some(path.size()) {
                link.limited_to = Some(path.size());
                let narrow = self.narrow.on_path(path.size());
                packager.limit(narrow.body);
                channel.limit(narrow.unit);
            }
            if link.settled != path.settled() {
                link.settled = path.settled();
                self.common.outputs.push_event(Some(number), SiteEvent::PathMtu(link.settled));
            }
        }
    }
}
