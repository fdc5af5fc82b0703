//! Interface of a profile at the decompressor.

use super::{DecompressorConfig, Failure, Threshold};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::exchange::Linked;
use crate::feedback::Feedback;
use crate::flow::arrival::Moment;
use crate::flow::health::{Health, Verdict};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;

/// A packet to be decompressed.
pub(crate) struct IncomingPacket<'a, 'p, 'm> {
    pub(crate) at: Moment,
    pub(crate) header: &'a PacketHeader<'p>,
    pub(crate) config: &'a DecompressorConfig,
    /// A packet of the CID has failed, or was held back, before.
    pub(crate) has_failed: bool,
    /// Messages of both directions, at an endpoint.
    pub(crate) linked: Option<Linked<'a, 'm>>,
}

/// State of a context, and the feedback on its packets. A profile decompresses them as a [`Receiver`](crate::flow::receiver::Receiver).
pub(crate) trait ReceiverContext {
    /// Its profile.
    fn profile(&self) -> ProfileId;

    /// State of the context, for monitoring.
    fn context_state(&self, cid: Cid, config: &DecompressorConfig) -> ContextState;

    /// True if feedback is sent regardless of the configuration.
    fn is_two_way(&self) -> bool {
        false
    }

    /// Counts a verified packet. Returns true if it has to be acknowledged in a flow for which the mode `wanted` is configured.
    fn note_success(&mut self, first: u8, format: Format, wanted: Mode) -> bool;

    /// Its health; `None` if there is nothing to be damaged.
    fn health_mut(&mut self) -> Option<&mut Health>;

    /// Judges a failed packet, whose reason is `failure` if the profile has reported one.
    fn judge(&mut self, at: Moment, first: u8, failure: Option<&Failure>, policy: &NackPolicy<'_>)
    -> Verdict;

    /// Completes feedback on a packet of that format, or on a failed one.
    fn complete(
        &mut self,
        element: Feedback,
        format: Option<Format>,
        config: &DecompressorConfig,
    ) -> Feedback;
}

/// Conditions of negative feedback.
pub(crate) struct NackPolicy<'c> {
    pub(crate) config: &'c DecompressorConfig,
    /// True if feedback is sent.
    pub(crate) is_two_way: bool,
    /// Packets of the CID that have failed since the last negative feedback.
    pub(crate) failures_since_nack: u8,
}

impl NackPolicy<'_> {
    /// `k_1` of `n_1` for the mode.
    pub(crate) fn nack(&self) -> Threshold {
        if self.is_two_way { self.config.nack } else { self.config.one_way }
    }

    /// `k_2` where feedback is sent: without it, the static part comes no sooner if it is dropped.
    pub(crate) fn static_nack(&self) -> Option<u8> {
        self.is_two_way.then_some(self.config.static_nack.k)
    }
}
