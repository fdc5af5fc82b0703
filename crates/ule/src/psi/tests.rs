use super::*;
use crate::ts::NULL_PACKET;
use std::vec::Vec;

fn pid(value: u16) -> Pid {
    Pid::new(value).unwrap()
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Both tables were checked with tshark: "Section CRC good", "ULE1 - University of Aberdeen (on behalf of the IETF)".
const PAT: &str = "00b00d0001c100000001e100e8f95e7d";
const PMT: &str = "02b0180001c10000fffff00091e035f0060504554c4531d2e7cdab";

fn pat() -> Pat<'static> {
    Pat { transport_stream_id: 1, version: 0, programs: &[Program { number: 1, pid: PMT_PID }] }
}

const PMT_PID: Pid = match Pid::new(0x100) {
    Some(pid) => pid,
    None => Pid::NULL,
};

#[test]
fn tables_are_written_as_others_read_them() {
    let mut out = [0; 64];
    let end = pat().write(&mut out).unwrap();
    assert_eq!(out[..end], octets(PAT));
    let pmt = Pmt { program_number: 1, version: 0, streams: &[pid(0x35)] };
    let end = pmt.write(&mut out).unwrap();
    assert_eq!(out[..end], octets(PMT));

    let packet = pmt.packet(PMT_PID, Cc::new(3)).unwrap();
    assert_eq!(packet[..5], [0x47, 0x41, 0x00, 0x13, 0x00]);
    assert_eq!(packet[5..5 + end], octets(PMT));
    assert!(packet[5 + end..].iter().all(|octet| *octet == 0xFF));
}

#[test]
fn tables_are_read() {
    let (pat, pmt) = (octets(PAT), octets(PMT));
    let section = PsiSection::read(&pat).unwrap();
    assert!(Pat::programs(section).eq([Program { number: 1, pid: PMT_PID }]));
    assert!(Pmt::streams(section).is_none());
    let (program, mut streams) = Pmt::streams(PsiSection::read(&pmt).unwrap()).unwrap();
    let stream = streams.next().unwrap();
    assert_eq!((program, stream.stream_type, stream.pid.value()), (1, StreamType::ULE, 0x35));
    assert!(stream.is_ule() && streams.next().is_none());
    // One of the two marks suffices.
    assert!(ElementaryStream { stream_type: StreamType(0x06), ..stream }.is_ule());
    assert!(ElementaryStream { descriptors: &[], ..stream }.is_ule());
    assert!(
        !ElementaryStream { stream_type: StreamType(0x06), descriptors: b"\x05\x04CUEI", ..stream }.is_ule()
    );
    assert!(
        !ElementaryStream { stream_type: StreamType(0x06), descriptors: b"\x05\x08ULE1", ..stream }.is_ule()
    );
    for i in 0..pmt.len() {
        let mut damaged = pmt.clone();
        damaged[i] ^= 4;
        assert!(PsiSection::read(&damaged).is_err());
        assert_eq!(PsiSection::read(&pmt[..i]), Err(BadSection::Length));
    }
}

#[test]
fn what_does_not_fit_into_one_packet_is_refused() {
    let programs = [Program { number: 1, pid: PMT_PID }; 43];
    assert!(Pat { programs: &programs[..42], ..pat() }.packet(Cc::default()).is_ok());
    assert_eq!(Pat { programs: &programs, ..pat() }.packet(Cc::default()), Err(TooMany));
    let streams = [PMT_PID; 16];
    let pmt = Pmt { program_number: 1, version: 0, streams: &streams };
    assert_eq!(pmt.packet(PMT_PID, Cc::default()), Err(TooMany));
    assert!(Pmt { streams: &streams[..15], ..pmt }.packet(PMT_PID, Cc::default()).is_ok());
}

#[test]
fn streams_are_found_once_their_tables_have_come() {
    let mut finder = Finder::<2, 4>::new();
    let pmt = |cc| {
        Pmt { program_number: 1, version: 0, streams: &[pid(0x35), pid(0x36)] }.packet(PMT_PID, cc).unwrap()
    };
    assert!(!finder.receive(&NULL_PACKET));
    // Without a PAT, PID 0x100 is unknown.
    assert!(!finder.receive(&pmt(Cc::new(0))));
    assert!(!finder.receive(&pat().packet(Cc::new(0)).unwrap()));
    assert!(finder.receive(&pmt(Cc::new(1))));
    assert!(!finder.receive(&pmt(Cc::new(2))));
    let found = [0x35, 0x36].map(|value| UleStream { program: 1, pid: pid(value) });
    assert!(finder.streams().eq(found));
}

/// A PAT of another multiplexer with 100 programs: 412 octets in 3 TS Packets, after the end of another section.
#[test]
fn a_section_may_lie_in_several_packets() {
    let mut section = octets("00b1990001c10000");
    (1..=100_u16).for_each(|i| section.extend([(i >> 8) as u8, i as u8, 0xE2, i as u8]));
    section.extend(Crc32::of(&section).to_be_bytes());
    assert_eq!(section.len(), 412);
    let mut packets = Vec::new();
    let (first, rest) = section.split_at(100);
    let mut payload = [&[83][..], &[0xAA; 83], first].concat();
    for (cc, chunk) in [&[][..], &rest[..184], &rest[184..]].into_iter().enumerate() {
        payload.extend(chunk);
        payload.resize(184, 0xFF);
        let header = TsHeader::new(Pid::PAT, cc == 0, Cc::new(cc as u8)).octets();
        packets.push(<TsPacket>::try_from([&header[..], &payload].concat()).unwrap());
        payload.clear();
    }
    let read = |packets: &[TsPacket]| {
        let (mut reader, mut numbers) = (SectionReader::default(), Vec::new());
        for packet in packets {
            reader.receive(packet, &mut |section| {
                numbers.extend(Pat::programs(section).map(|program| program.number))
            });
        }
        numbers
    };
    assert_eq!(read(&packets), (1..=100).collect::<Vec<_>>());
    // A duplicate is harmless; a loss drops the section.
    assert_eq!(read(&[packets[0], packets[0], packets[1], packets[2]]).len(), 100);
    assert_eq!(read(&[packets[0], packets[2]]), []);
}
