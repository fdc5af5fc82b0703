use std::io::Write as _;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;
use crate::{Error, Flaw, LinkType, Reader, Timestamp, Writer};

/// Number of records in this capture.
const RECORDS: u64 = 3_000;

fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for number in 0..RECORDS {
        // Pseudorandom octets of a congruential generator, which compress little.
        let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let data: Vec<u8> = (0..100)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 60) as u8
            })
            .collect();
        writer.write(Timestamp::from_nanos(number), &data).unwrap();
    }
    writer.into_inner()
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(octets: &[u8]) -> Vec<u8> {
    compress_to_vec(octets, CompressionLevel::Fastest)
}

/// Number of records read, and the error at the end.
fn read(file: &[u8]) -> (u64, Option<Error>) {
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error)),
    };
    let (mut records, mut last) = (0, None);
    while let Some(record) = reader.next_record() {
        match record {
            Ok(record) => records = record.number,
            Err(error) => last = Some(error),
        }
    }
    if last.is_none() {
        assert_eq!(reader.octets_read(), file.len() as u64);
    }
    (records, last)
}

#[test]
fn compressed_captures_are_read_as_others() {
    let capture = capture();
    for compress in [gzip, zstandard] {
        let file = compress(&capture);
        assert!(file.len() < capture.len(), "{}", file.len());
        let (records, error) = read(&file);
        assert_eq!((records, error.is_none()), (RECORDS, true), "{error:?}");
    }
}

/// Both formats allow several of them in one file, as parallel compressors write them (RFC 1952, section 2.2;
/// RFC 8878, section 3.1).
#[test]
fn several_members_or_frames_are_one_file() {
    let capture = capture();
    let (one, other) = capture.split_at(1_000);
    let skippable = [&b"\x50\x2a\x4d\x18\x03\0\0\0"[..], b"abc"].concat();
    for file in [
        [gzip(one), gzip(other)].concat(),
        [zstandard(one), zstandard(other)].concat(),
        [zstandard(one), skippable.clone(), zstandard(&[]), zstandard(other), skippable].concat(),
    ] {
        let (records, error) = read(&file);
        assert_eq!((records, error.is_none()), (RECORDS, true), "{error:?}");
    }
}

#[test]
fn records_before_the_cut_are_read() {
    let capture = capture();
    for compress in [gzip, zstandard] {
        let file = compress(&capture);
        let mut latest = 0;
        for end in (4..file.len()).step_by(file.len() / 50).chain([file.len() - 1]) {
            let (records, error) = read(&file[..end]);
            assert!(matches!(error, Some(Error::Truncated { .. })), "{end}: {error:?}");
            assert!(records >= latest, "{end}");
            latest = records;
        }
        assert_eq!(latest, RECORDS, "the last octets are a checksum");
        // A block of Zstandard has up to 128 KiB of content.
        let (records, _) = read(&file[..file.len() / 2]);
        assert!(records > RECORDS / 10, "{records}");
    }
}

#[test]
fn damage_ends_reading_and_is_named() {
    let capture = capture();
    for (compress, format) in
        [(gzip as fn(&[u8]) -> Vec<u8>, Compression::Gzip), (zstandard, Compression::Zstandard)]
    {
        for at in [1, 4] {
            let mut file = compress(&capture);
            let at = file.len() - at;
            file[at] ^= 0x10;
            let (records, error) = read(&file);
            let flaw = Flaw::Compression { format };
            assert!(
                matches!(error, Some(Error::Malformed { flaw: found, .. }) if found == flaw),
                "{error:?}"
            );
            assert_eq!(records, RECORDS);
        }
        let mut file = compress(&capture);
        let middle = file.len() / 2;
        file[middle..middle + 100].fill(0xff);
        let (_, error) = read(&file);
        assert!(matches!(error, Some(Error::Malformed { .. })), "{error:?}");
    }
}

#[test]
fn content_that_is_no_capture_is_named() {
    for compress in [gzip, zstandard] {
        let of = |content: &[u8]| Reader::new(compress(content).as_slice()).unwrap_err().to_string();
        assert!(of(b"hello, world").contains("the format is unknown"));
        assert!(of(&[]).contains("the file is empty"));
        assert!(of(&gzip(b"")).contains("this is gzip; decompress it first"));
    }
}

#[test]
fn any_cut_and_any_octet_is_refused_or_read() {
    let capture = &capture()[..2_000];
    for compress in [gzip, zstandard] {
        let file = compress(capture);
        for at in 0..file.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= mask;
                read_any(&damaged);
            }
            read_any(&file[..at]);
        }
    }
}

fn read_any(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file) else { return };
    while reader.next_record().is_some() {}
}

struct Fails<'f>(&'f [u8]);

impl Read for Fails<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.read(room)? {
            0 => Err(io::ErrorKind::PermissionDenied.into()),
            count => Ok(count),
        }
    }
}

#[test]
fn failures_of_the_system_are_no_damage() {
    for compress in [gzip, zstandard] {
        let file = compress(&capture());
        let mut reader = Reader::new(Fails(&file[..file.len() / 2])).unwrap();
        let error = std::iter::from_fn(|| reader.next_record().map(|record| record.err())).flatten().next();
        assert!(matches!(error, Some(Error::Io { .. })), "{error:?}");
    }
}
