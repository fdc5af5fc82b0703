//! Packets whose MSN does not advance: late ones, duplicates, and those of a sender whose numbers jump back. RFC 4224.
//!
//! A packet that was sent before the newest one must not set the context back. Both ends apply the same rule, so that their contexts
//! stay the same.

use thinair_wire::time::Instant;

use super::compress::V2SenderContext;
use super::encodings::ReorderRatio;
use super::formats::is_strong;
use super::note::numbers;
use super::state::State;
use crate::id::Format;

/// Packets by which a packet may be late: as many as the interpretation interval of the smallest formats allows, or a few.
pub(super) fn latest(last: &State) -> i32 {
    match last.reorder_ratio {
        ReorderRatio::None | ReorderRatio::Quarter => 8,
        ratio => ratio.p(4).cast_signed(),
    }
}

/// The order of a packet and the newest one before it.
pub(super) struct PacketOrder<'a> {
    pub(super) next: &'a State,
    pub(super) last: &'a State,
    pub(super) format: Format,
    /// The packet has the whole MSN.
    pub(super) is_whole: bool,
}

impl PacketOrder<'_> {
    /// True if the packet is late, a duplicate, or its number has jumped back by a few. `behind` is the MSN after the last packet of which
    /// this was true, if the sender may have sent that: a packet that continues from there is no late one.
    #[inline]
    pub(super) fn is_late(&self, behind: &mut Option<u32>) -> bool {
        let msn = self.next.msn;
        let ahead = msn.wrapping_sub(self.last.msn).cast_signed();
        let follows = behind.take() == Some(msn);
        // With the same number again and a strong CRC, a packet repeats the newest one, or carries more fields.
        let is_new = ahead > 0 || ahead < -latest(self.last) || ahead == 0 && is_strong(self.format);
        if is_new || self.goes_on() {
            return false;
        }
        // A packet from before a jump of the timestamp is late, and so are those that follow it.
        if self.next.has_rtp() && self.next.line() != self.last.line() {
            return true;
        }
        if follows {
            return false;
        }
        *behind = (is_strong(self.format) && self.next.has_own_msn()).then_some(msn.wrapping_add(1));
        true
    }

    /// True if a sequence number of the sender has jumped back in a packet that is the newest one: timestamp or IP-ID advance, or the packet
    /// has the whole number.
    fn goes_on(&self) -> bool {
        let Self { next, last, .. } = *self;
        let is_behind = |new: u32, old: u32| new.wrapping_sub(old).cast_signed() > 0;
        let id = |state: &State| {
            let counted = state.inner_behavior().counted(state.headers.word(state.headers.inner(), 4));
            if state.is_sequential() { u32::from(counted) << 16 } else { 0 }
        };
        next.has_own_msn()
            && (self.format == Format::CoCommon && self.is_whole
                || is_behind(next.timestamp(), last.timestamp())
                || is_behind(id(next), id(last)))
    }
}

impl V2SenderContext {
    /// Records a late packet: a decompressor that has lost the newest one takes it as its reference. Otherwise nothing is kept of it,
    /// and its acknowledgment confirms no change.
    #[cold]
    pub(super) fn note_late(&mut self, now: Instant, late: &State) {
        self.msns.include(late.msn);
        if late.is_sequential() {
            self.ip_id_offsets.include(late.offset_of_id());
        }
        if late.has_rtp() {
            self.timestamps.include(late.stamp(now));
            self.ts_offsets.include(late.ts_offset());
            self.lines.include(late.line());
        }
        for (held, (item, at)) in self.numbers.iter_mut().zip(numbers(&late.headers)) {
            held.include(late.headers.long(item, at));
        }
        self.since = self.msn.wrapping_add(1);
        self.is_steady = false;
    }
}
