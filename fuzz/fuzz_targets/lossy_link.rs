#![no_main]
//! On a link that loses, repeats, delays and damages packets in both directions, nothing panics, and compressor and
//! decompressor resynchronize.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_fuzz::{ChannelSetup, PacketFlow, PacketStep, ROOM};
use thinair_rohc::{CompressError, Compressor, Decompressor, Instant, packet};

#[derive(Arbitrary, Debug)]
enum LinkFate {
    Arrives,
    Lost,
    Twice,
    /// Stored, and delivered instead of the next late packet.
    Late,
    Damaged {
        at: u8,
        xor: u8,
    },
    Cut(u8),
    FeedbackLost,
    FeedbackDamaged {
        at: u8,
        xor: u8,
    },
}

fuzz_target!(|input: (ChannelSetup, [PacketFlow; 2], Vec<(PacketStep, LinkFate)>)| {
    let (setup, mut flows, steps) = input;
    let mut compressor = setup.compressor();
    let mut decompressor = setup.decompressor();
    let mut now = Instant::ZERO;
    let mut rohc = [0; ROOM];
    let mut late = Vec::new();
    for (step, fate) in steps.iter().take(64) {
        let flow = &mut flows[usize::from(step.flow) % 2];
        for _ in 0..=step.repeat % 16 {
            now = Instant::from_nanos(now.as_nanos() + u64::from(step.wait) * 1_000_000);
            step.changes.iter().for_each(|change| flow.apply(change));
            let sent = flow.packet(&step.payload, &step.changes);
            if sent.len() + 512 > ROOM {
                continue;
            }
            let mut octets = match compressor.compress(now, &sent, &mut rohc) {
                Ok(compressed) => rohc[..compressed.len].to_vec(),
                Err(CompressError::NotIp(_)) => continue,
                Err(error) => panic!("{error}: {sent:02x?}"),
            };
            let mut copies = 1;
            match *fate {
                LinkFate::Arrives | LinkFate::FeedbackLost | LinkFate::FeedbackDamaged { .. } => {}
                LinkFate::Lost => copies = 0,
                LinkFate::Twice => copies = 2,
                LinkFate::Late => core::mem::swap(&mut late, &mut octets),
                LinkFate::Damaged { at, xor } => {
                    let at = usize::from(at) % octets.len();
                    octets[at] ^= xor;
                }
                LinkFate::Cut(len) => octets.truncate(usize::from(len)),
            }
            for _ in 0..copies {
                let mut back = [0; ROOM];
                let _ = decompressor.decompress(now, &octets, &mut back);
                feedback(&mut compressor, &mut decompressor, now, fate);
            }
        }
    }
    let honest = steps.iter().all(|(_, fate)| !fate.is_damage());
    if honest && setup.refreshes_by_default() {
        recovers(&mut compressor, &mut decompressor, now, &flows[0]);
    }
});

impl LinkFate {
    fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Cut(_) | Self::FeedbackDamaged { .. })
    }
}

/// More lossless packets than there are between two refreshes: the refreshes, or feedback, restore a flow.
fn recovers(
    compressor: &mut Compressor<'_>,
    decompressor: &mut Decompressor<'_>,
    mut now: Instant,
    flow: &PacketFlow,
) {
    let sent = flow.packet(b"payload", &[]);
    if sent.len() + 512 > ROOM {
        return;
    }
    let (mut rohc, mut back) = ([0; ROOM], [0; ROOM]);
    let mut last = None;
    for _ in 0..160 {
        now = Instant::from_nanos(now.as_nanos() + 2_000_000_000);
        let compressed = compressor.compress(now, &sent, &mut rohc).expect("a sound packet is taken");
        let outcome = decompressor.decompress(now, &rohc[..compressed.len], &mut back);
        last = Some(outcome.map(|done| back[..done.len].to_vec()));
        feedback(compressor, decompressor, now, &LinkFate::Arrives);
    }
    assert_eq!(last, Some(Ok(sent)));
}

fn feedback(
    compressor: &mut Compressor<'_>,
    decompressor: &mut Decompressor<'_>,
    now: Instant,
    fate: &LinkFate,
) {
    let mut element = [0; 32];
    while let Some(len) = decompressor.poll_feedback(&mut element) {
        match *fate {
            LinkFate::FeedbackLost => continue,
            LinkFate::FeedbackDamaged { at, xor } => element[usize::from(at) % len] ^= xor,
            _ => {}
        }
        if let Ok(parts) = packet::parts(&element[..len]) {
            for data in parts.feedback {
                let _ = compressor.receive_feedback(now, data);
            }
        }
    }
}
