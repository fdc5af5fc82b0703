//! A serial line that carries frames. A line that was unplugged is opened again when it returns.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thinair_os::Error;
use thinair_os::serial::Serial;
use thinair_session::line::{Deframer, DeframerCounters, FrameError, Framer, FramerCounters};
use thinair_wire::time::Instant;

use super::{Arrival, CHUNK, Flushed, Received};
use crate::daemon::helper::Helper;
use crate::site_config::Framing;

/// Interval of attempts to open a lost line.
const RETRY: Duration = Duration::from_secs(1);

/// Limit of queued octets, in addition to those in the system: a few frames. More packets should wait in the
/// interface, whose queue discipline decides which to drop.
const FULL: usize = 2_048;

#[derive(Debug)]
pub(in crate::daemon) struct Line {
    path: PathBuf,
    serial: Option<Serial>,
    retry_at: Option<Instant>,
    /// True if a refusal to open the line was logged.
    complained: bool,
    framer: Framer,
    deframer: Deframer,
    /// Queued octets, and the number of those already sent.
    out: Vec<u8>,
    gone: usize,
    chunk: Vec<u8>,
    /// Octets of it that were read and not yet deframed.
    unread: Range<usize>,
    datagram: Vec<u8>,
    refused: Vec<u64>,
}

impl Line {
    pub(super) fn open(
        path: &Path,
        speed: Option<u32>,
        framing: Framing,
        crc: bool,
        largest: usize,
    ) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            serial: Some(Serial::open(path, speed)?),
            retry_at: None,
            complained: false,
            framer: Framer::new(framing, crc, largest),
            deframer: Deframer::new(framing, crc, largest),
            out: Vec::new(),
            gone: 0,
            chunk: vec![0; CHUNK],
            unread: 0..0,
            datagram: Vec::new(),
            refused: Vec::new(),
        })
    }

    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.serial.as_ref().map(|serial| serial.as_fd())
    }

    pub(super) fn carry(&mut self, number: u64, datagram: &[u8]) {
        if self.serial.is_none() || self.framer.frame(datagram, &mut self.out).is_err() {
            self.refused.push(number);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() - self.gone >= FULL
    }

    pub(super) fn flush(&mut self, now: Instant) -> Flushed {
        while let (Some(serial), Some(waiting @ [_, ..])) = (&self.serial, self.out.get(self.gone..)) {
            match serial.write(waiting) {
                Ok(octets) => self.gone += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.lose(now, &error),
            }
        }
        if self.gone >= self.out.len() {
            self.out.clear();
            self.gone = 0;
            // The next frame starts with a delimiter, as noise on an idle line is not a frame.
            self.framer.silent();
        }
        Flushed {
            refused: std::mem::take(&mut self.refused),
            waits: !self.out.is_empty(),
            too_long: Vec::new(),
        }
    }

    pub(super) fn receive(&mut self, now: Instant) -> Received {
        let Some(serial) = &self.serial else { return Received::All };
        match serial.read(&mut self.chunk) {
            Ok(octets) => {
                self.unread = 0..octets;
                if octets == self.chunk.len() { Received::More } else { Received::All }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::All,
            Err(error) => {
                self.lose(now, &error);
                Received::All
            }
        }
    }

    /// Deframes octet by octet, so that each frame is handled before the next one starts.
    pub(super) fn poll_arrival(&mut self) -> Option<Arrival<'_>> {
        let Self { chunk, unread, deframer, datagram, .. } = self;
        let mut found = None;
        while found.is_none() {
            let at = unread.next()?;
            deframer.receive(chunk.get(at..=at).unwrap_or_default(), &mut |frame| {
                found = Some(frame.map(|frame| {
                    datagram.clear();
                    datagram.extend_from_slice(frame);
                }));
            });
        }
        Some(match found? {
            Ok(()) => Arrival::Datagram(None, datagram),
            Err(FrameError::Crc { .. }) => Arrival::WrongCrc,
            Err(_) => Arrival::BadFrame,
        })
    }

    fn lose(&mut self, now: Instant, error: &io::Error) {
        tracing::warn!(line = %self.path.display(), %error, "the line is gone; looking for it every second");
        self.serial = None;
        self.retry_at = Some(now + RETRY);
        self.out.clear();
        self.gone = 0;
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    pub(super) fn retry(&mut self, now: Instant, helper: &mut Helper) -> bool {
        if self.retry_at.is_none_or(|at| now < at) {
            return false;
        }
        self.retry_at = Some(now + RETRY);
        match helper.open_line().and_then(|file| Serial::from_file(file, &self.path)) {
            Ok(serial) => {
                tracing::info!(line = %self.path.display(), "the line is back");
                self.serial = Some(serial);
                self.retry_at = None;
                self.complained = false;
                true
            }
            Err(error) => {
                if error.is_permission() && !std::mem::replace(&mut self.complained, true) {
                    tracing::error!(
                        line = %self.path.display(),
                        "the line is there, and may not be opened: start as root, or as a user who may"
                    );
                }
                tracing::debug!(%error, kind = %error.kind(), "there is no line yet");
                false
            }
        }
    }

    pub(super) fn counters(&self) -> (FramerCounters, DeframerCounters) {
        (self.framer.counters(), self.deframer.counters())
    }
}
