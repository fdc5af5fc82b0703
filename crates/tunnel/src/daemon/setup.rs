//! Start of the daemon: all files and sockets are opened, then privileges are dropped.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thinair_os::privileges::{self, Account, Keep};
use thinair_os::{Error, EventLoop, Offloads, Signals, clock};
use thinair_wire::time::Instant;

use super::control::ControlSocket;
use super::event_loop::{CONTROL, HELPER, INSIDE, OUTSIDE, PROBER, SIGNALS, STATUS};
use super::helper::{Helper, Source};
use super::inside::Inside;
use super::keys;
use super::notices::Notices;
use super::outside::Outside;
use super::prober::Prober;
use super::recorder::Recorder;
use super::reload::has_names;
use super::remembered::Remembered;
use super::run_folder::RunFolder;

use crate::key_file::KeyFileError;
use crate::mtu::{Budget, BudgetError};
use crate::site::{BuildError, Site};
use crate::site_config::{Carrier, SiteConfig};
use crate::status::socket::StatusSocket;
use crate::status::{CarrierStatus, History, Identity, IdleBudgetStatus, InsideStatus, Status};

/// Default user of a daemon that root starts.
const NOBODY: &str = "nobody";

/// Error that prevents or ends a tunnel.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system refused something.
    #[error(transparent)]
    Os(#[from] Error),
    /// A signal asked to end before the carrier was open.
    #[error("ended before the carrier was open")]
    Ended,
    /// There is no room for packets.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The configuration contradicts itself.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The key file is invalid.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Peers and keys do not match.
    #[error("{0}")]
    Keys(String),
    /// The folder of epochs cannot be used.
    #[error("cannot use {}, where epochs are kept", .0.display())]
    State(PathBuf, #[source] io::Error),
    /// A capture cannot be written.
    #[error("cannot write {}", .0.display())]
    Record(PathBuf, #[source] io::Error),
}

/// A tunnel that is open.
pub struct Daemon {
    pub(super) site: Site,
    pub(super) inside: Inside,
    pub(super) outside: Outside,
    pub(super) helper: Helper,
    /// The configuration in force.
    pub(super) config: SiteConfig,
    pub(super) budget: Budget,
    /// True if a peer has a host name.
    pub(super) has_names: bool,
    /// Time of the last lookup of each peer's name.
    pub(super) lookups: BTreeMap<String, Instant>,
    pub(super) source: Option<Arc<Source>>,
    pub(super) control: Option<ControlSocket>,
    folder: Option<RunFolder>,
    pub(super) events: EventLoop,
    pub(super) signals: Signals,
    pub(super) status_socket: Option<StatusSocket>,
    pub(super) record_inside: Option<Recorder>,
    pub(super) record_outside: Option<Recorder>,
    /// Notices that were logged.
    pub(super) notices: Notices,
    /// Addresses of peers, for the next start.
    pub(super) remembered: Option<Remembered>,
    /// Second socket, from which timeouts of NATs are probed. `None`: they are not.
    pub(super) prober: Option<Prober>,
    /// True if the loop waits for packets of the interface, and for room in the carrier.
    pub(super) inside_waits: bool,
    pub(super) outside_waits: bool,
    /// Batches of packets in a row after which unfinished datagrams were not sent.
    pub(super) batches: u32,
    /// True if the input file has ended.
    pub(super) stream_ended: bool,
    /// True if the tunnel ends with its input, as it has no output.
    pub(super) ends_with_stream: bool,
    identity: Identity,
    started: Instant,
    history: History,
}

impl Daemon {
    /// Opens the carrier, the interface, and all other files, and drops privileges.
    ///
    /// `folder`: that of the tunnel, below `/run`; without it there is no control socket. `source`: the
    /// source of the configuration, to read it again.
    ///
    /// **Must be called before the process has other threads**, as signals and privileges are those of a
    /// thread.
    ///
    /// # Errors
    /// Something cannot be opened, or the configuration is contradictory.
    pub fn open(
        config: &SiteConfig,
        folder: Option<RunFolder>,
        source: Option<Arc<Source>>,
    ) -> Result<Self, RunError> {
        let signals = Signals::take()?;
        let started = clock::now();
        let budget = Budget::of(config)?;
        let place = folder.as_ref().map(|folder| folder.path().to_owned());
        let mut helper = Helper::start(config, place, source.clone())?;
        let mut random = keys::SystemRandom;
        let remembered = Remembered::open(config);
        let seal = keys::seal(started, config, &budget, remembered.as_ref())?;
        let mut site = Site::new(started, config, &budget, seal, &mut random)?;
        let outside = match Outside::open(&config.carrier, budget.largest_datagram, config.offloads, &signals)
        {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                helper.end_cleanly();
                return Err(RunError::Ended);
            }
            opened => opened?,
        };
        let port = outside.port();
        let prober = port.and_then(|port| prober(config, port));
        let ports = port.map(|port| prober.as_ref().map_or((port, port), |prober| prober.with(port)));
        if let Some(prober) = &prober {
            prober.remind(started, &mut site);
        }
        // Other carriers are slower than one packet at a time.
        let offloads = config.offloads && matches!(config.carrier, Carrier::Udp { .. });
        let inside = Inside::open(&config.inside, offloads, budget.mtu, ports, &mut helper)?;
        let status_socket = config.seeing.status.as_deref().and_then(status_socket);
        let control = folder.as_ref().and_then(|folder| control_socket(folder.path()));
        let record_inside =
            record(&config.seeing.pcap_inside, |path| Recorder::inside(path, config.inside.bridged))?;
        let record_outside =
            record(&config.seeing.pcap_outside, |path| Recorder::outside(path, own(&config.carrier)))?;

        let events = EventLoop::new(Duration::ZERO)?;
        events.add(inside.tun(), INSIDE)?;
        if let Some(file) = outside.readable() {
            events.add(file, OUTSIDE)?;
        }
        if let Some(prober) = &prober {
            events.add(prober, PROBER)?;
        }
        events.add(&signals, SIGNALS)?;
        if let Some(socket) = &status_socket {
            events.add(socket, STATUS)?;
        }
        if let Some(socket) = &control {
            events.add(socket, CONTROL)?;
        }
        if let Some(socket) = helper.as_fd() {
            events.add(socket, HELPER)?;
        }
        for line in budget.to_string().lines() {
            tracing::info!("{line}");
        }
        tracing::info!(interface = inside.name(), "the tunnel is open");
        let identity = identity(config, &inside, &budget);
        let daemon = Self {
            site,
            inside,
            outside,
            helper,
            has_names: has_names(config),
            config: config.clone(),
            budget,
            lookups: BTreeMap::new(),
            source,
            control,
            folder,
            events,
            signals,
            status_socket,
            record_inside,
            record_outside,
            notices: Notices::default(),
            remembered,
            prober,
            inside_waits: true,
            outside_waits: false,
            batches: 0,
            stream_ended: false,
            ends_with_stream: matches!(config.carrier, Carrier::File { to: None, .. }),
            identity,
            started,
            history: History::new(),
        };
        daemon.give_up_rights(config)?;
        Ok(daemon)
    }

    /// Becomes the user of the configuration or, if root has started it, an unprivileged user.
    fn give_up_rights(&self, config: &SiteConfig) -> Result<(), RunError> {
        // Packet limits are routes, which change while the tunnel is running.
        let keep = if config.inside.segments.is_some() { Keep::Network } else { Keep::Nothing };
        let user = match &config.user {
            Some(user) => user,
            None if privileges::is_root() => NOBODY,
            // A service with some privileges that is not root.
            None => return Ok(privileges::become_account(&Account::own(), keep)?),
        };
        let account = Account::named(user)?;
        if privileges::is_root() {
            // Access for clients of the status, for stored epochs, and for a later start without
            // privileges.
            if let Some(folder) = &self.folder {
                folder
                    .give_to(&account)
                    .map_err(|why| Error::new("hand over the folder of the tunnel", why))?;
            }
            if let Some(socket) = &self.status_socket {
                socket
                    .give_to(account.uid(), account.gid())
                    .map_err(|why| Error::new("hand over the status socket", why))?;
            }
            keys::give_to(config, &account)?;
            if let Some(remembered) = &self.remembered {
                remembered.give_to(&account);
            }
            self.inside.tun().set_owner(account.uid())?;
        }
        privileges::become_account(&account, keep)?;
        match keep {
            Keep::Nothing => tracing::info!(user, "all other rights are given up"),
            Keep::Network => tracing::info!(
                user,
                "all other rights are given up, but for that to change routes and interfaces (CAP_NET_ADMIN), by which the \
                 size of TCP segments is controlled"
            ),
        }
        Ok(())
    }

    /// Path of the status socket. `None`: there is none.
    pub fn status_socket(&self) -> Option<&Path> {
        self.status_socket.as_ref().map(StatusSocket::path)
    }

    /// Adds a sample to the history, if one is due.
    pub(super) fn note_history(&mut self, now: Instant) {
        let uptime = now.since(self.started).as_secs_f64();
        if self.history.is_due(uptime) {
            self.history.add(self.site.sample(uptime));
        }
    }

    /// Returns the status of the daemon.
    pub(super) fn status(&self, now: Instant) -> Status {
        let mut identity = self.identity.clone();
        identity.inside.up = self.inside.is_there();
        let uptime = now.since(self.started).as_secs_f64();
        let mut status = self.site.status(now, identity, uptime, clock::of_this_process().as_secs_f64());
        status.segments = self.inside.segment_status();
        status.history = self.history.samples();
        status.inside.mtu = self.inside.mtu().into();
        status.carrier.path_mtu = self.site.path_mtu();
        status.carrier.offloads = self.outside.offloads().map(str::to_owned).collect();
        if let Some(memory) = self.outside.memory() {
            status.carrier.receive_buffer_octets = Some(memory.receive_buffer.into());
            status.carrier.send_buffer_octets = Some(memory.send_buffer.into());
            status.carrier.receive_buffer_errors = Some(memory.drops.into());
        }
        if let Some(line) = self.outside.line_status() {
            status.parts.insert("line".to_owned(), line);
        }
        status
    }
}

/// Opens the status socket. `None` if that fails, as carrying packets is more important.
fn status_socket(path: &Path) -> Option<StatusSocket> {
    StatusSocket::bind(path).inspect_err(|error| tracing::warn!("no status socket: {error}")).ok()
}

/// Opens the second socket, if timeouts of NATs are probed. `None` if that fails: keepalives then have the usual interval.
fn prober(config: &SiteConfig, carrier_port: u16) -> Option<Prober> {
    let listen = own(&config.carrier).filter(|_| config.learns_keepalive())?;
    let opened = Prober::open(listen, carrier_port, &config.state);
    let warn =
        |error: &io::Error| tracing::warn!("no port beside {carrier_port} for probes of the NAT: {error}");
    opened.inspect_err(warn).ok()
}

fn control_socket(folder: &Path) -> Option<ControlSocket> {
    let bound = ControlSocket::bind(folder);
    bound.inspect_err(|error| tracing::warn!("no socket for `tunnel reload` and `down`: {error}")).ok()
}

fn own(carrier: &Carrier) -> Option<SocketAddr> {
    match carrier {
        Carrier::Udp { listen, .. } => Some(*listen),
        Carrier::Serial { .. } | Carrier::File { .. } => None,
    }
}

/// Returns the part of the status that stays the same while the tunnel is open.
fn identity(config: &SiteConfig, inside: &Inside, budget: &Budget) -> Identity {
    Identity {
        site: keys::site_name(config),
        inside: InsideStatus {
            name: inside.name().to_owned(),
            bridged: config.inside.bridged,
            mtu: u32::from(budget.mtu),
            addresses: config
                .inside
                .addresses
                .iter()
                .map(|(address, bits)| format!("{address}/{bits}"))
                .collect(),
            up: true,
            offloads: offload_names(inside.offloads()),
        },
        carrier: CarrierStatus {
            url: config.carrier.to_string(),
            mtu: u32::from(budget.carrier_mtu),
            overhead: u32::try_from(budget.overhead()).unwrap_or(u32::MAX),
            idle_budget: config.idle.as_ref().map(IdleBudgetStatus::of),
            ..CarrierStatus::default()
        },
        security: config.security.to_string(),
    }
}

/// Names of the offloads of an interface.
fn offload_names(offloads: Offloads) -> Vec<String> {
    let names: &[&str] = match offloads {
        Offloads::None => &[],
        Offloads::Tcp => &["tso"],
        Offloads::TcpAndUdp => &["tso", "uso"],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Starts to write a capture, if there is a path for it.
fn record(
    path: &Option<PathBuf>,
    start: impl FnOnce(&Path) -> io::Result<Recorder>,
) -> Result<Option<Recorder>, RunError> {
    let Some(path) = path else { return Ok(None) };
    start(path).map(Some).map_err(|why| RunError::Record(path.clone(), why))
}
