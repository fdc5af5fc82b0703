//! Streams that are cut into segments of a size that suits the network behind them: a [`Proxy`] between two kernels.
//!
//! Programs stay as they are, on both sides. Whoever has a constrained network behind this machine lets streams come here
//! first; what goes on into that network is cut as a [`thinair_segment::Sizer`] says, with sockets that anybody may open
//! ([`thinair_os::tcp::segments`]).

mod cut;
mod proxy;
mod relay;
mod sizers;

pub use proxy::{Constrained, Ending, Progress, Proxy, ProxyError, Settings};
