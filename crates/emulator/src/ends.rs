//! The two hosts: a network namespace each, with a TUN device as its end of the link.

use std::io;

use thinair_link::Side;
use thinair_os::{Error, Interface, Namespace, Route, Signal, Signals, Tun, TunKind};

use super::addresses;

/// Name of the interface in both namespaces; the system replaces `%d` by a number.
const INTERFACE: &str = "link%d";

/// Largest number of pairs of namespaces on one machine at a time.
const MOST_PAIRS: usize = 1_000;

/// The namespaces that the link joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// New ones, removed with the link.
    Create,
    /// Existing ones, by the names of `ip netns` or by path.
    Open {
        /// Namespace of [`Side::A`].
        a: String,
        /// Namespace of [`Side::B`].
        b: String,
    },
}

/// Two namespaces with an end of the link each. Dropping it removes everything that it created.
///
/// From [`open`](Self::open) on, signals that would end the process are blocked until [`run`](super::run) reads them, so
/// that nothing is left behind.
#[derive(Debug)]
pub struct LinkEnds {
    ends: [HostEnd; 2],
    // Dropped last.
    pub(super) signals: Signals,
}

#[derive(Debug)]
struct HostEnd {
    tun: Tun,
    namespace: Namespace,
}

impl LinkEnds {
    /// Creates or opens the namespaces, and in each an interface that is up, with its addresses and routes to the other
    /// side. `mtus` are the MTUs of the routes of IPv4 and IPv6, in octets; `congestion` is the congestion control of
    /// TCP.
    ///
    /// # Errors
    /// Missing privileges (CAP_SYS_ADMIN, CAP_NET_ADMIN), an unknown namespace or congestion control, or a system without
    /// TUN.
    pub fn open(place: &Where, mtus: (u32, u32), congestion: &str) -> Result<Self, Error> {
        let signals = Signals::take()?;
        let (a, b) = match place {
            Where::Create => create()?,
            Where::Open { a, b } => (Namespace::open(a)?, Namespace::open(b)?),
        };
        if *place == Where::Create {
            a.quiet()?;
            b.quiet()?;
        }
        let end = |namespace, side| HostEnd::new(namespace, side, mtus, congestion);
        Ok(Self { ends: [end(a, Side::A)?, end(b, Side::B)?], signals })
    }

    /// Returns the namespace of a side.
    pub fn namespace(&self, side: Side) -> &Namespace {
        &self.ends[side as usize].namespace
    }

    /// Returns the signals, to wait for them.
    pub const fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Returns true if a signal that asks to end has arrived since the previous call.
    pub fn is_interrupted(&self) -> bool {
        std::iter::from_fn(|| self.signals.poll()).any(|signal| matches!(signal, Signal::End { .. }))
    }

    /// Returns the end of the link at a side.
    pub fn tun(&self, side: Side) -> &Tun {
        &self.ends[side as usize].tun
    }
}

impl HostEnd {
    fn new(namespace: Namespace, side: Side, mtus: (u32, u32), congestion: &str) -> Result<Self, Error> {
        let tun = Tun::open_in(&namespace, INTERFACE, TunKind::Tun)?;
        namespace.within(|| {
            let interface = Interface::named(tun.name())?;
            interface.quiet()?;
            // The route of IPv4 may allow less, but an interface with less has no IPv6.
            interface.set_mtu(mtus.0.max(mtus.1))?;
            interface.up()?;
            let both = addresses(side).into_iter().zip(addresses(side.other()));
            for (((address, bits), (other, _)), mtu) in both.zip([mtus.0, mtus.1]) {
                interface.add_address(address, bits)?;
                let whole = if other.is_ipv4() { 32 } else { 128 };
                let congestion = Some(congestion.to_owned());
                interface.add_route(&Route { to: (other, whole), from: Some(address), mtu, congestion })?;
            }
            Ok(())
        })??;
        Ok(Self { tun, namespace })
    }
}

/// Creates two namespaces with unused names, or without names where the system does not allow them.
fn create() -> Result<(Namespace, Namespace), Error> {
    for number in 0..MOST_PAIRS {
        let number = if number == 0 { String::new() } else { number.to_string() };
        let pair = ["a", "b"].map(|side| Namespace::create(&format!("thinair{number}-{side}")));
        match pair {
            [Ok(a), Ok(b)] => return Ok((a, b)),
            [Err(error), _] | [_, Err(error)] if error.kind() == io::ErrorKind::AlreadyExists => {}
            [Err(error), _] | [_, Err(error)] if error.is_permission() => {
                return Ok((Namespace::create_unnamed()?, Namespace::create_unnamed()?));
            }
            [Err(error), _] | [_, Err(error)] => return Err(error),
        }
    }
    Err(Error::new("find unused names for two network namespaces", io::ErrorKind::AlreadyExists))
}
