//! Interface of a context at the compressor, whatever its profile.

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use super::{CompressorConfig, SharedMemory};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::exchange::Linked;
use crate::feedback::{Feedback, FeedbackForm};
use crate::flow::brief::FirstContext;
use crate::storage::{Shared, SharedRoom};

/// A packet to be compressed.
pub(crate) struct OutgoingPacket<'a, 'p, 'm> {
    pub(crate) now: Instant,
    /// Its headers.
    pub(crate) chain: &'a HeaderChain<'p>,
    /// Messages of both directions, at an endpoint.
    pub(crate) linked: Option<Linked<'a, 'm>>,
    /// The CID of a context that the flow has taken over, and of which the decompressor still has memory.
    pub(crate) owed: Option<Cid>,
    /// Context for the first packet of a flow.
    pub(crate) first: FirstContext,
    /// It belongs to the flow of the packet before, and is not the expected one.
    pub(crate) is_irregular: bool,
}

impl<'a, 'p, 'm> OutgoingPacket<'a, 'p, 'm> {
    pub(crate) fn new(now: Instant, chain: &'a HeaderChain<'p>, linked: Option<Linked<'a, 'm>>) -> Self {
        Self { now, chain, linked, owed: None, first: FirstContext::Own, is_irregular: false }
    }
}

/// Context at the compressor, as its profile implements it.
pub(crate) trait SenderContext {
    /// Element of the memory that the profile has beside contexts.
    type Room: SharedRoom;

    /// True if the octets of its packets count for or against the context.
    fn is_charged(&self) -> bool {
        true
    }

    /// Form of the feedback for the context.
    fn form(&self) -> FeedbackForm;

    /// True if the decompressor may reject the flow.
    fn may_be_rejected(&self) -> bool {
        true
    }

    /// True if its packets may have timestamps that follow the clock of the decompressor.
    fn has_timestamps(&self) -> bool {
        false
    }

    /// Handles an acknowledgment. Returns the base of the context (RFC 4164) if the decompressor does not have it.
    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        memory: &mut Shared<'_, Self::Room>,
    ) -> Option<Cid>;

    /// Restarts the context with IR packets, like a new one.
    fn restart(&mut self, config: &CompressorConfig, memory: &mut Shared<'_, Self::Room>);

    /// Returns its memory to the channel. True if it had some: the decompressor keeps it until another flow uses the CID.
    fn release(&mut self, _memory: &mut Shared<'_, Self::Room>) -> bool {
        false
    }

    /// Stops using the context as the base of others until it is acknowledged again (RFC 4164, section 3.3.3.4).
    fn withdraw_as_base(&mut self) {}

    /// State of the context, for monitoring.
    fn context_state(&self, cid: Cid) -> ContextState;
}

/// A [`SenderContext`] of any profile, with the memory of all.
pub(crate) trait AnySenderContext {
    fn form(&self) -> FeedbackForm;
    fn may_be_rejected(&self) -> bool;
    fn has_timestamps(&self) -> bool;
    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid>;
    fn restart(&mut self, config: &CompressorConfig, shared: &mut SharedMemory<'_>);
    fn release(&mut self, shared: &mut SharedMemory<'_>) -> bool;
    fn withdraw_as_base(&mut self);
    fn context_state(&self, cid: Cid) -> ContextState;
}

impl<C: SenderContext> AnySenderContext for C {
    fn form(&self) -> FeedbackForm {
        SenderContext::form(self)
    }

    fn may_be_rejected(&self) -> bool {
        SenderContext::may_be_rejected(self)
    }

    fn has_timestamps(&self) -> bool {
        SenderContext::has_timestamps(self)
    }

    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid> {
        SenderContext::receive_feedback(self, now, feedback, config, C::Room::of_mut(shared))
    }

    fn restart(&mut self, config: &CompressorConfig, shared: &mut SharedMemory<'_>) {
        SenderContext::restart(self, config, C::Room::of_mut(shared));
    }

    fn release(&mut self, shared: &mut SharedMemory<'_>) -> bool {
        SenderContext::release(self, C::Room::of_mut(shared))
    }

    fn withdraw_as_base(&mut self) {
        SenderContext::withdraw_as_base(self);
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        SenderContext::context_state(self, cid)
    }
}
