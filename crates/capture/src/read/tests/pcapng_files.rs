use super::*;

/// Builds blocks by hand from draft-ietf-opsawg-pcapng, in either byte order.
struct Blocks {
    big_endian: bool,
    file: Vec<u8>,
    ends: Vec<usize>,
}

impl Blocks {
    fn new(big_endian: bool) -> Self {
        Self { big_endian, file: Vec::new(), ends: Vec::new() }.section()
    }

    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32s(&self, values: &[u32]) -> Vec<u8> {
        let order = |&value: &u32| if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        values.iter().flat_map(order).collect()
    }

    fn block(mut self, block_type: u32, parts: &[&[u8]]) -> Self {
        let mut body = parts.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = body.len() as u32 + 12;
        self.file.extend(self.u32s(&[block_type, length]));
        self.file.extend(body);
        self.file.extend(self.u32s(&[length]));
        self.ends.push(self.file.len());
        self
    }

    /// Version 1.0, without section length.
    fn section(self) -> Self {
        let magic = self.u32s(&[0x1a2b_3c4d]);
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(0x0a0d_0d0a, &[&magic, &version, &[0xff; 8]])
    }

    fn interface(self, link_type: u16, snap_len: u32, options: &[(u16, &[u8])]) -> Self {
        let mut fields = [self.u16(link_type), self.u16(0)].concat();
        fields.extend(self.u32s(&[snap_len]));
        for &(code, value) in options {
            fields.extend(self.u16(code));
            fields.extend(self.u16(value.len() as u16));
            fields.extend(value);
            fields.resize(fields.len().next_multiple_of(4), 0);
        }
        self.block(1, &[&fields])
    }

    fn enhanced(self, interface: u32, time: u64, data: &[u8], original_len: u32) -> Self {
        let (high, low) = ((time >> 32) as u32, time as u32);
        let fields = self.u32s(&[interface, high, low, data.len() as u32, original_len]);
        // A comment, as an option after the packet.
        let comment = [&self.u16(1)[..], &self.u16(3), b"abc\0", &[0; 4]].concat();
        let padding = vec![0; data.len().next_multiple_of(4) - data.len()];
        self.block(6, &[&fields, data, &padding, &comment])
    }

    fn simple(self, data: &[u8], original_len: u32) -> Self {
        let fields = self.u32s(&[original_len]);
        self.block(3, &[&fields, data])
    }

    fn obsolete(self, interface: u16, time: u64, data: &[u8], original_len: u32) -> Self {
        let ids = [self.u16(interface), self.u16(0xffff)].concat();
        let (high, low) = ((time >> 32) as u32, time as u32);
        let fields = self.u32s(&[high, low, data.len() as u32, original_len]);
        self.block(2, &[&ids, &fields, data])
    }
}

/// Interface Description and Enhanced Packet by editcap 4.0.17 from a file of raw IP in nanoseconds; its
/// section header without the option that names the tool.
const EDITCAP: [u8; 120] = [
    0x0a, 0x0d, 0x0d, 0x0a, 0x1c, 0x00, 0x00, 0x00, 0x4d, 0x3c, 0x2b, 0x1a, 0x01, 0x00, 0x00, 0x00, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1c, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x20, 0x00,
    0x00, 0x00, 0x65, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00, 0x00, 0x09, 0x00, 0x01, 0x00, 0x09, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x3c, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xfe, 0x9c, 0x97, 0x17, 0x15, 0x97, 0x20, 0x79, 0x1c, 0x00, 0x00, 0x00, 0x1c,
    0x00, 0x00, 0x00, 0x45, 0x00, 0x00, 0x1c, 0x00, 0x01, 0x00, 0x00, 0x40, 0x11, 0x66, 0xce, 0xc0, 0x00,
    0x02, 0x01, 0xc0, 0x00, 0x02, 0x02, 0x30, 0x39, 0x30, 0x39, 0x00, 0x08, 0x36, 0xbb, 0x3c, 0x00, 0x00,
    0x00,
];

#[test]
fn file_of_another_tool() {
    let expected = (1, 1_700_000_001_123_456_789, LinkType::RAW, EDITCAP[88..116].to_vec(), 28);
    assert_eq!(contents(&EDITCAP), [expected]);
}

#[test]
fn sections_interfaces_and_packet_blocks_in_both_byte_orders() {
    const TIME: u64 = 1_700_000_000_123_456;
    let nanos = TIME * 1_000;
    for big_endian in [false, true] {
        let mut blocks = Blocks::new(big_endian)
            .interface(1, 0, &[])
            .interface(101, 4, &[(2, b"eth0"), (9, &[9])])
            .enhanced(1, nanos, &[1, 2, 3, 4], 9)
            // Name resolution, statistics, and an unassigned type.
            .block(4, &[&[0; 4]])
            .block(5, &[&[0; 12]])
            .block(0x0bad_cafe, &[&[0xff; 4 * 40_000]])
            .enhanced(0, TIME, &[5, 6, 7], 3)
            .simple(&[8, 9, 10, 11, 12], 5)
            .obsolete(1, nanos, &[13], 1);
        // A section in the other byte order with a different interface.
        blocks.big_endian = !big_endian;
        let blocks = blocks.section().interface(228, 2, &[]).simple(&[14, 15], 7).enhanced(0, TIME, &[], 0);
        let expected = vec![
            (1, nanos, LinkType::RAW, vec![1, 2, 3, 4], 9),
            (2, nanos, LinkType::ETHERNET, vec![5, 6, 7], 3),
            (3, 0, LinkType::ETHERNET, vec![8, 9, 10, 11, 12], 5),
            (4, nanos, LinkType::RAW, vec![13], 1),
            (5, 0, LinkType::IPV4, vec![14, 15], 7),
            (6, nanos, LinkType::IPV4, vec![], 0),
        ];
        assert_eq!(contents(&blocks.file), expected);
    }
}

#[test]
fn time_resolution_and_offset() {
    let time = |big_endian, options: &[(u16, &[u8])], ticks| {
        let file = Blocks::new(big_endian).interface(1, 0, options).enhanced(0, ticks, &[], 0).file;
        contents(&file)[0].1
    };
    for big_endian in [false, true] {
        let offset: i64 = -10;
        let offset = if big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() };
        let time = |options: &[(u16, &[u8])], ticks| time(big_endian, options, ticks);
        assert_eq!(time(&[], 7), 7_000);
        assert_eq!(time(&[(9, &[0])], 7), 7_000_000_000);
        assert_eq!(time(&[(9, &[9])], u64::MAX), u64::MAX);
        assert_eq!(time(&[(9, &[12])], 7_999), 7);
        assert_eq!(time(&[(9, &[0x7f])], u64::MAX), 0);
        // 2 to the power of -10 and of -127 seconds.
        assert_eq!(time(&[(9, &[0x8a])], 1_536), 1_500_000_000);
        assert_eq!(time(&[(9, &[0xff])], u64::MAX), 0);
        assert_eq!(time(&[(14, &offset)], 12_000_000), 2_000_000_000);
        // Before the epoch, and after the maximum time.
        assert_eq!(time(&[(14, &offset)], 9_000_000), 0);
        assert_eq!(time(&[(9, &[0])], u64::MAX), u64::MAX);
        // After the end of the options, and with an invalid length.
        assert_eq!(time(&[(0, &[]), (9, &[0])], 7), 7_000);
        assert_eq!(time(&[(9, &[0, 0]), (14, &[1])], 7), 7_000);
    }
}

#[test]
fn truncation_at_every_offset_gives_all_records_before() {
    for big_endian in [false, true] {
        let blocks = Blocks::new(big_endian).interface(1, 0, &[(9, &[9])]);
        let first_packet_at = blocks.file.len();
        let blocks = blocks.enhanced(0, 1, &[1, 2, 3], 3).simple(&[4, 5], 2).obsolete(0, 3, &[6, 7], 2);
        assert_eq!(blocks.ends[1], first_packet_at);
        // A skipped block after the packets; a file that ends within it is truncated, too.
        let blocks = blocks.block(5, &[&[0; 12]]);
        assert_truncation(&blocks.file, &blocks.ends, blocks.ends[0]);
    }
}

#[test]
fn a_packet_of_an_unknown_interface_costs_one_record() {
    let file = Blocks::new(false)
        .simple(&[0], 1)
        .interface(1, 0, &[])
        .enhanced(7, 0, &[1], 1)
        .obsolete(1, 0, &[2], 1)
        .enhanced(0, 0, &[3], 1)
        .file;
    let (contents, errors) = read_all(&file[..]);
    assert_eq!(contents, [(4, 0, LinkType::ETHERNET, vec![3], 1)]);
    let messages: Vec<_> = errors.iter().map(Error::to_string).collect();
    assert_eq!(
        messages,
        [
            "malformed file at offset 28, record 1: interface 0 is undefined; the section has defined 0 so far",
            "malformed file at offset 68, record 2: interface 7 is undefined; the section has defined 1 so far",
            "malformed file at offset 116, record 3: interface 1 is undefined; the section has defined 1 so far",
        ]
    );
}

#[test]
fn a_packet_that_does_not_fit_in_its_block_costs_one_record() {
    let blocks = Blocks::new(false).interface(1, 0, &[]);
    let too_long = |captured_len: u32| blocks.u32s(&[0, 0, 0, captured_len, 1, 0]);
    let (enhanced, huge) = (too_long(50), too_long(u32::MAX));
    let file = blocks
        .block(6, &[&enhanced])
        .block(6, &[&huge])
        .block(2, &[&enhanced])
        .block(2, &[&huge])
        .block(6, &[])
        .block(3, &[])
        .block(2, &[&[0; 8]])
        .enhanced(0, 0, &[3], 1)
        .file;
    let (contents, errors) = read_all(&file[..]);
    assert_eq!(contents, [(8, 0, LinkType::ETHERNET, vec![3], 1)]);
    assert_eq!(errors.len(), 7);
    for error in errors {
        assert!(matches!(error, Error::Malformed { flaw: Flaw::PacketTooLong, .. }), "{error}");
        assert!(!error.ends_reading());
    }
}

#[test]
fn damaged_blocks_end_reading() {
    let good = || Blocks::new(false).interface(1, 0, &[]).enhanced(0, 0, &[3], 1);
    let with_end = |mut blocks: Blocks, at_end: u32| {
        let length = blocks.file.len();
        blocks.file[length - 4..].copy_from_slice(&at_end.to_le_bytes());
        blocks.file
    };
    let with_start = |mut blocks: Blocks, at_start: u32| {
        let length_at = blocks.ends[blocks.ends.len() - 2] + 4;
        blocks.file[length_at..length_at + 4].copy_from_slice(&at_start.to_le_bytes());
        blocks.file
    };
    let with_version = |version: [u8; 4]| {
        let mut blocks = good().section();
        let version_at = blocks.ends[2] + 12;
        blocks.file[version_at..version_at + 4].copy_from_slice(&version);
        blocks.file
    };
    let mut without_magic = good().section().file;
    let magic_at = without_magic.len() - 20;
    without_magic[magic_at] = 0;
    let mut interfaces = good();
    for _ in 0..65_536 {
        interfaces = interfaces.interface(1, 0, &[]);
    }

    let cases = [
        (with_end(good().block(5, &[]), 16), Flaw::BlockLengthsDiffer { first: 12, last: 16 }),
        (with_end(good().simple(&[1], 1), 16), Flaw::BlockLengthsDiffer { first: 20, last: 16 }),
        (with_start(good().block(5, &[]), 8), Flaw::BlockLength { length: 8 }),
        (with_start(good().block(5, &[]), 14), Flaw::BlockLength { length: 14 }),
        (
            with_start(good().simple(&[1], 1), u32::MAX - 3),
            Flaw::TooLong { length: 0xffff_fffc, limit: 16_777_216 },
        ),
        (good().block(1, &[&[0; 4]]).file, Flaw::BlockTooShort { block_type: 1 }),
        (
            good().block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a]]).file,
            Flaw::BlockTooShort { block_type: 0x0a0d_0d0a },
        ),
        (with_version([2, 0, 0, 0]), Flaw::Version { major: 2, minor: 0 }),
        (without_magic, Flaw::ByteOrderMagic),
        (interfaces.file, Flaw::TooManyInterfaces { limit: 65_536 }),
    ];
    for (mut file, expected) in cases {
        file.extend(good().file);
        let (contents, errors) = read_all(&file[..]);
        assert_eq!(contents.len(), 1, "{expected}");
        assert!(
            matches!(errors[..], [Error::Malformed { record: 2, flaw, .. }] if flaw == expected),
            "{errors:?}"
        );
        assert!(errors[0].ends_reading());
    }
}

#[test]
fn a_skipped_block_may_be_longer_than_a_record() {
    let mut file = Blocks::new(false).file;
    let length = MAX_RECORD_LEN as u32 + 64;
    file.extend([0x0b, 0, 0, 0]);
    file.extend(length.to_le_bytes());
    let start = io::Cursor::new(file).chain(io::repeat(0xee).take(u64::from(length) - 12));
    let end =
        [&length.to_le_bytes()[..], &Blocks::new(false).interface(1, 0, &[]).simple(&[1], 1).file].concat();
    let (contents, errors) = read_all(start.chain(&end[..]));
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(contents, [(1, 0, LinkType::ETHERNET, vec![1], 1)]);
}
