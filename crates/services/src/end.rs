//! An end of a stream in an event loop, and what is waited for there.

use std::net::TcpStream;

use thinair_os::{EventLoop, Interest};

/// A socket, and what is waited for.
#[derive(Debug)]
pub struct End {
    /// The socket.
    pub stream: TcpStream,
    token: u64,
    waits_for: Option<Interest>,
}

impl End {
    /// Nothing is waited for yet; `token` is what the loop will call it.
    pub fn new(stream: TcpStream, token: u64) -> Self {
        Self { stream, token, waits_for: None }
    }

    /// What to wait for if it is read from, written to, or both. Nothing is nothing, not even errors: one that stays would
    /// be told all the time.
    pub fn interest(reads: bool, writes: bool) -> Option<Interest> {
        match (reads, writes) {
            (true, true) => Some(Interest::ReadingAndWriting),
            (true, false) => Some(Interest::Reading),
            (false, true) => Some(Interest::Writing),
            (false, false) => None,
        }
    }

    /// Waits for this from now on.
    ///
    /// # Errors
    /// The system has no room for another file to wait for.
    pub fn wait_for(&mut self, what: Option<Interest>, events: &EventLoop) -> Result<(), thinair_os::Error> {
        match (self.waits_for, what) {
            (before, after) if before == after => {}
            (None, Some(what)) => events.add_for(&self.stream, self.token, what)?,
            (Some(_), Some(what)) => events.change(&self.stream, self.token, what)?,
            (_, None) => events.remove(&self.stream)?,
        }
        self.waits_for = what;
        Ok(())
    }
}
