//! Event loop: waits for files to become readable or writable, and for points in time.
//!
//! epoll(7) with a timerfd of absolute time, so that there is no gap between reading the clock and going to sleep. A
//! timer wakes a process about 50 us late. A spinning loop sets it earlier, and polls the clock for the rest.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use thinair_wire::time::Instant;

use crate::clock::now;
use crate::error::{ErrorContext as _, Result};

/// Token of the timer.
const TIMER: u64 = u64::MAX;

/// Initial number of events returned at a time. It grows with the number of ready files.
const MOST: usize = 16;

/// Readiness to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Readable.
    Reading,
    /// Readable or writable.
    ReadingAndWriting,
    /// Writable.
    Writing,
}

impl Interest {
    fn flags(self) -> EpollFlags {
        match self {
            Self::Reading => EpollFlags::EPOLLIN,
            Self::ReadingAndWriting => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            Self::Writing => EpollFlags::EPOLLOUT,
        }
    }
}

/// Waits for files and for points in time ([`clock::now`](crate::clock::now)).
#[derive(Debug)]
pub struct EventLoop {
    epoll: Epoll,
    timer: TimerFd,
    /// Time to which the timer is set.
    set: Option<Instant>,
    /// Buffer for events.
    events: Vec<EpollEvent>,
    spin: Duration,
}

impl EventLoop {
    /// Creates a loop that polls the clock during the last `spin` before a point in time, without sleep. Zero: it sleeps
    /// to the end.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn new(spin: Duration) -> Result<Self> {
        let what = || "wait for events".to_owned();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).attempt(what)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).attempt(what)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).attempt(what)?;
        Ok(Self { epoll, timer, set: None, events: vec![EpollEvent::empty(); MOST], spin })
    }

    /// Adds a file that is reported as `token` when it is readable. `token` must not be [`u64::MAX`].
    ///
    /// # Errors
    /// The file was added already, or cannot be waited for.
    pub fn add(&self, file: impl AsFd, token: u64) -> Result<()> {
        self.add_for(file, token, Interest::Reading)
    }

    /// Adds a file with the given interest. **A file with room to write is always ready:** wait for it only while there
    /// is something to write.
    ///
    /// # Errors
    /// The file was added already, or cannot be waited for.
    pub fn add_for(&self, file: impl AsFd, token: u64, what: Interest) -> Result<()> {
        debug_assert_ne!(token, TIMER);
        self.epoll.add(file, EpollEvent::new(what.flags(), token)).attempt(|| "wait for a file".to_owned())
    }

    /// Changes the interest and the token of a file.
    ///
    /// # Errors
    /// The file was not added.
    pub fn change(&self, file: impl AsFd, token: u64, what: Interest) -> Result<()> {
        debug_assert_ne!(token, TIMER);
        self.epoll
            .modify(file, &mut EpollEvent::new(what.flags(), token))
            .attempt(|| "change the events of a file".to_owned())
    }

    /// Removes a file. This is necessary for a file with a persistent error, such as a serial line that is gone: it would
    /// always be ready. A closed file is removed automatically.
    ///
    /// # Errors
    /// The file was not added.
    pub fn remove(&self, file: impl AsFd) -> Result<()> {
        self.epoll.delete(file).attempt(|| "stop waiting for a file".to_owned())
    }

    /// Waits until a file is ready, or until the point in time `until`, if there is one. `ready` then has the tokens of
    /// all files that are ready for their interest, or have an error, which reading returns. May return early, without a
    /// ready file.
    ///
    /// # Errors
    /// Those of epoll_wait(2) except EINTR.
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
        while ready.is_empty() && now() < awake {
            self.set_timer(awake)?;
            self.look(EpollTimeout::NONE, ready)?;
        }
        // A readable file ends the wait; otherwise this is the spin.
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

    /// Collects the files that are ready, without the timer.
    fn look(&mut self, timeout: EpollTimeout, ready: &mut Vec<u64>) -> io::Result<()> {
        let mut count = self.count(timeout)?;
        while count == self.events.len() {
            // There may be more: all are reported again.
            self.events.resize(count * 2, EpollEvent::empty());
            count = self.count(EpollTimeout::ZERO)?;
        }
        for event in self.events.iter().take(count) {
            match event.data() {
                TIMER => {
                    // Unset, so that it does not fire again.
                    self.timer.unset()?;
                    self.set = None;
                }
                token => ready.push(token),
            }
        }
        Ok(())
    }

    fn count(&mut self, timeout: EpollTimeout) -> io::Result<usize> {
        match self.epoll.wait(&mut self.events, timeout) {
            Err(Errno::EINTR) => Ok(0),
            result => Ok(result?),
        }
    }

    /// Sets the timer, unless it fires earlier anyway: points in time usually move away, and a timer that fires once too
    /// early costs less than one that is set each time.
    fn set_timer(&mut self, at: Instant) -> io::Result<()> {
        if self.set.is_some_and(|set| set <= at) {
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
    fn what_can_be_read_is_reported_before_the_time_comes() {
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
            // A past point in time does not hide a ready file.
            events.wait(Some(Instant::ZERO), &mut ready).unwrap();
            assert_eq!(ready, [5]);
        }
    }
    #[test]
    fn points_in_time_may_come_in_any_order() {
        let mut events = EventLoop::new(Duration::ZERO).unwrap();
        let mut ready = Vec::new();
        let (_read, write) = std::io::pipe().unwrap();
        events.add_for(&write, 1, Interest::Writing).unwrap();
        // The timer stays at 1 ms, as the file is ready before.
        events.wait(Some(now() + Duration::from_millis(1)), &mut ready).unwrap();
        assert_eq!(ready, [1]);
        events.remove(&write).unwrap();
        for millis in [20, 2, 5] {
            let until = now() + Duration::from_millis(millis);
            let busy = crate::clock::of_this_thread();
            events.wait(Some(until), &mut ready).unwrap();
            assert!(now() >= until && ready.is_empty());
            // It sleeps: 20 ms are not spent with polling of the clock.
            let busy = crate::clock::of_this_thread() - busy;
            assert!(millis < 20 || busy < Duration::from_millis(10), "{busy:?}");
        }
    }

    #[test]
    fn all_files_that_are_ready_are_reported() {
        let mut events = EventLoop::new(Duration::ZERO).unwrap();
        let pipes: Vec<_> = (0..100).map(|_| std::io::pipe().unwrap()).collect();
        for (token, (read, write)) in pipes.iter().enumerate() {
            events.add(read, token as u64).unwrap();
            if token % 3 != 0 {
                (&mut &*write).write_all(b"x").unwrap();
            }
        }
        let mut ready = Vec::new();
        events.wait(None, &mut ready).unwrap();
        ready.sort_unstable();
        assert_eq!(ready, (0..100).filter(|token| token % 3 != 0).collect::<Vec<_>>());
    }

    #[test]
    fn room_to_write_is_reported_while_it_is_asked_for() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let mut events = EventLoop::new(Duration::ZERO).unwrap();
        events.add(&one, 7).unwrap();
        let mut ready = Vec::new();
        let mut what_is_ready = |events: &mut EventLoop| {
            events.wait(Some(Instant::ZERO), &mut ready).unwrap();
            ready.clone()
        };
        assert_eq!(what_is_ready(&mut events), []);
        events.change(&one, 8, Interest::ReadingAndWriting).unwrap();
        assert_eq!(what_is_ready(&mut events), [8]);
        while (&one).write(&[0; 10_000]).is_ok() {}
        assert_eq!(what_is_ready(&mut events), [], "it is full");
        (&other).write_all(b"x").unwrap();
        assert_eq!(what_is_ready(&mut events), [8], "there is something to read");
        events.change(&one, 8, Interest::Writing).unwrap();
        assert_eq!(what_is_ready(&mut events), [], "but that was not asked");
        let mut octets = vec![0; 1_000_000];
        while std::io::Read::read(&mut &other, &mut octets).is_ok() {}
        assert_eq!(what_is_ready(&mut events), [8]);
        events.remove(&one).unwrap();
        assert_eq!(what_is_ready(&mut events), []);
        assert!(events.remove(&one).is_err() && events.change(&one, 1, Interest::Reading).is_err());
    }
}
