//! Waiting: until there is something to read, or until a point in time.
//!
//! epoll(7) with a timerfd of absolute time, so that what happens between looking at the clock and going to sleep
//! costs no time. A timer wakes a process some 50 us late. A loop that spins lets it wake it earlier, and looks at the
//! clock for the rest.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use thinair_wire::time::Instant;

use crate::clock::now;
use crate::error::{Attempt as _, Result};

/// What the timer is called among the files.
const TIMER: u64 = u64::MAX;

/// Files that are told of at a time. There may be more; they are told of the next time.
const MOST: usize = 16;

/// Waits for files and for points in time ([`clock::now`](crate::clock::now)).
#[derive(Debug)]
pub struct EventLoop {
    epoll: Epoll,
    timer: TimerFd,
    /// What the timer is set to.
    set: Option<Instant>,
    spin: Duration,
}

impl EventLoop {
    /// A loop that looks at the clock, and does nothing else, for the last `spin` before a point in time. Zero: it
    /// sleeps to the end.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn new(spin: Duration) -> Result<Self> {
        let what = || "wait for events".to_owned();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).attempt(what)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).attempt(what)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).attempt(what)?;
        Ok(Self { epoll, timer, set: None, spin })
    }

    /// Waits for this file too, and calls it `token`, which must not be [`u64::MAX`].
    ///
    /// # Errors
    /// It is waited for already, or cannot be.
    pub fn add(&self, file: impl AsFd, token: u64) -> Result<()> {
        debug_assert_ne!(token, TIMER);
        self.epoll
            .add(file, EpollEvent::new(EpollFlags::EPOLLIN, token))
            .attempt(|| "wait for a file".to_owned())
    }

    /// Waits until there is something to read, or until that point in time, if there is one: which files can be read
    /// is in `ready` then. May return early, with nothing.
    ///
    /// # Errors
    /// Those of epoll_wait(2) but EINTR.
    pub fn wait(&mut self, until: Option<Instant>, ready: &mut Vec<u64>) -> Result<()> {
        self.wait_for(until, ready).attempt(|| "wait for events".to_owned())
    }

    fn wait_for(&mut self, until: Option<Instant>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let Some(until) = until else {
            while ready.is_empty() {
                self.look(EpollTimeout::NONE, ready)?;
            }
            return Ok(());
        };
        let spin = u64::try_from(self.spin.as_nanos()).unwrap_or(u64::MAX);
        let awake = Instant::from_nanos(until.as_nanos().saturating_sub(spin));
        if now() < awake {
            self.set_timer(awake)?;
            self.look(EpollTimeout::NONE, ready)?;
        }
        // With something to read there is no need to wait any longer; without, this is the spin.
        loop {
            if !ready.is_empty() {
                return Ok(());
            }
            let is_time = now() >= until;
            self.look(EpollTimeout::ZERO, ready)?;
            if is_time {
                return Ok(());
            }
        }
    }

    /// The files that can be read, without the timer.
    fn look(&mut self, timeout: EpollTimeout, ready: &mut Vec<u64>) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); MOST];
        let count = match self.epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            result => result?,
        };
        for event in events.iter().take(count) {
            match event.data() {
                TIMER => {
                    // Off, or it would wake us again.
                    self.timer.unset()?;
                    self.set = None;
                }
                token => ready.push(token),
            }
        }
        Ok(())
    }

    fn set_timer(&mut self, at: Instant) -> io::Result<()> {
        if self.set == Some(at) {
            return Ok(());
        }
        let time = TimeSpec::from_duration(at.since(Instant::ZERO));
        self.timer.set(Expiration::OneShot(time), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.set = Some(at);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn it_wakes_when_it_is_time_and_not_before() {
        for spin in [Duration::ZERO, Duration::from_micros(200), Duration::from_secs(1)] {
            let mut events = EventLoop::new(spin).unwrap();
            let mut ready = vec![7];
            for millis in [0, 1, 3] {
                let until = now() + Duration::from_millis(millis);
                events.wait(Some(until), &mut ready).unwrap();
                assert!(now() >= until || !ready.is_empty());
                assert_eq!(ready, []);
            }
            events.wait(Some(Instant::ZERO), &mut ready).unwrap();
        }
    }

    #[test]
    fn what_can_be_read_is_told_before_the_time_comes() {
        let (read, mut write) = std::io::pipe().unwrap();
        for spin in [Duration::ZERO, Duration::from_secs(3_600)] {
            let mut events = EventLoop::new(spin).unwrap();
            events.add(&read, 5).unwrap();
            let mut ready = Vec::new();
            write.write_all(b"x").unwrap();
            let hour = now() + Duration::from_secs(3_600);
            events.wait(Some(hour), &mut ready).unwrap();
            assert_eq!(ready, [5]);
            events.wait(None, &mut ready).unwrap();
            assert_eq!(ready, [5]);
            // The time that has come hides no file.
            events.wait(Some(Instant::ZERO), &mut ready).unwrap();
            assert_eq!(ready, [5]);
        }
    }
}
