//! Health of a context at the decompressor: its state, the outcomes of its last packets, and the negative feedback that follows from
//! them. RFC 3095, section 5.3.2.2.3; RFC 5225, section 5.3.2; RFC 6846, section 5.3.2.

use crate::decompressor::Threshold;
use crate::feedback::AckType;
use crate::state::DecompressorState;

/// The last two packets in [`Health::failures`].
const LAST_TWO: u16 = 0b11;

/// State of a context, and the outcomes of its last packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    pub(crate) state: DecompressorState,
    /// Outcomes of the last 16 packets: 1 is a failure.
    failures: u16,
    /// Packets in a row that should have repaired the context, and failed.
    unrepaired: u8,
}

/// A failed packet, as its profile judges it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// It shows nothing of the context. Feedback on it, if there is some.
    NoEvidence(Option<AckType>),
    /// The context may be damaged.
    Evidence(Evidence),
}

/// Evidence of a damaged context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// `k_1` of `n_1`.
    pub(crate) nack: Threshold,
    /// The failure is one that waiting does not mend.
    pub(crate) is_urgent: bool,
    /// The packet should have repaired the context.
    pub(crate) is_repair: bool,
    /// Repairs whose failure shows that the static part is wrong; `None` where it only lasts longer without it.
    pub(crate) static_nack: Option<u8>,
}

impl Health {
    /// A context without a packet.
    pub(crate) const NEW: Self = Self { state: DecompressorState::Nc, failures: 0, unrepaired: 0 };

    /// The health behind a packet of another flow, to which no outcome before it belongs.
    pub(crate) fn of_other_flow(self) -> Self {
        Self { state: self.state, ..Self::NEW }
    }

    /// Counts a verified packet.
    #[inline]
    pub(crate) fn note_success(&mut self) {
        self.failures <<= 1;
    }

    /// Earlier failures are no evidence any more: a packet proves the context.
    #[inline]
    pub(crate) fn note_proof(&mut self) {
        self.failures = 0;
    }

    /// The context is right: a packet has updated it.
    #[inline]
    pub(crate) fn note_repair(&mut self) {
        self.unrepaired = 0;
    }

    /// True if the last two packets have failed: a header that is right with a CRC of 3 bits is then held back.
    #[inline]
    pub(crate) fn is_doubtful(&self) -> bool {
        self.failures & LAST_TWO == LAST_TWO
    }

    /// True if neither of the last two packets has failed.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.failures & LAST_TWO == 0
    }

    /// Counts a failed packet, moves the state down, and returns the feedback that is due: in Full Context a NACK after many failures,
    /// or for an urgent one; in Static Context a STATIC-NACK if the static part is wrong.
    pub(crate) fn note_failure(&mut self, evidence: &Evidence) -> Option<AckType> {
        self.failures = self.failures << 1 | 1;
        self.unrepaired = self.unrepaired.saturating_add(u8::from(evidence.is_repair));
        match self.state {
            DecompressorState::Fc if evidence.nack.is_reached(self.failures) => {
                self.state.on_dynamic_damage();
                Some(AckType::Nack)
            }
            DecompressorState::Fc => evidence.is_urgent.then_some(AckType::Nack),
            DecompressorState::Sc if evidence.static_nack.is_some_and(|enough| self.unrepaired >= enough) => {
                self.state.on_static_damage();
                Some(AckType::StaticNack)
            }
            DecompressorState::Sc => Some(AckType::Nack),
            DecompressorState::Nc => Some(AckType::StaticNack),
        }
    }

    /// Drops the context, whose static part is wrong.
    pub(crate) fn drop_static(&mut self) {
        self.state = DecompressorState::Nc;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIDENCE: Evidence =
        Evidence { nack: Threshold { k: 2, n: 3 }, is_urgent: false, is_repair: true, static_nack: Some(2) };

    fn health(state: DecompressorState) -> Health {
        Health { state, ..Health::NEW }
    }

    #[test]
    fn a_context_is_moved_down_and_asked_for_step_by_step() {
        let mut health = health(DecompressorState::Fc);
        let evidence = Evidence { is_repair: false, ..EVIDENCE };
        assert_eq!(health.note_failure(&evidence), None);
        assert_eq!(
            (health.note_failure(&evidence), health.state),
            (Some(AckType::Nack), DecompressorState::Sc)
        );
        assert_eq!(
            (health.note_failure(&EVIDENCE), health.state),
            (Some(AckType::Nack), DecompressorState::Sc)
        );
        health.note_repair();
        assert_eq!(health.note_failure(&EVIDENCE), Some(AckType::Nack));
        let static_nack = Some(AckType::StaticNack);
        assert_eq!((health.note_failure(&EVIDENCE), health.state), (static_nack, DecompressorState::Nc));
        assert_eq!(health.note_failure(&EVIDENCE), static_nack);
    }

    #[test]
    fn an_urgent_failure_is_answered_at_once_and_moves_nothing() {
        let mut health = health(DecompressorState::Fc);
        let urgent = Evidence { is_urgent: true, ..EVIDENCE };
        assert_eq!(
            (health.note_failure(&urgent), health.state),
            (Some(AckType::Nack), DecompressorState::Fc)
        );
    }

    #[test]
    fn without_feedback_the_static_part_is_kept() {
        let mut health = health(DecompressorState::Sc);
        let one_way = Evidence { static_nack: None, ..EVIDENCE };
        for _ in 0..20 {
            assert_eq!(health.note_failure(&one_way), Some(AckType::Nack));
        }
        assert_eq!(health.state, DecompressorState::Sc);
    }

    #[test]
    fn two_failures_in_a_row_are_doubtful_until_a_packet_is_right() {
        let mut health = health(DecompressorState::Fc);
        let one = Evidence { nack: Threshold { k: 16, n: 16 }, ..EVIDENCE };
        health.note_failure(&one);
        assert!(!health.is_steady() && !health.is_doubtful());
        health.note_failure(&one);
        assert!(health.is_doubtful());
        health.note_success();
        assert!(!health.is_steady() && !health.is_doubtful());
        health.note_proof();
        assert!(health.is_steady());
    }
}
