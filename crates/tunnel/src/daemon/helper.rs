//! The helper of a daemon: a process that keeps its privileges, performs the few privileged operations, and
//! undoes them at the end.
//!
//! The daemon is exposed to the network, so it runs as a user without privileges. Privileged operations are
//! requested from the helper: addresses, routes and the MTU of the interface, opening a serial line again,
//! reading the configuration and its key files again. The helper accepts no path, no command and no name of
//! an interface from the daemon, and validates addresses. It outlives the daemon for a moment, so that
//! routing rules and name servers are removed even if the daemon was killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thinair_os::helper::{self, HelperSocket};
use thinair_os::rule::PortRange;
use thinair_os::{Error, Namespace, Serial, privileges};
use thinair_session::Keys;
use zeroize::Zeroizing;

use super::block;
use super::host::{Host, remove_stale_rules, tunnel_name};
use super::name_servers::NameServers;
use super::run_folder;
use crate::key_file::{self, KeyFileError};
use crate::site_config::{Carrier, Inside, SiteConfig};

/// The longest time of a change to the host, as name servers are set by programs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest message, in octets: the files of a configuration with many peers.
const LARGEST: u64 = 16 << 20;

/// Files of a configuration: their names and texts.
pub type Files = Vec<(PathBuf, String)>;

/// Source of a configuration, which can be read repeatedly.
pub struct Source {
    /// Reads the files of the configuration.
    pub files: Box<dyn Fn() -> Result<Files, String> + Send + Sync>,
    /// Creates the configuration from these files, with addresses of hosts from this function.
    pub config: Box<MakeSiteConfig>,
}

/// Creates a configuration from files.
pub type MakeSiteConfig =
    dyn Fn(&[(PathBuf, String)], &Resolve<'_>) -> Result<SiteConfig, String> + Send + Sync;

/// Looks up the addresses of a host.
pub type Resolve<'r> = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + 'r;

/// Request of the daemon, which follows its number.
#[derive(Debug, Deserialize, Serialize)]
enum Request {
    SetUp { mtu: u16, carrier_ports: Option<PortRange> },
    SetMtu(u16),
    Change { addresses: Vec<(IpAddr, u8)>, routes: Vec<(IpAddr, u8)>, dns: Vec<String> },
    OpenLine,
    End,
    Load,
    Resolve(String, u16),
}

/// Message of the helper.
#[derive(Debug, Deserialize, Serialize)]
enum Reply {
    /// Answer to the request of this number.
    Answer(u64, Result<(), Refusal>),
    Late(Late),
    /// A longer message, in the file that comes with this one.
    InFile,
}

/// Error of a request.
#[derive(Debug, Deserialize, Serialize)]
struct Refusal {
    what: String,
    is_permission: bool,
}

/// An asynchronous answer.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Late {
    /// The configuration, read again, or its error.
    Loaded(Result<Loaded, String>),
    /// Addresses of a host; empty if its name cannot be resolved now.
    Resolved(String, u16, Vec<SocketAddr>),
}

/// A configuration that was read again.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Loaded {
    /// Its files, and their texts.
    pub(super) files: Files,
    /// Addresses of the hosts in it.
    pub(super) hosts: BTreeMap<String, Vec<SocketAddr>>,
    /// Its key files, and their texts.
    keys: Vec<(PathBuf, Zeroizing<String>)>,
}

impl Loaded {
    /// Keys of a file, which the helper has validated.
    pub(super) fn keys(&self, file: &std::path::Path) -> Result<Keys, KeyFileError> {
        let found = self.keys.iter().find(|(path, _)| path == file);
        let missing = || KeyFileError::Io { path: file.to_owned(), why: io::ErrorKind::NotFound.into() };
        let (_, text) = found.ok_or_else(missing)?;
        Keys::parse(text).map_err(|why| KeyFileError::Text { path: file.to_owned(), why })
    }

    /// Addresses of a host at the time when the files were read.
    pub(super) fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = self.hosts.get(&format!("{host}:{port}")).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The daemon's end of the connection.
#[derive(Debug)]
pub(super) struct Helper {
    process: helper::Helper,
    requests: Requests,
}

/// Requests to the helper, and its answers. An answer that did not arrive in time is ignored later.
#[derive(Debug, Default)]
struct Requests {
    /// Number of the last request.
    number: u64,
    /// Asynchronous answers received while waiting for another one.
    late: Vec<Late>,
}

impl Helper {
    /// Starts the helper of a configuration. `folder`: that of the tunnel below `/run`.
    ///
    /// **Must be called while there is one thread**, with signals blocked.
    pub(super) fn start(
        config: &SiteConfig,
        folder: Option<PathBuf>,
        source: Option<Arc<Source>>,
    ) -> Result<Self, Error> {
        let (inside, carrier) = (config.inside.clone(), config.carrier.clone());
        let process = helper::start(move |line| {
            serve(line, inside, carrier, folder.clone(), source);
            if let Some(folder) = folder {
                run_folder::clear(&folder);
            }
        })?;
        Ok(Self { process, requests: Requests::default() })
    }

    /// Sets MTU, addresses and routes of the interface: [`Host::set_up`].
    pub(super) fn set_up(&mut self, mtu: u16, carrier_ports: Option<PortRange>) -> Result<(), Error> {
        self.ask(&Request::SetUp { mtu, carrier_ports }).map(drop)
    }

    /// Sets the MTU of the interface, in octets.
    pub(super) fn set_mtu(&mut self, mtu: u16) -> Result<(), Error> {
        self.ask(&Request::SetMtu(mtu)).map(drop)
    }

    /// Replaces addresses, routes and name servers by those of `inside`.
    pub(super) fn change(&mut self, inside: &Inside) -> Result<(), Error> {
        let Inside { addresses, routes, dns, .. } = inside.clone();
        self.ask(&Request::Change { addresses, routes, dns }).map(drop)
    }

    /// Opens and configures the serial line of the configuration.
    pub(super) fn open_line(&mut self) -> Result<OwnedFd, Error> {
        let file = self.ask(&Request::OpenLine)?;
        file.ok_or_else(|| Error::new("open the serial line", io::ErrorKind::UnexpectedEof))
    }

    /// Requests that the configuration be read again.
    pub(super) fn load(&mut self) -> Result<(), Error> {
        self.process.line().and_then(|line| self.requests.send(line, &Request::Load)).map_err(gone)
    }

    /// Requests the addresses of a host.
    pub(super) fn resolve(&mut self, host: &str, port: u16) -> Result<(), Error> {
        let request = Request::Resolve(host.to_owned(), port);
        self.process.line().and_then(|line| self.requests.send(line, &request)).map_err(gone)
    }

    /// The next asynchronous answer, once the helper is [readable](Self::as_fd). `None`: none has arrived.
    ///
    /// # Errors
    /// The helper has ended.
    pub(super) fn next_late(&mut self) -> io::Result<Option<Late>> {
        self.requests.next_late(self.process.line()?)
    }

    /// True if there are answers received while waiting for another one.
    pub(super) fn has_late(&self) -> bool {
        !self.requests.late.is_empty()
    }

    /// The socket, to wait for.
    pub(super) fn as_fd(&mut self) -> Option<BorrowedFd<'_>> {
        let line: &HelperSocket = self.process.line().ok()?;
        Some(line.as_fd())
    }

    /// Undoes all changes at the clean end of the tunnel: networks that are unreachable if it fails are reachable again. The
    /// helper ends with this value, behind the socket of the carrier: a next start may then use its port.
    pub(super) fn end_cleanly(&mut self) {
        if let Err(error) = self.ask(&Request::End) {
            tracing::warn!("changes to the host stay until `thinair tunnel down`: {}", words(&error));
        }
    }

    /// Ends the helper, and waits until it has undone its changes.
    pub(super) fn end(&mut self) {
        self.process.end();
    }

    fn ask(&mut self, request: &Request) -> Result<Option<OwnedFd>, Error> {
        self.requests.ask(self.process.line().map_err(gone)?, request)
    }
}

impl Requests {
    fn send(&mut self, line: &HelperSocket, request: &Request) -> io::Result<()> {
        self.number += 1;
        let message = serde_json::to_vec(&(self.number, request)).unwrap_or_default();
        line.send(&message, None)
    }

    /// Sends a request, and waits for its answer.
    fn ask(&mut self, line: &mut HelperSocket, request: &Request) -> Result<Option<OwnedFd>, Error> {
        self.send(line, request).map_err(gone)?;
        loop {
            match receive(line, Some(PATIENCE)).map_err(gone)? {
                (Reply::Answer(number, _), _) if number != self.number => {}
                (Reply::Answer(_, Ok(())), file) => return Ok(file),
                (Reply::Answer(_, Err(refusal)), _) => return Err(refused(&refusal)),
                (Reply::Late(late), _) => self.late.push(late),
                (Reply::InFile, _) => {}
            }
        }
    }

    fn next_late(&mut self, line: &mut HelperSocket) -> io::Result<Option<Late>> {
        if !self.late.is_empty() {
            return Ok(Some(self.late.remove(0)));
        }
        match receive(line, Some(Duration::ZERO)) {
            Ok((Reply::Late(late), _)) => Ok(Some(late)),
            Ok((Reply::Answer(..) | Reply::InFile, _)) => Ok(None),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::InvalidData) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn receive(line: &mut HelperSocket, limit: Option<Duration>) -> io::Result<(Reply, Option<OwnedFd>)> {
    let (message, file) = line.receive(limit)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let parse = |text: &[u8]| {
        serde_json::from_slice(text).map_err(|bad| io::Error::new(io::ErrorKind::InvalidData, bad))
    };
    match (parse(message)?, file) {
        (Reply::InFile, Some(file)) => {
            let mut text = Zeroizing::new(Vec::new());
            File::from(file).take(LARGEST).read_to_end(&mut text)?;
            Ok((parse(&text)?, None))
        }
        (reply, file) => Ok((reply, file)),
    }
}

fn gone(why: io::Error) -> Error {
    Error::new("ask the helper process, which has the rights for it", why)
}

/// An error reported by the helper: "cannot WHAT: REASON".
fn refused(refusal: &Refusal) -> Error {
    let text = refusal.what.strip_prefix("cannot ").unwrap_or(&refusal.what);
    let (what, why) = text.rsplit_once(": ").unwrap_or((text, "refused"));
    let kind = if refusal.is_permission { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other };
    Error::new(what, io::Error::new(kind, why.to_owned()))
}

/// Serves the daemon until it ends.
fn serve(
    mut line: HelperSocket,
    inside: Inside,
    carrier: Carrier,
    folder: Option<PathBuf>,
    source: Option<Arc<Source>>,
) {
    // Keys are in this memory while they are read again.
    if let Err(error) = privileges::hide_memory() {
        tracing::debug!(%error, "the memory of the helper is not hidden");
    }
    // A failed cleanup is repeated by the next start.
    let mut host = match Host::new(inside, folder) {
        Ok(host) => host,
        Err(error) => {
            tracing::error!("{}", words(&error));
            return;
        }
    };
    loop {
        let Ok(Some((message, _))) = line.receive(None) else { return };
        let (number, request) = match serde_json::from_slice(message) {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(%error, "a request of the daemon is malformed");
                continue;
            }
        };
        let mut file = None;
        let done = match request {
            Request::SetUp { mtu, carrier_ports } => host.set_up(mtu, carrier_ports),
            Request::SetMtu(mtu) => host.set_mtu(mtu),
            Request::Change { addresses, routes, dns } => host.change(addresses, routes, dns),
            Request::End => host.end(),
            Request::OpenLine => open_line(&carrier).map(|line| file = Some(line)),
            Request::Load => {
                let source = source.clone();
                answer_later(&line, move || {
                    Late::Loaded(source.ok_or_else(no_file).and_then(|it| load(&it)))
                });
                continue;
            }
            Request::Resolve(name, port) => {
                answer_later(&line, move || {
                    let found = crate::config::system_resolver(&name, port).unwrap_or_default();
                    Late::Resolved(name, port, found)
                });
                continue;
            }
        };
        let done =
            done.map_err(|error| Refusal { what: words(&error), is_permission: error.is_permission() });
        let message = serde_json::to_vec(&Reply::Answer(number, done)).unwrap_or_default();
        if line.send(&message, file.as_ref().map(|file| file.as_fd())).is_err() {
            return;
        }
    }
}

fn no_file() -> String {
    "the tunnel was started without a file; give it one by --config or --name".to_owned()
}

/// Runs an operation that may wait for the network in a separate thread.
fn answer_later(line: &HelperSocket, work: impl FnOnce() -> Late + Send + 'static) {
    let Ok(line) = line.try_clone() else { return };
    std::thread::spawn(move || {
        let json = |reply: &Reply| Zeroizing::new(serde_json::to_vec(reply).unwrap_or_default());
        let mut message = json(&Reply::Late(work()));
        let mut file = None;
        if message.len() > helper::LONGEST {
            file = helper::file_of(&message).ok().filter(|_| message.len() as u64 <= LARGEST);
            let long = "the files of the configuration are too long to be read again; restart the tunnel";
            let refused = || Reply::Late(Late::Loaded(Err(long.to_owned())));
            message = json(&file.as_ref().map_or_else(refused, |_| Reply::InFile));
        }
        // The daemon may have ended.
        let _ = line.send(&message, file.as_ref().map(|file| file.as_fd()));
    });
}

fn open_line(carrier: &Carrier) -> Result<OwnedFd, Error> {
    let Carrier::Serial { path, speed, .. } = carrier else {
        return Err(Error::new("open a serial line: the carrier has none", io::ErrorKind::InvalidInput));
    };
    let what = || format!("open the serial line {}", path.display());
    Serial::open(path, *speed)?.into_file().map_err(|why| Error::new(what(), why))
}

/// Removes leftovers of a tunnel that was killed together with its helper: routing rules in the namespace of
/// its interface, name servers, the contents of its folder, and networks that it left unreachable. Returns the number
/// of rules.
///
/// # Errors
/// A tunnel is running there, the namespace does not exist, or the caller lacks CAP_NET_ADMIN.
pub fn clean_up(folder: &std::path::Path, namespace: Option<&str>) -> Result<usize, Error> {
    NameServers::new(Some(folder.to_owned())).restore();
    let removed = match namespace {
        Some(namespace) => Namespace::open(namespace)?.within(remove_stale_rules)??,
        None => remove_stale_rules()?,
    };
    let lifted = match tunnel_name(folder) {
        Some(name) => block::lift(name, namespace)?,
        None => 0,
    };
    run_folder::clear(folder);
    Ok(removed + lifted)
}

/// Reads the configuration and its key files, as at the start.
fn load(source: &Source) -> Result<Loaded, String> {
    let files = (source.files)()?;
    let hosts = std::cell::RefCell::new(BTreeMap::new());
    let config = (source.config)(&files, &|host, port| {
        let found = crate::config::system_resolver(host, port)?;
        hosts.borrow_mut().insert(format!("{host}:{port}"), found.clone());
        Ok(found)
    })?;
    let read = |path: PathBuf| {
        let text = key_file::read_text(&path).map_err(|error| words(&error))?;
        Ok::<_, String>((path, text))
    };
    let keys = config.key_files().into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(Loaded { files, hosts: hosts.into_inner(), keys })
}

/// An error with its chain of causes.
pub(super) fn words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", words(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_comes_too_late_is_ignored() {
        let (mut ours, theirs) = HelperSocket::pair().unwrap();
        let tell = |reply: &Reply| theirs.send(&serde_json::to_vec(reply).unwrap(), None).unwrap();
        let refusal = || Refusal { what: "cannot do it: a reason".to_owned(), is_permission: false };
        // The patience for the first request was over.
        let mut requests = Requests { number: 1, ..Requests::default() };
        assert!(requests.next_late(&mut ours).unwrap().is_none(), "nothing has arrived");
        tell(&Reply::Answer(1, Ok(())));
        assert!(requests.next_late(&mut ours).unwrap().is_none(), "the helper has not ended");
        // It is not the answer to the next one, either.
        tell(&Reply::Answer(1, Err(refusal())));
        tell(&Reply::Late(Late::Resolved("host".to_owned(), 7, Vec::new())));
        tell(&Reply::Answer(2, Ok(())));
        requests.ask(&mut ours, &Request::SetMtu(1_400)).unwrap();
        tell(&Reply::Answer(3, Err(refusal())));
        let error = requests.ask(&mut ours, &Request::SetMtu(1_400)).unwrap_err();
        assert_eq!(words(&error), "cannot do it: a reason");
        assert!(matches!(requests.next_late(&mut ours), Ok(Some(Late::Resolved(..)))));
        theirs.send(b"?", None).unwrap();
        assert!(requests.next_late(&mut ours).unwrap().is_none(), "no message");
        drop(theirs);
        assert!(requests.next_late(&mut ours).is_err(), "it has ended");
    }
}
