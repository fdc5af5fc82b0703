//! Sending side of a carrier: waiting packets, their compressor, the encapsulator, and TS packets that wait for their
//! slots.

use std::collections::{BTreeMap, VecDeque};

use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig, DecompressorMemory,
    Endpoint, Mode,
};
use thinair_ule::{
    Concat, Encapsulator, EncapsulatorConfig, EtherType, Packing, Pid, Sndu, SnduSource, TsPacket,
};
use thinair_wire::time::Instant;

use super::{BroadcastError, Filling, StreamCarrier};

/// Maximum number of octets by which compression may lengthen a packet.
const MARGIN: usize = 128;

/// Number of compressed packets from which a TS packet is filled: more than SNDUs of 9 octets that fit into one, and a
/// PDU-Concat more.
const AHEAD: usize = 40;

/// Maximum size of an SNDU with PDU-Concat, in octets.
const LONGEST_CONCAT: usize = 4_096;

/// End of a channel: a compressor, and a decompressor that only handles feedback.
pub(super) fn endpoint(config: CompressorConfig, mode: Mode) -> Endpoint<'static> {
    let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(config.channel) };
    Endpoint::new(
        Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(0))),
        Decompressor::new(decompressor, DecompressorMemory::owned(config.channel.sizes().blocks(0))),
    )
    .with_exchanges(Exchanges::owned(1), Exchanges::owned(1))
}

/// PDUs that are ready to be sent.
#[derive(Debug, Default)]
struct PduOutbox {
    pdus: VecDeque<Vec<u8>>,
    is_rohc: bool,
    spare: Vec<Vec<u8>>,
}

impl SnduSource for PduOutbox {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        let pdu = self.pdus.get(ahead)?;
        let kind = match pdu.first().map(|octet| octet >> 4) {
            _ if self.is_rohc => EtherType::ROHC,
            Some(4) => EtherType::IPV4,
            _ => EtherType::IPV6,
        };
        Some(Sndu::pdu(kind, pdu))
    }

    fn take(&mut self, count: usize) {
        self.spare.extend(self.pdus.drain(..count.min(self.pdus.len())));
    }
}

/// Counters of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SenderCounters {
    /// TS packets that were not null.
    pub(super) ts_packets: u64,
    /// Number of packets by whether they were IR, and the octets of their ROHC headers.
    pub(super) headers: BTreeMap<(bool, usize), u64>,
}

/// Sending end.
#[derive(Debug)]
pub(super) struct StreamSender {
    rohc: Option<Endpoint<'static>>,
    outbox: PduOutbox,
    encapsulator: Encapsulator,
    filling: Filling,
    concat: usize,
    /// TS packets that wait for their slots.
    ts: VecDeque<TsPacket>,
    pub(super) sent: SenderCounters,
}

impl StreamSender {
    /// Creates a sender. Without a channel packets are not compressed.
    pub(super) fn new(pid: Pid, carrier: &StreamCarrier, rohc: Option<(CompressorConfig, Mode)>) -> Self {
        let mut config = EncapsulatorConfig::new(pid);
        config.packing = match carrier.filling {
            Filling::Push { wait, since } => Packing::Threshold { wait, since },
            Filling::Pull => Packing::Off,
        };
        config.concat =
            (carrier.concat > 1).then_some(Concat { pdus: carrier.concat, octets: LONGEST_CONCAT });
        Self {
            outbox: PduOutbox { is_rohc: rohc.is_some(), ..PduOutbox::default() },
            rohc: rohc.map(|(config, mode)| endpoint(config, mode)),
            encapsulator: Encapsulator::new(config),
            filling: carrier.filling,
            concat: carrier.concat.max(1),
            ts: VecDeque::new(),
            sent: SenderCounters::default(),
        }
    }

    /// Handles feedback of the other end.
    pub(super) fn feedback(&mut self, now: Instant, octets: &[u8]) {
        if let Some(rohc) = &mut self.rohc {
            // No packet follows the feedback, so nothing is delivered.
            let _ = rohc.receive(now, octets, &mut []);
        }
    }

    /// True if another packet would be sent at once.
    pub(super) fn is_ready(&self) -> bool {
        match self.filling {
            Filling::Push { .. } => self.ts.is_empty(),
            Filling::Pull => self.outbox.pdus.len() < AHEAD,
        }
    }

    /// Compresses a packet. It stays in the outbox until [`go`](Self::go) or a slot.
    pub(super) fn take(&mut self, now: Instant, packet: &[u8]) -> Result<(), BroadcastError> {
        let mut pdu = self.outbox.spare.pop().unwrap_or_default();
        match &mut self.rohc {
            None => packet.clone_into(&mut pdu),
            Some(rohc) => {
                pdu.resize(packet.len() + MARGIN, 0);
                let compressed = rohc.send(now, packet, &mut pdu)?;
                let len = compressed.len;
                pdu.truncate(len);
                let is_ir = compressed.format == thinair_rohc::Format::Ir;
                *self.sent.headers.entry((is_ir, compressed.header_out)).or_default() += 1;
            }
        }
        self.outbox.pdus.push_back(pdu);
        Ok(())
    }

    /// Number of packets that are sent together, and are best passed together.
    pub(super) fn batch(&self) -> usize {
        self.concat
    }

    /// Packs the packets of the outbox into TS packets, if PDUs set the pace. Afterwards poll it at
    /// [`poll_at`](Self::poll_at).
    pub(super) fn go(&mut self, now: Instant) -> Result<(), BroadcastError> {
        if let Filling::Push { .. } = self.filling {
            self.encapsulator.drain(now, &mut self.outbox, &mut |packet| self.ts.push_back(*packet))?;
        }
        Ok(())
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.encapsulator.poll_at()
    }

    /// Handles a possible end of the Packing Threshold. It ends the wait for another packet, so it has no effect if one
    /// already waits, and applies only to the TS packets before it.
    pub(super) fn poll(&mut self, now: Instant, another_waits: bool) {
        if another_waits {
            return;
        }
        self.encapsulator.poll(now, &mut |packet| self.ts.push_back(*packet));
    }

    /// TS packet of a slot; `None` is a null packet.
    pub(super) fn slot(&mut self) -> Option<TsPacket> {
        let packet = match self.filling {
            Filling::Push { .. } => self.ts.pop_front(),
            Filling::Pull => match self.encapsulator.pull(&mut self.outbox) {
                thinair_ule::Pulled::Full(packet) | thinair_ule::Pulled::Padded(packet) => Some(*packet),
                thinair_ule::Pulled::Null => None,
            },
        };
        self.sent.ts_packets += u64::from(packet.is_some());
        packet
    }
}
