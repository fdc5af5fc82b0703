//! `thinair rohc dissect`: what each ROHC packet of a capture says, told by the code that reads it.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use thinair_capture::{Record, Timestamp};
use thinair_rohc::decompressor::Traced;
use thinair_rohc::feedback::{AckType, Feedback, FeedbackError};
use thinair_rohc::packet::{self, Body, PartsError};
use thinair_rohc::{
    Channel, Cid, CidSpace, DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory,
    Format, Mode, ProfileId,
};

use super::Usage;
use super::conversion::BLOCKS;
use super::files::{Clock, Input, unreadable};
use super::summary::{Tally, feedback_error_name};
use crate::options::ChannelOptions;

/// Octets that a header may grow by. More than any context can hold.
const ROOM: usize = 65_536;

/// Octets in one line of text.
const OCTETS_A_LINE: usize = 16;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A capture of ROHC packets (link type 147, or Ethernet frames of type 0x22F1); `-` is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Print one JSON object a record and line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    channel: ChannelOptions,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let channel = arguments.channel.channel().map_err(Usage::error)?;
    let mut input = Input::open(&arguments.input)?;
    let mut dissector = Dissector::new(channel);
    let mut unread = Tally::default();
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(record) = input.reader.next_record() {
        let told = match record {
            Ok(record) => {
                let seen = dissector.look(&record);
                if arguments.json { writeln!(out, "{}", seen.to_json()) } else { seen.print(&mut out) }
            }
            Err(error) => {
                unreadable(&input.name, error, &mut unread)?;
                Ok(())
            }
        };
        match told {
            // `| head` has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            told => told.context("cannot write standard output")?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        flushed => flushed.context("cannot write standard output").map(|()| ExitCode::SUCCESS),
    }
}

/// A receiver that looks before it decompresses.
struct Dissector {
    space: CidSpace,
    decompressor: Decompressor<'static>,
    clock: Clock,
    start: Option<Timestamp>,
    back: Vec<u8>,
}

impl Dissector {
    fn new(channel: Channel) -> Self {
        let memory = DecompressorMemory::owned(&channel, BLOCKS);
        Self {
            space: channel.cids(),
            decompressor: Decompressor::new(DecompressorConfig::new(channel), memory),
            clock: Clock::default(),
            start: None,
            back: Vec::new(),
        }
    }

    fn look<'r>(&mut self, record: &Record<'r>) -> Seen<'r> {
        let start = *self.start.get_or_insert(record.time);
        let mut seen = Seen {
            record: record.number,
            time: record.time,
            offset_nanos: i128::from(record.time.as_nanos()) - i128::from(start.as_nanos()),
            octets: 0,
            feedback: Vec::new(),
            body: None,
            format: None,
            fields: Vec::new(),
            outcome: Err("skipped", String::new()).into(),
        };
        let rohc = match record.rohc_packet() {
            Ok(rohc) => rohc.packet,
            Err(skip) => {
                seen.outcome = Outcome::Skipped(skip.name());
                return seen;
            }
        };
        seen.octets = rohc.len();
        if let Ok(parts) = packet::parts(rohc) {
            seen.feedback = parts.feedback.map(|data| (data, Feedback::read(data, self.space))).collect();
        }
        seen.format = self.decompressor.dissect(rohc, |field| seen.fields.push(field));
        let now = self.clock.at(record.time);
        self.back.resize(rohc.len() + ROOM, 0);
        seen.outcome = Outcome::Read(self.decompressor.decompress(now, rohc, &mut self.back));
        seen
    }
}
