//! The helper of a daemon: a process that keeps its privileges, performs the few privileged operations, and
//! undoes them at the end.
//!
//! The daemon is exposed to the network, so it runs as a user without privileges. Privileged operations are
//! requested from the helper: addresses, routes and the MTU of the interface, opening a serial line again,
//! reading the configuration and its key files again. The helper accepts no path, no command, no name of
//! an interface, no address, no route and no name server from the daemon, but only those of configurations that
//! it has read itself, and is [confined](confinement) to what it does. It outlives the daemon for a moment, so that
//! routing rules and name servers are removed even if the daemon was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thinair_os::confinement::Rights;
use thinair_os::helper::{self, HelperSocket};
use thinair_os::rule::PortRange;
use thinair_os::{Error, Namespace, Serial, confinement};
use thinair_session::Keys;
use zeroize::Zeroizing;

use super::block;
use super::host::{Host, remove_stale_rules, tunnel_name};
use super::name_servers::NameServers;
use super::run_folder;
use crate::key_file::{self, KeyFileError};
use crate::site_config::{Carrier, Inside, Others, SiteConfig};

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
    SetUp {
        mtu: u16,
        carrier_ports: Option<PortRange>,
    },
    SetMtu(u16),
    /// To the configuration that was read by the request of this number.
    Change(u64),
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
    /// Number of the request.
    pub(super) number: u64,
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
        let config = config.clone();
        let process = helper::start(move |line| {
            serve(line, config, folder.clone(), source);
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

    /// Replaces addresses, routes and name servers by those of this configuration.
    pub(super) fn change(&mut self, loaded: &Loaded) -> Result<(), Error> {
        self.ask(&Request::Change(loaded.number)).map(drop)
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

/// Values of configurations that the helper has read.
#[derive(Debug)]
struct Known {
    /// Number of the last configuration that was read again, and its interface.
    last: Option<(u64, Inside)>,
    /// Hosts of all of them.
    hosts: BTreeSet<(String, u16)>,
}

impl Known {
    fn new(config: &SiteConfig) -> Self {
        Self { last: None, hosts: hosts(config).collect() }
    }

    fn add(&mut self, number: u64, config: SiteConfig) {
        self.hosts.extend(hosts(&config));
        self.last = Some((number, config.inside));
    }

    /// Returns the interface of the configuration with this number.
    fn inside(&self, number: u64) -> Result<Inside, Error> {
        let last = self.last.as_ref().filter(|(last, _)| *last == number);
        let missing = || {
            let why = "the configuration was read again meanwhile; reload it once more";
            Error::new("change addresses and routes", io::Error::other(why))
        };
        last.map(|(_, inside)| inside.clone()).ok_or_else(missing)
    }
}

/// Hosts of a configuration that have names.
fn hosts(config: &SiteConfig) -> impl Iterator<Item = (String, u16)> {
    let peers = match &config.others {
        Others::Peers(peers) => &peers[..],
        Others::Mesh(_) => &[],
    };
    peers.iter().filter_map(|peer| peer.host.clone())
}

/// True for ports that the carrier of a configuration can have: its own one, and a neighbor from which NATs are probed.
fn can_have_ports(carrier: &Carrier, ports: Option<PortRange>) -> bool {
    match (carrier, ports) {
        (_, None) => true,
        (Carrier::Udp { listen, .. }, Some((first, last))) => {
            let own = listen.port();
            first <= last && last - first <= 1 && (own == 0 || (first..=last).contains(&own))
        }
        (Carrier::Serial { .. } | Carrier::File { .. }, Some(_)) => false,
    }
}

/// Rights that the helper of a configuration needs to change the host.
fn rights(config: &SiteConfig, has_source: bool) -> Rights {
    Rights {
        namespaces: config.inside.namespace.is_some(),
        files: has_source,
        devices: matches!(config.carrier, Carrier::Serial { .. }),
        services: !config.inside.dns.is_empty(),
    }
}

/// Serves the daemon until it ends.
fn serve(mut line: HelperSocket, config: SiteConfig, folder: Option<PathBuf>, source: Option<Arc<Source>>) {
    // A failed cleanup is repeated by the next start.
    let mut host = match Host::new(config.inside.clone(), folder) {
        Ok(host) => host,
        Err(error) => {
            tracing::error!("{}", words(&error));
            return;
        }
    };
    // Nothing of the network has been read before.
    match confinement::confine(rights(&config, source.is_some())) {
        Ok(true) => {}
        Ok(false) => {
            tracing::info!("system calls of the helper are not filtered: the system does not permit it")
        }
        Err(error) => {
            tracing::error!("{}", words(&error));
            return;
        }
    }
    let known = Arc::new(Mutex::new(Known::new(&config)));
    let look_up = || known.lock().unwrap_or_else(PoisonError::into_inner);
    let carrier = config.carrier;
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
            Request::SetUp { mtu, carrier_ports } if can_have_ports(&carrier, carrier_ports) => {
                host.set_up(mtu, carrier_ports)
            }
            Request::SetUp { .. } => Err(Error::new("except such ports", io::ErrorKind::InvalidInput)),
            Request::SetMtu(mtu) => host.set_mtu(mtu),
            Request::Change(number) => look_up().inside(number).and_then(|inside| host.change(inside)),
            Request::End => host.end(),
            Request::OpenLine => open_line(&carrier).map(|line| file = Some(line)),
            Request::Load => {
                let (source, known) = (source.clone(), Arc::clone(&known));
                answer_later(&line, move || {
                    let loaded = source.ok_or_else(no_file).and_then(|it| load(&it, number));
                    Late::Loaded(loaded.map(|(loaded, config)| {
                        known.lock().unwrap_or_else(PoisonError::into_inner).add(number, config);
                        loaded
                    }))
                });
                continue;
            }
            Request::Resolve(name, port) => {
                let host = (name, port);
                if look_up().hosts.contains(&host) {
                    answer_later(&line, move || {
                        let (name, port) = host;
                        let found = crate::config::system_resolver(&name, port).unwrap_or_default();
                        Late::Resolved(name, port, found)
                    });
                } else {
                    tracing::error!("the daemon asks for a host that no configuration has");
                }
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
fn load(source: &Source, number: u64) -> Result<(Loaded, SiteConfig), String> {
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
    Ok((Loaded { number, files, hosts: hosts.into_inner(), keys }, config))
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

    /// A configuration of a UDP carrier.
    fn config(inside: &str, peer: &str) -> SiteConfig {
        let text = format!(
            "[inside]\naddress = [\"10.9.0.1/24\"]\n{inside}\n[carrier]\nurl = \"udp://:7000\"\n\
             [security]\nkey = \"pair.key\"\n[[peer]]\nname = \"field\"\naddress = \"{peer}\"\n"
        );
        let settings =
            crate::config::Settings::read(std::path::Path::new("/etc/thinair/sat.toml"), &text).unwrap();
        let surroundings = crate::config::Surroundings {
            runtime: None,
            state: PathBuf::new(),
            templates: &|_| unreachable!("there are none"),
            tariff: &|_| unreachable!("there is none"),
            resolve: &|_, port| Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))]),
        };
        crate::config::site_config(&settings, &surroundings).unwrap()
    }

    #[test]
    fn only_values_of_configurations_that_were_read_are_accepted() {
        let mut known = Known::new(&config("", "field.example:7000"));
        let host = |name: &str| (name.to_owned(), 7_000);
        assert!(
            known.hosts.contains(&host("field.example")) && !known.hosts.contains(&host("other.example"))
        );
        // Nothing was read again.
        assert!(known.inside(0).is_err() && known.inside(1).is_err());
        known.add(3, config("route = [\"10.30.0.0/16\"]", "other.example:7000"));
        assert_eq!(known.inside(3).unwrap().routes, [("10.30.0.0".parse().unwrap(), 16)]);
        assert!(known.hosts.contains(&host("field.example")) && known.hosts.contains(&host("other.example")));
        known.add(5, config("", "field.example:7000"));
        let error = words(&known.inside(3).unwrap_err());
        assert!(error.contains("reload it once more"), "{error}");
    }

    #[test]
    fn only_ports_of_the_carrier_stay_outside() {
        let carrier = config("", "192.0.2.1:7000").carrier;
        for (ports, is_possible) in [
            (None, true),
            (Some((7_000, 7_000)), true),
            (Some((7_000, 7_001)), true),
            (Some((6_999, 7_000)), true),
            (Some((7_001, 7_001)), false),
            (Some((7_000, 7_002)), false),
            (Some((1, 65_535)), false),
            (Some((7_000, 6_999)), false),
        ] {
            assert_eq!(can_have_ports(&carrier, ports), is_possible, "{ports:?}");
        }
    }
}
