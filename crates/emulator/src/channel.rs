//! ROHC on the link: an endpoint at each side, with feedback in the opposite direction.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use thinair_link::Side;
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::storage::Slots;
use thinair_rohc::{
    Arrival, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory, DecompressError,
    Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint,
};
use thinair_wire::time::Instant;

use super::totals::FeedbackTotals;

/// Octets of a buffer that any packet fits into, compressed (an IR packet adds a few octets to each header at most) or
/// decompressed (no IP packet exceeds 65,575 octets).
pub const ROOM: usize = 132_000;

/// Largest feedback element, in octets.
const FEEDBACK_ROOM: usize = 512;

/// Compression of both directions.
#[derive(Clone, Debug)]
pub struct RohcChannel {
    /// Compressor of each side.
    pub compressor: CompressorConfig,
    /// Decompressor of each side, with the mode that it asks for.
    pub decompressor: DecompressorConfig,
    /// Bases of profile 0x0181 that both sides have.
    pub bases: Vec<Base>,
    /// Longest time that feedback waits for a packet to piggyback on before it is sent alone. Zero: it does not wait.
    pub feedback_wait: Duration,
    /// Creates each end; `None`: an [`Endpoint`].
    pub ends: Option<NewEnd>,
}

/// Creates an end of a channel with memory for `blocks` extension headers in each direction.
pub type NewEnd = fn(CompressorConfig, DecompressorConfig, usize) -> Box<dyn ChannelEnd>;

/// One end of a channel: an [`Endpoint`], or something around one.
pub trait ChannelEnd: Debug + Send {
    /// [`Endpoint::send`].
    ///
    /// # Errors
    /// As there.
    fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError>;

    /// [`Endpoint::receive`].
    ///
    /// # Errors
    /// As there.
    fn receive(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError>;

    /// [`Endpoint::poll_feedback`].
    fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize>;
}

impl ChannelEnd for Endpoint<'static> {
    fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        Endpoint::send(self, now, packet, out)
    }

    fn receive(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        Endpoint::receive(self, arrival, packet, out)
    }

    fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        Endpoint::poll_feedback(self, out)
    }
}

/// One side: an endpoint, and the feedback that it has to send.
#[derive(Debug)]
pub struct Terminal {
    endpoint: Box<dyn ChannelEnd>,
    waiting: VecDeque<Vec<u8>>,
    /// Time at which waiting feedback is sent alone.
    due: Option<Instant>,
    wait: Duration,
    /// Latest time given to the endpoint: packets that were polled late have arrived before others entered.
    now: Instant,
}

impl Terminal {
    /// Creates a side with memory for `blocks` extension headers in each direction.
    pub fn new(channel: &RohcChannel, side: Side, blocks: usize) -> Self {
        let shape = channel.compressor.channel;
        // With one seed for both, the two directions would count alike, and a mix-up of them could go unnoticed.
        let seed = channel.compressor.seed.wrapping_add(side as u64);
        let compressor = CompressorConfig { seed, ..channel.compressor };
        let bases = || Slots::owned(channel.bases.clone());
        let endpoint = || {
            Endpoint::new(
                Compressor::new(compressor, CompressorMemory::owned(shape.sizes().blocks(blocks)))
                    .with_bases(bases()),
                Decompressor::new(
                    channel.decompressor,
                    DecompressorMemory::owned(shape.sizes().blocks(blocks)),
                )
                .with_bases(bases()),
            )
            .with_exchanges(Exchanges::for_channel(&shape), Exchanges::for_channel(&shape))
        };
        let endpoint: Box<dyn ChannelEnd> = match channel.ends {
            Some(new) => new(compressor, channel.decompressor, blocks),
            None => Box::new(endpoint()),
        };
        let wait = channel.feedback_wait;
        Self { endpoint, waiting: VecDeque::new(), due: None, wait, now: Instant::ZERO }
    }

    /// Compresses a packet and puts all waiting feedback in front of it. `room` is a scratch buffer of [`ROOM`] octets.
    pub fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        room: &mut [u8],
        feedback: &mut FeedbackTotals,
    ) -> Result<(Compressed, Vec<u8>), CompressError> {
        self.now = self.now.max(now);
        let compressed = self.endpoint.send(self.now, packet, room)?;
        let len = compressed.len;
        let mut octets = Vec::new();
        feedback.in_front += self.waiting.len() as u64;
        self.take_waiting(&mut octets);
        octets.extend_from_slice(room.get(..len).unwrap_or_default());
        Ok((compressed, octets))
    }

    /// Decompresses a ROHC packet that arrives at the end of the link into the IP packet.
    pub fn decompress(
        &mut self,
        arrival: impl Into<Arrival>,
        rohc: &[u8],
        room: &mut [u8],
        feedback: &mut FeedbackTotals,
    ) -> Result<(Decompressed, Vec<u8>), DecompressError> {
        let Arrival { now, lost } = arrival.into();
        self.now = self.now.max(now);
        let result = self.endpoint.receive(Arrival { now: self.now, lost }, rohc, room);
        let result = result.map(|done| (done, room.get(..done.len).unwrap_or_default().to_vec()));
        let mut element = [0; FEEDBACK_ROOM];
        while let Some(len) = self.endpoint.poll_feedback(&mut element) {
            feedback.elements += 1;
            feedback.octets += len as u64;
            self.waiting.push_back(element.get(..len).unwrap_or_default().to_vec());
            self.due.get_or_insert(now + self.wait);
        }
        result
    }

    /// Returns the time at which feedback is sent alone, unless a packet carries it earlier.
    pub fn feedback_at(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the feedback that is due, as a packet of its own.
    pub fn poll_feedback(&mut self, now: Instant, feedback: &mut FeedbackTotals) -> Option<Vec<u8>> {
        self.due.filter(|due| *due <= now)?;
        let mut octets = Vec::new();
        self.take_waiting(&mut octets);
        feedback.alone += 1;
        Some(octets)
    }

    /// Moves waiting feedback to `octets`: elements precede a ROHC packet, or form a packet alone. RFC 5795, section 5.2.
    fn take_waiting(&mut self, octets: &mut Vec<u8>) {
        self.due = None;
        octets.extend(self.waiting.drain(..).flatten());
    }
}
