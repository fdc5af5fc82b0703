//! A sliding view of a stream, from the current offset on.

use std::io::{self, Read};

use crate::Error;

const INITIAL_LEN: usize = 64 * 1024;

/// **Call [`fill`](Self::fill) before [`octets`](Self::octets) or [`take`](Self::take).** Taken octets remain
/// available until the next `fill` or `skip`.
#[derive(Debug)]
pub(crate) struct ReadWindow<R> {
    read: R,
    buffer: Vec<u8>,
    // `taken..start` of `buffer` was taken last, `start..end` has been read and not taken; `taken <= start <=
    // end <= buffer.len()`.
    taken: usize,
    start: usize,
    end: usize,
    // Offset in the stream of `buffer[start]`.
    offset: u64,
    at_end: bool,
}

impl<R: Read> ReadWindow<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { read, buffer: vec![0; INITIAL_LEN], taken: 0, start: 0, end: 0, offset: 0, at_end: false }
    }

    /// Reads until `wanted` octets are in view; returns false if the stream ends before.
    ///
    /// The buffer grows to at most twice the octets received, so that a length in a file causes no
    /// allocation.
    pub(crate) fn fill(&mut self, wanted: usize) -> Result<bool, Error> {
        while self.octets().len() < wanted {
            if self.at_end {
                return Ok(false);
            }
            if self.start > 0 && self.buffer.len() - self.start < wanted {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.taken, self.start, self.end) = (0, 0, self.end - self.start);
            }
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let room = &mut self.buffer[self.end..];
            match self.read.read(room) {
                Ok(0) => self.at_end = true,
                // `min`: an incorrect `Read` may return a larger number.
                Ok(count) => self.end += count.min(room.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { offset: self.octets_read(), source }),
            }
        }
        Ok(true)
    }

    /// Returns all octets in view, at least as many as the last successful `fill` requested.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes `count` octets from the view, or all if there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> &[u8] {
        let count = count.min(self.octets().len());
        self.taken = self.start;
        self.start += count;
        self.offset += count as u64;
        self.taken()
    }

    /// Returns the octets of the last `take`.
    pub(crate) fn taken(&self) -> &[u8] {
        &self.buffer[self.taken..self.start]
    }

    /// Discards `count` octets; returns false if the stream ends before.
    pub(crate) fn skip(&mut self, mut count: u64) -> Result<bool, Error> {
        while count > 0 {
            if !self.fill(1)? {
                return Ok(false);
            }
            count -= self.take(usize::try_from(count).unwrap_or(usize::MAX)).len() as u64;
        }
        Ok(true)
    }

    /// Offset of the view in the stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Octets received from the stream.
    pub(crate) fn octets_read(&self) -> u64 {
        self.offset + self.octets().len() as u64
    }
}

impl<R> ReadWindow<R> {
    pub(crate) fn stream(&self) -> &R {
        &self.read
    }

    pub(crate) fn into_inner(self) -> R {
        self.read
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn view_moves_on_and_grows() {
        let stream: Vec<u8> = (0..=255).cycle().take(5 * INITIAL_LEN + 3).collect();
        let mut window = ReadWindow::new(stream.as_slice());
        assert!(window.fill(3).unwrap());
        assert_eq!(window.take(3), [0, 1, 2]);
        assert!(window.skip(INITIAL_LEN as u64).unwrap());
        assert_eq!(window.offset(), 3 + INITIAL_LEN as u64);

        assert!(window.fill(4 * INITIAL_LEN).unwrap());
        assert_eq!(window.octets(), &stream[3 + INITIAL_LEN..]);
        assert!(!window.fill(4 * INITIAL_LEN + 1).unwrap());
        assert_eq!(window.octets_read(), stream.len() as u64);
        assert!(!window.skip(u64::MAX).unwrap());
        assert_eq!(window.offset(), stream.len() as u64);
    }

    #[test]
    fn a_wanted_length_alone_allocates_nothing() {
        let mut window = ReadWindow::new([1, 2, 3].as_slice());
        assert!(!window.fill(1 << 40).unwrap());
        assert_eq!(window.buffer.len(), INITIAL_LEN);
    }

    struct Liar;
    impl Read for Liar {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(usize::MAX)
        }
    }

    #[test]
    fn a_read_that_claims_too_much_does_not_panic() {
        assert!(ReadWindow::new(Liar).fill(3 * INITIAL_LEN).unwrap());
    }

    struct Fails(u8);
    impl Read for Fails {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(io::ErrorKind::Interrupted.into()),
                2 => {
                    room[0] = 7;
                    Ok(1)
                }
                _ => Err(io::ErrorKind::PermissionDenied.into()),
            }
        }
    }

    #[test]
    fn interruptions_are_retried_and_failures_name_the_offset() {
        let mut window = ReadWindow::new(Fails(0));
        assert!(window.fill(1).unwrap());
        assert!(matches!(window.fill(2), Err(Error::Io { offset: 1, .. })));
    }
}
