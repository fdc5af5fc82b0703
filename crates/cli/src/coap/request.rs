//! `thinair coap get|put|post|delete|fetch|patch|ipatch|observe|discover`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thinair_coap::{Code, Uri};

use super::names;
use super::options::RequestOptions;
use crate::values::time;

pub(super) const EXIT_STATUS: &str = "\
The payload, and nothing else, goes to standard output. On a terminal, JSON is indented, CBOR is in diagnostic notation, and a list of links is a table.\n\n\
Examples:\n  \
thinair coap get coap://[2001:db8::1]/sensors/temp --accept json\n  \
thinair coap put coap+tcp://example.net/firmware --file image.bin --timing\n  \
thinair coap get coap://nb-iot.example/state --ack-timeout 10s\n  \
thinair coap observe coap://example.net/time --count 5\n  \
thinair coap get coaps://example.net/time --psk-file phone.psk\n\n\
Exit status: 0 for a success response (2.xx); 1 for an error response (4.xx, 5.xx) or none; 2 for wrong arguments.";

#[derive(Args, Clone, Debug)]
pub(crate) struct RequestArguments {
    // Not a documentation comment, in which brackets would be links.
    #[arg(value_name = "URI", value_parser = uri, help = "URI of the resource: coap://HOST[:PORT]/PATH?QUERY; also coaps:// and coap+tcp://",
        long_help = "URI of the resource: coap://HOST[:PORT]/PATH?QUERY, coaps://... in DTLS, or coap+tcp://... over TCP. HOST is a name, an IPv4 address, or an IPv6 address in \
        brackets, such as [fe80::1%eth0]")]
    pub(super) uri: Uri,
    #[command(flatten)]
    pub(super) options: RequestOptions,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Get {
    #[command(flatten)]
    request: RequestArguments,
    #[arg(value_name = "URI", value_parser = uri, help = "Further resources, requested in this order, from the same UDP port")]
    further: Vec<Uri>,
    #[command(flatten)]
    repetition: Repetition,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WithBody {
    #[command(flatten)]
    request: RequestArguments,
    #[command(flatten)]
    repetition: Repetition,
    /// Payload to send, as text
    #[arg(long, short, value_name = "TEXT", conflicts_with = "file", help_heading = "Request")]
    payload: Option<String>,
    /// Send the content of a file; `-` is standard input
    #[arg(long, short, value_name = "FILE", help_heading = "Request")]
    file: Option<PathBuf>,
    /// Content-Format of the payload, a number or name such as json or application/cbor
    #[arg(long, value_name = "FORMAT", value_parser = names::format_number, help_heading = "Request")]
    format: Option<u16>,
}

#[derive(Args, Clone, Debug)]
pub(super) struct Repetition {
    /// Send the request N times, one after the other, from the same UDP port [default: 1]
    #[arg(long = "repeat", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Transmission")]
    count: Option<u64>,
    /// Time from one repetition to the next; 0 or a late response: at once [default: 0]
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = time, requires = "count", help_heading = "Transmission")]
    every: Option<Duration>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Observe {
    #[command(flatten)]
    request: RequestArguments,
    /// Stop after this number of notifications, including the first response
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Observation")]
    count: Option<u64>,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = time, help_heading = "Observation")]
    duration: Option<Duration>,
}

fn uri(text: &str) -> Result<Uri, String> {
    text.parse().map_err(|error: thinair_coap::uri::UriError| error.to_string())
}

pub(super) fn run(method: Code, arguments: &RequestArguments) -> anyhow::Result<ExitCode> {
    run_one(&Ask::new(method, arguments))
}

pub(super) fn get(arguments: &Get) -> anyhow::Result<ExitCode> {
    let Get { request, further, repetition } = arguments;
    let further = further.iter().map(|uri| RequestArguments { uri: uri.clone(), ..request.clone() });
    let all: Vec<_> = std::iter::once(request.clone()).chain(further).collect();
    run_all(all.iter().map(|arguments| Ask::new(Code::GET, arguments)).collect(), repetition)
}

pub(super) fn run_with_body(method: Code, arguments: &WithBody) -> anyhow::Result<ExitCode> {
    let payload = arguments.payload()?;
    let content_format = arguments.format;
    let asked = Ask { payload, content_format, ..Ask::new(method, &arguments.request) };
    run_all(vec![asked], &arguments.repetition)
}

pub(super) fn observe(arguments: &Observe) -> anyhow::Result<ExitCode> {
    let observe = Some((arguments.count, arguments.duration));
    run_one(&Ask { observe, ..Ask::new(Code::GET, &arguments.request) })
}

/// A request with its arguments.
pub(super) struct Ask<'a> {
    pub(super) method: Code,
    pub(super) arguments: &'a RequestArguments,
    pub(super) payload: Vec<u8>,
    pub(super) content_format: Option<u16>,
    /// For an observation: maximum number of notifications and maximum duration.
    pub(super) observe: Option<(Option<u64>, Option<Duration>)>,
    /// True if it is one of several requests.
    pub(super) in_series: bool,
}

impl<'a> Ask<'a> {
    pub(super) const fn new(method: Code, arguments: &'a RequestArguments) -> Self {
        Self { method, arguments, payload: Vec::new(), content_format: None, observe: None, in_series: false }
    }
}

impl WithBody {
    fn payload(&self) -> anyhow::Result<Vec<u8>> {
        use crate::usage::Usage;
        use std::io::Read as _;
        let Some(file) = &self.file else {
            return Ok(self.payload.clone().unwrap_or_default().into_bytes());
        };
        let mut octets = Vec::new();
        let read = match crate::values::is_stdio(file) {
            true => std::io::stdin().lock().read_to_end(&mut octets).map(|_| ()),
            false => std::fs::read(file).map(|read| octets = read),
        };
        read.map_err(|why| Usage::error(format!("cannot read {}: {why}", file.display())))?;
        Ok(octets)
    }
}

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(super) use linux::discover;
#[cfg(target_os = "linux")]
use linux::{run_all, run_one};

#[cfg(not(target_os = "linux"))]
fn run_one(_: &Ask<'_>) -> anyhow::Result<ExitCode> {
    anyhow::bail!("CoAP requests need Linux")
}

#[cfg(not(target_os = "linux"))]
fn run_all(_: Vec<Ask<'_>>, _: &Repetition) -> anyhow::Result<ExitCode> {
    anyhow::bail!("CoAP requests need Linux")
}

#[cfg(not(target_os = "linux"))]
pub(super) fn discover(_: &RequestArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("CoAP requests need Linux")
}
