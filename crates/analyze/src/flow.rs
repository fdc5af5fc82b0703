//! The flows of one capture, in order of appearance.

use std::collections::HashMap;

use thinair_rohc::profile::coap::CoapPorts;

use crate::course::Course;
use crate::packet::{FlowKey, Packet, RtpTrace};
use crate::sides::{Side, Sides};
use crate::tally::{Carried, Traffic};

/// One flow and what it has cost so far.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) key: FlowKey,
    /// Index of the input it is in.
    pub(crate) input: usize,
    pub(crate) side: Side,
    pub(crate) traffic: Traffic,
    /// What each scheme made of it, in the order of schemes.
    pub(crate) carried: Vec<Carried>,
    /// How that has grown.
    pub(crate) course: Course,
    pub(crate) rtp: Streams,
}

impl Flow {
    /// Octets of the application header of a packet of this flow: CoAP, or RTP from the second packet of a stream on.
    pub(crate) fn application_header(&mut self, packet: &Packet<'_>, coap: &CoapPorts) -> usize {
        if let Some(len) = packet.coap(coap) {
            return len;
        }
        match packet.rtp() {
            Some((trace, len)) if self.rtp.go_on(trace) => len,
            _ => 0,
        }
    }
}

/// The RTP streams of a flow, of which there may be several: each with an SSRC of its own.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The last packet of each, and how many in a row went on before it; the newest last.
    latest: Vec<(RtpTrace, u8)>,
    ssrcs: Vec<u32>,
}

impl Streams {
    /// Streams of a flow that are followed at a time.
    const FOLLOWED: usize = 4;

    /// SSRCs that are kept.
    const KEPT: usize = 8;

    /// Packets in a row that must go on before an SSRC is told.
    const PROOFS: u8 = 3;

    /// The SSRCs, in order of appearance.
    pub(crate) fn ssrcs(&self) -> &[u32] {
        &self.ssrcs
    }

    /// Whether a packet goes on with a stream.
    fn go_on(&mut self, trace: RtpTrace) -> bool {
        let at = self.latest.iter().position(|(before, _)| before.ssrc == trace.ssrc);
        let before = at.map(|at| self.latest.remove(at));
        if self.latest.len() == Self::FOLLOWED {
            self.latest.remove(0);
        }
        let proofs = match before {
            Some((before, proofs)) if trace.follows(before) => proofs.saturating_add(1),
            _ => 0,
        };
        self.latest.push((trace, proofs));
        let is_new = proofs == Self::PROOFS && !self.ssrcs.contains(&trace.ssrc);
        if is_new && self.ssrcs.len() < Self::KEPT {
            self.ssrcs.push(trace.ssrc);
        }
        proofs > 0
    }
}

/// All flows; those of one input can be looked up.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    list: Vec<Flow>,
    index: HashMap<FlowKey, usize>,
    sides: Sides,
    input: usize,
}

impl Flows {
    /// The next input begins: what comes now belongs to no flow of before.
    pub(crate) fn start(&mut self, input: usize) {
        self.index.clear();
        self.sides = Sides::default();
        self.input = input;
    }

    /// The flow of a packet, for `schemes` schemes.
    pub(crate) fn of(&mut self, packet: &Packet<'_>, schemes: usize) -> &mut Flow {
        let at = *self.index.entry(packet.key).or_insert_with(|| {
            self.list.push(Flow {
                key: packet.key,
                input: self.input,
                side: self.sides.of_flow(packet.key.source, packet.key.destination),
                traffic: Traffic::default(),
                carried: vec![Carried::default(); schemes],
                course: Course::new(schemes),
                rtp: Streams::default(),
            });
            self.list.len() - 1
        });
        &mut self.list[at]
    }

    /// Number of flows.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The flows, in order of appearance.
    pub(crate) fn list(&self) -> &[Flow] {
        &self.list
    }

    pub(crate) fn into_list(self) -> Vec<Flow> {
        self.list
    }
}
