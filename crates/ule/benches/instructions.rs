//! Instructions of ten SNDUs, independent of the machine's speed and load.
//!
//! `cargo bench -p thinair-ule --features fast-crc --bench instructions` has valgrind count the instructions of ten calls of
//! `Encapsulator::push`, of the calls of `Encapsulator::pull` that send ten PDUs, and of the calls of `Receiver::receive`
//! that deliver ten. SNDUs are packed, so some begin in the middle of a TS Packet, and some lie in two. It needs valgrind
//! and `gungraun-runner` in the version of the `gungraun` crate; `make bench` installs both.
//!
//! The limit for PDUs of 163 octets is 9,000 on each side, 900 an SNDU, with the feature `fast-crc`; without it, the CRC
//! processes an octet a step, and takes most of all instructions. `serialise_peer` and `receive_peer` are the crate
//! `ule`, which encodes and decodes SNDUs; it does not make TS Packets.

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;
use std::time::Duration;

use callgrind::instructions_alone;
use gungraun::{library_benchmark, library_benchmark_group, main};
use thinair_ule::{
    Encapsulator, EncapsulatorConfig, EtherType, Packing, Pid, Pulled, Receiver, ReceiverConfig, Since, Sndu,
    SnduSource, TsPacket,
};
use thinair_wire::time::Instant;

#[path = "../../rohc/benches/common/callgrind.rs"]
mod callgrind;

/// Number of SNDUs measured, and number of SNDUs before them.
const MEASURED: usize = 10;

#[library_benchmark]
#[bench::octets_43(SnduSender::ready(43))]
#[bench::octets_163(SnduSender::ready(163))]
#[bench::octets_1500(SnduSender::ready(1_500))]
fn push(sender: &'static mut SnduSender) {
    sender.push();
}

#[library_benchmark]
#[bench::octets_43(SnduSender::ready(43))]
#[bench::octets_163(SnduSender::ready(163))]
fn pull(sender: &'static mut SnduSender) {
    sender.pull();
}

#[library_benchmark]
#[bench::octets_43(TsStream::ready(43))]
#[bench::octets_163(TsStream::ready(163))]
#[bench::octets_1500(TsStream::ready(1_500))]
fn receive(stream: &'static mut TsStream) {
    stream.receive();
}

#[library_benchmark]
#[bench::octets_163(SnduSender::ready(163))]
fn serialise_peer(sender: &'static mut SnduSender) {
    sender.serialise_peer();
}

#[library_benchmark]
#[bench::octets_163(TsStream::ready(163))]
fn receive_peer(stream: &'static mut TsStream) {
    stream.receive_peer();
}

library_benchmark_group!(name = ten_sndus, benchmarks = [push, pull, receive, serialise_peer, receive_peer]);

main!(config = instructions_alone(), library_benchmark_groups = ten_sndus);

/// Source of identical PDUs.
struct Same {
    pdu: Vec<u8>,
    left: usize,
}

impl SnduSource for Same {
    #[inline]
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        (ahead < self.left).then(|| Sndu::pdu(EtherType::ROHC, black_box(&self.pdu)))
    }

    fn take(&mut self, count: usize) {
        self.left -= count;
    }
}

struct SnduSender {
    encapsulator: Encapsulator,
    source: Same,
    octets: Vec<u8>,
}

impl SnduSender {
    /// Leaks the sender, so that the measurement does not free it.
    fn ready(octets: usize) -> &'static mut Self {
        let packing = Packing::Threshold { wait: Duration::from_millis(10), since: Since::First };
        let config = EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) };
        let source = Same { pdu: (0..octets).map(|i| i as u8).collect(), left: MEASURED };
        let mut sender = Self { encapsulator: Encapsulator::new(config), source, octets: vec![0; 2_000] };
        sender.push();
        Box::leak(Box::new(sender))
    }

    fn push(&mut self) {
        for _ in 0..MEASURED {
            let sndu = Sndu::pdu(EtherType::ROHC, black_box(&self.source.pdu));
            let pushed = self.encapsulator.push(Instant::ZERO, &sndu, &mut |packet| {
                black_box(packet);
            });
            pushed.expect("it can be sent");
        }
    }

    fn pull(&mut self) {
        while let Pulled::Full(packet) | Pulled::Padded(packet) = self.encapsulator.pull(&mut self.source) {
            black_box(packet);
        }
    }

    fn serialise_peer(&mut self) {
        for _ in 0..MEASURED {
            let sndu = ule::Sndu::new(ule::TypeField::EtherType(0x22F1), None, black_box(&self.source.pdu));
            black_box(sndu.serialize_into(&mut self.octets).expect("there is room"));
        }
    }
}

struct TsStream {
    packets: Vec<TsPacket>,
    receiver: Receiver<'static>,
    peer: ule::UleReceiver,
}

impl TsStream {
    /// TS Packets with ten SNDUs.
    fn ready(octets: usize) -> &'static mut Self {
        let sender = SnduSender::ready(octets);
        sender.encapsulator.flush(&mut |_| ());
        let mut packets = Vec::new();
        while let Pulled::Full(packet) | Pulled::Padded(packet) = sender.encapsulator.pull(&mut sender.source)
        {
            packets.push(*packet);
        }
        let receiver = Receiver::new(ReceiverConfig::new(pid()), Box::leak(Box::new([0; 2_000])));
        Box::leak(Box::new(Self { packets, receiver, peer: ule::UleReceiver::new() }))
    }

    fn receive(&mut self) {
        let mut count = 0;
        for packet in &self.packets {
            self.receiver.receive(black_box(packet), &mut |delivery| {
                black_box(&delivery);
                count += 1;
            });
        }
        assert_eq!(count, MEASURED);
    }

    fn receive_peer(&mut self) {
        let mut count = 0;
        for packet in &self.packets {
            for sndu in self.peer.push(black_box(&packet[4..]), packet[1] & 0x40 != 0) {
                black_box(ule::Sndu::parse(&sndu).expect("it was sent").pdu());
                count += 1;
            }
        }
        assert_eq!(count, MEASURED);
    }
}

fn pid() -> Pid {
    Pid::new(0x35).expect("it has 13 bits")
}
