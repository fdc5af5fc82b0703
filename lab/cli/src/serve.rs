//! `thinair-lab serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::service::ServiceName;
use thinair_cli::usage::Usage;
use thinair_cli::values::time;

/// Default port of HTTP, which needs no privilege.
const HTTP_PORT: u16 = 8080;

const AFTER_HELP: &str = "\
Files are served by their paths, except those whose names begin with a dot; no path leads out of the folder. Responses have \
the object alone: no date, no type, no ETag. `thinair coap serve` sends those.\n\n\
Examples:\n  \
thinair-lab serve --service iot-http sensors\n  \
thinair-lab serve --service coap --bind 0.0.0.0:5683 sensors\n  \
thinair-lab serve --service http --bind [::]:8080 --keep 1min\n  \
thinair-lab serve --service http3 --save-certificate server.pem sensors\n\n\
It ends cleanly on SIGINT and SIGTERM.\n\n\
Exit status: 0 after a signal; 1 for a failure; 2 for wrong arguments.";

#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ServeArguments {
    /// Protocol: coap, coap-tcp, http, iot-http, iot-spdy or http3
    #[arg(long, value_name = "NAME")]
    service: ServiceName,
    /// Address and port to listen at, or a port of 127.0.0.1 [default: 5683 for CoAP, else 8080]
    ///
    /// Port 0 is any free port.
    #[arg(long, value_name = "ADDR:PORT", value_parser = thinair_cli::values::listen)]
    bind: Option<SocketAddr>,
    /// Folder to serve
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Certificate chain of the server in PEM, for http3
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "save_certificate")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate in PEM, for http3
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Make a certificate for http3, and write it to a file
    ///
    /// It is for the address and localhost, and for --trust-certificate of `thinair-lab fetch`. Its key is lost at the end.
    #[arg(long, value_name = "FILE")]
    save_certificate: Option<PathBuf>,
    /// Largest file that is served, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1_024..=1 << 28), help_heading = "Limits")]
    max_body: u32,
    /// Maximum number of connections; one more closes the one that is idle for longest (http3: is refused)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000), help_heading = "Limits")]
    max_connections: u16,
    /// Time that a TCP connection is kept for another request [default: 10s for http, else 0s]
    ///
    /// 0s closes it with the response. CoAP over TCP keeps connections as RFC 8323 has it.
    #[arg(long, value_name = "TIME", value_parser = keep, help_heading = "Limits")]
    keep: Option<Duration>,
    /// With coap, send long responses to addresses that are not verified, too
    ///
    /// Only for networks in which addresses cannot be forged. Without it, a client that is sent more than three times the
    /// octets of its request must echo a value first (RFC 9175), unless the server listens at a loopback address.
    #[arg(long, hide_short_help = true, help_heading = "Limits")]
    trust_addresses: bool,
    /// Print counters as JSON at the end (thinair.serve/1)
    #[arg(long)]
    json: bool,
}

fn keep(text: &str) -> Result<Duration, String> {
    if text == "0s" { Ok(Duration::ZERO) } else { time(text) }
}

impl ServeArguments {
    fn address(&self) -> SocketAddr {
        let port = match self.service {
            ServiceName::Coap | ServiceName::CoapTcp => thinair_coap::uri::PORT,
            ServiceName::Http | ServiceName::IotHttp | ServiceName::IotSpdy | ServiceName::Http3 => HTTP_PORT,
        };
        self.bind.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }
}

pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    serve(arguments)?;
    Ok(ExitCode::SUCCESS)
}

/// Not available on this system.
#[cfg(not(target_os = "linux"))]
fn serve(_arguments: &ServeArguments) -> anyhow::Result<()> {
    anyhow::bail!("serve requires Linux")
}

/// Serves until a signal.
#[cfg(target_os = "linux")]
fn serve(arguments: &ServeArguments) -> anyhow::Result<()> {
    if !arguments.folder.is_dir() {
        return Err(Usage::error(format!("`{}` is no folder", arguments.folder.display())));
    }
    if arguments.service != ServiceName::Http3
        && (arguments.certificate.is_some() || arguments.save_certificate.is_some())
    {
        return Err(Usage::error("certificates are for http3; nothing else here is encrypted"));
    }
    match (arguments.service, arguments.service.http()) {
        (ServiceName::Http3, _) => serve_http3(arguments),
        (_, Some(protocol)) => serve_http(arguments, protocol),
        (_, None) => serve_coap(arguments),
    }
}

#[cfg(all(target_os = "linux", not(feature = "http3")))]
fn serve_http3(_arguments: &ServeArguments) -> anyhow::Result<()> {
    Err(crate::service::without_http3())
}

#[cfg(all(target_os = "linux", feature = "http3"))]
fn serve_http3(arguments: &ServeArguments) -> anyhow::Result<()> {
    use anyhow::Context as _;
    use thinair_http::HttpLimits;
    use thinair_http_services::http3::{Http3Server, Http3ServerSettings, ServerIdentity};

    let listen = arguments.address();
    let identity = match (&arguments.certificate, &arguments.key, &arguments.save_certificate) {
        (Some(certificate), Some(key), _) => ServerIdentity::read(certificate, key)?,
        (_, _, Some(path)) => {
            let (identity, pem) = ServerIdentity::make(&[listen.ip()])?;
            std::fs::write(path, pem).with_context(|| format!("cannot write {}", path.display()))?;
            identity
        }
        _ => {
            return Err(Usage::error(
                "http3 needs --save-certificate FILE, for a certificate that it makes, or --certificate FILE and --key FILE",
            ));
        }
    };
    let server = Http3Server::open(Http3ServerSettings {
        listen,
        identity,
        folder: arguments.folder.clone(),
        limits: HttpLimits { body: arguments.max_body as usize, ..HttpLimits::default() },
        max_connections: arguments.max_connections.into(),
    })?;
    eprintln!("serving https://{}", server.address());
    let done = server.run()?;
    print_counters(
        arguments,
        done.requests,
        done.requests - done.successes,
        || serde_json::json!({ "connections": done.connections, "refused": done.refused }),
    )
}

#[cfg(target_os = "linux")]
fn serve_http(
    arguments: &ServeArguments,
    protocol: thinair_http_services::http::HttpProtocol,
) -> anyhow::Result<()> {
    use thinair_http::HttpLimits;
    use thinair_http_services::http::{HttpServer, HttpServerSettings};

    let default =
        if arguments.service == ServiceName::Http { Duration::from_secs(10) } else { Duration::ZERO };
    let mut server = HttpServer::open(HttpServerSettings {
        listen: arguments.address(),
        protocol,
        folder: arguments.folder.clone(),
        limits: HttpLimits { body: arguments.max_body as usize, ..HttpLimits::default() },
        max_connections: arguments.max_connections.into(),
        keep: arguments.keep.unwrap_or(default),
    })?;
    eprintln!("serving http://{}", server.address());
    server.run()?;
    let done = server.statistics();
    print_counters(arguments, done.requests, done.requests - done.successes, || {
        serde_json::json!({
            "connections": done.connections,
            "displaced": done.displaced,
            "too_slow": done.too_slow,
            "octets": { "received": done.received, "sent": done.sent },
        })
    })
}

#[cfg(target_os = "linux")]
fn serve_coap(arguments: &ServeArguments) -> anyhow::Result<()> {
    use thinair_services::coap::server::{FileResource, Listen, ResourceServer, Resources, ServerSettings};

    if arguments.keep.is_some() {
        return Err(Usage::error(
            "--keep is only for http: RFC 8323 defines how long coap-tcp keeps connections",
        ));
    }
    let tcp = arguments.service == ServiceName::CoapTcp;
    let listen = Listen { address: arguments.address(), udp: !tcp, tcp, optional: false };
    let max_body = arguments.max_body as usize;
    let mut settings =
        ServerSettings::secured(vec![listen], max_body, usize::from(arguments.max_connections));
    if arguments.trust_addresses {
        settings.endpoint.policy.amplification = None;
    }
    let mut site = Resources::new();
    site.add(FileResource::open(&arguments.folder, max_body, false)?.bare());
    let mut server = ResourceServer::open(&settings, site)?;
    eprintln!("serving {}", server.uris().join(", "));
    server.run()?;
    let done = server.statistics();
    print_counters(arguments, done.requests, done.client_errors + done.server_errors, || {
        serde_json::json!({
            "connections": done.connections,
            "displaced": done.displaced,
            "too_slow": done.too_slow,
            "retransmissions": done.endpoint.retransmissions,
        })
    })
}

/// Prints the counters: as text on standard error, or as JSON on standard output.
#[cfg(target_os = "linux")]
fn print_counters(
    arguments: &ServeArguments,
    requests: u64,
    errors: u64,
    more: impl FnOnce() -> serde_json::Value,
) -> anyhow::Result<()> {
    use anyhow::Context as _;
    if !arguments.json {
        eprintln!("{requests} requests answered, {errors} of them with an error");
        return Ok(());
    }
    let mut json = serde_json::json!({
        "schema": "thinair.serve/1",
        "service": arguments.service.name(),
        "requests": requests,
        "errors": errors,
    });
    if let (Some(object), serde_json::Value::Object(more)) = (json.as_object_mut(), more()) {
        object.extend(more);
    }
    let text = serde_json::to_string_pretty(&json)? + "\n";
    thinair_cli::terminal::print(&text).context("cannot print the counters")
}
