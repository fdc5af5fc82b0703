use super::*;

/// Two records built by hand from draft-ietf-opsawg-pcap: 5 octets, and 3 octets captured of 1,000.
const LITTLE_ENDIAN: [u8; 64] = [
    0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0, // file header
    0x00, 0xf1, 0x53, 0x65, 0x40, 0xe2, 0x01, 0x00, 5, 0, 0, 0, 5, 0, 0,
    0, // 1,700,000,000 s and 123,456 units
    1, 2, 3, 4, 5, //
    0x01, 0xf1, 0x53, 0x65, 0x00, 0x00, 0x00, 0x00, 3, 0, 0, 0, 0xe8, 3, 0, 0, //
    6, 7, 8,
];
const BIG_ENDIAN: [u8; 64] = [
    0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101, //
    0x65, 0x53, 0xf1, 0x00, 0x00, 0x01, 0xe2, 0x40, 0, 0, 0, 5, 0, 0, 0, 5, //
    1, 2, 3, 4, 5, //
    0x65, 0x53, 0xf1, 0x01, 0x00, 0x00, 0x00, 0x00, 0, 0, 0, 3, 0, 0, 3, 0xe8, //
    6, 7, 8,
];

/// UDP from 192.0.2.1 to 192.0.2.2 in Ethernet, written by editcap 4.0.17 (`-F nsecpcap`).
const EDITCAP: [u8; 82] = [
    0x4d, 0x3c, 0xb2, 0xa1, 0x02, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
    0xff, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0xf1, 0x53, 0x65, 0x00, 0xca, 0x5b, 0x07, 0x2a, 0x00,
    0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x08, 0x00, 0x45, 0x00, 0x00, 0x1c, 0x00, 0x01, 0x00, 0x00, 0x40, 0x11, 0x66, 0xce, 0xc0, 0x00,
    0x02, 0x01, 0xc0, 0x00, 0x02, 0x02, 0x30, 0x39, 0x30, 0x39, 0x00, 0x08, 0x36, 0xbb,
];

fn expected(nanos: u64) -> Contents {
    vec![
        (1, nanos, LinkType::RAW, vec![1, 2, 3, 4, 5], 5),
        (2, 1_700_000_001_000_000_000, LinkType::RAW, vec![6, 7, 8], 1_000),
    ]
}

fn with_magic(mut file: [u8; 64], magic: [u8; 4]) -> [u8; 64] {
    file[..4].copy_from_slice(&magic);
    file
}

#[test]
fn microseconds_and_nanoseconds_in_both_byte_orders() {
    let (micros, nanos) = (expected(1_700_000_000_123_456_000), expected(1_700_000_000_000_123_456));
    assert_eq!(contents(&LITTLE_ENDIAN), micros);
    assert_eq!(contents(&BIG_ENDIAN), micros);
    assert_eq!(contents(&with_magic(LITTLE_ENDIAN, [0x4d, 0x3c, 0xb2, 0xa1])), nanos);
    assert_eq!(contents(&with_magic(BIG_ENDIAN, [0xa1, 0xb2, 0x3c, 0x4d])), nanos);
}

#[test]
fn file_of_another_tool() {
    let expected = (1, 1_700_000_000_123_456_000, LinkType::ETHERNET, EDITCAP[40..].to_vec(), 42);
    assert_eq!(contents(&EDITCAP), [expected]);
}

#[test]
fn snap_length_makes_records_truncated() {
    let mut reader = Reader::new(&LITTLE_ENDIAN[..]).unwrap();
    assert!(!reader.next_record().unwrap().unwrap().is_truncated());
    assert!(reader.next_record().unwrap().unwrap().is_truncated());
}

#[test]
fn link_type_ignores_the_bits_about_the_frame_check_sequence() {
    let mut file = LITTLE_ENDIAN;
    file[22..24].copy_from_slice(&[0x00, 0x24]);
    assert_eq!(contents(&file)[0].2, LinkType::RAW);
}

#[test]
fn truncation_at_every_offset_gives_all_records_before() {
    for file in [&LITTLE_ENDIAN, &BIG_ENDIAN] {
        assert_truncation(file, &[24, 45, 64], 24);
    }
}

#[test]
fn versions_that_do_not_exist_are_refused() {
    for version in [[1, 0, 4, 0], [3, 0, 0, 0]] {
        let mut file = LITTLE_ENDIAN;
        file[4..8].copy_from_slice(&version);
        let error = Reader::new(&file[..]).unwrap_err();
        assert!(matches!(error, Error::Malformed { flaw: Flaw::Version { .. }, .. }), "{error}");
    }
}

/// Before version 2.3 the original length of a record precedes the captured one, and in 2.3 it may.
#[test]
fn lengths_in_the_order_of_old_tools() {
    let with = |minor: u8, swapped: bool| {
        let mut file = LITTLE_ENDIAN;
        file[6] = minor;
        let lengths = 24 + 8..24 + 16;
        file[24 + 12] += 5;
        if swapped {
            file[lengths].rotate_left(4);
        }
        let mut reader = Reader::new(&file[..]).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        (record.data.len(), record.original_len)
    };
    let (len, original_len) = with(4, false);
    assert_eq!(len as u32 + 5, original_len);
    for (minor, swapped) in [(0, true), (1, true), (2, true), (3, true), (3, false)] {
        assert_eq!(with(minor, swapped), (len, original_len), "2.{minor}");
    }
}

#[test]
fn a_record_that_is_too_long_ends_reading() {
    let mut file = LITTLE_ENDIAN.to_vec();
    file[45 + 8..45 + 12].copy_from_slice(&[0, 0, 0, 1]);
    let (contents, errors) = read_all(&file[..]);
    assert_eq!(contents.len(), 1);
    assert_eq!(
        errors[0].to_string(),
        "malformed file at offset 45, record 2: a record of 16777232 octets exceeds the limit of 16777216"
    );
    assert_eq!(errors.len(), 1);
}

#[test]
fn a_long_record_is_read() {
    let mut file = LITTLE_ENDIAN[..24].to_vec();
    let data = vec![7; MAX_RECORD_LEN - 16];
    file.extend([0; 8]);
    file.extend((data.len() as u32).to_le_bytes());
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(&data);
    file.extend(&LITTLE_ENDIAN[24..]);
    let contents = contents(&file);
    assert!(contents[0].3 == data);
    assert_eq!(contents[2].3, [6, 7, 8]);
}
