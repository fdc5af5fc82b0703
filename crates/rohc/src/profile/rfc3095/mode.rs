//! Transitions between modes, at both ends. RFC 3095, section 5.6.

use crate::mode::Mode;

/// C_TRANS, extended by the packets that an acknowledgment has to refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CTrans {
    /// C_TRANS is D.
    #[default]
    Done,
    /// C_TRANS is P, and the newest packet does not carry the mode.
    Pending,
    /// C_TRANS is P, and packets carry the mode.
    Announced,
    /// C_TRANS is P, and the request is declined: packets carry mode 0 (RFC 3843, section 3.4).
    Declining,
    /// As `Declining`, and packets have carried mode 0.
    Declined,
}

/// Reply of a compressor to a request for R-mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReliableReply {
    /// Changes to R-mode.
    Accept,
    /// Declines by mode 0 (RFC 3843, section 3.4, and RFC 4019, section 5.6).
    Decline,
    /// Ignores the request, since the profile cannot decline.
    Ignore,
}

/// C_MODE and C_TRANS of a context at the compressor. RFC 3095, section 5.6.1.
///
/// **While a transition is [pending](Self::is_pending), only formats common to all modes are sent, and requests are
/// ignored.**
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompressorMode(u8);

impl CompressorMode {
    /// Packs both into one octet: C_TRANS above two bits of C_MODE less one, so that zero is the initial value of both.
    const fn new(mode: Mode, trans: CTrans) -> Self {
        Self((trans as u8) << 2 | (mode.bits() - 1))
    }

    const fn trans(self) -> CTrans {
        match self.0 >> 2 {
            0 => CTrans::Done,
            1 => CTrans::Pending,
            2 => CTrans::Announced,
            3 => CTrans::Declining,
            _ => CTrans::Declined,
        }
    }

    /// Initial mode of a compressor whose decompressor may be in another one.
    pub(crate) const fn uncertain() -> Self {
        Self::new(Mode::Unidirectional, CTrans::Pending)
    }

    /// C_MODE.
    #[inline]
    pub(crate) const fn mode(self) -> Mode {
        match self.0 & 0b11 {
            0 => Mode::Unidirectional,
            1 => Mode::Optimistic,
            _ => Mode::Reliable,
        }
    }

    /// True if C_MODE is U-mode.
    #[inline]
    pub(crate) const fn is_unidirectional(self) -> bool {
        self.0 & 0b11 == 0
    }

    /// True if C_TRANS is P.
    #[inline]
    pub(crate) fn is_pending(self) -> bool {
        self.0 >> 2 != 0
    }

    /// True if packets may refer only to what was acknowledged (RFC 3095, section 5.5.1.2). This also holds while a
    /// transition is pending, since the mode of the decompressor is then unknown.
    #[inline]
    pub(crate) fn is_secure(self) -> bool {
        self.0 > Self::new(Mode::Optimistic, CTrans::Done).0
    }

    /// The two bits of the mode that packets carry.
    #[inline]
    pub(crate) fn bits(self) -> u8 {
        match self.trans() {
            CTrans::Declining | CTrans::Declined => 0,
            CTrans::Done | CTrans::Pending | CTrans::Announced => self.mode().bits(),
        }
    }

    /// Handles a request for a mode in feedback with a CRC. Returns true if anything has changed.
    pub(crate) fn on_request(&mut self, wanted: Mode, reliable: ReliableReply) -> bool {
        if self.is_pending() {
            return false;
        }
        self.go_to(wanted, reliable)
    }

    fn go_to(&mut self, wanted: Mode, reliable: ReliableReply) -> bool {
        let before = *self;
        match (self.mode(), wanted, reliable) {
            (Mode::Unidirectional, Mode::Unidirectional, _)
            | (Mode::Optimistic, Mode::Optimistic, _)
            | (Mode::Reliable, Mode::Reliable, _)
            | (_, Mode::Reliable, ReliableReply::Ignore) => {}
            // RFC 3095, section 5.6.2: "as soon as it receives any feedback packet that has the mode parameter set to
            // O".
            (Mode::Unidirectional, Mode::Optimistic, _) => *self = Self::new(Mode::Optimistic, CTrans::Done),
            (_, Mode::Reliable, ReliableReply::Decline) => *self = Self::new(self.mode(), CTrans::Declining),
            // RFC 3095, sections 5.6.3 to 5.6.6.
            (_, Mode::Unidirectional | Mode::Optimistic, _) | (_, Mode::Reliable, ReliableReply::Accept) => {
                *self = Self::new(wanted, CTrans::Pending);
            }
        }
        *self != before
    }

    /// Handles an IR packet after which the decompressor may have a new context in the initial mode: R-mode has to be
    /// announced and acknowledged again.
    pub(crate) fn on_initialization(&mut self) {
        if self.mode() == Mode::Reliable && !self.is_pending() {
            *self = Self::new(self.mode(), CTrans::Pending);
        }
    }

    /// Records a packet that was sent. Returns true if it is the first one that carries the mode.
    pub(crate) fn on_sent(&mut self, has_mode: bool) -> bool {
        let before = self.trans();
        let trans = match (before, has_mode) {
            (CTrans::Done, _) => CTrans::Done,
            (CTrans::Pending | CTrans::Announced, true) => CTrans::Announced,
            (CTrans::Pending | CTrans::Announced, false) => CTrans::Pending,
            (CTrans::Declining | CTrans::Declined, true) => CTrans::Declined,
            (CTrans::Declining | CTrans::Declined, false) => CTrans::Declining,
        };
        *self = Self::new(self.mode(), trans);
        has_mode && matches!(before, CTrans::Pending | CTrans::Declining)
    }

    /// True if packets have carried the mode, so that an acknowledgment of one is awaited.
    pub(crate) fn is_announced(self) -> bool {
        matches!(self.trans(), CTrans::Announced | CTrans::Declined)
    }

    /// Handles feedback with a CRC that acknowledges a packet with the mode, and has the decompressor's mode.
    pub(crate) fn on_acknowledged(&mut self, theirs: Mode, reliable: ReliableReply) {
        *self = Self::new(self.mode(), CTrans::Done);
        // A decompressor that has received a mode and requests another one did not request it before: it has lost its
        // context since. Its request would otherwise be ignored forever.
        self.go_to(theirs, reliable);
    }
}

/// D_TRANS. RFC 3095, section 5.6.1, with RFC 4815, section 3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DTrans {
    /// D_TRANS is D.
    #[default]
    Done,
    /// D_TRANS is I: the request is repeated until a packet carries the mode.
    Initiated,
    /// D_TRANS is P: a packet has carried the mode, and is acknowledged until packets of type 0 or 1 arrive.
    Pending,
}

/// Number of packets of a transition that are answered one by one. After them, one in this many is answered.
const EACH: u8 = 16;

/// D_MODE and D_TRANS of a context at the decompressor. RFC 3095, section 5.6.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecompressorMode {
    mode: Mode,
    asked: Mode,
    trans: DTrans,
    answered: u8,
    /// A mode with other formats that the newest packet with a mode carries, without a request for it.
    unconfirmed: Option<Mode>,
}

impl DecompressorMode {
    /// Returns the mode of a new context that replaces one of another profile (RFC 4815, section 7.2.2). A compressor
    /// that was in R-mode waits for acknowledgments of it.
    pub(crate) fn after(self) -> Self {
        let trans = if self.mode == Mode::Reliable || self.trans != DTrans::Done {
            DTrans::Pending
        } else {
            DTrans::Done
        };
        Self { trans, ..Self::default() }
    }

    /// D_MODE.
    #[inline]
    pub(crate) const fn mode(self) -> Mode {
        self.mode
    }

    /// True if verified packets need no acknowledgment: no transition, and not in R-mode.
    #[inline]
    pub(crate) fn is_quiet(self, wanted: Mode) -> bool {
        self.trans == DTrans::Done && self.mode != Mode::Reliable && self.asked == wanted
    }

    /// True if feedback is sent at all.
    pub(crate) fn is_two_way(self) -> bool {
        self.trans != DTrans::Done || self.mode != Mode::Unidirectional
    }

    /// The mode in feedback.
    pub(crate) fn named(self) -> Mode {
        if self.trans == DTrans::Initiated { self.asked } else { self.mode }
    }

    /// Requests a mode, after at least one packet was verified. "A mode transition can be initiated only when D_TRANS
    /// is D."
    pub(crate) fn want(&mut self, wanted: Mode) {
        if self.trans != DTrans::Done || self.asked == wanted {
            return;
        }
        self.asked = wanted;
        self.answered = 0;
        match (self.mode, wanted) {
            // RFC 3095, section 5.6.2: "The decompressor can then directly start working in Optimistic mode." A
            // compressor in R-mode does not, and waits for acknowledgments.
            (Mode::Unidirectional, Mode::Optimistic) => {
                self.mode = Mode::Optimistic;
                self.trans = DTrans::Pending;
            }
            (Mode::Unidirectional, Mode::Unidirectional)
            | (Mode::Optimistic, Mode::Optimistic)
            | (Mode::Reliable, Mode::Reliable) => {}
            (_, Mode::Unidirectional | Mode::Optimistic | Mode::Reliable) => self.trans = DTrans::Initiated,
        }
    }

    /// Handles the two bits of the mode in a verified packet. Returns true if D_MODE has changed to or from R-mode.
    pub(crate) fn on_mode_received(&mut self, bits: u8, may_decline: bool) -> bool {
        let before = self.mode;
        let Some(received) = Mode::from_bits(bits) else {
            // RFC 3843, section 3.4: "MUST stay in its current mode of operation". The request is not repeated.
            if may_decline && self.trans == DTrans::Initiated {
                self.trans = DTrans::Pending;
            }
            return false;
        };
        let other_formats = (received == Mode::Reliable) != (self.mode == Mode::Reliable);
        if other_formats && received != self.asked && self.unconfirmed != Some(received) {
            // A single damaged packet that passes its CRC must not change the mode: R-0 has no CRC at all.
            self.unconfirmed = Some(received);
            return false;
        }
        self.unconfirmed = None;
        match self.trans {
            DTrans::Initiated if received == self.asked => {
                *self = Self { mode: received, trans: DTrans::Pending, answered: 0, ..*self };
            }
            // One end has a new context. The mode in the packet applies to the packets that follow.
            DTrans::Done | DTrans::Pending | DTrans::Initiated if other_formats => {
                let trans = if received == self.asked { DTrans::Pending } else { DTrans::Initiated };
                *self = Self { mode: received, trans, answered: 0, ..*self };
            }
            // The compressor has not received the request yet.
            DTrans::Done if (received, self.mode) == (Mode::Unidirectional, Mode::Optimistic) => {
                self.trans = DTrans::Pending;
            }
            DTrans::Done | DTrans::Pending | DTrans::Initiated => {}
        }
        (self.mode == Mode::Reliable) != (before == Mode::Reliable)
    }

    /// Handles a packet of type 0 or 1, which the compressor sends only after the acknowledgment (RFC 4815, section
    /// 3.3).
    #[inline]
    pub(crate) fn on_type_0_or_1(&mut self) {
        if self.trans == DTrans::Pending {
            self.trans = DTrans::Done;
        }
    }

    /// Returns true if a verified packet is acknowledged because of a transition: every packet while it is initiated,
    /// packets that update the context while it is pending. A compressor that does not react gets fewer
    /// acknowledgments.
    pub(crate) fn answers(&mut self, updates: bool) -> bool {
        let may = match self.trans {
            DTrans::Done => false,
            DTrans::Initiated => true,
            DTrans::Pending => updates,
        };
        if may {
            self.answered = if self.answered == u8::MAX { EACH } else { self.answered + 1 };
        }
        may && (self.answered <= EACH || self.answered.is_multiple_of(EACH))
    }
}

#[cfg(test)]
mod tests {
    use super::Mode::{Optimistic as O, Reliable as R, Unidirectional as U};
    use super::*;

    fn compressor(mode: Mode) -> CompressorMode {
        CompressorMode::new(mode, CTrans::Done)
    }

    fn decompressor(mode: Mode) -> DecompressorMode {
        DecompressorMode { mode, asked: mode, ..DecompressorMode::default() }
    }

    #[test]
    fn the_table_of_requests() {
        let table = [
            (U, U, (U, false)),
            (U, O, (O, false)),
            (U, R, (R, true)),
            (O, U, (U, true)),
            (O, O, (O, false)),
            (O, R, (R, true)),
            (R, U, (U, true)),
            (R, O, (O, true)),
            (R, R, (R, false)),
        ];
        for (current, wanted, (mode, pending)) in table {
            let mut c = compressor(current);
            c.on_request(wanted, ReliableReply::Accept);
            assert_eq!((c.mode(), c.is_pending()), (mode, pending), "{current:?} asked for {wanted:?}");
            // "That new mode transition requests be ignored."
            for other in [U, O, R] {
                let before = c;
                assert!(!pending || !c.on_request(other, ReliableReply::Accept) && c == before);
            }
        }
    }

    #[test]
    fn the_table_of_wishes() {
        let table = [
            (U, U, (U, DTrans::Done)),
            (U, O, (O, DTrans::Pending)),
            (U, R, (U, DTrans::Initiated)),
            (O, U, (O, DTrans::Initiated)),
            (O, O, (O, DTrans::Done)),
            (O, R, (O, DTrans::Initiated)),
            (R, U, (R, DTrans::Initiated)),
            (R, O, (R, DTrans::Initiated)),
            (R, R, (R, DTrans::Done)),
        ];
        for (current, wanted, next) in table {
            let mut d = decompressor(current);
            d.want(wanted);
            assert_eq!((d.mode, d.trans), next, "{current:?} wants {wanted:?}");
        }
    }

    /// The figures of RFC 3095, sections 5.6.3 to 5.6.6, with D_TRANS = P of RFC 4815, sections 3.1.2 and 3.1.3.
    #[test]
    fn the_handshake_of_the_figures() {
        for (from, to) in [(O, R), (U, R), (R, O), (R, U), (O, U)] {
            let (mut c, mut d) = (compressor(from), decompressor(from));
            d.want(to);
            assert_eq!((d.named(), d.answers(false)), (to, true));
            assert!(c.on_request(d.named(), ReliableReply::Accept));
            assert_eq!((c.mode(), c.is_pending(), c.bits()), (to, true, to.bits()));
            // A packet without the mode, such as IR of profile 0x0002, is not the one to be acknowledged.
            assert!(!c.on_sent(false) && !c.is_announced());
            assert!(c.on_sent(true) && c.is_announced());
            assert!(!c.on_sent(true) && c.is_announced());
            d.on_mode_received(c.bits(), false);
            assert_eq!((d.mode(), d.trans, d.answers(true)), (to, DTrans::Pending, true));
            assert!(!d.answers(false));
            c.on_acknowledged(d.named(), ReliableReply::Accept);
            assert_eq!((c.mode(), c.is_pending()), (to, false));
            d.on_type_0_or_1();
            assert_eq!((d.mode(), d.trans), (to, DTrans::Done), "{from:?} to {to:?}");
            assert_eq!(d.is_two_way(), to != U);
        }
    }

    /// The figure of RFC 3843, section 3.4.
    #[test]
    fn a_transition_is_cancelled_by_mode_0() {
        for mode in [U, O] {
            let (mut c, mut d) = (compressor(mode), decompressor(mode));
            d.want(R);
            assert!(c.on_request(R, ReliableReply::Decline));
            assert_eq!((c.mode(), c.is_pending(), c.bits()), (mode, true, 0));
            c.on_sent(true);
            d.on_mode_received(0, true);
            assert_eq!((d.mode(), d.trans, d.named()), (mode, DTrans::Pending, mode));
            c.on_acknowledged(d.named(), ReliableReply::Decline);
            assert_eq!((c.mode(), c.is_pending(), c.bits()), (mode, false, mode.bits()));
            d.on_type_0_or_1();
            // The request is not repeated.
            d.want(R);
            assert_eq!((d.mode(), d.trans), (mode, DTrans::Done));
            // Where mode 0 is reserved it has no effect.
            let mut d = decompressor(mode);
            d.want(R);
            d.on_mode_received(0, false);
            assert_eq!(d.trans, DTrans::Initiated);
        }
    }

    #[test]
    fn a_request_that_is_not_answered_is_repeated_less_often() {
        let mut d = decompressor(O);
        d.want(R);
        let answers = (0..1_000).filter(|_| d.answers(false)).count();
        assert!((70..90).contains(&answers), "{answers}");
    }

    #[test]
    fn a_decompressor_without_memory_follows_what_packets_say() {
        let mut d = decompressor(U);
        d.want(O);
        // The compressor is still in R-mode. A single packet may be damaged.
        assert!(!d.on_mode_received(R.bits(), false));
        assert_eq!(d.mode(), O);
        assert!(d.on_mode_received(R.bits(), false));
        assert_eq!((d.mode(), d.trans, d.named()), (R, DTrans::Initiated, O));
        assert!(d.on_mode_received(O.bits(), false));
        assert_eq!((d.mode(), d.trans), (O, DTrans::Pending));
    }

    #[test]
    fn packets_that_contradict_each_other_change_no_mode() {
        let mut d = decompressor(U);
        d.want(O);
        for received in [R, O, R, O] {
            assert!(!d.on_mode_received(received.bits(), false), "{received:?}");
        }
        assert_eq!(d.mode(), O);
    }

    #[test]
    fn a_decompressor_that_has_lost_its_context_is_heard_while_a_transition_is_pending() {
        let mut c = compressor(R);
        c.on_request(O, ReliableReply::Accept);
        c.on_sent(true);
        c.on_acknowledged(R, ReliableReply::Accept);
        assert_eq!((c.mode(), c.is_pending(), c.is_announced()), (R, true, false));
    }
}
