//! Wireshark's dissector for GSE, a second parser of our GSE Packets without common code: BBFrames over UDP, each after
//! a mode adaptation of four octets, have whole PDUs and fragments of IPv4, IPv6 and ROHC, with every kind of label,
//! and tshark shows the input.
//!
//! tshark also checks the CRC-32, which confirms the octets that it covers.
//!
//! Where tshark is missing, or does not reassemble fragments, the test is skipped with a message.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use thinair_capture::LinkType;
use thinair_tests::tshark::{self, OutputFolder, datagram, hex, values};
use thinair_ule::crc::Crc32;
use thinair_ule::gse::{Accept, BbHeader, DataField, GseReceiver, GseSlot, Label, Put, ReUse, Sending};
use thinair_ule::{EtherType, Npa};

/// UDP port for which tshark is configured to expect mode adaptation.
const PORT: u16 = 6_000;

/// Mode adaptation in its form of four octets: sync, no pilots and normal frames, no received quality, frame number 0.
const MODE_ADAPTATION: [u8; 4] = [0xB8, 0x2C, 0, 0];

/// Size of a data field in octets, so small that most PDUs are fragmented.
const DATA_FIELD: usize = 120;

/// Fields of each BBFrame requested from tshark, in the order of [`Expected`].
const FIELDS: [&str; 16] = [
    "dvb-s2_bb.crc.status",
    "dvb-s2_bb.dfl",
    "dvb-s2_gse.hdr.start",
    "dvb-s2_gse.hdr.stop",
    "dvb-s2_gse.hdr.labeltype",
    "dvb-s2_gse.hdr.length",
    "dvb-s2_gse.fragid",
    "dvb-s2_gse.totlength",
    "dvb-s2_gse.proto",
    "dvb-s2_gse.label_ether",
    "dvb-s2_gse.label",
    "dvb-s2_gse.data",
    "dvb-s2_gse.reassembled.data",
    "dvb-s2_gse.crc",
    "dvb-s2_gse.crc.status",
    "dvb-s2_gse.padding",
];

/// Expected fields of a BBFrame: each as often as it occurs.
#[derive(Default)]
struct Expected {
    start: Vec<String>,
    stop: Vec<String>,
    label_type: Vec<String>,
    length: Vec<String>,
    frag_id: Vec<String>,
    total_length: Vec<String>,
    proto: Vec<String>,
    six: Vec<String>,
    three: Vec<String>,
    data: Vec<String>,
    reassembled: Vec<String>,
    crc: Vec<String>,
    crc_status: Vec<String>,
    padding: Vec<String>,
}

impl Expected {
    fn fields(&self) -> [Vec<String>; FIELDS.len()] {
        let Self { start, stop, label_type, length, frag_id, total_length, proto, six, three, .. } = self;
        let Self { data, reassembled, crc, crc_status, padding, .. } = self;
        let dfl = [(8 * DATA_FIELD).to_string()].into();
        let header = [start, stop, label_type, length, frag_id, total_length, proto, six, three];
        let [a, b, c, d, e, f, g, h, i] = header.map(Vec::clone);
        let [j, k, l, m, n] = [data, reassembled, crc, crc_status, padding].map(Vec::clone);
        [[RIGHT.to_owned()].into(), dfl, a, b, c, d, e, f, g, h, i, j, k, l, m, n]
    }
}

/// Status of a CRC.
const RIGHT: &str = "1";

#[test]
fn tshark_tells_what_was_put_into_data_fields() {
    if !tshark::is_there() || !tshark::knows("dvb-s2_gse.crc.status") {
        return;
    }
    let pdus = pdus();
    let frames = encapsulate(&pdus);
    let file = OutputFolder::new("gse").path("gse.pcap");
    let datagrams: Vec<_> = frames.iter().map(|frame| datagram(PORT, &frame.octets)).collect();
    tshark::write(LinkType::RAW, &file, &datagrams);
    let mut fields = FIELDS.to_vec();
    fields.push("_ws.expert.message");
    let shown = tshark::fields_of(&[], &file, &options("FALSE").each_ref().map(String::as_str), &fields);
    assert_eq!(shown.len(), frames.len());
    for (i, (frame, shown)) in (1..).zip(frames.iter().zip(&shown)) {
        assert_eq!(shown.last().unwrap(), "", "frame {i}");
        for ((name, ours), theirs) in FIELDS.iter().zip(frame.shown.fields()).zip(shown) {
            assert_eq!(values(theirs), ours, "frame {i}, {name}");
        }
    }
    let count = |field: fn(&Expected) -> usize| frames.iter().map(|frame| field(&frame.shown)).sum::<usize>();
    let (packets, fragmented) = (count(|shown| shown.start.len()), count(|shown| shown.crc.len()));
    println!(
        "{} PDUs, {fragmented} in fragments: {packets} GSE Packets in {} BBFrames",
        pdus.len(),
        frames.len()
    );
    assert!((20..pdus.len() - 10).contains(&fragmented), "{fragmented}");

    // Contents of the PDUs: lengths and ports of IPv4, lengths of IPv6.
    let shown = tshark::fields_of(
        &[],
        &file,
        &options("TRUE").each_ref().map(String::as_str),
        &["udp.dstport", "ipv6.plen"],
    );
    for (i, (frame, shown)) in (1..).zip(frames.iter().zip(&shown)) {
        let of = |kind, value: fn(&[u8]) -> u16| {
            let of_kind = frame.complete.iter().filter(move |(_, of, _)| *of == kind);
            of_kind.map(move |(_, _, pdu)| value(pdu).to_string())
        };
        let port = |pdu: &[u8]| u16::from_be_bytes([pdu[22], pdu[23]]);
        let ports: Vec<_> = [PORT.to_string()].into_iter().chain(of(EtherType::IPV4, port)).collect();
        assert_eq!(values(&shown[0]), ports, "frame {i}");
        let lengths: Vec<_> = of(EtherType::IPV6, |pdu| u16::from_be_bytes([pdu[4], pdu[5]])).collect();
        assert_eq!(values(&shown[1]), lengths, "frame {i}");
    }
    assert_eq!(receive(&frames), pdus.iter().cloned().collect());
}

/// PDUs that our receiver finds, as a set.
fn receive(frames: &[ExpectedFrame<'_>]) -> BTreeSet<LabeledPdu> {
    let mut memory = [[0; 600]; 2];
    let mut receiver = GseReceiver::new(Accept::Every, memory.each_mut().map(|memory| GseSlot::new(memory)));
    let mut found = BTreeSet::new();
    for frame in frames {
        let header = BbHeader::read(&frame.octets[MODE_ADAPTATION.len()..]).unwrap();
        let data_field = &frame.octets[MODE_ADAPTATION.len() + BbHeader::OCTETS..];
        assert_eq!(data_field.len(), header.data_field());
        let mut packets = receiver.receive(data_field);
        while let Some(pdu) = packets.next_pdu() {
            let kind = EtherType::new(pdu.type_field.value()).unwrap();
            found.insert((pdu.label, kind, pdu.octets.to_vec()));
        }
    }
    found
}

fn options(full_decode: &str) -> [String; 6] {
    let of = format!("udp.port=={PORT},dvb-s2_modeadapt");
    let field = "dvb-s2_modeadapt.decode_df:TRUE".to_owned();
    let full = format!("dvb-s2_modeadapt.full_decode:{full_decode}");
    ["-d".to_owned(), of, "-o".to_owned(), field, "-o".to_owned(), full]
}

fn pdus() -> Vec<LabeledPdu> {
    let six = |last| Label::Six(Npa::new([2, 0, 0, 0, 0, last]).unwrap());
    let labels = [six(1), six(1), Label::Three([0xA, 0xB, 0xC]), six(2), Label::Broadcast, Label::Broadcast];
    let kinds = [EtherType::IPV4, EtherType::IPV6, EtherType::ROHC];
    let lens = [40, 41, 45, 50, 90, 100, 130, 200, 301, 500];
    let pdu = |i: usize| {
        let (label, kind) = (labels[i % labels.len()], kinds[i % kinds.len()]);
        (label, kind, ip_or_rohc(kind, i, lens[i * 7 % lens.len()]))
    };
    (0..60).map(pdu).collect()
}

/// Packet of `len` octets; UDP from port 7 to a unique port, if it is IP.
fn ip_or_rohc(kind: EtherType, i: usize, len: usize) -> Vec<u8> {
    let port = 10_000 + i as u16;
    let mut packet = match kind {
        EtherType::IPV4 => datagram(port, &vec![i as u8; len - 28]),
        EtherType::IPV6 => {
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend((len as u16 - 40).to_be_bytes());
            // No Next Header.
            packet.extend([59, 64]);
            packet.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].repeat(2));
            packet
        }
        _ => vec![0xFD, 0x04, i as u8],
    };
    packet.resize(len, i as u8);
    packet
}

/// Label, EtherType and octets of a PDU.
type LabeledPdu = (Label, EtherType, Vec<u8>);

/// BBFrame after its mode adaptation, its expected fields, and the PDUs that end in it.
struct ExpectedFrame<'p> {
    octets: Vec<u8>,
    shown: Expected,
    complete: Vec<&'p LabeledPdu>,
}

/// Encapsulates PDUs into data fields, with two of them in fragments at a time.
fn encapsulate(pdus: &[LabeledPdu]) -> Vec<ExpectedFrame<'_>> {
    let mut waiting = pdus.iter();
    let mut under_way: Vec<FragmentedPdu<'_>> = Vec::new();
    let mut frames = Vec::new();
    while !under_way.is_empty() || waiting.len() > 0 {
        let mut data = [0; DATA_FIELD];
        let mut field = DataField::new(&mut data, ReUse::Allowed);
        let (mut shown, mut complete) = (Expected::default(), Vec::new());
        let mut last_label = None;
        let mut i = 0;
        loop {
            if i == under_way.len() && i < 2 {
                let Some(pdu) = waiting.next() else { break };
                let is_taken = |frag_id| under_way.iter().any(|other| other.sending.frag_id() == frag_id);
                let frag_id = if is_taken(200) { 201 } else { 200 };
                let sending = Sending::new(pdu.0, pdu.1.into(), &pdu.2, frag_id).unwrap();
                under_way.push(FragmentedPdu { sending, pdu, sent: 0, covered: Vec::new() });
            }
            let Some(one) = under_way.get_mut(i) else { break };
            let before = field.len();
            let put = field.put(&mut one.sending);
            if put == Put::NoRoom {
                break;
            }
            one.expect(&mut shown, field.len() - before, put == Put::Complete, &mut last_label);
            if put == Put::Complete {
                complete.push(one.pdu);
            }
            i += 1;
        }
        under_way.retain(|one| !one.sending.is_complete());
        if field.room() > 0 {
            shown.padding.push(field.room().to_string());
        }
        field.finish();
        let header = BbHeader::new(DATA_FIELD).unwrap().write();
        frames.push(ExpectedFrame {
            octets: [&MODE_ADAPTATION[..], &header, &data].concat(),
            shown,
            complete,
        });
    }
    frames
}

/// PDU in fragments.
struct FragmentedPdu<'p> {
    sending: Sending<'p>,
    pdu: &'p LabeledPdu,
    /// Octets of it in fragments so far.
    sent: usize,
    /// Octets that the CRC-32 covers, once there are fragments: Total_Length, Protocol_Type, label as it was sent, and
    /// PDU.
    covered: Vec<u8>,
}

impl FragmentedPdu<'_> {
    /// Adds the expected fields of a GSE Packet of `octets` octets with the next part of the PDU.
    fn expect(&mut self, shown: &mut Expected, octets: usize, is_end: bool, last_label: &mut Option<Label>) {
        let (label, kind, pdu) = self.pdu;
        let is_start = self.covered.is_empty();
        let sent_label = match label {
            _ if *last_label == Some(*label) => vec![],
            Label::Six(npa) => npa.octets().to_vec(),
            Label::Three(octets) => octets.to_vec(),
            Label::Broadcast => vec![],
        };
        if is_start {
            *last_label = Some(*label).filter(|label| *label != Label::Broadcast);
            if !is_end {
                let total_length = (2 + sent_label.len() + pdu.len()) as u16;
                self.covered = [&total_length.to_be_bytes()[..], &kind.value().to_be_bytes()].concat();
                self.covered.extend(&sent_label);
                self.covered.extend(pdu);
            }
        }
        shown.start.push(u8::from(is_start).to_string());
        shown.stop.push(u8::from(is_end).to_string());
        let label_type = match (is_start, sent_label.len(), label) {
            (true, 6, _) => 0,
            (true, 3, _) => 1,
            (true, _, Label::Broadcast) => 2,
            (true, ..) | (false, ..) => 3,
        };
        shown.label_type.push(format!("0x{label_type:04x}"));
        shown.length.push((octets - 2).to_string());
        let is_fragment = !(is_start && is_end);
        if is_fragment {
            shown.frag_id.push(format!("0x{:02x}", self.sending.frag_id()));
        }
        // The fields of the first fragment are repeated with the last one.
        if is_start || is_end {
            shown.proto.push(format!("0x{:04x}", kind.value()));
            if is_fragment {
                shown.total_length.push(u16::from_be_bytes([self.covered[0], self.covered[1]]).to_string());
            }
            let label =
                if is_fragment { &self.covered[4..self.covered.len() - pdu.len()] } else { &sent_label };
            match label.len() {
                6 => shown
                    .six
                    .push(label.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":")),
                3 => shown.three.push(format!("0x{}", hex(label))),
                _ => {}
            }
        }
        if is_end {
            shown.data.push(hex(pdu));
        } else {
            let header = if is_start { 7 + sent_label.len() } else { 3 };
            let end = self.sent + octets - header;
            shown.data.push(hex(&pdu[self.sent..end]));
            self.sent = end;
        }
        if is_end && is_fragment {
            shown.reassembled.push(hex(&self.covered));
            shown.crc.push(format!("0x{:08x}", Crc32::of(&self.covered)));
            shown.crc_status.push(RIGHT.to_owned());
        }
    }
}
