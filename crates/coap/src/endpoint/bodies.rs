//! Stored bodies: responses of which not all blocks were fetched, and incomplete uploads. RFC 7959.
//!
//! Both are bounded in number, in octets, and in time. When there is no room, the transfer with the longest pause is
//! dropped.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::header::coap::Code;
use thinair_wire::time::Instant;

use super::digest::Digest;
use super::flight::MessageContent;
use super::protection::ContextId;
use super::server::PendingRequest;
use super::{Endpoint, Timed};
use crate::block::{Block, BlockSize};
use crate::code;
use crate::number;
use crate::option::OptionList;
use crate::request::Response;
use crate::table::SlotKey;

/// Peer; context of OSCORE, if it is protected; transfer. **A protected body is never sent without protection, or in another
/// context.**
pub(super) type Transfer = (SlotKey, (Option<ContextId>, u64));

/// Bodies that are stored for peers.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    downloads: BTreeMap<Transfer, Held>,
    uploads: BTreeMap<Transfer, Held>,
    /// Octets of all bodies.
    octets: usize,
}

#[derive(Debug)]
struct Held {
    code: Code,
    options: OptionList,
    octets: Vec<u8>,
    deadline: Instant,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BodyDirection {
    Up,
    Down,
}

impl Bodies {
    fn of(&mut self, direction: BodyDirection) -> &mut BTreeMap<Transfer, Held> {
        match direction {
            BodyDirection::Up => &mut self.uploads,
            BodyDirection::Down => &mut self.downloads,
        }
    }

    /// Returns the octets of all bodies.
    pub(super) const fn octets(&self) -> usize {
        self.octets
    }
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Returns the octets of bodies that are stored for peers, at most
    /// [`Limits::max_bodies`](crate::Limits::max_bodies).
    pub const fn held_octets(&self) -> usize {
        self.bodies.octets()
    }

    /// Stores a response of which not all blocks were sent, if there is room.
    pub(super) fn hold_body(
        &mut self,
        now: Instant,
        peer: SlotKey,
        transfer: (Option<ContextId>, u64),
        code: Code,
        options: OptionList,
        octets: Vec<u8>,
    ) {
        let transfer = (peer, transfer);
        self.drop_body(BodyDirection::Down, transfer);
        if !self.make_room(BodyDirection::Down, octets.capacity(), None) {
            return;
        }
        self.bodies.octets += octets.capacity();
        let deadline = now + self.config.timing.transfer_timeout;
        self.timers.insert((deadline, Timed::Body(BodyDirection::Down, transfer)));
        self.bodies.downloads.insert(transfer, Held { code, options, octets, deadline });
        self.peers.pin(peer);
    }

    /// Makes room for one more transfer and for octets; false if that is impossible. `but` is not dropped for it.
    fn make_room(&mut self, direction: BodyDirection, octets: usize, but: Option<Transfer>) -> bool {
        if octets > self.config.limits.max_bodies {
            return false;
        }
        let oldest = |held: &BTreeMap<Transfer, Held>| {
            let others = held.iter().filter(|(transfer, _)| Some(**transfer) != but);
            others.min_by_key(|(_, held)| held.deadline).map(|(transfer, held)| (held.deadline, *transfer))
        };
        if but.is_none()
            && self.bodies.of(direction).len() >= self.config.limits.max_transfers.max(1)
            && let Some((_, transfer)) = oldest(self.bodies.of(direction))
        {
            self.drop_body(direction, transfer);
        }
        while self.bodies.octets + octets > self.config.limits.max_bodies {
            let up = oldest(&self.bodies.uploads)
                .map(|(deadline, transfer)| (deadline, BodyDirection::Up, transfer));
            let down = oldest(&self.bodies.downloads)
                .map(|(deadline, transfer)| (deadline, BodyDirection::Down, transfer));
            let Some((_, direction, transfer)) = up.into_iter().chain(down).min() else { return false };
            self.drop_body(direction, transfer);
        }
        true
    }

    /// Drops a transfer that is complete or has paused for too long.
    pub(super) fn drop_body(&mut self, direction: BodyDirection, transfer: Transfer) -> Option<Vec<u8>> {
        let held = self.bodies.of(direction).remove(&transfer)?;
        self.bodies.octets -= held.octets.capacity();
        self.timers.remove(&(held.deadline, Timed::Body(direction, transfer)));
        self.peers.unpin(transfer.0);
        Some(held.octets)
    }

    /// Answers a request for a further block from a stored body. False if the application has to answer.
    pub(super) fn respond_from_held(&mut self, now: Instant, pending: &PendingRequest, block: Block) -> bool {
        let transfer = (pending.peer, pending.transfer);
        let Some(held) = self.bodies.downloads.remove(&transfer) else {
            // A request that changes the resource is not processed again for its response.
            if code::is_safe(pending.method) {
                return false;
            }
            self.answer_plain(now, pending, Response::new(code::REQUEST_ENTITY_INCOMPLETE));
            return true;
        };
        let mut more = true;
        match self.part_for_any(pending, held.options.clone(), held.octets.len()) {
            Ok(Some(part)) => {
                let payload = held.octets.get(part.start..part.end).unwrap_or_default();
                let content = MessageContent {
                    code: held.code,
                    token: pending.token,
                    options: part.options.octets(),
                    payload,
                };
                let _ = self.answer(now, pending, &content);
                more = part.more;
            }
            Ok(None) | Err(_) => {
                let reason = if block.num > 0 { &b"no such block"[..] } else { b"" };
                self.answer_plain(now, pending, Response::new(code::BAD_REQUEST).payload(reason));
            }
        }
        self.timers.remove(&(held.deadline, Timed::Body(BodyDirection::Down, transfer)));
        let deadline = now + self.config.timing.transfer_timeout;
        self.timers.insert((deadline, Timed::Body(BodyDirection::Down, transfer)));
        self.bodies.downloads.insert(transfer, Held { deadline, ..held });
        if !more {
            self.drop_body(BodyDirection::Down, transfer);
        }
        true
    }

    /// Processes a block of a request's body. Returns the body once it is complete; until then, and after an error,
    /// answers the block itself. RFC 7959, section 2.5.
    pub(super) fn upload<'d>(
        &mut self,
        now: Instant,
        pending: &PendingRequest,
        block: Block,
        digest: &Digest,
        payload: &'d [u8],
    ) -> Option<Cow<'d, [u8]>> {
        let transfer = (pending.peer, pending.transfer);
        if block.num == 0 {
            self.drop_body(BodyDirection::Up, transfer);
            if !block.more {
                return Some(Cow::Borrowed(payload));
            }
        }
        let size = block.size.octets();
        let whole = if block.size == BlockSize::BERT {
            payload.len().is_multiple_of(size) && !payload.is_empty()
        } else {
            payload.len() == size
        };
        if block.more && !whole {
            self.answer_plain(now, pending, Response::new(code::BAD_REQUEST).payload(&b"size of block"[..]));
            return None;
        }
        let limit = self.config.limits.max_body.min(self.config.limits.max_bodies);
        let end = block.offset() + payload.len();
        if end > limit || block.num == 0 && digest.size1.is_some_and(|size| size as usize > limit) {
            self.drop_body(BodyDirection::Up, transfer);
            let response = Response::new(code::REQUEST_ENTITY_TOO_LARGE)
                .uint(number::SIZE1, u32::try_from(limit).unwrap_or(u32::MAX));
            self.answer_plain(now, pending, response);
            return None;
        }
        let (mut octets, known) = match self.bodies.uploads.get_mut(&transfer) {
            Some(held) => (core::mem::take(&mut held.octets), true),
            None => (Vec::new(), false),
        };
        self.bodies.octets -= octets.capacity();
        // The latest block may arrive again, in another message.
        if known && end == octets.len() && block.offset() < end {
            octets.truncate(block.offset());
        }
        let fits = octets.len() == block.offset() && (known || block.num == 0);
        if fits {
            octets.extend_from_slice(payload);
        }
        if !fits || !self.make_room(BodyDirection::Up, octets.capacity(), known.then_some(transfer)) {
            self.drop_body(BodyDirection::Up, transfer);
            let response = match fits {
                true => Response::new(code::REQUEST_ENTITY_TOO_LARGE),
                false => Response::new(code::REQUEST_ENTITY_INCOMPLETE),
            };
            self.answer_plain(now, pending, response);
            return None;
        }
        if !block.more {
            self.drop_body(BodyDirection::Up, transfer);
            return Some(Cow::Owned(octets));
        }
        self.bodies.octets += octets.capacity();
        let deadline = now + self.config.timing.transfer_timeout;
        let held = Held { code: pending.method, options: OptionList::new(), octets, deadline };
        match self.bodies.uploads.insert(transfer, held) {
            Some(before) => {
                self.timers.remove(&(before.deadline, Timed::Body(BodyDirection::Up, transfer)));
            }
            None => self.peers.pin(pending.peer),
        }
        self.timers.insert((deadline, Timed::Body(BodyDirection::Up, transfer)));
        let size = block.size.min(self.limits(pending.peer, pending.transfer.0).block);
        // NUM acknowledges the block in the unit in which it came, unless a smaller one is requested.
        let echoed = Block { size, ..block };
        self.answer_plain(now, pending, Response::new(code::CONTINUE).uint(number::BLOCK1, echoed.to_uint()));
        None
    }
}
