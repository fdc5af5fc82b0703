//! Log of all packets, and captures of the packets that the link delivered.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thinair_capture::{ETHERTYPE_ROHC, LinkType, RecordFile, Timestamp, Writer};
use thinair_emulator::Passage;
use thinair_wire::time::Instant;

use super::run::RunArguments;

const HEADER: &str =
    "number,from,in_ns,start_ns,tx_ns,out_ns,late_ns,ip_octets,link_octets,frames,frame_octets,fate,reason";

type CaptureFile = Writer<RecordFile>;

/// Output files of a run.
pub(super) struct RunRecord {
    /// Origin of the times in the log.
    origin: Instant,
    /// Time of the origin in nanoseconds since 1970.
    epoch: u64,
    log: Option<RecordFile>,
    captures: Captures,
    /// Capture of the IP packets delivered to the hosts.
    delivered: Option<CaptureFile>,
}

enum Captures {
    None,
    /// IP packets of both directions.
    Ip(CaptureFile),
    /// ROHC packets of each direction.
    Rohc([CaptureFile; 2]),
}

impl RunRecord {
    pub(super) fn create(arguments: &RunArguments, origin: Instant, epoch: u64) -> anyhow::Result<Self> {
        let mut log = arguments.log.as_deref().map(create).transpose()?;
        if let (Some(log), Some(path)) = (&mut log, &arguments.log) {
            writeln!(log, "{HEADER}")
                .and_then(|()| log.end_record())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let captures = match &arguments.pcap {
            None => Captures::None,
            Some(path) if arguments.rohc => {
                let capture = |direction| capture(&of_direction(path, direction), LinkType::ETHERNET);
                Captures::Rohc([capture("ab")?, capture("ba")?])
            }
            Some(path) => Captures::Ip(capture(path, LinkType::RAW)?),
        };
        let delivered = arguments.ip_pcap.as_deref().map(|path| capture(path, LinkType::RAW)).transpose()?;
        Ok(Self { origin, epoch, log, captures, delivered })
    }

    pub(super) fn add(&mut self, passage: &Passage, late: Option<u64>) -> io::Result<()> {
        if let Some(log) = &mut self.log {
            let since = |time: Instant| time.nanos_since(self.origin);
            let some = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let times = passage.times;
            let (fate, reason) = passage.fate.name();
            writeln!(
                log,
                "{},{:?},{},{},{},{},{},{},{},{},{},{fate},{reason}",
                passage.number,
                passage.from,
                since(passage.entered),
                some(times.map(|times| since(times.start))),
                some(times.map(|times| since(times.sent))),
                some(times.map(|times| since(times.arrival))),
                some(late),
                passage.ip_octets,
                passage.carried_octets,
                passage.frames,
                passage.frame_octets,
            )?;
            log.end_record()?;
        }
        let Some(times) = passage.times else { return Ok(()) };
        let time = Timestamp::from_nanos(self.epoch.saturating_add(times.arrival.as_nanos()));
        if let Some(capture) = self.delivered.as_mut().filter(|_| !passage.delivered.is_empty()) {
            capture.write(time, &passage.delivered)?;
            capture.get_mut().end_record()?;
        }
        match &mut self.captures {
            Captures::None => Ok(()),
            Captures::Ip(capture) => {
                capture.write(time, &passage.carried)?;
                capture.get_mut().end_record()
            }
            Captures::Rohc(captures) => {
                let capture = &mut captures[passage.from as usize];
                capture.write_ethernet(time, ETHERTYPE_ROHC, &passage.carried)?;
                capture.get_mut().end_record()
            }
        }
    }

    /// Flushes all files. Must be called: dropping ignores errors.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let mut result = self.log.map_or(Ok(()), |mut log| log.flush());
        let captures: Vec<_> = match self.captures {
            Captures::None => Vec::new(),
            Captures::Ip(capture) => vec![capture],
            Captures::Rohc(captures) => captures.into(),
        };
        for mut capture in captures.into_iter().chain(self.delivered) {
            result = result.and(capture.flush());
        }
        result.context("cannot write the log or a capture")
    }
}

fn create(path: &Path) -> anyhow::Result<RecordFile> {
    RecordFile::create(path).with_context(|| format!("cannot create {}", path.display()))
}

fn capture(path: &Path, link_type: LinkType) -> anyhow::Result<CaptureFile> {
    let mut writer = Writer::new(create(path)?, link_type)?;
    writer.get_mut().end_record()?;
    Ok(writer)
}

/// Returns `link.ab.pcap` for `link.pcap`.
fn of_direction(path: &Path, direction: &str) -> PathBuf {
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    path.with_extension(
        extension.map_or(direction.to_owned(), |extension| format!("{direction}.{extension}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direction_stands_before_the_extension() {
        let name = |path: &str| of_direction(Path::new(path), "ab").display().to_string();
        assert_eq!(name("out/link.pcap"), "out/link.ab.pcap");
        assert_eq!(name("link"), "link.ab");
        assert_eq!(name("a.b/link"), "a.b/link.ab");
    }
}
