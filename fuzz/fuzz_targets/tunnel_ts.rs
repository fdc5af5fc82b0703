//! Datagrams of TS Packets, with RTP headers and without, and streams of them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::packaging::{Input, run, ts};

fuzz_target!(|input: Input<'_>| run(ts, &input, |octets| {
    // Whole TS Packets of the received PID, after an RTP header if there are octets left for it.
    let rtp = octets.len() % 2 * 12;
    octets.resize(rtp + octets.len().div_ceil(188) * 188, 0xFF);
    if rtp > 0 {
        octets[0] = octets[0] & 0x3F | 0x80;
        octets[1] = octets[1] & 0x80 | 33;
    }
    for packet in octets[rtp..].chunks_mut(188) {
        packet[0] = 0x47;
        packet[1] &= 0x40;
        packet[2] = 0x35;
        packet[3] = packet[3] & 0x0F | 0x10;
    }
}));
