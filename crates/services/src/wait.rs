//! Waiting, for something to read or for something that is done elsewhere, until a signal comes or the time is over.

use std::os::fd::AsFd;
use std::sync::mpsc;

use thinair_os::event_loop::Interest;
use thinair_os::signals::Signal;
use thinair_os::{EventLoop, Signals, Waker};
use thinair_wire::time::Instant;

const SIGNALS: u64 = 0;
const FILE: u64 = 1;

/// Why waiting is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The file is ready, or its point in time has come; perhaps neither.
    Look,
    /// A signal asks for the end.
    Interrupted,
    /// The time for all of it is over.
    TimeLimit,
}

/// A wait for one socket after the other, which a signal ends, and the end of the time for all of them.
pub struct Waiting<'s> {
    event_loop: EventLoop,
    signals: Option<&'s Signals>,
    /// Until when all of it has to be done.
    pub deadline: Option<Instant>,
    ready: Vec<u64>,
}

impl<'s> Waiting<'s> {
    /// Nothing is waited for yet but a signal, if signals are given, and the deadline.
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

    /// From now on it is this file that is waited for. It goes when it is closed.
    ///
    /// # Errors
    /// The system has no room for another file to wait for.
    pub fn add(&self, file: impl AsFd) -> Result<(), thinair_os::Error> {
        self.add_for(file, Interest::Reading)
    }

    /// From now on it is this file that is waited for, until it is ready for `what`.
    ///
    /// # Errors
    /// The system has no room for another file to wait for.
    pub fn add_for(&self, file: impl AsFd, what: Interest) -> Result<(), thinair_os::Error> {
        self.event_loop.add_for(file, FILE, what)
    }

    /// Waits for room to write, too, or no longer.
    ///
    /// # Errors
    /// The file is not waited for.
    pub fn change(&self, file: impl AsFd, writing: bool) -> Result<(), thinair_os::Error> {
        let interest = if writing { Interest::ReadingAndWriting } else { Interest::Reading };
        self.event_loop.change(file, FILE, interest)
    }

    /// Waits until the file is ready, `until`, the deadline, or a signal.
    ///
    /// # Errors
    /// The system does not wait.
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

    /// Does what cannot be waited for in another way in a thread of its own. If it is interrupted the thread goes on by
    /// itself, and what it finds is dropped.
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
                // It has panicked: there is nothing to wait for.
                Err(mpsc::TryRecvError::Disconnected) => break Err(Woken::TimeLimit),
            }
        };
        // A clone of the bell may live on in the thread.
        self.event_loop.remove(&waker)?;
        Ok(result)
    }
}
