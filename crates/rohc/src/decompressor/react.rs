//! When feedback is sent, and what it says. RFC 3095, sections 5.3.2.2.3, 5.4.2.2, 5.5.2.2 and 5.6.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::{Decompressed, Decompressor, DecompressorContext, Kind, PENDING, Problem, Threshold};
use crate::arrival::Moment;
use crate::cid::Cid;
use crate::decompressor::Failure;
use crate::feedback::{AckType, Feedback, Form};
use crate::mode::Mode;
use crate::profile::{Format, ProfileId};
use crate::state::DecompressorState;

/// Failing packets of one context after which a NACK is repeated, whatever the time.
const NACK_EVERY: u8 = 8;

/// Packets in a row that may have been right and were not delivered, at which the compressor is asked for one that is
/// beyond doubt.
const HELD_BACK: u8 = 2;

/// The threshold of U-mode where the IP-ID counts in profile 0x0006: it is said anew soon.
const COUNTS: Threshold = Threshold { k: 3, n: 3 };

impl Decompressor<'_> {
    /// Counts failures, moves the state down, and decides what feedback to send. RFC 3095, sections 5.3.2.2.3
    /// and 5.4.2.2.
    #[inline]
    pub(super) fn react(&mut self, at: Moment, cid: Cid, first: u8, outcome: &Result<Decompressed, Problem>) {
        let now = at.now;
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return };
        if let (Ok(Decompressed { format, .. }), Kind::Rfc3095(context)) = (outcome, &mut slot.kind)
            && *format != Format::Ir
            && context.mode.is_quiet(self.config.mode)
        {
            context.note_success(context.is_update(first));
            slot.unheard = 0;
            return;
        }
        if let Kind::Coap(context) = &mut slot.kind {
            if outcome.is_ok() && !context.ack_due && !context.has_report() {
                context.note_success();
                slot.unheard = 0;
            } else {
                self.react_coap(now, cid, outcome);
            }
            return;
        }
        if let Kind::Tcp(context) = &mut slot.kind {
            if outcome.is_ok() && !context.ack_due {
                context.note_success();
                slot.unheard = 0;
            } else {
                self.react_tcp(now, cid, outcome);
            }
            return;
        }
        let config = self.config;
        let mut two_way = config.mode != Mode::Unidirectional;
        let mut feedback = None;
        match (outcome, &mut slot.kind) {
            (Ok(done), Kind::Rfc3095(context)) => {
                context.note_success(context.is_update(first));
                slot.unheard = 0;
                feedback = context.acknowledges(done.format, config.mode).then_some(AckType::Ack);
                two_way |= context.mode.is_two_way();
            }
            // RFC 5795, section 5.4.5: the only feedback of profile 0x0000 is an ACK in FEEDBACK-1.
            (Ok(done), Kind::Uncompressed) => {
                slot.unheard = 0;
                if two_way && done.format == Format::Ir {
                    self.enqueue(Feedback { sn: 0, sn_bits: 8, ..Feedback::new(cid, AckType::Ack) });
                }
                return;
            }
            (Err(Problem::Failure(Failure::NoRoom(_))), _) => {}
            // None of them says that the context is damaged, and a strong CRC would settle it. That can wait while
            // others are under way; behind a pause each of them may be the last one for long.
            (
                Err(Problem::Failure(Failure::OnTrial(_) | Failure::Ambiguous(_) | Failure::Suspect(_))),
                Kind::Rfc3095(context),
            ) => {
                slot.unheard = slot.unheard.saturating_add(1);
                slot.has_failed = true;
                two_way |= context.mode.is_two_way();
                let in_vain = slot.unheard >= HELD_BACK || context.is_behind_pause(at);
                feedback = in_vain.then_some(AckType::Nack);
            }
            (Err(Problem::Failure(Failure::NoMemory)), Kind::Rfc3095(_) | Kind::Empty) => {
                slot.unheard = slot.unheard.saturating_add(1);
                feedback = Some(AckType::StaticNack);
            }
            (Err(_), Kind::Rfc3095(context)) => {
                slot.unheard = slot.unheard.saturating_add(1);
                slot.has_failed = true;
                two_way |= context.mode.is_two_way();
                let update = context.is_update(first);
                let reliable = context.mode.mode() == Mode::Reliable;
                if reliable && context.state != DecompressorState::Nc && !update {
                    // Section 5.5.2.2: "Feedback is never sent for packets not updating the context".
                    return;
                }
                context.failures = context.failures << 1 | 1;
                if update {
                    context.update_failures = context.update_failures << 1 | 1;
                }
                let nack = if two_way { config.nack } else { config.one_way };
                match context.state {
                    DecompressorState::Fc if nack.reached(context.failures) => {
                        context.state.on_dynamic_damage();
                        context.update_failures = 0;
                        feedback = Some(AckType::Nack);
                    }
                    DecompressorState::Fc => {
                        feedback = context.is_behind_pause(at).then_some(AckType::Nack);
                    }
                    DecompressorState::Sc
                        if update && config.static_nack.reached(context.update_failures) =>
                    {
                        context.state.on_static_damage();
                        feedback = Some(AckType::StaticNack);
                    }
                    DecompressorState::Sc => feedback = Some(AckType::Nack),
                    DecompressorState::Nc => feedback = Some(AckType::StaticNack),
                }
            }
            (Err(_), Kind::Empty) => feedback = Some(AckType::StaticNack),
            (Ok(_), Kind::Empty) | (Err(_), Kind::Uncompressed) | (_, Kind::Coap(_) | Kind::Tcp(_)) => {}
        }
        let (Some(ack), true) = (feedback, two_way) else { return };
        if ack != AckType::Ack {
            let known = matches!(slot.kind, Kind::Rfc3095(_));
            if slot.is_quiet(now) && !(known && slot.unheard >= NACK_EVERY) {
                return;
            }
            slot.be_quiet(now + config.nack_interval);
            slot.unheard = 0;
        }
        // Section 5.6.3: R-mode is asked for "only after at least one packet has been correctly decompressed".
        let mode = config.mode.min(Mode::Optimistic);
        let mut element = Feedback { mode: Some(mode), protected: true, ..Feedback::new(cid, ack) };
        if let Kind::Rfc3095(context) = &slot.kind {
            element.mode = Some(context.mode.named());
            if context.state != DecompressorState::Nc {
                element.sn_bits = context.feedback_sn_bits(outcome.ok().map(|done| done.format));
                element.sn = context.sn() & ((1 << element.sn_bits) - 1);
            }
            if ack == AckType::Ack && matches!(context.profile, ProfileId::Rtp | ProfileId::RtpUdpLite) {
                element.clock = config.clock;
            }
        }
        if let Err(Problem::Failure(Failure::NoMemory)) = outcome {
            // RFC 3843, section 3.7, for the profile that has it; REJECT elsewhere.
            let ip = matches!(&slot.kind, Kind::Rfc3095(context) if context.profile == ProfileId::Ip);
            element.context_memory = ip;
            element.reject = !ip;
        }
        self.enqueue(element);
    }

    /// The same for profile 0x0081: section 9 of `docs/coap-profile.md`.
    fn react_coap(&mut self, now: Instant, cid: Cid, outcome: &Result<Decompressed, Problem>) {
        let config = self.config;
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return };
        let Kind::Coap(context) = &mut slot.kind else { return };
        let ack = match outcome {
            Ok(_) => {
                context.note_success();
                slot.unheard = 0;
                AckType::Ack
            }
            Err(Problem::Failure(Failure::NoRoom(_) | Failure::OnTrial(_))) => return,
            Err(problem) => {
                let failure = problem.failure();
                context.note_failure(failure);
                if config.mode != Mode::Unidirectional && context.is_beyond_repair(config.static_nack.k) {
                    context.state.on_static_damage();
                }
                slot.unheard = slot.unheard.saturating_add(1);
                let no_memory = matches!(problem, Problem::Failure(Failure::NoMemory));
                match context.state {
                    DecompressorState::Fc if config.nack.reached(context.failures) => {
                        context.state.on_dynamic_damage();
                        AckType::Nack
                    }
                    _ if no_memory => AckType::StaticNack,
                    // A template that was lost is not found by waiting.
                    DecompressorState::Fc
                        if matches!(problem, Problem::Failure(Failure::UnknownTemplate(_))) =>
                    {
                        AckType::Nack
                    }
                    DecompressorState::Fc => return,
                    DecompressorState::Sc => AckType::Nack,
                    DecompressorState::Nc => AckType::StaticNack,
                }
            }
        };
        if config.mode == Mode::Unidirectional {
            context.ack_due = false;
            let _ = context.report();
            return;
        }
        if ack != AckType::Ack && !slot.admit_nack(now, config.nack_interval) {
            return;
        }
        let Kind::Coap(context) = &mut slot.kind else { return };
        let loss = context.report();
        let mut element = Feedback { loss, ..rfc5225(cid, ack, context.state, context.msn()) };
        let is_first = matches!(outcome, Ok(done) if done.format.is_initialization());
        if ack == AckType::Ack && !is_first && element.loss.is_none() {
            // FEEDBACK-1: the compressor knows already that there is feedback.
            element.sn &= 0xFF;
            element.sn_bits = 8;
            element.protected = false;
        }
        context.ack_due = false;
        element.reject = matches!(outcome, Err(Problem::Failure(Failure::NoMemory)));
        self.enqueue(element);
    }

    /// The same for profile 0x0006: RFC 6846, sections 5.3 and 8.3.
    fn react_tcp(&mut self, now: Instant, cid: Cid, outcome: &Result<Decompressed, Problem>) {
        let config = self.config;
        let two_way = config.mode != Mode::Unidirectional;
        let Some(slot) = self.contexts.get_mut(cid.index()) else { return };
        let Kind::Tcp(context) = &mut slot.kind else { return };
        let ack = match outcome {
            Ok(_) => {
                context.note_success();
                context.ack_due = false;
                slot.unheard = 0;
                AckType::Ack
            }
            Err(Problem::Failure(Failure::NoRoom(_))) => return,
            // It may be sent again, ever more seldom, and the next ones would look the same.
            Err(Problem::Failure(Failure::OnTrial(_) | Failure::Ambiguous(_))) => {
                slot.unheard = slot.unheard.saturating_add(1);
                AckType::Nack
            }
            Err(problem) => {
                let failure = problem.failure();
                context.note_failure(failure);
                if two_way && context.is_beyond_repair(config.static_nack.k) {
                    context.state.on_static_damage();
                }
                slot.unheard = slot.unheard.saturating_add(1);
                let nack = match (two_way, context.counts()) {
                    (true, _) => config.nack,
                    (false, true) => COUNTS,
                    (false, false) => config.one_way,
                };
                match (context.state, failure) {
                    (DecompressorState::Fc, _) if nack.reached(context.failures) => {
                        context.state.on_dynamic_damage();
                        AckType::Nack
                    }
                    // "The header MUST be discarded and a NACK SHOULD be sent" (RFC 6846, section 6.3.2).
                    (DecompressorState::Fc, Some(Failure::UnknownItem(_))) => AckType::Nack,
                    (_, Some(Failure::NoMemory)) => AckType::StaticNack,
                    (DecompressorState::Fc, _) => return,
                    (DecompressorState::Sc, _) => AckType::Nack,
                    (DecompressorState::Nc, _) => AckType::StaticNack,
                }
            }
        };
        if !two_way {
            return;
        }
        if ack != AckType::Ack && !slot.admit_nack(now, config.nack_interval) {
            return;
        }
        let Kind::Tcp(context) = &mut slot.kind else { return };
        let mut element = rfc5225(cid, ack, context.state, context.msn());
        element.reject = matches!(outcome, Err(Problem::Failure(Failure::NoMemory)));
        self.enqueue(element);
    }

    fn enqueue(&mut self, feedback: Feedback) {
        if self.pending[PENDING - 1].is_some() {
            self.pending.rotate_left(1);
            self.pending[PENDING - 1] = None;
        }
        if let Some(free) = self.pending.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(feedback);
        }
    }
}

/// Feedback in the form of RFC 5225, with 14 bits of MSN if there is one.
fn rfc5225(cid: Cid, ack: AckType, state: DecompressorState, msn: u16) -> Feedback {
    let element = Feedback { protected: true, form: Form::Rfc5225, ..Feedback::new(cid, ack) };
    match state {
        DecompressorState::Nc => element,
        DecompressorState::Sc | DecompressorState::Fc => {
            Feedback { sn: u32::from(msn) & 0x3FFF, sn_bits: 14, ..element }
        }
    }
}

impl DecompressorContext {
    /// True if a negative acknowledgment was sent so recently that another one has to wait. Behind three weeks without one
    /// that may be wrong; a few failures later it is sent all the same.
    fn is_quiet(&self, now: Instant) -> bool {
        self.quiet_until != 0 && self.quiet_until.wrapping_sub(millis(now)).cast_signed() > 0
    }

    fn be_quiet(&mut self, until: Instant) {
        self.quiet_until = millis(until).max(1);
    }

    /// Admits a negative acknowledgment, or not: they are not sent often, and seldom in vain. One that is admitted makes the next ones
    /// wait.
    fn admit_nack(&mut self, now: Instant, interval: Duration) -> bool {
        if self.is_quiet(now) && self.unheard < NACK_EVERY {
            return false;
        }
        self.be_quiet(now + interval);
        self.unheard = 0;
        true
    }
}

impl Problem {
    /// What a profile has found, if one was asked.
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
