//! Files of the conversions: input captures, output captures, and feedback between them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thinair_analyze::CaptureSide;
use thinair_capture::{ETHERTYPE_ROHC, LinkType, MAX_WRITTEN_LEN, Timestamp, Writer};
use thinair_rohc::feedback::MAX_ELEMENT;
use thinair_rohc::{Compressor, Decompressor, Instant, packet};

use super::summary::FeedbackCounts;
use crate::records::{OpenCapture, name, unreadable};
use crate::values::is_stdio;
use crate::whole;

/// Maximum size of a packet, in octets: that of a written record, with room for a larger header.
pub(super) const MAX_PACKET_LEN: usize = MAX_WRITTEN_LEN - 1_024;

/// Octets by which decompression may enlarge a header: more than a context can hold.
pub(super) const REBUILT_ROOM: usize = 65_536;

/// True if two paths refer to the same regular file, which may not exist yet.
pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    if is_stdio(a) || is_stdio(b) {
        return false;
    }
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        // Writing to a device or pipe that is also read truncates nothing.
        if !a.is_file() || !b.is_file() {
            return false;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    matches!((resolved(a), resolved(b)), (Ok(a), Ok(b)) if a == b)
}

/// Resolves links in a path; for a file that does not exist, in its folder.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|error| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let name = path.file_name().ok_or(error)?;
        Ok(folder.unwrap_or(Path::new(".")).canonicalize()?.join(name))
    })
}

/// Content of the records in an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordFraming {
    /// IP packets, link type RAW.
    Ip,
    /// ROHC packets, link type USER0.
    Rohc,
    /// Ethernet frames of type 0x22F1.
    RohcInEthernet,
}

/// A capture that is being written.
///
/// A file that cannot be written to its end is removed.
pub(super) struct CaptureOutput {
    name: String,
    /// `None` for standard output.
    path: Option<PathBuf>,
    writer: Writer<BufWriter<Box<dyn Write>>>,
    framing: RecordFraming,
}

impl CaptureOutput {
    pub(super) fn create(path: &Path, framing: RecordFraming) -> anyhow::Result<Self> {
        let name = name(path, "standard output");
        let write: Box<dyn Write> = if is_stdio(path) {
            Box::new(io::stdout())
        } else {
            Box::new(File::create(path).with_context(|| format!("cannot create {name}"))?)
        };
        let link_type = match framing {
            RecordFraming::Ip => LinkType::RAW,
            RecordFraming::Rohc => LinkType::USER0,
            RecordFraming::RohcInEthernet => LinkType::ETHERNET,
        };
        let writer = Writer::new(BufWriter::new(write), link_type);
        let writer = writer.with_context(|| format!("cannot write {name}"))?;
        Ok(Self { name, path: (!is_stdio(path)).then(|| path.to_owned()), writer, framing })
    }

    pub(super) fn write(&mut self, time: Timestamp, packet: &[u8]) -> anyhow::Result<()> {
        match self.framing {
            RecordFraming::Ip | RecordFraming::Rohc => self.writer.write(time, packet),
            RecordFraming::RohcInEthernet => self.writer.write_ethernet(time, ETHERTYPE_ROHC, packet),
        }
        .or_else(|error| self.failed(error))
    }

    /// Removes the file that is not whole.
    fn failed(&self, error: io::Error) -> anyhow::Result<()> {
        self.path.as_deref().into_iter().for_each(whole::remove_half);
        Err(error).with_context(|| format!("cannot write {}", self.name))
    }

    /// Writes an Ethernet frame whose addresses encode the side that sent it.
    pub(super) fn write_from(
        &mut self,
        side: CaptureSide,
        time: Timestamp,
        packet: &[u8],
    ) -> anyhow::Result<()> {
        let addresses = [address(side.other()), address(side)].concat();
        let frame = [&addresses, &ETHERTYPE_ROHC.to_be_bytes()[..], packet].concat();
        self.writer.write(time, &frame).or_else(|error| self.failed(error))
    }

    /// Flushes the file. Must be called: dropping ignores errors.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.writer.flush().or_else(|error| self.failed(error))
    }
}

/// Ethernet address of a side of a link, locally administered: `02:00:00:00:00:0a` or `...:0b`.
fn address(side: CaptureSide) -> [u8; 6] {
    let last = match side {
        CaptureSide::A => 0x0A,
        CaptureSide::B => 0x0B,
    };
    [0x02, 0, 0, 0, 0, last]
}

/// Returns the sender's side of a frame written by [`CaptureOutput::write_from`].
pub(super) fn side_of(frame: &[u8]) -> Option<CaptureSide> {
    let source = frame.get(6..12)?;
    [CaptureSide::A, CaptureSide::B].into_iter().find(|side| address(*side) == source)
}

/// Feedback for the compressor, read from a file.
pub(super) struct FeedbackInput {
    input: OpenCapture<'static>,
    next: Option<PendingFeedback>,
}

/// A feedback record that is not due yet.
struct PendingFeedback {
    record: u64,
    time: Timestamp,
    packet: Vec<u8>,
}

impl FeedbackInput {
    pub(super) fn open(path: &Path, counts: &mut FeedbackCounts) -> anyhow::Result<Self> {
        let mut feedback = Self { input: OpenCapture::open(path)?, next: None };
        feedback.advance(counts)?;
        Ok(feedback)
    }

    /// Delivers all feedback that arrives at or before `time`.
    pub(super) fn deliver(
        &mut self,
        time: Timestamp,
        now: Instant,
        compressor: &mut Compressor<'_>,
        counts: &mut FeedbackCounts,
    ) -> anyhow::Result<()> {
        while let Some(waiting) = self.next.take_if(|waiting| waiting.time <= time) {
            match packet::parts(&waiting.packet) {
                Ok(parts) => {
                    if parts.body != packet::PacketBody::Empty {
                        counts.refused.add("followed_by_a_packet", waiting.record);
                    }
                    for element in parts.feedback {
                        counts.receive(waiting.record, compressor.receive_feedback(now, element));
                    }
                }
                Err(_) => {
                    counts.refused.add("bad_packet", waiting.record);
                }
            }
            self.advance(counts)?;
        }
        Ok(())
    }

    /// Counts feedback that arrives after the last packet.
    pub(super) fn finish(mut self, counts: &mut FeedbackCounts) -> anyhow::Result<()> {
        while let Some(waiting) = self.next.take() {
            counts.refused.add("too_late", waiting.record);
            self.advance(counts)?;
        }
        Ok(())
    }

    fn advance(&mut self, counts: &mut FeedbackCounts) -> anyhow::Result<()> {
        while let Some(record) = self.input.reader.next_record() {
            match record {
                Ok(record) => match record.rohc_packet() {
                    Ok(rohc) => {
                        let packet = rohc.packet.to_vec();
                        self.next =
                            Some(PendingFeedback { record: record.number, time: record.time, packet });
                        return Ok(());
                    }
                    Err(skip) => {
                        counts.refused.add(skip.name(), record.number);
                    }
                },
                Err(error) => unreadable(&self.input.name, error, &mut counts.refused)?,
            }
        }
        Ok(())
    }
}

/// Drains the feedback of a decompressor to a file and to a compressor, if given.
pub(super) fn drain_feedback(
    decompressor: &mut Decompressor<'_>,
    (record, time, now): (u64, Timestamp, Instant),
    mut file: Option<&mut CaptureOutput>,
    mut compressor: Option<&mut Compressor<'_>>,
    counts: &mut FeedbackCounts,
) -> anyhow::Result<()> {
    let mut element = [0; MAX_ELEMENT];
    while let Some(len) = decompressor.poll_feedback(&mut element) {
        let whole = element.get(..len).unwrap_or_default();
        counts.made += 1;
        counts.octets_made += len as u64;
        if let Some(file) = file.as_deref_mut() {
            // Feedback cannot arrive before the packet that causes it; with an equal time, it would when the
            // file is read.
            let after = Timestamp::from_nanos(time.as_nanos().saturating_add(1));
            file.write(after, whole)?;
        }
        let (Some(compressor), Ok(parts)) = (compressor.as_deref_mut(), packet::parts(whole)) else {
            continue;
        };
        for data in parts.feedback {
            counts.receive(record, compressor.receive_feedback(now, data));
        }
    }
    Ok(())
}
