//! Octets of a serial line, from outside, and our own frames with changed bits.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_session::line::Framing;
use thinair_session::line::{Deframer, Framer};

/// Maximum size of a datagram in octets.
const LARGEST: usize = 600;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Line { octets: &'a [u8] },
    Datagrams { datagrams: Vec<&'a [u8]>, silent: u32, flips: Vec<u16> },
}

fuzz_target!(|input: (bool, bool, u8, Input<'_>)| {
    let (slip, crc, piece, input) = input;
    let framing = if slip { Framing::Slip } else { Framing::Cobs };
    let mut deframer = Deframer::new(framing, crc, LARGEST);
    let mut got = Vec::new();
    let mut receive = |octets: &[u8]| {
        for piece in octets.chunks(usize::from(piece).max(1)) {
            deframer.receive(piece, &mut |frame| {
                if let Ok(datagram) = frame {
                    assert!(datagram.len() <= LARGEST);
                    got.push(datagram.to_vec());
                }
            });
        }
    };
    match input {
        Input::Line { octets } => receive(octets),
        Input::Datagrams { datagrams, silent, flips } => {
            let mut framer = Framer::new(framing, crc, LARGEST);
            let (mut line, mut sent) = (Vec::new(), Vec::new());
            for (number, datagram) in (0..).zip(datagrams) {
                if silent.checked_shr(number).is_some_and(|bits| bits & 1 == 1) {
                    framer.silent();
                }
                let before = line.len();
                if framer.frame(datagram, &mut line).is_ok() && !datagram.is_empty() {
                    sent.push(datagram.to_vec());
                }
                assert!(line.len() - before <= Framer::longest_frame(framing, crc, datagram.len()));
            }
            for flip in &flips {
                let bit = usize::from(*flip) % (8 * line.len()).max(1);
                if let Some(octet) = line.get_mut(bit / 8) {
                    *octet ^= 1 << (bit % 8);
                }
            }
            receive(&line);
            if flips.is_empty() {
                assert!(got == sent);
            } else if crc {
                // A fuzzer can find a valid CRC-32 by chance, though hardly within its time limit.
                let mut rest = sent.iter();
                assert!(got.iter().all(|got| rest.any(|sent| sent == got)));
            }
        }
    }
});
