//! System calls, and nothing else.
//!
//! This crate knows how Linux is asked: for [TUN and TAP devices](tun), for [network namespaces](namespace), for
//! [addresses and routes](interface), to [wait](event_loop) until a packet comes or a point in time is reached, to carry
//! [datagrams in batches](udp), to groups too, or octets on a [serial line](serial) or in [pipes](pipe), to [listen](tcp)
//! for streams, to [capture] frames, to stay [in a folder](folder), to run [before everything
//! else](realtime), to say that a [signal](signals) has come, and to take [privileges] away for good. It refuses to know
//! what is in the packets. It holds unsafe code: calls that no library wraps, or not as they are needed
//! here, and what a child does before it becomes another program.
//!
//! Linux only. Elsewhere the crate is empty, and whoever needs it says so at run time ([`IS_SUPPORTED`]).
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # fn example() -> Result<(), thinair_os::Error> {
//! use thinair_os::{Namespace, Tun, TunKind};
//!
//! let namespace = Namespace::create("example")?;
//! let tun = Tun::open_in(&namespace, "link0", TunKind::Tun)?;
//! # Ok(()) }
//! ```

#![deny(missing_docs)]

/// Whether this system is one that the crate knows.
pub const IS_SUPPORTED: bool = cfg!(target_os = "linux");

#[cfg(target_os = "linux")]
pub mod capture;
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
pub mod event_loop;
#[cfg(target_os = "linux")]
pub mod folder;
#[cfg(target_os = "linux")]
pub mod helper;
#[cfg(target_os = "linux")]
pub mod interface;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
mod ping;
#[cfg(target_os = "linux")]
pub mod pipe;
#[cfg(target_os = "linux")]
pub mod privileges;
#[cfg(target_os = "linux")]
pub mod realtime;
#[cfg(target_os = "linux")]
pub mod resource;
#[cfg(target_os = "linux")]
pub mod rule;
#[cfg(target_os = "linux")]
pub mod serial;
#[cfg(target_os = "linux")]
pub mod signals;
#[cfg(target_os = "linux")]
pub mod tcp;
#[cfg(target_os = "linux")]
pub mod tun;
#[cfg(target_os = "linux")]
pub mod udp;
#[cfg(target_os = "linux")]
mod waker;

#[cfg(target_os = "linux")]
pub use self::{
    capture::Capture,
    error::{Error, Result},
    event_loop::{EventLoop, Interest},
    interface::{Interface, Limits, Route},
    namespace::Namespace,
    ping::Ping,
    realtime::RealTime,
    serial::Serial,
    signals::{Signal, Signals},
    tun::{Tun, TunKind},
    waker::Waker,
};
