//! Two ends of a lossless link: every packet is carried and compared, and feedback is returned at once.

use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Instant, Integrity, Mode, ProfileId, ProfileSet,
    Refresh,
};

use thinair_rohc::FormatPolicy;

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
    pub(crate) seed: u64,
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
            seed,
        })
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

    /// One end of the channel.
    pub(crate) fn endpoint(&self) -> Result<Endpoint<'static>, PaperError> {
        let channel =
            Channel::new(CidSpace::Small, MAX_CID, self.profiles)?.with_integrity_below(self.integrity);
        let mut compressor = CompressorConfig::new(channel);
        compressor.coap.format = self.format;
        compressor.seed = self.seed;
        if let Some(refresh) = self.refresh {
            (compressor.refresh, compressor.refresh_two_way) = (refresh, refresh);
        }
        let decompressor = DecompressorConfig { mode: self.mode, ..DecompressorConfig::new(channel) };
        Ok(Endpoint::new(
            Compressor::new(compressor, CompressorMemory::owned(&channel, BLOCKS)),
            Decompressor::new(decompressor, DecompressorMemory::owned(&channel, BLOCKS)),
        )
        .with_exchanges(Exchanges::for_channel(&channel), Exchanges::for_channel(&channel)))
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
    client: Endpoint<'static>,
    server: Endpoint<'static>,
    sent: Vec<u8>,
    back: Vec<u8>,
}

/// Outcome of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    pub(crate) compressed: Compressed,
    /// The packet was restored exactly.
    pub(crate) is_exact: bool,
    /// Octets of feedback that it caused.
    pub(crate) feedback: usize,
}

impl EndPair {
    pub(crate) fn new(settings: &PairSettings) -> Result<Self, PaperError> {
        Ok(Self {
            client: settings.endpoint()?,
            server: settings.endpoint()?,
            sent: Vec::new(),
            back: Vec::new(),
        })
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
        let compressed = near.send(now, packet, &mut self.sent)?;
        let len = compressed.len;
        if fate == PairFate::IsLost {
            return Ok(Trip { compressed, is_exact: true, feedback: 0 });
        }
        let received = far.receive(now, &self.sent[..len], &mut self.back);
        let is_exact = received.is_ok_and(|done| self.back[..done.len] == *packet);
        let mut feedback = 0;
        while let Some(len) = far.poll_feedback(&mut self.back) {
            feedback += len;
            // No packet follows the feedback, so nothing is delivered.
            let _ = near.receive(now, &self.back[..len], &mut self.sent);
        }
        Ok(Trip { compressed, is_exact, feedback })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairFate {
    Arrives,
    IsLost,
}
