//! The rules of RFC 4944, section 5.3, one by one. Any order, duplicates and loss: `tests/fragments.rs`.

use std::vec::Vec;

use super::*;
use crate::link::LinkAddress;

const LINKS: Links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };
const SECOND: Duration = Duration::from_secs(1);

type SmallReassembler = Reassembler<[u8; 128], 2>;

fn reassembler(when_full: WhenFull) -> SmallReassembler {
    Reassembler::new(
        [ReassemblySlot::new([0xEE; 128]), ReassemblySlot::new([0xEE; 128])],
        10 * SECOND,
        when_full,
    )
}

/// Header of a subsequent fragment, offset in octets.
fn next(size: u16, tag: u16, at: usize) -> FragmentHeader {
    let datagram_offset = Some((at / UNIT) as u8);
    FragmentHeader { datagram_offset, ..FragmentHeader::first(size, tag) }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// FRAG1 of ROHC, which needs no headers.
fn rohc(octets: &[u8]) -> Vec<u8> {
    [&dispatch::ROHC, octets].concat()
}

#[track_caller]
fn give<'r>(r: &'r mut SmallReassembler, header: FragmentHeader, content: &[u8]) -> FragmentOutcome<'r> {
    r.receive(at(1), &LowpanSettings::default(), LINKS, header, content).unwrap()
}

#[track_caller]
fn error(r: &mut SmallReassembler, header: FragmentHeader, content: &[u8]) -> ReassemblyError {
    r.receive(at(1), &LowpanSettings::default(), LINKS, header, content).unwrap_err()
}

fn complete(octets: &[u8]) -> FragmentOutcome<'_> {
    FragmentOutcome::Complete(Datagram { kind: DatagramKind::Rohc, octets })
}

#[test]
fn the_last_that_is_missing_completes_a_packet() {
    let mut r = reassembler(WhenFull::Refuse);
    assert_eq!(give(&mut r, next(19, 7, 16), b"end"), FragmentOutcome::Waiting);
    assert_eq!(give(&mut r, FragmentHeader::first(19, 7), &rohc(b"01234567")), FragmentOutcome::Waiting);
    assert_eq!((r.waiting(), r.poll_timeout()), (1, Some(at(10_001))));
    assert_eq!(give(&mut r, next(19, 7, 8), b"89abcdef"), complete(b"0123456789abcdefend"));
    assert_eq!((r.waiting(), r.poll_timeout()), (0, None));
}

#[test]
fn duplicates_change_nothing_before_and_after_the_packet_is_complete() {
    let mut r = reassembler(WhenFull::Refuse);
    let (first, last) = (FragmentHeader::first(11, 7), next(11, 7, 8));
    give(&mut r, first, &rohc(b"01234567"));
    assert_eq!(give(&mut r, first, &rohc(b"01234567")), FragmentOutcome::Duplicate);
    assert_eq!(give(&mut r, last, b"end"), complete(b"01234567end"));
    assert_eq!(give(&mut r, last, b"end"), FragmentOutcome::Duplicate);
    assert_eq!(give(&mut r, first, &rohc(b"01234567")), FragmentOutcome::Duplicate);
    assert_eq!((r.waiting(), r.counters().duplicates), (0, 3));
    // Another packet with the tag of a complete one.
    assert_eq!(give(&mut r, first, &rohc(b"ABCDEFGH")), FragmentOutcome::Waiting);
    assert_eq!(give(&mut r, last, b"END"), complete(b"ABCDEFGHEND"));
    assert_eq!(r.counters().overlapped, 0);
}

/// "differs in either the size or datagram_offset of the overlapped fragment, the fragment(s) already accumulated in
/// the reassembly buffer SHALL be discarded. A fresh reassembly may be commenced with the most recently received".
#[test]
fn an_overlap_begins_the_packet_anew() {
    let overlaps: [(FragmentHeader, &[u8]); 5] = [
        // Longer, shorter, from within, other octets.
        (next(40, 7, 8), b"89abcdefghijklmnopqrstuv"),
        (next(40, 7, 8), b"89abcdef"),
        (next(40, 7, 16), b"ghijklmn"),
        (next(40, 7, 8), b"89abcdefghijklmN"),
        // A first fragment that overlaps it.
        (FragmentHeader::first(40, 7), b"\xff\x520123456789abcdef"),
    ];
    for (header, content) in overlaps {
        let mut r = reassembler(WhenFull::Refuse);
        give(&mut r, next(40, 7, 32), b"wxyz....");
        give(&mut r, next(40, 7, 8), b"89abcdefghijklmn");
        assert_eq!(give(&mut r, header, content), FragmentOutcome::BegunAnew, "{header:?}");
        assert_eq!((r.waiting(), r.counters().overlapped), (1, 1));
        // The packet is complete only with later fragments.
        let whole: Vec<u8> = (b'0'..).take(40).collect();
        // Twice, since these overlap the later ones.
        for at in (8..40).step_by(8).chain((8..40).step_by(8)) {
            give(&mut r, next(40, 7, at), &whole[at..at + 8]);
        }
        let done = give(&mut r, FragmentHeader::first(40, 7), &rohc(&whole[..8]));
        assert_eq!(done, complete(&whole));
    }
}

#[test]
fn two_fragments_are_not_one_of_both_lengths() {
    let mut r = reassembler(WhenFull::Refuse);
    give(&mut r, next(40, 7, 8), b"89abcdef");
    give(&mut r, next(40, 7, 16), b"ghijklmn");
    assert_eq!(give(&mut r, next(40, 7, 8), b"89abcdefghijklmn"), FragmentOutcome::BegunAnew);
}

#[test]
fn packets_are_distinguished_by_addresses_size_and_tag() {
    let mut r = Reassembler::new([0; 4].map(|_| ReassemblySlot::new([0; 64])), SECOND, WhenFull::Refuse);
    let settings = LowpanSettings::default();
    let other = Links { source: LinkAddress::Short(3), ..LINKS };
    for (links, size, tag) in [(LINKS, 20, 1), (other, 20, 1), (LINKS, 20, 2), (LINKS, 21, 1)] {
        let done = r.receive(at(0), &settings, links, FragmentHeader::first(size, tag), &rohc(b"01234567"));
        assert_eq!(done, Ok(FragmentOutcome::Waiting));
    }
    assert_eq!(r.waiting(), 4);
}

#[test]
fn a_packet_is_given_up_when_its_time_is_over() {
    let mut r = reassembler(WhenFull::Refuse);
    let settings = LowpanSettings::default();
    r.receive(at(0), &settings, LINKS, next(19, 7, 16), b"end").unwrap();
    r.receive(at(9_000), &settings, LINKS, next(19, 7, 8), b"89abcdef").unwrap();
    r.handle_timeout(at(9_999));
    assert_eq!((r.waiting(), r.poll_timeout()), (1, Some(at(10_000))));
    let first = r.receive(at(10_000), &settings, LINKS, FragmentHeader::first(19, 7), &rohc(b"01234567"));
    assert_eq!(first, Ok(FragmentOutcome::Waiting));
    assert_eq!((r.waiting(), r.counters().timed_out), (1, 1));
    r.clear();
    assert_eq!((r.waiting(), r.poll_timeout()), (0, None));
}

#[test]
fn when_all_slots_are_taken_a_packet_is_refused_or_replaces_the_oldest() {
    for when_full in [WhenFull::Refuse, WhenFull::ReplaceOldest] {
        let mut r = reassembler(when_full);
        let settings = LowpanSettings::default();
        for tag in [1, 2] {
            r.receive(at(tag.into()), &settings, LINKS, next(11, tag, 8), b"end").unwrap();
        }
        let third = r.receive(at(3), &settings, LINKS, next(11, 3, 8), b"end");
        let first = FragmentHeader::first(11, 1);
        if when_full == WhenFull::Refuse {
            assert_eq!(third, Err(ReassemblyError::Full));
            assert_eq!(give(&mut r, first, &rohc(b"01234567")), complete(b"01234567end"));
            assert_eq!(
                r.counters(),
                ReassemblyCounters { complete: 1, refused: 1, ..ReassemblyCounters::default() }
            );
        } else {
            assert_eq!(third, Ok(FragmentOutcome::Waiting));
            let second = FragmentHeader::first(11, 2);
            assert_eq!(give(&mut r, second, &rohc(b"01234567")), complete(b"01234567end"));
            assert_eq!(give(&mut r, first, &rohc(b"01234567")), FragmentOutcome::Waiting);
            assert_eq!(
                r.counters(),
                ReassemblyCounters { complete: 1, replaced: 1, ..ReassemblyCounters::default() }
            );
        }
    }
}

#[test]
fn what_cannot_be_is_dropped_and_takes_no_slot() {
    let mut r = reassembler(WhenFull::Refuse);
    give(&mut r, next(19, 7, 16), b"end");
    let cases: [(FragmentHeader, &[u8]); 8] = [
        (next(19, 7, 8), b""),
        (next(19, 7, 8), b"1234567"),
        (next(19, 7, 8), b"123456789abc"),
        (next(19, 7, 16), b"1234"),
        (next(19, 7, 0), b"12345678"),
        (FragmentHeader::first(19, 7), b"\xff\x52"),
        (FragmentHeader::first(19, 7), b"\xff\x521234567"),
        (FragmentHeader::first(19, 7), b"\x411234567"),
    ];
    for (header, content) in cases {
        assert_eq!(error(&mut r, header, content), ReassemblyError::Malformed, "{header:?}");
    }
    let header = FragmentHeader::first(19, 7);
    let hc1 = ReassemblyError::Header(DecompressError::Dispatch { octet: dispatch::LOWPAN_HC1 });
    assert_eq!(error(&mut r, header, &[dispatch::LOWPAN_HC1, 0]), hc1);
    assert_eq!(error(&mut r, next(129, 1, 8), b"12345678"), ReassemblyError::TooLong { size: 129 });
    assert_eq!((r.waiting(), r.counters().refused), (1, 10));
    give(&mut r, header, &rohc(b"01234567"));
    assert_eq!(give(&mut r, next(19, 7, 8), b"89abcdef"), complete(b"0123456789abcdefend"));
}

#[test]
fn what_a_slot_has_beside_its_memory_is_bounded() {
    assert!(size_of::<ReassemblySlot<[u8; 0]>>() <= 192, "{}", size_of::<ReassemblySlot<[u8; 0]>>());
}
