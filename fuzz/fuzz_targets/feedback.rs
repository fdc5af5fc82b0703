#![no_main]
//! Forged feedback: it is parsed or rejected, and the compressor continues in any case.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_fuzz::{ChannelSetup, PacketFlow, PacketStep, ROOM};
use thinair_rohc::feedback::{Feedback, MAX_ELEMENT};
use thinair_rohc::{CidSpace, Instant, packet};

#[derive(Arbitrary, Debug)]
enum FeedbackEvent {
    Send(PacketStep),
    Receive(Vec<u8>),
}

fuzz_target!(|input: (ChannelSetup, [PacketFlow; 2], Vec<FeedbackEvent>)| {
    let (setup, mut flows, events) = input;
    let space = setup.channel().cids();
    let mut compressor = setup.compressor();
    let mut now = Instant::ZERO;
    let mut rohc = [0; ROOM];
    for event in events.iter().take(64) {
        match event {
            FeedbackEvent::Send(step) => {
                let flow = &mut flows[usize::from(step.flow) % 2];
                for _ in 0..=step.repeat % 16 {
                    now = Instant::from_nanos(now.as_nanos() + u64::from(step.wait) * 1_000_000);
                    step.changes.iter().for_each(|change| flow.apply(change));
                    let packet = flow.packet(&step.payload, &[]);
                    if packet.len() + 512 <= ROOM {
                        compressor.compress(now, &packet, &mut rohc).expect("a sound packet is taken");
                    }
                }
            }
            FeedbackEvent::Receive(data) => {
                read_and_write(data, space);
                let _ = compressor.receive_feedback(now, data);
            }
        }
    }
});

/// Parsed feedback is written so that it parses to equal values, without the options of timers, which are not written.
fn read_and_write(data: &[u8], space: CidSpace) {
    let Ok(feedback) = Feedback::read(data, space) else { return };
    let is_written = feedback.clock.is_none() && feedback.jitter.is_none() && feedback.loss.is_none();
    if !is_written || feedback.sn_bits > 20 {
        return;
    }
    let mut out = [0; MAX_ELEMENT];
    let len = feedback.write(space, &mut out).expect("there is always room");
    let parts = packet::parts(&out[..len]).expect("it was just written");
    let elements: Vec<_> = parts.feedback.collect();
    let [element] = elements[..] else { panic!("{} elements", elements.len()) };
    let again = Feedback::read(element, space).expect("it was just written");
    let sn = if feedback.sn_bits == 0 { again.sn } else { feedback.sn };
    assert_eq!(again, Feedback { sn, ..feedback });
}
