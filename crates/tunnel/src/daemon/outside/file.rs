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
    /// Octets that are not written yet.
    out: Vec<u8>,
    chunk: Vec<u8>,
    /// Octets of it that were read.
    unread: usize,
    refused: Vec<u64>,
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
            chunk: vec![0; CHUNK],
            unread: 0,
            refused: Vec::new(),
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

    pub(super) fn carry(&mut self, number: u64, octets: &[u8]) {
        if self.is_full() {
            self.write();
        }
        if self.to.is_some() && !self.is_full() {
            self.out.extend_from_slice(octets);
        } else {
            self.refused.push(number);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= FULL
    }

    pub(super) fn flush(&mut self) -> Flushed {
        self.write();
        Flushed {
            refused: std::mem::take(&mut self.refused),
            waits: !self.out.is_empty(),
            too_long: Vec::new(),
        }
    }

    /// Writes queued octets, as far as there is room.
    fn write(&mut self) {
        let mut written = 0;
        while let (Some(to), Some(waiting @ [_, ..])) = (&mut self.to, self.out.get(written..)) {
            match to.write(waiting) {
                Ok(octets) => written += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::error!(%error, "nothing more can be written");
                    self.to = None;
                    written = self.out.len();
                }
            }
        }
        self.out.drain(..written);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn what_a_slow_reader_leaves_has_a_limit_and_is_never_torn() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        // Opened anew, so that writing to it does not block.
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let signals = Signals::take().expect("signals");
        let mut files = Files::open(None, Some(Path::new(&path)), &signals).expect("a writer");
        drop(writer);
        let (mut carried, mut refused, mut read) = (0_u32, Vec::new(), Vec::new());
        for _ in 0..10_000 {
            files.carry(carried.into(), &[&carried.to_be_bytes()[..], &[0x47; 184]].concat());
            carried += 1;
            let flushed = files.flush();
            refused.extend(flushed.refused);
            assert!(files.out.len() < FULL + 188);
            if flushed.waits && carried % 2 == 0 {
                let mut some = [0; 100];
                reader.read_exact(&mut some).expect("octets of the pipe");
                read.extend(some);
            }
        }
        assert!(!refused.is_empty());
        let mut room = [0; 4_096];
        while files.flush().waits {
            let octets = reader.read(&mut room).expect("the rest");
            read.extend(&room[..octets]);
        }
        drop(files);
        reader.read_to_end(&mut read).expect("the rest");
        let numbers: Vec<_> = read
            .chunks(188)
            .map(|packet| u32::from_be_bytes(packet[..4].try_into().expect("four octets")))
            .collect();
        assert_eq!(numbers.len() + refused.len(), carried as usize);
        assert!(numbers.iter().all(|number| !refused.contains(&u64::from(*number))));
        assert!(numbers.is_sorted(), "whole TS Packets, in order");
    }
}
