//! Parts of experiments: virtual time, ordered events, and random numbers that do not depend on the order of draws.
//!
//! This crate has virtual time ([`EventQueue`], [`VirtualClock`]) and randomness ([`RandomStreams`]), flows of protocol stacks
//! ([`ProtocolStack`], [`StackFlow`]), transport streams with senders and receivers ([`broadcast`]), and the [`emulator`] of a link,
//! in virtual and in real time. It has nothing of a particular paper, and no presentation of figures. In virtual time,
//! a seed and a plan determine every octet of the output.
//!
//! ```
//! use core::time::Duration;
//! use thinair_simulation::{EventQueue, Purpose, RandomStreams};
//! use thinair_wire::time::Instant;
//!
//! let mut arrivals = RandomStreams::new(1).stream(0, 0, Purpose::Arrivals);
//! let mut queue = EventQueue::new();
//! for packet in 0..3 {
//!     queue.schedule(Instant::from_nanos(arrivals.below(1_000_000)), packet);
//! }
//! let mut last = Instant::ZERO;
//! while let Some((now, packet)) = queue.next() {
//!     assert!(last <= now && queue.now() == now);
//!     if packet == 0 {
//!         queue.schedule(now + Duration::from_millis(1), 3);
//!     }
//!     last = now;
//! }
//! ```

#![deny(missing_docs)]

pub mod broadcast;
mod clock;
pub mod csma;
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod load;
pub mod network;
pub mod plan;
mod queue;
mod streams;
mod summary;
pub mod tcp;
mod work;

pub use clock::VirtualClock;
pub use queue::EventQueue;
pub use streams::{Purpose, RandomStream, RandomStreams};
pub use summary::Summary;
pub use thinair_emulator as emulator;
pub use thinair_emulator::{HeaderCycleError, ParseStackError, ProtocolStack, StackFlow, header_cycle};
pub use work::{WorkProgress, work};
