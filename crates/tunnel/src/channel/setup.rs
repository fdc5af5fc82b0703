//! Parameters of a channel at its start, and reasons why they are invalid.

use std::time::Duration;

use thinair_rohc::{Integrity, Mode};

use crate::site_config::ChannelConfig;
use crate::unit::SiteId;

/// Parameters of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'c> {
    /// Parameters that are equal at all ends.
    pub config: &'c ChannelConfig,
    /// Receivers of the channel.
    pub role: Role<'c>,
    /// Integrity check of the carrier: see [`mtu`](crate::mtu).
    pub integrity: Integrity,
    /// True to carry Ethernet frames instead of IP packets.
    pub bridged: bool,
    /// True if the packaging transmits the types of units, so that IP packets can be sent uncompressed.
    pub typed: bool,
    /// Maximum size of an IP packet in octets, 576 or more.
    pub mtu: u16,
    /// Maximum size of a unit in octets, 20 or more.
    pub largest_unit: usize,
    /// MRRU in octets; 0 disables segments.
    pub mrru: u16,
    /// Minimum time between units with feedback; zero: none. Without an integrity check, it limits answers to
    /// forged packets.
    pub feedback_interval: Duration,
    /// Random seed.
    pub seed: u64,
}

/// Receivers of a channel.
#[derive(Clone, Copy, Debug)]
pub enum Role<'c> {
    /// One peer that answers.
    Pair,
    /// One or many peers that cannot answer.
    OneWay,
    /// A mesh, or a one-way broadcast.
    Mesh {
        /// This site; `None`: receiver only.
        own: Option<SiteId>,
        /// All other sites.
        sites: &'c [SiteId],
        /// True if receivers answer. Their feedback is combined: a negative acknowledgment of one takes
        /// effect at once, positive ones and mode requests when all have sent one. A site that is silent or
        /// gone thus delays O-mode and early ends of repetitions, which costs octets but no packets.
        feedback: bool,
    },
}

/// Reason why the parameters are invalid: the configuration is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The parameters of the ROHC channel contradict each other.
    #[error("{0}")]
    Channel(thinair_rohc::ChannelError),
    /// The mode needs feedback on a one-way carrier.
    #[error("mode {} needs feedback, and this carrier is one-way: use mode u", .0.letter())]
    NoWayBack(Mode),
    /// The mode needs feedback, and receivers of the mesh do not answer.
    #[error("mode {} needs feedback: set `feedback = true` in [mesh] at all sites, or use mode u", .0.letter())]
    NobodyAnswers(Mode),
    /// R-mode waits for the acknowledgment of every packet by a single decompressor.
    #[error("mode r supports a single decompressor, and a mesh has many: use mode o or u")]
    ReliableMesh,
    /// Units are too small.
    #[error("units of {0} octets are too small: the minimum is 20")]
    Narrow(usize),
    /// A site number occurs twice.
    #[error("site {0} is listed twice")]
    Twice(u8),
}
