//! `thinair tunnel page`: the [`Status`](thinair_tunnel::status::Status) of a running tunnel for browsers and for Prometheus, over HTTP
//! on a loopback address.
//!
//! The server is a process of its own, which reads the status socket: it has no rights and no keys, and no browser delays packets.
//!
//! Pages of other sites in a browser cannot read the status: there is no CORS, and only loopback host names
//! are served, against DNS rebinding.

mod listener;
mod metrics;
mod routes;
mod source;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use thinair_tunnel::config;
use tokio::net::TcpListener;

use self::source::StatusSource;
use super::sources;
use crate::terminal::print;

#[cfg(target_os = "linux")]
pub(super) use self::child::PageProcess;

pub(super) const EXIT_STATUS: &str = "\
PATH and --name can be omitted if a single tunnel runs, with its status socket in /run/thinair. Prints the address of the page, and \
serves it to this machine alone, also before the tunnel starts and after its end; /metrics is for Prometheus. Needs no rights but to \
read the status socket. `thinair tunnel run --http ADDRESS` does so, too.\n\n\
Exit status: that of the signal; 0 with --until-eof; 1 for a failure, such as a port in use; 2 for wrong arguments.";

#[derive(Args, Debug)]
pub(crate) struct PageArguments {
    /// Path of the status socket
    #[arg(value_name = "PATH", conflicts_with = "name")]
    path: Option<PathBuf>,
    /// Name of the tunnel; its status socket is /run/thinair/NAME/status.sock
    #[arg(long, value_name = "NAME", value_parser = super::options::name)]
    name: Option<String>,
    /// Loopback address of the page; port 0: a free one
    #[arg(long, value_name = "ADDRESS", value_parser = config::loopback, default_value = "127.0.0.1:9464")]
    http: SocketAddr,
    /// End when standard input ends
    #[arg(long)]
    until_eof: bool,
}

pub(super) fn run(arguments: &PageArguments) -> anyhow::Result<ExitCode> {
    let socket = match &arguments.path {
        Some(path) => path.clone(),
        None => sources::status_socket(arguments.name.as_deref())?,
    };
    if arguments.until_eof {
        std::thread::spawn(|| {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            std::process::exit(0);
        });
    }
    serve(arguments.http, &socket)?;
    Ok(ExitCode::SUCCESS)
}

fn serve(address: SocketAddr, socket: &Path) -> anyhow::Result<()> {
    let cannot = |error: io::Error| {
        let hint = if error.kind() == io::ErrorKind::AddrInUse { "; give another port" } else { "" };
        anyhow!("the page cannot be served at {address} (--http, or `http` in [seeing]): {error}{hint}")
    };
    // One request at a time is made of the daemon.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        print(&format!("http://{}/\n", listener.local_addr().map_err(cannot)?))?;
        let router = routes::router(StatusSource::new(socket));
        Ok(axum::serve(listener::Few::new(listener), router).await?)
    })
}

#[cfg(target_os = "linux")]
mod child {
    use std::io::{BufRead as _, BufReader};
    use std::net::SocketAddr;
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use anyhow::{Context as _, bail};

    /// The page of a daemon: a process without its keys. **It ends with this value, or with the daemon.**
    pub(in crate::tunnel) struct PageProcess(Child);

    impl PageProcess {
        /// Starts the page, with the rights that this process has now.
        pub(in crate::tunnel) fn start(address: SocketAddr, socket: &Path) -> anyhow::Result<Self> {
            // This program, which the user of the daemon may not find by its path. The page reads the end of this process from its
            // input, and signals of a terminal do not reach it.
            let mut command = Command::new("/proc/self/exe");
            command.args(["tunnel", "page", "--until-eof", "--http", &address.to_string()]).arg(socket);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
            let mut page = Self(command.spawn().context("cannot start the page")?);
            let mut line = String::new();
            BufReader::new(page.0.stdout.take().context("a pipe")?).read_line(&mut line)?;
            if line.is_empty() {
                // It has printed the reason.
                bail!("there is no page at {address} (--http, or `http` in [seeing])");
            }
            tracing::info!("the page is at {}", line.trim_end());
            Ok(page)
        }
    }

    impl Drop for PageProcess {
        fn drop(&mut self) {
            // The end of its input.
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }
}
