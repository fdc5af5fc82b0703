//! What one node remembers of packets: those that it puts together, those whose fragments it hands on, and its ROHC.

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

/// Packets whose fragments a node hands on at a time.
const FORWARDED: usize = 16;

/// How long a packet may lack a fragment while its others are handed on: a round trip through a few full queues.
const FORWARDED_FOR: Duration = Duration::from_secs(2);

/// One node. Memory is taken when it is needed: most nodes are idle most of the time.
#[derive(Debug, Default)]
pub(super) struct Station {
    /// datagram_tag of the packet that was cut last.
    pub(super) tag: u16,
    /// The oldest first.
    assemblies: Vec<Assembly>,
    forwarder: Option<Box<Forwarder<FORWARDED>>>,
    /// By the node at the other end.
    pub(super) terminals: BTreeMap<u16, Terminal>,
    /// Frames that were sent for the first time, and nanoseconds that they had waited for that.
    pub(super) begun: u64,
    pub(super) waited: u64,
    /// What could not be used: packets, fragments.
    pub(super) refused: u64,
}

/// A packet of which fragments have come.
#[derive(Debug)]
struct Assembly {
    of: (Links, u16, u16),
    reassembler: Reassembler<Vec<u8>, 1>,
}

impl Station {
    /// What knows where fragments go on.
    pub(super) fn forwarder(&mut self) -> &mut Forwarder<FORWARDED> {
        self.forwarder.get_or_insert_with(|| Box::new(Forwarder::new(FORWARDED_FOR)))
    }

    /// Takes a fragment; a packet, if it was the last that was missing. The oldest of `most` packets is given up for another
    /// one.
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
