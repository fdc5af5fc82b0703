//! Everything is opened, what is not needed any more is given up, and then the loop begins.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thinair_os::privileges::{self, Account, Keep};
use thinair_os::{Error, EventLoop, Signals, Waker, clock};
use thinair_wire::time::Instant;

use super::control::ControlSocket;
use super::event_loop::{CONTROL, HELPER, INSIDE, OUTSIDE, SIGNALS, STATUS, WAKER};
use super::helper::{Helper, Source};
use super::inside::Inside;
use super::keys;
use super::notices::Notices;
use super::outside::Outside;
use super::recorder::Recorder;
use super::remembered::Remembered;
use super::run_folder::RunFolder;

use crate::live::{Feed, Live, LiveError};
use crate::mtu::{Budget, BudgetError};
use crate::seal::KeyFileError;
use crate::site::{BuildError, Site};
use crate::site_config::{Carrier, SiteConfig};
use crate::status::socket::StatusSocket;
use crate::status::{CarrierStatus, Identity, InsideStatus, Status};

/// Octets of the longest packet that an interface gives, with the header of a frame.
const LONGEST: usize = 65_536 + 14;

/// Who a daemon of root goes on as, if nobody says.
const NOBODY: &str = "nobody";

/// Why there is no tunnel, or no more.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system refused something.
    #[error(transparent)]
    Os(#[from] Error),
    /// There is no room for packets.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The configuration contradicts itself.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The key file.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Peers and keys.
    #[error("{0}")]
    Keys(String),
    /// Where epochs are kept.
    #[error("cannot use {}, where epochs are kept", .0.display())]
    State(PathBuf, #[source] io::Error),
    /// The page.
    #[error(transparent)]
    Page(#[from] LiveError),
    /// A capture.
    #[error("cannot write {}", .0.display())]
    Record(PathBuf, #[source] io::Error),
}

/// The live page, and who wakes the daemon for it.
pub(super) struct Page {
    pub(super) feed: Feed,
    pub(super) waker: Arc<Waker>,
    _live: Live,
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
    /// When the names of peers were looked up last.
    pub(super) lookups: BTreeMap<String, Instant>,
    pub(super) source: Option<Arc<Source>>,
    pub(super) control: Option<ControlSocket>,
    folder: Option<RunFolder>,
    pub(super) events: EventLoop,
    pub(super) signals: Signals,
    pub(super) status_socket: Option<StatusSocket>,
    pub(super) page: Option<Page>,
    pub(super) record_inside: Option<Recorder>,
    pub(super) record_outside: Option<Recorder>,
    /// Notices that were logged.
    pub(super) notices: Notices,
    /// Addresses of peers, for the next start.
    pub(super) remembered: Option<Remembered>,
    /// Room for a packet.
    pub(super) packet: Vec<u8>,
    /// Whether the interface, and room in the carrier, are waited for.
    pub(super) inside_waits: bool,
    pub(super) outside_waits: bool,
    /// Batches of packets in a row after which nothing was sent that was begun.
    pub(super) batches: u32,
    /// Whether all of a file is read.
    pub(super) stream_ended: bool,
    /// Whether nothing is left to do then: nothing is written.
    pub(super) ends_with_stream: bool,
    identity: Identity,
    started: Instant,
}

impl Daemon {
    /// Opens the carrier, the interface, and all the rest; and gives up the rights that it took.
    ///
    /// `folder`: of the tunnel, below `/run`; without it there is no socket to control it. `source`: of the configuration, to be
    /// read again.
    ///
    /// **Must be called before the process has other threads**: signals and rights are those of a thread.
    ///
    /// # Errors
    /// Something cannot be opened, or the configuration contradicts itself.
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
        let site = Site::new(started, config, &budget, seal, &mut random)?;
        let outside = Outside::open(&config.carrier, budget.largest_datagram)?;
        let inside = Inside::open(&config.inside, budget.mtu, outside.port(), &mut helper)?;
        let status_socket = config.seeing.status.as_deref().and_then(status_socket);
        let control = folder.as_ref().and_then(|folder| control_socket(folder.path()));
        let record = |path: &PathBuf, recorder: io::Result<Recorder>| {
            recorder.map_err(|why| RunError::Record(path.clone(), why))
        };
        let seeing = &config.seeing;
        let record_inside = seeing.pcap_inside.as_ref();
        let record_inside = record_inside
            .map(|path| record(path, Recorder::inside(path, config.inside.bridged)))
            .transpose()?;
        let record_outside = seeing.pcap_outside.as_ref();
        let record_outside = record_outside
            .map(|path| record(path, Recorder::outside(path, own(&config.carrier))))
            .transpose()?;

        let events = EventLoop::new(Duration::ZERO)?;
        events.add(inside.tun(), INSIDE)?;
        if let Some(file) = outside.readable() {
            events.add(file, OUTSIDE)?;
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
        let identity = Identity {
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
            },
            carrier: CarrierStatus {
                url: config.carrier.to_string(),
                mtu: u32::from(budget.carrier_mtu),
                overhead: u32::try_from(budget.overhead()).unwrap_or(u32::MAX),
                ..CarrierStatus::default()
            },
            security: config.security.to_string(),
        };
        let mut daemon = Self {
            site,
            inside,
            outside,
            helper,
            config: config.clone(),
            budget,
            lookups: BTreeMap::new(),
            source,
            control,
            folder,
            events,
            signals,
            status_socket,
            page: None,
            record_inside,
            record_outside,
            notices: Notices::default(),
            remembered,
            packet: vec![0; LONGEST],
            inside_waits: true,
            outside_waits: false,
            batches: 0,
            stream_ended: false,
            ends_with_stream: matches!(config.carrier, Carrier::File { to: None, .. }),
            identity,
            started,
        };
        daemon.give_up_rights(config)?;
        // Threads from here on.
        if let Some(address) = config.seeing.http {
            let waker = Arc::new(Waker::new()?);
            daemon.events.add(&*waker, WAKER)?;
            let ring = Arc::clone(&waker);
            let feed = Feed::waking(move || ring.ring());
            let live = Live::start(address, feed.clone())?;
            tracing::info!("the page is at http://{}/", live.address());
            daemon.page = Some(Page { feed, _live: live, waker });
        }
        Ok(daemon)
    }

    /// Goes on as the user of the configuration, or, if root has started it, as one who may nothing.
    fn give_up_rights(&self, config: &SiteConfig) -> Result<(), RunError> {
        // Limits of packets are routes, which change as long as it runs.
        let keep = if config.inside.segments.is_some() { Keep::Network } else { Keep::Nothing };
        let user = match &config.user {
            Some(user) => user,
            None if privileges::is_root() => NOBODY,
            // A service that was given some rights, and is not root.
            None => return Ok(privileges::become_account(&Account::own(), keep)?),
        };
        let account = Account::named(user)?;
        if privileges::is_root() {
            // For those who ask for the status, for epochs that are to be kept, for whoever starts it next time without
            // any rights.
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

    /// What the daemon tells of itself.
    pub(super) fn status(&self, now: Instant) -> Status {
        let mut identity = self.identity.clone();
        identity.inside.up = self.inside.is_there();
        let uptime = now.since(self.started).as_secs_f64();
        let mut status = self.site.status(now, identity, uptime, clock::of_this_process().as_secs_f64());
        status.segments = self.inside.segment_status();
        status.inside.mtu = self.inside.mtu().into();
        status.carrier.path_mtu = status.peers.iter().filter_map(|peer| peer.counters.path.mtu).min();
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

/// The status socket; none where it cannot be made, as packets matter more.
fn status_socket(path: &Path) -> Option<StatusSocket> {
    StatusSocket::bind(path).inspect_err(|error| tracing::warn!("no status socket: {error}")).ok()
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
