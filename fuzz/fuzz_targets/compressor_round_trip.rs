#![no_main]
//! On a lossless channel every packet is restored bit for bit.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::{ChannelSetup, PacketFlow, PacketStep, ROOM};
use thinair_rohc::{CompressError, Instant, packet};

fuzz_target!(|input: (ChannelSetup, [PacketFlow; 3], Vec<PacketStep>)| {
    let (setup, mut flows, steps) = input;
    let mut compressor = setup.compressor();
    let mut decompressor = setup.decompressor();
    let mut now = Instant::ZERO;
    let (mut rohc, mut back, mut element) = ([0; ROOM], [0; ROOM], [0; 32]);
    for step in steps.iter().take(64) {
        let flow = &mut flows[usize::from(step.flow) % 3];
        for _ in 0..=step.repeat % 16 {
            now = Instant::from_nanos(now.as_nanos() + u64::from(step.wait) * 1_000_000);
            step.changes.iter().for_each(|change| flow.apply(change));
            let sent = flow.packet(&step.payload, &step.changes);
            if sent.len() + 512 > ROOM {
                continue;
            }
            let compressed = match compressor.compress(now, &sent, &mut rohc) {
                Ok(compressed) => compressed,
                Err(CompressError::NotIp(_)) => continue,
                Err(error) => panic!("{error}: {sent:02x?}"),
            };
            let octets = &rohc[..compressed.len];
            let done = match decompressor.decompress(now, octets, &mut back) {
                Ok(done) => done,
                Err(error) => panic!("{error}: {compressed:?} {octets:02x?} of {sent:02x?}"),
            };
            assert_eq!(back[..done.len], sent, "{compressed:?} {octets:02x?}");
            assert_eq!(
                (done.cid, done.profile, done.format, done.header_in, done.header_out),
                (
                    compressed.cid,
                    compressed.profile,
                    compressed.format,
                    compressed.header_out,
                    compressed.header_in
                )
            );
            while let Some(len) = decompressor.poll_feedback(&mut element) {
                for data in packet::parts(&element[..len]).expect("it was just written").feedback {
                    compressor.receive_feedback(now, data).expect("feedback on a packet that was sent");
                }
            }
        }
    }
});
