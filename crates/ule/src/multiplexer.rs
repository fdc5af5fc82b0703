//! Multiplex of one ULE stream at a constant rate: each slot has PSI, if it is due, else data, else a null packet.

use core::time::Duration;
use thinair_wire::time::Instant;

use crate::encapsulator::{Encapsulator, Pulled};
use crate::psi::{Pat, Pmt, Program, TooMany};
use crate::source::SnduSource;
use crate::ts::{Cc, LEN, NULL_PACKET, Pid, TsPacket};

/// Settings of the multiplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiplexerConfig {
    /// Interval of the Program Association Table; usually 100 to 500 ms. Zero sends PSI only.
    pub psi_every: Duration,
    /// Number of the multiplex.
    pub transport_stream_id: u16,
    /// Number of the program, not 0.
    pub program_number: u16,
    /// PID of its PMT.
    pub pmt_pid: Pid,
    /// Version of both tables, 0 to 31; increases when they change.
    pub version: u8,
}

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplexSlot<'m> {
    /// A table.
    Psi(&'m TsPacket),
    /// SNDUs, with or without padding.
    Data(&'m TsPacket),
    /// A null packet.
    Null,
}

impl<'m> MultiplexSlot<'m> {
    /// Returns the TS Packet.
    pub const fn packet(self) -> &'m TsPacket {
        match self {
            Self::Psi(packet) | Self::Data(packet) => packet,
            Self::Null => &NULL_PACKET,
        }
    }
}

/// Determines each next TS Packet of a multiplex.
#[derive(Clone, Debug)]
pub struct Multiplexer {
    encapsulator: Encapsulator,
    psi_every: Duration,
    pat: TsPacket,
    pmt: TsPacket,
    cc: Cc,
    /// Time of the next PAT.
    due: Instant,
    pmt_follows: bool,
}

impl Multiplexer {
    /// Creates a multiplex with the stream of this Encapsulator. The first slot has PSI.
    pub fn new(config: MultiplexerConfig, encapsulator: Encapsulator) -> Result<Self, TooMany> {
        let MultiplexerConfig { psi_every, transport_stream_id, program_number, pmt_pid, version } = config;
        let programs = [Program { number: program_number, pid: pmt_pid }];
        let streams = [encapsulator.config().pid];
        let pat = Pat { transport_stream_id, version, programs: &programs };
        let pmt = Pmt { program_number, version, streams: &streams };
        Ok(Self {
            psi_every,
            pat: pat.packet(Cc::default())?,
            pmt: pmt.packet(pmt_pid, Cc::default())?,
            cc: Cc::default(),
            due: Instant::ZERO,
            pmt_follows: false,
            encapsulator,
        })
    }

    /// Returns the Encapsulator of the stream.
    pub const fn encapsulator(&self) -> &Encapsulator {
        &self.encapsulator
    }

    /// Returns the TS Packet of the slot that begins `now`.
    pub fn next(&mut self, now: Instant, source: &mut impl SnduSource) -> MultiplexSlot<'_> {
        if self.pmt_follows {
            self.pmt_follows = false;
            set_cc(&mut self.pmt, self.cc);
            self.cc = self.cc.next();
            return MultiplexSlot::Psi(&self.pmt);
        }
        if self.due <= now {
            self.due = now + self.psi_every;
            self.pmt_follows = true;
            set_cc(&mut self.pat, self.cc);
            return MultiplexSlot::Psi(&self.pat);
        }
        match self.encapsulator.pull(source) {
            Pulled::Full(packet) | Pulled::Padded(packet) => MultiplexSlot::Data(packet),
            Pulled::Null => MultiplexSlot::Null,
        }
    }
}

/// Both tables are sent equally often, so they share a Continuity Counter.
fn set_cc(packet: &mut TsPacket, cc: Cc) {
    packet[3] = packet[3] & 0xF0 | cc.value();
}

/// Start times of the slots of a constant rate. They are computed from the start, so that rounding errors do not
/// accumulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClock {
    start: Instant,
    bits_per_second: u64,
    slots: u64,
}

impl SlotClock {
    /// Bits of a TS Packet.
    const BITS: u64 = 8 * LEN as u64;

    /// Creates the slots from `start` on, at `bits_per_second` for whole TS Packets, headers included; a rate of zero
    /// means one.
    pub const fn new(start: Instant, bits_per_second: u64) -> Self {
        let bits_per_second = if bits_per_second == 0 { 1 } else { bits_per_second };
        Self { start, bits_per_second, slots: 0 }
    }

    /// Returns the start of the next slot.
    pub fn next_at(&self) -> Instant {
        self.at(0)
    }

    /// Returns the start of the slot `ahead` slots after the next one.
    pub fn at(&self, ahead: u64) -> Instant {
        let bits = (u128::from(self.slots) + u128::from(ahead)) * u128::from(Self::BITS);
        let nanos = (bits * 1_000_000_000).div_ceil(u128::from(self.bits_per_second));
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Advances to the following slot, if the next one has begun. Repeated until it returns `false`, it counts the slots
    /// that are due.
    pub fn advance(&mut self, now: Instant) -> bool {
        let due = self.next_at() <= now;
        self.slots += u64::from(due);
        due
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::encapsulator::EncapsulatorConfig;
    use crate::psi::Finder;
    use crate::queue::PduQueue;
    use crate::sndu::Sndu;
    use crate::ts::TsHeader;
    use crate::type_field::EtherType;
    use std::vec::Vec;

    fn pid(value: u16) -> Pid {
        Pid::new(value).unwrap()
    }

    #[test]
    fn each_slot_has_what_is_due() {
        let config = MultiplexerConfig {
            psi_every: Duration::from_millis(4),
            transport_stream_id: 1,
            program_number: 1,
            pmt_pid: pid(0x100),
            version: 0,
        };
        let encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid(0x35)));
        let mut multiplexer = Multiplexer::new(config, encapsulator).unwrap();
        let mut octets = [0; 1_000];
        let mut queue = PduQueue::<4>::new(&mut octets);
        queue.push(&Sndu::pdu(EtherType::IPV6, &[1; 300])).unwrap();
        let mut pids = Vec::new();
        let mut finder = Finder::<1, 1>::new();
        for i in 0..12 {
            let packet = *multiplexer.next(Instant::from_millis(i), &mut queue).packet();
            let header = TsHeader::read(&packet).unwrap();
            pids.push((header.pid.value(), header.cc.value()));
            finder.receive(&packet);
        }
        let expected = [
            (0x0000, 0),
            (0x0100, 0),
            (0x0035, 0),
            (0x0035, 1),
            (0x0000, 1),
            (0x0100, 1),
            (0x1FFF, 0),
            (0x1FFF, 0),
            (0x0000, 2),
            (0x0100, 2),
            (0x1FFF, 0),
            (0x1FFF, 0),
        ];
        assert_eq!(pids, expected);
        assert!(finder.streams().map(|stream| stream.pid.value()).eq([0x35]));
    }

    #[test]
    fn slots_keep_their_rate() {
        // 2,331.78 TS Packets a second: 10 s have 23,317.8, and the first is due at once.
        let mut pace = SlotClock::new(Instant::from_millis(5), 3_507_000);
        let mut slots = 0;
        while pace.advance(Instant::from_millis(10_005)) {
            slots += 1;
        }
        assert_eq!(slots, 23_318);
        assert!(pace.next_at() > Instant::from_millis(10_005));
        let mut slow = SlotClock::new(Instant::ZERO, 0);
        assert!(slow.advance(Instant::ZERO) && !slow.advance(Instant::from_millis(1_503_999)));
        assert!(slow.advance(Instant::from_millis(1_504_000)));
    }
}
