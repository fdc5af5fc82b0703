//! The network interface: created or opened, configured by the helper, and opened again after it was removed.

use std::io;
use std::time::Duration;

use thinair_os::rule::PortRange;
use thinair_os::{Error, HostLimits, Interface, Namespace, Offloads, Tun, TunKind, clock};
use thinair_wire::time::Instant;

use super::helper::Helper;
use crate::offload::{Coalescer, HEADER, Splitter, VirtioHeader};
use crate::segments::Segments;
use crate::site::Receipt;
use crate::site_config;
use crate::status::SegmentStatus;

/// Interval of attempts to open a lost interface.
const RETRY: Duration = Duration::from_secs(1);

/// Length of the longest packet of an interface, with the header of a frame and a VLAN tag, in octets.
const LONGEST: usize = 65_535 + 18;

/// The interface, and its state.
#[derive(Debug)]
pub(super) struct Inside {
    mtu: u16,
    /// True if the MTU could not be changed.
    has_mtu_of_its_own: bool,
    /// Port of the carrier's socket, whose datagrams must not enter the interface.
    carrier_ports: Option<PortRange>,
    namespace: Option<Namespace>,
    /// Kept when the interface is removed: the same descriptor attaches to it again, in its former namespace.
    tun: Tun,
    /// Octets of the last read, and the packets in it that were not taken yet.
    buffer: Vec<u8>,
    splitter: Splitter,
    /// Packets to be written as one. `None`: the device has no offloads.
    coalescer: Option<Coalescer<Receipt>>,
    /// Packets that the system refused.
    refused: Vec<Receipt>,
    retry_at: Option<Instant>,
    /// Control of the size of TCP segments, if configured.
    segments: Option<Controlled>,
}

/// Control of the size of TCP segments, and the route limits that enforce it.
#[derive(Debug)]
struct Controlled {
    segments: Segments,
    /// `None` after a failure.
    limits: Option<HostLimits>,
}

/// Outcome of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A packet.
    Packet(&'a [u8]),
    /// A packet that is malformed.
    Malformed,
    /// No packet waits.
    Nothing,
    /// The interface was removed.
    Gone,
}

impl Inside {
    /// Creates the interface, or opens the persistent one of that name. `offloads`: use those of the system, if it has any.
    pub(super) fn open(
        config: &site_config::Inside,
        offloads: bool,
        mtu: u16,
        carrier_ports: Option<PortRange>,
        helper: &mut Helper,
    ) -> Result<Self, Error> {
        let kind = if config.bridged { TunKind::Tap } else { TunKind::Tun };
        let namespace = config.namespace.as_deref().map(Namespace::open).transpose()?;
        let open = || {
            let offloaded = offloads.then(|| Tun::open_offloaded(&config.name, kind).ok()).flatten();
            offloaded.map_or_else(|| Tun::open(&config.name, kind), Ok)
        };
        let tun = match &namespace {
            Some(namespace) => namespace.within(open).and_then(|tun| tun),
            None => open(),
        };
        let tun = tun.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::ResourceBusy => Error::new(
                format!(
                    "use `{}`: an interface of another kind, or of another program; give another --tun",
                    config.name
                ),
                error.kind(),
            ),
            _ => error,
        })?;
        let mut inside = Self {
            mtu,
            has_mtu_of_its_own: false,
            carrier_ports,
            namespace,
            buffer: vec![0; LONGEST],
            splitter: Splitter::new(config.bridged),
            coalescer: coalescer(&tun, config.bridged),
            refused: Vec::new(),
            tun,
            retry_at: None,
            segments: None,
        };
        inside.set_up(helper)?;
        if let Some(sizer) = &config.segments {
            let own = config.addresses.iter().map(|(address, _)| *address).collect();
            let segments = Segments::new(sizer.clone(), own);
            let limits = inside.within(|name| Interface::named(name)?.limits())?;
            inside.segments = Some(Controlled { segments, limits: Some(limits) });
        }
        Ok(inside)
    }

    /// Runs `work` with the name of the interface, in its namespace.
    fn within<T: Send>(&self, work: impl FnOnce(&str) -> Result<T, Error> + Send) -> Result<T, Error> {
        match &self.namespace {
            Some(namespace) => namespace.within(|| work(self.tun.name())).and_then(|result| result),
            None => work(self.tun.name()),
        }
    }

    /// Configures the interface.
    fn set_up(&self, helper: &mut Helper) -> Result<(), Error> {
        self.unless_forbidden(helper.set_up(self.mtu, self.carrier_ports))
    }

    /// Ignores a refusal for a persistent interface that an unprivileged daemon uses: its creator has
    /// configured it.
    fn unless_forbidden(&self, done: Result<(), Error>) -> Result<(), Error> {
        match done {
            Err(error) if error.is_permission() => {
                tracing::info!(interface = self.name(), "taken as it is, without the right to set it up");
                Ok(())
            }
            result => result,
        }
    }

    /// MTU of the interface, in octets.
    pub(super) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Name of the interface.
    pub(super) fn name(&self) -> &str {
        self.tun.name()
    }

    /// The device, to wait for.
    pub(super) fn tun(&self) -> &Tun {
        &self.tun
    }

    /// True if the interface exists.
    pub(super) fn is_there(&self) -> bool {
        self.retry_at.is_none()
    }

    /// Offloads of the interface.
    pub(super) fn offloads(&self) -> Offloads {
        self.tun.offloads()
    }

    /// True if [`read`](Self::read) has a packet without waiting.
    pub(super) fn has_more(&self) -> bool {
        !self.splitter.is_done()
    }

    /// The next packet from the system.
    pub(super) fn read(&mut self, now: Instant) -> Read<'_> {
        if self.splitter.is_done() {
            match self.fill(now) {
                Read::Packet(_) => {}
                other => return other,
            }
        }
        let Some(place) = self.splitter.next(&mut self.buffer) else { return Read::Malformed };
        let packet = self.buffer.get(place).unwrap_or_default();
        if let Some(controlled) = &mut self.segments {
            controlled.segments.sent(now, packet);
        }
        Read::Packet(packet)
    }

    /// Fills the buffer. [`Read::Packet`]: there is a packet in it.
    fn fill(&mut self, now: Instant) -> Read<'static> {
        let mut header = [0; HEADER];
        let read = match self.coalescer {
            Some(_) => self.tun.read_offloaded(&mut header, &mut self.buffer),
            None => self.tun.read(&mut self.buffer),
        };
        match read {
            Ok(len) => {
                let packet = self.buffer.get_mut(..len).unwrap_or_default();
                match self.splitter.begin(&VirtioHeader::read(header), packet) {
                    Ok(()) => Read::Packet(&[]),
                    Err(error) => {
                        tracing::debug!(%error, "dropped");
                        Read::Malformed
                    }
                }
            }
            Err(error) if Tun::is_gone(&error) => {
                tracing::warn!(
                    interface = self.name(),
                    "the interface was taken away; looking for it every second"
                );
                self.retry_at = Some(now + RETRY);
                Read::Gone
            }
            // The interface is down, and may come up again; or no packet waits.
            Err(_) => Read::Nothing,
        }
    }

    /// Passes a packet to the system, at the latest with the next [`flush`](Self::flush).
    pub(super) fn write(&mut self, packet: &[u8], receipt: Receipt) {
        let Self { tun, coalescer, refused, segments, .. } = self;
        if let Some(controlled) = segments {
            controlled.segments.received(clock::now(), packet);
        }
        match coalescer {
            Some(coalescer) => coalescer.push(packet, receipt, &mut writer(tun, refused)),
            None if tun.write(packet).is_err() => refused.push(receipt),
            None => {}
        }
    }

    /// Passes all packets to the system that wait for others of their flow.
    pub(super) fn flush(&mut self) {
        let Self { tun, coalescer: Some(coalescer), refused, .. } = self else { return };
        coalescer.flush(&mut writer(tun, refused));
    }

    /// The next packet that the system refused.
    pub(super) fn next_refused(&mut self) -> Option<Receipt> {
        self.refused.pop()
    }

    /// Sets changed packet limits in the system. Returns the smallest limit if one has changed.
    pub(super) fn tell_limits(&mut self) -> Option<u16> {
        let Controlled { segments, limits } = self.segments.as_mut()?;
        let mut has_changed = false;
        while let Some(limit) = segments.poll() {
            has_changed = true;
            let Some(open) = limits else { continue };
            tracing::debug!(host = %limit.host, octets = limit.octets, "longest packet");
            let told = match limit.octets {
                Some(octets) => open.set(limit.host, Some(limit.own), octets.into()),
                None => open.remove(limit.host),
            };
            if let Err(error) = told {
                tracing::error!(%error, "the size of TCP segments is not controlled any more");
                *limits = None;
            }
        }
        segments.shortest_limit().filter(|_| has_changed)
    }

    /// State of the control of segment sizes.
    pub(super) fn segment_status(&self) -> Vec<SegmentStatus> {
        self.segments.as_ref().map(|controlled| controlled.segments.status()).unwrap_or_default()
    }

    /// Removes all limits.
    pub(super) fn take_limits_back(&mut self) {
        let Some(Controlled { segments, limits: Some(limits) }) = &mut self.segments else { return };
        for limit in segments.told() {
            if let Err(error) = limits.remove(limit.host) {
                tracing::debug!(%error, "a limit is gone already");
            }
        }
    }

    /// Changes the MTU of the interface, in octets, if permitted.
    pub(super) fn set_mtu(&mut self, octets: u16, helper: &mut Helper) {
        if self.mtu == octets {
            return;
        }
        match helper.set_mtu(octets) {
            Ok(()) => {
                self.mtu = octets;
                tracing::info!(octets, "the MTU of the interface follows the path");
            }
            // Logged once only; longer packets are sent in segments.
            Err(error) if std::mem::replace(&mut self.has_mtu_of_its_own, true) => {
                tracing::debug!(octets, %error, "the MTU of the interface stays");
            }
            Err(error) => {
                tracing::info!(octets, %error, "the MTU of the interface stays; longer packets go in segments");
            }
        }
    }

    /// Time of the next attempt to open a lost interface.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Tries to open a lost interface. Returns whether it exists again.
    pub(super) fn retry(&mut self, now: Instant, helper: &mut Helper) -> bool {
        if self.retry_at.is_none_or(|at| now < at) {
            return false;
        }
        self.retry_at = Some(now + RETRY);
        match self.tun.attach_again().and_then(|()| self.set_up(helper)) {
            Ok(()) => {
                tracing::info!(interface = self.name(), "the interface is back");
                self.retry_at = None;
                true
            }
            Err(error) => {
                tracing::debug!(%error, "there is no interface yet");
                false
            }
        }
    }
}

/// Returns a coalescer for a device with offloads.
fn coalescer(tun: &Tun, bridged: bool) -> Option<Coalescer<Receipt>> {
    match tun.offloads() {
        Offloads::None => None,
        Offloads::Tcp => Some(Coalescer::new(bridged, false)),
        Offloads::TcpAndUdp => Some(Coalescer::new(bridged, true)),
    }
}

/// Writes to the device, and keeps what it refuses.
fn writer(tun: &Tun, refused: &mut Vec<Receipt>) -> impl FnMut(&VirtioHeader, &[u8], &[Receipt]) {
    |header, octets, receipts| {
        if tun.write_offloaded(&header.octets(), octets).is_err() {
            refused.extend_from_slice(receipts);
        }
    }
}
