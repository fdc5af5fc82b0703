//! `thinair rohc dissect`: fields and outcome of each ROHC packet of a capture, traced in the decompressor.

use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use thinair_analyze::{CaptureSide, endpoint};
use thinair_capture::{Record, Skip, Timestamp};
use thinair_rohc::decompressor::Traced;
use thinair_rohc::feedback::{AckType, Feedback, FeedbackError, FeedbackForm, MAX_ELEMENT};
use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::storage::Slots;
use thinair_rohc::{
    Channel, Cid, DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory,
    Endpoint, Format, Mode, ProfileId,
};

use super::both_ways::NO_DIRECTION;
use super::conversion::Leniency;
use super::files::{REBUILT_ROOM, side_of};
use crate::options::{BLOCKS, ChannelOptions};
use crate::records::{OpenCapture, ReasonTally, RecordClock, unreadable};
use crate::usage::Usage;

/// Schema of the objects that `--json` prints.
const SCHEMA: &str = "thinair.rohc.dissect/1";

/// Octets in one line of text output.
const OCTETS_A_LINE: usize = 16;

pub(super) const EXIT_STATUS: &str = "\
Exit status: 0 for success, also if packets could not be decompressed; 1 if the file cannot be read; 2 for wrong arguments.";

#[derive(Args, Debug)]
pub(crate) struct DissectArguments {
    /// Capture of ROHC packets (link type 147 or EtherType 0x22F1); `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Read both directions of a link, as `thinair rohc compress --both-ways` writes them
    ///
    /// The addresses of a frame name its side. Without this option all packets of a file are of one channel.
    #[arg(long)]
    both_ways: bool,
    /// Print one JSON line per record (thinair.rohc.dissect/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    leniency: Leniency,
    #[command(flatten)]
    channel: ChannelOptions,
}

pub(super) fn run(arguments: &DissectArguments) -> anyhow::Result<ExitCode> {
    let channel = arguments.channel.channel().map_err(Usage::error)?;
    let mut input = OpenCapture::open(&arguments.input)?;
    let mut dissector = Dissector::new(arguments, channel)?;
    let mut unread = ReasonTally::default();
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(record) = input.reader.next_record() {
        let written = match record {
            Ok(record) => {
                let seen = dissector.look(&record);
                if arguments.json { writeln!(out, "{}", seen.to_json()) } else { seen.print(&mut out) }
            }
            Err(error) => {
                unreadable(&input.name, error, &mut unread)?;
                Ok(())
            }
        };
        match written {
            // The reader has closed the pipe, as `| head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            written => written.context("cannot write standard output")?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        flushed => flushed.context("cannot write standard output").map(|()| ExitCode::SUCCESS),
    }
}

/// Receivers that parse each packet before they decompress it.
struct Dissector {
    channel: Channel,
    receivers: Receivers,
    clock: RecordClock,
    start: Option<Timestamp>,
    back: Vec<u8>,
}

impl Dissector {
    fn new(arguments: &DissectArguments, channel: Channel) -> anyhow::Result<Self> {
        let bases = arguments.channel.bases()?;
        let receivers = match arguments.both_ways {
            true => {
                let decompressor = arguments.leniency.apply(arguments.channel.decompressor(channel));
                let end = || endpoint(arguments.channel.compressor(channel), decompressor, &bases);
                Receivers::Ends(Box::new([end(), end()]))
            }
            false => {
                let config = arguments.leniency.apply(DecompressorConfig::new(channel));
                let memory = DecompressorMemory::owned(channel.sizes().blocks(BLOCKS));
                let decompressor = Decompressor::new(config, memory).with_bases(Slots::owned(bases));
                Receivers::One(Box::new(decompressor))
            }
        };
        Ok(Self { channel, receivers, clock: RecordClock::default(), start: None, back: Vec::new() })
    }

    fn look<'r>(&mut self, record: &Record<'r>) -> Dissection<'r> {
        let start = *self.start.get_or_insert(record.time);
        let after = i128::from(record.time.as_nanos()) - i128::from(start.as_nanos());
        let rohc = record.rohc_packet().map(|rohc| rohc.packet).map_err(Skip::name);
        let side = match self.receivers {
            Receivers::One(_) => Ok(None),
            Receivers::Ends(_) => side_of(record.data).ok_or(NO_DIRECTION).map(Some),
        };
        let packet = rohc.and_then(|octets| Ok(self.look_into(octets, side?, record.time)));
        Dissection { record: record.number, time: record.time, after, packet }
    }

    /// `side`: that of the sender, if the file has both directions.
    fn look_into<'r>(
        &mut self,
        octets: &'r [u8],
        side: Option<CaptureSide>,
        time: Timestamp,
    ) -> DissectedPacket<'r> {
        let (feedback, segment) = match packet::parts(octets) {
            Ok(parts) => {
                let feedback = parts.feedback.map(|data| self.feedback(data)).collect();
                let segment = match parts.body {
                    PacketBody::Segment { last, .. } => Some(last),
                    PacketBody::Empty | PacketBody::Header(_) => None,
                };
                (feedback, segment)
            }
            Err(_) => (Vec::new(), None),
        };
        let mut fields = Vec::new();
        let now = self.clock.at(time);
        self.back.resize(octets.len() + REBUILT_ROOM, 0);
        let (format, outcome) = match &mut self.receivers {
            Receivers::One(decompressor) => {
                let format = decompressor.dissect(octets, |field| add(&mut fields, &field));
                (format, decompressor.decompress(now, octets, &mut self.back))
            }
            Receivers::Ends(ends) => {
                let [a, b] = &mut **ends;
                let (sender, receiver) = if side == Some(CaptureSide::B) { (b, a) } else { (a, b) };
                let format = receiver.decompressor.dissect(octets, |field| add(&mut fields, &field));
                let outcome = receiver.receive(now, octets, &mut self.back);
                if outcome.is_ok() {
                    sender.observe(receiver);
                }
                // The file contains the feedback of the ends already.
                while receiver.poll_feedback(&mut [0; MAX_ELEMENT]).is_some() {}
                (format, outcome)
            }
        };
        DissectedPacket { octets, side, feedback, segment, format, fields, outcome }
    }

    /// Parses a feedback element. Its format depends on the profile of its context, which only the compressor
    /// has. The formats of RFC 5225 and RFC 6846 are recognized by their CRC over the whole element.
    fn feedback(&self, data: &[u8]) -> Result<Feedback, FeedbackError> {
        let space = self.channel.cids();
        let has = |form: &FeedbackForm| {
            self.channel.profiles().iter().any(|profile| FeedbackForm::of(profile) == *form)
        };
        let read = |form| Feedback::read_as(form, data, space).ok().filter(|feedback| feedback.protected);
        let protected = [FeedbackForm::Rfc5225, FeedbackForm::Rfc6846].into_iter().filter(has).find_map(read);
        protected.map_or_else(|| Feedback::read(data, space), Ok)
    }
}

/// Decompressors of the packets of a file.
enum Receivers {
    /// All packets are of one channel.
    One(Box<Decompressor<'static>>),
    /// The ends of a link, side A first.
    Ends(Box<[Endpoint<'static>; 2]>),
}

/// Findings about one record.
struct Dissection<'r> {
    record: u64,
    time: Timestamp,
    /// Nanoseconds since the first record; negative in files that are out of order.
    after: i128,
    /// The ROHC packet, or the reason for skipping the record.
    packet: Result<DissectedPacket<'r>, &'static str>,
}

/// A field in the output.
struct TracedField {
    name: &'static str,
    bits: u32,
    content: FieldContent,
}

enum FieldContent {
    Number(u32),
    Octets(Vec<u8>),
}

/// Fields that profile `coap` reads octet by octet.
const STRINGS: [&str; 3] = ["Source Address", "Destination Address", "Token"];

/// Appends a field, or extends the last one by an octet.
fn add(fields: &mut Vec<TracedField>, traced: &Traced<'_>) {
    let Traced { name, bits, value, octets } = *traced;
    let octet =
        u8::try_from(value).ok().filter(|_| bits == 8 && octets.is_empty() && STRINGS.contains(&name));
    let last = fields.last_mut().filter(|last| last.name == name);
    if let (Some(octet), Some(TracedField { bits, content: FieldContent::Octets(string), .. })) =
        (octet, last)
    {
        string.push(octet);
        *bits += 8;
        return;
    }
    let content = match octet {
        Some(octet) => FieldContent::Octets(vec![octet]),
        None if octets.is_empty() => FieldContent::Number(value),
        None => FieldContent::Octets(octets.to_vec()),
    };
    fields.push(TracedField { name, bits, content });
}

struct DissectedPacket<'r> {
    octets: &'r [u8],
    /// Side of the sender, if the file has both directions.
    side: Option<CaptureSide>,
    feedback: Vec<Result<Feedback, FeedbackError>>,
    /// For a segment: true if it is the last one.
    segment: Option<bool>,
    format: Option<(Cid, ProfileId, Format)>,
    fields: Vec<TracedField>,
    outcome: Result<Decompressed, DecompressError>,
}

impl Dissection<'_> {
    /// Prints a head line, a line per feedback element and field, and the outcome of the packet.
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "#{}  {:+.6} s", self.record, self.after as f64 / 1e9)?;
        let packet = match &self.packet {
            Ok(packet) => packet,
            Err(reason) => return writeln!(out, "  skipped: {reason}\n"),
        };
        write!(out, "  {} octets", packet.octets.len())?;
        if let Some(side) = packet.side {
            write!(out, "  from {}", side.name().to_uppercase())?;
        }
        if let Some((cid, profile, format)) = packet.format {
            write!(out, "  CID {}  {}  {}", cid.value(), profile.name(), format.name())?;
        }
        match packet.segment {
            Some(true) => write!(out, "  last segment")?,
            Some(false) => write!(out, "  segment")?,
            None => {}
        }
        writeln!(out)?;
        for element in &packet.feedback {
            print_feedback(out, element)?;
        }
        if packet.fields.is_empty() {
            print_octets(out, "octets", packet.octets)?;
        }
        for field in &packet.fields {
            print_field(out, field)?;
        }
        print_outcome(out, &packet.outcome)?;
        writeln!(out)
    }

    fn to_json(&self) -> Value {
        let mut json = json!({ "schema": SCHEMA, "record": self.record, "time_ns": self.time.as_nanos() });
        let more = match &self.packet {
            Ok(packet) => packet.to_json(),
            Err(reason) => json!({ "skipped": reason }),
        };
        if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
            json.extend(more);
        }
        json
    }
}

impl DissectedPacket<'_> {
    fn to_json(&self) -> Value {
        let (decompressed, error) = match &self.outcome {
            Ok(done) => {
                let done = json!({
                    "header_octets_in": done.header_in,
                    "header_octets_out": done.header_out,
                    "octets": done.len,
                });
                (done, Value::Null)
            }
            Err(error) => (Value::Null, json!({ "name": error.name(), "message": error.to_string() })),
        };
        let mut packet = json!({
            "octets": self.octets.len(),
            "cid": self.format.map(|(cid, ..)| cid.value()),
            "profile": self.format.map(|(_, profile, _)| profile.number()),
            "format": self.format.map(|(.., format)| format.name()),
            "segment": self.segment.map(|last| json!({ "last": last })),
            "fields": self.fields.iter().map(field_json).collect::<Vec<_>>(),
            "feedback": self.feedback.iter().map(feedback_json).collect::<Vec<_>>(),
            "decompressed": decompressed,
            "error": error,
        });
        if let (Some(side), Value::Object(packet)) = (self.side, &mut packet) {
            packet.insert("side".to_owned(), side.name().into());
        }
        packet
    }
}

fn print_outcome(out: &mut impl Write, outcome: &Result<Decompressed, DecompressError>) -> io::Result<()> {
    match outcome {
        Ok(Decompressed { len: 0, header_in, .. }) => {
            writeln!(
                out,
                "    => header of {header_in} octets, which updates the context and delivers nothing"
            )
        }
        Ok(done) => writeln!(
            out,
            "    => {} octets: header {} -> {}, payload {}",
            done.len,
            done.header_in,
            done.header_out,
            done.len.saturating_sub(done.header_out)
        ),
        Err(DecompressError::NothingYet) => writeln!(out, "    => no IP packet in it"),
        Err(error) => writeln!(out, "    => not delivered, {}: {error}", error.name()),
    }
}

/// Prints `name  bits  value`: hexadecimal, and decimal if it differs.
fn print_field(out: &mut impl Write, field: &TracedField) -> io::Result<()> {
    let TracedField { name, bits, ref content } = *field;
    let value = match content {
        FieldContent::Number(value) => *value,
        FieldContent::Octets(octets) => return print_octets(out, name, octets),
    };
    write!(out, "    {name:<24}{bits:>5}  ")?;
    if name == DISCRIMINATOR {
        return writeln!(out, "0b{value:0width$b}", width = bits as usize);
    }
    match value {
        0..=9 => writeln!(out, "{value}"),
        _ => writeln!(out, "{value} (0x{value:0width$x})", width = bits.div_ceil(4) as usize),
    }
}

/// Name of a fixed bit pattern in the tracer.
const DISCRIMINATOR: &str = "discriminator";

fn print_octets(out: &mut impl Write, name: &str, octets: &[u8]) -> io::Result<()> {
    let mut bits = (octets.len() * 8).to_string();
    let mut name = name;
    for line in octets.chunks(OCTETS_A_LINE) {
        write!(out, "    {name:<24}{bits:>5} ")?;
        for group in line.chunks(4) {
            write!(out, " {}", hex(group))?;
        }
        if let Some(address) = address(name, line) {
            write!(out, " ({address})")?;
        }
        writeln!(out)?;
        (name, bits) = ("", String::new());
    }
    Ok(())
}

/// Returns the address in a field with such a name: "Source Address" in RFC 3095, `src_addr` in RFC 6846.
fn address(name: &str, octets: &[u8]) -> Option<IpAddr> {
    if !name.ends_with("Address") && !name.ends_with("_addr") {
        return None;
    }
    <[u8; 4]>::try_from(octets)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
        .ok()
}

fn print_feedback(out: &mut impl Write, element: &Result<Feedback, FeedbackError>) -> io::Result<()> {
    let feedback = match element {
        Ok(feedback) => feedback,
        Err(error) => return writeln!(out, "    feedback  {}", error.name()),
    };
    write!(out, "    feedback  {}  CID {}", ack_name(feedback.ack), feedback.cid.value())?;
    match feedback.sn_bits {
        0 => write!(out, "  no SN")?,
        bits => write!(out, "  SN {} ({bits} bits)", feedback.sn)?,
    }
    if let Some(mode) = feedback.mode {
        write!(out, "  mode {}", mode.letter())?;
    }
    for (name, value) in [("CLOCK", feedback.clock), ("JITTER", feedback.jitter), ("LOSS", feedback.loss)] {
        if let Some(value) = value {
            write!(out, "  {name} {value}")?;
        }
    }
    let flags = [
        ("REJECT", feedback.reject),
        ("CONTEXT_MEMORY", feedback.context_memory),
        ("CRC ok", feedback.protected),
    ];
    for (name, _) in flags.iter().filter(|(_, set)| *set) {
        write!(out, "  {name}")?;
    }
    writeln!(out)
}

fn feedback_json(element: &Result<Feedback, FeedbackError>) -> Value {
    match element {
        Ok(feedback) => json!({
            "cid": feedback.cid.value(),
            "ack": ack_name(feedback.ack),
            "mode": feedback.mode.map(Mode::letter),
            "sn": (feedback.sn_bits > 0).then_some(feedback.sn),
            "sn_bits": feedback.sn_bits,
            "crc": feedback.protected,
            "reject": feedback.reject,
            "context_memory": feedback.context_memory,
            "clock": feedback.clock,
            "jitter": feedback.jitter,
            "loss": feedback.loss,
        }),
        Err(error) => json!({ "error": error.name() }),
    }
}

fn field_json(field: &TracedField) -> Value {
    let TracedField { name, bits, ref content } = *field;
    match content {
        FieldContent::Number(value) => json!({ "name": name, "bits": bits, "value": value }),
        FieldContent::Octets(octets) => json!({ "name": name, "bits": bits, "octets": hex(octets) }),
    }
}

const fn ack_name(ack: AckType) -> &'static str {
    match ack {
        AckType::Ack => "ACK",
        AckType::Nack => "NACK",
        AckType::StaticNack => "STATIC-NACK",
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
