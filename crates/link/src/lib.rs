//! Models of constrained links.
//!
//! This crate models loss ([`loss`]), damage ([`bit_errors`]) and the treatment of damage by a link layer
//! ([`integrity`]), and combines them into two kinds of links:
//!
//! - [`Link`] has no time, only places: packets arrive, damaged, duplicated ([`duplicate`]), or in another order
//!   ([`reorder`], [`mod@line`]).
//! - [`ConstrainedLink`] has integer time: rate ([`airtime`]), delay, [`jitter`], queues, a shared medium, frames
//!   ([`framing`]), sleep and duty cycle, described by a [`model`]. [`preset`] has links by name.
//!
//! [`energy`] computes the energy that packets cost a device, and `tariff`, a feature, reads price lists. The content of packets does not matter, nor whether time
//! is real or virtual. `no_std`, no panic on octets from outside. Only `ConstrainedLink` allocates, not for each packet,
//! and within a bound; without the feature `alloc` it is absent.
//!
//! A seed determines everything: all decisions are computed with integers, so that they are equal on every machine.
//!
//! ```
//! use thinair_link::{LinkOutcome, Impairments, ReorderBuffer, Link, LossModel, Probability, Reorder};
//!
//! let impairments = Impairments {
//!     loss: LossModel::Random(Probability::from_percent(5).ok_or("not a probability")?),
//!     reorder: Reorder { probability: Probability::from_percent(10).ok_or("not a probability")?, up_to: 3 },
//!     ..Impairments::default()
//! };
//! let mut link = Link::new(impairments, 7);
//! let mut line = ReorderBuffer::new(vec![None; impairments.slots()]);
//! let mut arrived = Vec::new();
//! for i in 0..100_u32 {
//!     let mut octets = i.to_be_bytes();
//!     if let LinkOutcome::At(arrival) = link.offer(&mut octets) {
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
#[cfg(feature = "alloc")]
pub mod constrained;
pub mod duplicate;
pub mod energy;
pub mod framing;
mod geometric;
pub mod gilbert_elliott;
pub mod integrity;
pub mod jitter;
pub mod line;
mod link;
pub mod loss;
pub mod model;
pub mod preset;
pub mod probability;
pub mod random;
pub mod reorder;
#[cfg(feature = "rohctunnel16")]
mod rohc_tunnel16;
#[cfg(feature = "tariff")]
pub mod tariff;

pub use airtime::{Airtime, LoRa, Ofdm, Rate};
pub use bit_errors::{BitErrorModel, BitErrors};
#[cfg(feature = "alloc")]
pub use constrained::{ConstrainedLink, DropReason, Dropped, LinkEvent, LinkTraffic, Side, Times};
pub use duplicate::Duplicate;
pub use framing::{Fragmentation, Framing};
pub use gilbert_elliott::{BurstTooShort, GilbertElliott, MeanBurst};
pub use integrity::{CheckOutcome, Integrity};
pub use jitter::Jitter;
pub use line::{ArrivalPlace, NoSlot, ReorderBuffer, ReorderSlot};
pub use link::{Impairments, Link, LinkArrival, LinkCounters, LinkOutcome, Reason};
pub use loss::{LossModel, LossProcess};
pub use model::{
    CoDelConfig, Direction, Discipline, Duplex, DutyCycle, IdleWake, LinkModel, LossUnit, Queue,
};
pub use probability::Probability;
pub use random::Random;
pub use reorder::Reorder;
