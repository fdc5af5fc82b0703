//! Interface of a profile at the decompressor.

use thinair_wire::coder::Traced;

use super::{Decompressor, DecompressorConfig, Failure, Problem, SharedMemory, Threshold, Verified};
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
    /// A packet of the CID has failed, or was held back, before.
    pub(crate) has_failed: bool,
    /// Messages of both directions, at an endpoint.
    pub(crate) linked: Option<Linked<'a, 'm>>,
}

/// A profile, or the profiles of one RFC, at the decompressor. Its context implements it.
pub(crate) trait ReceiverContext {
    /// Creates a context for a CID without one.
    fn new(profile: ProfileId) -> Self
    where
        Self: Sized;

    /// Its profile.
    fn profile(&self) -> ProfileId;

    /// Decompresses an IR or IR-CR packet of `profile`. Once it is verified, the context of the CID continues, or is replaced.
    fn initialize<'m>(
        decompressor: &mut Decompressor<'m>,
        profile: ProfileId,
        packet: IncomingPacket<'_, '_, 'm>,
        out: &mut [u8],
    ) -> Result<Verified, Problem>
    where
        Self: Sized;

    /// Decompresses an IR-DYN packet of `profile`.
    fn decompress_ir_dyn(
        &mut self,
        _profile: ProfileId,
        _packet: IncomingPacket<'_, '_, '_>,
        _config: &DecompressorConfig,
        _shared: &mut SharedMemory<'_>,
        _out: &mut [u8],
    ) -> Result<Verified, Failure> {
        Err(Failure::Malformed)
    }

    /// Decompresses any other packet.
    fn decompress<'m>(
        &mut self,
        packet: IncomingPacket<'_, '_, 'm>,
        config: &DecompressorConfig,
        shared: &mut SharedMemory<'m>,
        out: &mut [u8],
    ) -> Result<Verified, Failure>;

    /// Returns its memory to the channel.
    fn release(&mut self, _shared: &mut SharedMemory<'_>) {}

    /// Passes the fields of a packet to `on_field`, as far as the context allows, and returns its format.
    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        config: &DecompressorConfig,
        shared: &SharedMemory<'_>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format>
    where
        Self: Sized;

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
