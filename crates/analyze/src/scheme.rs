//! One scheme: ROHC in one mode over the link, with an endpoint at each side, and the proof that every packet
//! comes back.

use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    CompressError, Compressed, Compressor, CompressorMemory, DecompressError, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Instant, Mode,
};

use crate::loss::Sent;
use crate::settings::Settings;
use crate::sides::Side;

/// Room for headers that grow: an IR packet is larger than the headers it stands for.
const MARGIN: usize = 1024;

/// Blocks for extension headers that each compressor and decompressor gets: enough for 64 flows that carry as
/// many as a context takes.
const BLOCKS: usize = 256;

/// Messages of each direction that the other one can refer to.
const EXCHANGES: usize = 64;

/// ROHC in one mode over the link of one input.
#[derive(Debug)]
pub(crate) struct Scheme {
    ends: [Endpoint<'static>; 2],
    sent: Vec<u8>,
    back: Vec<u8>,
    /// One octet of one packet is still to be damaged.
    damage: bool,
}

/// What became of one packet.
#[derive(Debug)]
pub(crate) struct Trip {
    /// What the compressor says; `None` if it refused.
    pub(crate) compressed: Option<Compressed>,
    /// Octets that were sent.
    pub(crate) len: usize,
    /// Octets of each feedback packet that was sent back.
    pub(crate) feedback: Vec<usize>,
    pub(crate) delivery: Delivery,
}

/// Whether the packet came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Bit for bit.
    Exact,
    /// Not at all, on a link that loses packets.
    Lost(&'static str),
    /// Not bit for bit.
    Fault(Cause),
}

/// Why a packet did not come back bit for bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The compressor refused it.
    NotCompressed(CompressError),
    /// The decompressor refused it, although nothing was lost.
    Refused(DecompressError),
    /// The decompressor took it and delivered nothing.
    Nothing,
    /// The decompressor delivered something else.
    Differs {
        /// The first octet that differs, from 0; the shorter length if one is the beginning of the other.
        offset: usize,
        /// Octets that were sent and that were delivered.
        lengths: (usize, usize),
    },
}

impl Scheme {
    pub(crate) fn new(mode: Mode, settings: &Settings) -> Self {
        Self {
            ends: [(); 2].map(|()| endpoint(mode, settings)),
            sent: Vec::new(),
            back: Vec::new(),
            damage: settings.damage_one,
        }
    }

    /// Whether the one octet was damaged that had to be.
    pub(crate) fn did_damage(&self) -> bool {
        !self.damage
    }

    /// An octet was damaged in an earlier input.
    pub(crate) fn spare(&mut self) {
        self.damage = false;
    }

    /// Carries a packet from `side` to the other one, and its feedback back. `number` counts the packets of
    /// the run.
    pub(crate) fn carry(
        &mut self,
        settings: &Settings,
        number: u64,
        now: Instant,
        side: Side,
        packet: &[u8],
    ) -> Trip {
        let room = 2 * packet.len() + MARGIN;
        if self.sent.len() < room {
            self.sent.resize(room, 0);
            self.back.resize(room, 0);
        }
        let [near, far] = ends(&mut self.ends, side);
        let compressed = match near.compressor.compress(now, packet, &mut self.sent) {
            Ok(compressed) => compressed,
            Err(error) => {
                let delivery = Delivery::Fault(Cause::NotCompressed(error));
                return Trip { compressed: None, len: packet.len(), feedback: Vec::new(), delivery };
            }
        };
        let sent = &mut self.sent[..compressed.len];
        // Payload is covered by no CRC of ROHC: only the comparison can see this.
        if self.damage && compressed.header_out < sent.len() {
            self.damage = false;
            if let Some(octet) = sent.last_mut() {
                *octet ^= 1;
            }
        }
        let mut trip = Trip {
            compressed: Some(compressed),
            len: sent.len(),
            feedback: Vec::new(),
            delivery: Delivery::Exact,
        };
        if settings.loss.is_some_and(|loss| loss.takes(number, Sent::Packet)) {
            trip.delivery = Delivery::Lost("link");
            return trip;
        }
        let received = far.receive(now, sent, &mut self.back);
        trip.delivery = match received {
            Ok(done) => match (compare(packet, &self.back[..done.len]), settings.loss) {
                (Some(Cause::Nothing), Some(_)) => Delivery::Lost("nothing_delivered"),
                (Some(cause), _) => Delivery::Fault(cause),
                (None, _) => Delivery::Exact,
            },
            Err(error) if settings.loss.is_some() => Delivery::Lost(error.name()),
            Err(error) => Delivery::Fault(Cause::Refused(error)),
        };
        while let Some(len) = far.poll_feedback(&mut self.back) {
            let nth = trip.feedback.len() as u32;
            trip.feedback.push(len);
            if settings.loss.is_some_and(|loss| loss.takes(number, Sent::Feedback(nth))) {
                continue;
            }
            // There is no packet behind the feedback, so nothing is delivered.
            let _ = near.receive(now, &self.back[..len], &mut self.sent);
        }
        trip
    }
}

fn ends<'e>(ends: &'e mut [Endpoint<'static>; 2], side: Side) -> [&'e mut Endpoint<'static>; 2] {
    let [a, b] = ends;
    match side {
        Side::A => [a, b],
        Side::B => [b, a],
    }
}

fn endpoint(mode: Mode, settings: &Settings) -> Endpoint<'static> {
    let channel = settings.channel;
    let decompressor = DecompressorConfig { mode, ..settings.decompressor };
    Endpoint::new(
        Compressor::new(settings.compressor, CompressorMemory::owned(&channel, BLOCKS)),
        Decompressor::new(decompressor, DecompressorMemory::owned(&channel, BLOCKS)),
    )
    .with_exchanges(Exchanges::owned(EXCHANGES), Exchanges::owned(EXCHANGES))
}

fn compare(sent: &[u8], delivered: &[u8]) -> Option<Cause> {
    if sent == delivered {
        return None;
    }
    if delivered.is_empty() {
        return Some(Cause::Nothing);
    }
    let common = sent.iter().zip(delivered).take_while(|(a, b)| a == b).count();
    Some(Cause::Differs { offset: common, lengths: (sent.len(), delivered.len()) })
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotCompressed(error) => write!(f, "not compressed: {error}"),
            Self::Refused(error) => write!(f, "refused by the decompressor: {error}"),
            Self::Nothing => write!(f, "nothing was delivered"),
            Self::Differs { offset, lengths: (sent, delivered) } => {
                write!(f, "first differs at octet {offset} ({sent} octets sent, {delivered} delivered)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_found() {
        let differs = |offset, lengths| Some(Cause::Differs { offset, lengths });
        assert_eq!(compare(b"time", b"time"), None);
        assert_eq!(compare(b"time", b"tide"), differs(2, (4, 4)));
        assert_eq!(compare(b"time", b"ti"), differs(2, (4, 2)));
        assert_eq!(compare(b"time", b""), Some(Cause::Nothing));
    }
}
