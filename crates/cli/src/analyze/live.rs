//! `thinair analyze --interface`: captures on an interface into a file, with a table that refreshes, and
//! analyzes the file at the end.
//!
//! The table shows ROHC only: SCHC and 6LoWPAN need rules and prefixes from a first reading of the whole
//! capture.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::values::time;

/// Maximum size of a capture, in octets: 256 MiB. A link of 1 Mbit/s fills it in 35 minutes.
#[cfg(all(feature = "live", target_os = "linux"))]
const MOST_OCTETS: u64 = 256 * 1024 * 1024;

#[derive(Args, Debug)]
pub(crate) struct LiveOptions {
    /// Capture on this interface instead of reading files
    ///
    /// Stops at Ctrl-C, or after the time of --for. Needs the capability CAP_NET_RAW, which root has.
    /// Captures at most 256 MiB, into a temporary file unless --write names one. Linux only.
    #[arg(long, value_name = "NAME", conflicts_with = "files", help_heading = "Live capture")]
    pub(super) interface: Option<String>,
    /// Stop the capture after this time, such as 60s or 5min
    // `requires` alone is met by a file, which excludes an interface.
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = time,
        requires = "interface",
        conflicts_with = "files",
        help_heading = "Live capture"
    )]
    duration: Option<Duration>,
    /// Keep the capture in a pcap file
    #[arg(
        long,
        hide_short_help = true,
        value_name = "FILE",
        requires = "interface",
        conflicts_with = "files",
        help_heading = "Live capture"
    )]
    write: Option<PathBuf>,
}

impl LiveOptions {
    /// File of `--write`, if the option is given.
    pub(super) fn written(&self) -> &[PathBuf] {
        self.write.as_slice()
    }
}

/// A finished capture.
pub(super) struct LiveCapture {
    pub(super) file: File,
    /// Number of frames that the system dropped.
    pub(super) dropped: u64,
    pub(super) duration: Duration,
}

#[cfg(all(feature = "live", target_os = "linux"))]
pub(super) use self::linux::capture;

/// Captures on an interface.
#[cfg(not(all(feature = "live", target_os = "linux")))]
pub(super) fn capture(
    _: &LiveOptions,
    _: &str,
    _: &thinair_analyze::Settings,
) -> anyhow::Result<LiveCapture> {
    anyhow::bail!(
        "--interface needs Linux, and a build with the feature `live`; capture with tcpdump instead, and analyze the file"
    )
}

#[cfg(all(feature = "live", target_os = "linux"))]
mod linux {
    use std::io::{BufWriter, Seek as _, Write as _};

    use anyhow::{Context as _, anyhow};
    use indicatif::{ProgressBar, ProgressStyle};
    use thinair_analyze::{Analysis, Live, Settings, Survey};
    use thinair_capture::{LinkType, MAX_WRITTEN_LEN, Record, Timestamp, Writer};
    use thinair_os::capture::{FrameCapture, LinkHeader};
    use thinair_os::clock::now;
    use thinair_os::{EventLoop, Interface, Signal, Signals};
    use thinair_wire::time::Instant;

    use super::{Duration, File, LiveCapture, LiveOptions, MOST_OCTETS};
    use crate::analyze::source::temporary_file;
    use crate::analyze::words::{self, counted};

    /// Interval of table updates.
    const REFRESH: Duration = Duration::from_millis(500);

    /// Frames to read between two checks of the clock and of signals.
    const AT_ONCE: usize = 1_024;

    const SIGNALS: u64 = 0;
    const FRAMES: u64 = 1;

    /// Captures on an interface, and shows a table of the schemes of `settings`.
    pub(in crate::analyze) fn capture(
        options: &LiveOptions,
        name: &str,
        settings: &Settings,
    ) -> anyhow::Result<LiveCapture> {
        let interface = named(name)?;
        // Opened before the file is created: without the permission to capture, no file is left behind.
        let mut capture = opened(&interface)?;
        // Before the progress bar starts a thread.
        let signals = Signals::take()?;
        let mut events = EventLoop::new(Duration::ZERO)?;
        events.add(&signals, SIGNALS)?;
        events.add(&capture, FRAMES)?;
        let mut kept = Kept::create(options, capture.header())?;
        let mut table = LiveTable::new(name, settings);
        eprintln!("thinair: capturing on {name}; Ctrl-C ends it");
        let start = now();
        let end = options.duration.map(|duration| start + duration);
        let (mut refresh, mut ready) = (start, Vec::new());
        let why = loop {
            let time = now();
            if end.is_some_and(|end| time >= end) {
                break "";
            }
            if time >= refresh {
                table.show(time.since(start), options.duration, capture.dropped()?);
                refresh = time + REFRESH;
            }
            events.wait(Some(end.map_or(refresh, |end: Instant| end.min(refresh))), &mut ready)?;
            if ready.contains(&SIGNALS) && matches!(signals.poll(), Some(Signal::End { .. })) {
                break "";
            }
            if ready.contains(&FRAMES) && !kept.take(&mut capture, &mut table)? {
                break "; ended, as no more than 256 MiB are captured";
            }
        };
        // Frames in the socket buffer were received before the end.
        kept.take(&mut capture, &mut table)?;
        let duration = now().since(start);
        let seconds = duration.as_secs_f64();
        let dropped = capture.dropped()?;
        table.clear();
        eprintln!(
            "thinair: {name}: {} captured in {seconds:.1} s, {} dropped by the kernel{why}",
            counted(kept.frames, "frame"),
            counted(dropped, "frame"),
        );
        if let Some(path) = &options.write {
            eprintln!("thinair: wrote {}", path.display());
        }
        Ok(LiveCapture { file: kept.finish()?, dropped, duration })
    }

    fn named(name: &str) -> anyhow::Result<Interface> {
        Interface::named(name).map_err(|error| match Interface::names() {
            Ok(names) => anyhow!("no interface `{name}`; the interfaces are {}", names.join(", ")),
            Err(_) => error.into(),
        })
    }

    fn opened(interface: &Interface) -> anyhow::Result<FrameCapture> {
        FrameCapture::open(interface).map_err(|error| {
            if error.is_permission() {
                let name = interface.name();
                return anyhow!(
                    "cannot capture on `{name}`: this needs the capability CAP_NET_RAW; run the command as root, for example with \
                     sudo, or add the capability to its file with `setcap cap_net_raw+ep`"
                );
            }
            error.into()
        })
    }

    /// The capture file.
    struct Kept {
        writer: Writer<BufWriter<File>>,
        link_type: LinkType,
        frames: u64,
        octets: u64,
    }

    impl Kept {
        fn create(options: &LiveOptions, header: LinkHeader) -> anyhow::Result<Self> {
            let file = match &options.write {
                Some(path) => File::options().read(true).write(true).create(true).truncate(true).open(path),
                None => temporary_file(),
            };
            let file = file.with_context(|| match &options.write {
                Some(path) => format!("cannot create {}", path.display()),
                None => "cannot create a temporary file".to_owned(),
            })?;
            let link_type = match header {
                LinkHeader::Ethernet => LinkType::ETHERNET,
                LinkHeader::Ip => LinkType::RAW,
                LinkHeader::Radiotap => LinkType::IEEE802_11_RADIOTAP,
                LinkHeader::Ieee802154 => LinkType::IEEE802_15_4_WITHFCS,
                LinkHeader::Cooked => LinkType::LINUX_SLL,
            };
            let writer = Writer::new(BufWriter::new(file), link_type)?;
            Ok(Self { writer, link_type, frames: 0, octets: 0 })
        }

        /// Writes pending frames to the file. Returns false if the file is full.
        fn take(&mut self, capture: &mut FrameCapture, table: &mut LiveTable) -> anyhow::Result<bool> {
            for _ in 0..AT_ONCE {
                let Some(frame) = capture.next_frame()? else { return Ok(true) };
                if self.octets + frame.octets.len() as u64 > MOST_OCTETS {
                    return Ok(false);
                }
                // pcap files hold no longer frames, and a truncated frame has no packet that can be
                // compressed.
                if frame.original_len > MAX_WRITTEN_LEN || frame.original_len > frame.octets.len() {
                    continue;
                }
                self.frames += 1;
                self.octets += frame.octets.len() as u64;
                let time = Timestamp::from_nanos(u64::try_from(frame.time.as_nanos()).unwrap_or(u64::MAX));
                self.writer.write(time, frame.octets).context("cannot write the capture")?;
                table.observe(&Record {
                    number: self.frames,
                    time,
                    link_type: self.link_type,
                    data: frame.octets,
                    original_len: u32::try_from(frame.original_len).unwrap_or(u32::MAX),
                });
            }
            Ok(true)
        }

        fn finish(self) -> anyhow::Result<File> {
            let file = self.writer.into_inner().into_inner();
            let mut file = file.map_err(|error| error.into_error()).context("cannot write the capture")?;
            file.flush()?;
            file.rewind()?;
            Ok(file)
        }
    }

    /// The table on the terminal, if there is one.
    struct LiveTable {
        name: String,
        bar: ProgressBar,
        analysis: Analysis,
        live: Live,
    }

    impl LiveTable {
        fn new(name: &str, settings: &Settings) -> Self {
            let mut settings = Settings { damage_one: false, most_flows: 0, ..settings.clone() };
            let bar = ProgressBar::new_spinner();
            // Without a terminal the table is invisible; the analysis at the end does all the work.
            settings.schemes.retain(|_| !bar.is_hidden());
            let mut analysis = Analysis::new(settings, Survey::default());
            let live = analysis.begin(name);
            let bar = match ProgressStyle::with_template("{msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            };
            Self { name: name.to_owned(), bar, analysis, live }
        }

        fn observe(&mut self, record: &Record<'_>) {
            if !self.bar.is_hidden() {
                self.analysis.observe(&mut self.live, record);
            }
        }

        fn show(&self, time: Duration, of: Option<Duration>, dropped: u64) {
            if self.bar.is_hidden() {
                return;
            }
            let totals = self.analysis.totals();
            let of = of.map_or_else(String::new, |of| format!(" of {} s", of.as_secs_f64()));
            let mut text = format!(
                "{}: {} s{of}; {}, {} with IP, {}, {} dropped by the kernel",
                self.name,
                time.as_secs(),
                counted(self.live.input().packets, "frame"),
                counted(totals.packets, "packet"),
                counted(totals.traffic.bytes_in, "octet"),
                counted(dropped, "frame"),
            );
            let names: Vec<_> = totals.schemes.iter().map(words::name).collect();
            let width = names.iter().map(String::len).max().unwrap_or(0);
            for (scheme, name) in totals.schemes.iter().zip(names) {
                let octets = counted(scheme.bytes_out, "octet");
                text +=
                    &format!("\n  {name:width$} {octets:>20} {:>6.1} % saved", scheme.saved_ratio * 100.0);
            }
            // Redraws the table.
            self.bar.set_message(text);
        }

        fn clear(&self) {
            self.bar.finish_and_clear();
        }
    }
}
