//! The two hosts: a network namespace each, with a TUN device that is its end of the link.

use std::io;

use thinair_link::Side;
use thinair_os::{Error, Interface, Namespace, Route, Signal, Signals, Tun, TunKind};

use super::addresses;

/// What the interface is called in both namespaces; the system puts a number in.
const INTERFACE: &str = "link%d";

/// Pairs of namespaces that one machine may have at a time.
const MOST_PAIRS: usize = 1_000;

/// Which namespaces the link joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// New ones, which go when the link does.
    Create,
    /// Some that are there, by the names of `ip netns` or by path.
    Open {
        /// For [`Side::A`].
        a: String,
        /// For [`Side::B`].
        b: String,
    },
}

/// Two namespaces with an end of the link each. What was made goes on drop.
///
/// From [`open`](Self::open) on, signals that would end the process wait until [`run`](super::run) asks for them, so that
/// nothing is left behind.
#[derive(Debug)]
pub struct Ends {
    ends: [End; 2],
    // The last one to go.
    pub(super) signals: Signals,
}

#[derive(Debug)]
struct End {
    tun: Tun,
    namespace: Namespace,
}

impl Ends {
    /// Makes or opens the namespaces, and in each an interface that is up, with its addresses, and routes to the other
    /// side: with packets of at most so many octets for IPv4 and IPv6, and this congestion control of TCP.
    ///
    /// # Errors
    /// The caller may not (CAP_SYS_ADMIN, CAP_NET_ADMIN), there is no such namespace or congestion control, or the
    /// system lacks TUN.
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
        let end = |namespace, side| End::new(namespace, side, mtus, congestion);
        Ok(Self { ends: [end(a, Side::A)?, end(b, Side::B)?], signals })
    }

    /// The namespace of a side.
    pub fn namespace(&self, side: Side) -> &Namespace {
        &self.ends[side as usize].namespace
    }

    /// What to wait for, to hear of signals.
    pub const fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Whether a signal has come that asks to end, since this was asked last.
    pub fn is_interrupted(&self) -> bool {
        std::iter::from_fn(|| self.signals.poll()).any(|signal| matches!(signal, Signal::End { .. }))
    }

    /// The end of the link at that side.
    pub fn tun(&self, side: Side) -> &Tun {
        &self.ends[side as usize].tun
    }
}

impl End {
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

/// Two new namespaces: with names that nobody has, or without where names are not allowed.
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
    Err(Error::new("name two more network namespaces", io::ErrorKind::AlreadyExists))
}
