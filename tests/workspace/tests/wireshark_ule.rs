//! The Wireshark dissector for ULE of `extras/wireshark`, a second parser of our TS Packets without common code:
//! tshark's fields of a stream equal those that our Receiver delivers and counts.
//!
//! Where there is no tshark with Lua, the tests are skipped with a message.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use thinair_capture::{LinkType, Reader};
use thinair_link::Random;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, ProfileId, ProfileSet,
};
use thinair_tests::root;
use thinair_tests::tshark::{self, OutputFolder, datagram, hex, values};
use thinair_ule::crc::Crc32;
use thinair_ule::extension::{ExtensionChain, OptionalHeaders};
use thinair_ule::psi::{Pat, Pmt, Program};
use thinair_ule::sndu::ReceivedSndu;
use thinair_ule::ts::{Cc, NULL_PACKET};
use thinair_ule::{
    AfterBadCrc, Bridged, Encapsulator, EncapsulatorConfig, EtherType, HLen, Npa, OptionalHeader, Packing,
    Payload, Pid, Receiver, ReceiverConfig, ReceiverCounters, Since, Sndu, SnduContent, TimeStamp, TsPacket,
};
use thinair_wire::time::Instant;

const PID: u16 = 0x35;
const PORT: u16 = 5_004;

/// Fields of each datagram requested from tshark, in the order of [`Expected::fields`].
const FIELDS: [&str; 12] = [
    "ule.crc_status",
    "ule.d",
    "ule.length",
    "ule.npa",
    "ule.type",
    "ule.timestamp",
    "ule.pdu_type",
    "ule.pdu",
    "ule.frame",
    "ule.ts_packet",
    "ule.test",
    "ule.concat_length",
];

/// Preference of the script, and the equivalent rule of our Receiver.
const RULES: [(&str, AfterBadCrc); 2] = [
    ("ule.discard_after_crc_error:FALSE", AfterBadCrc::GoOn),
    ("ule.discard_after_crc_error:TRUE", AfterBadCrc::Discard),
];

#[test]
fn tshark_tells_what_the_receiver_delivers_and_counts() {
    if !tshark::runs_lua() {
        return;
    }
    let folder = OutputFolder::new("ule");
    let sent = stream();
    let streams =
        [("as sent", sent.clone()), ("damaged", damaged(&sent)), ("odd", [&sent[..2], &odd()].concat())];
    for (name, stream) in streams {
        for (rule, after_bad_crc) in RULES {
            let file = folder.path("ule.pcap");
            let datagrams: Vec<_> =
                stream.chunks(7).map(|packets| datagram(PORT, packets.as_flattened())).collect();
            tshark::write(LinkType::RAW, &file, &datagrams);
            let options = ["-o", rule];
            let mut fields = [&["ule.sndu", "frame.protocols"], &FIELDS[..]].concat();
            fields.extend(["ule.lost", "_ws.expert.message"]);
            let shown = tshark::fields_of(&[script()], &file, &options, &fields);
            assert_eq!(shown.len(), datagrams.len());

            let mut buffer = vec![0; 4_000];
            let config = ReceiverConfig { after_bad_crc, ..ReceiverConfig::new(pid()) };
            let mut receiver = Receiver::new(config, &mut buffer);
            let mut sndus = 0;
            for (i, (packets, shown)) in (1..).zip(stream.chunks(7).zip(&shown)) {
                let name = format!("{name}, {rule}, frame {i}");
                let octets: Vec<_> = values(&shown[0]).iter().map(|sndu| octets(sndu)).collect();
                let ours = Expected::of(&mut receiver, packets, &octets);
                for ((field, ours), theirs) in FIELDS.iter().zip(ours.fields()).zip(&shown[2..]) {
                    assert_eq!(values(theirs), ours, "{name}, {field}");
                }
                assert_eq!(values(&shown[2 + FIELDS.len()]).len(), ours.lost, "{name}");
                let rohc = shown[1].split(':').filter(|protocol| *protocol == "rohc").count();
                assert_eq!(rohc, ours.rohc(), "{name}: {}", shown[1]);
                sndus += octets.len();
            }
            let sync_errors = stream.iter().filter(|packet| !has_sync(packet)).count() as u64;
            let counters = ReceiverCounters { sync_errors, ..*receiver.counters() };
            assert_eq!(counted(&file, &options), of_interest(&counters), "{name}, {rule}");
            assert_eq!(sndus as u64, counters.sndus + counters.crc_errors, "{name}, {rule}");
            println!("{name}, {rule}: {sndus} SNDUs, {} of them right", counters.sndus);
        }
    }
}

/// Wireshark may show a packet before later ones are dissected again; tshark does so with `-2`.
#[test]
fn packets_can_be_shown_in_any_order() {
    if !tshark::runs_lua() {
        return;
    }
    let file = OutputFolder::new("ule-order").path("ule.pcap");
    let stream = damaged(&stream());
    let datagrams: Vec<_> = stream.chunks(7).map(|packets| datagram(PORT, packets.as_flattened())).collect();
    tshark::write(LinkType::RAW, &file, &datagrams);
    let fields = [&["ule.sndu", "ule.pid", "ule.part"], &FIELDS[..]].concat();
    let [once, twice] =
        [&[][..], &["-2"]].map(|options| tshark::fields_of(&[script()], &file, options, &fields));
    assert_eq!(once, twice);
}

/// Without PSI a preference names the PID; without both, Wireshark's own dissection remains.
#[test]
fn the_pid_can_be_named() {
    if !tshark::runs_lua() {
        return;
    }
    let file = OutputFolder::new("ule-pid").path("ule.pcap");
    let packets: Vec<_> = stream().into_iter().skip(2).take(7).collect();
    tshark::write(LinkType::RAW, &file, &[datagram(PORT, packets.as_flattened())]);
    let sndus = |options: &[&str]| {
        let shown = tshark::fields_of(&[script()], &file, options, &["ule.sndu", "_ws.expert.message"]);
        values(&shown[0][0]).len()
    };
    assert!(sndus(&["-o", "ule.pids:32-0x35"]) > 3);
    assert_eq!(sndus(&["-o", "ule.pids:0x36"]), 0);
    assert_eq!(sndus(&[]), 0);
}

/// Several packets of a flow are in one frame, and each must be decompressed with the context after the previous one.
#[test]
fn coap_in_rohc_in_ule_is_read_as_without_ule() {
    if !tshark::runs_lua() {
        return;
    }
    let folder = OutputFolder::new("ule-coap");
    let (alone, file) = (folder.path("rohc.pcap"), folder.path("ule.pcap"));
    let packets = compressed(&root().join("captures/coap_udp6_observe.pcap"));
    tshark::write(LinkType::USER0, &alone, &packets);
    let packing = Packing::Threshold { wait: Duration::from_secs(1), since: Since::Last };
    let mut encapsulator =
        Encapsulator::new(EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) });
    let mut stream = stream()[..2].to_vec();
    for packet in &packets {
        let sndu = Sndu::pdu(EtherType::ROHC, packet);
        encapsulator.push(Instant::ZERO, &sndu, &mut |packet| stream.push(*packet)).unwrap();
    }
    encapsulator.flush(&mut |packet| stream.push(*packet));
    let datagrams: Vec<_> = stream.chunks(7).map(|packets| datagram(PORT, packets.as_flattened())).collect();
    tshark::write(LinkType::RAW, &file, &datagrams);
    assert!(packets.len() > 4 * datagrams.len());

    let scripts = [script(), root().join("extras/wireshark/thinair_coap.lua")];
    let fields =
        ["rohc_coap.cid", "rohc_coap.format", "rohc_coap.msn", "rohc_coap.code", "rohc_coap.message_id"];
    let read = |file: &Path, options: &[&str]| {
        let shown = tshark::fields_of(&scripts, file, options, &fields);
        let column = |i: usize| shown.iter().flat_map(|shown| values(&shown[i])).collect::<Vec<_>>();
        (0..fields.len()).map(column).collect::<Vec<_>>()
    };
    let expected = read(&alone, &[]);
    assert_eq!(expected[1].len(), packets.len());
    assert_eq!(read(&file, &[]), expected);
    assert_eq!(read(&file, &["-2"]), expected);
}

/// Packets of a capture, compressed by one compressor.
fn compressed(capture: &Path) -> Vec<Vec<u8>> {
    let profiles = ["udp", "ip", "coap"].map(|name| ProfileId::by_name(name).unwrap());
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::of(&profiles).unwrap()).unwrap();
    let mut compressor =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes().blocks(64)));
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    let (mut out, mut packets) = ([0; 2_000], Vec::new());
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        let packet = record.network_packet().unwrap().packet;
        let done = compressor.compress(Instant::from_millis(packets.len() as u64), packet, &mut out).unwrap();
        packets.push(out[..done.len].to_vec());
    }
    packets
}

fn script() -> PathBuf {
    root().join("extras/wireshark/ule.lua")
}

fn pid() -> Pid {
    Pid::new(PID).unwrap()
}

fn has_sync(packet: &TsPacket) -> bool {
    packet[0] == 0x47
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Expected fields of a datagram, each as often as it occurs.
#[derive(Default)]
struct Expected {
    crc_status: Vec<String>,
    d: Vec<String>,
    length: Vec<String>,
    npa: Vec<String>,
    types: Vec<String>,
    time_stamp: Vec<String>,
    pdu_type: Vec<String>,
    pdu: Vec<String>,
    frame: Vec<String>,
    ts_packet: Vec<String>,
    test: Vec<String>,
    concat_length: Vec<String>,
    lost: usize,
}

impl Expected {
    /// `sndus` are those that tshark shows, right or wrong: our Receiver must report equal ones, and deliver the
    /// contents of the right ones.
    fn of(receiver: &mut Receiver<'_>, packets: &[TsPacket], sndus: &[Vec<u8>]) -> Self {
        let mut shown = Self::default();
        let before = *receiver.counters();
        // Packets without sync byte have no PID, and reach no Receiver.
        for packet in packets.iter().filter(|packet| has_sync(packet)) {
            receiver.receive(packet, &mut |delivery| match delivery.payload {
                Payload::Pdu(kind, pdu) => {
                    shown.pdu_type.push(format!("0x{:04x}", kind.value()));
                    // tshark shows no field without octets.
                    shown.pdu.extend((!pdu.is_empty()).then(|| hex(pdu)));
                }
                Payload::Bridged(frame) => shown.frame.push(hex(frame.octets())),
                Payload::TsPackets(packets) => {
                    shown.ts_packet.extend(packets.iter().map(|packet| hex(packet)))
                }
            });
        }
        for sndu in sndus {
            let received = ReceivedSndu::read(sndu);
            shown.crc_status.push(if received.is_ok() { "right" } else { "wrong" }.to_owned());
            shown.d.push((sndu[0] >> 7).to_string());
            shown.length.push((sndu.len() - 4).to_string());
            shown.types.push(format!("0x{:02x}{:02x}", sndu[2], sndu[3]));
            if sndu[0] >> 7 == 0 {
                shown.npa.push(
                    sndu[4..10].iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":"),
                );
            }
            let Ok(received) = received else { continue };
            let mut headers = OptionalHeaders::new(received.type_field, received.octets);
            while let Ok(Some(_)) = headers.read() {
                shown.types.push(format!("0x{:04x}", headers.rest().0.value()));
            }
            let Ok(chain) = ExtensionChain::read(received.type_field, received.octets) else { continue };
            shown.time_stamp.extend(chain.time_stamp.map(|time_stamp| time_stamp.micros().to_string()));
            match chain.content {
                SnduContent::Test(octets) => shown.test.push(hex(octets)),
                SnduContent::PduConcat(pdus) => {
                    shown.concat_length.extend(pdus.pdus().map(|pdu| pdu.len().to_string()));
                }
                SnduContent::Pdu(..) | SnduContent::Bridged(_) | SnduContent::TsConcat(_) => {}
            }
        }
        let after = receiver.counters();
        let count = |status: &str| shown.crc_status.iter().filter(|shown| *shown == status).count() as u64;
        assert_eq!(count("right"), after.sndus - before.sndus);
        assert_eq!(count("wrong"), after.crc_errors - before.crc_errors);
        shown.lost = (after.cut_short - before.cut_short) as usize;
        shown
    }

    fn fields(&self) -> [Vec<String>; FIELDS.len()] {
        let Self { crc_status, d, length, npa, types, time_stamp, pdu_type, pdu, frame, ts_packet, .. } =
            self;
        let [a, b, c, e, f, g, h, i, j, k] =
            [crc_status, d, length, npa, types, time_stamp, pdu_type, pdu, frame, ts_packet].map(Vec::clone);
        [a, b, c, e, f, g, h, i, j, k, self.test.clone(), self.concat_length.clone()]
    }

    fn rohc(&self) -> usize {
        self.pdu_type.iter().filter(|kind| *kind == "0x22f1").count()
    }
}

/// Counts of `tshark -z expert`, by the titles of the script. The protocol beside them is the last dissected one, which
/// may be the payload of an SNDU.
fn counted(file: &Path, options: &[&str]) -> BTreeMap<String, u64> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-X").arg(format!("lua_script:{}", script().display())).arg("-r").arg(file).args(options);
    let text = tshark::ok(tshark.args(["-q", "-z", "expert"]).output().unwrap()).stdout;
    let text = String::from_utf8(text).unwrap();
    let mut counted = of_interest(&ReceiverCounters::default());
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [count, _, _, title @ ..] = &words[..]
            && let Some(sum) = counted.get_mut(&title.join(" "))
        {
            *sum += count.parse::<u64>().unwrap();
        }
    }
    counted
}

fn of_interest(counters: &ReceiverCounters) -> BTreeMap<String, u64> {
    let all = [
        ("TS packet without sync octet", counters.sync_errors),
        ("Transport error", counters.transport_errors),
        ("Scrambled TS packet", counters.scrambled),
        ("Adaptation Field Control is not 1", counters.adaptation_fields),
        ("Continuity error", counters.continuity_errors),
        ("Duplicate TS packet", counters.duplicates),
        ("Payload Pointer error", counters.payload_pointer_errors),
        ("Delimiting error", counters.delimiting_errors),
        ("SNDU length error", counters.length_errors),
        ("SNDU CRC error", counters.crc_errors),
        ("SNDU type error", counters.type_errors),
        ("SNDU payload length error", counters.payload_length_errors),
        ("PDU-Concat size mismatch", counters.pdu_concat_errors),
        ("TS-Concat size mismatch", counters.ts_concat_errors),
    ];
    all.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// PAT and PMT, then every kind of SNDU, packed, sometimes with padding; null packets between.
fn stream() -> Vec<TsPacket> {
    let mut random = Random::new(1);
    let pmt = Pid::new(0x100).unwrap();
    let pat = Pat { transport_stream_id: 1, version: 0, programs: &[Program { number: 1, pid: pmt }] };
    let streams = Pmt { program_number: 1, version: 0, streams: &[pid()] };
    let mut stream = vec![pat.packet(Cc::default()).unwrap(), streams.packet(pmt, Cc::default()).unwrap()];

    let rohc = rohc_packets();
    let ipv6 = ipv6(0, 60);
    let frame = [&[0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xDD][..], &ipv6].concat();
    // The content is a TS Packet without payload.
    let inner = [NULL_PACKET; 2];
    let padding = |words| OptionalHeader::padding(HLen::new(words).unwrap());
    let packing = Packing::Threshold { wait: Duration::from_secs(1), since: Since::Last };
    let config = EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) };
    let mut encapsulator = Encapsulator::new(config);
    for i in 0..2_400_usize {
        let rohc = &rohc[i % rohc.len()];
        let headers = [OptionalHeader::time_stamp_of(TimeStamp::new(i as u32)), padding(1 + i as u8 % 5)];
        let ipv4 = datagram(7, &vec![0; i % 700]);
        let short = [&rohc[..], &rohc[..rohc.len().min(30)], &rohc[..]];
        let sndu = match i % 12 {
            0..=4 => Sndu::pdu(EtherType::ROHC, rohc),
            5 => Sndu::pdu(EtherType::IPV4, &ipv4),
            6 => Sndu::pdu(EtherType::IPV6, &ipv6).with_headers(&headers),
            7 => Sndu::bridged(Bridged::read(&frame).unwrap()),
            8 => Sndu::pdu_concat(EtherType::ROHC.into(), &short),
            9 => Sndu::pdu(EtherType::ROHC, rohc).with_headers(&headers[1..]),
            10 => Sndu::test(rohc),
            _ => Sndu::ts_concat(&inner).with_headers(&headers[..1]),
        };
        let npa = Npa::new([0, 1, 2, 3, 4, i as u8]).filter(|_| random.below(2) == 0);
        let sndu = npa.map_or(sndu, |npa| sndu.to(npa));
        encapsulator.push(Instant::ZERO, &sndu, &mut |packet| stream.push(*packet)).unwrap();
        if random.below(10) == 0 {
            encapsulator.flush(&mut |packet| stream.push(*packet));
            stream.push(NULL_PACKET);
        }
    }
    encapsulator.flush(&mut |packet| stream.push(*packet));
    stream
}

/// TS Packets with one SNDU each that no Encapsulator sends, though its CRC is right; and other unusual ones.
fn odd() -> Vec<TsPacket> {
    let sndus: [&[u8]; 15] = [
        // Unknown Mandatory Extension Headers: alone, after another header, and in a PDU-Concat.
        &[0x80, 8, 0x00, 0xFF, 1, 2, 3, 4],
        &[0x80, 8, 0x01, 0x00, 0x00, 0x44, 3, 4],
        &[0x80, 12, 0x00, 0x03, 0x00, 0x55, 0, 1, 9, 0, 1, 9],
        // A PDU-Concat in a PDU-Concat.
        &[0x80, 10, 0x00, 0x03, 0x00, 0x03, 0, 2, 9, 9],
        // Wrong sums of the lengths of PDUs; no PDU; R.
        &[0x80, 10, 0x00, 0x03, 0x22, 0xF1, 0, 3, 9, 9],
        &[0x80, 11, 0x00, 0x03, 0x22, 0xF1, 0, 2, 9, 9, 0],
        &[0x80, 6, 0x00, 0x03, 0x22, 0xF1],
        &[0x80, 10, 0x00, 0x03, 0x22, 0xF1, 0x80, 2, 9, 9],
        // Bridged frames: without a MAC header, with a wrong length and with a right one.
        &[0x80, 7, 0x00, 0x01, 1, 2, 3],
        &[0x80, 20, 0x00, 0x01, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 0, 3, 1, 1],
        &[0x80, 20, 0x00, 0x01, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 0, 2, 1, 1],
        // TS-Concat of less than a TS Packet.
        &[0x80, 8, 0x00, 0x02, 0x47, 1, 2, 3],
        // The SNDU ends within an Extension Header.
        &[0x80, 7, 0x03, 0x01, 1, 2, 3],
        // Unknown headers that may be skipped.
        &[0x80, 14, 0x03, 0x77, 1, 2, 3, 4, 0x01, 0x78, 0x08, 0x06, 1, 2],
        // No payload, but an address.
        &[0x00, 10, 0x88, 0xB5, 2, 0, 0, 0, 0, 1],
    ];
    let mut stream: Vec<_> =
        sndus.iter().map(|sndu| with(0, &[sndu, &Crc32::of(sndu).to_be_bytes()[..]].concat())).collect();
    // Invalid lengths; an invalid Payload Pointer; an End Indicator in place of an SNDU.
    stream.extend([
        with(0, &[0x80, 4, 8, 0]),
        with(0, &[0, 9, 8, 0]),
        with(182, &[]),
        with(0, &[0xFF, 0xFF]),
    ]);
    // An octet of padding with a wrong value.
    let mut sndu = vec![0x80, 178, 0x22, 0xF1];
    sndu.resize(178, 0);
    sndu.extend(Crc32::of(&sndu).to_be_bytes());
    sndu.push(7);
    stream.push(with(0, &sndu));
    // Scrambled, with an adaptation field, with an error.
    for (at, bits) in [(3, 0x80), (3, 0x20), (1, 0x80)] {
        let mut packet = with(0, &sndu);
        packet[at] |= bits;
        stream.push(packet);
    }
    for (i, packet) in stream.iter_mut().enumerate() {
        packet[3] |= i as u8 % 16;
    }
    stream
}

/// TS Packet with these octets after a Payload Pointer, and padding.
fn with(pointer: u8, octets: &[u8]) -> TsPacket {
    let mut packet = [0xFF; 188];
    packet[..5].copy_from_slice(&[0x47, 0x40, PID as u8, 0x10, pointer]);
    packet[5..5 + octets.len()].copy_from_slice(octets);
    packet
}

fn ipv6(i: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((len as u16 - 40).to_be_bytes());
    packet.extend([17, 64]);
    packet.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].repeat(2));
    for word in [5_000, 5_001, len as u16 - 40, 0x1234] {
        packet.extend(word.to_be_bytes());
    }
    packet.resize(len, i);
    packet
}

/// Flow of IPv6/UDP, compressed.
fn rohc_packets() -> Vec<Vec<u8>> {
    let profiles = ProfileSet::of(&[ProfileId::by_name("udp").unwrap()]).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let config = CompressorConfig::new(channel);
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
    let mut out = [0; 2_000];
    let packet = |i: u8| {
        let packet = ipv6(i, 60 + usize::from(i) * 3);
        let done = compressor.compress(Instant::from_millis(u64::from(i)), &packet, &mut out).unwrap();
        out[..done.len].to_vec()
    };
    (0..200).map(packet).collect()
}

/// Of the TS Packets after PAT and PMT, some are lost, duplicated, or have a flipped bit.
fn damaged(stream: &[TsPacket]) -> Vec<TsPacket> {
    let mut random = Random::new(2);
    let mut arriving = stream[..2].to_vec();
    for packet in &stream[2..] {
        let mut packet = *packet;
        let bits = match random.below(100) {
            0 | 1 => continue,
            2 => {
                arriving.push(packet);
                0
            }
            3..=6 => 188 * 8,
            // Header and Payload Pointer.
            7..=9 => 5 * 8,
            _ => 0,
        };
        if bits > 0 {
            let bit = random.below(bits) as usize;
            packet[bit / 8] ^= 0x80 >> (bit % 8);
        }
        arriving.push(packet);
    }
    arriving
}
