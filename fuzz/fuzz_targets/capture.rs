#![no_main]
//! Capture files of arbitrary octets: reading ends, and records can be written and read again.

use libfuzzer_sys::fuzz_target;
use thinair_capture::{LinkType, MAX_WRITTEN_LEN, Reader, Timestamp, Writer};

fuzz_target!(|file: &[u8]| {
    let Ok(mut reader) = Reader::new(file) else { return };
    let mut copied: Vec<(Timestamp, Vec<u8>)> = Vec::new();
    let mut writer = Writer::new(Vec::new(), LinkType::RAW).expect("a Vec takes everything");
    let mut calls = 0;
    let is_compressed = file.starts_with(&[0x1f, 0x8b]) || file.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    while let Some(record) = reader.next_record() {
        calls += 1;
        // A record has at least one octet in the file, and so has an error after which reading continues.
        assert!(is_compressed || calls <= file.len() + 1, "reading does not end");
        let Ok(record) = record else { continue };
        assert_eq!(record.number, calls as u64);
        let _ = record.network_packet();
        let _ = record.rohc_packet();
        if writer.write(record.time, record.data).is_ok() {
            copied.push((record.time, record.data.to_vec()));
        } else {
            let late = record.time.as_nanos() / 1_000_000_000 > u64::from(u32::MAX);
            assert!(late || record.data.len() > MAX_WRITTEN_LEN);
        }
    }
    assert!(reader.next_record().is_none());
    assert!(reader.octets_read() <= file.len() as u64);

    let copy = writer.into_inner();
    let mut reader = Reader::new(copy.as_slice()).expect("it was just written");
    for (time, data) in copied {
        let record = reader.next_record().expect("it was written").expect("it is sound");
        assert_eq!((record.time, record.data), (time, &data[..]));
    }
    assert!(reader.next_record().is_none());
});
