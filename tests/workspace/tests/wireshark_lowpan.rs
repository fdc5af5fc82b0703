//! Wireshark's dissectors for IEEE 802.15.4 and 6LoWPAN, a second parser of our frames without common code: tshark
//! shows addresses, check sequences, headers in LOWPAN_IPHC, fragments and the reassembled packets.
//!
//! Where tshark is missing, the test is skipped with a message.

#![allow(clippy::unwrap_used)]

use thinair_capture::LinkType;
use thinair_lowpan::fragment::Fragments;
use thinair_lowpan::frame::{AuxSecurityHeader, FrameType, FrameVersion, KeyIdMode, WpanFrame};
use thinair_lowpan::stack::{MeshHeader, write_broadcast};
use thinair_lowpan::{CompressedPacket, LinkAddress, Links, LowpanSettings, compress, dispatch, fcs};
use thinair_tests::tshark::{self, OutputFolder, hex, values};

/// IEEE 802.15.4 with frame check sequence, and without.
const WITH_FCS: LinkType = LinkType(195);
const WITHOUT_FCS: LinkType = LinkType(230);

const SHORT: LinkAddress = LinkAddress::Short(0x0102);
const OTHER: LinkAddress = LinkAddress::Short(0xABCD);
const LONG: LinkAddress = LinkAddress::Extended([0x02, 0x12, 0x4B, 0, 0x14, 0xB5, 0xD9, 0xC7]);
const PAN: u16 = 0xBEEF;

fn octets(frame: &WpanFrame<'_>) -> Vec<u8> {
    let mut out = [0; 300];
    let end = frame.write(&mut out).unwrap();
    assert_eq!(WpanFrame::read(&out[..end]).as_ref(), Ok(frame));
    out[..end].to_vec()
}

fn with_fcs(mut frame: Vec<u8>) -> Vec<u8> {
    frame.extend(fcs::fcs(&frame));
    frame
}

/// Address in tshark's format: of 16 and of 64 bits.
fn address(address: LinkAddress) -> [String; 2] {
    match address {
        LinkAddress::None => [String::new(), String::new()],
        LinkAddress::Short(short) => [format!("{short:#06x}"), String::new()],
        LinkAddress::Extended(octets) => {
            [String::new(), octets.map(|octet| format!("{octet:02x}")).join(":")]
        }
    }
}

fn pan(pan: Option<u16>) -> String {
    pan.map(|pan| format!("{pan:#06x}")).unwrap_or_default()
}

/// Frames of all types and versions, with every pair of addresses and every combination of PAN IDs.
fn headers() -> Vec<WpanFrame<'static>> {
    let mut frames =
        vec![WpanFrame::acknowledgment(7), WpanFrame { frame_pending: true, ..WpanFrame::acknowledgment(8) }];
    let addresses = [LinkAddress::None, SHORT, LONG];
    let pans = [None, Some(PAN)];
    for version in [FrameVersion::V2003, FrameVersion::V2006, FrameVersion::V2015] {
        for source in addresses {
            for destination in addresses {
                for source_pan in pans.map(|pan| pan.map(|pan| pan - 1)) {
                    for destination_pan in pans {
                        let frame = WpanFrame {
                            version,
                            source_pan,
                            destination_pan,
                            ack_request: false,
                            ..WpanFrame::data(PAN, Links { source, destination }, 9, b"\x3fpayload")
                        };
                        frames.extend(frame.write(&mut [0; 99]).is_ok().then_some(frame));
                    }
                }
            }
        }
    }
    let links = Links { source: SHORT, destination: LONG };
    let plain = WpanFrame::data(PAN, links, 10, b"\x3fpayload");
    let v2015 = WpanFrame { version: FrameVersion::V2015, ..plain };
    frames.push(WpanFrame { sequence_number: None, ..v2015 });
    frames.push(WpanFrame { information_elements: b"\x80\x3f", ..v2015 });
    frames.push(WpanFrame { information_elements: b"\x04\x0d\x01\x02\x03\x04\x80\x3f", ..v2015 });
    frames.push(WpanFrame { frame_type: FrameType::Command, payload: b"\x04", ..plain });
    for (level, mic) in [(1, 4), (2, 8), (3, 16), (5, 4), (7, 16)] {
        for (key_id_mode, key) in [(KeyIdMode::Implicit, 0), (KeyIdMode::Index, 1), (KeyIdMode::Source8, 9)] {
            let mut key_identifier = [0; 9];
            key_identifier[..key].fill(0x55);
            let frame_counter = Some(0x0102_0304);
            let security = AuxSecurityHeader {
                level,
                key_id_mode,
                frame_counter,
                is_asn_in_nonce: false,
                key_identifier,
            };
            let mic = &[0x99; 16][..mic];
            frames.push(WpanFrame { version: FrameVersion::V2006, security: Some(security), mic, ..plain });
        }
    }
    frames
}

const HEADER: [&str; 17] = [
    "wpan.frame_type",
    "wpan.version",
    "wpan.pending",
    "wpan.seq_no",
    "wpan.dst_pan",
    "wpan.dst16",
    "wpan.dst64",
    "wpan.src_pan",
    "wpan.src16",
    "wpan.src64",
    "wpan.aux_sec.sec_level",
    "wpan.aux_sec.key_id_mode",
    "wpan.aux_sec.frame_counter",
    "wpan.mic",
    "data.data",
    "wpan.fcs",
    "wpan.fcs_ok",
];

#[test]
fn tshark_reads_the_headers_of_frames() {
    if !tshark::is_there() {
        return;
    }
    let frames = headers();
    println!("{} frames", frames.len());
    assert!(frames.len() > 50);
    let folder = OutputFolder::new("lowpan");
    for (link_type, name) in [(WITH_FCS, "headers-fcs.pcap"), (WITHOUT_FCS, "headers.pcap")] {
        let file = folder.path(name);
        let written = frames.iter().map(octets);
        let written: Vec<_> =
            if link_type == WITH_FCS { written.map(with_fcs).collect() } else { written.collect() };
        tshark::write(link_type, &file, &written);
        let shown = tshark::fields_of(&[], &file, &OPTIONS, &HEADER);
        assert_eq!(shown.len(), frames.len());
        for ((i, (frame, shown)), written) in (1..).zip(frames.iter().zip(&shown)).zip(&written) {
            let [dst16, dst64] = address(frame.destination);
            let [src16, src64] = address(frame.source);
            let security = frame.security;
            let is_data = frame.frame_type == FrameType::Data;
            let has_fcs = link_type == WITH_FCS;
            let check = written.last_chunk().filter(|_| has_fcs).copied().map(u16::from_le_bytes);
            let expected = [
                format!("{:#06x}", frame.frame_type as u8),
                (frame.version as u8).to_string(),
                u8::from(frame.frame_pending).to_string(),
                frame.sequence_number.map(|number| number.to_string()).unwrap_or_default(),
                pan(frame.destination_pan),
                dst16,
                dst64,
                pan(frame.source_pan),
                src16,
                src64,
                security.map(|security| format!("{:#04x}", security.level)).unwrap_or_default(),
                security.map(|security| format!("{:#04x}", security.key_id_mode as u8)).unwrap_or_default(),
                security
                    .and_then(|security| security.frame_counter)
                    .map(|counter| counter.to_string())
                    .unwrap_or_default(),
                hex(frame.mic),
                // Encrypted or not.
                if is_data { hex(frame.payload) } else { String::new() },
                check.map(|check| format!("{check:#06x}")).unwrap_or_default(),
                // tshark also shows this for a frame without one.
                "1".to_owned(),
            ];
            for ((name, ours), theirs) in HEADER.iter().zip(expected).zip(shown) {
                assert_eq!(*theirs, ours, "frame {i}, {name}: {frame:?}");
            }
        }
    }
}

const OPTIONS: [&str; 0] = [];

/// UDP packet whose checksum is right for these addresses.
fn packet(payload: usize) -> Vec<u8> {
    let length = (payload + 8) as u16;
    let mut packet =
        b"\x60\0\0\0\0\0\x11\x40\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\x01\x02\xfe\x80\0\0\0\0\0\0".to_vec();
    packet.extend(b"\0\x12\x4b\0\x14\xb5\xd9\xc7\xf0\xb1\x30\x39\0\0\0\0");
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet[44..46].copy_from_slice(&length.to_be_bytes());
    packet.extend((0..payload).map(|i| (i * 31) as u8));
    let mut pseudo = packet[8..40].to_vec();
    pseudo.extend([0, 17]);
    pseudo.extend(length.to_be_bytes());
    pseudo.extend(&packet[40..]);
    pseudo.resize(pseudo.len().next_multiple_of(2), 0);
    let sum: u32 = pseudo.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    packet[46..48].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn tshark_puts_fragments_together() {
    if !tshark::is_there() {
        return;
    }
    let links = Links { source: SHORT, destination: LONG };
    let mesh = MeshHeader { hops_left: 20, links };
    let mut frames = Vec::new();
    let mut expected = Vec::new();
    for (tag, payload) in (300..).zip([5, 60, 90, 200, 500, 1000, 1232]) {
        for (kind, tag) in ["iphc", "plain", "mesh"].into_iter().zip((tag * 3..).step_by(1)) {
            let packet = packet(payload);
            let mut out = vec![0; packet.len() + 1];
            let compressed = if kind == "plain" {
                out[0] = dispatch::IPV6;
                out[1..].copy_from_slice(&packet);
                CompressedPacket { header_in: 0, header_out: 1, len: out.len() }
            } else {
                compress(&LowpanSettings::default(), links, &packet, &mut out).unwrap()
            };
            let mut front = vec![0; 20];
            let end = if kind == "mesh" {
                let end = mesh.write(&mut front).unwrap();
                end + write_broadcast(77, &mut front[end..]).unwrap()
            } else {
                0
            };
            front.truncate(end);
            // The addresses of the frame are those of a hop.
            let hop = if kind == "mesh" { Links { source: OTHER, destination: OTHER } } else { links };
            let around = octets(&WpanFrame::data(PAN, hop, 0, &[])).len() + fcs::LEN + front.len();
            let fragments = Fragments::new(&compressed, &out[..compressed.len], tag, 127 - around).unwrap();
            let count = fragments.count();
            for (i, fragment) in (1..).zip(fragments) {
                let mut payload = [0; 127];
                let end = fragment.write(&mut payload).unwrap();
                let payload = [&front[..], &payload[..end]].concat();
                let frame = with_fcs(octets(&WpanFrame::data(PAN, hop, tag as u8, &payload)));
                assert!(frame.len() <= 127);
                frames.push(frame);
                let header = fragment.header;
                let is_last = i == count;
                let udp = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
                expected.push([
                    "1".to_owned(),
                    if end == 0 || kind != "mesh" { String::new() } else { "20".to_owned() },
                    if kind == "mesh" { "77".to_owned() } else { String::new() },
                    header.map(|header| header.datagram_size.to_string()).unwrap_or_default(),
                    header.map(|header| format!("{:#06x}", header.datagram_tag)).unwrap_or_default(),
                    header
                        .and_then(|header| header.datagram_offset)
                        .map(|offset| (usize::from(offset) * 8).to_string())
                        .unwrap_or_default(),
                    if is_last { "fe80::ff:fe00:102".to_owned() } else { String::new() },
                    if is_last { "fe80::12:4b00:14b5:d9c7".to_owned() } else { String::new() },
                    if is_last { udp(4).to_string() } else { String::new() },
                    if is_last { udp(40).to_string() } else { String::new() },
                    if is_last { "1".to_owned() } else { String::new() },
                    if is_last { hex(&packet[48..]) } else { String::new() },
                    String::new(),
                ]);
            }
        }
    }
    println!("{} frames", frames.len());
    let file = OutputFolder::new("lowpan").path("fragments.pcap");
    tshark::write(WITH_FCS, &file, &frames);
    let fields = [
        "wpan.fcs_ok",
        "6lowpan.mesh.hops8",
        "6lowpan.bcast.seqnum",
        "6lowpan.frag.size",
        "6lowpan.frag.tag",
        "6lowpan.frag.offset",
        "ipv6.src",
        "ipv6.dst",
        "ipv6.plen",
        "udp.srcport",
        "udp.checksum.status",
        "udp.payload",
        "6lowpan.fragment.error",
    ];
    let options = ["-o", "udp.check_checksum:TRUE"];
    let shown = tshark::fields_of(&[], &file, &options, &fields);
    assert_eq!(shown.len(), frames.len());
    for (i, (expected, shown)) in (1..).zip(expected.iter().zip(&shown)) {
        for ((name, ours), theirs) in fields.iter().zip(expected).zip(shown) {
            assert_eq!(values(theirs).join(","), *ours, "frame {i}, {name}");
        }
    }
}
