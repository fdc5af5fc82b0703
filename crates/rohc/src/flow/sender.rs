//! The life of a flow at the compressor: it gets a context, which may be that of another flow, its packets are compressed and charged, and
//! what becomes of a packet that its context cannot compress. Profiles decide which flow a packet belongs to.

use thinair_wire::time::Instant;

use crate::cid::Cid;
use crate::compressor::{
    CompressError, Compressed, Compressor, CompressorConfig, OutgoingPacket, Refused, SenderContext,
    SharedMemory,
};
use crate::profile::{Held, SenderPlace};

/// A flow that may take a context: its hash, and the index of its two hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    hash: u32,
    pair: u8,
}

impl Newcomer {
    /// The flow with another hash.
    pub(crate) fn with_hash(self, hash: u32) -> Self {
        Self { hash, ..self }
    }
}

/// Outcome of compressing a packet with the context of its flow.
pub(crate) enum Attempt {
    /// It was compressed, or `out` is too short.
    Done(Result<Compressed, CompressError>),
    /// The flow uses another profile for now: its context was not worth its octets.
    Rests,
    /// The context cannot compress this packet.
    Refused,
}

impl<'m> Compressor<'m> {
    /// Admits a flow without a context, by its hash; `None` if it uses another profile for now, since the decompressor has rejected it, or
    /// other flows need the contexts more.
    pub(crate) fn admit(&mut self, now: Instant, hash: u32, packet: &[u8]) -> Option<Newcomer> {
        if self.flows.is_rejected(hash, now) {
            return None;
        }
        let pair = self.flows.pair(packet);
        self.flows.admits(hash, pair).then_some(Newcomer { hash, pair })
    }

    /// Returns the context that [`begin`](Self::begin) would give to a flow.
    pub(crate) fn next_context(&self, newcomer: Newcomer) -> Option<Cid> {
        self.flows.next(newcomer.pair)
    }

    /// Gives a context to a flow: that of the flow `over`, or the next one. Its memory returns to the channel; as the decompressor keeps its
    /// own until another flow uses the CID, the packet then has to be sent with it.
    pub(crate) fn begin(
        &mut self,
        packet: &mut OutgoingPacket<'_, '_, 'm>,
        newcomer: Newcomer,
        over: Option<Cid>,
    ) -> Option<Cid> {
        let Newcomer { hash, pair } = newcomer;
        let cid = match over {
            Some(over) => self.flows.take(over, hash, pair)?,
            None => self.flows.claim(hash, pair)?,
        };
        if self.release(cid) {
            packet.owed = Some(cid);
        }
        Some(cid)
    }

    /// Compresses a packet with the context of its flow.
    #[inline(always)]
    pub(crate) fn compress_with<C: Held<SenderPlace> + SenderContext>(
        &mut self,
        cid: Cid,
        out: &mut [u8],
        compress: impl FnOnce(
            &mut C,
            &CompressorConfig,
            &mut SharedMemory<'m>,
            &mut [u8],
        ) -> Result<Compressed, Refused>,
    ) -> Attempt {
        self.flows.touch(cid);
        if self.flows.rests(cid) {
            return Attempt::Rests;
        }
        let Some(context) = self.flows.context_mut::<C>(cid) else { return Attempt::Refused };
        match compress(context, &self.config, &mut self.shared, out) {
            Ok(compressed) => {
                if context.is_charged() {
                    self.note_cost(&compressed);
                }
                Attempt::Done(Ok(compressed))
            }
            Err(Refused::NoRoom) => Attempt::Done(Err(CompressError::OutputTooSmall { have: out.len() })),
            Err(Refused::ByThisPacket) => Attempt::Refused,
        }
    }
}

impl Attempt {
    /// The outcome; `None` if another profile has to compress the packet.
    pub(crate) fn done(self) -> Option<Result<Compressed, CompressError>> {
        match self {
            Self::Done(done) => Some(done),
            Self::Rests | Self::Refused => None,
        }
    }
}
