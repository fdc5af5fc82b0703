//! `thinair-lab fetch`.

#[cfg(target_os = "linux")]
mod coap;
#[cfg(target_os = "linux")]
mod http;
#[cfg(all(target_os = "linux", feature = "http3"))]
mod http3;
#[cfg(target_os = "linux")]
mod output;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::service::ServiceName;
use thinair_cli::values::time;

const AFTER_HELP: &str = "\
Standard output gets the object and nothing else; with --json one JSON object (thinair.fetch/1): status as a number, octets of \
the object, seconds from the first packet to its last octet, and the object, unless there is --output.\n\n\
Fast Open needs `sysctl net.ipv4.tcp_fastopen=3` at both ends, and sends the first request to a server as any other, to get \
a cookie; 0x207 does without cookies.\n\n\
Examples:\n  \
thinair-lab fetch --service coap coap://[2001:db8::1]/sensors/temp\n  \
thinair-lab fetch --service iot-http http://10.9.0.2:8080/10 --json\n  \
thinair-lab fetch --service http http://example.net/index.html --output index.html\n  \
thinair-lab fetch --service http3 https://127.0.0.1:8080/10 --trust-certificate server.pem\n\n\
Exit status: 0 for an object; 1 for a response without one, or none; 2 for wrong arguments.";

#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct FetchArguments {
    /// Protocol: coap, coap-tcp, http, iot-http, iot-spdy or http3
    #[arg(long, value_name = "NAME")]
    service: ServiceName,
    // No documentation comment: brackets would be links.
    #[arg(
        value_name = "URL",
        help = "coap://HOST[:PORT]/PATH, http://... or, for http3, https://...",
        long_help = "coap://HOST[:PORT]/PATH for coap and coap-tcp, https://HOST[:PORT]/PATH for http3, http://HOST[:PORT]/PATH for \
        all others. HOST is a name, an IPv4 address, or an IPv6 address in brackets"
    )]
    url: String,
    /// Write the object to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON (thinair.fetch/1): status, octets, seconds
    #[arg(long)]
    json: bool,
    /// Time limit of the whole command, as in 500ms or 2min
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    timeout: Duration,
    /// Maximum size of the object, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 1 << 26, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    max_body: u32,
    /// End of the TCP connection, for http, iot-http and iot-spdy
    #[arg(long, hide_short_help = true, value_name = "HOW", default_value = "response")]
    close: CloseArgument,
    /// Acknowledge the SYN-ACK of Fast Open with a packet of its own, as Linux does by default, not with the next data
    #[arg(long, hide_short_help = true)]
    quick_ack: bool,
    /// Trusted certificates in PEM, for http3, which trusts no others
    ///
    /// That of the server, or of certificate authorities, as in /etc/ssl/certs/ca-certificates.crt.
    #[arg(long, value_name = "FILE")]
    trust_certificate: Option<PathBuf>,
    /// With http3, fetch twice, and report the second time, on a resumed session (0-RTT)
    #[arg(long, hide_short_help = true)]
    resume: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CloseArgument {
    /// By FIN, when the response is there
    Response,
    /// By FIN at the end of the request, so that the server knows that nothing follows
    Request,
    /// By RST, when the response is there: a packet less
    Reset,
}

/// Not available on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("fetch requires Linux")
}

/// Fetches the object.
#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    let is_of_http3 = arguments.trust_certificate.is_some() || arguments.resume;
    match (arguments.service, arguments.service.http()) {
        (ServiceName::Http3, _) => http3(arguments),
        _ if is_of_http3 => Err(thinair_cli::usage::Usage::error(
            "--trust-certificate and --resume are for http3; nothing else here is encrypted",
        )),
        (_, Some(protocol)) => http::run(arguments, protocol),
        (_, None) => coap::run(arguments),
    }
}

#[cfg(all(target_os = "linux", feature = "http3"))]
fn http3(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    http3::run(arguments)
}

#[cfg(all(target_os = "linux", not(feature = "http3")))]
fn http3(_arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    Err(crate::service::without_http3())
}
