//! Interface of a profile at the compressor.

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use super::{CompressError, Compressed, Compressor, CompressorConfig, SharedMemory};
use crate::channel::ProfileSet;
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::exchange::{Exchanges, Linked};
use crate::feedback::{Feedback, FeedbackForm};

/// A packet to be compressed.
pub(crate) struct OutgoingPacket<'a, 'p, 'm> {
    pub(crate) now: Instant,
    /// Its headers.
    pub(crate) chain: &'a HeaderChain<'p>,
    /// Messages of both directions, at an endpoint.
    pub(crate) linked: Option<Linked<'a, 'm>>,
    /// The CID of a context that the flow has taken over, and of which the decompressor still has memory.
    pub(crate) owed: Option<Cid>,
}

/// A profile, or the profiles of one RFC, at the compressor. Its context implements it.
pub(crate) trait SenderContext {
    /// Compresses a packet with a context of its flow, or with a new one. `None` if another profile has to compress it.
    fn compress_packet<'m>(
        compressor: &mut Compressor<'m>,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Option<Result<Compressed, CompressError>>
    where
        Self: Sized;

    /// True if a profile of the set predicts packets.
    #[inline]
    fn predicts(_profiles: ProfileSet) -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Compresses the packet that the context used last predicts, before it is parsed, and records it among those `sent`. `None`, without a
    /// change, for other packets.
    #[inline]
    fn compress_predicted<'m>(
        _compressor: &mut Compressor<'m>,
        _now: Instant,
        _packet: &[u8],
        _sent: Option<&mut Exchanges<'m>>,
        _out: &mut [u8],
    ) -> Option<Compressed>
    where
        Self: Sized,
    {
        None
    }

    /// True if the flow of a packet has a context of this profile.
    fn has_flow(_compressor: &Compressor<'_>, _packet: &OutgoingPacket<'_, '_, '_>) -> bool
    where
        Self: Sized,
    {
        false
    }

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

    /// Handles an acknowledgment. Returns the base of the context (RFC 4164) if the decompressor does not have it.
    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        shared: &mut SharedMemory<'_>,
    ) -> Option<Cid>;

    /// Restarts the context with IR packets, like a new one.
    fn restart(&mut self, config: &CompressorConfig, shared: &mut SharedMemory<'_>);

    /// Returns its memory to the channel. True if it had some: the decompressor keeps it until another flow uses the CID.
    fn release(&mut self, _shared: &mut SharedMemory<'_>) -> bool {
        false
    }

    /// Stops using the context as the base of others until it is acknowledged again (RFC 4164, section 3.3.3.4).
    fn withdraw_as_base(&mut self) {}

    /// State of the context, for monitoring.
    fn context_state(&self, cid: Cid) -> ContextState;
}
