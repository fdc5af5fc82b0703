#![allow(clippy::unwrap_used)]

use super::*;

fn framed(framing: Framing, crc: bool, datagrams: &[&[u8]]) -> Vec<u8> {
    let mut framer = Framer::new(framing, crc, 2_000);
    let mut out = Vec::new();
    for datagram in datagrams {
        framer.frame(datagram, &mut out).unwrap();
    }
    out
}

fn deframed(framing: Framing, crc: bool, octets: &[u8]) -> Vec<Result<Vec<u8>, FrameError>> {
    let mut deframer = Deframer::new(framing, crc, 2_000);
    let mut got = Vec::new();
    deframer.receive(octets, &mut |frame| got.push(frame.map(<[u8]>::to_vec)));
    got
}

const FRAMINGS: [Framing; 2] = [Framing::Slip, Framing::Cobs];

#[test]
fn datagrams_come_back() {
    for framing in FRAMINGS {
        for crc in [false, true] {
            let datagrams: [&[u8]; 4] = [b"a", &[0; 300], &[0xC0; 300], &[0xDB, 0xDC, 0xDD, 0, 7]];
            let expected: Vec<_> = datagrams.iter().map(|datagram| Ok(datagram.to_vec())).collect();
            assert_eq!(deframed(framing, crc, &framed(framing, crc, &datagrams)), expected);
        }
    }
}
