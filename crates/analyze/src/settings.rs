//! What an analysis is told at start.

use thinair_rohc::{Channel, CompressorConfig, DecompressorConfig, Mode};

/// What an analysis is told at start.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The ROHC channel, the same in both directions.
    pub channel: Channel,
    /// The modes to be compared, each a scheme of its own.
    pub modes: Vec<Mode>,
    /// The compressor of both directions.
    pub compressor: CompressorConfig,
    /// The decompressor of both directions; the mode that it asks for is the one of the scheme.
    pub decompressor: DecompressorConfig,
    /// Loss on the link; `None` delivers everything.
    pub loss: Option<Loss>,
    /// What the link costs, if that is asked.
    pub billing: Option<Billing>,
    /// Octets that the link carries in one frame, if packets above that are to be counted.
    pub link_mtu: Option<u32>,
    /// Damage one octet of one compressed packet of each scheme, to prove that the comparison sees it.
    pub damage_one: bool,
}

impl Settings {
    /// No loss, no billing, default refreshes.
    pub fn new(channel: Channel, modes: &[Mode]) -> Self {
        Self {
            channel,
            modes: modes.to_vec(),
            compressor: CompressorConfig::new(channel),
            decompressor: DecompressorConfig::new(channel),
            loss: None,
            billing: None,
            link_mtu: None,
            damage_one: false,
        }
    }
}

/// Independent loss of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Probability that a packet is lost, 0 to 1.
    pub probability: f64,
    /// Which packets that hits: the same in all schemes, on any machine.
    pub seed: u64,
}

/// A link that is paid per started unit of each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Billing {
    /// Octets of a unit, at least 1.
    pub unit: u32,
    /// Price of a unit, in whatever currency.
    pub price: f64,
}

impl Billing {
    /// Units that a packet of `octets` starts.
    pub(crate) fn units(&self, octets: usize) -> u64 {
        octets.div_ceil(self.unit.max(1) as usize) as u64
    }
}
