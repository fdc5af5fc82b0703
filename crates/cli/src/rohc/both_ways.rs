//! Conversion of both directions of a link in one file: a compressor and a decompressor at each side, with
//! feedback between them. CoAP responses are compressed with reference to their requests.

use std::process::ExitCode;

use thinair_analyze::{CaptureSide, endpoint};
use thinair_capture::{MAX_WRITTEN_LEN, Record, Timestamp};
use thinair_rohc::feedback::MAX_ELEMENT;
use thinair_rohc::{DecompressError, Endpoint, packet};

use super::compress::{PacketSource, ROOM, finished, refusal};
use super::conversion::{ConversionArguments, ConversionSettings};
use super::decompress::packet_of;
use super::files::{CaptureOutput, REBUILT_ROOM, RecordFraming, side_of};
use super::summary::{CompressSummary, DecompressSummary};
use crate::records::{OpenCapture, RecordClock, unreadable};

/// Reason for skipping a frame whose addresses name no side.
pub(super) const NO_DIRECTION: &str = "no_direction";

/// The ends of the link, side A first.
struct LinkEnds([Endpoint<'static>; 2]);

impl LinkEnds {
    fn new(arguments: &ConversionArguments, settings: &ConversionSettings) -> Self {
        let end = || {
            let compressor = arguments.compressor_config(settings);
            endpoint(compressor, arguments.decompressor_config(settings), &settings.bases)
        };
        Self([end(), end()])
    }

    /// Returns the end at a side, and the opposite end.
    fn from(&mut self, side: CaptureSide) -> (&mut Endpoint<'static>, &mut Endpoint<'static>) {
        let [a, b] = &mut self.0;
        match side {
            CaptureSide::A => (a, b),
            CaptureSide::B => (b, a),
        }
    }
}

pub(super) fn compress(
    arguments: &ConversionArguments,
    settings: &ConversionSettings,
) -> anyhow::Result<ExitCode> {
    let mut summary = CompressSummary::default();
    let mut input = OpenCapture::open(&arguments.input)?;
    let mut packets = PacketSource::new(arguments)?;
    let mut link = LinkCompression {
        ends: LinkEnds::new(arguments, settings),
        output: CaptureOutput::create(&arguments.output, settings.framing)?,
        clock: RecordClock::default(),
        rohc: Vec::new(),
        back: Vec::new(),
    };
    while let Some(record) = input.reader.next_record() {
        summary.records += 1;
        match record {
            Ok(record) => match packets.of(&record) {
                Ok((side, packet)) => link.carry(&record, side, packet, &mut summary)?,
                Err(reason) => {
                    summary.skipped.add(reason, record.number);
                }
            },
            Err(error) => unreadable(&input.name, error, &mut summary.skipped)?,
        }
    }
    link.output.finish()?;
    summary.unwrapped = packets.unwrapped();
    finished(arguments, settings, &summary)
}

/// A link that writes each packet as it is compressed.
struct LinkCompression {
    ends: LinkEnds,
    output: CaptureOutput,
    clock: RecordClock,
    rohc: Vec<u8>,
    back: Vec<u8>,
}

impl LinkCompression {
    /// Transfers a packet to the other side, and its feedback back.
    fn carry(
        &mut self,
        record: &Record<'_>,
        side: CaptureSide,
        packet: &[u8],
        summary: &mut CompressSummary,
    ) -> anyhow::Result<()> {
        let now = self.clock.at(record.time);
        self.rohc.resize(packet.len() + ROOM, 0);
        self.back.resize(packet.len() + ROOM, 0);
        let (sender, receiver) = self.ends.from(side);
        let compressed = match sender.send(now, packet, &mut self.rohc) {
            Ok(sent) => sent,
            Err(error) => {
                summary.skipped.add(refusal(error), record.number);
                return Ok(());
            }
        };
        summary.count(packet, &compressed);
        let rohc = self.rohc.get(..compressed.len).unwrap_or_default();
        self.output.write_from(side, record.time, rohc)?;
        match receiver.receive(now, rohc, &mut self.back) {
            Ok(done) if self.back.get(..done.len) == Some(packet) => {}
            Ok(_) => {
                summary.mismatches.add("differs", record.number);
            }
            Err(error) => {
                summary.mismatches.add(error.name(), record.number);
            }
        }
        let mut element = [0; MAX_ELEMENT];
        while let Some(len) = receiver.poll_feedback(&mut element) {
            let feedback = element.get(..len).unwrap_or_default();
            summary.count_feedback(len);
            // Feedback arrives after the packet that causes it.
            let after = Timestamp::from_nanos(record.time.as_nanos().saturating_add(1));
            self.output.write_from(side.other(), after, feedback)?;
            for data in packet::parts(feedback).into_iter().flat_map(|parts| parts.feedback) {
                summary.feedback.receive(record.number, sender.compressor.receive_feedback(now, data));
            }
        }
        Ok(())
    }
}

pub(super) fn decompress(
    arguments: &ConversionArguments,
    settings: &ConversionSettings,
    summary: &mut DecompressSummary,
) -> anyhow::Result<()> {
    let mut input = OpenCapture::open(&arguments.input)?;
    let mut link = LinkDecompression {
        ends: LinkEnds::new(arguments, settings),
        output: CaptureOutput::create(&arguments.output, RecordFraming::Ip)?,
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
    link.output.finish()
}

/// A link whose frames are decompressed in the order of the file.
struct LinkDecompression {
    ends: LinkEnds,
    output: CaptureOutput,
    clock: RecordClock,
    back: Vec<u8>,
}

impl LinkDecompression {
    fn receive(&mut self, record: &Record<'_>, summary: &mut DecompressSummary) -> anyhow::Result<()> {
        let found = packet_of(record).and_then(|rohc| Ok((side_of(record.data).ok_or(NO_DIRECTION)?, rohc)));
        let (side, rohc) = match found {
            Ok(found) => found,
            Err(reason) => {
                summary.skipped.add(reason, record.number);
                return Ok(());
            }
        };
        summary.packets += 1;
        summary.octets_in += rohc.len() as u64;
        if let Ok(parts) = packet::parts(rohc) {
            summary.feedback_in_front += parts.feedback.count() as u64;
        }
        let now = self.clock.at(record.time);
        self.back.resize(rohc.len() + REBUILT_ROOM, 0);
        let (sender, receiver) = self.ends.from(side);
        match receiver.receive(now, rohc, &mut self.back) {
            Ok(done) if done.len > MAX_WRITTEN_LEN => {
                summary.not_delivered.add("too_long", record.number);
            }
            Ok(done) => {
                sender.observe(receiver);
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
        // The file contains the feedback of the ends already.
        while receiver.poll_feedback(&mut [0; MAX_ELEMENT]).is_some() {}
        Ok(())
    }
}
