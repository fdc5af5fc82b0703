//! A [`Proxy`] between two kernels that cuts streams into segments of a suitable size for the network behind it.
//!
//! Programs on both sides are unchanged. A machine in front of a constrained network accepts streams; their continuation
//! into that network is cut into segments by a [`thinair_segment::Sizer`], with unprivileged sockets
//! ([`thinair_os::tcp::segments`]).

mod cut;
mod proxy;
mod relay;
mod sizers;

pub use proxy::{Constrained, Ending, Proxy, ProxyError, ProxySettings, StreamProgress};
