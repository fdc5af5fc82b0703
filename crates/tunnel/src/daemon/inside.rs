//! The interface of the system: made or found, given its addresses and routes, and found again when it was taken away.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use thinair_os::{Error, Interface, Namespace, Route, Tun, TunKind};
use thinair_wire::time::Instant;

use crate::plan;

/// How often an interface that is gone is looked for.
const RETRY: Duration = Duration::from_secs(1);

/// The interface, and what is known of its health.
#[derive(Debug)]
pub(super) struct Inside {
    plan: plan::Inside,
    mtu: u16,
    namespace: Option<Namespace>,
    /// Stays when the interface is taken away: by the same descriptor it is attached to again, in the namespace where it
    /// was.
    tun: Tun,
    retry_at: Option<Instant>,
}

/// What came of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A packet of so many octets.
    Packet(usize),
    /// None waits.
    Nothing,
    /// The interface is gone.
    Gone,
}

impl Inside {
    /// Makes the interface, or takes the persistent one of that name.
    pub(super) fn open(plan: &plan::Inside, mtu: u16) -> Result<Self, Error> {
        let kind = if plan.bridged { TunKind::Tap } else { TunKind::Tun };
        let namespace = plan.namespace.as_deref().map(Namespace::open).transpose()?;
        let tun = match &namespace {
            Some(namespace) => Tun::open_in(namespace, &plan.name, kind)?,
            None => Tun::open(&plan.name, kind)?,
        };
        let inside = Self { plan: plan.clone(), mtu, namespace, tun, retry_at: None };
        inside.set_up()?;
        Ok(inside)
    }

    /// Gives the interface its addresses and all the rest.
    fn set_up(&self) -> Result<(), Error> {
        let work = || set_up(&self.plan, self.mtu, self.tun.name());
        let result = match &self.namespace {
            Some(namespace) => namespace.within(work).and_then(|result| result),
            None => work(),
        };
        match result {
            // A persistent interface of the user that the daemon runs as: whoever made it has set it up.
            Err(error) if error.is_permission() => {
                tracing::info!(interface = self.name(), "taken as it is, without the right to set it up");
                Ok(())
            }
            result => result,
        }
    }

    /// What the interface is called.
    pub(super) fn name(&self) -> &str {
        self.tun.name()
    }

    /// The device, to be waited for.
    pub(super) fn tun(&self) -> &Tun {
        &self.tun
    }

    /// Whether the interface is there.
    pub(super) fn is_there(&self) -> bool {
        self.retry_at.is_none()
    }

    /// The next packet of the system.
    pub(super) fn read(&mut self, now: Instant, out: &mut [u8]) -> Read {
        match self.tun.read(out) {
            Ok(len) => Read::Packet(len),
            Err(error) if Tun::is_gone(&error) => {
                tracing::warn!(
                    interface = self.name(),
                    "the interface was taken away; looking for it every second"
                );
                self.retry_at = Some(now + RETRY);
                Read::Gone
            }
            // It is down, and may come up again; or there is no packet.
            Err(_) => Read::Nothing,
        }
    }

    /// Hands a packet to the system; whether it took it.
    pub(super) fn write(&self, packet: &[u8]) -> bool {
        self.tun.write(packet).is_ok()
    }

    /// When an interface that is gone is looked for.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Looks for an interface that is gone. Whether there is one again.
    pub(super) fn retry(&mut self, now: Instant) -> bool {
        if self.retry_at.is_none_or(|at| now < at) {
            return false;
        }
        self.retry_at = Some(now + RETRY);
        match self.tun.attach_again().and_then(|()| self.set_up()) {
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

/// Gives an interface of this thread's namespace what the plan says.
fn set_up(plan: &plan::Inside, mtu: u16, name: &str) -> Result<(), Error> {
    let interface = Interface::named(name)?;
    // Nobody has to be asked whether an address is taken: there is one neighbour, and it is told of ours.
    interface.quiet()?;
    interface.set_mtu(u32::from(mtu))?;
    if let Some(queue) = plan.queue {
        interface.set_queue(queue)?;
    }
    interface.up()?;
    for &(address, bits) in &plan.addresses {
        match interface.add_address(address, bits) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        interface.add_route(&Route {
            to: (network(address, bits), bits),
            from: Some(address),
            mtu: 0,
            congestion: None,
        })?;
    }
    for &(to, bits) in &plan.routes {
        let from = plan.addresses.iter().map(|&(own, _)| own).find(|own| own.is_ipv4() == to.is_ipv4());
        interface.add_route(&Route { to: (network(to, bits), bits), from, mtu: 0, congestion: None })?;
    }
    Ok(())
}

/// The address with all bits behind the first `bits` zero.
fn network(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_bits_of_its_hosts() {
        let of = |address: &str, bits| address.parse().map(|address| network(address, bits).to_string());
        assert_eq!(of("10.1.2.3", 30).as_deref(), Ok("10.1.2.0"));
        assert_eq!(of("10.1.2.3", 0).as_deref(), Ok("0.0.0.0"));
        assert_eq!(of("10.1.2.3", 32).as_deref(), Ok("10.1.2.3"));
        assert_eq!(of("fd00:1::5", 64).as_deref(), Ok("fd00:1::"));
        assert_eq!(of("fd00:1::5", 0).as_deref(), Ok("::"));
    }
}
