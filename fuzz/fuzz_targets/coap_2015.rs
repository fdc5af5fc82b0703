#![no_main]
//! Profile 0x0080 of the laboratory: messages come back as they were, and any octets at either end change that to losses at most.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_coap_2015::{Coap2015Compressor, Coap2015Decompressor};
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, CompressorMemory, DecompressorConfig, DecompressorMemory, Instant,
    Mode, ProfileSet, packet,
};
use thinair_wire::checksum::Sum;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A message between two hosts: the address of one of them, TTL, and the octets behind UDP.
    Message { host: u8, ttl: u8, message: Vec<u8> },
    /// Any packet to the compressor.
    Packet(Vec<u8>),
    /// Any octets to the decompressor.
    Octets(Vec<u8>),
    /// Any feedback element.
    Feedback(Vec<u8>),
    /// The next message is lost.
    Loss,
}

fn datagram(host: u8, ttl: u8, id: u16, message: &[u8]) -> Vec<u8> {
    let len = 8 + message.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((20 + len).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0, 0, ttl, 17, 0, 0, 10, 0, 0, host, 10, 0, 0, 1]);
    let sum = Sum::ZERO.octets(&packet).checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(b"\xC0\0\x16\x33");
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(message);
    let sum = Sum::ZERO.octets(&packet[12..20]).word(17).word(len).octets(&packet[20..]).checksum();
    let sum = if sum == 0 { u16::MAX } else { sum };
    packet[26..28].copy_from_slice(&sum.to_be_bytes());
    packet
}

fuzz_target!(|input: (bool, u8, Vec<Step>)| {
    let (is_optimistic, flows, steps) = input;
    let Ok(channel) = Channel::new(CidSpace::Small, 3, ProfileSet::v1()) else { return };
    let mode = if is_optimistic { Mode::Optimistic } else { Mode::Unidirectional };
    let memory = CompressorMemory::owned(channel.sizes().blocks(4));
    let mut near = Coap2015Compressor::new(CompressorConfig::new(channel), memory, usize::from(flows % 5));
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    let mut far = Coap2015Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4)));
    let (mut rohc, mut back) = (vec![0; 4_096], vec![0; 4_096]);
    let (mut is_untouched, mut is_lost) = (true, false);
    for (number, step) in (1_u64..).zip(&steps) {
        let now = Instant::from_millis(20 * number);
        let packet = match step {
            Step::Message { host, ttl, message } if message.len() < 2_000 => {
                datagram(*host, *ttl, number as u16, message)
            }
            Step::Message { .. } => continue,
            Step::Packet(packet) => packet.clone(),
            Step::Octets(octets) => {
                let _ = far.decompress(now, octets, &mut back);
                is_untouched = false;
                continue;
            }
            Step::Feedback(data) => {
                let _ = near.receive_feedback(now, data);
                is_untouched = false;
                continue;
            }
            Step::Loss => {
                is_lost = true;
                continue;
            }
        };
        let Ok(sent) = near.compress(now, &packet, &mut rohc) else { continue };
        if std::mem::take(&mut is_lost) {
            is_untouched = false;
            continue;
        }
        let done = far.decompress(now, &rohc[..sent.compressed.len], &mut back);
        if is_untouched {
            let done = done.expect("nothing was lost");
            assert_eq!(back[..done.len], packet[..], "{sent:?}");
        }
        let mut element = [0; 64];
        while let Some(len) = far.poll_feedback(&mut element) {
            for data in packet::parts(&element[..len]).expect("it is feedback").feedback {
                let _ = near.receive_feedback(now, data);
            }
        }
    }
});
