//! Which size the segments of a stream should have over a network that cuts them into frames: what was acknowledged and
//! what was lost comes in, a size comes out.
//!
//! A long segment has fewer octets of headers and acknowledgments; but each of its frames can be lost, and then all of
//! them go again. This crate knows that trade and four answers to it, a file each: [`Fixed`]; [`Dmss`] (Choi et al.,
//! 2005), two sizes by frame error rate; [`Tssa`] (Ayadi and Awang, 2010), steps of a link MTU by losses; and
//! [`Adaptive`], ours, the size that costs least by what is known of losses. It refuses to know TCP, sockets and
//! frames: a TCP in an experiment, a socket of a kernel and the MTU of a tunnel are driven by the same values. It holds
//! no clock, allocates nothing, and does not panic on any input.
//!
//! ```
//! use core::time::Duration;
//! use thinair_segment::{Loss, SegmentSizer, Tssa};
//! use thinair_wire::time::Instant;
//!
//! let mut sizer = Tssa::default();
//! let now = Instant::ZERO;
//! assert_eq!(sizer.size(), 64);
//! for _ in 0..2 {
//!     sizer.on_acked(u32::from(sizer.size()), Some(Duration::from_millis(50)), now);
//! }
//! assert_eq!(sizer.size(), 256, "Fast Start doubles");
//! sizer.on_lost(Loss::Rto, now);
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
pub use network::Network;
pub use sizer::{ParseSizerError, Sizer};
pub use tssa::{AfterFirstLoss, FastStart, Phase, Tssa, TssaConfig};

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The retransmission timer has run out.
    Rto,
    /// Acknowledgments of what was sent later have told it.
    Fast,
}

/// A control of segment sizes. **Ask for [`size`](Self::size) before each segment; tell it of every acknowledgment and every
/// loss, in the order of their times.**
///
/// There is no other input: no bit error rate, no count that only a simulator has.
pub trait SegmentSizer {
    /// An acknowledgment of something new has arrived: of so many octets, after such a round trip, if it tells one.
    fn on_acked(&mut self, octets: u32, rtt: Option<Duration>, now: Instant);

    /// A segment is taken for lost.
    fn on_lost(&mut self, loss: Loss, now: Instant);

    /// What the link layer of this host has done since it was told last: `sent` transmissions of frames, retransmissions
    /// included; `failed` of them without an acknowledgment of the link layer; and, beside them, `busy` accesses to the
    /// channel that were given up. Optional: sockets of Linux do not tell.
    fn on_frames(&mut self, sent: u32, failed: u32, busy: u32, now: Instant) {
        let _ = (sent, failed, busy, now);
    }

    /// Octets of payload of the next segment, without headers; at least 1.
    fn size(&self) -> u16;
}
