//! Reception of several streams of one multiplex, each with its Receiver.

use crate::receiver::{Delivery, Receiver};
use crate::ts::{self, NotWhole, Pid, TsHeader, TsPacket};

/// Counters of a [`Demultiplexer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DemultiplexerCounters {
    /// TS Packets of all PIDs.
    pub ts_packets: u64,
    /// Null packets.
    pub nulls: u64,
    /// TS Packets of PIDs without a Receiver, null packets not counted.
    pub others: u64,
    /// TS Packets that do not begin with 0x47.
    pub sync_errors: u64,
    /// Datagrams that do not consist of whole TS Packets.
    pub bad_datagrams: u64,
}

/// Passes each TS Packet to the Receiver of its PID; if there are two of a PID, to the first.
///
/// Receivers are few, so they are searched one by one, and lie in the caller's memory.
#[derive(Debug)]
pub struct Demultiplexer<'r, 'm> {
    receivers: &'r mut [Receiver<'m>],
    counters: DemultiplexerCounters,
}

impl<'r, 'm> Demultiplexer<'r, 'm> {
    /// Creates a demultiplexer for these streams.
    pub fn new(receivers: &'r mut [Receiver<'m>]) -> Self {
        Self { receivers, counters: DemultiplexerCounters::default() }
    }

    /// Returns the Receivers, with their counters.
    pub const fn receivers(&self) -> &[Receiver<'m>] {
        self.receivers
    }

    /// Returns the Receivers, to join and leave groups.
    pub const fn receivers_mut(&mut self) -> &mut [Receiver<'m>] {
        self.receivers
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &DemultiplexerCounters {
        &self.counters
    }

    /// Processes a TS Packet of any PID; SNDUs that end in it are passed to `out`, with the PID.
    ///
    /// A packet without sync byte has no PID: it is counted here, and its Receiver detects a gap.
    pub fn receive(&mut self, packet: &TsPacket, out: &mut impl FnMut(Pid, Delivery<'_>)) {
        self.counters.ts_packets += 1;
        let Ok(TsHeader { pid, .. }) = TsHeader::read(packet) else {
            self.counters.sync_errors += 1;
            return;
        };
        match self.receivers.iter_mut().find(|receiver| receiver.pid() == pid) {
            Some(receiver) => receiver.receive(packet, &mut |delivery| out(pid, delivery)),
            None if pid == Pid::NULL => self.counters.nulls += 1,
            None => self.counters.others += 1,
        }
    }

    /// Processes the TS Packets of a datagram: usually 7, but any number is accepted.
    pub fn receive_datagram(
        &mut self,
        datagram: &[u8],
        out: &mut impl FnMut(Pid, Delivery<'_>),
    ) -> Result<(), NotWhole> {
        let packets = ts::packets(datagram).inspect_err(|_| self.counters.bad_datagrams += 1)?;
        for packet in packets {
            self.receive(packet, out);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::encapsulator::{Encapsulator, EncapsulatorConfig};
    use crate::receiver::{Payload, ReceiverConfig};
    use crate::sndu::Sndu;
    use crate::type_field::EtherType;
    use std::vec::Vec;
    use thinair_wire::time::Instant;

    fn pid(value: u16) -> Pid {
        Pid::new(value).unwrap()
    }

    fn packets(pid: Pid, pdu: &[u8]) -> Vec<TsPacket> {
        let mut packets = Vec::new();
        let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid));
        let sndu = Sndu::pdu(EtherType::IPV6, pdu);
        encapsulator.push(Instant::ZERO, &sndu, &mut |packet| packets.push(*packet)).unwrap();
        packets
    }

    #[test]
    fn streams_are_distinguished_though_their_packets_mingle() {
        let streams =
            [packets(pid(0x30), &[1; 500]), packets(pid(0x31), &[2; 500]), packets(pid(0x32), &[3; 500])];
        let mut datagram = Vec::new();
        for i in 0..3 {
            streams.iter().for_each(|packets| datagram.extend(packets[i]));
            datagram.extend(ts::NULL_PACKET);
        }
        let mut buffers = [[0; 600]; 2];
        let mut receivers: Vec<_> = buffers
            .iter_mut()
            .zip([0x30, 0x31])
            .map(|(buffer, value)| Receiver::new(ReceiverConfig::new(pid(value)), buffer))
            .collect();
        let mut demultiplexer = Demultiplexer::new(&mut receivers);
        let mut got = Vec::new();
        let mut out = |pid: Pid, delivery: Delivery<'_>| match delivery.payload {
            Payload::Pdu(EtherType::IPV6, pdu) => got.push((pid.value(), pdu[0], pdu.len())),
            _ => panic!("nothing else was sent"),
        };
        demultiplexer.receive_datagram(&datagram, &mut out).unwrap();
        assert_eq!(demultiplexer.receive_datagram(&datagram[..187], &mut out), Err(NotWhole { octets: 187 }));
        demultiplexer.receive(&[0x48; ts::LEN], &mut out);
        assert_eq!(got, [(0x30, 1, 500), (0x31, 2, 500)]);
        let expected =
            DemultiplexerCounters { ts_packets: 13, nulls: 3, others: 3, sync_errors: 1, bad_datagrams: 1 };
        assert_eq!(demultiplexer.counters(), &expected);
        assert!(demultiplexer.receivers().iter().all(|receiver| receiver.counters().delivered == 1));
    }
}
