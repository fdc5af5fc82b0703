//! The event loop: timers, received data, and data to send.

use std::os::fd::AsRawFd as _;
use std::time::Duration;

use thinair_os::event_loop::{EventLoop, Interest};
use thinair_os::udp::errors::Problem;
use thinair_os::{Signal, clock};
use thinair_wire::time::Instant;

use super::inside::Read;
use super::outside::{Arrival, Outside, Received};
use super::recorder::Heading;
use super::remembered::{self, Entry};
use super::setup::{Daemon, RunError};
use crate::site::{Site, SiteOutput};
use crate::status::Drop;

/// Tokens of the files that the loop waits for.
pub(super) const INSIDE: u64 = 0;
pub(super) const OUTSIDE: u64 = 1;
pub(super) const SIGNALS: u64 = 2;
pub(super) const STATUS: u64 = 3;
const ROOM: u64 = 4;
pub(super) const HELPER: u64 = 5;
pub(super) const CONTROL: u64 = 6;
pub(super) const PROBER: u64 = 7;

/// Packets read from the interface in a row.
const BATCH: usize = 64;

/// Batches after which unfinished datagrams are sent although more packets wait, so that a busy peer does not
/// delay a quiet one.
const BATCHES: u32 = 4;

/// Largest number of times that farewells to more peers are sent.
const ROUNDS: usize = 16;

/// Interval of answers to slow readers of the status, and of writes to captures.
const CHORES: Duration = Duration::from_millis(500);

impl Daemon {
    /// Carries packets until a signal arrives that asks to end, or until an input stream ends.
    ///
    /// # Errors
    /// The system can no longer wait for events.
    pub fn run(&mut self) -> Result<(), RunError> {
        let mut ready = Vec::new();
        let mut chores_at = None;
        loop {
            let now = clock::now();
            self.note_history(now);
            self.site.handle_timeout(now);
            self.drain();
            self.flush(now)?;
            self.remember(now);
            self.look_up_peers(now);
            if let Some(prober) = &mut self.prober {
                prober.look(now, &mut self.site);
            }
            if self.helper.has_late() {
                // Received while waiting for another answer, so that its socket will not wake the loop.
                self.take_late_answers()?;
            }
            if chores_at.is_none_or(|at| at <= now) {
                // Without chores the loop sleeps until an event.
                chores_at = self.do_chores(now).then_some(now + CHORES);
            }
            let always = [
                (OUTSIDE, self.outside.is_always_readable() && !self.stream_ended),
                (INSIDE, self.inside.has_more() && !self.is_full()),
            ];
            let has_input = always.iter().any(|(_, has_input)| *has_input);
            let until = if has_input { Some(now) } else { self.wake_at(chores_at) };
            self.events.wait(until, &mut ready)?;
            for (token, _) in always.into_iter().filter(|(_, has_input)| *has_input) {
                if !ready.contains(&token) {
                    ready.push(token);
                }
            }
            for &token in &ready {
                match token {
                    INSIDE => self.take_packets()?,
                    OUTSIDE => self.take_datagrams()?,
                    PROBER => {
                        if let Some(prober) = &self.prober {
                            prober.receive(clock::now(), &mut self.site);
                        }
                    }
                    STATUS => self.tell(clock::now()),
                    HELPER => self.take_late_answers()?,
                    CONTROL if self.take_verbs() => return self.end(),
                    SIGNALS => {
                        while let Some(signal) = self.signals.poll() {
                            if matches!(signal, Signal::End { .. }) {
                                return self.end();
                            }
                        }
                    }
                    _ => {}
                }
            }
            if self.stream_ended && self.ends_with_stream {
                return self.end();
            }
            let now = clock::now();
            if self.inside.retry(now, &mut self.helper) {
                self.events.add(self.inside.tun(), INSIDE)?;
                self.inside_waits = true;
            }
            if self.outside.retry(now, &mut self.helper)
                && let Some(file) = self.outside.readable()
            {
                self.events.add(file, OUTSIDE)?;
                self.outside_waits = false;
            }
        }
    }

    fn wake_at(&self, chores_at: Option<Instant>) -> Option<Instant> {
        let remembered = self.remembered.as_ref().and_then(|remembered| remembered.due_at(self.site.moves()));
        let times =
            [self.site.poll_at(), self.inside.retry_at(), self.outside.retry_at(), chores_at, remembered];
        times.into_iter().flatten().min()
    }

    /// Processes packets of the interface, as long as the carrier has room.
    fn take_packets(&mut self) -> Result<(), RunError> {
        let started = clock::now();
        let mut taken = 0_usize;
        let mut drained = false;
        while taken < BATCH {
            if self.is_full() {
                drained = true;
                break;
            }
            match self.inside.read(started) {
                Read::Packet(packet) => {
                    taken += 1;
                    if let Some(recorder) = &mut self.record_inside {
                        recorder.packet(packet);
                    }
                    self.site.handle_packet(started, packet);
                    self.drain();
                }
                Read::Malformed => self.site.note(Drop::NotIp, 1),
                Read::Nothing => {
                    drained = true;
                    break;
                }
                Read::Gone => {
                    self.events.remove(self.inside.tun())?;
                    self.inside_waits = false;
                    drained = true;
                    break;
                }
            }
        }
        // Before the system cuts many more segments.
        self.tell_limits();
        self.batches = if drained { 0 } else { self.batches + 1 };
        if drained || self.batches >= BATCHES {
            self.batches = 0;
            self.site.pause(started);
            self.drain();
        }
        let now = clock::now();
        self.flush(now)?;
        let nanos = clock::now().nanos_since(started);
        for _ in 0..taken {
            self.site.note_way_out(nanos);
        }
        Ok(())
    }

    /// True if packets must wait in the interface.
    fn is_full(&self) -> bool {
        self.outside.is_full() || self.site.is_full()
    }

    /// Processes data from the carrier.
    fn take_datagrams(&mut self) -> Result<(), RunError> {
        let started = clock::now();
        let received = self.outside.receive(started);
        let mut taken = 0_u32;
        while let Some(arrival) = self.outside.poll_arrival() {
            taken += 1;
            match arrival {
                Arrival::Datagram(from, datagram) => {
                    if let Some(recorder) = &mut self.record_outside {
                        recorder.datagram(Heading::In, from.map(|from| from.peer), datagram);
                    }
                    self.site.handle_datagram(started, from, datagram);
                }
                Arrival::Stream(octets) => {
                    if let Some(recorder) = &mut self.record_outside {
                        recorder.datagram(Heading::In, None, octets);
                    }
                    self.site.handle_stream(started, octets);
                }
                Arrival::WrongCrc => self.site.note(Drop::LineCrc, 1),
                Arrival::BadFrame => self.site.note(Drop::LineFrame, 1),
                Arrival::TooLong => self.site.note(Drop::MalformedDatagram, 1),
            }
            self.drain();
        }
        self.pass_on();
        self.tell_limits();
        let nanos = clock::now().nanos_since(started);
        for _ in 0..taken {
            self.site.note_way_in(nanos);
        }
        if received == Received::End {
            self.stream_ended = true;
            self.site.finish_stream(started);
            self.drain();
        }
        // Sends feedback and messages of a handshake.
        self.site.handle_timeout(started);
        self.drain();
        self.flush(started)
    }

    /// Moves outputs of the site to carrier, interface and log.
    fn drain(&mut self) {
        while let Some(output) = self.site.poll_output() {
            match output {
                SiteOutput::Datagram { number, to, octets } => {
                    if let Some(recorder) = &mut self.record_outside {
                        recorder.datagram(Heading::Out, to.map(|to| to.peer), octets);
                    }
                    self.outside.carry(number, to, octets);
                }
                SiteOutput::Probe { to, octets } => {
                    if let Some(prober) = &self.prober {
                        prober.send(to, octets);
                    }
                }
                SiteOutput::Packet { receipt, octets } => {
                    if let Some(recorder) = &mut self.record_inside {
                        recorder.packet(octets);
                    }
                    self.inside.write(octets, receipt);
                }
                SiteOutput::Event { name, event } => self.notices.log(clock::now(), name, event),
            }
        }
    }

    /// Passes packets to the system that wait for others of their flow.
    fn pass_on(&mut self) {
        self.inside.flush();
        while let Some(receipt) = self.inside.next_refused() {
            self.site.note_refused_packet(receipt);
        }
    }

    /// Sets the packet limits of the system. Where segments are short because of loss, datagrams must not
    /// contain several of them, as one loss would affect all.
    fn tell_limits(&mut self) {
        if let Some(octets) = self.inside.tell_limits() {
            self.site.keep_together(octets.into());
        }
    }

    /// Sends queued data, and waits for room if necessary.
    fn flush(&mut self, now: Instant) -> Result<(), RunError> {
        self.pass_on();
        let flushed = self.outside.flush(now);
        for number in flushed.refused {
            self.site.note_refused_datagram(number, Drop::CarrierRefused);
        }
        for number in flushed.too_long {
            self.site.note_refused_datagram(number, Drop::CarrierTooLong);
        }
        self.take_reports(now);
        let has_room = !self.is_full();
        let Self { events, outside, inside, outside_waits, inside_waits, .. } = self;
        if flushed.waits != *outside_waits {
            wait_for_room(events, outside, flushed.waits)?;
            *outside_waits = flushed.waits;
        }
        let wanted = inside.is_there() && has_room;
        if wanted != *inside_waits {
            if wanted {
                events.add(inside.tun(), INSIDE)?
            } else {
                events.remove(inside.tun())?
            }
            *inside_waits = wanted;
        }
        Ok(())
    }

    /// Stores changed addresses of peers.
    fn remember(&mut self, now: Instant) {
        let Self { remembered: Some(remembered), site, .. } = self else { return };
        let moves = site.moves();
        if remembered.due_at(moves).is_some_and(|at| at <= now) {
            let entry =
                |(name, key, addresses): (&str, _, _)| Entry { name: name.to_owned(), key, addresses };
            remembered.write(now, moves, site.whereabouts().map(entry));
        }
    }

    /// Processes error reports of datagrams, and adjusts the MTU of the interface.
    fn take_reports(&mut self, now: Instant) {
        while let Some(report) = self.outside.next_report() {
            match report.problem {
                Problem::TooBig { mtu, local } => {
                    tracing::debug!(to = %report.to, mtu, local, "a datagram was too long");
                    self.site.note_too_big(now, report.to, mtu, local);
                }
                Problem::Unreachable => self.site.note_unreachable(now, report.to),
                Problem::Other => {}
            }
            self.drain();
        }
        if let Some(mtu) = self.site.inside_mtu() {
            self.inside.set_mtu(mtu, &mut self.helper);
        }
    }

    /// Performs periodic chores. Returns whether more are pending.
    fn do_chores(&mut self, now: Instant) -> bool {
        for recorder in [&mut self.record_inside, &mut self.record_outside].into_iter().flatten() {
            recorder.flush();
        }
        let mut more = self.record_inside.is_some() || self.record_outside.is_some();
        if let Some(socket) = &mut self.status_socket {
            socket.go_on(now);
            more |= socket.is_busy();
        }
        more
    }

    /// Answers requests for the status.
    fn tell(&mut self, now: Instant) {
        let Some(mut socket) = self.status_socket.take() else { return };
        socket.accept_and_answer(now, || self.status(now));
        self.status_socket = Some(socket);
    }

    /// Sends unfinished bodies, and ends.
    fn end(&mut self) -> Result<(), RunError> {
        let now = clock::now();
        for last in [Site::pause, Site::handle_timeout, Site::farewell] {
            last(&mut self.site, now);
            self.drain();
        }
        self.flush(now)?;
        // With many peers, one round has not enough room for all that is due.
        for _ in 0..ROUNDS {
            if self.site.poll_at().is_none_or(|at| at > now) {
                break;
            }
            self.site.handle_timeout(now);
            self.drain();
            self.flush(now)?;
        }
        self.do_chores(now);
        // Even shortly after the last one.
        self.remember(now + remembered::AGAIN);
        self.inside.take_limits_back();
        if let Err(error) = self.site.close() {
            tracing::error!(%error, "how far others have come cannot be kept");
        }
        self.helper.end_cleanly();
        tracing::info!("the tunnel is closed");
        Ok(())
    }
}

/// Adds or removes the wait for room in the carrier, in addition to that for input.
fn wait_for_room(events: &EventLoop, outside: &Outside, waits: bool) -> Result<(), RunError> {
    let both = outside.readable().zip(outside.writable());
    let is_one = both.is_some_and(|(read, write)| read.as_raw_fd() == write.as_raw_fd());
    if is_one && let Some(file) = outside.readable() {
        let what = if waits { Interest::ReadingAndWriting } else { Interest::Reading };
        events.change(file, OUTSIDE, what)?;
    } else if let Some(file) = outside.writable() {
        if waits { events.add_for(file, ROOM, Interest::Writing)? } else { events.remove(file)? }
    }
    Ok(())
}
