//! One end of a stream in an event loop, with its interest.

use std::net::TcpStream;

use thinair_os::{EventLoop, Interest};

/// A socket with its interest.
#[derive(Debug)]
pub struct StreamEnd {
    /// The socket.
    pub stream: TcpStream,
    token: u64,
    waits_for: Option<Interest>,
}

impl StreamEnd {
    /// Creates an end that waits for nothing; `token` identifies it in the loop.
    pub fn new(stream: TcpStream, token: u64) -> Self {
        Self { stream, token, waits_for: None }
    }

    /// Returns the interest for reading, writing, or both. `None` excludes errors, too: a persistent error would always
    /// be ready.
    pub fn interest(reads: bool, writes: bool) -> Option<Interest> {
        match (reads, writes) {
            (true, true) => Some(Interest::ReadingAndWriting),
            (true, false) => Some(Interest::Reading),
            (false, true) => Some(Interest::Writing),
            (false, false) => None,
        }
    }

    /// Changes the interest.
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
