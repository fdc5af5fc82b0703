//! `thinair web`: the page of `bindings/web` on loopback. Its files are in this program, and nothing else is served.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::Context as _;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::routing::get;
use clap::Args;
use tokio::net::TcpListener;

use crate::terminal;

const AFTER_HELP: &str = "\
Examples:\n  \
thinair web\n  \
thinair web --port 8000\n\n\
Needs no privileges. Prints the address of the page, and serves it to this machine alone until SIGINT or SIGTERM. Captures do not \
leave the browser: it analyzes them.\n\n\
Exit status: that of the signal; 1 for a failure, such as a port in use; 2 for wrong arguments.";

/// Port of the page.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct WebArguments {
    /// Port on 127.0.0.1; 0: a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Octets of a file of the page, which is not built with the program.
macro_rules! octets {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("THINAIR_WEB", "the feature `web` needs the page: run `make web`, then THINAIR_WEB=$PWD/out/web cargo build ..."),
            "/",
            $name
        ))
    };
}

const PAGE: &[u8] = octets!("index.html");

/// All that is served: path, media type, octets.
const FILES: [(&str, &str, &[u8]); 12] = [
    ("/", "text/html; charset=utf-8", PAGE),
    ("/app.js", SCRIPT, octets!("app.js")),
    ("/engine.js", SCRIPT, octets!("engine.js")),
    ("/flows.js", SCRIPT, octets!("flows.js")),
    ("/icon.svg", "image/svg+xml", octets!("icon.svg")),
    ("/module.js", SCRIPT, octets!("module.js")),
    ("/report.css", CSS, octets!("report.css")),
    ("/report.js", SCRIPT, octets!("report.js")),
    ("/rows.js", SCRIPT, octets!("rows.js")),
    ("/style.css", CSS, octets!("style.css")),
    ("/thinair.js", SCRIPT, octets!("thinair.js")),
    ("/worker.js", SCRIPT, octets!("worker.js")),
];

pub(crate) fn run(arguments: &WebArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(serve(SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port))))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot serve the page at {address}"))?;
    terminal::print(&format!("http://{}/\n", listener.local_addr()?))?;
    Ok(axum::serve(listener, router()?).await?)
}

/// Returns a route for each file. Axum answers HEAD as GET, other methods by 405, and other paths by 404.
fn router() -> anyhow::Result<Router> {
    let policy = policy()?;
    let routes = FILES.into_iter().map(|(path, kind, octets)| {
        let headers = [
            (CONTENT_TYPE, kind),
            (CONTENT_SECURITY_POLICY, policy),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ];
        (path, get(move || async move { (headers, octets) }))
    });
    Ok(routes.fold(Router::new(), |router, (path, route)| router.route(path, route)))
}

/// Returns the policy that the page has in itself.
fn policy() -> anyhow::Result<&'static str> {
    let (_, rest) = std::str::from_utf8(PAGE)?
        .split_once("Content-Security-Policy\" content=\"")
        .context("the page has no policy")?;
    Ok(rest.split('"').next().unwrap_or_default())
}
