//! Where PDUs wait for their TS Packets: the caller's queue, or the one here.

use crate::sndu::{Pdus, Sndu};
use crate::type_field::Type;

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

/// One SNDU out of the first PDUs of a source: the next SNDU as it is, or several PDUs one behind the other.
#[derive(Debug)]
pub(crate) struct Queued<'s, S> {
    pub(crate) source: &'s S,
    pub(crate) pdus: usize,
}

impl<S: Source> Pdus for Queued<'_, S> {
    #[inline]
    fn concat(&self) -> Option<Type> {
        let head = self.source.peek(0)?;
        if self.pdus > 1 { Some(head.type_field()) } else { head.concat() }
    }

    #[inline]
    fn pdu(&self, i: usize) -> Option<&[u8]> {
        match self.pdus {
            0 | 1 => self.source.peek(0)?.pdu_of(i),
            pdus if i < pdus => self.source.peek(i)?.one(),
            _ => None,
        }
    }
}
