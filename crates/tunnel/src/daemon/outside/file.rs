//! A transport stream in files or pipes: a sequence of TS Packets.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use thinair_os::{Error, Signals, pipe};

use super::{Arrival, CHUNK, Flushed, Received};

/// Limit of octets queued for the reader of the output.
const FULL: usize = 1 << 16;

#[derive(Debug)]
pub(in crate::daemon) struct Files {
    from: Option<File>,
    to: Option<File>,
    /// Regular files are always ready, and cannot be waited for.
    from_is_plain: bool,
    to_is_plain: bool,
    out: Vec<u8>,
    gone: usize,
    chunk: Vec<u8>,
    /// Octets of it that were read.
    unread: usize,
    refused: u64,
}

impl Files {
    pub(super) fn open(from: Option<&Path>, to: Option<&Path>, signals: &Signals) -> Result<Self, Error> {
        let from = from.map(open_from).transpose()?;
        let to = to.map(|path| open_to(path, signals)).transpose()?;
        let is_plain = |file: &Option<File>| {
            file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|data| data.is_file()))
        };
        Ok(Self {
            from_is_plain: is_plain(&from),
            to_is_plain: is_plain(&to),
            from,
            to,
            out: Vec::new(),
            gone: 0,
            chunk: vec![0; CHUNK],
            unread: 0,
            refused: 0,
        })
    }

    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.from.as_ref().filter(|_| !self.from_is_plain).map(|file| file.as_fd())
    }

    pub(super) fn writable(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.to_is_plain).map(|file| file.as_fd())
    }

    pub(super) fn is_always_readable(&self) -> bool {
        self.from_is_plain && self.from.is_some()
    }

    pub(super) fn carry(&mut self, octets: &[u8]) {
        match &self.to {
            Some(_) => self.out.extend_from_slice(octets),
            None => self.refused += 1,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() - self.gone >= FULL
    }

    pub(super) fn flush(&mut self) -> Flushed {
        while let (Some(to), Some(waiting @ [_, ..])) = (&mut self.to, self.out.get(self.gone..)) {
            match to.write(waiting) {
                Ok(octets) => self.gone += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::error!(%error, "nothing more can be written");
                    self.to = None;
                    self.gone = self.out.len();
                }
            }
        }
        if self.gone >= self.out.len() {
            self.out.clear();
            self.gone = 0;
        }
        Flushed { refused: std::mem::take(&mut self.refused), waits: !self.out.is_empty(), too_long: 0 }
    }

    pub(super) fn receive(&mut self) -> Received {
        let Some(from) = &mut self.from else { return Received::All };
        match from.read(&mut self.chunk) {
            Ok(0) => {
                self.from = None;
                Received::End
            }
            Ok(octets) => {
                self.unread = octets;
                if octets == self.chunk.len() { Received::More } else { Received::All }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Received::All
            }
            Err(error) => {
                tracing::error!(%error, "nothing more can be read");
                self.from = None;
                Received::End
            }
        }
    }

    pub(super) fn poll_arrival(&mut self) -> Option<Arrival<'_>> {
        let unread = std::mem::take(&mut self.unread);
        self.chunk.get(..unread).filter(|octets| !octets.is_empty()).map(Arrival::Stream)
    }
}

/// `-` is standard input.
fn open_from(path: &Path) -> Result<File, Error> {
    if path == Path::new("-") { pipe::standard_input() } else { pipe::read(path) }
}

/// `-` is standard output.
fn open_to(path: &Path, signals: &Signals) -> Result<File, Error> {
    if path == Path::new("-") { pipe::standard_output() } else { pipe::write(path, signals) }
}
