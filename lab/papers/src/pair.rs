//! Two ends of a lossless link: every packet is carried and compared, and feedback is returned at once.

use thinair_coap_2015::Coap2015Endpoint;
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Arrival, Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory,
    DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Endpoint,
    FormatPolicy, Instant, Integrity, Mode, ProfileId, ProfileSet, Refresh,
};
use thinair_simulation::emulator::ChannelEnd;

use crate::paper::PaperError;

/// Room for headers that grow: an IR packet is larger than the headers it encodes.
const MARGIN: usize = 256;
/// Number of blocks for extension headers: these packets have none.
const BLOCKS: usize = 4;
const MAX_CID: u16 = 15;

/// Configuration of a channel, equal in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairSettings {
    pub(crate) profiles: ProfileSet,
    pub(crate) integrity: Integrity,
    pub(crate) format: FormatPolicy,
    pub(crate) mode: Mode,
    /// Refresh in every mode; `None`: defaults.
    pub(crate) refresh: Option<Refresh>,
    /// CoAP uses profile 0x0080.
    pub(crate) is_coap_2015: bool,
    pub(crate) seed: u64,
}

/// One end of a channel, which may have profile 0x0080.
#[derive(Debug)]
pub(crate) enum PairCodec {
    Rohc(Box<Endpoint<'static>>),
    Coap2015(Box<Coap2015Endpoint<'static>>),
}

impl PairCodec {
    /// Creates an end with profile 0x0080.
    pub(crate) fn coap_2015(
        compressor: CompressorConfig,
        decompressor: DecompressorConfig,
        blocks: usize,
    ) -> Self {
        let (out, back) = (compressor.channel, decompressor.channel);
        let compressor = (compressor, CompressorMemory::owned(out.sizes().blocks(blocks)));
        let decompressor = (decompressor, DecompressorMemory::owned(back.sizes().blocks(blocks)));
        Self::Coap2015(Box::new(Coap2015Endpoint::new(compressor, decompressor, blocks)))
    }

    /// Compresses a packet. True with it if its profile is 0x0080.
    pub(crate) fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<(Compressed, bool), CompressError> {
        Ok(match self {
            Self::Rohc(end) => (end.send(now, packet, out)?, false),
            Self::Coap2015(end) => {
                let sent = end.send(now, packet, out)?;
                (sent.compressed, sent.is_coap)
            }
        })
    }
}

impl ChannelEnd for PairCodec {
    fn send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> Result<Compressed, CompressError> {
        self.compress(now, packet, out).map(|(compressed, _)| compressed)
    }

    fn receive(
        &mut self,
        arrival: Arrival,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Decompressed, DecompressError> {
        match self {
            Self::Rohc(end) => end.receive(arrival, packet, out),
            Self::Coap2015(end) => end.receive(arrival, packet, out),
        }
    }

    fn poll_feedback(&mut self, out: &mut [u8]) -> Option<usize> {
        match self {
            Self::Rohc(end) => end.poll_feedback(out),
            Self::Coap2015(end) => end.poll_feedback(out),
        }
    }
}

impl PairSettings {
    /// All profiles of RFC 3095 and, if given, a profile for CoAP: defaults, checksums carried.
    pub(crate) fn new(coap: Option<ProfileId>, seed: u64) -> Result<Self, PaperError> {
        let v1 = ProfileSet::v1();
        Ok(Self {
            profiles: coap.map_or(Ok(v1), |coap| v1.with(coap))?,
            integrity: Integrity::None,
            format: FormatPolicy::Auto,
            mode: Mode::Unidirectional,
            refresh: None,
            is_coap_2015: false,
            seed,
        })
    }

    /// All profiles of RFC 3095, and 0x0080 for CoAP.
    pub(crate) fn coap_2015(seed: u64) -> Result<Self, PaperError> {
        Ok(Self { is_coap_2015: true, ..Self::new(None, seed)? })
    }

    /// O-mode without periodic refreshes.
    pub(crate) fn optimistic(self) -> Self {
        Self { mode: Mode::Optimistic, refresh: Some(Refresh::Off), ..self }
    }

    /// Over a carrier with a link layer CRC, so that UDP checksums are left out.
    pub(crate) fn elided(self) -> Self {
        Self { integrity: Integrity::Crc32, ..self }
    }

    pub(crate) fn format(self, format: FormatPolicy) -> Self {
        Self { format, ..self }
    }

    /// Configuration of one end.
    fn configs(&self) -> Result<(CompressorConfig, DecompressorConfig), PaperError> {
        let channel =
            Channel::new(CidSpace::Small, MAX_CID, self.profiles)?.with_integrity_below(self.integrity);
        let mut compressor = CompressorConfig::new(channel);
        compressor.coap.format = self.format;
        compressor.seed = self.seed;
        if let Some(refresh) = self.refresh {
            (compressor.refresh, compressor.refresh_two_way) = (refresh, refresh);
        }
        Ok((compressor, DecompressorConfig { mode: self.mode, ..DecompressorConfig::new(channel) }))
    }

    /// One end of the channel, with the profiles of the library.
    pub(crate) fn endpoint(&self) -> Result<Endpoint<'static>, PaperError> {
        let (compressor, decompressor) = self.configs()?;
        let channel = compressor.channel;
        Ok(Endpoint::new(
            Compressor::new(compressor, CompressorMemory::owned(channel.sizes().blocks(BLOCKS))),
            Decompressor::new(decompressor, DecompressorMemory::owned(channel.sizes().blocks(BLOCKS))),
        )
        .with_exchanges(Exchanges::for_channel(&channel), Exchanges::for_channel(&channel)))
    }

    /// One end of the channel.
    pub(crate) fn end(&self) -> Result<PairCodec, PaperError> {
        if self.is_coap_2015 {
            let (compressor, decompressor) = self.configs()?;
            return Ok(PairCodec::coap_2015(compressor, decompressor, BLOCKS));
        }
        Ok(PairCodec::Rohc(Box::new(self.endpoint()?)))
    }
}

/// End that sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairEnd {
    Client,
    Server,
}

/// Two ends of a link.
#[derive(Debug)]
pub(crate) struct EndPair {
    client: PairCodec,
    server: PairCodec,
    sent: Vec<u8>,
    back: Vec<u8>,
}

/// Outcome of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    pub(crate) compressed: Compressed,
    /// Its profile is 0x0080.
    pub(crate) is_coap_2015: bool,
    /// The packet was restored exactly.
    pub(crate) is_exact: bool,
    /// Octets of feedback that it caused.
    pub(crate) feedback: usize,
}

impl EndPair {
    pub(crate) fn new(settings: &PairSettings) -> Result<Self, PaperError> {
        Ok(Self { client: settings.end()?, server: settings.end()?, sent: Vec::new(), back: Vec::new() })
    }

    /// Carries a packet to the other end, and its feedback back.
    pub(crate) fn carry(&mut self, now: Instant, from: PairEnd, packet: &[u8]) -> Result<Trip, PaperError> {
        self.send(now, from, packet, PairFate::Arrives)
    }

    /// Compresses a packet that is lost.
    pub(crate) fn lose(&mut self, now: Instant, from: PairEnd, packet: &[u8]) -> Result<Trip, PaperError> {
        self.send(now, from, packet, PairFate::IsLost)
    }

    fn send(
        &mut self,
        now: Instant,
        from: PairEnd,
        packet: &[u8],
        fate: PairFate,
    ) -> Result<Trip, PaperError> {
        let room = 2 * packet.len() + MARGIN;
        if self.sent.len() < room {
            self.sent.resize(room, 0);
            self.back.resize(room, 0);
        }
        let (near, far) = match from {
            PairEnd::Client => (&mut self.client, &mut self.server),
            PairEnd::Server => (&mut self.server, &mut self.client),
        };
        // Feedback never waits here, so none precedes the packet.
        let (compressed, is_coap_2015) = near.compress(now, packet, &mut self.sent)?;
        let len = compressed.len;
        if fate == PairFate::IsLost {
            return Ok(Trip { compressed, is_coap_2015, is_exact: true, feedback: 0 });
        }
        let received = far.receive(now.into(), &self.sent[..len], &mut self.back);
        let is_exact = received.is_ok_and(|done| self.back[..done.len] == *packet);
        let mut feedback = 0;
        while let Some(len) = far.poll_feedback(&mut self.back) {
            feedback += len;
            // No packet follows the feedback, so nothing is delivered.
            let _ = near.receive(now.into(), &self.back[..len], &mut self.sent);
        }
        Ok(Trip { compressed, is_coap_2015, is_exact, feedback })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairFate {
    Arrives,
    IsLost,
}
