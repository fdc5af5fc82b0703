//! State of one node: reassemblies, forwarded packets, and ROHC.

use core::time::Duration;
use std::collections::BTreeMap;

use thinair_lowpan::forward::Forwarder;
use thinair_lowpan::fragment::FragmentHeader;
use thinair_lowpan::reassembly::{
    DatagramKind, FragmentOutcome, Reassembler, ReassemblySlot, TIMEOUT, WhenFull,
};
use thinair_lowpan::{Links, LowpanSettings};
use thinair_wire::time::Instant;

use thinair_emulator::Terminal;

/// Maximum number of packets whose fragments a node forwards at a time.
const FORWARDED: usize = 16;

/// Time after which the forwarding state of an incomplete packet expires: a round trip through a few full queues.
const FORWARDED_FOR: Duration = Duration::from_secs(2);

/// One node. Memory is allocated when it is needed: most nodes are idle most of the time.
#[derive(Debug, Default)]
pub(super) struct Station {
    /// datagram_tag of the latest fragmented packet.
    pub(super) tag: u16,
    /// Reassemblies, oldest first.
    assemblies: Vec<Assembly>,
    forwarder: Option<Box<Forwarder<FORWARDED>>>,
    /// ROHC state by the node at the other end.
    pub(super) terminals: BTreeMap<u16, Terminal>,
    /// Number of frames sent for the first time, and nanoseconds that they had waited.
    pub(super) begun: u64,
    pub(super) waited: u64,
    /// Number of rejected packets and fragments.
    pub(super) refused: u64,
}

/// Packet of which some fragments have arrived.
#[derive(Debug)]
struct Assembly {
    of: (Links, u16, u16),
    reassembler: Reassembler<Vec<u8>, 1>,
}

impl Station {
    /// Forwarding state of fragments.
    pub(super) fn forwarder(&mut self) -> &mut Forwarder<FORWARDED> {
        self.forwarder.get_or_insert_with(|| Box::new(Forwarder::new(FORWARDED_FOR)))
    }

    /// Handles a fragment. Returns the packet if it was the last missing one. Of `most` reassemblies, the oldest is
    /// dropped for another one.
    pub(super) fn assemble(
        &mut self,
        now: Instant,
        settings: &LowpanSettings,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
        most: usize,
    ) -> Option<(DatagramKind, Vec<u8>)> {
        self.assemblies.retain(|assembly| assembly.reassembler.poll_timeout().is_some_and(|at| at > now));
        let of = (links, header.datagram_size, header.datagram_tag);
        let at = match self.assemblies.iter().position(|assembly| assembly.of == of) {
            Some(at) => at,
            None => {
                if self.assemblies.len() >= most {
                    self.assemblies.remove(0);
                    self.refused += 1;
                }
                let slot = ReassemblySlot::new(vec![0; usize::from(header.datagram_size)]);
                let reassembler = Reassembler::new([slot], TIMEOUT, WhenFull::Refuse);
                self.assemblies.push(Assembly { of, reassembler });
                self.assemblies.len() - 1
            }
        };
        let assembly = self.assemblies.get_mut(at)?;
        let whole = match assembly.reassembler.receive(now, settings, links, header, content) {
            Ok(FragmentOutcome::Complete(datagram)) => Some((datagram.kind, datagram.octets.to_vec())),
            Ok(FragmentOutcome::Waiting | FragmentOutcome::Duplicate | FragmentOutcome::BegunAnew) => {
                return None;
            }
            Err(_) => None,
        };
        self.assemblies.remove(at);
        self.refused += u64::from(whole.is_none());
        whole
    }
}
