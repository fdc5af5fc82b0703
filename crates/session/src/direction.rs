//! One direction of a session or of a group: encryption at one end and decryption at the other, each with key
//! and counter.

use std::ops::Range;

use super::Refused;
use super::header::{ClearHeader, PathBody, Travelled, Whose};
use super::replay::{ReplayError, ReplayWindow};
use super::suite::Cipher;
use super::{BodyFlags, Missing, NotSealed};

/// Counters since the last sign of life of the receiver from which on it may have missed too many of them: then the whole
/// counter is sent, until there is one.
const UNKNOWN_AFTER: u64 = 32_768;
/// Counters after which a group, from which there is none, gets the whole counter again.
const FULL_EVERY: u64 = 4_096;
/// Counter from which on new keys are requested.
pub(super) const NEW_KEYS_AT: u64 = 1 << 32;
/// Number of further datagrams that are encrypted while new keys are pending.
const GRACE: u64 = 1 << 24;

/// Encrypts, and never uses a counter twice.
pub(super) struct Sealer {
    cipher: Cipher,
    /// The next counter.
    counter: u64,
    /// Minimum counter that is sent as a whole next.
    full_at: u64,
    /// Counters from one that is sent as a whole to the next one.
    full_every: u64,
}

impl Sealer {
    /// For a group, whose members may miss any number of counters.
    pub(super) fn of_group(cipher: Cipher) -> Self {
        Self { cipher, counter: 0, full_at: 0, full_every: FULL_EVERY }
    }

    /// For a session, whose other end knows the first counter, and gives signs of life.
    pub(super) fn of_session(cipher: Cipher) -> Self {
        Self { cipher, counter: 0, full_at: UNKNOWN_AFTER, full_every: 1 }
    }

    /// True if the receiver of a session may have missed too many counters: a sign of life is needed.
    pub(super) fn is_unsure(&self) -> bool {
        self.counter >= self.full_at
    }

    /// Next counter, the number of units encrypted so far.
    pub(super) fn counter(&self) -> u64 {
        self.counter
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        assert!(counter >= self.counter);
        self.counter = counter;
    }

    /// Sends the whole counter with the first datagram, as a receiver accepts it.
    #[cfg(test)]
    pub(super) fn send_first_whole(&mut self) {
        (self.full_at, self.full_every) = (0, UNKNOWN_AFTER);
    }

    /// Skips counters for the units of the last body, which used one counter.
    pub(super) fn note_units(&mut self, units: u32) {
        self.counter = self.counter.saturating_add(u64::from(units).saturating_sub(1));
    }

    /// Records a sign of life of the receiver, which has the counters of the datagrams before.
    pub(super) fn note_heard(&mut self) {
        self.full_at = self.counter + UNKNOWN_AFTER;
    }

    /// Appends header, encrypted body and tag to `out`.
    pub(super) fn seal(
        &mut self,
        whose: Whose,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let counter = self.counter;
        if counter >= NEW_KEYS_AT + GRACE {
            return Err(NotSealed::NoSession);
        }
        // The caller computes the length of padding for a header with the whole counter.
        let is_padding = matches!(whose, Whose::Path(_, PathBody::Padding));
        let full = is_padding || counter >= self.full_at;
        if counter >= self.full_at {
            self.full_at = (counter / self.full_every + 1) * self.full_every;
        }
        let counter_sent = if full { Travelled::Full(counter) } else { Travelled::Low(counter as u16) };
        let start = out.len();
        ClearHeader { whose, flags, counter: counter_sent }.write(out);
        let header = start..out.len();
        out.extend_from_slice(body);
        // The counter is incremented before it is used.
        self.counter += 1;
        self.cipher.seal(counter, header, out);
        Ok(())
    }
}

/// Result of decryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    /// Range of the body in the datagram.
    pub(super) body: Range<usize>,
    /// True if its counter is the highest one so far.
    pub(super) newest: bool,
    /// Units missing between it and the newest one before.
    pub(super) missing: Missing,
}

/// Decrypts, and accepts each counter once.
pub(super) struct Opener {
    cipher: Cipher,
    window: ReplayWindow,
    /// Next counter if nothing is missing; `None` before the first datagram.
    expected: Option<u64>,
    /// Number of wrong tags so far, and its limit.
    wrong: u64,
    bearable: u64,
}

impl Opener {
    pub(super) fn new(cipher: Cipher, bearable: u64, floor: u64) -> Self {
        Self { cipher, window: ReplayWindow::new(floor), expected: None, wrong: 0, bearable }
    }

    /// Highest counter accepted, plus one.
    pub(super) fn next(&self) -> u64 {
        self.window.next()
    }

    /// Records the number of units in the newest datagram.
    pub(super) fn note_units(&mut self, units: u32) {
        if let Some(expected) = &mut self.expected {
            *expected = expected.saturating_add(u64::from(units).saturating_sub(1));
        }
    }

    /// Rejects counters below `floor` from now on.
    pub(super) fn raise(&mut self, floor: u64) {
        self.window.raise(floor);
    }

    /// True if half of the permitted wrong tags have occurred: new keys are needed.
    pub(super) fn worn(&self) -> bool {
        self.wrong >= self.bearable / 2
    }

    /// Decrypts `datagram` in place, whose first `length` octets are `header`. It costs at most one AEAD
    /// operation, and moves the window only on success.
    pub(super) fn open(
        &mut self,
        header: &ClearHeader,
        length: usize,
        datagram: &mut [u8],
    ) -> Result<Plain, Refused> {
        if self.wrong >= self.bearable {
            return Err(Refused::WornOut);
        }
        let counter = match header.counter {
            Travelled::Low(low) => self.window.complete(low),
            Travelled::Full(full) => full,
        };
        self.window.check(counter).map_err(|seen| match seen {
            ReplayError::Twice => Refused::Replayed,
            ReplayError::TooOld => Refused::TooOld,
        })?;
        let (clear, sealed) = datagram.split_at_mut(length);
        let Some(body) = self.cipher.open(counter, clear, sealed) else {
            self.wrong += 1;
            return Err(Refused::Forged);
        };
        let newest = self.window.mark(counter);
        let missing = match self.expected {
            _ if !newest => Missing::Uncounted,
            None => Missing::Unknown,
            Some(expected) => {
                Missing::Counted(u32::try_from(counter.saturating_sub(expected)).unwrap_or(u32::MAX))
            }
        };
        if newest {
            self.expected = Some(counter + 1);
        }
        Ok(Plain { body: length..length + body, newest, missing })
    }
}
