#![no_main]
//! TS Packets: a Receiver handles any of them without a panic; output of an Encapsulator in any mode is restored, and
//! an undisturbed stream delivers only what was sent.

use std::collections::VecDeque;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_ule::psi::Finder;
use thinair_ule::{
    AfterBadCrc, Concat, Demultiplexer, Encapsulator, EncapsulatorConfig, EtherType, Lenience, Npa,
    NpaFilter, Packing, Payload, Pid, Pulled, Receiver, ReceiverConfig, Since, Sndu, SnduSource,
    Synchronizer, TsPacket,
};
use thinair_wire::time::Instant;

#[derive(Arbitrary, Debug)]
enum TsInput {
    /// TS Packets; the PID of most is ours.
    Packets { lenient: [bool; 3], discard: bool, room: u16, packets: Vec<AnyTsPacket> },
    /// Stream of octets without packet boundaries.
    Octets { octets: Vec<u8>, piece: u8 },
    /// PDUs, their encapsulation, and impairments of the TS Packets; empty: none.
    Sent { since_last: bool, millis: u8, concat: Option<(u8, u16)>, pdus: Vec<Pdu>, fates: Vec<TsFate> },
}

#[derive(Arbitrary, Debug)]
struct AnyTsPacket {
    ours: bool,
    fill: u8,
    octets: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct Pdu {
    len: u16,
    addressed: bool,
    ipv6: bool,
    step: TsStep,
}

#[derive(Arbitrary, Debug)]
enum TsStep {
    Push,
    PushAndFlush,
    Poll(u8),
    Queue,
    QueueAndDrain,
    QueueAndPull(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum TsFate {
    Arrives(u8),
    Lost,
    Twice,
    Flipped(u16),
}

fn pid() -> Pid {
    Pid::new(0x35).expect("it has 13 bits")
}

fuzz_target!(|input: TsInput| match input {
    TsInput::Packets { lenient: [a, b, c], discard, room, packets } => {
        let lenience = Lenience { large_payload_pointers: a, adaptation_fields: b, any_continuity: c };
        let after_bad_crc = if discard { AfterBadCrc::Discard } else { AfterBadCrc::GoOn };
        let filter = NpaFilter::of(Npa::new([0, 1, 2, 3, 4, 5]));
        let config = ReceiverConfig { lenience, after_bad_crc, filter, ..ReceiverConfig::new(pid()) };
        let mut buffer = vec![0; usize::from(room)];
        let mut receivers = [Receiver::new(config, &mut buffer)];
        let mut demultiplexer = Demultiplexer::new(&mut receivers);
        let mut finder = Finder::<2, 2>::new();
        for packet in &packets {
            let packet = packet.octets();
            finder.receive(&packet);
            demultiplexer.receive(&packet, &mut |pid, _| assert_eq!(pid, self::pid()));
        }
    }
    TsInput::Octets { octets, piece } => {
        let mut synchronizer = Synchronizer::new();
        let mut count = 0;
        for piece in octets.chunks(usize::from(piece).max(1)) {
            synchronizer.push(piece, &mut |_| count += 1);
        }
        synchronizer.finish(&mut |_| count += 1);
        assert!(count * 188 <= octets.len());
    }
    TsInput::Sent { since_last, millis, concat, pdus, fates } => {
        let since = if since_last { Since::Last } else { Since::First };
        let packing = Packing::Threshold { wait: Duration::from_millis(u64::from(millis)), since };
        let concat =
            concat.map(|(pdus, octets)| Concat { pdus: usize::from(pdus), octets: usize::from(octets) });
        let config = EncapsulatorConfig { packing, concat, ..EncapsulatorConfig::new(pid()) };
        let (sent, packets) = sent(config, &pdus);
        let got = received(&packets, &fates);
        if fates.is_empty() {
            assert!(got == sent);
        } else {
            let mut rest = sent.iter();
            assert!(got.iter().all(|got| rest.any(|sent| sent == got)));
        }
    }
});

impl AnyTsPacket {
    fn octets(&self) -> TsPacket {
        let mut packet = [self.fill; 188];
        let len = self.octets.len().min(188);
        packet[..len].copy_from_slice(&self.octets[..len]);
        packet[0] = 0x47;
        if self.ours {
            packet[1] &= 0x40;
            packet[2] = 0x35;
            packet[3] = packet[3] & 0x0F | 0x10;
        }
        packet
    }
}

/// Waiting PDUs, with their numbers.
#[derive(Default)]
struct WaitingPdus(VecDeque<(Option<Npa>, EtherType, Vec<u8>)>);

impl SnduSource for WaitingPdus {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        let (npa, ether_type, pdu) = self.0.get(ahead)?;
        let sndu = Sndu::pdu(*ether_type, pdu);
        Some(npa.map_or(sndu, |npa| sndu.to(npa)))
    }

    fn take(&mut self, count: usize) {
        self.0.drain(..count);
    }
}

/// Encapsulates PDUs, each with its number in it. Returns their octets, and the TS Packets.
fn sent(config: EncapsulatorConfig, pdus: &[Pdu]) -> (Vec<Vec<u8>>, Vec<TsPacket>) {
    let mut encapsulator = Encapsulator::new(config);
    let (mut sent, mut packets, mut waiting) = (Vec::new(), Vec::new(), WaitingPdus::default());
    let mut now = Instant::ZERO;
    for (number, pdu) in (0_u32..).zip(pdus.iter().take(200)) {
        let mut octets = vec![number as u8; 4 + usize::from(pdu.len % 2_000)];
        octets[..4].copy_from_slice(&number.to_be_bytes());
        let npa = Npa::new([2, 0, 0, 0, 0, 1]).filter(|_| pdu.addressed);
        let ether_type = if pdu.ipv6 { EtherType::IPV6 } else { EtherType::ROHC };
        let plain = Sndu::pdu(ether_type, &octets);
        let sndu = npa.map_or(plain, |npa| plain.to(npa));
        let mut out = |packet: &TsPacket| packets.push(*packet);
        match pdu.step {
            TsStep::Push | TsStep::PushAndFlush => {
                // After the waiting PDUs, to keep the order.
                let mut pushed = false;
                if waiting.0.is_empty() {
                    pushed = encapsulator.push(now, &sndu, &mut out).is_ok();
                }
                if pushed && matches!(pdu.step, TsStep::PushAndFlush) {
                    encapsulator.flush(&mut out);
                }
                if !pushed {
                    continue;
                }
            }
            TsStep::Poll(millis) => {
                now = now + Duration::from_millis(u64::from(millis));
                encapsulator.poll(now, &mut out);
                continue;
            }
            TsStep::Queue | TsStep::QueueAndDrain | TsStep::QueueAndPull(_) => {
                waiting.0.push_back((npa, ether_type, octets.clone()));
                if let TsStep::QueueAndDrain = pdu.step {
                    let _ = encapsulator.drain(now, &mut waiting, &mut out);
                }
                if let TsStep::QueueAndPull(slots) = pdu.step {
                    for _ in 0..slots % 8 {
                        match encapsulator.pull(&mut waiting) {
                            Pulled::Full(packet) | Pulled::Padded(packet) => packets.push(*packet),
                            Pulled::Null => break,
                        }
                    }
                }
            }
        }
        sent.push(octets);
    }
    while let Pulled::Full(packet) | Pulled::Padded(packet) = encapsulator.pull(&mut waiting) {
        packets.push(*packet);
    }
    (sent, packets)
}

fn received(packets: &[TsPacket], fates: &[TsFate]) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 32_771];
    let mut receiver = Receiver::new(ReceiverConfig::new(pid()), &mut buffer);
    let mut got = Vec::new();
    let mut out = |delivery: thinair_ule::Delivery<'_>| match delivery.payload {
        Payload::Pdu(_, pdu) => got.push(pdu.to_vec()),
        Payload::Bridged(_) | Payload::TsPackets(_) => panic!("nothing of that was sent"),
    };
    // `Arrives` holds for several packets.
    let mut coming = fates.iter().cycle().flat_map(|fate| match *fate {
        TsFate::Arrives(more) => vec![*fate; 1 + usize::from(more)],
        _ => vec![*fate],
    });
    for packet in packets {
        let mut packet = *packet;
        match coming.next() {
            None | Some(TsFate::Arrives(_)) => {}
            Some(TsFate::Lost) => continue,
            Some(TsFate::Twice) => receiver.receive(&packet, &mut out),
            Some(TsFate::Flipped(bit)) => {
                let bit = usize::from(bit) % (8 * 188);
                packet[bit / 8] ^= 0x80 >> (bit % 8);
            }
        }
        receiver.receive(&packet, &mut out);
    }
    got
}
