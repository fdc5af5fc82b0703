//! What a constrained link does to packets.
//!
//! This crate knows loss ([`loss`]), damage ([`bit_errors`]), what a link layer does with damage ([`integrity`]),
//! duplicates ([`duplicate`]) and order ([`reorder`], [`mod@line`]), and puts them together in a [`Link`]. It refuses to
//! know what the packets are, and real or virtual time. `no_std`, no allocation, no panic on octets from outside.
//!
//! A seed determines everything: all decisions come from integers, so that they are the same on every machine.
//!
//! ```
//! use thinair_link::{Fate, Impairments, Line, Link, LossModel, Probability, Reorder};
//!
//! let impairments = Impairments {
//!     loss: LossModel::Random(Probability::from_percent(5).ok_or("not a probability")?),
//!     reorder: Reorder { probability: Probability::from_percent(10).ok_or("not a probability")?, up_to: 3 },
//!     ..Impairments::default()
//! };
//! let mut link = Link::new(impairments, 7);
//! let mut line = Line::new(vec![None; impairments.slots()]);
//! let mut arrived = Vec::new();
//! for i in 0..100_u32 {
//!     let mut octets = i.to_be_bytes();
//!     if let Fate::At(arrival) = link.offer(&mut octets) {
//!         line.put(arrival, octets)?;
//!     }
//!     arrived.extend(std::iter::from_fn(|| line.poll()));
//! }
//! arrived.extend(std::iter::from_fn(|| line.flush()));
//! assert_eq!(arrived.len() as u64, 100 - link.counters().lost);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#![no_std]
#![deny(missing_docs)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod airtime;
pub mod bit_errors;
pub mod codel;
#[cfg(feature = "alloc")]
pub mod constrained;
pub mod duplicate;
pub mod framing;
mod geometric;
pub mod gilbert_elliott;
pub mod integrity;
pub mod jitter;
pub mod line;
mod link;
pub mod loss;
pub mod model;
pub mod probability;
pub mod random;
pub mod reorder;
mod rohc_tunnel16;

pub use airtime::{Airtime, LoRa, Rate};
pub use bit_errors::{BitErrorModel, BitErrors};
pub use codel::CoDelConfig;
#[cfg(feature = "alloc")]
pub use constrained::{ConstrainedLink, DropReason, Dropped, Event, Side, Times, Traffic};
pub use duplicate::Duplicate;
pub use framing::{Fragmentation, Framing};
pub use gilbert_elliott::{BurstTooShort, GilbertElliott, MeanBurst};
pub use integrity::{Integrity, Received};
pub use jitter::Jitter;
pub use line::{Line, NoSlot, Place, Slot};
pub use link::{Arrival, Counters, Fate, Impairments, Link, Reason};
pub use loss::{Loss, LossModel};
pub use model::{Direction, Discipline, Duplex, DutyCycle, IdleWake, LinkModel, LossUnit, Queue};
pub use probability::Probability;
pub use random::Random;
pub use reorder::Reorder;
