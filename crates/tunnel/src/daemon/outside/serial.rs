//! A serial line: frames in a run of octets. A line that is unplugged is looked for.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thinair_os::Error;
use thinair_os::serial::Serial;
use thinair_wire::time::Instant;

use super::{Arrival, CHUNK, Flushed, Received};
use crate::daemon::helper::Helper;
use crate::line::{Deframer, DeframerCounters, FrameError, Framer, FramerCounters};
use crate::site_config::Framing;

/// How often a line that is gone is looked for.
const RETRY: Duration = Duration::from_secs(1);

/// Octets that may wait, beside those in the system: a few frames. Packets should wait in the interface, where they can
/// still be dropped by whoever knows better.
const FULL: usize = 2_048;

#[derive(Debug)]
pub(in crate::daemon) struct Line {
    path: PathBuf,
    serial: Option<Serial>,
    retry_at: Option<Instant>,
    /// True if it was logged that the line may not be opened.
    complained: bool,
    framer: Framer,
    deframer: Deframer,
    /// Octets that wait, and how many of them have gone.
    out: Vec<u8>,
    gone: usize,
    chunk: Vec<u8>,
    /// Octets in it that were read, and not deframed.
    unread: Range<usize>,
    datagram: Vec<u8>,
    refused: u64,
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
            refused: 0,
        })
    }

    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.serial.as_ref().map(|serial| serial.as_fd())
    }

    pub(super) fn carry(&mut self, datagram: &[u8]) {
        if self.serial.is_none() || self.framer.frame(datagram, &mut self.out).is_err() {
            self.refused += 1;
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
            // The next frame begins with a mark of its own, as noise of a line that nobody uses is not a frame.
            self.framer.silent();
        }
        Flushed { refused: std::mem::take(&mut self.refused), waits: !self.out.is_empty(), too_long: 0 }
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

    /// Deframes octet by octet, so that a frame that ends is handled before the next one is begun.
    pub(super) fn poll_arrival(&mut self) -> Option<Arrival<'_>> {
        let Self { chunk, unread, deframer, datagram, .. } = self;
        let mut found = None;
        while let (None, Some(at)) = (found, unread.next()) {
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
