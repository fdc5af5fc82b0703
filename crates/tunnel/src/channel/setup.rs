//! What a channel is told at start, and why there can be no such channel.

use std::time::Duration;

use thinair_rohc::{Integrity, Mode};

use crate::plan::ChannelPlan;
use crate::unit::SiteId;

/// What a channel is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'c> {
    /// The parameters that all ends have in common.
    pub plan: &'c ChannelPlan,
    /// Who is at the other end.
    pub role: Role<'c>,
    /// What the carrier vouches for: [`mtu`](crate::mtu) knows.
    pub integrity: Integrity,
    /// Whether Ethernet frames are carried instead of IP packets.
    pub bridged: bool,
    /// Whether the packaging tells the types of units apart, so that IP packets can go as they are.
    pub typed: bool,
    /// Octets of the longest IP packet that is sent, 576 or more.
    pub mtu: u16,
    /// Octets of the longest unit, 20 or more.
    pub largest_unit: usize,
    /// MRRU in octets; 0 forbids segments.
    pub mrru: u16,
    /// Least time from one unit with feedback to the next; zero: none. Where nobody vouches for what comes, answers should
    /// be few.
    pub feedback_interval: Duration,
    /// Randomness.
    pub seed: u64,
}

/// Who is at the other end of a channel.
#[derive(Clone, Copy, Debug)]
pub enum Role<'c> {
    /// One peer, that answers.
    Pair,
    /// One peer, or many, from whom nothing comes back.
    OneWay,
    /// A mesh, or a broadcast in one.
    Mesh {
        /// This site; `None`: it only hears.
        own: Option<SiteId>,
        /// All other sites.
        sites: &'c [SiteId],
        /// Whether receivers answer. Feedback of all of them is combined: a negative acknowledgment of one counts at once,
        /// positive ones and requests for a mode when all have sent one. A site that is silent or gone so holds O-mode and
        /// early ends of repetitions back, which costs octets and loses nothing.
        feedback: bool,
    },
}

/// Why there can be no such channel: the plan is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The parameters of the channel contradict each other.
    #[error("{0}")]
    Channel(thinair_rohc::ChannelError),
    /// The mode needs feedback, and there is no way back.
    #[error("mode {} needs feedback, and nothing comes back on this carrier: use mode u", .0.letter())]
    NoWayBack(Mode),
    /// The mode needs feedback, and receivers of a mesh do not answer.
    #[error("mode {} needs feedback: let all sites answer (`feedback`), or use mode u", .0.letter())]
    NobodyAnswers(Mode),
    /// R-mode waits for each acknowledgment, of one decompressor.
    #[error("mode r waits for one decompressor, and a mesh has many: use mode o or u")]
    ReliableMesh,
    /// Nothing fits.
    #[error("{0} octets are no room for a unit: at least 20 are needed")]
    Narrow(usize),
    /// A site is its own other, or there twice.
    #[error("site {0} is there twice")]
    Twice(u8),
}
