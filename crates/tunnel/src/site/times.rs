//! Timers of a site: a schedule of its pipelines, so that of many peers only those are looked at that are due.

use thinair_session::{Destination, FEW, Seal};
use thinair_wire::time::Instant;

use super::Site;
use super::pipeline::{Outlet, Pipeline};

/// Octets of the longest datagram of the seal itself, which is a request for keys.
const LONGEST_MESSAGE: usize = 256;

impl Site {
    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout) if there is no input
    /// before.
    pub fn poll_at(&self) -> Option<Instant> {
        let first = self.schedule.first().map(|(at, _)| at);
        first.into_iter().chain(self.common.seal.as_ref().and_then(Seal::poll_at)).min()
    }

    /// Performs all actions that are due: handshakes, delayed feedback, periodic datagrams.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = self.take_due(now);
        for to in &due {
            self.poll_path(now, *to);
            self.poll_mapping(now, *to);
        }
        self.release_due(now);
        let Self { pipelines, common, .. } = self;
        // As many messages as there is room for; the others stay due.
        while common.outputs.has_room(LONGEST_MESSAGE)
            && let Some((to, address)) =
                common.seal.as_mut().and_then(|seal| seal.poll(now, &mut common.datagram))
        {
            let number = match to {
                Destination::Peer(peer) => peer,
                Destination::Everybody => 0,
            };
            let Some(Pipeline { link, .. }) = pipelines.get_mut(number) else { continue };
            let address = address.or_else(|| link.pair(common.seal.as_ref()));
            if address.is_some() || !link.needs_address {
                common.outputs.begin_datagram().extend_from_slice(&common.datagram);
                Outlet { now, common, link }.carry_datagram(address);
            }
        }
        self.note_unanswered(now);
        for to in due {
            let Self { pipelines, common, schedule, .. } = self;
            let Some(pipeline) = pipelines.get_mut(to) else { continue };
            let Pipeline { channel, packager, link, .. } = &mut *pipeline;
            let mut outlet = Outlet { now, common, link };
            if channel.poll_at().is_some_and(|at| at <= now) {
                channel.poll(now, &mut |unit| outlet.push(packager, unit));
                packager.pause(now, &mut |body| outlet.carry(body));
                if channel.there().is_none() {
                    packager.give_back();
                }
            }
            if packager.poll_at().is_some_and(|at| at <= now) {
                packager.poll(now, &mut |body| outlet.carry(body));
            }
            schedule.set(to, pipeline.poll_at());
        }
    }

    /// Takes the pipelines that are due out of the schedule, in the order of their numbers: as many as one round handles.
    fn take_due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        while due.len() < FEW
            && let Some(number) = self.schedule.due(now)
        {
            self.schedule.set(number, None);
            due.push(number);
        }
        due.sort_unstable();
        due
    }

    /// Sends packets whose wait is over, and those for which a datagram without packets is due otherwise.
    fn release_due(&mut self, now: Instant) {
        if self.hold.is_empty() {
            return;
        }
        for to in 0..self.pipelines.len() {
            let Some(due) = self.pipelines[to].waiting.due() else { continue };
            let sign = self.two_way().and_then(|seal| seal.sign_at(to));
            if due <= now || sign.is_some_and(|at| at <= now) {
                self.release(now, to);
            }
        }
    }

    /// Notes that timers of a pipeline may have changed.
    pub(super) fn note_times(&mut self, number: usize) {
        self.schedule.by(number, self.pipelines.get(number).and_then(Pipeline::poll_at));
    }

    /// Notes that timers of all pipelines may have changed: without a seal, that of a body is not known.
    pub(super) fn note_all_times(&mut self) {
        (0..self.pipelines.len()).for_each(|number| self.note_times(number));
    }

    /// Returns the site with the timers of its pipelines noted.
    pub(super) fn scheduled(mut self) -> Self {
        self.note_all_times();
        self
    }
}
