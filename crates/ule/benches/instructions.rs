//! Instructions of one SNDU; the machine's speed and load play no part.
//!
//! `cargo bench -p thinair-ule --features fast-crc --bench instructions` has valgrind count the instructions of one call of
//! `Encapsulator::push`, of `Encapsulator::pull`, and of as many calls of `Receiver::receive` as one SNDU takes; packed
//! SNDUs that begin in the middle of a TS Packet. It needs valgrind and `gungraun-runner` in the version of the `gungraun`
//! crate; `make bench` installs both. The bar for PDUs of 163 octets is 900 on each side with the feature. Without it, the
//! CRC takes an octet a step, and most of all instructions. `push_peer` and `receive_peer` are the crate `ule`, which
//! puts SNDUs together and apart; TS Packets of its own it does not make.

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;
use std::time::Duration;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, OutputFormat, library_benchmark, library_benchmark_group,
    main,
};
use thinair_ule::{
    Encapsulator, EncapsulatorConfig, EtherType, Packing, Pid, Receiver, ReceiverConfig, Since, Sndu, Source,
    TsPacket,
};
use thinair_wire::time::Instant;

/// SNDUs in front of the one that is measured.
const BEFORE: usize = 10;

#[library_benchmark]
#[bench::octets_43(Sender::ready(43))]
#[bench::octets_163(Sender::ready(163))]
#[bench::octets_1500(Sender::ready(1_500))]
fn push(sender: &'static mut Sender) {
    sender.push();
}

#[library_benchmark]
#[bench::octets_43(Sender::ready(43))]
#[bench::octets_163(Sender::ready(163))]
fn pull(sender: &'static mut Sender) {
    black_box(sender.encapsulator.pull(&mut sender.source).packet());
}

#[library_benchmark]
#[bench::octets_43(Stream::ready(43))]
#[bench::octets_163(Stream::ready(163))]
#[bench::octets_1500(Stream::ready(1_500))]
fn receive(stream: &'static mut Stream) -> usize {
    stream.receive()
}

#[library_benchmark]
#[bench::octets_163(Sender::ready(163))]
fn push_peer(sender: &'static mut Sender) -> usize {
    let sndu = ule::Sndu::new(ule::TypeField::EtherType(0x22F1), None, black_box(&sender.source.pdu));
    sndu.serialize_into(&mut sender.octets).expect("there is room")
}

#[library_benchmark]
#[bench::octets_163(Stream::ready(163))]
fn receive_peer(stream: &'static mut Stream) -> usize {
    stream.receive_peer()
}

library_benchmark_group!(name = sndu, benchmarks = [push, pull, receive, push_peer, receive_peer]);

main!(config = instructions_alone(), library_benchmark_groups = sndu);

/// Caches are not simulated.
fn instructions_alone() -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.format([EventKind::Ir]);
    let mut output = OutputFormat::default();
    output.truncate_description(Some(0));
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind).output_format(output);
    config
}

/// One PDU that never ends.
struct Endless {
    pdu: Vec<u8>,
}

impl Source for Endless {
    #[inline]
    fn peek(&self, _ahead: usize) -> Option<Sndu<'_>> {
        Some(Sndu::pdu(EtherType::ROHC, black_box(&self.pdu)))
    }

    fn take(&mut self, _count: usize) {}
}

struct Sender {
    encapsulator: Encapsulator,
    source: Endless,
    octets: Vec<u8>,
}

impl Sender {
    fn new(octets: usize) -> Self {
        let packing = Packing::Threshold { wait: Duration::from_millis(10), since: Since::First };
        let pid = Pid::new(0x35).expect("it has 13 bits");
        let config = EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid) };
        let source = Endless { pdu: (0..octets).map(|i| i as u8).collect() };
        Self { encapsulator: Encapsulator::new(config), source, octets: vec![0; 2_000] }
    }

    /// Never freed: what is measured frees nothing.
    fn ready(octets: usize) -> &'static mut Self {
        let mut sender = Self::new(octets);
        (0..BEFORE).for_each(|_| sender.push());
        Box::leak(Box::new(sender))
    }

    #[inline]
    fn push(&mut self) {
        let sndu = Sndu::pdu(EtherType::ROHC, black_box(&self.source.pdu));
        let pushed = self.encapsulator.push(Instant::ZERO, &sndu, &mut |packet| {
            black_box(packet);
        });
        pushed.expect("it can be sent");
    }
}

struct Stream {
    packets: Vec<TsPacket>,
    receiver: Receiver<'static>,
    peer: ule::UleReceiver,
}

impl Stream {
    /// The TS Packets that come next have one SNDU: the one that ends in the last of them.
    fn ready(octets: usize) -> &'static mut Self {
        let mut sender = Sender::new(octets);
        let mut packets = Vec::new();
        for _ in 0..4 * BEFORE {
            let sndu = Sndu::pdu(EtherType::ROHC, &sender.source.pdu);
            let pushed = sender
                .encapsulator
                .push(Instant::ZERO, &sndu, &mut |packet: &TsPacket| packets.push(*packet));
            pushed.expect("it can be sent");
        }
        let pid = Pid::new(0x35).expect("it has 13 bits");
        let mut receiver = Receiver::new(ReceiverConfig::new(pid), Box::leak(Box::new([0; 2_000])));
        let mut peer = ule::UleReceiver::new();
        // Up to a TS Packet behind which one SNDU comes alone.
        let (mut counts, mut before) = (Vec::new(), 0);
        for packet in &packets {
            let mut count = 0;
            receiver.receive(packet, &mut |_| count += 1);
            counts.push(count);
        }
        let mut receiver = Receiver::new(ReceiverConfig::new(pid), Box::leak(Box::new([0; 2_000])));
        let mut rest = packets.into_iter().zip(counts);
        let mut measured = Vec::new();
        for (packet, count) in rest.by_ref() {
            receiver.receive(&packet, &mut |_| ());
            peer.push(&packet[4..], packet[1] & 0x40 != 0);
            before += count;
            if before >= BEFORE {
                break;
            }
        }
        for (packet, count) in rest {
            measured.push(packet);
            if count > 0 {
                break;
            }
        }
        Box::leak(Box::new(Self { packets: measured, receiver, peer }))
    }

    #[inline]
    fn receive(&mut self) -> usize {
        let mut count = 0;
        for packet in &self.packets {
            self.receiver.receive(black_box(packet), &mut |delivery| {
                black_box(&delivery);
                count += 1;
            });
        }
        count
    }

    fn receive_peer(&mut self) -> usize {
        let mut count = 0;
        for packet in &self.packets {
            for sndu in self.peer.push(black_box(&packet[4..]), packet[1] & 0x40 != 0) {
                black_box(ule::Sndu::parse(&sndu).expect("it was sent").pdu());
                count += 1;
            }
        }
        count
    }
}
