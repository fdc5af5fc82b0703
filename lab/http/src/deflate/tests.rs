use alloc::vec;
use alloc::vec::Vec;

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress, create_comp_flags_from_zip_params,
};
use proptest::prelude::*;

use super::*;
use crate::spdy::DICTIONARY;

/// Octets that a fresh decoder makes of the stream so far.
fn decoded(stream: &[u8]) -> Vec<u8> {
    Decoder::new(DICTIONARY).decode(stream, usize::MAX).unwrap()
}

/// Encodes pieces in one stream, and checks that each is readable as soon as its octets are there. Returns their sizes.
fn through(pieces: &[Vec<u8>], flush: Flush) -> Vec<usize> {
    let mut encoder = Encoder::new(DICTIONARY, flush);
    let mut decoder = Decoder::new(DICTIONARY);
    let (mut sizes, mut stream, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        let octets = encoder.encode(piece);
        assert_eq!(&decoder.decode(&octets, piece.len()).unwrap(), piece);
        stream.extend_from_slice(&octets);
        all.extend_from_slice(piece);
        assert_eq!(decoded(&stream), all);
        sizes.push(octets.len());
    }
    sizes
}

#[test]
fn a_piece_takes_no_more_than_its_bits() {
    let four = [200, 201, 202, 203].to_vec();
    // After the header of 6 octets: 3 bits of block header and 4 literals of 9 bits are 39 bits. The missing bit is the
    // first one of the next literal, whose other 7 bits are an octet. The last piece is empty.
    assert_eq!(through(&[four.clone(), b"@".to_vec(), Vec::new()], Flush::Least), [6 + 5, 1, 0]);
    // The end of the block and an empty stored block: 10 bits and 4 octets more, each time.
    assert_eq!(through(&[four, b"@".to_vec()], Flush::Sync), [6 + 7 + 4, 3 + 4]);
}

/// Literals from 80 on cannot begin with a zero bit: the block ends, and another one begins.
#[test]
fn bits_that_stand_are_gone_on_with_or_ended() {
    for first in 0..=255 {
        for second in [b' ', b'z', 0, 143, 144, 255] {
            through(&[vec![first], vec![second], vec![first, second]], Flush::Least);
        }
    }
}

#[test]
fn what_cannot_be_compressed_is_stored() {
    let mut state = 7_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8 | 0x80
    };
    let octets: Vec<u8> = (0..70_000).map(|_| random()).collect();
    let sizes = through(&[octets[..200].to_vec(), octets.clone()], Flush::Least);
    // 6 octets of header, and 5 of a block. Fixed codes would take 9 bits per octet; all high bits are equal, so that a
    // dynamic code is shorter.
    assert!(sizes[0] <= 6 + 5 + 200, "{sizes:?}");
    assert!(sizes[1] < 70_000 * 7 / 8 + 500, "{sizes:?}");
    let all: Vec<u8> = (0..=255).cycle().step_by(7).take(300).collect();
    through(&[all], Flush::Sync);
}

#[test]
fn codes_are_made_where_they_pay() {
    // 5 letters in 600 octets without repetition: less than 3 bits each, where fixed codes take 8.
    let mut state = 1_u32;
    let letters: Vec<u8> = (0..600)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"qxzjk"[(state >> 16) as usize % 5]
        })
        .collect();
    let sizes = through(&[letters.clone(), letters], Flush::Least);
    assert!(sizes[0] < 600 * 3 / 8 + 30, "{sizes:?}");
    // The second time it is three matches.
    assert!(sizes[1] < 12, "{sizes:?}");
}

#[test]
fn streams_of_others_are_read() {
    let block: Vec<u8> = b"GET /index.html HTTP/1.1 ".repeat(20);
    let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(9, -15, 0));
    let mut raw = vec![0; 2_000];
    let (status, _, len) = compress(&mut compressor, &block, &mut raw, TDEFLFlush::Sync);
    assert_eq!(status, TDEFLStatus::Okay);
    let head = [0x78, 0xBB, 0xE3, 0xC6, 0xA7, 0xC2];
    let stream = [&head, &raw[..len]].concat();
    let mut decoder = Decoder::new(DICTIONARY);
    let mut out = Vec::new();
    stream.iter().for_each(|octet| out.extend(decoder.decode(&[*octet], 1_000).unwrap()));
    assert_eq!(out, block);
}

#[test]
fn what_is_no_stream_is_told() {
    for (stream, error) in [
        (&[0x78, 0x9C, 0, 0, 0, 0, 0][..], InflateError::Dictionary),
        (&[0x78, 0xBB, 1, 2, 3, 4], InflateError::Dictionary),
        (&[0x79, 0xBB, 0xE3, 0xC6, 0xA7, 0xC2], InflateError::Head),
        (&[0x88, 0xBB, 0xE3, 0xC6, 0xA7, 0xC2], InflateError::Head),
        (&[0x78, 0xBB, 0xE3, 0xC6, 0xA7, 0xC2, 0b110], InflateError::Block),
        (&[0x78, 0xBB, 0xE3, 0xC6, 0xA7, 0xC2, 1, 0, 0, 255, 255, 1], InflateError::Ended),
    ] {
        assert_eq!(Decoder::new(DICTIONARY).decode(stream, 200), Err(error), "{stream:x?}");
    }
    let bomb = Encoder::new(DICTIONARY, Flush::Least).encode(&[7; 100_000]);
    assert_eq!(Decoder::new(DICTIONARY).decode(&bomb, 99_999), Err(InflateError::TooLarge));
}

proptest! {
    #[test]
    fn every_piece_comes_back(pieces in proptest::collection::vec(piece(), 1..6), sync: bool) {
        through(&pieces, if sync { Flush::Sync } else { Flush::Least });
    }

    #[test]
    fn any_octets_are_read(octets: Vec<u8>) {
        let mut decoder = Decoder::new(DICTIONARY);
        let _ = decoder.decode(&octets, 1_000);
        let head = [0x38, 0xEB, 0xE3, 0xC6, 0xA7, 0xC2];
        let mut decoder = Decoder::new(DICTIONARY);
        let _ = decoder.decode(&[&head, octets.as_slice()].concat(), 1_000);
    }
}

/// Octets of three kinds: parts of the dictionary, few values, all values.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let part = (0..DICTIONARY.len(), 0..60_usize)
        .prop_map(|(at, len)| DICTIONARY[at..].iter().copied().take(len).collect());
    let parts = proptest::collection::vec(part, 0..6).prop_map(|parts: Vec<Vec<u8>>| parts.concat());
    prop_oneof![
        parts,
        proptest::collection::vec(any::<u8>(), 0..400),
        proptest::collection::vec(b'a'..b'd', 0..400),
        (any::<u8>(), 0..1_000_usize).prop_map(|(octet, len)| vec![octet; len]),
    ]
}
