//! `thinair segment proxy`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thinair_segment::{NetworkProperties, Sizer};

use crate::usage::Usage;
use crate::values::listen;

/// Schema of the objects that `--json` prints.
#[cfg(target_os = "linux")]
const SCHEMA: &str = "thinair.segment.proxy/1";

const AFTER_HELP: &str = "\
Examples:\n  \
thinair segment proxy --listen 8080 --to 10.9.0.2:80 --constrained server\n  \
thinair segment proxy --listen [fd00::1]:5000 --to 127.0.0.1:5000 --constrained client --sizer fixed:168 --json\n\n\
Needs no privileges. Runs until SIGINT or SIGTERM. Open streams are then reset, and so is a stream when its other side \
fails, so that truncated data never looks complete.\n\n\
Exit status: 0 after such a signal; 1 for a failure; 2 for wrong arguments.";

#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ProxyArguments {
    /// Listening port on 127.0.0.1, or address and port
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen)]
    listen: SocketAddr,
    /// Destination of all streams: HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// Side of the constrained network: that of the clients, or of the server
    #[arg(long, value_name = "SIDE")]
    constrained: ConstrainedSide,
    /// Algorithm for segment sizes: fixed:OCTETS, dmss, tssa or adaptive
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    sizer: Sizer,
    /// Maximum size of a packet in one frame of the constrained network, in octets (tssa, adaptive)
    #[arg(long, value_name = "OCTETS", default_value_t = 106, value_parser = clap::value_parser!(u16).range(16..=2_048), help_heading = "Segments")]
    frame: u16,
    /// Octets of headers of a segment in the constrained network (adaptive)
    #[arg(long, value_name = "OCTETS", default_value_t = 52, value_parser = clap::value_parser!(u16).range(0..=200), help_heading = "Segments")]
    headers: u16,
    /// Minimum segment size; for dmss the smaller one
    #[arg(long, value_name = "OCTETS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Segments")]
    least: u16,
    /// Maximum segment size, limited by the MSS of a stream; for dmss the larger one
    #[arg(long, value_name = "OCTETS", default_value_t = 1_024, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Segments")]
    most: u16,
    /// Maximum number of concurrent streams; further ones wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    max_connections: u16,
    /// Interval of reports on open streams [default: only at their ends]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    every: Option<Duration>,
    /// Print one JSON line per report (thinair.segment.proxy/1)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ConstrainedSide {
    Client,
    Server,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds, 0.01 to 86400".to_owned())
}

impl ProxyArguments {
    /// Returns the size algorithm, with the given properties of the network.
    fn sizer(&self) -> Result<Sizer, String> {
        let &Self { frame, headers, least, most, .. } = self;
        if least > most {
            return Err(format!("--least {least} is more than --most {most}"));
        }
        Ok(NetworkProperties { frame, headers, least, most }.configure(&self.sizer))
    }
}

/// Fails: this system is not supported.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_arguments: &ProxyArguments) -> anyhow::Result<()> {
    anyhow::bail!("the proxy needs Linux")
}

/// Relays streams until a signal ends the process.
#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: &ProxyArguments) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::net::ToSocketAddrs as _;

    use anyhow::Context as _;
    use thinair_services::segment::{Constrained, Proxy, ProxySettings, StreamProgress};

    let sizer = arguments.sizer().map_err(Usage::error)?;
    let to = arguments.to.to_socket_addrs().map_err(|why| {
        Usage::error(format!("cannot resolve `{}`: {why}; expected HOST:PORT", arguments.to))
    })?;
    let to = to.into_iter().next().with_context(|| format!("`{}` has no address", arguments.to))?;
    let constrained = match arguments.constrained {
        ConstrainedSide::Client => Constrained::Client,
        ConstrainedSide::Server => Constrained::Server,
    };
    let mut proxy = Proxy::open(ProxySettings {
        listen: arguments.listen,
        to,
        constrained,
        sizer,
        max_connections: arguments.max_connections.into(),
        tell: arguments.every,
    })?;
    eprintln!("thinair: relaying streams from {} to {to}", proxy.address());
    let mut output = Ok(());
    proxy.run(&mut |progress: &StreamProgress<'_>| {
        let line = if arguments.json { json(progress).to_string() } else { words(progress) };
        let mut stdout = std::io::stdout().lock();
        let written = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        if output.is_ok() {
            output = written;
        }
    })?;
    match output {
        // The reader has closed the pipe.
        Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(why).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn words(progress: &thinair_services::segment::StreamProgress<'_>) -> String {
    use thinair_services::segment::Ending;
    let seconds = progress.age.as_secs_f64();
    let ending = match progress.ending {
        None => "open".to_owned(),
        Some(Ending::Complete) => "complete".to_owned(),
        Some(Ending::Failed(why)) => format!("failed: {why}"),
    };
    format!(
        "{} {}: {seconds:.1} s, {} octets in {} segments of {} to {}, now {}; {} sent again; {} octets back; {ending}",
        progress.number,
        progress.client,
        progress.octets,
        progress.segments,
        progress.sizes.0,
        progress.sizes.1,
        progress.size,
        progress.sent_again,
        progress.back,
    )
}

#[cfg(target_os = "linux")]
fn json(progress: &thinair_services::segment::StreamProgress<'_>) -> serde_json::Value {
    use thinair_services::segment::Ending;
    let (state, error) = match progress.ending {
        None => ("open", None),
        Some(Ending::Complete) => ("complete", None),
        Some(Ending::Failed(why)) => ("failed", Some(why.to_string())),
    };
    serde_json::json!({
        "schema": SCHEMA,
        "stream": progress.number,
        "client": progress.client.to_string(),
        "state": state,
        "error": error,
        "seconds": progress.age.as_secs_f64(),
        "size": progress.size,
        "least": progress.sizes.0,
        "most": progress.sizes.1,
        "segments": progress.segments,
        "octets": progress.octets,
        "acknowledged": progress.acknowledged,
        "sent_again": progress.sent_again,
        "octets_back": progress.back,
    })
}
