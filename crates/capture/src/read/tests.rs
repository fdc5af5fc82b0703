use std::io;

use proptest::prelude::*;

use super::*;
use crate::LinkType;

/// Contents of a file: number, nanoseconds, link type, data and original length of each record.
type Contents = Vec<(u64, u64, LinkType, Vec<u8>, u32)>;

fn read_all(read: impl Read) -> (Contents, Vec<Error>) {
    let (mut contents, mut errors) = (Vec::new(), Vec::new());
    let mut reader = match Reader::new(read) {
        Ok(reader) => reader,
        Err(error) => return (contents, vec![error]),
    };
    while let Some(record) = reader.next_record() {
        match record {
            Ok(r) => {
                contents.push((r.number, r.time.as_nanos(), r.link_type, r.data.to_vec(), r.original_len))
            }
            Err(error) => errors.push(error),
        }
    }
    (contents, errors)
}

#[track_caller]
fn contents(file: &[u8]) -> Contents {
    let (contents, errors) = read_all(file);
    assert!(errors.is_empty(), "{errors:?}");
    contents
}

mod pcap_files;
mod pcapng_files;

/// Truncates `file` at every offset. `ends`: offsets at which a file may end; `header_end`: offset from which
/// `Reader::new` succeeds.
#[track_caller]
fn assert_truncation(file: &[u8], ends: &[usize], header_end: usize) {
    let whole = contents(file);
    for end in 0..=file.len() {
        let (contents, errors) = read_all(&file[..end]);
        let start = ends.iter().rfind(|&&before| before <= end).copied().unwrap_or(0);
        assert_eq!(contents[..], whole[..contents.len()]);
        match &errors[..] {
            [] => assert_eq!(start, end),
            [Error::NotACapture { .. }] => assert!(end < 4),
            [Error::Truncated { offset, end: at, record }] => {
                assert_eq!((*offset, *at), (start as u64, end as u64));
                assert_ne!(start, end);
                let next = contents.len() as u64 + 1;
                assert_eq!(*record, if end < header_end { 0 } else { next });
            }
            _ => panic!("cut at {end}: {errors:?}"),
        }
    }
}

#[test]
fn truncation_names_the_place() {
    let mut file = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0].to_vec();
    file.resize(30, 0);
    let (_, errors) = read_all(&file[..]);
    assert_eq!(errors[0].to_string(), "truncated file at offset 30, record 1, which starts at offset 24");
    let (_, errors) = read_all(&file[..8]);
    assert_eq!(
        errors[0].to_string(),
        "truncated file at offset 8, in the file header, which starts at offset 0"
    );
}

#[test]
fn files_of_other_kinds_say_what_to_do() {
    let message = |file: &[u8]| Reader::new(file).unwrap_err().to_string();
    assert_eq!(
        message(b"BZh91"),
        "not a capture file: no magic number of pcap or pcapng at offset 0: this is bzip2; decompress it first"
    );
    assert_eq!(
        message(b"snoop\0\0\0"),
        "not a capture file: no magic number of pcap or pcapng at offset 0: this is a snoop file; convert it with \
         `editcap -F pcapng`"
    );
    assert!(message(b"").contains("the file is empty"));
    assert!(message(b"abc").contains("the file is shorter"));
    assert!(message(b"text in a file").contains("tcpdump"));
}

/// Returns the octets of a file in pieces of the given lengths, with interruptions between them.
struct Pieces<'a> {
    file: &'a [u8],
    lengths: Vec<usize>,
    turn: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = self.lengths[self.turn % self.lengths.len()].min(room.len());
        self.file.read(&mut room[..length])
    }
}

#[test]
fn a_failing_read_ends_reading_with_its_cause() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let header = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
    let (_, errors) = read_all(header.chain(Broken));
    assert!(matches!(&errors[..], [Error::Io { offset: 24, .. }]), "{errors:?}");
    assert!(std::error::Error::source(&errors[0]).is_some());
}

/// Octets that resemble a file enough to pass the first checks.
fn almost_a_file() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        (0..8_u32).prop_map(|small| small.to_le_bytes()),
        (0..20_u32).prop_map(|small| (4 * small).to_le_bytes()),
        Just([0x0a, 0x0d, 0x0d, 0x0a]),
        Just([0x4d, 0x3c, 0x2b, 0x1a]),
        Just([0x1a, 0x2b, 0x3c, 0x4d]),
        any::<[u8; 4]>(),
    ];
    let block = (0..8_u32, prop::collection::vec(word, 0..12)).prop_map(|(block_type, words)| {
        let length = (12 + 4 * words.len() as u32).to_le_bytes();
        [&block_type.to_le_bytes()[..], &length, &words.concat(), &length].concat()
    });
    let start = prop_oneof![
        prop::sample::select(pcap::MAGICS.to_vec()).prop_map(|magic| [&magic[..], &[2, 0, 4, 0]].concat()),
        prop::sample::select(pcap::MAGICS.to_vec()).prop_map(|magic| [&magic[..], &[0, 2, 0, 4]].concat()),
        Just(
            [
                &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
                &[0xff; 8],
                &[28, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0],
            ]
            .concat()
        ),
    ];
    (start, prop::collection::vec(block, 0..10), prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(start, blocks, end)| [start, blocks.concat(), end].concat())
}

proptest! {
    #[test]
    fn any_octets_are_read_to_an_end(file in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&file[..]);
    }

    #[test]
    fn any_damage_is_read_to_an_end(file in almost_a_file()) {
        let (contents, errors) = read_all(&file[..]);
        let last = errors.len().saturating_sub(1);
        prop_assert!(errors.iter().take(last).all(|error| !error.ends_reading()));
        let data: usize = contents.iter().map(|record| record.3.len()).sum();
        prop_assert!(data <= file.len());
    }

    #[test]
    fn pieces_give_the_same_as_the_whole(
        file in almost_a_file(),
        lengths in prop::collection::vec(1..40_usize, 1..8),
    ) {
        let (contents, errors) = read_all(&file[..]);
        let (in_pieces, errors_in_pieces) = read_all(Pieces { file: &file, lengths, turn: 0 });
        prop_assert_eq!(contents, in_pieces);
        prop_assert_eq!(format!("{errors:?}"), format!("{errors_in_pieces:?}"));
    }
}
