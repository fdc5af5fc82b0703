//! Units into bodies of datagrams, and back.
//!
//! A [`Packager`] takes units and gives bodies, an [`Unpackager`] takes bodies and gives units, in one of three ways: one
//! behind the other ([`packed`]), as SNDUs in TS Packets ([`ts`]), as GSE Packets in BBFrames ([`gse`]). What is in a unit
//! they do not know; nor, what becomes of a body: it is a datagram as it is, or is sealed, or goes into a file.
//! `docs/carriers.md` has the octets.

mod addresses;
mod counters;
pub mod gse;
pub mod packed;
pub mod rtp;
pub mod ts;

#[cfg(test)]
mod tests;

use thinair_ule::psi::TooMany;
use thinair_ule::{EtherType, Npa, Pid};
use thinair_wire::time::Instant;

pub use counters::{PackagerCounters, UnpackagerCounters};

use crate::plan::{Others, Packaging, Peer};
use crate::unit::{Protocol, SiteId, Unit};

/// Where bodies go.
pub type BodySink<'s> = &'s mut dyn FnMut(Body<'_>);
/// Where units go, with the site that sent them, if the packaging tells it.
pub type UnitSink<'s> = &'s mut dyn FnMut(Option<SiteId>, Unit<'_>);

/// What is in a datagram, before it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'b> {
    /// The octets.
    pub octets: &'b [u8],
    /// Whether lengths tell several units apart; only [`packed`] ones need this bit beside them.
    pub several: bool,
    /// The one site that it is for: then the octets begin with its number. Only [`packed`] ones.
    pub to: Option<SiteId>,
    /// Whether its units belong to the channel with large CIDs: those of a body all do, or none. Told beside the body.
    pub large: bool,
    /// Units that end in it.
    pub units: u32,
}

/// What was in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyIn<'b> {
    /// The octets.
    pub octets: &'b [u8],
    /// As it was in [`Body`].
    pub several: bool,
    /// Whether [`Body::to`] was there.
    pub addressed: bool,
}

/// What a [`Packager`] is told, besides what the plan says of packagings.
#[derive(Clone, Copy, Debug)]
pub struct PackagerConfig {
    /// Octets of the longest body. What is in front of it in a datagram, and behind, is not among them.
    pub largest_body: usize,
    /// Whether units are Ethernet frames.
    pub bridged: bool,
    /// Packed bodies, and BBFrames, have multiples of so many octets, as far as there is room; 0 and 1: any number.
    pub pad: u16,
    /// TS Packets have an RTP header in front.
    pub rtp: Option<rtp::Start>,
}

impl PackagerConfig {
    /// Bodies of IP packets, without padding, without RTP.
    pub const fn new(largest_body: usize) -> Self {
        Self { largest_body, bridged: false, pad: 0, rtp: None }
    }
}

/// A packaging cannot be what the plan says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackagingError {
    /// Bodies are too short for what has to be in one.
    #[error("datagrams have room for {room} octets, but {needed} are the least that is needed")]
    NoRoom {
        /// Octets that there are.
        room: usize,
        /// Octets that are needed.
        needed: usize,
    },
    /// TS Packets of a datagram.
    #[error("{0} TS Packets a datagram; 1 to 7 are possible")]
    PerDatagram(u8),
    /// A PID that a stream cannot have.
    #[error("PID {0} is not for streams: 0x0020 to 0x1ffe are")]
    Pid(Pid),
    /// Two senders have one PID.
    #[error("PID {0} is that of two senders")]
    SamePid(Pid),
    /// A site that is to be heard has no PID.
    #[error("site `{0}` has no PID")]
    NoPid(String),
    /// Feedback is for one site, which only its NPA tells.
    #[error("{0} has no NPA, which feedback in a mesh needs")]
    NoNpa(String),
    /// More peers than numbers.
    #[error("{0} peers; 255 are possible")]
    Peers(usize),
    /// A table of PSI.
    #[error("{0}")]
    Psi(TooMany),
    /// Constant bitrate of less than a TS Packet an hour.
    #[error("{0} bit/s is no bitrate")]
    Bitrate(u64),
}

/// A unit was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// It is too long.
    #[error("a unit of {octets} octets; {most} are possible")]
    TooLong {
        /// Octets of it.
        octets: usize,
        /// Octets that it may have.
        most: usize,
    },
    /// There is nothing in it.
    #[error("a unit without octets")]
    Empty,
    /// A stream of constant rate has enough to send: [`Packager::is_full`] said so.
    #[error("the stream has enough to send for now")]
    Full,
    /// Packed bodies do not tell what a unit is.
    #[error("packed datagrams carry no {0:?}")]
    NotTold(Protocol),
    /// A frame that is none, or has no addresses.
    #[error("{octets} octets are no Ethernet frame with addresses")]
    NotAFrame {
        /// Octets of it.
        octets: usize,
    },
    /// The site has no address.
    #[error("site {} has no NPA", .0.number())]
    NoNpa(SiteId),
}

/// A body is not what it should be. What is wrong within a TS Packet or a GSE Packet is counted, and does no harm to
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// It ends where a unit should begin.
    #[error("the datagram ends at octet {offset}, where a unit should begin")]
    Ends {
        /// Octets of it.
        offset: usize,
    },
    /// The octets of a length are cut short, or could be fewer, or say 0.
    #[error("octet {offset} of the datagram is no length")]
    BadLength {
        /// Where the length begins.
        offset: usize,
    },
    /// A length is more than what is left.
    #[error("the length at octet {offset} of the datagram is {length}, but {left} octets are left")]
    TooShort {
        /// Where the length begins.
        offset: usize,
        /// What it says.
        length: usize,
        /// Octets behind it.
        left: usize,
    },
    /// A unit is longer than units may be.
    #[error("the unit at octet {offset} of the datagram has {octets} octets, but {most} are possible")]
    TooLong {
        /// Where it begins.
        offset: usize,
        /// Octets of it.
        octets: usize,
        /// Octets that it may have.
        most: usize,
    },
    /// What should be an Ethernet frame is none.
    #[error("the {octets} octets at octet {offset} of the datagram are no Ethernet frame")]
    NotAFrame {
        /// Where it begins.
        offset: usize,
        /// Octets of it.
        octets: usize,
    },
    /// The site that it is for has number 0.
    #[error("the datagram is for site 0")]
    NoSite,
    /// These are no TS Packets.
    #[error("{octets} octets, from octet {offset} of the datagram on, are no TS Packets of 188 octets")]
    NotTs {
        /// Where they begin.
        offset: usize,
        /// How many there are.
        octets: usize,
    },
    /// The RTP header is not one of TS Packets.
    #[error("{0}")]
    Rtp(rtp::BadRtp),
    /// The header of the BBFrame.
    #[error("{0}")]
    BbHeader(thinair_ule::gse::BadBbHeader),
    /// The data field ends behind the datagram.
    #[error("a data field of {told} octets, but {left} octets are left behind the header of the BBFrame")]
    DataField {
        /// Octets that the header tells of.
        told: usize,
        /// Octets behind it.
        left: usize,
    },
    /// A BBFrame with the number of no site of the plan.
    #[error("a BBFrame of input stream {0}, which is that of no site")]
    Stream(u8),
    /// A BBFrame without Input Stream Identifier, and there are several sites.
    #[error("a BBFrame of a single input stream, but there are several sites")]
    SingleStream,
}

/// Puts units into bodies.
///
/// **Units are pushed; when no more wait, [`pause`](Self::pause) is called; and [`poll`](Self::poll) when
/// [`poll_at`](Self::poll_at) says so.**
#[derive(Debug)]
pub struct Packager(Sending);

#[derive(Debug)]
enum Sending {
    Packed(packed::Packer),
    Ts(Box<ts::Sender>),
    Gse(gse::Sender),
}

impl Packager {
    /// One that has not sent anything, at the time `now`.
    pub fn new(
        now: Instant,
        packaging: &Packaging,
        others: &Others,
        config: PackagerConfig,
    ) -> Result<Self, PackagingError> {
        Ok(Self(match packaging {
            Packaging::Packed => Sending::Packed(packed::Packer::new(config)?),
            Packaging::Ts { .. } => Sending::Ts(Box::new(ts::Sender::new(now, packaging, others, config)?)),
            Packaging::Gse { flush, npa } => Sending::Gse(gse::Sender::new(*flush, *npa, others, config)?),
        }))
    }

    /// Octets of the longest unit that can be pushed.
    pub const fn largest_unit(&self) -> usize {
        match &self.0 {
            Sending::Packed(packer) => packer.largest_unit(),
            Sending::Ts(_) => ts::LARGEST_UNIT,
            Sending::Gse(_) => gse::LARGEST_UNIT,
        }
    }

    /// Whether the unit that comes next would be refused, as a stream of constant rate has enough to send. Until that
    /// changes, by [`poll`](Self::poll), units should wait where they can be dropped by reason.
    pub fn is_full(&self) -> bool {
        match &self.0 {
            Sending::Ts(sender) => sender.is_full(),
            Sending::Packed(_) | Sending::Gse(_) => false,
        }
    }

    /// Takes a unit. Bodies that are full go to `sink`.
    pub fn push(&mut self, now: Instant, unit: Unit<'_>, sink: BodySink<'_>) -> Result<(), PushError> {
        match &mut self.0 {
            Sending::Packed(packer) => packer.push(unit, sink),
            Sending::Ts(sender) => sender.push(now, unit, sink),
            Sending::Gse(sender) => sender.push(now, unit, sink),
        }
    }

    /// Packed units go together in bodies of at most so many octets from now on, and those that are longer alone: what a
    /// carrier loses as one is not more than that.
    pub fn keep_together(&mut self, octets: usize) {
        if let Sending::Packed(packer) = &mut self.0 {
            packer.keep_together(octets);
        }
    }

    /// Packed bodies have at most so many octets from now on.
    pub fn limit(&mut self, octets: usize) {
        if let Sending::Packed(packer) = &mut self.0 {
            packer.limit(octets);
        }
    }

    /// No more units wait: what is begun is sent, now or when it has waited as long as the plan says.
    pub fn pause(&mut self, now: Instant, sink: BodySink<'_>) {
        match &mut self.0 {
            Sending::Packed(packer) => packer.pause(sink),
            Sending::Ts(sender) => sender.pause(now, sink),
            Sending::Gse(sender) => sender.pause(now, sink),
        }
    }

    /// When [`poll`](Self::poll) has to be called, if nothing is pushed until then.
    pub fn poll_at(&self) -> Option<Instant> {
        match &self.0 {
            Sending::Packed(_) => None,
            Sending::Ts(sender) => sender.poll_at(),
            Sending::Gse(sender) => sender.poll_at(),
        }
    }

    /// Sends what has waited long enough, what is due every so often, and what a constant rate has a slot for.
    pub fn poll(&mut self, now: Instant, sink: BodySink<'_>) {
        match &mut self.0 {
            Sending::Packed(_) => {}
            Sending::Ts(sender) => sender.poll(now, sink),
            Sending::Gse(sender) => sender.poll(now, sink),
        }
    }

    /// True if a unit may begin in one body and end in another.
    pub const fn tears(&self) -> bool {
        matches!(self.0, Sending::Ts(_) | Sending::Gse(_))
    }

    /// What it has done.
    pub fn counters(&self) -> PackagerCounters {
        match &self.0 {
            Sending::Packed(packer) => packer.counters(),
            Sending::Ts(sender) => sender.counters(),
            Sending::Gse(sender) => sender.counters(),
        }
    }
}

/// Takes units out of bodies. Its memory is taken when it is made, and does not grow.
#[derive(Debug)]
pub struct Unpackager(Receiving);

#[derive(Debug)]
enum Receiving {
    Packed(Box<packed::Unpacker>),
    Ts(Box<ts::Receiver>),
    Gse(Box<gse::Receiver>),
}

impl Unpackager {
    /// One for bodies of all others: in TS each has its PID, which is that of this site if the plan has none. Where
    /// another sign than the PID tells who has sent a datagram, as with peers that all use one PID or GSE, each needs one
    /// of its own: [`of_peer`](Self::of_peer).
    ///
    /// Who has sent a unit is told by PID, and in GSE by the Input Stream Identifier, which is the number of a site:
    /// sites of a mesh by their number, peers by their place in the plan, counted from 1.
    pub fn new(
        packaging: &Packaging,
        others: &Others,
        largest_unit: usize,
        bridged: bool,
    ) -> Result<Self, PackagingError> {
        Ok(Self(match packaging {
            Packaging::Packed => Receiving::Packed(Box::new(packed::Unpacker::new(largest_unit, bridged))),
            Packaging::Ts { pid, npa, .. } => {
                Receiving::Ts(Box::new(ts::Receiver::new(*pid, *npa, others, largest_unit)?))
            }
            Packaging::Gse { npa, .. } => {
                Receiving::Gse(Box::new(gse::Receiver::new(*npa, others, largest_unit)))
            }
        }))
    }

    /// One for bodies that this peer alone has sent. It does not tell who that was.
    pub fn of_peer(
        packaging: &Packaging,
        peer: &Peer,
        largest_unit: usize,
        bridged: bool,
    ) -> Result<Self, PackagingError> {
        let mut unpackager = Self::new(packaging, &Others::Peers(vec![peer.clone()]), largest_unit, bridged)?;
        if let Receiving::Ts(receiver) = &mut unpackager.0 {
            receiver.forget_who();
        }
        Ok(unpackager)
    }

    /// Takes a body, and gives the units that end in it to `sink`, in the order in which they were pushed.
    pub fn receive(&mut self, body: BodyIn<'_>, sink: UnitSink<'_>) -> Result<(), UnpackError> {
        match &mut self.0 {
            Receiving::Packed(unpacker) => unpacker.receive(body, sink),
            Receiving::Ts(receiver) => receiver.receive(body.octets, sink),
            Receiving::Gse(receiver) => receiver.receive(body.octets, sink),
        }
    }

    /// A body is missing before the next one, or the next one is late: nothing of it goes on with what was begun.
    pub fn resynchronize(&mut self) {
        match &mut self.0 {
            Receiving::Ts(receiver) => receiver.resynchronize(),
            // Fragments of GSE have numbers and a CRC, and bodies that are packed hold whole units.
            Receiving::Packed(_) | Receiving::Gse(_) => {}
        }
    }

    /// Takes the next octets of a file or a pipe in which TS Packets lie: 188, 192 or 204 octets apart, from anywhere on.
    /// Other packagings have no streams; there nothing is taken.
    pub fn receive_stream(&mut self, octets: &[u8], sink: UnitSink<'_>) {
        if let Receiving::Ts(receiver) = &mut self.0 {
            receiver.receive_stream(octets, sink);
        }
    }

    /// The stream has ended.
    pub fn finish_stream(&mut self, sink: UnitSink<'_>) {
        if let Receiving::Ts(receiver) = &mut self.0 {
            receiver.finish_stream(sink);
        }
    }

    /// What it has seen.
    pub fn counters(&self) -> UnpackagerCounters {
        match &self.0 {
            Receiving::Packed(unpacker) => unpacker.counters(),
            Receiving::Ts(receiver) => receiver.counters(),
            Receiving::Gse(receiver) => receiver.counters(),
        }
    }
}

/// The Type of a unit that is no Ethernet frame.
const fn ether_type(protocol: Protocol) -> Option<EtherType> {
    match protocol {
        Protocol::Rohc => Some(EtherType::ROHC),
        Protocol::Ipv4 => Some(EtherType::IPV4),
        Protocol::Ipv6 => Some(EtherType::IPV6),
        Protocol::Bridged => None,
    }
}

/// The unit of a Type, if units have it.
fn protocol(ether_type: EtherType) -> Option<Protocol> {
    [Protocol::Rohc, Protocol::Ipv4, Protocol::Ipv6]
        .into_iter()
        .find(|protocol| self::ether_type(*protocol) == Some(ether_type))
}

/// The site that a unit is for, from its address: this one, if it is its own.
fn to(destination: Option<Npa>, own: Option<(Npa, SiteId)>) -> Option<SiteId> {
    let (npa, site) = own?;
    (destination == Some(npa)).then_some(site)
}

/// What is known of a unit that came, besides its octets.
#[derive(Clone, Copy, Debug)]
struct Whose {
    from: Option<SiteId>,
    to: Option<SiteId>,
    largest_unit: usize,
}

impl Whose {
    /// Hands a unit up, if it is one.
    fn deliver(self, counters: &mut UnpackagerCounters, unit: Option<(Protocol, &[u8])>, sink: UnitSink<'_>) {
        let Self { from, to, largest_unit } = self;
        match unit.filter(|(_, octets)| (1..=largest_unit).contains(&octets.len())) {
            Some((protocol, octets)) => {
                counters.units += 1;
                counters.octets += octets.len() as u64;
                sink(from, Unit { protocol, to, large: false, octets });
            }
            None => counters.unknown += 1,
        }
    }
}
