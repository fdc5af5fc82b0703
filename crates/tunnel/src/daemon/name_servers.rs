//! Name servers of a tunnel, by systemd-resolved or resolvconf(8).
//!
//! systemd-resolved forgets the servers of an interface that is removed. resolvconf does not; a note in the
//! folder of the tunnel lets the next start withdraw them if the tunnel was killed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thinair_os::Error;

/// File with the name under which resolvconf knows the servers of the tunnel.
const NOTE: &str = "resolvconf";

/// Exists if systemd-resolved is running.
const RESOLVED: &str = "/run/systemd/resolve/io.systemd.Resolve";

/// Debian's resolvconf orders interfaces by their names.
const DEBIAN_ORDER: &str = "/etc/resolvconf/interface-order";

/// Name servers and search domains of a tunnel.
#[derive(Debug)]
pub(super) struct NameServers {
    folder: Option<PathBuf>,
}

impl NameServers {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// Sets these servers and search domains for all names.
    ///
    /// # Errors
    /// There is neither systemd-resolved nor resolvconf, or it refuses them.
    pub(super) fn set(&self, interface: &str, names: &[String]) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        let (servers, domains): (Vec<_>, Vec<_>) =
            names.iter().map(String::as_str).partition(|name| name.parse::<std::net::IpAddr>().is_ok());
        if Path::new(RESOLVED).exists() {
            run("resolvectl", &[&["dns", interface], &servers[..]].concat(), "")?;
            // The root domain routes all lookups to these servers.
            run("resolvectl", &[&["domain", interface, "~."], &domains[..]].concat(), "")?;
            return Ok(());
        }
        let prefix = if Path::new(DEBIAN_ORDER).exists() { "tun." } else { "" };
        let name = format!("{prefix}{interface}");
        let mut text: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
        if !domains.is_empty() {
            text += &format!("search {}\n", domains.join(" "));
        }
        if let Some(folder) = &self.folder {
            fs::write(folder.join(NOTE), &name)
                .map_err(|why| Error::new(format!("write {}", folder.join(NOTE).display()), why))?;
        }
        // `-m 0 -x`: before all others, and exclusively (openresolv; Debian's ignores both).
        let done = run("resolvconf", &["-a", &name, "-m", "0", "-x"], &text);
        if let (Err(_), Some(folder)) = (&done, &self.folder) {
            let _ = fs::remove_file(folder.join(NOTE));
        }
        done
    }

    /// Withdraws the servers from resolvconf, including those of a killed tunnel of this name.
    pub(super) fn restore(&self) {
        let Some(note) = self.folder.as_ref().map(|folder| folder.join(NOTE)) else { return };
        let Ok(name) = fs::read_to_string(&note) else { return };
        if let Err(error) = run("resolvconf", &["-d", &name, "-f"], "") {
            tracing::warn!(%error, "name servers of the tunnel may stay");
        }
        let _ = fs::remove_file(note);
    }
}

fn run(program: &str, arguments: &[&str], input: &str) -> Result<(), Error> {
    let what = || format!("set name servers by `{program} {}`", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = thinair_os::signals::spawn(&mut command).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => Error::new(
            "set name servers: there is neither systemd-resolved nor the command `resolvconf`; install openresolv, or \
             leave `dns` out",
            why,
        ),
        _ => Error::new(what(), why),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input has not failed.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = child.wait().map_err(|why| Error::new(what(), why))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::new(what(), io::Error::other(status.to_string())))
}
