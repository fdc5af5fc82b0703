//! One scheme on the link of one input: every packet is compressed at one side, decompressed at the other,
//! and compared. A [`SchemeEnds`] implements a scheme; verification and loss are common to all schemes.

mod lowpan;
mod rohc;
mod schc;

pub(crate) use rohc::BLOCKS;
pub use rohc::endpoint;

use std::fmt;
use std::sync::Arc;

use thinair_rohc::{Format, Instant, ProfileId};

use crate::loss::SentPacket;
use crate::settings::{SchemeSpec, Settings};
use crate::sides::CaptureSide;
use crate::survey::SurveyedInput;
use crate::tally::units;

/// Octets by which headers may grow: an IR packet is larger than the headers it replaces.
const MARGIN: usize = 1024;

/// Number of times that a SYN segment is sent, on a lossy link, until the decompressor delivers it.
const MOST_SYNS: usize = 4;

/// A compressor and a decompressor at each side of the link.
trait SchemeEnds: fmt::Debug + Send {
    /// Compresses a packet at side `from` to the start of `out`. `None` if the scheme cannot compress such a
    /// packet.
    fn compress(
        &mut self,
        now: Instant,
        from: CaptureSide,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<CompressedPacket>, Rejection>;

    /// Decompresses at the side opposite to `from` to the start of `out`, and returns the length.
    fn decompress(
        &mut self,
        now: Instant,
        from: CaptureSide,
        sent: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Rejection>;

    /// Writes pending feedback on packets of side `from` to the start of `out`, and returns its length;
    /// `None` if there is none.
    fn poll_feedback(&mut self, _from: CaptureSide, _out: &mut [u8]) -> Option<usize> {
        None
    }

    /// Delivers feedback to the compressor at side `from`.
    fn handle_feedback(&mut self, _now: Instant, _from: CaptureSide, _feedback: &[u8]) {}
}

/// One scheme with its state.
#[derive(Debug)]
pub(crate) struct SchemeLink {
    carrier: Box<dyn SchemeEnds>,
    sent: Vec<u8>,
    back: Vec<u8>,
}

/// A compressed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompressedPacket {
    pub(crate) format: FormatLabel,
    /// ROHC profile.
    pub(crate) profile: Option<ProfileId>,
    /// Octets of the headers that were compressed.
    pub(crate) header_in: usize,
    /// Octets of the compressed headers.
    pub(crate) header_out: usize,
    /// Length of the packet in octets.
    pub(crate) len: usize,
    /// Octets of the CID.
    pub(crate) cid_len: usize,
    /// True if it refreshes an established context.
    pub(crate) refresh: bool,
}

/// Octets of an IR packet in addition to the headers: type, profile and CRC (RFC 5795, section 5.2.2.1).
const IR_OCTETS: usize = 3;

impl CompressedPacket {
    /// Octets by which the packet may exceed its uncompressed size.
    pub(crate) fn allowance(&self) -> usize {
        let is_ir = matches!(self.format, FormatLabel::Format(Format::Ir | Format::IrCr));
        self.cid_len + if is_ir { IR_OCTETS } else { 0 }
    }
}

/// Key by which packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FormatLabel {
    /// Format of ROHC.
    Format(Format),
    /// Rule of SCHC by its RuleID.
    Rule(u8),
    /// LOWPAN_IPHC.
    Iphc,
    /// Uncompressed IPv6 after its dispatch octet (RFC 4944, section 5.1).
    Ipv6,
}

/// A packet as the link receives it, without its octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Number of the packet in the run.
    pub(crate) number: u64,
    pub(crate) now: Instant,
    /// Side from which it is sent.
    pub(crate) from: CaptureSide,
    /// True if the link does not drop it. With loss, a SYN segment is delivered: the packets that follow it in the capture
    /// show that it arrived, and a compressor may rely on that.
    pub(crate) has_to_arrive: bool,
}

/// Outcome of one packet.
#[derive(Debug)]
pub(crate) struct Trip {
    /// Result of the compressor; `None` if it rejected the packet, or does not apply to it.
    pub(crate) compressed: Option<CompressedPacket>,
    /// True if the scheme does not apply to the packet, which was sent unchanged.
    pub(crate) not_applicable: bool,
    /// Octets sent.
    pub(crate) len: usize,
    pub(crate) feedback: FeedbackSums,
    pub(crate) delivery: Delivery,
}

/// Result of the round trip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Restored bit for bit.
    Exact,
    /// Not delivered, on a lossy link; with the reason.
    Lost(&'static str),
    /// Not restored bit for bit.
    Fault(Cause),
}

/// Reason why a compressor or decompressor rejects a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// A stable name for reports.
    name: &'static str,
    why: String,
}

/// Reason why a packet was not restored bit for bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The compressor rejected it.
    NotCompressed(Rejection),
    /// The decompressor rejected it, although nothing was lost.
    Refused(Rejection),
    /// The decompressor accepted it and delivered nothing.
    Nothing,
    /// The decompressor delivered a different packet.
    Differs {
        /// Offset of the first octet that differs, from 0; the shorter length if one is a prefix of the
        /// other.
        offset: usize,
        /// Octets sent and octets delivered.
        lengths: (usize, usize),
    },
}

impl SchemeLink {
    pub(crate) fn new(spec: &SchemeSpec, settings: &Settings, surveyed: &Arc<SurveyedInput>) -> Self {
        let carrier: Box<dyn SchemeEnds> = match *spec {
            SchemeSpec::Rohc { channel, mode, learned, .. } => {
                let bases = if learned { &settings.learned } else { &settings.bases };
                Box::new(rohc::Rohc::new(channel, mode, bases, settings))
            }
            SchemeSpec::Schc => Box::new(schc::Schc::new(Arc::clone(surveyed))),
            SchemeSpec::Lowpan => Box::new(lowpan::Lowpan::new(settings, surveyed)),
        };
        Self { carrier, sent: Vec::new(), back: Vec::new() }
    }

    /// Sends a packet to the other side, and its feedback back. `damage` is true until the requested damage of one octet
    /// has happened.
    ///
    /// A packet that has to arrive is sent again if the decompressor rejects it, as TCP does.
    pub(crate) fn carry(
        &mut self,
        settings: &Settings,
        sending: Sending,
        packet: &[u8],
        damage: &mut bool,
    ) -> Trip {
        let mut trip = self.carry_once(settings, sending, packet, damage);
        for _ in 1..if sending.has_to_arrive { MOST_SYNS } else { 1 } {
            if !matches!(trip.delivery, Delivery::Lost(_)) {
                break;
            }
            let before = trip.feedback;
            trip = self.carry_once(settings, sending, packet, damage);
            trip.feedback.add(&before);
        }
        trip
    }

    /// Sends a packet once.
    fn carry_once(
        &mut self,
        settings: &Settings,
        sending: Sending,
        packet: &[u8],
        damage: &mut bool,
    ) -> Trip {
        let Sending { number, now, from, has_to_arrive } = sending;
        let room = 2 * packet.len() + MARGIN;
        if self.sent.len() < room {
            self.sent.resize(room, 0);
            self.back.resize(room, 0);
        }
        let mut trip = Trip {
            compressed: None,
            not_applicable: false,
            len: packet.len(),
            feedback: FeedbackSums::default(),
            delivery: Delivery::Exact,
        };
        match self.carrier.compress(now, from, packet, &mut self.sent) {
            Ok(compressed) => {
                trip.not_applicable = compressed.is_none();
                trip.compressed = compressed;
            }
            Err(refusal) => {
                trip.delivery = Delivery::Fault(Cause::NotCompressed(refusal));
                return trip;
            }
        }
        let is_lost =
            !has_to_arrive && settings.loss.is_some_and(|loss| loss.takes(number, SentPacket::Packet));
        if is_lost {
            trip.delivery = Delivery::Lost("link");
        }
        let Some(compressed) = trip.compressed else { return trip };
        trip.len = compressed.len;
        let sent = &mut self.sent[..compressed.len];
        // No CRC of ROHC covers the payload: only the comparison can detect this. The first bit of the last
        // octet is payload even if the payload ends in padding.
        if *damage && compressed.header_out < sent.len() {
            *damage = false;
            if let Some(octet) = sent.last_mut() {
                *octet ^= 0x80;
            }
        }
        if is_lost {
            return trip;
        }
        let received = self.carrier.decompress(now, from, sent, &mut self.back);
        trip.delivery = match received {
            Ok(len) => match (compare(packet, &self.back[..len]), settings.loss) {
                (Some(Cause::Nothing), Some(_)) => Delivery::Lost("nothing_delivered"),
                (Some(cause), _) => Delivery::Fault(cause),
                (None, _) => Delivery::Exact,
            },
            Err(refusal) if settings.loss.is_some() => Delivery::Lost(refusal.name),
            Err(refusal) => Delivery::Fault(Cause::Refused(refusal)),
        };
        while let Some(len) = self.carrier.poll_feedback(from, &mut self.back) {
            let nth = trip.feedback.packets;
            let units = units(settings, from.other(), len);
            trip.feedback.add(&FeedbackSums { packets: 1, bytes: len as u64, units });
            if !settings.loss.is_some_and(|loss| loss.takes(number, SentPacket::Feedback(nth))) {
                self.carrier.handle_feedback(now, from, &self.back[..len]);
            }
        }
        trip
    }
}

/// Feedback packets of a trip, each sent separately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FeedbackSums {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// Billed units.
    pub(crate) units: u64,
}

impl FeedbackSums {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.units += other.units;
    }
}

impl FormatLabel {
    /// Name in reports.
    pub(crate) fn name(self) -> std::borrow::Cow<'static, str> {
        match self {
            Self::Format(format) => format.name().into(),
            Self::Rule(id) => format!("rule {id}").into(),
            Self::Iphc => "IPHC".into(),
            Self::Ipv6 => "IPv6".into(),
        }
    }

    /// Returns the label with that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let formats = Format::ALL.into_iter().map(Self::Format).chain([Self::Iphc, Self::Ipv6]);
        formats.chain((0..=u8::MAX).map(Self::Rule)).find(|label| label.name() == name)
    }
}

impl Rejection {
    fn new(name: &'static str, why: impl fmt::Display) -> Self {
        Self { name, why: why.to_string() }
    }
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompressed(refusal) => write!(f, "not compressed: {}", refusal.why),
            Self::Refused(refusal) => write!(f, "refused by the decompressor: {}", refusal.why),
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
