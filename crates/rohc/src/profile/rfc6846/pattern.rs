//! Patterns: contexts that hold the SYN or SYN-ACK of a connection, from which those of others are replicated.
//!
//! The context of a connection that is over is a poor base for the next one (RFC 4164): its window differs, its acknowledgment
//! number is useless, and its options are not those of a SYN. The SYN of a third connection therefore uses a context of its
//! own, without other packets: after two connections, more are likely. Once it is acknowledged it is the base of later ones, so
//! that only numbers and ports have to be sent.

use thinair_wire::header::protocol;

use super::segment::TcpSegment;
use super::state::{SYN, TcpRoom, TcpState};
use crate::compressor::FlowKey;
use crate::id::ProfileId;

/// Common properties of the SYNs that one pattern serves: hosts, the port of the service, and options in one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern<'a>(&'a TcpSegment<'a>);

impl<'a> Pattern<'a> {
    /// Returns the pattern of a SYN; `None` for other segments.
    pub(crate) fn of(segment: &'a TcpSegment<'a>) -> Option<Self> {
        (segment.rsf() == SYN).then_some(Self(segment))
    }

    /// True if a context holds it.
    pub(crate) fn is_in(&self, room: &TcpRoom) -> bool {
        let (ours, theirs) = (&self.0.state(), &room.0);
        let mut options = theirs.options;
        theirs.rsf == SYN
            && (service(ours), ours.ack_flag) == (service(theirs), theirs.ack_flag)
            && self.0.suits(room)
            && options.read(self.0.options).is_some()
            && options.structure() == theirs.options.structure()
    }

    /// True if the context that holds it has equal options, except for timestamps.
    pub(crate) fn is_like(&self, room: &TcpRoom) -> bool {
        room.0.options.holds_all_of(self.0.options)
    }
}

/// Returns the port that does not change, which is that of the service.
fn service(state: &TcpState) -> u16 {
    if state.ack_flag { state.source_port } else { state.destination_port }
}

impl FlowKey for Pattern<'_> {
    fn key(&self, mut word: impl FnMut(u64)) {
        let state = &self.0.state();
        self.0.hosts(&mut word);
        // Above the ports of a flow, so that no flow has the same words.
        let what = 1 << 48 | u64::from(state.ack_flag) << 32 | u64::from(service(state));
        word(what << 8 | u64::from(protocol::TCP));
        word(ProfileId::Tcp as u64);
    }
}
