//! One end of a link: the compressor of the outgoing channel and the decompressor of the incoming one, with
//! feedback routed between them (FEEDBACK_FOR, RFC 5795, section 5.1.2; RFC 3759).

use thinair_wire::time::Instant;

use crate::compressor::{CompressError, Compressed, Compressor, CompressorConfig};
use crate::decompressor::{DecompressError, Decompressed, Decompressor, DecompressorConfig};
#[cfg(feature = "coap")]
use crate::exchange::{Exchanges, Linked};
use crate::feedback::MAX_ELEMENT;
use crate::flow::arrival::Arrival;
use crate::packet;
#[cfg(feature = "alloc")]
use crate::storage::{CompressorMemory, DecompressorMemory};
use crate::storage::{Rooms, Storage};

/// Compressor and decompressor of one side.
///
/// **Every packet that arrives goes to [`receive`](Self::receive); every packet that is sent comes from
/// [`send`](Self::send), which carries waiting feedback in front, or from
/// [`poll_feedback`](Self::poll_feedback) when there is nothing else to send.**
#[derive(Debug)]
pub struct Endpoint<'m> {
    /// The compressor of the outgoing channel.
    pub compressor: Compressor<'m>,
    /// The decompressor of the incoming channel.
    pub decompressor: Decompressor<'m>,
    /// Messages sent and received, for responses to refer to.
    #[cfg(feature = "coap")]
    sent: Exchanges<'m>,
    #[cfg(feature = "coap")]
    received: Exchanges<'m>,
}

impl<'m> Endpoint<'m> {
    /// Pairs two channels of opposite directions. Without [exchanges](Self::with_exchanges) no packet of one refers to
    /// messages of the other.
    pub fn new(compressor: Compressor<'m>, decompressor: Decompressor<'m>) -> Self {
        Self {
            compressor,
            decompressor,
            #[cfg(feature = "coap")]
            sent: Exchanges::none(),
            #[cfg(feature = "coap")]
            received: Exchanges::none(),
        }
    }

    /// Creates both ends of a device in memory whose sizes are constants, without [exchanges](Self::with_exchanges).
    pub fn in_storage<const C: usize, R: Rooms>(
        compressor: CompressorConfig,
        decompressor: DecompressorConfig,
        storage: &'m mut Storage<C, R>,
    ) -> Self {
        Self::new(
            Compressor::new(compressor, &mut storage.compressor),
            Decompressor::new(decompressor, &mut storage.decompressor),
        )
    }

    /// Creates both ends of a device in memory of the [default sizes](crate::Channel::sizes) of their channels.
    #[cfg(feature = "alloc")]
    pub fn owned(compressor: CompressorConfig, decompressor: DecompressorConfig) -> Self {
        let (out, back) = (compressor.channel, decompressor.channel);
        let endpoint = Self::new(
            Compressor::new(compressor, CompressorMemory::owned(&out)),
            Decompressor::new(decompressor, DecompressorMemory::owned(&back)),
        );
        #[cfg(feature = "coap")]
        let endpoint = endpoint.with_exchanges(Exchanges::for_channel(&out), Exchanges::for_channel(&back));
        endpoint
    }

    /// Adds memory for the last messages sent and received, so that CoAP responses are compressed relative to their
    /// requests. **Both ends must have equally many places**, as with [`Exchanges::for_channel`].
    #[cfg(feature = "coap")]
    pub fn with_exchanges(self, sent: Exchanges<'m>, received: Exchanges<'m>) -> Self {
        Self { sent, received, ..self }
    }

    /// Begins a group of packets: see [`Compressor::begin_group`].
    pub fn begin_group(&mut self) {
        self.compressor.begin_group();
    }

    /// Compresses a packet to the start of `out`, behind the feedback that waits (at most one element), which counts in
    /// [`len`](Compressed::len). After an error it still waits.
    pub fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        let have = out.len();
        let mut element = [0; MAX_ELEMENT];
        let Some(feedback) = self.decompressor.next_feedback(&mut element) else {
            return self.compress(now, packet, out);
        };
        let (front, room) =
            out.split_at_mut_checked(feedback).ok_or(CompressError::OutputTooSmall { have })?;
        front.copy_from_slice(element.get(..feedback).unwrap_or_default());
        let compressed = self.compress(now, packet, room)?;
        self.decompressor.drop_feedback();
        Ok(Compressed { len: feedback + compressed.len, ..compressed })
    }

    /// Compresses a packet to the start of `out`, without feedback in front: for a carrier that has a place of its own for
    /// feedback, as the control PDUs of PDCP.
    pub fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        #[cfg(feature = "coap")]
        let linked = Some(Linked { sent: &mut self.sent, received: &mut self.received });
        #[cfg(not(feature = "coap"))]
        let linked = None;
        self.compressor.compress_linked(now, packet, out, linked)
    }

    /// Receives a ROHC packet: passes feedback in front of it to the compressor, and decompresses the rest to `out`.
    ///
    /// Damaged or invalid feedback is ignored, as RFC 3095, section 5.7.6.3, requires.
    ///
    /// `arrival` is the time, or an [`Arrival`] where the carrier counts lost packets.
    pub fn receive(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        let arrival = arrival.into();
        // Most packets begin with neither padding nor feedback.
        if packet.first().is_some_and(|first| *first >= packet::PADDING)
            && let Ok(parts) = packet::parts(packet)
        {
            for element in parts.feedback {
                let _ = self.compressor.receive_feedback(arrival.now, element);
            }
        }
        self.decompress(arrival, packet, out)
    }

    /// Decompresses a packet to `out`, without passing feedback in front of it to the compressor: for a carrier that has a place of its
    /// own for feedback.
    #[inline]
    pub fn decompress(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        #[cfg(feature = "coap")]
        let linked = Some(Linked { sent: &mut self.sent, received: &mut self.received });
        #[cfg(not(feature = "coap"))]
        let linked = None;
        self.decompressor.decompress_linked(arrival.into(), packet, out, linked)
    }

    /// Uses the messages that the other end has received as those that this end has sent.
    ///
    /// For an observer that decompresses both directions of a link without being an end of it: **call it on the
    /// sender's endpoint after each packet that `other` has received.**
    #[cfg(feature = "coap")]
    pub fn observe(&mut self, other: &Self) {
        self.sent.copy_from(&other.received);
    }

    /// Writes one waiting feedback element as a ROHC packet of its own; `None` if none waits.
    pub fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        self.decompressor.poll_feedback(out)
    }
}
