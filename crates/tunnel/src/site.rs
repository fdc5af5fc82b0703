//! One end of a tunnel, without input and output: packets of the system and datagrams of the carrier go in, datagrams
//! and packets come out.
//!
//! A packet goes by three stages, and comes back by them: a [channel](crate::channel) compresses it to a unit, a
//! [packager](crate::packaging) puts units into bodies, and a [seal](crate::seal) makes datagrams of bodies. What is sent
//! has a way (`site/way.rs`) for each peer, and one for all sites of a mesh. What is received has a source
//! (`site/source.rs`) for each peer, and for each other site, and all of it takes one way in (`site/inlet.rs`).

mod build;
mod inlet;
mod membership;
mod path;
mod source;
mod tell;
mod trouble;
mod way;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use thinair_wire::time::Instant;

use crate::channel::{AllowedIps, NotSent};
use crate::mtu::Narrow;
use crate::packaging::{BodyIn, Unpackager};
use crate::seal::{
    BodyFlags, Destination, KeyId, Missing, NewSession, Opened, PathNews, Refused, Seal, Sender, TwoWay,
};
use crate::status::{Counters, Drop};
use crate::too_big;

pub use build::BuildError;
pub(crate) use build::packaging;
use inlet::Inlet;
pub use membership::ChangeError;
use source::Source;
#[cfg(target_os = "linux")]
pub(crate) use tell::add_counters;
pub use trouble::Trouble;
use way::{Outlet, Way};

/// What a site hands over to whoever moves octets.
pub trait Shell {
    /// A datagram, a frame, or TS Packets, for the carrier: to that address, where the carrier knows addresses.
    fn carry(&mut self, to: Option<SocketAddr>, datagram: &[u8]);

    /// A packet, or a frame, for the interface. Whether the interface took it.
    fn deliver(&mut self, packet: &[u8]) -> bool;

    /// Something that people want to know.
    fn notice(&mut self, notice: Notice<'_>);
}

/// What people want to know of a peer, or of a site, by its name. Authentic, but for what a [`Trouble`] says is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'n> {
    /// New keys were agreed on, or announced.
    Session {
        /// With whom.
        name: &'n str,
        /// Where it is.
        address: Option<SocketAddr>,
        /// Whether it has started anew since it was heard before.
        restarted: bool,
    },
    /// Something is wrong from now on.
    Trouble {
        /// With whom; empty if that is not known.
        name: &'n str,
        /// What it is.
        trouble: &'n Trouble,
    },
    /// Nothing is wrong any more.
    Over {
        /// With whom.
        name: &'n str,
        /// What it was.
        trouble: &'n Trouble,
    },
    /// The path to it has another MTU than before.
    PathMtu {
        /// To whom.
        name: &'n str,
        /// Octets of the longest IP packet on the carrier.
        octets: u16,
    },
}

/// One end of a tunnel.
///
/// **Packets of the interface go to [`handle_packet`](Self::handle_packet); when no more of them wait,
/// [`pause`](Self::pause) is called. Datagrams go to [`handle_datagram`](Self::handle_datagram), octets of a stream to
/// [`handle_stream`](Self::handle_stream). [`poll`](Self::poll) is called after each of them, and when
/// [`poll_at`](Self::poll_at) has come.**
pub struct Site {
    ways: Vec<Way>,
    sources: Vec<Source>,
    /// Where nothing but what is in a body tells who sent it: for all sources together.
    together: Option<Unpackager>,
    /// Whether all sources share one way: a mesh.
    mesh: bool,
    seal: Option<Seal>,
    /// By number of the source.
    allowed: AllowedIps,
    counters: Counters,
    /// Octets that the carrier adds to a datagram: headers of IP and UDP, or CRC and marks of a frame.
    outer: usize,
    /// Lengths on a path that is narrower than configured.
    narrow: Narrow,
    /// The datagram that is being made.
    datagram: Vec<u8>,
    /// When a sender was last asked for shorter packets.
    answered_at: Option<Instant>,
}

impl Site {
    /// A packet, or a frame, that the system sends.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8], shell: &mut dyn Shell) {
        // A mesh sends to all, and those that it is not for have no use for it.
        let to = if self.mesh { Some(0) } else { self.allowed.route(packet) };
        let Self { ways, seal, counters, datagram, outer, .. } = self;
        let Some(way) = to.and_then(|to| ways.get_mut(to)) else {
            counters.drops.count(Drop::NoRoute);
            return;
        };
        if way.packager.is_full() {
            counters.drops.count(Drop::CarrierFull);
            return;
        }
        let Way { channel, packager, link, .. } = way;
        let mut outlet = Outlet { now, seal, counters, datagram, outer: *outer, link, shell };
        if std::mem::take(&mut outlet.link.has_grouped) {
            channel.begin_group();
        }
        let sent = channel.send(now, packet, &mut |unit| outlet.push(packager, unit));
        match sent {
            Ok(sent) => {
                outlet.counters.sent.packet(packet.len(), sent.octets);
                outlet.link.sent.packet(packet.len(), sent.octets);
                if sent.units > 1
                    && let Some(path) = &mut outlet.link.path
                {
                    path.wanted(now);
                }
            }
            Err(error) => {
                outlet.counters.drops.count(reason_not_sent(&error));
                if let NotSent::TooLong { octets, most } = error {
                    self.answer_too_long(now, packet, octets.saturating_sub(most), shell);
                }
            }
        }
    }

    /// Asks the sender of a packet that is so many octets too long for shorter ones.
    fn answer_too_long(&mut self, now: Instant, packet: &[u8], excess: usize, shell: &mut dyn Shell) {
        /// Least time between two answers.
        const CALM: Duration = Duration::from_millis(10);
        /// Octets that the header of a later packet may be compressed worse by.
        const SLACK: usize = 16;
        let is_calm = self.answered_at.is_none_or(|at| now.since(at) >= CALM);
        let mtu = u16::try_from(packet.len().saturating_sub(excess + SLACK)).unwrap_or(u16::MAX);
        if let Some(answer) = too_big::answer(packet, mtu).filter(|_| is_calm && mtu >= LEAST_MTU) {
            self.answered_at = Some(now);
            shell.deliver(&answer);
        }
    }

    /// Packets go together in one datagram up to so many octets from now on.
    pub fn keep_together(&mut self, octets: usize) {
        for way in &mut self.ways {
            way.packager.keep_together(octets);
        }
    }

    /// No more packets wait: what is begun goes now, or when it has waited as long as the plan says.
    pub fn pause(&mut self, now: Instant, shell: &mut dyn Shell) {
        let Self { ways, seal, counters, datagram, outer, .. } = self;
        for way in ways {
            let Way { packager, link, .. } = way;
            let mut outlet = Outlet { now, seal, counters, datagram, outer: *outer, link, shell };
            packager.pause(now, &mut |body| outlet.carry(body));
        }
    }

    /// A datagram, or a frame, of the carrier, and where it came from.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &mut [u8],
        shell: &mut dyn Shell,
    ) {
        self.counters.received_datagram(datagram.len() + self.outer);
        let payload = datagram.len();
        let octets = payload + self.outer;
        let Some(seal) = &mut self.seal else {
            let body = BodyIn { octets: datagram, several: false, addressed: false };
            self.receive(now, None, Missing::Uncounted, body, false, shell);
            return;
        };
        match seal.open(now, from, datagram) {
            Opened::Body { from: sender, flags, body, newest, missing, session } => {
                let moved_to = from.filter(|_| newest);
                let Some(source) = self.hear(now, sender, session, moved_to, octets, shell) else { return };
                let BodyFlags { several, addressed } = flags;
                let (addressed, large) = (addressed && self.mesh, addressed && !self.mesh);
                let body = BodyIn { octets: body, several, addressed };
                self.receive(now, Some((source, sender)), missing, body, large, shell);
            }
            Opened::Path { from: sender, newest, missing, session, path } => {
                let moved_to = from.filter(|_| newest);
                let Some(source) = self.hear(now, sender, session, moved_to, octets, shell) else { return };
                match path {
                    PathNews::Confirmed(octets) => {
                        self.note_missing(source, missing);
                        self.confirmed(now, source, octets, shell);
                    }
                    PathNews::Confirm => {
                        self.note_missing(source, missing);
                        self.confirm(now, source, payload, shell);
                    }
                    PathNews::ConfirmBody(BodyFlags { several, addressed }, octets) => {
                        let body = BodyIn { octets, several, addressed: false };
                        self.receive(now, Some((source, sender)), missing, body, addressed, shell);
                        self.confirm(now, source, payload, shell);
                    }
                }
            }
            Opened::Session { from: sender, session } => {
                if let Some(source) = number(&self.sources, sender) {
                    self.begin_session(now, source, session, shell);
                    self.note_missing(source, Missing::Unknown);
                }
            }
            Opened::Alive { from: sender, missing } => {
                let Some(number) = number(&self.sources, sender) else { return };
                self.note_missing(number, missing);
                if let Some(source) = self.sources.get_mut(number) {
                    source.heard_at = Some(now);
                    source.works(shell);
                }
            }
            Opened::Closed { from: sender } => {
                if let Some(source) = number(&self.sources, sender) {
                    self.end_session(now, source, shell);
                }
            }
            Opened::Handled => {}
            Opened::Refused(refused) => {
                self.counters.drops.count(reason_refused(refused));
                self.note_refused(now, from, refused, shell);
            }
        }
    }

    /// Octets of a stream of TS Packets, from a file.
    pub fn handle_stream(&mut self, now: Instant, octets: &[u8], shell: &mut dyn Shell) {
        self.counters.received_datagram(octets.len());
        let (together, mut inlet) = self.inlet(now, false, shell);
        if let Some(together) = together {
            together.receive_stream(octets, &mut |site, unit| inlet.take(None, site, unit));
        }
    }

    /// The stream has ended.
    pub fn finish_stream(&mut self, now: Instant, shell: &mut dyn Shell) {
        let (together, mut inlet) = self.inlet(now, false, shell);
        if let Some(together) = together {
            together.finish_stream(&mut |site, unit| inlet.take(None, site, unit));
        }
    }

    /// Ends all sessions: tells peers so, and sends nothing to them any more.
    pub fn farewell(&mut self, now: Instant, shell: &mut dyn Shell) {
        if let Some(seal) = &mut self.seal {
            seal.farewell(now);
        }
        self.poll(now, shell);
    }

    /// The end: what is to be kept for the next time is kept.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(&mut self) -> std::io::Result<()> {
        self.seal.as_mut().map_or(Ok(()), Seal::close)
    }

    /// Addresses of peers that are worth to be remembered for the next start: name, key that it is asked with, address.
    pub fn whereabouts(&self) -> impl Iterator<Item = (&str, KeyId, SocketAddr)> {
        let two_way = match &self.seal {
            Some(Seal::TwoWay(seal)) => Some(seal),
            Some(Seal::Insecure(_) | Seal::Group(_)) | None => None,
        };
        let known = two_way.into_iter().flat_map(TwoWay::whereabouts);
        known.filter_map(|at| Some((self.ways.get(at.peer)?.name.as_str(), at.key, at.address)))
    }

    /// Changes with every change of [`whereabouts`](Self::whereabouts).
    pub fn moves(&self) -> u64 {
        match &self.seal {
            Some(Seal::TwoWay(seal)) => seal.moves(),
            Some(Seal::Insecure(_) | Seal::Group(_)) | None => 0,
        }
    }

    /// Counters of the site as a whole.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the carrier could not make a datagram of, or a packet that went no further outside of here.
    pub fn note(&mut self, reason: Drop, times: u64) {
        self.counters.drops.add(reason, times);
    }

    /// A packet was so many nanoseconds in the daemon, from the interface to the carrier.
    pub fn note_way_out(&mut self, nanos: u64) {
        self.counters.latency_sent.record(nanos);
    }

    /// A datagram was so many nanoseconds in the daemon, from the carrier to the interface.
    pub fn note_way_in(&mut self, nanos: u64) {
        self.counters.latency_received.record(nanos);
    }

    /// When [`poll`](Self::poll) has to be called next, if nothing comes and goes until then.
    pub fn poll_at(&self) -> Option<Instant> {
        let ways = self.ways.iter().flat_map(|way| [way.channel.poll_at(), way.packager.poll_at()]);
        let paths = self.ways.iter().map(|way| way.link.path.as_ref()?.poll_at());
        ways.chain(paths).chain([self.seal.as_ref().and_then(Seal::poll_at)]).flatten().min()
    }

    /// Hands over what is due: handshakes, feedback that has waited long enough, what is sent every so often.
    pub fn poll(&mut self, now: Instant, shell: &mut dyn Shell) {
        self.poll_paths(now, shell);
        let Self { ways, seal, counters, datagram, outer, .. } = self;
        if let Some(seal) = seal {
            while let Some((to, address)) = seal.poll(now, datagram) {
                let way = match to {
                    Destination::Peer(peer) => peer,
                    Destination::Everybody => 0,
                };
                let Some(way) = ways.get_mut(way) else { continue };
                let address = address.or_else(|| way.link.address(Some(seal)));
                if address.is_some() || !way.link.needs_address {
                    counters.sent_datagram(datagram.len() + *outer);
                    way.link.sent.datagram(datagram.len() + *outer);
                    shell.carry(address, datagram);
                }
            }
        }
        self.note_unanswered(now, shell);
        let Self { ways, seal, counters, datagram, outer, .. } = self;
        for way in ways {
            let Way { channel, packager, link, .. } = way;
            let mut outlet = Outlet { now, seal, counters, datagram, outer: *outer, link, shell };
            if channel.poll_at().is_some_and(|at| at <= now) {
                channel.poll(now, &mut |unit| outlet.push(packager, unit));
                packager.pause(now, &mut |body| outlet.carry(body));
            }
            if packager.poll_at().is_some_and(|at| at <= now) {
                packager.poll(now, &mut |body| outlet.carry(body));
            }
        }
    }

    /// Notes a datagram of so many octets that is authentic. `moved_to`: address of the sender from now on. Returns the number of
    /// its source.
    fn hear(
        &mut self,
        now: Instant,
        sender: Sender,
        session: Option<NewSession>,
        moved_to: Option<SocketAddr>,
        octets: usize,
        shell: &mut dyn Shell,
    ) -> Option<usize> {
        let Some(number) = number(&self.sources, sender) else {
            self.counters.drops.count(Drop::UnknownSender);
            return None;
        };
        if let Some(session) = session {
            self.begin_session(now, number, session, shell);
        }
        let source = self.sources.get_mut(number)?;
        source.counters.received.datagram(octets);
        source.heard_at = Some(now);
        source.works(shell);
        source.address = moved_to.or(source.address);
        Some(number)
    }

    fn begin_session(&mut self, now: Instant, number: usize, session: NewSession, shell: &mut dyn Shell) {
        let Self { ways, sources, seal, counters, datagram, outer, mesh, .. } = self;
        let Some(source) = sources.get_mut(number) else { return };
        source.counters.sessions += 1;
        source.session_at = Some(now);
        source.heard_at = Some(now);
        source.works(shell);
        let way = if *mesh { 0 } else { number };
        let Some(way) = ways.get_mut(way) else { return };
        if session.restarted {
            source.counters.restarts += 1;
            way.channel.reset(source.id.filter(|_| *mesh));
            if let Some(path) = &mut way.link.path {
                path.restart();
            }
        }
        let address = source.address.or_else(|| way.link.address(seal.as_ref()));
        shell.notice(Notice::Session { name: &source.name, address, restarted: session.restarted });
        let mut outlet = Outlet { now, seal, counters, datagram, outer: *outer, link: &mut way.link, shell };
        outlet.carry_held();
    }

    /// The other end goes. What is sent meanwhile waits for its next start, which knows no contexts.
    fn end_session(&mut self, now: Instant, number: usize, shell: &mut dyn Shell) {
        let Some(source) = self.sources.get_mut(number) else { return };
        source.session_at = None;
        source.heard_at = Some(now);
        source.suffers(now, Trouble::Closed, shell);
        if let Some(way) = self.ways.get_mut(number) {
            way.channel.reset(None);
        }
    }

    /// Takes a body, of a source and with the units missing before it if the seal tells them.
    fn receive(
        &mut self,
        now: Instant,
        sealed: Option<(usize, Sender)>,
        missing: Missing,
        body: BodyIn<'_>,
        large: bool,
        shell: &mut dyn Shell,
    ) {
        let number = sealed.map(|(number, _)| number);
        if let Some(number) = number {
            self.note_missing(number, missing);
        }
        let (together, mut inlet) = self.inlet(now, large, shell);
        // The unpackager is taken out for the time being: units of it go to sources, too.
        let taken = match number.and_then(|number| inlet.sources.get_mut(number)) {
            Some(source) => source.unpackager.take(),
            None => together.take(),
        };
        let Some(mut unpackager) = taken else { return };
        let mut units = 0;
        let result = unpackager.receive(body, &mut |site, unit| {
            units += 1;
            inlet.take(number, site, unit);
        });
        if result.is_err() {
            inlet.counters.drops.count(Drop::MalformedDatagram);
        }
        match number.and_then(|number| inlet.sources.get_mut(number)) {
            Some(source) => source.unpackager = Some(unpackager),
            None => *together = Some(unpackager),
        }
        if let (Some((_, sender)), Some(seal)) = (sealed, &mut self.seal)
            && missing != Missing::Uncounted
        {
            seal.note_opened(sender, units);
        }
    }

    /// Units that are missing before a datagram, whatever is in it, are missing in each channel that its source sends; one that
    /// they tear is lost.
    fn note_missing(&mut self, number: usize, missing: Missing) {
        let is_sealed = matches!(self.seal, Some(Seal::TwoWay(_) | Seal::Group(_)));
        let unpackager = self.sources.get_mut(number).and_then(|source| source.unpackager.as_mut());
        if let Some(unpackager) = unpackager.filter(|_| is_sealed && missing != Missing::Counted(0)) {
            unpackager.resynchronize();
        }
        let way = self.ways.get_mut(if self.mesh { 0 } else { number });
        if let (Some(source), Some(way)) = (self.sources.get_mut(number), way) {
            let missing = source.missing(missing, way.packager.tears());
            way.channel.note_missing(source.id.filter(|_| self.mesh), missing);
        }
    }

    /// The way in, beside what makes units for all sources together.
    fn inlet<'a>(
        &'a mut self,
        now: Instant,
        large: bool,
        shell: &'a mut dyn Shell,
    ) -> (&'a mut Option<Unpackager>, Inlet<'a>) {
        let Self { together, sources, ways, mesh, allowed, counters, .. } = self;
        (together, Inlet { now, sources, ways, mesh: *mesh, large, allowed, counters, shell })
    }
}

/// Octets of the longest packet that each host takes without cutting it: RFC 791, section 3.2.
const LEAST_MTU: u16 = 68;

/// The number of the source that a seal names.
fn number(sources: &[Source], sender: Sender) -> Option<usize> {
    match sender {
        Sender::Peer(peer) => (peer < sources.len()).then_some(peer),
        Sender::Site(site) => sources.iter().position(|source| source.id == Some(site)),
    }
}

fn reason_not_sent(error: &NotSent) -> Drop {
    use thinair_rohc::CompressError;
    match error {
        NotSent::Compress(CompressError::NotIp(_)) | NotSent::ShortFrame(_) | NotSent::RohcFrame => {
            Drop::NotIp
        }
        NotSent::Compress(CompressError::NoContexts) => Drop::NotCompressed,
        NotSent::Compress(CompressError::OutputTooSmall { .. }) | NotSent::TooLong { .. } => Drop::TooLong,
        NotSent::OnlyHears => Drop::NoRoute,
    }
}

fn reason_refused(refused: Refused) -> Drop {
    match refused {
        Refused::Malformed => Drop::MalformedDatagram,
        Refused::Unknown | Refused::Ambiguous | Refused::NotAnnounced(_) => Drop::UnknownSession,
        Refused::Forged | Refused::WornOut => Drop::Forged,
        Refused::Replayed | Refused::TooOld => Drop::Replayed,
        Refused::Reflected => Drop::Reflected,
        Refused::UnknownKey { .. } | Refused::Unasked | Refused::OtherSuite(_) => Drop::Handshake,
        Refused::OtherParameters(_) => Drop::OtherChannel,
        Refused::StaleEpoch(_) | Refused::OtherSalt(_) | Refused::NotKept(_) => Drop::StaleEpoch,
    }
}
