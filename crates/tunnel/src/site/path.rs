//! Path MTU of each peer: probes, confirmations and reports, and the resulting limits of packaging and
//! channel.

use std::net::SocketAddr;

use thinair_session::PathSeal;
use thinair_wire::time::Instant;

use super::pipeline::{Outlet, Pipeline};
use super::{Site, SiteEvent};

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
        for number in 0..self.pipelines.len() {
            self.keep_to_path(number);
            self.note_times(number);
        }
    }

    /// MTU that the interface should have: the smallest of all peers.
    pub fn inside_mtu(&mut self) -> Option<u16> {
        if self.inside_mtu.is_none() {
            let paths = self.pipelines.iter().enumerate().filter_map(|(number, pipeline)| {
                let settled = pipeline.link.path.as_ref()?.settled();
                Some(self.narrow.on_path(settled.saturating_sub(self.more_around(number))).mtu)
            });
            self.inside_mtu = Some(paths.min());
        }
        self.inside_mtu.flatten()
    }

    /// Octets of datagrams to a peer beside those of the budget.
    fn more_around(&self, number: usize) -> u16 {
        self.two_way().map_or(0, |seal| seal.more_around(number)) as u16
    }

    /// Handles a confirmation by a peer of a length of the UDP payload.
    pub(super) fn confirmed(&mut self, now: Instant, number: usize, octets: u16) {
        let outer = u16::try_from(self.common.outer).unwrap_or(u16::MAX);
        if let Some(path) = self.pipelines.get_mut(number).and_then(|pipeline| pipeline.link.path.as_mut()) {
            path.handle_confirmation(now, octets.saturating_add(outer));
        }
        self.keep_to_path(number);
        self.note_times(number);
    }

    /// Confirms to a peer the arrival of a datagram with this payload length.
    pub(super) fn confirm(&mut self, now: Instant, number: usize, octets: usize) {
        let octets = u16::try_from(octets).unwrap_or(u16::MAX);
        let Self { pipelines, common, .. } = self;
        if let Some(Pipeline { link, .. }) = pipelines.get_mut(number) {
            Outlet { now, common, link }.carry_path(PathSeal::Confirmation(octets));
        }
    }

    /// Sends the probes to a peer that are due.
    pub(super) fn poll_path(&mut self, now: Instant, number: usize) {
        let Self { pipelines, common, .. } = self;
        if let Some(Pipeline { link, .. }) = pipelines.get_mut(number) {
            while let Some(octets) = link.path.as_mut().and_then(|path| path.poll(now)) {
                let padding = PathSeal::Padding(octets.saturating_sub(common.outer as u16));
                let is_sent = Outlet { now, common, link }.carry_path(padding);
                if !is_sent && let Some(path) = &mut link.path {
                    path.postpone(now);
                }
            }
        }
        self.keep_to_path(number);
    }

    /// Limits units and bodies to the MTU of the path to a peer.
    pub(super) fn keep_to_path(&mut self, number: usize) {
        let more = self.more_around(number);
        let Some(Pipeline { channel, packager, link, .. }) = self.pipelines.get_mut(number) else { return };
        let Some(path) = &link.path else { return };
        let size = path.size().saturating_sub(more);
        if link.limited_to != Some(size) {
            link.limited_to = Some(size);
            let narrow = self.narrow.on_path(size);
            packager.limit(narrow.body);
            channel.limit(narrow.unit);
            self.inside_mtu = None;
        }
        if link.settled != path.settled() {
            link.settled = path.settled();
            self.inside_mtu = None;
            self.common.outputs.push_event(Some(number), SiteEvent::PathMtu(link.settled));
        }
    }
}
