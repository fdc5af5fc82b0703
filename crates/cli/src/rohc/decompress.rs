//! `thinair rohc decompress`.

use std::process::ExitCode;

use thinair_capture::{MAX_WRITTEN_LEN, Record, Skip};
use thinair_rohc::{DecompressError, Decompressor, DecompressorMemory, packet};

use super::both_ways::{self, NO_DIRECTION};
use super::compress::is_writable;
use super::conversion::{Conversion, ConversionArguments, ConversionSettings};
use super::files::{CaptureOutput, REBUILT_ROOM, RecordFraming, drain_feedback, side_of};
use super::summary::DecompressSummary;
use crate::options::BLOCKS;
use crate::records::{OpenCapture, RecordClock, name, unreadable};

pub(super) const EXIT_STATUS: &str = "\
Packets that cannot be decompressed are dropped, and counted by reason. If the first records of a file are missing, \
packets are dropped until the next refresh; no packet is delivered with errors.

Exit status: 0 for success, also if packets were dropped; 1 if a file cannot be read or written, or if it has \
records and no packet could be delivered; 2 for wrong arguments.";

pub(super) fn run(arguments: &ConversionArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.settings(Conversion::Decompress)?;
    let mut summary = DecompressSummary::default();
    if arguments.both_ways {
        both_ways::decompress(arguments, &settings, &mut summary)?;
    } else {
        one_way(arguments, &settings, &mut summary)?;
    }
    summary.print(arguments, &settings)?;
    let name = name(&arguments.input, "standard input");
    let is_of_both_ways = summary.sides > 0 && summary.not_delivered.total() > 0;
    if summary.delivered == 0 && summary.not_delivered.total() + summary.skipped.total() > 0 {
        let advice = if is_of_both_ways {
            BOTH_WAYS
        } else if summary.packets > 0 {
            "give the channel options with which it was written, and see its fields with `thinair rohc dissect`"
        } else if summary.skipped.main() == NO_DIRECTION {
            "it has one direction; omit --both-ways"
        } else {
            "a ROHC capture has link type 147, or Ethernet frames of type 0x22F1"
        };
        eprintln!("thinair: no packet of {name} could be delivered; {advice}");
        return Ok(ExitCode::FAILURE);
    }
    if is_of_both_ways {
        eprintln!("note: {name}: not every packet could be delivered; {BOTH_WAYS}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Advice on a file of both directions that was read as one of a single direction.
const BOTH_WAYS: &str =
    "its frames name their direction: was it written with --both-ways? Then give that here, too";

/// Decompresses the packets of one direction.
fn one_way(
    arguments: &ConversionArguments,
    settings: &ConversionSettings,
    summary: &mut DecompressSummary,
) -> anyhow::Result<()> {
    let mut input = OpenCapture::open(&arguments.input)?;
    let memory = DecompressorMemory::owned(settings.channel.sizes().blocks(BLOCKS));
    let mut link = ReceivingLink {
        decompressor: Decompressor::new(arguments.decompressor_config(settings), memory)
            .with_bases(settings.own_bases()),
        output: CaptureOutput::create(&arguments.output, RecordFraming::Ip)?,
        feedback_out: match &arguments.feedback_out {
            Some(path) => Some(CaptureOutput::create(path, settings.framing)?),
            None => None,
        },
        clock: RecordClock::default(),
        back: Vec::new(),
    };

    while let Some(record) = input.reader.next_record() {
        summary.records += 1;
        match record {
            Ok(record) => link.receive(&record, summary)?,
            Err(error) => unreadable(&input.name, error, &mut summary.skipped)?,
        }
    }
    link.output.finish()?;
    if let Some(output) = link.feedback_out {
        output.finish()?;
    }
    Ok(())
}

/// The receiver's side of the channel.
struct ReceivingLink {
    decompressor: Decompressor<'static>,
    output: CaptureOutput,
    feedback_out: Option<CaptureOutput>,
    clock: RecordClock,
    back: Vec<u8>,
}

impl ReceivingLink {
    /// Decompresses and writes the packet of one record, or counts the reason for skipping it.
    fn receive(&mut self, record: &Record<'_>, summary: &mut DecompressSummary) -> anyhow::Result<()> {
        let rohc = match packet_of(record) {
            Ok(rohc) => rohc,
            Err(reason) => {
                summary.skipped.add(reason, record.number);
                return Ok(());
            }
        };
        summary.packets += 1;
        summary.sides += u64::from(side_of(record.data).is_some());
        summary.octets_in += rohc.len() as u64;
        if let Ok(parts) = packet::parts(rohc) {
            summary.feedback_in_front += parts.feedback.count() as u64;
        }
        let now = self.clock.at(record.time);
        self.back.resize(rohc.len() + REBUILT_ROOM, 0);
        match self.decompressor.decompress(now, rohc, &mut self.back) {
            Ok(done) if done.len > MAX_WRITTEN_LEN => {
                summary.not_delivered.add("too_long", record.number);
            }
            Ok(done) => {
                summary.count(&done);
                if done.len > 0 {
                    self.output.write(record.time, self.back.get(..done.len).unwrap_or_default())?;
                }
            }
            Err(DecompressError::NothingYet) => summary.nothing_yet += 1,
            Err(error) => {
                summary.not_delivered.add(error.name(), record.number);
            }
        }
        let cause = (record.number, record.time, now);
        let file = self.feedback_out.as_mut();
        drain_feedback(&mut self.decompressor, cause, file, None, &mut summary.feedback)
    }
}

/// Returns the ROHC packet of a record, or a stable name of the reason for skipping it.
pub(super) fn packet_of<'r>(record: &Record<'r>) -> Result<&'r [u8], &'static str> {
    let rohc = record.rohc_packet().map_err(Skip::name)?.packet;
    if !is_writable(record.time) {
        return Err("after_2106");
    }
    Ok(rohc)
}
