use proptest::prelude::*;

use super::*;
use crate::{ETHERTYPE_ROHC, Reader};

/// Built by hand from draft-ietf-opsawg-pcap; tshark 4.0 reads its only Ethernet frame as a truncated ROHC
/// packet of type IR.
const ROHC_FILE: &[u8] = &[
    0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0, // file header
    0x00, 0xf1, 0x53, 0x65, 0x15, 0xcd, 0x5b, 0x07, 16, 0, 0, 0, 16, 0, 0,
    0, // 1,700,000,000.123456789 s, 16 octets
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x22, 0xf1, // Ethernet
    0xfd, 0x00,
];

#[test]
fn rohc_packet_in_an_ethernet_frame() {
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
    let time = Timestamp::from_nanos(1_700_000_000_123_456_789);
    writer.write_ethernet(time, ETHERTYPE_ROHC, &[0xfd, 0x00]).unwrap();
    writer.flush().unwrap();
    let file = writer.into_inner();
    assert_eq!(file, ROHC_FILE);

    let mut reader = Reader::new(file.as_slice()).unwrap();
    let rohc = reader.next_record().unwrap().unwrap().rohc_packet().unwrap();
    assert_eq!((rohc.packet, rohc.link_header_len), (&[0xfd, 0x00][..], ETHERNET_HEADER_LEN));
}

#[test]
fn what_the_format_cannot_say_is_refused_and_not_written() {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    let too_late = Timestamp::from_nanos((1 << 32) * 1_000_000_000);
    let error = writer.write(too_late, &[1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let error = writer.write(Timestamp::default(), &vec![0; MAX_WRITTEN_LEN + 1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(writer.into_inner().len(), 24);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        link_type in any::<u16>(),
        records in prop::collection::vec(
            (0..(1_u64 << 32) * 1_000_000_000, prop::collection::vec(any::<u8>(), 0..300)),
            0..20,
        ),
    ) {
        let mut writer = Writer::new(Vec::new(), LinkType(link_type)).unwrap();
        for (nanos, data) in &records {
            writer.write(Timestamp::from_nanos(*nanos), data).unwrap();
        }
        let file = writer.into_inner();

        let mut reader = Reader::new(file.as_slice()).unwrap();
        for (number, (nanos, data)) in (1..).zip(&records) {
            let record = reader.next_record().unwrap().unwrap();
            prop_assert_eq!(record.number, number);
            prop_assert_eq!(record.time.as_nanos(), *nanos);
            prop_assert_eq!(record.link_type, LinkType(link_type));
            prop_assert_eq!(record.data, &data[..]);
            prop_assert!(!record.is_truncated());
        }
        prop_assert!(reader.next_record().is_none());
        prop_assert_eq!(reader.octets_read(), file.len() as u64);
    }
}
