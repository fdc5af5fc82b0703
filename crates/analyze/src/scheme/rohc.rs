//! ROHC with a set of profiles in one mode: an endpoint at each side.

use thinair_rohc::exchange::Exchanges;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::storage::Slots;
use thinair_rohc::{
    Channel, Cid, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Mode,
};

use super::{CompressedPacket, FormatLabel, Rejection, SchemeEnds};
use crate::settings::Settings;
use crate::sides::CaptureSide;

/// Blocks for extension headers in each compressor and decompressor: enough for 64 flows with as many as a
/// context holds.
pub(crate) const BLOCKS: usize = 256;

/// The endpoints at both sides.
#[derive(Debug)]
pub(super) struct Rohc {
    ends: [Endpoint<'static>; 2],
    cids: CidSpace,
}

impl Rohc {
    pub(super) fn new(channel: Channel, mode: Mode, bases: &[Base], settings: &Settings) -> Self {
        let channel = channel.with_integrity_below(settings.channel.integrity_below());
        let compressor = CompressorConfig { channel, ..settings.compressor };
        let decompressor = DecompressorConfig { mode, ..settings.decompressor };
        let ends = [(); 2].map(|()| endpoint(compressor, decompressor, bases));
        Self { ends, cids: channel.cids() }
    }

    /// Octets of a CID (RFC 5795, sections 5.2.1.2 and 5.2.1.3): none for small CID 0, two for large CIDs from 128 on.
    fn cid_len(&self, cid: Cid) -> usize {
        match (self.cids, cid.value()) {
            (CidSpace::Small, 0) => 0,
            (CidSpace::Small, _) | (CidSpace::Large, 0..=127) => 1,
            (CidSpace::Large, _) => 2,
        }
    }

    fn end(&mut self, side: CaptureSide) -> &mut Endpoint<'static> {
        &mut self.ends[side.index()]
    }
}

impl SchemeEnds for Rohc {
    fn compress(
        &mut self,
        now: Instant,
        from: CaptureSide,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<CompressedPacket>, Rejection> {
        // No feedback is pending for piggybacking: it is polled after each packet.
        let done = self.end(from).send(now, packet, out);
        let done = done.map_err(|error| Rejection::new("not_compressed", error))?;
        Ok(Some(CompressedPacket {
            format: FormatLabel::Format(done.format),
            profile: Some(done.profile),
            header_in: done.header_in,
            header_out: done.header_out,
            len: done.len,
            cid_len: self.cid_len(done.cid),
            refresh: done.refresh,
        }))
    }

    fn decompress(
        &mut self,
        now: Instant,
        from: CaptureSide,
        sent: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Rejection> {
        let done = self.end(from.other()).receive(now, sent, out);
        done.map(|done| done.len).map_err(|error| Rejection::new(error.name(), error))
    }

    fn poll_feedback(&mut self, from: CaptureSide, out: &mut [u8]) -> Option<usize> {
        self.end(from.other()).poll_feedback(out)
    }

    fn handle_feedback(&mut self, now: Instant, from: CaptureSide, feedback: &[u8]) {
        // No packet follows the feedback, so nothing is delivered.
        let _ = self.end(from).receive(now, feedback, &mut []);
    }
}

/// Returns an end of a link with the settings of an analysis. Both directions use the channel of
/// `compressor`.
pub fn endpoint(
    compressor: CompressorConfig,
    decompressor: DecompressorConfig,
    bases: &[Base],
) -> Endpoint<'static> {
    let channel = compressor.channel;
    let bases = || Slots::owned(bases.to_vec());
    Endpoint::new(
        Compressor::new(compressor, CompressorMemory::owned(channel.sizes().blocks(BLOCKS)))
            .with_bases(bases()),
        Decompressor::new(
            DecompressorConfig { channel, ..decompressor },
            DecompressorMemory::owned(channel.sizes().blocks(BLOCKS)),
        )
        .with_bases(bases()),
    )
    .with_exchanges(Exchanges::for_channel(&channel), Exchanges::for_channel(&channel))
}
