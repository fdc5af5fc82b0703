#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const FRAMINGS: [Framing; 2] = [Framing::Slip, Framing::Cobs];

/// Maximum size of a datagram in octets.
const LARGEST: usize = 2_000;

fn framed(framing: Framing, crc: bool, datagrams: &[&[u8]]) -> Vec<u8> {
    let mut framer = Framer::new(framing, crc, LARGEST);
    let mut out = Vec::new();
    for datagram in datagrams {
        framer.frame(datagram, &mut out).unwrap();
    }
    out
}

fn deframed(framing: Framing, crc: bool, octets: &[u8]) -> Vec<Result<Vec<u8>, FrameError>> {
    let mut deframer = Deframer::new(framing, crc, LARGEST);
    let mut got = Vec::new();
    deframer.receive(octets, &mut |frame| got.push(frame.map(<[u8]>::to_vec)));
    got
}

/// RFC 1055: END is 300 in octal, ESC 333, ESC_END 334, ESC_ESC 335; a leading END flushes noise.
#[test]
fn slip_is_that_of_the_rfc() {
    let packet = [1, 0o300, 2, 0o333, 3];
    let frame = [0o300, 1, 0o333, 0o334, 2, 0o333, 0o335, 3, 0o300];
    assert_eq!(framed(Framing::Slip, false, &[&packet]), frame);
    assert_eq!(deframed(Framing::Slip, false, &frame), [Ok(packet.to_vec())]);
    // The leading END is for noise: the second frame has none.
    assert_eq!(framed(Framing::Slip, false, &[b"a", b"b"]), b"\xc0a\xc0b\xc0");
    let mut framer = Framer::new(Framing::Slip, false, 1);
    let mut out = Vec::new();
    for _ in 0..2 {
        framer.frame(b"a", &mut out).unwrap();
        framer.silent();
    }
    assert_eq!(out, b"\xc0a\xc0\xc0a\xc0");
    assert_eq!(framer.counters(), FramerCounters { frames: 2, octets: 2, line_octets: 6 });
}

/// Published examples of COBS, each with a delimiter at its end.
#[test]
fn cobs_is_that_of_the_published_examples() {
    let counting = |from: u8, to: u8| (from..=to).collect::<Vec<_>>();
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = vec![
        (vec![0], vec![1, 1, 0]),
        (vec![0, 0], vec![1, 1, 1, 0]),
        (vec![0, 0x11, 0], vec![1, 2, 0x11, 1, 0]),
        (vec![0x11, 0x22, 0, 0x33], vec![3, 0x11, 0x22, 2, 0x33, 0]),
        (vec![0x11, 0x22, 0x33, 0x44], vec![5, 0x11, 0x22, 0x33, 0x44, 0]),
        (vec![0x11, 0, 0, 0], vec![2, 0x11, 1, 1, 1, 0]),
        (counting(1, 0xFE), [vec![0xFF], counting(1, 0xFE), vec![0]].concat()),
        ([vec![0], counting(1, 0xFE)].concat(), [vec![1, 0xFF], counting(1, 0xFE), vec![0]].concat()),
        (counting(1, 0xFF), [vec![0xFF], counting(1, 0xFE), vec![2, 0xFF, 0]].concat()),
        ([counting(2, 0xFF), vec![0]].concat(), [vec![0xFF], counting(2, 0xFF), vec![1, 1, 0]].concat()),
        ([counting(3, 0xFF), vec![0, 1]].concat(), [vec![0xFE], counting(3, 0xFF), vec![2, 1, 0]].concat()),
    ];
    for (datagram, frame) in pairs {
        // The first delimiter is for noise.
        assert_eq!(framed(Framing::Cobs, false, &[&datagram])[1..], frame);
        assert_eq!(deframed(Framing::Cobs, false, &frame), [Ok(datagram)]);
    }
}

/// CRC-32/ISO-HDLC of "123456789" is 0xCBF43926, its least significant octet first as FCS-32 of RFC 1662.
#[test]
fn the_crc_is_fcs_32() {
    let frame = b"\x0e123456789\x26\x39\xf4\xcb\0";
    assert_eq!(framed(Framing::Cobs, true, &[b"123456789"])[1..], *frame);
    assert_eq!(deframed(Framing::Cobs, true, frame), [Ok(b"123456789".to_vec())]);
    assert_eq!(framed(Framing::Slip, true, &[b"123456789"]), b"\xc0123456789\x26\x39\xf4\xcb\xc0");
}

#[test]
fn what_is_wrong_is_told_and_the_next_frame_comes() {
    use FrameError::{BadEscape, Crc, CutShort, TooLong, TooShort};
    let cases: [(Framing, bool, &[u8], FrameError); 9] = [
        (Framing::Slip, false, b"ab\xdbcd\xdb\xdd\xc0", BadEscape { offset: 3, octet: b'c' }),
        (Framing::Slip, false, b"ab\xdb\xc0", CutShort { offset: 3 }),
        (Framing::Slip, true, b"abc\xc0", TooShort { octets: 3 }),
        (Framing::Slip, true, b"abcde\xc0", Crc { octets: 5 }),
        (Framing::Cobs, false, b"\x05abc\0", CutShort { offset: 4 }),
        (Framing::Cobs, true, b"\x04abc\0", TooShort { octets: 3 }),
        // The CRC-32 of nothing.
        (Framing::Slip, true, b"\0\0\0\0\xc0", TooShort { octets: 4 }),
        (Framing::Cobs, true, b"\x06abcde\0", Crc { octets: 5 }),
        (Framing::Slip, false, &[[1; LARGEST + 500].as_slice(), &[0xC0]].concat(), TooLong { most: LARGEST }),
    ];
    for (framing, crc, damaged, error) in cases {
        let line = [damaged, &framed(framing, crc, &[b"next"])].concat();
        assert_eq!(deframed(framing, crc, &line), [Err(error), Ok(b"next".to_vec())]);
        let mut deframer = Deframer::new(framing, crc, LARGEST);
        deframer.receive(&line, &mut |_| {});
        let counters = deframer.counters();
        assert_eq!((counters.dropped(), counters.frames, counters.octets), (1, 1, 4), "{error}");
        assert_eq!(counters.line_octets, line.len() as u64);
    }
}

#[test]
fn a_datagram_that_is_too_long_is_refused() {
    let mut framer = Framer::new(Framing::Slip, true, 3);
    let mut out = Vec::new();
    assert_eq!(framer.frame(b"1234", &mut out), Err(super::DatagramTooLong { octets: 4, most: 3 }));
    assert!(out.is_empty());
    framer.frame(b"123", &mut out).unwrap();
    let mut deframer = Deframer::new(Framing::Slip, true, 3);
    let mut frames = 0;
    deframer.receive(&out, &mut |frame| frames += u32::from(frame.is_ok()));
    assert_eq!(frames, 1);
}

#[test]
fn nothing_is_sent_of_nothing() {
    for framing in FRAMINGS {
        assert_eq!(framed(framing, false, &[b"", b""]), b"");
        assert_eq!(framed(framing, true, &[b"", b""]), b"");
    }
}

/// Random bit errors at a rate that damages about every third frame: of 20,000 frames, each delivered one was
/// sent, and nearly all undamaged ones are delivered.
#[test]
fn bit_errors_deliver_nothing_that_was_not_sent() {
    for framing in FRAMINGS {
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (seed >> 33) as usize
        };
        let mut framer = Framer::new(framing, true, LARGEST);
        let mut deframer = Deframer::new(framing, true, LARGEST);
        let (mut line, mut sound, mut came) = (Vec::new(), 0, 0);
        for number in 0..20_000_u32 {
            let mut datagram = number.to_be_bytes().to_vec();
            datagram.extend((0..random() % 120).map(|_| random() as u8));
            line.clear();
            framer.frame(&datagram, &mut line).unwrap();
            let damaged = random() % 3 == 0;
            sound += u32::from(!damaged);
            for _ in 0..if damaged { 1 + random() % 4 } else { 0 } {
                let bit = random() % (8 * line.len());
                line[bit / 8] ^= 1 << (bit % 8);
            }
            deframer.receive(&line, &mut |frame| {
                if let Ok(got) = frame {
                    // The frame before may be delivered now, if its delimiter was damaged.
                    assert!(got == datagram || got.len() >= 4 && got[..4] == (number - 1).to_be_bytes());
                    came += 1;
                }
            });
        }
        assert!(came > sound * 97 / 100 && came < 20_000, "{framing:?}: {came}, {sound} without errors");
        assert!(deframer.counters().crc_errors > 3_000);
    }
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    let octet = prop_oneof![any::<u8>(), select(vec![0, 1, 0xC0, 0xDB, 0xDC, 0xDD, 0xFF])];
    prop_oneof![vec(octet, 0..700), vec(1..=255_u8, 250..260), vec(Just(0xDB), 0..300)]
}

proptest! {
    #[test]
    fn datagrams_come_back_in_pieces_of_any_size(
        slip: bool,
        crc: bool,
        datagrams in vec(octets(), 1..6),
        piece in 1..100_usize,
    ) {
        let framing = if slip { Framing::Slip } else { Framing::Cobs };
        let expected: Vec<_> = datagrams.iter().filter(|datagram| !datagram.is_empty()).collect();
        let parts: Vec<&[u8]> = datagrams.iter().map(|datagram| &datagram[..]).collect();
        let line = framed(framing, crc, &parts);
        let mut deframer = Deframer::new(framing, crc, LARGEST);
        let mut got = Vec::new();
        for piece in line.chunks(piece) {
            deframer.receive(piece, &mut |frame| got.push(frame.unwrap().to_vec()));
        }
        prop_assert_eq!(got.iter().collect::<Vec<_>>(), expected);
        let most: usize =
            datagrams.iter().map(|datagram| Framer::longest_frame(framing, crc, datagram.len())).sum();
        prop_assert!(line.len() <= most);
    }

    #[test]
    fn what_lies_between_limits_never_takes_the_next_frame_along(
        slip: bool,
        noise in octets(),
        cut in any::<Index>(),
    ) {
        let framing = if slip { Framing::Slip } else { Framing::Cobs };
        let line = framed(framing, true, &[b"first", b"second"]);
        // Noise within the first frame; the second frame begins with a delimiter after silence.
        let cut = cut.index(7);
        let line = [&line[..cut], &noise, &[if slip { 0xC0 } else { 0 }], &framed(framing, true, &[b"second"])].concat();
        let mut deframer = Deframer::new(framing, true, 100);
        let mut got = Vec::new();
        deframer.receive(&line, &mut |frame| got.extend(frame.map(<[u8]>::to_vec)));
        prop_assert_eq!(got.last().map(|got| &got[..]), Some(&b"second"[..]));
        prop_assert!(deframer.frame.capacity() <= 104 + 8);
    }
}
