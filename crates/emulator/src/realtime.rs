//! The link between two namespaces in real time: this module moves octets, the engine decides.
//!
//! Times follow from when a packet was read, so that a late wake-up delays one delivery, and not those behind it.

use std::io;
use std::process::Command;
use std::time::Duration;

use thinair_link::Side;
use thinair_os::clock::{self, ProcessorTime};
use thinair_os::{Error, EventLoop, RealTime, Signal};
use thinair_wire::time::Instant;

use super::command::{Ended, Guest};
use super::ends::LinkEnds;
use super::engine::{Engine, Passage};
use super::lateness::Lateness;

/// Largest packet, in octets.
const LONGEST: usize = 65_536;

/// Largest number of packets read in a row while nothing is due.
const BATCH: usize = 64;

/// Time for which the link goes on after the end of the command, for packets under way.
const LINGER: Duration = Duration::from_secs(2);

/// Event of the loop for signals, beside those of the two sides.
const SIGNALS: u64 = 2;

/// Results of a run, beside the totals of the engine.
#[derive(Debug)]
pub struct RunReport {
    /// Reason for the end.
    pub ended: Ended,
    /// Duration.
    pub took: Duration,
    /// Lateness of deliveries.
    pub lateness: Lateness,
    /// Packets that a namespace rejected, because its interface was down or the packet was not IP.
    pub not_taken: u64,
    /// Share of the machine's time that the hypervisor gave to other machines (steal time), 0 to 1; 0 if it is not
    /// virtual.
    pub stolen: f64,
    /// Real-time properties that the system did not grant, in words; empty with real-time scheduling and locked
    /// memory.
    pub refused: Vec<String>,
}

/// Reason for the failure of a run.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A system call failed.
    #[error(transparent)]
    Os(#[from] Error),
    /// The observer of the packets failed.
    #[error("cannot record the packets of the link")]
    Watch(#[source] io::Error),
}

/// Runs the link until the command, which runs in the namespace of [`Side::A`], has ended and its packets have
/// arrived, or until a signal. `watch` receives every passage, and the lateness of its delivery in nanoseconds, if it
/// was delivered.
///
/// With `realtime`, real-time scheduling and locked memory are requested.
///
/// # Errors
/// The command cannot be run; a namespace lost its end of the link; `watch` failed.
pub fn run(
    engine: &mut Engine,
    ends: &LinkEnds,
    command: Option<&mut Command>,
    realtime: bool,
    watch: &mut dyn FnMut(&Passage, Option<u64>) -> io::Result<()>,
) -> Result<RunReport, EmulatorError> {
    let (started, processors) = (clock::now(), ProcessorTime::until_now());
    let guest = command.map(|command| Guest::start(ends.namespace(Side::A), command)).transpose()?;
    let realtime = if realtime { RealTime::request() } else { RealTime::none() };
    let mut events = EventLoop::new(realtime.spin())?;
    for side in Side::ALL {
        events.add(ends.tun(side), side as u64)?;
    }
    events.add(&ends.signals, SIGNALS)?;

    let mut shell = Shell {
        engine,
        ends,
        watch,
        guest,
        octets: vec![0; LONGEST],
        lateness: Lateness::new(),
        not_taken: 0,
    };
    let mut over: Option<Over> = None;
    let mut ready = Vec::new();
    loop {
        shell.deliver()?;
        let now = clock::now();
        if let Some(status) = shell.guest.as_mut().and_then(Guest::status)
            && over.is_none()
        {
            // An interrupted run ends without lingering.
            let linger = if shell.guest.as_ref().is_some_and(Guest::was_interrupted) {
                Duration::ZERO
            } else {
                LINGER
            };
            over = Some(Over { ended: Ended::Command(status), until: now + linger });
        }
        if let Some(over) = &over
            && (over.until <= now || shell.engine.is_idle())
        {
            return Ok(RunReport {
                ended: over.ended,
                took: now.since(started),
                lateness: shell.lateness,
                not_taken: shell.not_taken,
                stolen: match (processors, ProcessorTime::until_now()) {
                    (Some(earlier), Some(later)) => later.stolen_since(earlier),
                    _ => 0.0,
                },
                refused: realtime.refused(),
            });
        }
        if let (Some(guest), None) = (&mut shell.guest, &over) {
            guest.insist(now).map_err(|why| Error::new("end the command", why))?;
        }
        let insist = shell.guest.as_ref().filter(|_| over.is_none()).and_then(Guest::insist_at);
        let until = [shell.engine.poll_at(), insist, over.as_ref().map(|over| over.until)];
        events.wait(until.into_iter().flatten().min(), &mut ready)?;
        for &token in &ready {
            match Side::ALL.get(token as usize) {
                Some(&side) => shell.take(side)?,
                None => match (shell.hear(), &mut over, &mut shell.guest) {
                    (Some(_), Some(over), _) => over.until = Instant::ZERO,
                    (Some(by_terminal), None, Some(guest)) => guest.interrupt(clock::now(), by_terminal),
                    (Some(_), None, None) => over = Some(Over { ended: Ended::Signal, until: Instant::ZERO }),
                    (None, _, _) => {}
                },
            }
        }
    }
}

/// A run that is about to end.
struct Over {
    ended: Ended,
    /// Latest time of the end; the run ends earlier if nothing is under way.
    until: Instant,
}

struct Shell<'a> {
    engine: &'a mut Engine,
    ends: &'a LinkEnds,
    watch: &'a mut dyn FnMut(&Passage, Option<u64>) -> io::Result<()>,
    guest: Option<Guest>,
    octets: Vec<u8>,
    lateness: Lateness,
    not_taken: u64,
}

impl Shell<'_> {
    /// Delivers all packets that are due.
    fn deliver(&mut self) -> Result<(), EmulatorError> {
        while let Some(passage) = self.engine.poll(clock::now()) {
            let mut late = None;
            if !passage.delivered.is_empty() {
                let nanos = clock::now().nanos_since(passage.ended);
                let taken = self.ends.tun(passage.from.other()).write(&passage.delivered);
                self.not_taken += u64::from(taken.is_err());
                self.lateness.add(nanos);
                late = Some(nanos);
            }
            (self.watch)(&passage, late).map_err(EmulatorError::Watch)?;
        }
        Ok(())
    }

    /// Reads the packets that wait at one end, as long as nothing is due.
    fn take(&mut self, from: Side) -> Result<(), EmulatorError> {
        for _ in 0..BATCH {
            match self.ends.tun(from).read(&mut self.octets) {
                Ok(len) => {
                    let now = clock::now();
                    self.engine.handle_packet(now, from, self.octets.get(..len).unwrap_or_default());
                    if self.engine.poll_at().is_some_and(|due| due <= now) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    let tun = self.ends.tun(from).name();
                    let name = self.ends.namespace(from).name().unwrap_or("without a name");
                    let what = format!("read from the interface `{tun}` in the network namespace {name}");
                    return Err(Error::new(what, error).into());
                }
            }
        }
        Ok(())
    }

    /// Reads the signals; returns `Some` if one asked to end, with true if a terminal sent it.
    fn hear(&self) -> Option<bool> {
        let mut end = None;
        while let Some(signal) = self.ends.signals.poll() {
            match signal {
                Signal::End { by_terminal } => end = Some(by_terminal),
                // The status of the command is read in every round.
                Signal::Child => {}
            }
        }
        end
    }
}
