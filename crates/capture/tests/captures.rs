//! Comparison of real capture files with the results of other readers: captures of the workspace, and those
//! of third parties if present.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use thinair_capture::Reader;

/// Records and truncated records of the workspace's captures, according to `capinfos` 4.0.17 and `tshark -Y
/// 'frame.cap_len < frame.len'`.
const OWN: [(&str, u64, u64); 44] = [
    ("ah4_udp.pcap", 120, 0),
    ("ah6_udp.pcap", 120, 0),
    ("bulk_tcp4_snap128.pcap", 5_627, 3_291),
    ("bulk_tcp6_snap128.pcap", 4_042, 2_625),
    ("coap_tcp4.pcap", 242, 0),
    ("coap_udp4_block1_block2.pcap", 80, 0),
    ("coap_udp4_get_con.pcap", 600, 0),
    ("coap_udp4_libcoap_new_port_each.pcap", 80, 0),
    ("coap_udp4_node_new_port_each.pcap", 30, 0),
    ("coap_udp4_observe.pcap", 403, 0),
    ("coap_udp4_oscore.pcap", 402, 0),
    ("coap_udp4_oscore_observe.pcap", 203, 0),
    ("coap_udp6_get_con.pcap", 600, 0),
    ("coap_udp6_libcoap_observe.pcap", 16, 0),
    ("coap_udp6_node_new_port_each.pcap", 30, 0),
    ("coap_udp6_observe.pcap", 403, 0),
    ("coap_udp6_post_query_cbor.pcap", 600, 0),
    ("coaps_udp4_dtls_psk.pcap", 50, 0),
    ("dns_udp4_dig_new_port_each.pcap", 30, 0),
    ("dtls_udp4_openssl_gcm.pcap", 56, 0),
    ("dtls_udp6_openssl_ccm8.pcap", 36, 0),
    ("dtls_udp6_openssl_new_port_each.pcap", 60, 0),
    ("esp4_transport.pcap", 120, 0),
    ("esp4_tunnel.pcap", 120, 0),
    ("esp6_transport.pcap", 120, 0),
    ("esp6_tunnel.pcap", 120, 0),
    ("http11_tcp4_get_each.pcap", 611, 0),
    ("http11_tcp6_get_each.pcap", 60, 0),
    ("mqtt311_tcp4_qos1.pcap", 403, 0),
    ("ntp_udp4_chrony_new_port_each.pcap", 36, 0),
    ("quic_udp4_aioquic_new_port_each.pcap", 36, 0),
    ("rtp_udp4_csrc.pcap", 160, 0),
    ("rtp_udp4_h264.pcap", 247, 0),
    ("rtp_udp4_opus_dtx.pcap", 178, 0),
    ("rtp_udp4_pcmu.pcap", 200, 0),
    ("rtp_udp6_header_extension.pcap", 100, 0),
    ("rtp_udp6_pcmu.pcap", 200, 0),
    ("rtp_udplite4_pcmu.pcap", 150, 0),
    ("rtp_udplite6_pcmu.pcap", 150, 0),
    ("udplite4_coverage_8.pcap", 120, 0),
    ("udplite4_coverage_varying.pcap", 120, 0),
    ("udplite4_whole.pcap", 120, 0),
    ("udplite6_coverage_20.pcap", 120, 0),
    ("udplite6_coverage_varying.pcap", 120, 0),
];

/// Records of third-party captures, according to `capinfos` 4.0.17. None is truncated.
const OPEN: [(&str, u64); 4] = [
    ("leshan-thermostat-readings.pcapng", 10_000),
    ("openschc__coap.pcapng", 5),
    ("openschc__coap_icmp.pcap", 4),
    ("openschc__trace_coap.pcap", 30),
];

#[test]
fn own_captures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let names: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "pcap")).collect();
    assert_eq!(names.len(), OWN.len(), "a file in {} is not in the list", folder.display());
    for (name, records, truncated) in OWN {
        assert_eq!(read(&folder.join(name)), FileSummary::of(records, truncated), "{name}");
    }
}

/// First and last time of two captures in nanoseconds, according to tshark 4.0.17 (`-e frame.time_epoch`).
#[test]
fn times() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/coap_udp4_get_con.pcap");
    assert_eq!(first_and_last_time(&own), (1_795_288_298_512_366_000, 1_795_288_298_798_320_000));
    let Some(shared) = std::env::var_os("THINAIR_VECTORS") else {
        println!("skipped: THINAIR_VECTORS is not set (1 capture)");
        return;
    };
    let open = Path::new(&shared).join("captures/open/leshan-thermostat-readings.pcapng");
    assert_eq!(first_and_last_time(&open), (1_694_161_756_502_612_000, 1_694_167_656_494_347_000));
}

fn first_and_last_time(path: &Path) -> (u64, u64) {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record() {
        times.push(record.unwrap().time.as_nanos());
    }
    (times[0], times[times.len() - 1])
}

#[test]
fn captures_of_third_parties() {
    let Some(shared) = std::env::var_os("THINAIR_VECTORS") else {
        println!("skipped: THINAIR_VECTORS is not set ({} captures)", OPEN.len());
        return;
    };
    for (name, records) in OPEN {
        let path = Path::new(&shared).join("captures/open").join(name);
        assert_eq!(read(&path), FileSummary::of(records, 0), "{name}");
    }
}

/// FileSummary of a file: number of records, number of records with an IP packet, and reasons for skipping the
/// others.
#[derive(Debug, PartialEq)]
struct FileSummary {
    records: u64,
    packets: u64,
    skipped: BTreeMap<&'static str, u64>,
}

impl FileSummary {
    fn of(records: u64, truncated: u64) -> Self {
        let skipped = BTreeMap::from([("truncated", truncated)]);
        Self { records, packets: records - truncated, skipped }
    }
}

fn read(path: &Path) -> FileSummary {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let length = file.metadata().unwrap().len();
    let mut reader = Reader::new(file).unwrap();
    let mut summary = FileSummary { records: 0, packets: 0, skipped: BTreeMap::from([("truncated", 0)]) };
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        summary.records += 1;
        assert_eq!(record.number, summary.records);
        match record.network_packet() {
            Ok(network) => {
                summary.packets += 1;
                assert_eq!(network.packet.len() as u32, record.original_len - network.link_header_len as u32);
            }
            Err(skip) => *summary.skipped.entry(skip.name()).or_default() += 1,
        }
    }
    assert_eq!(reader.octets_read(), length);
    summary
}
