//! One direction of a session or of a group: the end that seals and the end that opens, each with its key and counter.

use std::ops::Range;
use std::time::Duration;

use thinair_wire::time::Instant;

use super::Refused;
use super::header::{Header, PathBody, Travelled, Whose};
use super::replay::{Seen, Window};
use super::suite::Cipher;
use super::{BodyFlags, Missing, NotSealed};

/// How often the whole counter travels.
const FULL_EVERY: u64 = 4_096;
/// After what silence it travels, too: a long outage heals itself by the first packet behind it.
const SILENCE: Duration = Duration::from_secs(10);
/// Counters after which new keys are wanted.
pub(super) const NEW_KEYS_AT: u64 = 1 << 32;
/// How many more are sealed while new keys are on their way.
const GRACE: u64 = 1 << 24;

/// Seals, and never takes a counter twice.
pub(super) struct Sealer {
    cipher: Cipher,
    /// The next counter.
    counter: u64,
    /// The least counter that travels as a whole next.
    full_at: u64,
    last: Option<Instant>,
}

impl Sealer {
    pub(super) fn new(cipher: Cipher) -> Self {
        Self { cipher, counter: 0, full_at: 0, last: None }
    }

    /// The next counter: how many units were sealed.
    pub(super) fn counter(&self) -> u64 {
        self.counter
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        assert!(counter >= self.counter);
        self.counter = counter;
    }

    /// Leaves out counters: the body that was sealed last has so many units, and has used up one counter.
    pub(super) fn note_units(&mut self, units: u32) {
        self.counter = self.counter.saturating_add(u64::from(units).saturating_sub(1));
    }

    /// Appends header, sealed body and tag to `out`, which is empty.
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
        // Padding is as long as its caller computes it: with all of the counter.
        let is_padding = matches!(whose, Whose::Path(_, PathBody::Padding));
        let full = silent || is_padding || counter >= self.full_at;
        if counter >= self.full_at {
            self.full_at = (counter / FULL_EVERY + 1) * FULL_EVERY;
        }
        let counter_sent = if full { Travelled::Full(counter) } else { Travelled::Low(counter as u16) };
        Header { whose, flags, counter: counter_sent }.write(out);
        let header = out.len();
        out.extend_from_slice(body);
        // First the counter is used up, then the cipher is asked.
        self.counter += 1;
        self.last = Some(now);
        self.cipher.seal(counter, header, out);
        Ok(())
    }
}

/// What was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    /// Where the body is in the datagram.
    pub(super) body: Range<usize>,
    /// Whether its counter is the highest one yet.
    pub(super) newest: bool,
    /// Units between it and the newest one before.
    pub(super) missing: Missing,
}

/// Opens, and nothing twice.
pub(super) struct Opener {
    cipher: Cipher,
    window: Window,
    /// The counter that follows if nothing is missing; `None` before the first datagram.
    expected: Option<u64>,
    /// Wrong tags so far, and how many are borne.
    wrong: u64,
    bearable: u64,
}

impl Opener {
    pub(super) fn new(cipher: Cipher, bearable: u64, floor: u64) -> Self {
        Self { cipher, window: Window::new(floor), expected: None, wrong: 0, bearable }
    }

    /// One more than the highest counter that was opened.
    pub(super) fn next(&self) -> u64 {
        self.window.next()
    }

    /// The newest datagram had so many units.
    pub(super) fn note_units(&mut self, units: u32) {
        if let Some(expected) = &mut self.expected {
            *expected = expected.saturating_add(u64::from(units).saturating_sub(1));
        }
    }

    /// What is below `floor` is refused from now on.
    pub(super) fn raise(&mut self, floor: u64) {
        self.window.raise(floor);
    }

    /// Whether half of the wrong tags that are borne were there: time for new keys.
    pub(super) fn worn(&self) -> bool {
        self.wrong >= self.bearable / 2
    }

    /// Opens `datagram` in place, whose first `length` octets are `header`. One AEAD open at most, and the window moves
    /// only if it succeeds.
    pub(super) fn open(
        &mut self,
        header: &Header,
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
            Seen::Twice => Refused::Replayed,
            Seen::TooOld => Refused::TooOld,
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
