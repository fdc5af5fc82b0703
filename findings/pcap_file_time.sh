#!/bin/sh
# pcapng: a packet of 2023 is of January 1970.
#
# Expected: timestamps of an interface without if_tsresol count microseconds (draft-ietf-opsawg-pcapng, section 4.2).
# Version: pcap-file 2.0.0 (crates.io), its latest but for a candidate of 3.0.0.
# Behavior: the field timestamp of an Enhanced Packet Block counts nanoseconds for any interface: in files of tcpdump and dumpcap of the usual
# resolution times and gaps are a thousandth, and bit rates computed from them are a thousandfold. The block of the interface has the
# option if it is there; nothing is applied to the time. Times of its pcap reader are right.
# Guess before the first run: right without the option, wrong with if_tsoffset.
# Output seen: "pcapng 1700000 1700000, pcap 1700000000" (seconds: no if_tsresol, if_tsresol of 6; pcap).
. "$(dirname "$0")/lib.sh"
cat >main.rs <<'END'
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};

const MICROSECONDS: u64 = 1_700_000_000_000_000;

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes(), &length, body, &length].concat()
}

fn words(listed: &[u32]) -> Vec<u8> {
    listed.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn pcapng(options: &[u8]) -> u64 {
    let section = block(0x0a0d_0d0a, &[&words(&[0x1a2b_3c4d, 1])[..], &[0xff; 8]].concat());
    let interface = block(1, &[&words(&[1, 0]), options].concat());
    let time = [(MICROSECONDS >> 32) as u32, MICROSECONDS as u32];
    let packet = block(6, &[words(&[0, time[0], time[1], 60, 60]), vec![0; 60]].concat());
    let file = [section, interface, packet].concat();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    while let Some(one) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = one.unwrap() {
            return packet.timestamp.as_secs();
        }
    }
    0
}

fn main() {
    let resolution = [9, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    let seconds = (MICROSECONDS / 1_000_000) as u32;
    let file = [words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1, seconds, 0, 60, 60]), vec![0; 60]].concat();
    let pcap = PcapReader::new(&file[..]).unwrap().next_packet().unwrap().unwrap().timestamp.as_secs();
    println!("pcapng {} {}, pcap {pcap}", pcapng(&[]), pcapng(&resolution));
}
END
rust_program times 'pcap-file = "=2.0.0"'
expect "pcap-file 2.0.0, seconds of a packet" "$(./times)" "pcapng 1700000 1700000, pcap 1700000000"
