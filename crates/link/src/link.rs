//! A link: everything that it does to a packet, one after the other, and what has happened so far.

use crate::bit_errors::{BitErrorModel, BitErrors};
use crate::duplicate::Duplicate;
use crate::integrity::{Integrity, Received};
use crate::line::Place;
use crate::loss::{Loss, LossModel};
use crate::random::Random;
use crate::reorder::Reorder;

/// What a link does to packets. By default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments<'a> {
    /// Which packets are lost, before anything else happens to them.
    pub loss: LossModel<'a>,
    /// Which bits of the others are damaged.
    pub bit_errors: BitErrorModel,
    /// What the link layer does with damage.
    pub integrity: Integrity,
    /// Which of those that come through arrive twice.
    pub duplicate: Duplicate,
    /// Which of those that come through are late.
    pub reorder: Reorder,
}

impl Impairments<'_> {
    /// The slots that a [`Line`](crate::Line) needs.
    pub const fn slots(&self) -> usize {
        // The originals that are late are among the last `up_to`, their copies among the last so many and those of
        // the duplicates; and there is the packet that has just entered, with its copy.
        let (late, later) = (self.reorder.up_to as usize, self.duplicate.up_to as usize);
        late + 1 + late + later + 1
    }
}

/// A link in one direction.
///
/// It decides, and holds no packet: [`Line`](crate::Line) brings packets into the order of their places. Loss, bit
/// errors, the check, duplicates and order each have a random sequence of their own, so that a change of one does not
/// change what the others do. The exceptions are what must be: a packet that was lost or dropped is not damaged,
/// doubled or late, and takes no place.
#[derive(Clone, Debug)]
pub struct Link<'a> {
    loss: Loss<'a>,
    bit_errors: BitErrors,
    integrity: Integrity,
    check: Random,
    duplicate: Duplicate,
    copies: Random,
    reorder: Reorder,
    order: Random,
    /// How many packets came through.
    entered: u64,
    counters: Counters,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    At(Arrival),
    /// It does not.
    Dropped(Reason),
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub place: Place,
    /// When it arrives again, if it does.
    pub copy: Option<Place>,
    /// Bits that are not as they were sent.
    pub flipped: u64,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The link lost it.
    Loss,
    /// The check of the link layer found damage.
    Integrity,
}

/// Packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Offered to the link.
    pub offered: u64,
    /// Lost.
    pub lost: u64,
    /// Damaged, in their octets or in the check sequence: those that were dropped for it, and those that were not.
    pub damaged: u64,
    /// Dropped by the check of the link layer.
    pub dropped: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Late by one place or more. (How many were overtaken may be less, see [`Reorder`].)
    pub late: u64,
}

impl<'a> Link<'a> {
    /// A link before its first packet. The same impairments, seed and lengths of packets give the same fates.
    pub fn new(impairments: Impairments<'a>, seed: u64) -> Self {
        let Impairments { loss, bit_errors, integrity, duplicate, reorder } = impairments;
        let mut random = Random::new(seed);
        Self {
            loss: Loss::new(loss, random.split()),
            bit_errors: BitErrors::new(bit_errors, random.split()),
            integrity,
            check: random.split(),
            duplicate,
            copies: random.split(),
            reorder,
            order: random.split(),
            entered: 0,
            counters: Counters::default(),
        }
    }

    /// What becomes of the next packet. Its octets are damaged in place; if it is dropped, they are of no use.
    pub fn offer(&mut self, octets: &mut [u8]) -> Fate {
        self.counters.offered += 1;
        if self.loss.takes_next(octets.len()) {
            self.counters.lost += 1;
            return Fate::Dropped(Reason::Loss);
        }
        let flipped = match self.integrity.carry(octets, &mut self.bit_errors, &mut self.check) {
            Received::Intact => 0,
            Received::Damaged { flipped } => {
                self.counters.damaged += 1;
                flipped
            }
            Received::Discarded => {
                self.counters.damaged += 1;
                self.counters.dropped += 1;
                return Fate::Dropped(Reason::Integrity);
            }
        };
        let place = Place::of(self.entered, self.reorder.draw(&mut self.order));
        self.entered += 1;
        let copy = self.duplicate.draw(&mut self.copies).map(|later| place.copy(later));
        self.counters.late += u64::from(place.late_by() > 0);
        self.counters.duplicated += u64::from(copy.is_some());
        Fate::At(Arrival { place, copy, flipped })
    }

    /// What has happened so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}
