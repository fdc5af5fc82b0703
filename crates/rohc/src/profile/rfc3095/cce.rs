//! Checksum Coverage Extension, and the behavior of the Checksum Coverage of UDP-Lite. RFC 4019, sections 5.1 to
//! 5.5.

use thinair_wire::coder::{Coder, Step};

use crate::id::Format;

/// Kind of a CCE packet, by its two last bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cce {
    /// `CCE()`: the field is in this packet alone.
    Once,
    /// `CCE(ON)`: sets context(CFP).
    On,
    /// `CCE(OFF)`: clears context(CFP), and sets context(CFI) and the Checksum Coverage of the context.
    Off,
}

impl Cce {
    /// Every kind, in the order of F and K.
    pub(super) const ALL: [Self; 3] = [Self::Once, Self::On, Self::Off];

    /// F and K.
    fn bits(self) -> u32 {
        match self {
            Self::Once => 0b01,
            Self::On => 0b10,
            Self::Off => 0b11,
        }
    }

    /// Returns the kind of a CCE packet by its first octet; `None` for other packets.
    pub(super) fn of(first: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| u32::from(first) == 0b1111_1000 | kind.bits())
    }

    /// Format in reports.
    pub(super) fn format(self) -> Format {
        match self {
            Self::Once => Format::Cce,
            Self::On => Format::CceOn,
            Self::Off => Format::CceOff,
        }
    }
}

/// `Outer packet type identifier`, followed by the inner one. RFC 4019, section 5.3.2.
#[inline]
pub(super) fn outer<'p, C: Coder<'p>>(c: &mut C, kind: Cce) -> Step {
    c.discriminator(6, 0b11_1110)?;
    c.discriminator(2, kind.bits())
}

/// Context of the Checksum Coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoverageContext {
    /// context(CFP): every packet has the field.
    pub(super) present: bool,
    /// context(CFI): the field equals the length of the packet.
    pub(super) inferred: bool,
}

impl CoverageContext {
    /// Context after an IR or IR-DYN packet of a UDP-Lite packet of `length` octets. RFC 4019, section 5.2.2.
    pub(super) fn initial(coverage: u16, length: usize) -> Self {
        let inferred = usize::from(coverage) == length;
        Self { present: !inferred, inferred }
    }

    /// Updates the context by a verified packet, of `length` octets from the UDP-Lite header on. RFC 4019, section
    /// 5.3.2.
    pub(super) fn update(&mut self, kind: Option<Cce>, coverage: u16, length: usize) {
        match kind {
            None | Some(Cce::Once) => {}
            Some(Cce::On) => self.present = true,
            Some(Cce::Off) => {
                *self = Self { present: false, inferred: usize::from(coverage) == length };
            }
        }
    }
}

/// Number of packets in a row that must follow a pattern before the field is left out.
const PATIENCE: u8 = 4;

/// Number of packets that break the pattern, less those that follow it, from which on every packet has the field.
const BREAKS: u8 = 8;

/// Checksum Coverage of a flow at the compressor. RFC 4019, sections 3.2.2 and 5.4.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coverage {
    /// Context of the decompressor, once no change is pending.
    context: CoverageContext,
    /// context(UDP-Lite Checksum Coverage).
    value: [u8; 2],
    last: [u8; 2],
    /// Number of packets in a row with an unchanged field, and of those with the packet length in it.
    same: u8,
    full: u8,
    breaks: u8,
    /// The pending change, and the number of packets left that carry it.
    turn: Option<Cce>,
    left: u8,
}

impl Coverage {
    fn value(&self) -> u16 {
        u16::from_be_bytes(self.value)
    }

    /// Records the field of a packet and returns the kind of CCE packet that it needs; a new change is pending
    /// from this SN on.
    pub(super) fn note(
        &mut self,
        coverage: u16,
        length: usize,
        repetitions: u8,
        sn: u16,
        since: &mut u16,
    ) -> Option<Cce> {
        let is_full = usize::from(coverage) == length;
        let tally = |holds: bool, count: u8| if holds { count.saturating_add(1) } else { 0 };
        self.same = tally(coverage == u16::from_be_bytes(self.last), self.same);
        self.full = tally(is_full, self.full);
        self.last = coverage.to_be_bytes();
        let fits = if self.context.inferred { is_full } else { coverage == self.value() && !is_full };
        if self.left > 0 && (fits || self.turn == Some(Cce::On)) {
            return self.turn;
        }
        // The acknowledgment of a packet that does not carry the pending change does not confirm it.
        if self.left > 0 {
            *since = sn.wrapping_add(1);
        }
        if self.context.present {
            if self.full < PATIENCE && (self.same < PATIENCE || is_full) {
                return None;
            }
            self.context = CoverageContext { present: false, inferred: is_full };
            self.value = coverage.to_be_bytes();
            self.turn = Some(Cce::Off);
        } else if self.left == 0 && (fits || coverage == self.value() && !self.context.inferred) {
            self.breaks = self.breaks.saturating_sub(1);
            return None;
        } else {
            self.breaks = self.breaks.saturating_add(2);
            if self.breaks < BREAKS {
                return Some(Cce::Once);
            }
            self.breaks = 0;
            self.context.present = true;
            self.turn = Some(Cce::On);
        }
        (self.left, *since) = (repetitions.max(1), sn);
        self.turn
    }

    /// True if a packet that is no CCE packet has the field.
    pub(super) fn is_present(&self) -> bool {
        self.context.present
    }

    /// Handles the acknowledgment of a packet with all changes.
    pub(super) fn acknowledge(&mut self) {
        self.left = 0;
    }

    /// Repeats the current state until it is acknowledged.
    pub(super) fn repeat(&mut self, repetitions: u8) {
        self.turn = Some(if self.context.present { Cce::On } else { Cce::Off });
        self.left = repetitions.max(1);
    }

    /// Records a packet that was sent, not in R-mode.
    pub(super) fn commit(&mut self, sent: Option<Cce>) {
        if sent.is_some() && sent == self.turn {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Records an IR or IR-DYN packet that was sent. If it changes the context, and is lost, the decompressor
    /// keeps the previous one, so that the next packets must carry the current state.
    pub(super) fn initialize(
        &mut self,
        length: usize,
        repetitions: u8,
        is_first: bool,
        sn: u16,
        since: &mut u16,
    ) {
        let before = (self.context, self.value, self.left > 0);
        self.context = CoverageContext::initial(u16::from_be_bytes(self.last), length);
        self.value = self.last;
        if is_first || before == (self.context, self.value, false) {
            return;
        }
        let is_steady = self.context.inferred || self.same >= PATIENCE;
        self.context.present = !is_steady;
        self.turn = Some(if is_steady { Cce::Off } else { Cce::On });
        // The packet itself does not carry it.
        (self.left, *since) = (repetitions.max(1), sn.wrapping_add(1));
    }
}
