//! System calls of Linux.
//!
//! This crate provides [TUN and TAP devices](tun), [network namespaces](namespace), [addresses and routes](interface), an
//! [event loop](event_loop), [datagrams in batches](udp), also to groups, [serial lines](serial), [pipes](pipe),
//! [listening](tcp) for streams, [captures](capture) of frames, access limited to [a folder](folder),
//! [real-time](realtime) scheduling, [signals] as events, and the permanent loss of [privileges], also in [part](confinement). It
//! does not interpret packets. It holds unsafe code: calls that no library wraps suitably, and the code
//! of a child before it becomes another program.
//!
//! Linux only. Elsewhere the crate is empty, and dependent code reports that at run time ([`IS_SUPPORTED`]).
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

/// True if the crate supports this system.
pub const IS_SUPPORTED: bool = cfg!(target_os = "linux");

#[cfg(target_os = "linux")]
pub mod capture;
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod confinement;
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
pub mod unreachable;
#[cfg(target_os = "linux")]
mod waker;

#[cfg(target_os = "linux")]
pub use self::{
    capture::FrameCapture,
    error::{Error, Result},
    event_loop::{EventLoop, Interest},
    interface::{HostLimits, Interface, Route},
    namespace::Namespace,
    ping::Ping,
    realtime::RealTime,
    serial::Serial,
    signals::{Signal, Signals},
    tun::{Offloads, Tun, TunKind},
    waker::Waker,
};
