//! Programs that run beside the measurement and end with it.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thinair_os::signals::{Ask, ask};
use thinair_os::{EventLoop, Namespace, Signal, Signals, clock};
use thinair_wire::time::Instant;

use crate::paper::PaperError;

/// Time that programs have to end after a signal. With the kill that follows, less than a second.
const PATIENCE: Duration = Duration::from_millis(500);

/// Time limit for a link to start.
const SOON: Duration = Duration::from_secs(10);

/// Interval between two polls of a condition without an event.
const A_MOMENT: Duration = Duration::from_millis(10);

/// Interruption of this process, for all of its threads.
///
/// **Create it before any other thread,** as [`Signals`] requires.
#[derive(Debug)]
pub(crate) struct Interrupt {
    signals: Signals,
    has_come: AtomicBool,
}

impl Interrupt {
    pub(crate) fn take() -> Result<Self, PaperError> {
        Ok(Self { signals: Signals::take()?, has_come: AtomicBool::new(false) })
    }

    /// Returns an error once a signal has arrived.
    pub(crate) fn look(&self) -> Result<(), PaperError> {
        while let Some(signal) = self.signals.poll() {
            if matches!(signal, Signal::End { .. }) {
                self.has_come.store(true, Ordering::Relaxed);
            }
        }
        if self.has_come.load(Ordering::Relaxed) { Err(PaperError::Interrupted) } else { Ok(()) }
    }
}

/// Programs in namespaces. All end on drop.
#[derive(Debug)]
pub(crate) struct Children<'s> {
    interrupt: &'s Interrupt,
    events: EventLoop,
    others: Vec<(String, Child)>,
}

impl<'s> Children<'s> {
    pub(crate) fn new(interrupt: &'s Interrupt) -> Result<Self, PaperError> {
        let events = EventLoop::new(Duration::ZERO)?;
        events.add(&interrupt.signals, 0)?;
        Ok(Self { interrupt, events, others: Vec::new() })
    }

    /// Starts a program that runs until the end. Its standard error goes to the file of that name in `folder`.
    pub(crate) fn start(
        &mut self,
        namespace: &Namespace,
        folder: &Path,
        name: &str,
        command: &mut Command,
    ) -> Result<(), PaperError> {
        let file = |end: &str| std::fs::File::create(folder.join(format!("{name}.{end}")));
        command.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        self.others.push((name.to_owned(), namespace.spawn(command)?));
        Ok(())
    }

    /// Starts an emulated link between two hosts, in its own process, and waits until its interfaces exist.
    pub(crate) fn start_link(
        &mut self,
        hosts: [&Namespace; 2],
        folder: &Path,
        program: &Path,
        options: &[&str],
    ) -> Result<(), PaperError> {
        let names = hosts.map(Namespace::called).join(",");
        let mut link = Command::new(program);
        link.args(["link", "run", "--json", "--netns", &names]).args(options);
        self.start(hosts[0], folder, "link", &mut link)?;
        // `link run` gives the interfaces its own addresses, and then prints a message.
        let log = folder.join("link.err");
        self.until("the link is there", SOON, || {
            std::fs::read_to_string(&log).is_ok_and(|log| log.contains("until it is interrupted"))
        })
    }

    /// Runs a program to its end.
    pub(crate) fn run(
        &mut self,
        namespace: &Namespace,
        command: &mut Command,
        patience: Duration,
    ) -> Result<ExitStatus, PaperError> {
        self.run_for(namespace, command, patience)?.ok_or_else(|| {
            PaperError::RealTime(format!("{} did not end in time", command.get_program().to_string_lossy()))
        })
    }

    /// Runs a program to its end, or kills it; `None` if it took too long.
    pub(crate) fn run_for(
        &mut self,
        namespace: &Namespace,
        command: &mut Command,
        patience: Duration,
    ) -> Result<Option<ExitStatus>, PaperError> {
        let mut child = Kept(namespace.spawn(command)?);
        let until = clock::now() + patience;
        loop {
            if let Some(status) = child.0.try_wait()? {
                return Ok(Some(status));
            }
            if clock::now() >= until {
                return Ok(None);
            }
            // The end of a child is a signal, but another thread may have received it.
            self.wait(until.min(clock::now() + A_MOMENT))?;
        }
    }

    /// Waits until a condition is true.
    pub(crate) fn until(
        &mut self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut() -> bool,
    ) -> Result<(), PaperError> {
        let until = clock::now() + patience;
        while !is_so() {
            self.look()?;
            if clock::now() >= until {
                return Err(PaperError::RealTime(format!("not within {} s: {what}", patience.as_secs())));
            }
            self.wait(clock::now() + A_MOMENT)?;
        }
        Ok(())
    }

    /// Waits for a time, or until any child has ended.
    pub(crate) fn pause(&mut self, time: Duration) -> Result<(), PaperError> {
        self.wait(clock::now() + time)
    }

    /// Returns an error if a child has ended.
    pub(crate) fn look(&mut self) -> Result<(), PaperError> {
        for (name, child) in &mut self.others {
            if let Some(status) = child.try_wait()? {
                return Err(PaperError::RealTime(format!("{name} ended unexpectedly: {status}")));
            }
        }
        Ok(())
    }

    /// Waits until a time or for any signal, and returns an error for a signal that asks to end.
    fn wait(&mut self, until: Instant) -> Result<(), PaperError> {
        self.events.wait(Some(until), &mut Vec::new())?;
        self.interrupt.look()
    }

    /// Ends one of them, and waits until it has written its output.
    pub(crate) fn finish(&mut self, name: &str, patience: Duration) -> Result<(), PaperError> {
        let Some(at) = self.others.iter().position(|(other, _)| other == name) else { return Ok(()) };
        let mut child = Kept(self.others.remove(at).1);
        ask(&mut child.0, Ask::Interrupt);
        self.until(&format!("{name} has ended"), patience, || has_ended(&mut child.0))
    }

    /// Ends all of them, and waits for them.
    pub(crate) fn end(&mut self) {
        for (_, child) in &mut self.others {
            ask(child, Ask::Terminate);
        }
        let until = clock::now() + PATIENCE;
        let all_ended = |others: &mut [(String, Child)]| others.iter_mut().all(|(_, child)| has_ended(child));
        while clock::now() < until && !all_ended(&mut self.others) {
            std::thread::sleep(A_MOMENT);
        }
        for (_, child) in self.others.drain(..) {
            drop(Kept(child));
        }
    }
}

impl Drop for Children<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Error with its causes.
pub(crate) fn with_causes(error: impl std::error::Error) -> PaperError {
    let reasons = std::iter::successors(error.source(), |error| error.source());
    PaperError::RealTime(reasons.fold(error.to_string(), |text, reason| format!("{text}: {reason}")))
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// Child process, killed on drop.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        if !has_ended(&mut self.0) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
