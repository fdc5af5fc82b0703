//! Accepted SNDUs by rule: streams of our Encapsulator, undisturbed and with TS Packets that are lost, duplicated or
//! have a flipped bit, through our Receiver, through that of the crate `ule`, and through those of other
//! implementations.
//!
//! `THINAIR_PEER_ULE` names programs, separated as in `PATH`; without it the test is skipped with a message. Such a
//! program reads TS Packets of PID 0x35, 188 octets each, on its standard input, and accepts every address. On its
//! standard output it writes a line per PDU: address in 12 hexadecimal digits, zero if there is none; EtherType in
//! four; the PDU in two per octet. Spaces separate them.
//!
//! Every accepted SNDU must have been sent, octet by octet, and in order for our Receiver. A known exception is Linux
//! 6.1 (`dvb_net.c`), which treats a duplicate TS Packet as a loss, and delivers the SNDUs that begin in it twice.
//!
//! Before a number of another implementation, `=` means that it accepts equal octets in the order of our Receiver that
//! continues after a wrong CRC; `<` a part of them, `>` more, `~` other ones.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use thinair_link::Random;
use thinair_tests::tshark::hex;
use thinair_ule::ts::{Afc, HEADER, TsHeader};
use thinair_ule::{
    AfterBadCrc, Encapsulator, EncapsulatorConfig, EtherType, Npa, Packing, Payload, Pid, Receiver,
    ReceiverConfig, Since, Sndu, TsPacket,
};
use thinair_wire::time::Instant;

const PID: u16 = 0x35;
const SNDUS: u32 = 20_000;
/// Size of the longest possible SNDU, in octets.
const LONGEST: usize = 32_771;

/// Title of the column of the crate `ule`.
const CRATE: &str = "crate ule";

/// Impairments of TS Packets, each in this many of 1,000.
struct ImpairedLine {
    name: &'static str,
    lost: u64,
    twice: u64,
    flipped: u64,
}

const LINES: [ImpairedLine; 5] = [
    ImpairedLine { name: "as sent", lost: 0, twice: 0, flipped: 0 },
    ImpairedLine { name: "1 % of TS Packets lost", lost: 10, twice: 0, flipped: 0 },
    ImpairedLine { name: "1 % twice", lost: 0, twice: 10, flipped: 0 },
    ImpairedLine { name: "1 % with a flipped bit", lost: 0, twice: 0, flipped: 10 },
    ImpairedLine { name: "0.5 % each", lost: 5, twice: 5, flipped: 5 },
];

#[test]
fn what_receivers_accept_was_sent() {
    let programs = std::env::var_os("THINAIR_PEER_ULE");
    let programs: Vec<PathBuf> = programs.iter().flat_map(std::env::split_paths).collect();
    if programs.is_empty() {
        println!("skipped: THINAIR_PEER_ULE is not set (receivers of others)");
    }
    let sent = sent();
    let stream = encapsulate(&sent);
    let name = |program: &PathBuf| program.file_name().unwrap().to_string_lossy().into_owned();
    let names: Vec<_> = [CRATE.to_owned()].into_iter().chain(programs.iter().map(name)).collect();
    println!("{} SNDUs in {} TS Packets: SNDUs accepted by rule", sent.len(), stream.len());
    println!(
        "{:<26}{:>12}{:>12}{}",
        "",
        "goes on",
        "discards",
        names.iter().map(|name| format!("{name:>24}")).collect::<String>()
    );
    for line in &LINES {
        let stream = line.carry(&stream);
        let [goes_on, discards] =
            [AfterBadCrc::GoOn, AfterBadCrc::Discard].map(|rule| receive(&stream, rule));
        let mut row = format!("{:<26}{:>12}{:>12}", line.name, goes_on.len(), discards.len());
        for accepted in [&goes_on, &discards] {
            assert!(
                is_part(accepted, &sent),
                "{}: something that was not sent, or in another order",
                line.name
            );
        }
        // A receiver that continues after an error loses no more.
        assert!(is_part(&discards, &goes_on), "{}", line.name);
        if line.lost == 0 && line.flipped == 0 {
            assert_eq!((goes_on.len(), discards.len()), (sent.len(), sent.len()), "{}", line.name);
        }
        let others = programs.iter().map(|program| ask(program, &stream));
        for (name, theirs) in names.iter().zip([by_crate(&stream)].into_iter().chain(others)) {
            let same = theirs == goes_on;
            let (ours, theirs, count) = (of_all(&goes_on), of_all(&theirs), theirs.len());
            assert!(theirs.is_subset(&of_all(&sent)), "{}: {name} accepts what was not sent", line.name);
            // Equal octets in equal order; a part of ours; more; or other ones.
            let sign = match () {
                () if same => "=",
                () if theirs.is_subset(&ours) => "<",
                () if theirs.is_superset(&ours) => ">",
                () => "~",
            };
            let twice = count - theirs.len();
            let twice = if twice > 0 { format!(" ({twice} twice)") } else { String::new() };
            row += &format!("{:>24}", format!("{sign} {}{twice}", theirs.len()));
            assert!(same || line.lost + line.twice + line.flipped > 0, "{name} does not accept all");
        }
        println!("{row}");
    }
}

fn of_all(accepted: &[Accepted]) -> BTreeSet<&Accepted> {
    accepted.iter().collect()
}

/// PDU that a receiver has accepted.
type Accepted = (Option<Npa>, EtherType, Vec<u8>);

/// Distinct PDUs of 4 to 1500 octets, of three Types, with and without an address.
fn sent() -> Vec<Accepted> {
    let mut random = Random::new(1);
    let kinds = [EtherType::IPV4, EtherType::IPV6, EtherType::ROHC];
    let npa = Npa::new([0, 1, 2, 3, 4, 5]);
    let pdu = |i: u32| {
        let len = random.below(1_497);
        let kind = kinds[random.below(3) as usize];
        let npa = npa.filter(|_| random.below(2) == 0);
        let octets = i.to_be_bytes().into_iter().chain((0..len).map(|_| random.below(256) as u8));
        (npa, kind, octets.collect())
    };
    (0..SNDUS).map(pdu).collect()
}

/// Packs most SNDUs; after one of eight, the rest of the TS Packet is padding.
fn encapsulate(pdus: &[Accepted]) -> Vec<TsPacket> {
    let mut random = Random::new(2);
    let packing = Packing::Threshold { wait: Duration::from_secs(1), since: Since::Last };
    let config = EncapsulatorConfig { packing, ..EncapsulatorConfig::new(Pid::new(PID).unwrap()) };
    let mut encapsulator = Encapsulator::new(config);
    let mut stream = Vec::new();
    for (npa, kind, pdu) in pdus {
        let sndu = Sndu::pdu(*kind, pdu);
        let sndu = npa.map_or(sndu, |npa| sndu.to(npa));
        encapsulator.push(Instant::ZERO, &sndu, &mut |packet| stream.push(*packet)).unwrap();
        if random.below(8) == 0 {
            encapsulator.flush(&mut |packet| stream.push(*packet));
        }
    }
    encapsulator.flush(&mut |packet| stream.push(*packet));
    stream
}

impl ImpairedLine {
    fn carry(&self, stream: &[TsPacket]) -> Vec<TsPacket> {
        let mut random = Random::new(3);
        let mut arriving = Vec::new();
        for packet in stream {
            let fate = random.below(1_000);
            let mut packet = *packet;
            if fate < self.lost {
                continue;
            } else if fate < self.lost + self.twice {
                arriving.push(packet);
            } else if fate < self.lost + self.twice + self.flipped {
                let bit = random.below(188 * 8) as usize;
                packet[bit / 8] ^= 0x80 >> (bit % 8);
            }
            arriving.push(packet);
        }
        arriving
    }
}

fn receive(stream: &[TsPacket], after_bad_crc: AfterBadCrc) -> Vec<Accepted> {
    let config = ReceiverConfig { after_bad_crc, ..ReceiverConfig::new(Pid::new(PID).unwrap()) };
    let mut buffer = vec![0; LONGEST];
    let mut receiver = Receiver::new(config, &mut buffer);
    let mut accepted = Vec::new();
    for packet in stream {
        receiver.receive(packet, &mut |delivery| {
            let Payload::Pdu(kind, pdu) = delivery.payload else { panic!("{delivery:?} was not sent") };
            accepted.push((delivery.destination, kind, pdu.to_vec()));
        });
    }
    accepted
}

/// SNDUs that the receiver of the crate `ule` accepts. It expects payloads: its user parses the headers of TS Packets.
fn by_crate(stream: &[TsPacket]) -> Vec<Accepted> {
    let mut receiver = ule::UleReceiver::new();
    let (mut last, mut accepted) = (None, Vec::new());
    for packet in stream {
        let Some(header) = TsHeader::read(packet).ok().filter(|header| header.pid.value() == PID) else {
            continue;
        };
        if header.transport_error {
            receiver.reset();
        }
        if header.transport_error || header.afc != Afc::Payload || header.scrambling != 0 {
            continue;
        }
        match last.replace(header.cc) {
            Some(last) if last == header.cc => continue,
            Some(last) if last.next() != header.cc => receiver.reset(),
            Some(_) | None => {}
        }
        for sndu in receiver.push(&packet[HEADER..], header.payload_unit_start) {
            let Ok(sndu) = ule::Sndu::parse(&sndu) else { continue };
            let kind = EtherType::new(sndu.type_field().to_u16()).unwrap();
            accepted.push((sndu.dest_address.and_then(Npa::new), kind, sndu.pdu().to_vec()));
        }
    }
    accepted
}

/// SNDUs that another receiver accepts.
fn ask(program: &Path, stream: &[TsPacket]) -> Vec<Accepted> {
    let mut command = Command::new(program);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut input = child.stdin.take().unwrap();
    let octets = stream.as_flattened().to_vec();
    let writer = std::thread::spawn(move || input.write_all(&octets).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{} ends with {}", program.display(), output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| read(line).unwrap_or_else(|| panic!("{}: {line}", program.display()))).collect()
}

fn read(line: &str) -> Option<Accepted> {
    let mut parts = line.split(' ');
    let npa = octets(parts.next()?)?.try_into().ok()?;
    let kind = EtherType::new(u16::from_str_radix(parts.next()?, 16).ok()?)?;
    let pdu = octets(parts.next()?)?;
    parts.next().is_none().then_some((Npa::new(npa), kind, pdu))
}

fn octets(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

/// True if all of `part` are among `whole`, in equal order.
fn is_part(part: &[Accepted], whole: &[Accepted]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|one| whole.any(|other| other == one))
}

/// Parses the format that other receivers write.
#[test]
fn lines_of_others_are_read() {
    let line = format!("000102030405 22f1 {}", hex(b"\0\xBE\xEF"));
    assert_eq!(read(&line), Some((Npa::new([0, 1, 2, 3, 4, 5]), EtherType::ROHC, vec![0, 0xBE, 0xEF])));
    assert_eq!(read("000000000000 0800 45"), Some((None, EtherType::IPV4, vec![0x45])));
    for bad in ["", "000000000000 0800", "000000000000 0500 45", "0000 0800 45", "000000000000 0800 4x"] {
        assert_eq!(read(bad), None, "{bad}");
    }
}
