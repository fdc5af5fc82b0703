//! One direction of a session or of a group: encryption at one end and decryption at the other, each with key
//! and counter.

use std::ops::Range;
use std::time::Duration;

use thinair_wire::time::Instant;

use super::Refused;
use super::header::{ClearHeader, PathBody, Travelled, Whose};
use super::replay::{ReplayError, ReplayWindow};
use super::suite::Cipher;
use super::{BodyFlags, Missing, NotSealed};

/// Number of datagrams after which the whole counter is sent again.
const FULL_EVERY: u64 = 4_096;
/// Silence after which it is sent, too: the first packet after a long outage resynchronizes the counter.
const SILENCE: Duration = Duration::from_secs(10);
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
    last: Option<Instant>,
}

impl Sealer {
    pub(super) fn new(cipher: Cipher) -> Self {
        Self { cipher, counter: 0, full_at: 0, last: None }
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

    /// Skips counters for the units of the last body, which used one counter.
    pub(super) fn note_units(&mut self, units: u32) {
        self.counter = self.counter.saturating_add(u64::from(units).saturating_sub(1));
    }

    /// Appends header, encrypted body and tag to `out`.
    pub(super) fn seal(
        &mut self,
        now: Instant,
        whose: Whose,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let counter = self.counter;
        if counter >= NEW_KEYS_AT + GRACE {
            return Err(NotSealed::NoSession);
        }
        let silent = self.last.is_none_or(|last| now.since(last) >= SILENCE);
        // The caller computes the length of padding for a header with the whole counter.
        let is_padding = matches!(whose, Whose::Path(_, PathBody::Padding));
        let full = silent || is_padding || counter >= self.full_at;
        if counter >= self.full_at {
            self.full_at = (counter / FULL_EVERY + 1) * FULL_EVERY;
        }
        let counter_sent = if full { Travelled::Full(counter) } else { Travelled::Low(counter as u16) };
        let start = out.len();
        ClearHeader { whose, flags, counter: counter_sent }.write(out);
        let header = start..out.len();
        out.extend_from_slice(body);
        // The counter is incremented before it is used.
        self.counter += 1;
        self.last = Some(now);
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
