//! Packaging of units in bodies of datagrams.
//!
//! A [`Packager`] converts units to bodies, an [`Unpackager`] bodies to units, in one of three formats:
//! concatenated ([`packed`]), as SNDUs in TS Packets ([`ts`]), or as GSE Packets in BBFrames ([`gse`]). They
//! are independent of the contents of units, and of the transport of bodies: plain datagrams, encrypted ones,
//! or files. `docs/carriers.md` describes the formats.

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

use crate::site_config::{Others, Packaging, Peer};
use crate::unit::{Protocol, SiteId, Unit};

/// Receiver of bodies.
pub type BodySink<'s> = &'s mut dyn FnMut(Body<'_>);
/// Receiver of units, with the site that sent them, if the packaging identifies it.
pub type UnitSink<'s> = &'s mut dyn FnMut(Option<SiteId>, Unit<'_>);

/// Content of a datagram before encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'b> {
    /// Octets of the body.
    pub octets: &'b [u8],
    /// True if the body contains several units with lengths; transmitted beside the body, for [`packed`] ones
    /// only.
    pub several: bool,
    /// Single destination site: then the octets begin with its number. For [`packed`] bodies only.
    pub to: Option<SiteId>,
    /// True if its units belong to the channel with large CIDs, all of them or none. Transmitted beside the
    /// body.
    pub large: bool,
    /// Number of units that end in it.
    pub units: u32,
}

/// Content of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyIn<'b> {
    /// Octets of the body.
    pub octets: &'b [u8],
    /// Flag as in [`Body`].
    pub several: bool,
    /// True if [`Body::to`] was set.
    pub addressed: bool,
}

/// Settings of a [`Packager`] in addition to the configuration.
#[derive(Clone, Copy, Debug)]
pub struct PackagerConfig {
    /// Maximum size of a body in octets, without header and trailer of the datagram.
    pub largest_body: usize,
    /// True if units are Ethernet frames.
    pub bridged: bool,
    /// Pads packed bodies and BBFrames to multiples of this number of octets, if there is room; 0 and 1: no
    /// padding.
    pub pad: u16,
    /// Sends an RTP header before TS Packets.
    pub rtp: Option<rtp::Start>,
}

impl PackagerConfig {
    /// Returns settings for IP packets, without padding and RTP.
    pub const fn new(largest_body: usize) -> Self {
        Self { largest_body, bridged: false, pad: 0, rtp: None }
    }
}

/// Reason why the configuration of a packaging is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackagingError {
    /// Bodies are too small for their minimum content.
    #[error("datagrams have room for {room} octets, and need at least {needed}")]
    NoRoom {
        /// Available octets.
        room: usize,
        /// Required octets.
        needed: usize,
    },
    /// Invalid number of TS Packets per datagram.
    #[error("{0} TS Packets per datagram; expected 1 to 7")]
    PerDatagram(u8),
    /// Invalid PID of a stream.
    #[error("PID {0} is reserved; streams use 0x0020 to 0x1ffe")]
    Pid(Pid),
    /// Two senders use the same PID.
    #[error("two senders use PID {0}")]
    SamePid(Pid),
    /// A site to receive from has no PID.
    #[error("site `{0}` has no PID")]
    NoPid(String),
    /// Feedback is for one site, which is addressed by its NPA.
    #[error("{0} has no NPA, which feedback in a mesh needs")]
    NoNpa(String),
    /// More peers than numbers.
    #[error("{0} peers; the maximum is 255")]
    Peers(usize),
    /// A PSI table is too large.
    #[error("{0}")]
    Psi(TooMany),
    /// Constant bit rate of less than a TS Packet per hour.
    #[error("invalid bit rate of {0} bit/s: less than a TS Packet per hour")]
    Bitrate(u64),
}

/// Reason why a unit was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// It exceeds the maximum size.
    #[error("a unit of {octets} octets exceeds the limit of {most}")]
    TooLong {
        /// Size in octets.
        octets: usize,
        /// Maximum size in octets.
        most: usize,
    },
    /// It is empty.
    #[error("an empty unit")]
    Empty,
    /// The queue of a stream of constant rate is full: see [`Packager::is_full`].
    #[error("the queue of the constant-rate stream is full")]
    Full,
    /// Packed bodies do not transmit the type of a unit.
    #[error("packed datagrams do not support units of kind {0:?}")]
    NotTold(Protocol),
    /// A frame is too short, or has no addresses.
    #[error("{octets} octets are not an Ethernet frame with addresses")]
    NotAFrame {
        /// Size in octets.
        octets: usize,
    },
    /// The destination site has no NPA.
    #[error("site {} has no NPA", .0.number())]
    NoNpa(SiteId),
}

/// Reason why a body is malformed. Errors within a TS Packet or GSE Packet are counted, and do not affect
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// It ends at the start of a unit.
    #[error("the datagram ends at octet {offset}, where a unit must begin")]
    Ends {
        /// Size in octets.
        offset: usize,
    },
    /// A length field is truncated, not minimal, or 0.
    #[error("invalid length at octet {offset} of the datagram")]
    BadLength {
        /// Offset of the length field.
        offset: usize,
    },
    /// A length exceeds the rest of the body.
    #[error("the length at octet {offset} of the datagram is {length}, and {left} octets follow")]
    TooShort {
        /// Offset of the length field.
        offset: usize,
        /// Value of the length field.
        length: usize,
        /// Octets after it.
        left: usize,
    },
    /// A unit exceeds the maximum size.
    #[error(
        "the unit at octet {offset} of the datagram has {octets} octets, and exceeds the limit of {most}"
    )]
    TooLong {
        /// Offset of the unit.
        offset: usize,
        /// Size in octets.
        octets: usize,
        /// Maximum size in octets.
        most: usize,
    },
    /// A unit is not an Ethernet frame.
    #[error("the {octets} octets at octet {offset} of the datagram are not an Ethernet frame")]
    NotAFrame {
        /// Offset of the unit.
        offset: usize,
        /// Size in octets.
        octets: usize,
    },
    /// The destination site has number 0.
    #[error("the datagram is for site 0")]
    NoSite,
    /// Octets are not TS Packets.
    #[error("{octets} octets from octet {offset} of the datagram are not TS Packets of 188 octets")]
    NotTs {
        /// Offset of these octets.
        offset: usize,
        /// Number of these octets.
        octets: usize,
    },
    /// The RTP header is not one of TS Packets.
    #[error("{0}")]
    Rtp(rtp::BadRtp),
    /// The header of the BBFrame is malformed.
    #[error("{0}")]
    BbHeader(thinair_ule::gse::BadBbHeader),
    /// The data field ends after the datagram.
    #[error("a data field of {announced} octets, and {left} octets after the header of the BBFrame")]
    DataField {
        /// Length in the header, in octets.
        announced: usize,
        /// Octets after the header.
        left: usize,
    },
    /// The BBFrame has the number of an unknown site.
    #[error("a BBFrame of input stream {0}, which is not the number of a site")]
    Stream(u8),
    /// The BBFrame has no Input Stream Identifier, and there are several sites.
    #[error("a BBFrame without Input Stream Identifier, although there are several sites")]
    SingleStream,
}

/// Converts units to bodies.
///
/// **Push units; call [`pause`](Self::pause) when no more are pending; and [`poll`](Self::poll) at the time
/// of [`poll_at`](Self::poll_at).**
#[derive(Debug)]
pub struct Packager(Sending);

#[derive(Debug)]
enum Sending {
    Packed(packed::Packer),
    Ts(Box<ts::TsSender>),
    Gse(gse::GseSender),
}

impl Packager {
    /// Returns a packager that starts at the time `now`.
    pub fn new(
        now: Instant,
        packaging: &Packaging,
        others: &Others,
        config: PackagerConfig,
    ) -> Result<Self, PackagingError> {
        Ok(Self(match packaging {
            Packaging::Packed => Sending::Packed(packed::Packer::new(config)?),
            Packaging::Ts { .. } => Sending::Ts(Box::new(ts::TsSender::new(now, packaging, others, config)?)),
            Packaging::Gse { flush, npa, .. } => {
                Sending::Gse(gse::GseSender::new(*flush, *npa, others, config)?)
            }
        }))
    }

    /// Maximum size of a unit in octets.
    pub const fn largest_unit(&self) -> usize {
        match &self.0 {
            Sending::Packed(packer) => packer.largest_unit(),
            Sending::Ts(_) => ts::LARGEST_UNIT,
            Sending::Gse(_) => gse::LARGEST_UNIT,
        }
    }

    /// True if the next unit would be rejected, since the queue of a stream of constant rate is full. Until
    /// [`poll`](Self::poll) changes this, units should wait in a queue that drops with a reason.
    pub fn is_full(&self) -> bool {
        match &self.0 {
            Sending::Ts(sender) => sender.is_full(),
            Sending::Packed(_) | Sending::Gse(_) => false,
        }
    }

    /// Adds a unit. Full bodies are passed to `sink`.
    pub fn push(&mut self, now: Instant, unit: Unit<'_>, sink: BodySink<'_>) -> Result<(), PushError> {
        match &mut self.0 {
            Sending::Packed(packer) => packer.push(unit, sink),
            Sending::Ts(sender) => sender.push(now, unit, sink),
            Sending::Gse(sender) => sender.push(now, unit, sink),
        }
    }

    /// Limits packed bodies of several units to this number of octets from now on; larger units are sent
    /// alone. The loss of one datagram then costs at most this much.
    pub fn keep_together(&mut self, octets: usize) {
        if let Sending::Packed(packer) = &mut self.0 {
            packer.keep_together(octets);
        }
    }

    /// Limits packed bodies to this number of octets from now on, except the one that is unfinished.
    pub fn limit(&mut self, octets: usize) {
        if let Sending::Packed(packer) = &mut self.0 {
            packer.limit(octets);
        }
    }

    /// Gives the memory of packed bodies back, which is allocated again for the next unit.
    pub fn give_back(&mut self) {
        if let Sending::Packed(packer) = &mut self.0 {
            packer.give_back();
        }
    }

    /// Reports that no more units are pending: an incomplete body is sent now, or after the waiting time of
    /// the configuration.
    pub fn pause(&mut self, now: Instant, sink: BodySink<'_>) {
        match &mut self.0 {
            Sending::Packed(packer) => packer.pause(sink),
            Sending::Ts(sender) => sender.pause(now, sink),
            Sending::Gse(sender) => sender.pause(now, sink),
        }
    }

    /// Time of the next call of [`poll`](Self::poll), if no unit is pushed before.
    pub fn poll_at(&self) -> Option<Instant> {
        match &self.0 {
            Sending::Packed(_) => None,
            Sending::Ts(sender) => sender.poll_at(),
            Sending::Gse(sender) => sender.poll_at(),
        }
    }

    /// Sends bodies that have waited long enough, periodic tables, and packets that are due at a constant
    /// rate.
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

    /// Counters since the start.
    pub fn counters(&self) -> PackagerCounters {
        match &self.0 {
            Sending::Packed(packer) => packer.counters(),
            Sending::Ts(sender) => sender.counters(),
            Sending::Gse(sender) => sender.counters(),
        }
    }
}

/// Extracts units from bodies. It allocates its memory when it is created.
#[derive(Debug)]
pub struct Unpackager(Receiving);

#[derive(Debug)]
enum Receiving {
    Packed(Box<packed::Unpacker>),
    Ts(Box<ts::TsReceiver>),
    Gse(Box<gse::GseReceiver>),
}

impl Unpackager {
    /// Returns an unpackager for bodies of all other ends: in TS each has its PID, which is that of this site
    /// if the configuration has none. If datagrams of several peers are identified by other means than the PID, as
    /// with GSE or a common PID, each peer needs its own: [`of_peer`](Self::of_peer).
    ///
    /// The sender of a unit is identified by PID, or in GSE by the Input Stream Identifier, which is the
    /// number of a site: sites of a mesh by their number, peers by their index in the configuration, from 1.
    pub fn new(
        packaging: &Packaging,
        others: &Others,
        largest_unit: usize,
        bridged: bool,
    ) -> Result<Self, PackagingError> {
        Ok(Self(match packaging {
            Packaging::Packed => Receiving::Packed(Box::new(packed::Unpacker::new(largest_unit, bridged))),
            Packaging::Ts { pid, npa, .. } => {
                Receiving::Ts(Box::new(ts::TsReceiver::new(*pid, *npa, others, largest_unit)?))
            }
            Packaging::Gse { npa, total_length, divided, .. } => {
                let options = gse::ReceiverOptions { total_length: *total_length, divided: *divided };
                Receiving::Gse(Box::new(gse::GseReceiver::new(*npa, others, largest_unit, options)))
            }
        }))
    }

    /// Returns an unpackager for bodies of this peer only. It does not identify the sender.
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

    /// Processes a body, and passes the units that end in it to `sink`, in the order of pushing.
    pub fn receive(&mut self, body: BodyIn<'_>, sink: UnitSink<'_>) -> Result<(), UnpackError> {
        match &mut self.0 {
            Receiving::Packed(unpacker) => unpacker.receive(body, sink),
            Receiving::Ts(receiver) => receiver.receive(body.octets, sink),
            Receiving::Gse(receiver) => receiver.receive(body.octets, sink),
        }
    }

    /// Reports a missing body before the next one, or a late one: incomplete units are discarded.
    pub fn resynchronize(&mut self) {
        match &mut self.0 {
            Receiving::Ts(receiver) => receiver.resynchronize(),
            Receiving::Gse(receiver) => receiver.resynchronize(),
            // Packed bodies contain complete units.
            Receiving::Packed(_) => {}
        }
    }

    /// Processes octets of a file or pipe with TS Packets at intervals of 188, 192 or 204 octets, from any
    /// position on. Other packagings ignore them.
    pub fn receive_stream(&mut self, octets: &[u8], sink: UnitSink<'_>) {
        if let Receiving::Ts(receiver) = &mut self.0 {
            receiver.receive_stream(octets, sink);
        }
    }

    /// Processes the end of the stream.
    pub fn finish_stream(&mut self, sink: UnitSink<'_>) {
        if let Receiving::Ts(receiver) = &mut self.0 {
            receiver.finish_stream(sink);
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> UnpackagerCounters {
        match &self.0 {
            Receiving::Packed(unpacker) => unpacker.counters(),
            Receiving::Ts(receiver) => receiver.counters(),
            Receiving::Gse(receiver) => receiver.counters(),
        }
    }
}

/// Returns the Type of a unit other than an Ethernet frame.
const fn ether_type(protocol: Protocol) -> Option<EtherType> {
    match protocol {
        Protocol::Rohc => Some(EtherType::ROHC),
        Protocol::Ipv4 => Some(EtherType::IPV4),
        Protocol::Ipv6 => Some(EtherType::IPV6),
        Protocol::Bridged => None,
    }
}

/// Returns the kind of unit with a Type, if there is one.
fn protocol(ether_type: EtherType) -> Option<Protocol> {
    [Protocol::Rohc, Protocol::Ipv4, Protocol::Ipv6]
        .into_iter()
        .find(|protocol| self::ether_type(*protocol) == Some(ether_type))
}

/// Returns the destination site of a unit, from its address: this site, if it is its own.
fn to(destination: Option<Npa>, own: Option<(Npa, SiteId)>) -> Option<SiteId> {
    let (npa, site) = own?;
    (destination == Some(npa)).then_some(site)
}

/// Properties of a received unit besides its octets.
#[derive(Clone, Copy, Debug)]
struct Whose {
    from: Option<SiteId>,
    to: Option<SiteId>,
    largest_unit: usize,
}

impl Whose {
    /// Delivers a unit, if there is one.
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
