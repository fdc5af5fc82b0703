//! Waiting for a file or for work in another thread, until a signal or a time limit ends it.

use std::os::fd::AsFd;
use std::sync::mpsc;

use thinair_os::event_loop::Interest;
use thinair_os::signals::Signal;
use thinair_os::{EventLoop, Signals, Waker};
use thinair_wire::time::Instant;

const SIGNALS: u64 = 0;
const FILE: u64 = 1;

/// Reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The file may be ready, or the point in time reached.
    Look,
    /// A signal asks the process to end.
    Interrupted,
    /// The time limit is over.
    TimeLimit,
}

/// A wait for one socket after the other, with signals and a common time limit.
pub struct Wait<'s> {
    event_loop: EventLoop,
    signals: Option<&'s Signals>,
    /// Time limit of the whole.
    pub deadline: Option<Instant>,
    ready: Vec<u64>,
}

impl<'s> Wait<'s> {
    /// Creates a wait for signals, if they are given, and the deadline.
    ///
    /// # Errors
    /// The system has no room for files.
    pub fn new(signals: Option<&'s Signals>, deadline: Option<Instant>) -> Result<Self, thinair_os::Error> {
        let event_loop = EventLoop::new(std::time::Duration::ZERO)?;
        if let Some(signals) = signals {
            event_loop.add(signals, SIGNALS)?;
        }
        Ok(Self { event_loop, signals, deadline, ready: Vec::new() })
    }

    /// Waits for this file from now on. Closing it removes it.
    ///
    /// # Errors
    /// The system has no room for another file to wait for.
    pub fn add(&self, file: impl AsFd) -> Result<(), thinair_os::Error> {
        self.add_for(file, Interest::Reading)
    }

    /// Waits for this file to be ready for `what` from now on.
    ///
    /// # Errors
    /// The system has no room for another file to wait for.
    pub fn add_for(&self, file: impl AsFd, what: Interest) -> Result<(), thinair_os::Error> {
        self.event_loop.add_for(file, FILE, what)
    }

    /// Waits for this file no more.
    ///
    /// # Errors
    /// The file was not added.
    pub fn remove(&self, file: impl AsFd) -> Result<(), thinair_os::Error> {
        self.event_loop.remove(file)
    }

    /// Adds or removes waiting for room to write.
    ///
    /// # Errors
    /// The file was not added.
    pub fn change(&self, file: impl AsFd, writing: bool) -> Result<(), thinair_os::Error> {
        let interest = if writing { Interest::ReadingAndWriting } else { Interest::Reading };
        self.event_loop.change(file, FILE, interest)
    }

    /// Waits until the file is ready, or for `until`, the deadline, or a signal.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Woken, thinair_os::Error> {
        let until = match (until, self.deadline) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.event_loop.wait(until, &mut self.ready)?;
        if self.ready.contains(&SIGNALS) {
            while let Some(signal) = self.signals.and_then(Signals::poll) {
                if matches!(signal, Signal::End { .. }) {
                    return Ok(Woken::Interrupted);
                }
            }
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= thinair_os::clock::now());
        Ok(if is_late { Woken::TimeLimit } else { Woken::Look })
    }

    /// Runs blocking work in a separate thread. After an interrupt the thread continues on its own, and its result is
    /// dropped.
    ///
    /// # Errors
    /// The system has no room for files or threads.
    pub fn elsewhere<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<T, Woken>, thinair_os::Error> {
        let (sender, receiver) = mpsc::channel();
        let waker = Waker::new()?;
        self.add(&waker)?;
        let bell = waker.clone();
        std::thread::Builder::new()
            .spawn(move || {
                let _ = sender.send(work());
                bell.ring();
            })
            .map_err(|why| thinair_os::Error::new("start a thread", why))?;
        let result = loop {
            match self.wait(None)? {
                Woken::Look => {}
                woken => break Err(woken),
            }
            match receiver.try_recv() {
                Ok(done) => break Ok(done),
                Err(mpsc::TryRecvError::Empty) => {}
                // It has panicked: there is no result to wait for.
                Err(mpsc::TryRecvError::Disconnected) => break Err(Woken::TimeLimit),
            }
        };
        // A clone of the bell may live on in the thread.
        self.event_loop.remove(&waker)?;
        Ok(result)
    }
}
