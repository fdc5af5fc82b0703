//! A link: all impairments of a packet, in sequence, with counters.

use crate::bit_errors::{BitErrorModel, BitErrors};
use crate::duplicate::Duplicate;
use crate::integrity::{CheckOutcome, Integrity};
use crate::line::ArrivalPlace;
use crate::loss::{LossModel, LossProcess};
use crate::random::Random;
use crate::reorder::Reorder;

/// Impairments of a link. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments<'a> {
    /// Loss of packets, before any other impairment.
    pub loss: LossModel<'a>,
    /// Bit errors of the remaining packets.
    pub bit_errors: BitErrorModel,
    /// Treatment of damage by the link layer.
    pub integrity: Integrity,
    /// Duplication of the packets that come through.
    pub duplicate: Duplicate,
    /// Reordering of the packets that come through.
    pub reorder: Reorder,
}

impl Impairments<'_> {
    /// Returns the number of slots that a [`ReorderBuffer`](crate::ReorderBuffer) needs.
    pub const fn slots(&self) -> usize {
        // Late originals are among the last `up_to`, their copies among as many and those of the duplicates; in
        // addition there is the packet that has just entered, with its copy.
        let (late, later) = (self.reorder.up_to as usize, self.duplicate.up_to as usize);
        late + 1 + late + later + 1
    }
}

/// A link in one direction.
///
/// It decides, and holds no packet: [`ReorderBuffer`](crate::ReorderBuffer) brings packets into the order of their places. Loss, bit
/// errors, the check, duplicates and order each have a random sequence of their own, so that a change of one does not
/// change the others, with one exception: a packet that was lost or dropped is not damaged, duplicated or late, and
/// takes no place.
#[derive(Clone, Debug)]
pub struct Link<'a> {
    loss: LossProcess<'a>,
    bit_errors: BitErrors,
    integrity: Integrity,
    check: Random,
    duplicate: Duplicate,
    copies: Random,
    reorder: Reorder,
    order: Random,
    /// Number of packets that came through.
    entered: u64,
    counters: LinkCounters,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    /// The packet arrives.
    At(LinkArrival),
    /// The packet is dropped.
    Dropped(Reason),
}

/// Arrival of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkArrival {
    /// Place of arrival.
    pub place: ArrivalPlace,
    /// Place of the copy, if there is one.
    pub copy: Option<ArrivalPlace>,
    /// Number of flipped bits.
    pub flipped: u64,
}

/// Reason why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The link lost it.
    Loss,
    /// The check of the link layer detected damage.
    Integrity,
}

/// Counters of packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Offered to the link.
    pub offered: u64,
    /// Lost.
    pub lost: u64,
    /// Damaged, in their octets or in the check sequence, dropped or not.
    pub damaged: u64,
    /// Dropped by the check of the link layer.
    pub dropped: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Late by one place or more. (Fewer may have been overtaken, see [`Reorder`].)
    pub late: u64,
}

impl<'a> Link<'a> {
    /// Creates a link before its first packet. Equal impairments, seeds and lengths of packets give equal outcomes.
    pub fn new(impairments: Impairments<'a>, seed: u64) -> Self {
        let Impairments { loss, bit_errors, integrity, duplicate, reorder } = impairments;
        let mut random = Random::new(seed);
        Self {
            loss: LossProcess::new(loss, random.split()),
            bit_errors: BitErrors::new(bit_errors, random.split()),
            integrity,
            check: random.split(),
            duplicate,
            copies: random.split(),
            reorder,
            order: random.split(),
            entered: 0,
            counters: LinkCounters::default(),
        }
    }

    /// Decides on the next packet. Its octets are damaged in place; if it is dropped, they are unspecified.
    pub fn offer(&mut self, octets: &mut [u8]) -> LinkOutcome {
        self.counters.offered += 1;
        if self.loss.takes_next(octets.len()) {
            self.counters.lost += 1;
            return LinkOutcome::Dropped(Reason::Loss);
        }
        let flipped = match self.integrity.carry(octets, &mut self.bit_errors, &mut self.check) {
            CheckOutcome::Intact => 0,
            CheckOutcome::Damaged { flipped } => {
                self.counters.damaged += 1;
                flipped
            }
            CheckOutcome::Discarded => {
                self.counters.damaged += 1;
                self.counters.dropped += 1;
                return LinkOutcome::Dropped(Reason::Integrity);
            }
        };
        let place = ArrivalPlace::of(self.entered, self.reorder.draw(&mut self.order));
        self.entered += 1;
        let copy = self.duplicate.draw(&mut self.copies).map(|later| place.copy(later));
        self.counters.late += u64::from(place.late_by() > 0);
        self.counters.duplicated += u64::from(copy.is_some());
        LinkOutcome::At(LinkArrival { place, copy, flipped })
    }

    /// Returns the counters.
    pub const fn counters(&self) -> LinkCounters {
        self.counters
    }
}
