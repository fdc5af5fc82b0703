//! The demo capture with the intervals of a sensor.

use std::fs::File;
use std::time::Duration;

use thinair_capture::{Error, Reader, Timestamp, Writer};

/// CoAP over IPv6: 300 exchanges of a confirmable GET and its response.
pub(crate) const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/coap_udp6_get_con.pcap");

/// Seconds between two exchanges.
pub(crate) const PACES: [u64; 4] = [1, 15, 60, 600];

/// Time from a request to its response.
const RESPONSE: Duration = Duration::from_millis(100);

/// Returns the demo capture with an exchange every `pace` seconds.
pub(crate) fn retimed(pace: u64) -> Vec<u8> {
    let mut reader = Reader::new(File::open(DEMO).expect("the capture is part of the project"))
        .expect("the capture is sound");
    let mut writer = None;
    let mut records = 0_u32;
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(Error::Truncated { .. }) => break,
            Err(error) => panic!("{DEMO}: {error}"),
        };
        let time = Duration::from_secs(pace) * (records / 2) + RESPONSE * (records % 2);
        let writer = writer
            .get_or_insert_with(|| Writer::new(Vec::new(), record.link_type).expect("a vector takes all"));
        let time = Timestamp::from_nanos(time.as_nanos() as u64);
        writer.write(time, record.data).expect("a vector takes all");
        records += 1;
    }
    writer.expect("the capture has packets").into_inner()
}
