//! Where PDUs wait for their TS Packets: the caller's queue, or the one here.

use crate::sndu::{Parts, Payload, Sndu};

/// PDUs that wait, in their order.
pub trait Source {
    /// SNDU number `ahead` of those that wait, 0 being the next one: the same one until it is taken, and none only if
    /// fewer wait.
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>>;

    /// Takes the next `count` SNDUs away: they are sent.
    fn take(&mut self, count: usize);
}

impl<S: Source> Source for &mut S {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        (**self).peek(ahead)
    }

    fn take(&mut self, count: usize) {
        (**self).take(count);
    }
}

/// The payload of one SNDU out of the first PDUs of a source: the next SNDU as it is, or several PDUs one behind the
/// other.
#[derive(Debug)]
pub(crate) struct Queued<'s, S> {
    pub(crate) source: &'s S,
    pub(crate) pdus: usize,
}

impl<S: Source> Payload for Queued<'_, S> {
    fn one(&self) -> Option<&[u8]> {
        if self.pdus > 1 { None } else { self.source.peek(0)?.one() }
    }

    fn pdu(&self, i: usize) -> Option<&[u8]> {
        match self.pdus {
            0 | 1 => match self.source.peek(0)?.parts() {
                Parts::One(_) => None,
                Parts::Several(pdus) => pdus.get(i).copied(),
            },
            pdus => (i < pdus).then(|| self.source.peek(i)?.one())?,
        }
    }
}
