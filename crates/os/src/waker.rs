//! Waking a thread that waits in an event loop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::{ErrorContext as _, Result};

/// A bell that any thread can ring, and that an [`EventLoop`](crate::EventLoop) can wait for: it is readable from
/// the first ring until it is [heard](Self::heard). A clone is another handle of the bell.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// Creates a bell that has not rung.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let file = EventFd::from_value_and_flags(0, flags).attempt(|| "create a waker".to_owned())?;
        Ok(Self(Arc::new(file)))
    }

    /// Rings. Does not block, and cannot fail: after very many rings it simply stays rung.
    pub fn ring(&self) {
        let _ = self.0.write(1);
    }

    /// Resets the bell; returns true if it was rung since the previous call.
    pub fn heard(&self) -> bool {
        loop {
            match self.0.read() {
                Ok(_) => return true,
                Err(why) if io::Error::from(why).kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::EventLoop;

    #[test]
    fn a_thread_that_waits_is_woken_by_another() {
        let waker = Waker::new().unwrap();
        let mut events = EventLoop::new(Duration::ZERO).unwrap();
        events.add(&waker, 3).unwrap();
        let mut ready = Vec::new();
        assert!(!waker.heard());
        for _ in 0..10 {
            let other = waker.clone();
            let thread = std::thread::spawn(move || {
                other.ring();
                other.ring();
            });
            events.wait(None, &mut ready).unwrap();
            assert_eq!(ready, [3]);
            thread.join().unwrap();
            assert!(waker.heard() && !waker.heard());
            events.wait(Some(crate::clock::now()), &mut ready).unwrap();
            assert_eq!(ready, []);
        }
    }
}
