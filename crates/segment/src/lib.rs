//! Sizes of the segments of a stream over a network that cuts them into frames: acknowledgments and losses come in, a
//! size comes out.
//!
//! A long segment has fewer octets of headers and acknowledgments; but each of its frames can be lost, and then the whole
//! segment is sent again. This crate has four controls for that trade-off, one file each: [`Fixed`]; [`Dmss`] (Choi et
//! al., 2005), two sizes by frame error rate; [`Tssa`] (Ayadi and Awang, 2010), steps of a link MTU by losses; and
//! [`Adaptive`], developed for this project, the size with the least expected cost under the measured losses. The crate
//! does not depend on TCP, sockets or frames: a simulated TCP, a socket of a kernel and the MTU of a tunnel supply the
//! same values. It has no clock, allocates nothing, and does not panic on any input.
//!
//! ```
//! use core::time::Duration;
//! use thinair_segment::{LossDetection, SegmentSizer, Tssa};
//! use thinair_wire::time::Instant;
//!
//! let mut sizer = Tssa::default();
//! let now = Instant::ZERO;
//! assert_eq!(sizer.size(), 64);
//! for _ in 0..2 {
//!     sizer.on_acked(u32::from(sizer.size()), Some(Duration::from_millis(50)), now);
//! }
//! assert_eq!(sizer.size(), 256, "Fast Start doubles");
//! sizer.on_lost(LossDetection::Rto, now);
//! assert_eq!(sizer.size(), 128, "and ends with a loss");
//! ```

#![no_std]
#![deny(missing_docs)]

#[cfg(test)]
extern crate std;

mod adaptive;
mod dmss;
mod fixed;
mod network;
mod sizer;
mod tssa;

use core::time::Duration;

use thinair_wire::time::Instant;

pub use adaptive::{Adaptive, AdaptiveConfig};
pub use dmss::{Dmss, DmssConfig, Measure};
pub use fixed::Fixed;
pub use network::NetworkProperties;
pub use sizer::{ParseSizerError, Sizer};
pub use tssa::{AfterFirstLoss, FastStart, Tssa, TssaConfig, TssaPhase};

/// Way in which the sender detected a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// The retransmission timer expired.
    Rto,
    /// Acknowledgments of later segments indicated it (fast retransmit).
    Fast,
}

/// A control of segment sizes. **Read [`size`](Self::size) before each segment; report every acknowledgment and every
/// loss, in the order of their times.**
///
/// There is no other input: no bit error rate, no count that only a simulator has.
pub trait SegmentSizer {
    /// Reports an acknowledgment of `octets` new octets, with the round-trip time if the acknowledgment allows to measure
    /// it.
    fn on_acked(&mut self, octets: u32, rtt: Option<Duration>, now: Instant);

    /// Reports a segment that is considered lost.
    fn on_lost(&mut self, loss: LossDetection, now: Instant);

    /// Reports activity of the host's link layer since the previous report: `sent` transmissions of frames,
    /// retransmissions included; `failed` of them without an acknowledgment of the link layer; and, in addition, `busy`
    /// accesses to the channel that were given up. Optional: sockets of Linux do not report it.
    fn on_frames(&mut self, sent: u32, failed: u32, busy: u32, now: Instant) {
        let _ = (sent, failed, busy, now);
    }

    /// Returns the payload of the next segment, in octets without headers; at least 1.
    fn size(&self) -> u16;
}
