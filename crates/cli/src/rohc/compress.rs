//! `thinair rohc compress`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use thinair_analyze::{CaptureSide, Directions};
use thinair_capture::{Record, Skip, Timestamp};
use thinair_rohc::{CompressError, Compressor, CompressorMemory, Decompressor, DecompressorMemory, Mode};
use thinair_wire::header::chain::NotIp;

use super::both_ways;
use super::conversion::{Conversion, ConversionArguments, ConversionSettings};
use super::files::{CaptureOutput, FeedbackInput, MAX_PACKET_LEN, drain_feedback};
use super::summary::CompressSummary;
use crate::options::BLOCKS;
use crate::records::{OpenCapture, RecordClock, name, unreadable};
use crate::usage::Usage;

pub(super) const EXIT_STATUS: &str = "\
Records without an IP packet are skipped, and counted by reason.

Exit status: 0 if OUT is complete; 1 if a file cannot be read or written, or if the decompressor of O-mode and \
R-mode does not restore a packet, or if IN has records and no packet could be compressed; 2 for wrong arguments.";

/// Octets by which compression may enlarge a header. An IR packet adds a few to each header at most.
pub(super) const ROOM: usize = 1_024;

pub(super) fn run(arguments: &ConversionArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.settings(Conversion::Compress)?;
    if arguments.both_ways {
        return both_ways::compress(arguments, &settings);
    }
    let mut summary = CompressSummary::default();
    let mut input = OpenCapture::open(&arguments.input)?;
    let mut link = SendingLink::open(arguments, &settings, &mut summary)?;

    while let Some(record) = input.reader.next_record() {
        summary.records += 1;
        match record {
            Ok(record) => link.send(&record, &mut summary)?,
            Err(error) => unreadable(&input.name, error, &mut summary.skipped)?,
        }
    }
    summary.unwrapped = link.packets.unwrapped();
    link.close(&mut summary)?;

    finished(arguments, &settings, &summary)
}

/// Prints the summary, and returns the exit status. A file without a compressed packet is an error.
pub(super) fn finished(
    arguments: &ConversionArguments,
    settings: &ConversionSettings,
    summary: &CompressSummary,
) -> anyhow::Result<ExitCode> {
    summary.print(arguments, settings)?;
    if summary.packets == 0 && summary.skipped.total() > 0 {
        let advice = match summary.skipped.main() {
            "truncated" => "capture again with whole frames, for example with `tcpdump -s 0`",
            "no_context" => "give the prefixes of the network with --lowpan-context",
            _ => "`thinair analyze` names what the file holds instead, and what to do",
        };
        let name = name(&arguments.input, "standard input");
        eprintln!("thinair: no packet of {name} could be compressed: {}; {advice}", summary.skipped);
        return Ok(ExitCode::FAILURE);
    }
    Ok(if summary.mismatches.total() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The sender's side of the channel, and a substitute for the other side.
struct SendingLink {
    packets: PacketSource,
    compressor: Compressor<'static>,
    output: CaptureOutput,
    peer: FeedbackSource,
    clock: RecordClock,
    rohc: Vec<u8>,
}

/// Source of feedback.
enum FeedbackSource {
    /// None: U-mode.
    None,
    /// A file.
    File(FeedbackInput),
    /// A decompressor that the command runs.
    Own { decompressor: Box<Decompressor<'static>>, feedback_out: Option<CaptureOutput>, back: Vec<u8> },
}

impl SendingLink {
    fn open(
        arguments: &ConversionArguments,
        settings: &ConversionSettings,
        summary: &mut CompressSummary,
    ) -> anyhow::Result<Self> {
        let peer = match (settings.mode, &arguments.feedback_in) {
            (Mode::Unidirectional, _) => FeedbackSource::None,
            (_, Some(path)) => FeedbackSource::File(FeedbackInput::open(path, &mut summary.feedback)?),
            (_, None) => {
                let memory = DecompressorMemory::owned(settings.channel.sizes().blocks(BLOCKS));
                let decompressor = Decompressor::new(arguments.decompressor_config(settings), memory)
                    .with_bases(settings.own_bases());
                let path = arguments.feedback_out.as_ref();
                let feedback_out =
                    path.map(|path| CaptureOutput::create(path, settings.framing)).transpose()?;
                FeedbackSource::Own { decompressor: Box::new(decompressor), feedback_out, back: Vec::new() }
            }
        };
        let memory = CompressorMemory::owned(settings.channel.sizes().blocks(BLOCKS));
        Ok(Self {
            packets: PacketSource::new(arguments)?,
            compressor: Compressor::new(arguments.compressor_config(settings), memory)
                .with_bases(settings.own_bases()),
            output: CaptureOutput::create(&arguments.output, settings.framing)?,
            peer,
            clock: RecordClock::default(),
            rohc: Vec::new(),
        })
    }

    /// Compresses and writes the packet of one record, or counts the reason for skipping it.
    fn send(&mut self, record: &Record<'_>, summary: &mut CompressSummary) -> anyhow::Result<()> {
        let packet = match self.packets.of(record) {
            Ok((_, packet)) => packet,
            Err(reason) => {
                summary.skipped.add(reason, record.number);
                return Ok(());
            }
        };
        let now = self.clock.at(record.time);
        if let FeedbackSource::File(feedback) = &mut self.peer {
            feedback.deliver(record.time, now, &mut self.compressor, &mut summary.feedback)?;
        }
        self.rohc.resize(packet.len() + ROOM, 0);
        let compressed = match self.compressor.compress(now, packet, &mut self.rohc) {
            Ok(compressed) => compressed,
            Err(error) => {
                summary.skipped.add(refusal(error), record.number);
                return Ok(());
            }
        };
        summary.count(packet, &compressed);
        let rohc = self.rohc.get(..compressed.len).unwrap_or_default();
        self.output.write(record.time, rohc)?;

        if let FeedbackSource::Own { decompressor, feedback_out, back } = &mut self.peer {
            back.resize(packet.len() + ROOM, 0);
            match decompressor.decompress(now, rohc, back) {
                Ok(done) if back.get(..done.len) == Some(packet) => {}
                Ok(_) => {
                    summary.mismatches.add("differs", record.number);
                }
                // Nothing was lost on the way, so a rejected packet is an error, too.
                Err(error) => {
                    summary.mismatches.add(error.name(), record.number);
                }
            }
            let cause = (record.number, record.time, now);
            let compressor = Some(&mut self.compressor);
            drain_feedback(decompressor, cause, feedback_out.as_mut(), compressor, &mut summary.feedback)?;
        }
        Ok(())
    }

    fn close(self, summary: &mut CompressSummary) -> anyhow::Result<()> {
        self.output.finish()?;
        match self.peer {
            FeedbackSource::None | FeedbackSource::Own { feedback_out: None, .. } => Ok(()),
            FeedbackSource::File(feedback) => feedback.finish(&mut summary.feedback),
            FeedbackSource::Own { feedback_out: Some(output), .. } => output.finish(),
        }
    }
}

/// Extractor of the IP packets of a capture.
pub(super) struct PacketSource(Directions);

impl PacketSource {
    /// Returns an extractor of the packets that `thinair analyze` counts under these options.
    pub(super) fn new(arguments: &ConversionArguments) -> anyhow::Result<Self> {
        Ok(Self(Directions::of(arguments.packets.unpack().map_err(Usage::error)?)))
    }

    /// Number of packets extracted from tunnels, by kind of tunnel.
    pub(super) fn unwrapped(&self) -> BTreeMap<&'static str, u64> {
        self.0.unwrapped().clone()
    }

    /// Returns the IP packet of a record with its direction, or a stable name of the reason for skipping the
    /// record.
    pub(super) fn of<'p>(&'p mut self, record: &Record<'p>) -> Result<(CaptureSide, &'p [u8]), &'static str> {
        let (side, packet) = self.0.packet(record)?;
        if packet.len() > MAX_PACKET_LEN {
            return Err("too_long");
        }
        if !is_writable(record.time) {
            return Err("after_2106");
        }
        Ok((side, packet))
    }
}

/// True if a pcap file can represent this time; pcapng files can represent later ones. Leaves room for a
/// nanosecond for feedback.
pub(super) fn is_writable(time: Timestamp) -> bool {
    u32::try_from(time.as_nanos().saturating_add(1) / 1_000_000_000).is_ok()
}

pub(super) fn refusal(error: CompressError) -> &'static str {
    match error {
        CompressError::NotIp(NotIp::Version) => Skip::NotIp.name(),
        CompressError::NotIp(NotIp::Short { .. }) => "short_ip_header",
        CompressError::OutputTooSmall { .. } => "output_too_small",
        CompressError::NoContexts => "no_contexts",
    }
}
