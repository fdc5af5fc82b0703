//! `thinair coap serve`: serves a folder, the time, and test resources.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use thinair_coap::congestion::Algorithm;

use crate::usage::Usage;

/// Default port of CoAP, over UDP and TCP (RFC 7252, section 6.1; RFC 8323, section 8.1).
const PORT: u16 = 5683;

/// Schema of the output of `--json`.
#[cfg(target_os = "linux")]
const SCHEMA: &str = "thinair.coap.serve/1";

pub(super) const EXIT_STATUS: &str = "\
Examples:\n  \
thinair coap serve\n  \
thinair coap serve --root sensors --listen 0.0.0.0 --listen [::]\n  \
thinair coap serve --root inbox --writable --listen 192.0.2.7:5700 --no-tcp\n  \
thinair coap serve --psk-file clients.psk --listen [::] --no-udp --no-tcp\n\n\
Runs until SIGINT or SIGTERM. Logs go to standard error; RUST_LOG filters them.\n\n\
Exit status: 0 after such a signal; 1 for a failure; 2 for wrong arguments.";

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct ServeArguments {
    /// Listening address [default: 127.0.0.1 and ::1, port 5683]; may be repeated
    ///
    /// An unspecified address (0.0.0.0 or ::) stands for all addresses of its family.
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// Do not serve CoAP over TCP (coap+tcp)
    #[arg(long)]
    no_tcp: bool,
    /// Do not serve CoAP over UDP (coap)
    #[arg(long)]
    no_udp: bool,
    /// Serve the files of this folder, except those whose names begin with a dot
    #[arg(long, value_name = "FOLDER", help_heading = "Resources")]
    root: Option<PathBuf>,
    /// Allow clients to create, change and delete files of --root
    #[arg(long, requires = "root", help_heading = "Resources")]
    writable: bool,
    /// Serve the resources of the ETSI CoAP plugtests [default: only without --root]
    #[arg(long, help_heading = "Resources")]
    test_resources: bool,
    /// Serve protected requests: with the OSCORE security context in this folder, or those in the folders in it; may be
    /// repeated
    ///
    /// A request that is not protected is answered with 4.01. A file rights.json in the folder of a context
    /// limits its requests, as in {"/time": ["GET"], "/store/*": ["*"]}; others are answered with 4.03.
    #[arg(long, value_name = "FOLDER", help_heading = "Security")]
    oscore: Vec<PathBuf>,
    /// Serve coaps, too, for clients with a key of this file
    ///
    /// It has lines IDENTITY:KEY, the key in hexadecimal digits. DTLS 1.2 with TLS_PSK_WITH_AES_128_CCM_8. On the port above that of --listen, 5684 by default; port 0 is one of its own. A request that is not
    /// protected is answered with 4.01. Only its owner may be able to read the file.
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    psk_file: Option<PathBuf>,
    /// Limit the requests of clients by identity: a file as {"phone": {"/time": ["GET"], "/store/*": ["*"]}}
    ///
    /// An identity that is not in it may not request anything.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "FILE",
        requires = "psk_file",
        help_heading = "Security"
    )]
    psk_rights: Option<PathBuf>,
    /// Serve clients whose credentials are beside the key in this file (EDHOC)
    ///
    /// `thinair coap pair` makes keys and credentials. A file NAME.rights.json limits the requests of the client with NAME.ccs, as
    /// rights.json does with --oscore.
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    edhoc: Option<PathBuf>,
    /// Serve this resource without protection, too; with /* at its end, all below; may be repeated
    #[arg(long, value_name = "PATH", value_parser = path, help_heading = "Security")]
    unprotected: Vec<String>,
    /// Use contexts of --oscore although their folders were copied: their originals are never used again
    #[arg(long, hide_short_help = true, requires = "oscore", help_heading = "Security")]
    moved: bool,
    /// Maximum size of a file to serve or receive, in octets
    ///
    /// Block-wise transfers use memory for four bodies of this size.
    #[arg(long, value_name = "OCTETS", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1_024..=1 << 28), help_heading = "Limits")]
    max_body: u32,
    /// Maximum number of TCP connections; a further one closes the connection that is idle for longest
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000), help_heading = "Limits")]
    max_connections: u16,
    /// Send long responses to unverified addresses, too
    ///
    /// Only for networks in which addresses cannot be forged. By default a client must first echo a value
    /// (RFC 9175) before it receives more than three times the octets of its request, unless the server
    /// listens on loopback addresses only.
    #[arg(long, help_heading = "Limits")]
    trust_addresses: bool,
    /// Congestion control algorithm: rfc7252, rfc6298, cocoa, fasor or fasor-quick [default: fasor-quick]
    #[arg(long, value_name = "NAME", help_heading = "Transmission")]
    congestion: Option<Algorithm>,
    /// Print counters as JSON at the end (thinair.coap.serve/1)
    #[arg(long)]
    json: bool,
    /// Log every request; twice: log everything
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Parses the path of a resource.
fn path(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("expected a path that begins with a slash, as in /time".to_owned()),
    }
}

/// Parses an address with an optional port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let address = bare.parse::<IpAddr>().map(|address| SocketAddr::new(address, PORT));
    address.map_err(|_| "expected an address, as in 192.0.2.7, 192.0.2.7:5700, :: or [::]:5700".to_owned())
}

pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    serve(arguments)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails: this system is not supported.
#[cfg(not(target_os = "linux"))]
fn serve(_arguments: &ServeArguments) -> anyhow::Result<()> {
    anyhow::bail!("a CoAP server needs Linux")
}

/// Serves until a signal ends the process.
#[cfg(target_os = "linux")]
fn serve(arguments: &ServeArguments) -> anyhow::Result<()> {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use anyhow::Context as _;
    use thinair_services::coap::server::{
        FileResource, Listen, ResourceServer, Resources, Rights, ServerSettings, Tests, Time,
    };
    use thinair_services::coap::{edhoc, oscore};

    crate::log::to_stderr(match arguments.verbose {
        0 => "warn",
        1 => "warn,thinair=debug",
        _ => "trace",
    });
    let (udp, tcp) = (!arguments.no_udp, !arguments.no_tcp);
    if !udp && !tcp && arguments.psk_file.is_none() {
        return Err(Usage::error("--no-udp and --no-tcp leave nothing to serve without --psk-file"));
    }
    if !arguments.unprotected.is_empty() && arguments.oscore.is_empty() && arguments.psk_file.is_none() {
        return Err(Usage::error(
            "--unprotected needs --oscore or --psk-file: without them, nothing is protected",
        ));
    }
    let mut listen: Vec<Listen> =
        arguments.listen.iter().map(|&address| Listen { address, udp, tcp, optional: false }).collect();
    if listen.is_empty() {
        let local: [(IpAddr, bool); 2] =
            [(Ipv4Addr::LOCALHOST.into(), false), (Ipv6Addr::LOCALHOST.into(), true)];
        listen.extend(local.map(|(address, optional)| {
            // IPv6 is optional, since a machine may lack it.
            Listen { address: SocketAddr::new(address, PORT), udp, tcp, optional }
        }));
    }
    let max_body = arguments.max_body as usize;
    let mut settings = ServerSettings::secured(listen, max_body, usize::from(arguments.max_connections));
    if let Some(file) = &arguments.psk_file {
        settings.secure = Some(secure(file, arguments.psk_rights.as_deref(), &settings.listen)?);
    }
    if arguments.trust_addresses {
        settings.endpoint.policy.amplification = None;
    }
    if let Some(congestion) = arguments.congestion {
        settings.endpoint.timing.congestion = congestion;
    }
    let mut site = Resources::new();
    site.add(Time::new());
    if arguments.test_resources || arguments.root.is_none() {
        site.add(Tests::new());
    }
    if let Some(root) = &arguments.root {
        if !root.is_dir() {
            return Err(Usage::error(format!("--root: `{}` is not a folder", root.display())));
        }
        site.add(FileResource::open(root, max_body, arguments.writable)?);
    }
    let mut server = ResourceServer::open(&settings, site)?;
    // Each folder has a file that stays open: its lock.
    thinair_os::resource::raise_file_limit()?;
    for folder in &arguments.oscore {
        for folder in oscore::folders(folder)? {
            let context = oscore::open(&folder, arguments.moved)?;
            let added = server.add_context(context, Rights::read(&folder)?);
            added.with_context(|| format!("`{}`", folder.display()))?;
        }
    }
    if let Some(key) = &arguments.edhoc {
        server.add_identity(edhoc::Identity::read(key)?);
    }
    arguments.unprotected.iter().for_each(|path| server.open_resource(path));
    eprintln!("serving {}", server.uris().join(", "));
    server.run()?;
    let statistics = server.statistics();
    let text =
        if arguments.json { serde_json::to_string_pretty(&json(&statistics))? + "\n" } else { String::new() };
    if !arguments.json {
        eprintln!(
            "{} requests answered, {} of them with an error",
            statistics.requests,
            statistics.client_errors + statistics.server_errors
        );
    }
    crate::terminal::print(&text).context("cannot print the counters")
}

/// Returns keys and addresses of `coaps`: those of `coap`, one port above.
#[cfg(target_os = "linux")]
fn secure(
    file: &std::path::Path,
    rights: Option<&std::path::Path>,
    listen: &[thinair_services::coap::server::Listen],
) -> anyhow::Result<thinair_services::coap::server::SecureSettings> {
    use thinair_services::coap::psk;
    use thinair_services::coap::server::{Rights, SecureSettings};

    let limited = rights.map(Rights::read_by_identity).transpose()?;
    let mut clients = Vec::new();
    for psk in psk::read(file)? {
        let rights = match &limited {
            Some(limited) => {
                let identity = std::str::from_utf8(psk.identity()).unwrap_or_default();
                limited.get(identity).cloned().unwrap_or_else(Rights::none)
            }
            None => Rights::all(),
        };
        clients.push((psk, rights));
    }
    let address = |listen: &thinair_services::coap::server::Listen| {
        let port = match listen.address.port() {
            0 => 0,
            port => {
                port.checked_add(1).ok_or_else(|| Usage::error("--listen: no port above 65535 for coaps"))?
            }
        };
        Ok((SocketAddr::new(listen.address.ip(), port), listen.optional))
    };
    Ok(SecureSettings { listen: listen.iter().map(address).collect::<anyhow::Result<_>>()?, clients })
}

#[cfg(target_os = "linux")]
fn json(statistics: &thinair_services::coap::server::ServerStatistics) -> serde_json::Value {
    let endpoint = &statistics.endpoint;
    serde_json::json!({
        "schema": SCHEMA,
        "requests": statistics.requests,
        "responses": {
            "2": statistics.successes,
            "4": statistics.client_errors,
            "5": statistics.server_errors,
        },
        "notifications": statistics.notifications,
        "not_delivered": statistics.not_delivered,
        "datagrams": {
            "received": endpoint.received,
            "malformed": endpoint.malformed,
            "too_long": statistics.too_long,
            "duplicates": endpoint.duplicates,
            "unmatched": endpoint.unmatched,
            "forgotten_early": endpoint.forgotten_early,
            "retransmissions": endpoint.retransmissions,
            "dropped": endpoint.dropped,
            "unverified": endpoint.unverified,
            "refused": statistics.refused,
        },
        "overload": endpoint.overload,
        "sessions": { "established": statistics.sessions, "failed_handshakes": statistics.failed_handshakes },
        "connections": {
            "accepted": statistics.connections,
            "displaced": statistics.displaced,
            "too_slow": statistics.too_slow,
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_the_default() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:5683"),
            ("127.0.0.1:5700", "127.0.0.1:5700"),
            ("::1", "[::1]:5683"),
            ("[::1]", "[::1]:5683"),
            ("[2001:db8::7]:0", "[2001:db8::7]:0"),
        ] {
            assert_eq!(address(text), Ok(expected.parse().unwrap()));
        }
        for text in ["", "localhost", "127.0.0.1:", "1.2.3", "::1:99999:", "[::1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
