//! Patterns: contexts that hold the SYN of a connection, or its SYN-ACK, for those of others to be replicated from.
//!
//! The context of a connection that is over is a poor base for the next one (RFC 4164): its window is another one, its
//! acknowledgment number is none, and its options are not those of a SYN. So the SYN of a third connection goes by a context
//! of its own, in which no other packet follows: where there were two before, more will come. Once it is acknowledged it is the
//! base of those that come after it, and what is left to be said are numbers and ports.

use thinair_wire::header::protocol;

use super::segment::TcpSegment;
use super::state::{SYN, TcpRoom, TcpState};
use crate::compressor::FlowKey;
use crate::profile::ProfileId;

/// What SYNs have in common that one pattern serves: hosts, the port of the service, and options in one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern<'a>(&'a TcpSegment<'a>);

impl<'a> Pattern<'a> {
    /// That of a SYN; `None` for other segments.
    pub(crate) fn of(segment: &'a TcpSegment<'a>) -> Option<Self> {
        (segment.rsf() == SYN).then_some(Self(segment))
    }

    /// Whether a context holds it.
    pub(crate) fn is_in(&self, room: &TcpRoom) -> bool {
        let (ours, theirs) = (&self.0.state(), &room.0);
        let mut options = theirs.options;
        theirs.rsf == SYN
            && (service(ours), ours.ack_flag) == (service(theirs), theirs.ack_flag)
            && self.0.suits(room)
            && options.read(self.0.options).is_some()
            && options.structure() == theirs.options.structure()
    }

    /// Whether the context that holds it says the same by its options, but for timestamps.
    pub(crate) fn is_like(&self, room: &TcpRoom) -> bool {
        room.0.options.says_all_of(self.0.options)
    }
}

/// The port that stays, which is that of the service.
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
