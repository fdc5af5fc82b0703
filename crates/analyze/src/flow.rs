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
    rtp: Option<RtpTrace>,
}

impl Flow {
    /// Octets of the application header of a packet of this flow: CoAP, or RTP from the second packet on.
    pub(crate) fn application_header(&mut self, packet: &Packet<'_>, coap: &CoapPorts) -> usize {
        if let Some(len) = packet.coap(coap) {
            return len;
        }
        let Some((trace, len)) = packet.rtp() else {
            self.rtp = None;
            return 0;
        };
        let goes_on = self.rtp.is_some_and(|before| trace.follows(before));
        self.rtp = Some(trace);
        if goes_on { len } else { 0 }
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
                rtp: None,
            });
            self.list.len() - 1
        });
        &mut self.list[at]
    }

    pub(crate) fn into_list(self) -> Vec<Flow> {
        self.list
    }
}
