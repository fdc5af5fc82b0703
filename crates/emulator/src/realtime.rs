//! The link between two namespaces in real time: octets are moved, the engine decides.
//!
//! Times follow from when a packet was read, so that waking up late delays one delivery, and not those behind it.

use std::io;
use std::process::Command;
use std::time::Duration;

use thinair_link::Side;
use thinair_os::clock::{self, ProcessorTime};
use thinair_os::{Error, EventLoop, RealTime, Signal};
use thinair_wire::time::Instant;

use super::command::{Ended, Guest};
use super::ends::Ends;
use super::engine::{Engine, Passage};
use super::lateness::Lateness;

/// Octets of the longest packet.
const LONGEST: usize = 65_536;

/// Packets that are read in a row, if nothing is due meanwhile.
const BATCH: usize = 64;

/// How long the link goes on when the command has ended, for what is under way.
const LINGER: Duration = Duration::from_secs(2);

/// What the loop waits for, beside the two sides.
const SIGNALS: u64 = 2;

/// What a run came to, beside the totals of the engine.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub took: Duration,
    /// How late packets were delivered.
    pub lateness: Lateness,
    /// Packets that a namespace did not take, as its interface was down or the packet was none of IP.
    pub not_taken: u64,
    /// The share of the machine's time that its host gave to others; 0 if it is not a virtual one.
    pub stolen: f64,
    /// What the system did not grant, in words; empty if the run had real-time scheduling and locked memory.
    pub refused: Vec<String>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system refused something.
    #[error(transparent)]
    Os(#[from] Error),
    /// Whoever watches the packets could not go on.
    #[error("cannot write what the link carried")]
    Watch(#[source] io::Error),
}

/// Lets the link work: until the command, which runs in the namespace of [`Side::A`], has ended and what it sent has
/// arrived; or until a signal. `watch` is told of every passage, and how many nanoseconds late it was delivered, if it
/// was.
///
/// With `realtime`, real-time scheduling and locked memory are asked for.
///
/// # Errors
/// The command cannot be run; a namespace took its end of the link away; `watch` failed.
pub fn run(
    engine: &mut Engine,
    ends: &Ends,
    command: Option<&mut Command>,
    realtime: bool,
    watch: &mut dyn FnMut(&Passage, Option<u64>) -> io::Result<()>,
) -> Result<Report, RunError> {
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
            // Whoever interrupts does not want to wait.
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
            return Ok(Report {
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
    /// If nothing is under way, it is earlier.
    until: Instant,
}

struct Shell<'a> {
    engine: &'a mut Engine,
    ends: &'a Ends,
    watch: &'a mut dyn FnMut(&Passage, Option<u64>) -> io::Result<()>,
    guest: Option<Guest>,
    octets: Vec<u8>,
    lateness: Lateness,
    not_taken: u64,
}

impl Shell<'_> {
    /// Hands over all that is due.
    fn deliver(&mut self) -> Result<(), RunError> {
        while let Some(passage) = self.engine.poll(clock::now()) {
            let mut late = None;
            if !passage.delivered.is_empty() {
                let nanos = clock::now().nanos_since(passage.ended);
                let taken = self.ends.tun(passage.from.other()).write(&passage.delivered);
                self.not_taken += u64::from(taken.is_err());
                self.lateness.add(nanos);
                late = Some(nanos);
            }
            (self.watch)(&passage, late).map_err(RunError::Watch)?;
        }
        Ok(())
    }

    /// Reads the packets that wait at one end, as long as nothing is due.
    fn take(&mut self, from: Side) -> Result<(), RunError> {
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

    /// Hears the signals: whether one asked to end, and whether a terminal sent it.
    fn hear(&self) -> Option<bool> {
        let mut end = None;
        while let Some(signal) = self.ends.signals.poll() {
            match signal {
                Signal::End { by_terminal } => end = Some(by_terminal),
                // The status of the command is asked for in every round.
                Signal::Child => {}
            }
        }
        end
    }
}
