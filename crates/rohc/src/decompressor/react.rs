//! Feedback: its occasions and its content. RFC 3095, sections 5.3.2.2.3, 5.4.2.2, 5.5.2.2 and 5.6; RFC 6846, sections 5.3 and 8.3;
//! `docs/coap-profile.md`, section 9.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::{
    Decompressor, DecompressorConfig, DecompressorContext, NackPolicy, PENDING, Problem, ReceiverContext,
    SharedMemory,
};
use crate::cid::Cid;
use crate::decompressor::Failure;
use crate::feedback::{AckType, Feedback};
use crate::flow::arrival::Moment;
use crate::flow::health::Verdict;
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::packet::PacketHeader;

/// Number of failed packets of one context after which a NACK is repeated, regardless of the time.
const NACK_EVERY: u8 = 8;

/// Number of packets behind IR-DYN packets whose failure shows that the static part is wrong. The CRC of an IR-DYN packet does not cover
/// it, so that more of them would go on setting up a context that fits nothing else.
const STATIC_FAILURES: u8 = 3;

impl Decompressor<'_> {
    /// Counts a failed packet, moves the state down, and sends the feedback that is due.
    #[cold]
    pub(super) fn note_failure(&mut self, header: &PacketHeader<'_>, problem: &Problem) {
        let Some(slot) = self.contexts.get_mut(header.cid.index()) else { return };
        match problem {
            Problem::Failure(Failure::NoRoom(_)) => return,
            // The packet is verified, and the context has lost part of its memory.
            Problem::Failure(Failure::NoMemory) => slot.end(&mut self.shared),
            _ => {}
        }
        if let Some(ack) = slot.note_failure(self.moment, header.first, problem, &self.config) {
            self.send_feedback(header.cid, ack, Err(problem));
        }
    }

    /// Sends feedback on a packet of that format, or on a failed one.
    #[cold]
    pub(super) fn send_feedback(&mut self, cid: Cid, ack: AckType, outcome: Result<Format, &Problem>) {
        let (config, now) = (&self.config, self.moment.now);
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return };
        if !slot.is_two_way(config) || ack != AckType::Ack && !slot.admit_nack(now, config.nack_interval) {
            return;
        }
        // RFC 3095, section 5.6.3: R-mode is requested "only after at least one packet has been correctly decompressed".
        let mode = config.mode.min(Mode::Optimistic);
        let element = Feedback { mode: Some(mode), protected: true, ..Feedback::new(cid, ack) };
        let mut element = match slot.place.context_mut() {
            Some(context) => context.complete(element, outcome.ok(), config),
            None => element,
        };
        if outcome.is_err_and(Problem::lacks_memory) {
            // RFC 3843, section 3.7, for the profile that has it; REJECT for others.
            element.context_memory = slot.place.profile() == Some(ProfileId::Ip);
            element.reject = !element.context_memory;
        }
        if self.pending[PENDING - 1].is_some() {
            self.pending.rotate_left(1);
            self.pending[PENDING - 1] = None;
        }
        if let Some(free) = self.pending.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(element);
        }
    }
}

impl DecompressorContext {
    /// Ends a context, whose memory returns to the channel.
    fn end(&mut self, shared: &mut SharedMemory<'_>) {
        self.release(shared);
        if let Some(health) = self.place.context_mut().and_then(ReceiverContext::health_mut) {
            health.drop_static();
        }
    }

    /// True if there is feedback for the context.
    fn is_two_way(&self, config: &DecompressorConfig) -> bool {
        config.mode != Mode::Unidirectional || self.place.context().is_some_and(ReceiverContext::is_two_way)
    }

    /// Counts a failed packet, and returns the feedback that is due.
    #[cold]
    fn note_failure(
        &mut self,
        at: Moment,
        first: u8,
        problem: &Problem,
        config: &DecompressorConfig,
    ) -> Option<AckType> {
        let is_two_way = self.is_two_way(config);
        let Some(context) = self.place.context_mut() else { return Some(AckType::StaticNack) };
        self.failures_since_nack = self.failures_since_nack.saturating_add(1);
        self.has_failed = true;
        if let Some(Failure::Crc(format)) = problem.failure()
            && (self.behind_ir_dyn > 0 || *format == Format::IrDyn)
        {
            self.behind_ir_dyn = self.behind_ir_dyn.max(1) + 1;
        }
        let is_static_wrong = self.behind_ir_dyn > STATIC_FAILURES;
        if is_static_wrong {
            self.behind_ir_dyn = 0;
        }
        if problem.lacks_memory() {
            return Some(AckType::StaticNack);
        }
        let policy = NackPolicy { config, is_two_way, failures_since_nack: self.failures_since_nack };
        match context.judge(at, first, problem.failure(), &policy) {
            Verdict::NoEvidence(ack) => ack,
            Verdict::Evidence(evidence) => {
                let health = context.health_mut()?;
                if is_static_wrong {
                    health.drop_static();
                    return Some(AckType::StaticNack);
                }
                health.note_failure(&evidence)
            }
        }
    }

    /// True if a negative acknowledgment was sent so recently that another one has to wait. After three weeks without one this
    /// may be wrong; it is then sent a few failures later.
    fn is_quiet(&self, now: Instant) -> bool {
        self.quiet_until != 0 && self.quiet_until.wrapping_sub(millis(now)).cast_signed() > 0
    }

    /// Returns true if a negative acknowledgment may be sent now: not often, and seldom in vain. The next ones then have to wait.
    fn admit_nack(&mut self, now: Instant, interval: Duration) -> bool {
        if self.is_quiet(now) && self.failures_since_nack < NACK_EVERY {
            return false;
        }
        self.quiet_until = millis(now + interval).max(1);
        self.failures_since_nack = 0;
        true
    }
}

impl Problem {
    /// True if there is no memory for the packet.
    fn lacks_memory(&self) -> bool {
        matches!(self, Self::Failure(Failure::TooLarge | Failure::NoMemory))
    }

    /// The failure that a profile has reported, if there is one.
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failure(failure) => Some(failure),
            Self::NoContext | Self::UnsupportedProfile(_) => None,
        }
    }
}

fn millis(time: Instant) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}
