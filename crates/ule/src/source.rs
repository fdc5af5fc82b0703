//! Sources of queued PDUs: the caller's queue, or the one of this crate.

use crate::sndu::{Pdus, Sndu};
use crate::type_field::Type;

/// Queue of PDUs, in order.
pub trait SnduSource {
    /// Returns the queued SNDU number `ahead`, 0 being the next one. It must not change until it is taken; `None`
    /// only if fewer are queued.
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>>;

    /// Removes the next `count` SNDUs: they are sent.
    fn take(&mut self, count: usize);
}

impl<S: SnduSource> SnduSource for &mut S {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        (**self).peek(ahead)
    }

    fn take(&mut self, count: usize) {
        (**self).take(count);
    }
}

/// One SNDU of the first PDUs of a source: the next SNDU unchanged, or several concatenated PDUs.
#[derive(Debug)]
pub(crate) struct Queued<'s, S> {
    pub(crate) source: &'s S,
    pub(crate) pdus: usize,
}

impl<S: SnduSource> Pdus for Queued<'_, S> {
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
