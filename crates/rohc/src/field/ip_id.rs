//! Behavior of the IPv4 Identification. RFC 3095, section 4.5.5; RFC 3843, section 3.3; RFC 6846, section 6.1.2.

use thinair_wire::word_enum;

/// Largest step of a counter. A stack that also serves other flows has larger steps; up to this one `UO-1` with its 6 bits
/// costs one octet, where the full field costs two.
pub(super) const SMALL_STEP: u16 = 64;

/// Number of packets for which another behavior must hold before it is used.
const PATIENCE: u8 = 3;

/// Weight of a packet that does not behave as the flags indicate, against one that does.
const MISFIT: u8 = 2;

/// A value above all numbers of misfits.
const GUESS: u8 = u8::MAX;

/// Change of an IP-ID from packet to packet: `ip_id_behavior` of RFC 6846; RND, NBO and SID of RFC 3095 and RFC 3843.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// It counts with the sequence number, in network byte order.
    Sequential,
    /// It counts with the sequence number once its octets are swapped.
    Swapped,
    /// It may have any value; also used for IPv6, which has none.
    #[default]
    Random,
    /// It does not change; in RFC 6846 it is zero.
    Constant,
}

impl Behavior {
    /// True if it is sent as an offset from the sequence number.
    #[inline]
    pub(crate) fn is_sequential(self) -> bool {
        matches!(self, Self::Sequential | Self::Swapped)
    }

    /// Converts an IP-ID to a number that counts, and back.
    #[inline]
    pub(crate) fn counted(self, id: u16) -> u16 {
        if self == Self::Swapped { id.swap_bytes() } else { id }
    }
}

word_enum!(Behavior: Sequential Swapped Random, Constant);

/// Observes the IP-ID of one header and chooses its flags.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watcher {
    /// [`MISFIT`] for each packet that did not behave as the flags indicate, less 1 for each that did; [`GUESS`] while the
    /// flags are those of the first packet, which shows no step.
    misfits: u8,
    /// Numbers of misfits in a row that counted, counted swapped, and stayed.
    counted: u8,
    swapped: u8,
    stayed: u8,
}

impl Watcher {
    /// Returns the behavior for the first packet of a flow. Stacks that do not use the field send zero, with DF (RFC 6864,
    /// section 4.1); without DF, zero is the start of a counter.
    pub(crate) fn first(&mut self, id: u16, df: bool, sid_allowed: bool) -> Behavior {
        *self = Self { misfits: GUESS, ..Self::default() };
        match (id == 0 && df, sid_allowed) {
            (true, true) => Behavior::Constant,
            (true, false) => Behavior::Random,
            (false, _) => Behavior::Sequential,
        }
    }

    /// Returns the behavior after a packet with identification `id`, following one with `last` and a `current` behavior.
    #[inline]
    pub(crate) fn next(&mut self, current: Behavior, id: u16, last: u16, sid_allowed: bool) -> Behavior {
        // A step of zero is a duplicate by the network or a static field, and no counter.
        let is_count = |step: u16| step != 0 && step <= SMALL_STEP;
        let step = id.wrapping_sub(last);
        let counts = is_count(step);
        let counts_swapped = || is_count(id.swap_bytes().wrapping_sub(last.swap_bytes()));
        let fits = match current {
            Behavior::Sequential => counts,
            Behavior::Swapped => counts_swapped(),
            Behavior::Constant => step == 0,
            // Random always fits; another behavior replaces it once it has been observed.
            Behavior::Random => false,
        };
        if fits {
            if self.misfits > 0 {
                let misfits = if self.misfits == GUESS { 0 } else { self.misfits - 1 };
                *self = Self { misfits, ..Self::default() };
            }
            return current;
        }
        let counts_swapped = counts_swapped();
        self.misfit(current, counts, counts_swapped, step == 0, sid_allowed)
    }

    /// Returns the behavior after a packet that does not fit the current one. The flags are true if its IP-ID counts,
    /// counts swapped, and stays.
    #[inline(never)]
    fn misfit(
        &mut self,
        current: Behavior,
        counts: bool,
        counts_swapped: bool,
        stays: bool,
        sid_allowed: bool,
    ) -> Behavior {
        if self.misfits == GUESS {
            // The first step outweighs the guess; IR packets still carry the flags.
            *self = Self::default();
            return match (counts, counts_swapped, stays && sid_allowed) {
                (true, ..) => Behavior::Sequential,
                (_, true, _) => Behavior::Swapped,
                (_, _, true) => Behavior::Constant,
                (false, false, false) => Behavior::Random,
            };
        }
        let tally = |tally: &mut u8, holds: bool| *tally = if holds { tally.saturating_add(1) } else { 0 };
        tally(&mut self.counted, counts);
        tally(&mut self.swapped, counts_swapped);
        tally(&mut self.stayed, stays);
        self.misfits = self.misfits.saturating_add(MISFIT).min(GUESS - 1);
        let next = if self.counted >= PATIENCE {
            Behavior::Sequential
        } else if self.swapped >= PATIENCE {
            Behavior::Swapped
        } else if self.stayed >= PATIENCE && sid_allowed {
            Behavior::Constant
        } else {
            match current {
                // No compressed header can encode a static field that moves.
                Behavior::Constant if counts => Behavior::Sequential,
                Behavior::Constant if counts_swapped => Behavior::Swapped,
                Behavior::Constant => Behavior::Random,
                // One jump of a counter is cheaper than two more octets in every packet.
                Behavior::Sequential if counts_swapped && self.swapped >= 2 => Behavior::Swapped,
                Behavior::Swapped if counts && self.counted >= 2 => Behavior::Sequential,
                Behavior::Sequential | Behavior::Swapped if self.misfits >= PATIENCE * MISFIT => {
                    Behavior::Random
                }
                Behavior::Sequential | Behavior::Swapped | Behavior::Random => current,
            }
        };
        if next != current {
            *self = Self::default();
        }
        next
    }
}
