//! One scheme over the link of one input: every packet is compressed at one side, decompressed at the other, and
//! compared. How that is done is a [`Carrier`]; that it is proven, and what the link loses, is the same for all.

mod lowpan;
mod rohc;
mod schc;

pub(crate) use rohc::BLOCKS;
pub use rohc::endpoint;

use std::fmt;
use std::rc::Rc;

use thinair_rohc::{Format, Instant, ProfileId};

use crate::loss::Sent;
use crate::settings::{SchemeSpec, Settings};
use crate::sides::Side;
use crate::survey::Provision;

/// Room for headers that grow: an IR packet is larger than the headers it stands for.
const MARGIN: usize = 1024;

/// A compressor and a decompressor at each side of the link.
trait Carrier: fmt::Debug {
    /// Compresses a packet at side `from` to the start of `out`. `None` if the scheme is not for such a packet.
    fn compress(
        &mut self,
        now: Instant,
        from: Side,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<Compressed>, Refusal>;

    /// Decompresses at the side opposite to `from` to the start of `out`, and returns the octets there.
    fn decompress(&mut self, now: Instant, from: Side, sent: &[u8], out: &mut [u8])
    -> Result<usize, Refusal>;

    /// Feedback on what came from side `from`, if more waits: its octets at the start of `out`.
    fn poll_feedback(&mut self, _from: Side, _out: &mut [u8]) -> Option<usize> {
        None
    }

    /// Feedback reaches the compressor at side `from`.
    fn handle_feedback(&mut self, _now: Instant, _from: Side, _feedback: &[u8]) {}
}

/// One scheme.
#[derive(Debug)]
pub(crate) struct Scheme {
    carrier: Box<dyn Carrier>,
    sent: Vec<u8>,
    back: Vec<u8>,
    /// One octet of one packet is still to be damaged.
    damage: bool,
}

/// A packet that was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compressed {
    pub(crate) format: Label,
    /// The ROHC profile.
    pub(crate) profile: Option<ProfileId>,
    /// Octets of the headers that were compressed.
    pub(crate) header_in: usize,
    /// Octets that took their place.
    pub(crate) header_out: usize,
    /// Octets in all.
    pub(crate) len: usize,
    /// Octets of the CID among them.
    pub(crate) cid_len: usize,
    /// It refreshes a context that was established.
    pub(crate) refresh: bool,
}

/// Octets that an IR packet has besides the headers: its type, the profile and the CRC (RFC 5795, section 5.2.2.1).
const IR_OCTETS: usize = 3;

impl Compressed {
    /// Octets by which a packet may be larger than it came.
    pub(crate) fn allowance(&self) -> usize {
        let is_ir = matches!(self.format, Label::Format(Format::Ir | Format::IrCr));
        self.cid_len + if is_ir { IR_OCTETS } else { 0 }
    }
}

/// By what packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// A format of ROHC.
    Format(Format),
    /// A rule of SCHC by its RuleID.
    Rule(u8),
    /// LOWPAN_IPHC.
    Iphc,
    /// IPv6 as it is, behind the dispatch octet that says so (RFC 4944, section 5.1).
    Ipv6,
}

/// What became of one packet.
#[derive(Debug)]
pub(crate) struct Trip {
    /// What the compressor says; `None` if it refused, or has no way for such a packet.
    pub(crate) compressed: Option<Compressed>,
    /// The scheme is not for such packets: it went as it was.
    pub(crate) not_applicable: bool,
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

/// What a compressor or decompressor says when it does not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// A stable name for reports.
    name: &'static str,
    why: String,
}

/// Why a packet did not come back bit for bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The compressor refused it.
    NotCompressed(Refusal),
    /// The decompressor refused it, although nothing was lost.
    Refused(Refusal),
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
    pub(crate) fn new(spec: &SchemeSpec, settings: &Settings, provision: &Rc<Provision>) -> Self {
        let carrier: Box<dyn Carrier> = match *spec {
            SchemeSpec::Rohc { channel, mode, learned, .. } => {
                let bases = if learned { &settings.learned } else { &settings.bases };
                Box::new(rohc::Rohc::new(channel, mode, bases, settings))
            }
            SchemeSpec::Schc => Box::new(schc::Schc::new(Rc::clone(provision))),
            SchemeSpec::Lowpan => Box::new(lowpan::Lowpan::new(settings, provision)),
        };
        Self { carrier, sent: Vec::new(), back: Vec::new(), damage: settings.damage_one }
    }

    /// Whether the one octet was damaged that had to be.
    pub(crate) fn did_damage(&self) -> bool {
        !self.damage
    }

    /// An octet was damaged in an earlier input.
    pub(crate) fn spare(&mut self) {
        self.damage = false;
    }

    /// Carries a packet from side `from` to the other one, and its feedback back. `number` counts the packets of
    /// the run.
    pub(crate) fn carry(
        &mut self,
        settings: &Settings,
        number: u64,
        now: Instant,
        from: Side,
        packet: &[u8],
    ) -> Trip {
        let room = 2 * packet.len() + MARGIN;
        if self.sent.len() < room {
            self.sent.resize(room, 0);
            self.back.resize(room, 0);
        }
        let mut trip = Trip {
            compressed: None,
            not_applicable: false,
            len: packet.len(),
            feedback: Vec::new(),
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
        let is_lost = settings.loss.is_some_and(|loss| loss.takes(number, Sent::Packet));
        if is_lost {
            trip.delivery = Delivery::Lost("link");
        }
        let Some(compressed) = trip.compressed else { return trip };
        trip.len = compressed.len;
        let sent = &mut self.sent[..compressed.len];
        // Payload is covered by no CRC of ROHC: only the comparison can see this. The first bit of the last octet is
        // payload also where a payload ends in padding.
        if self.damage && compressed.header_out < sent.len() {
            self.damage = false;
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
            let nth = trip.feedback.len() as u32;
            trip.feedback.push(len);
            if !settings.loss.is_some_and(|loss| loss.takes(number, Sent::Feedback(nth))) {
                self.carrier.handle_feedback(now, from, &self.back[..len]);
            }
        }
        trip
    }
}

impl Trip {
    /// Octets of all feedback.
    pub(crate) fn feedback_len(&self) -> u64 {
        self.feedback.iter().sum::<usize>() as u64
    }
}

impl Label {
    /// The name in reports.
    pub(crate) fn name(self) -> std::borrow::Cow<'static, str> {
        match self {
            Self::Format(format) => format.name().into(),
            Self::Rule(id) => format!("rule {id}").into(),
            Self::Iphc => "IPHC".into(),
            Self::Ipv6 => "IPv6".into(),
        }
    }
}

impl Refusal {
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
