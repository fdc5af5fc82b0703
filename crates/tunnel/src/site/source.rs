//! What is received of one peer, or of one other site of a mesh.

use std::net::SocketAddr;

use thinair_wire::time::Instant;

use super::Trouble;
use crate::packaging::Unpackager;
use crate::status::PeerCounters;
use crate::unit::SiteId;

/// One of the others, as it is heard.
pub(super) struct Source {
    pub(super) name: String,
    /// Its number in a mesh.
    pub(super) id: Option<SiteId>,
    /// Of its own, where a seal tells whose a body is.
    pub(super) unpackager: Option<Unpackager>,
    pub(super) counters: PeerCounters,
    /// Where its newest datagram came from.
    pub(super) address: Option<SocketAddr>,
    /// When it was heard, and when it agreed on keys.
    pub(super) heard_at: Option<Instant>,
    pub(super) session_at: Option<Instant>,
    /// What is wrong, and since when.
    pub(super) trouble: Option<(Trouble, Instant)>,
}
