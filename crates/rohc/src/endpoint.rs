//! One end of a link: the compressor of the outgoing channel and the decompressor of the incoming one, with
//! feedback routed between them (FEEDBACK_FOR, RFC 5795, section 5.1.2; RFC 3759).

use thinair_wire::time::Instant;

use crate::arrival::Arrival;
use crate::compressor::{self, CompressError, Compressed, Compressor};
use crate::decompressor::{self, DecompressError, Decompressed, Decompressor};
use crate::exchange::Exchanges;
use crate::feedback::MAX_ELEMENT;
use crate::packet;

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
    /// Messages that went out, and that came in, for responses to refer to.
    sent: Exchanges<'m>,
    received: Exchanges<'m>,
}

impl<'m> Endpoint<'m> {
    /// Pairs two channels of opposite directions. Without [exchanges](Self::with_exchanges) no packet of one refers
    /// to messages of the other.
    pub fn new(compressor: Compressor<'m>, decompressor: Decompressor<'m>) -> Self {
        Self { compressor, decompressor, sent: Exchanges::none(), received: Exchanges::none() }
    }

    /// The pair with memory for the last messages that went out and that came in: CoAP responses are then said in
    /// terms of their requests. **Both ends must have room for equally many**, as with [`Exchanges::for_channel`].
    pub fn with_exchanges(self, sent: Exchanges<'m>, received: Exchanges<'m>) -> Self {
        Self { sent, received, ..self }
    }

    /// Begins a group of packets: see [`Compressor::begin_group`].
    pub fn begin_group(&mut self) {
        self.compressor.begin_group();
    }

    /// Compresses a packet to the start of `out`, behind the feedback that waits (at most one element). Returns
    /// what became of it, and the octets in all.
    pub fn send(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<(Compressed, usize), CompressError> {
        let have = out.len();
        let mut element = [0; MAX_ELEMENT];
        let feedback = self.decompressor.poll_feedback(&mut element).unwrap_or(0);
        let (front, room) =
            out.split_at_mut_checked(feedback).ok_or(CompressError::OutputTooSmall { have })?;
        front.copy_from_slice(element.get(..feedback).unwrap_or_default());
        let linked = compressor::Linked { sent: &mut self.sent, received: &self.received };
        let compressed = self.compressor.compress_linked(now, packet, room, Some(linked))?;
        Ok((compressed, feedback + compressed.len))
    }

    /// Takes a ROHC packet: feedback in front goes to the compressor, the rest is decompressed to `out`.
    ///
    /// Feedback that is damaged or makes no sense is ignored, as RFC 3095, section 5.7.6.3, asks.
    ///
    /// `arrival` is the time, or an [`Arrival`] where the carrier counts what it loses.
    pub fn receive(
        &mut self,
        arrival: impl Into<Arrival>,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        let arrival = arrival.into();
        if let Ok(parts) = packet::parts(packet) {
            for element in parts.feedback {
                let _ = self.compressor.receive_feedback(arrival.now, element);
            }
        }
        let linked = decompressor::Linked { sent: &self.sent, received: &mut self.received };
        self.decompressor.decompress_linked(arrival, packet, out, Some(linked))
    }

    /// Takes the messages that the other end has received for those that this end has sent.
    ///
    /// For an observer who decompresses both directions of a link without being an end of it: **call it on the sender's
    /// endpoint after each packet that `other` has received.**
    pub fn observe(&mut self, other: &Self) {
        self.sent.copy_from(&other.received);
    }

    /// Writes one waiting feedback element as a ROHC packet of its own; `None` if none waits.
    pub fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        self.decompressor.poll_feedback(out)
    }
}
