//! Establishment of a context at the compressor: the packets that carry all fields (state IR) or all fields that can change (FO),
//! for a new flow, a change, a refresh or a request for repair. RFC 3095, sections 4.3.1 and 5.3.1; RFC 5225, section 5.2.1; RFC
//! 6846, section 5.2.

use thinair_wire::time::Instant;

use crate::cid::Cid;
use crate::compressor::Compressed;
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback};
use crate::flow::refresh::{Due, Refresh, RefreshTimer};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use crate::state::CompressorState;

/// Packets left in the states IR and FO, and the occasion of the next ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Establishment {
    /// Packets left that carry all fields.
    ir: u8,
    /// Packets left that carry all fields that can change, those of IR included.
    dynamic: u8,
    /// The state was entered to refresh or to repair a context, not to establish one.
    is_refresh: bool,
    /// The decompressor has sent feedback.
    two_way: bool,
    timer: RefreshTimer,
}

impl Establishment {
    /// A new context, with a number of IR packets.
    pub(crate) fn new(now: Instant, ir: u8) -> Self {
        Self { ir, dynamic: 0, is_refresh: false, two_way: false, timer: RefreshTimer::start(now) }
    }

    /// State of the context.
    #[inline]
    pub(crate) fn state(&self) -> CompressorState {
        match (self.ir, self.dynamic) {
            (0, 0) => CompressorState::So,
            (0, _) => CompressorState::Fo,
            _ => CompressorState::Ir,
        }
    }

    /// State of a context, for monitoring.
    pub(crate) fn context_state(&self, cid: Cid, profile: ProfileId, sn: Option<u32>) -> ContextState {
        ContextState { cid, profile, state: self.state().name(), mode: Mode::with_feedback(self.two_way), sn }
    }

    /// True if packets carry all fields.
    #[inline]
    pub(crate) fn is_ir(&self) -> bool {
        self.ir > 0
    }

    /// True if packets carry only what has changed.
    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        self.ir | self.dynamic == 0
    }

    /// True if the packets of the state are a refresh or a repair.
    #[inline]
    pub(crate) fn is_refresh(&self) -> bool {
        self.is_refresh
    }

    /// True if the decompressor has sent feedback.
    #[inline]
    pub(crate) fn is_two_way(&self) -> bool {
        self.two_way
    }

    /// Starts the refresh that is due by count or by clock. Returns what it has to carry, if one has started.
    #[inline]
    pub(crate) fn begin_packet(&mut self, now: Instant, policy: &Refresh) -> Due {
        match self.timer.tick(now, policy) {
            Due::Nothing => Due::Nothing,
            due => self.refresh(due, policy),
        }
    }

    /// [`begin_packet`](Self::begin_packet) of a profile without fields that can change.
    #[inline]
    pub(crate) fn begin_static_packet(&mut self, now: Instant, policy: &Refresh) {
        if self.begin_packet(now, policy) == Due::Dynamic {
            self.acknowledge();
        }
    }

    #[cold]
    fn refresh(&mut self, due: Due, policy: &Refresh) -> Due {
        match due {
            // Nothing has changed, so that one packet is enough for a decompressor that has lost the context.
            Due::Everything if self.ir == 0 => self.ir = policy.ir_packets(1),
            Due::Dynamic if self.ir == 0 => self.dynamic = self.dynamic.max(1),
            _ => return Due::Nothing,
        }
        self.is_refresh = true;
        due
    }

    /// True if no refresh is due at the next packet, which is then [counted](Self::count_quiet).
    #[inline]
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.timer.is_quiet(now)
    }

    /// Counts a packet of that many octets that refreshed nothing.
    #[inline]
    pub(crate) fn count_quiet(&mut self, octets: usize) {
        self.timer.count(octets);
    }

    /// Restarts the time to the next refresh, whose policy was replaced.
    pub(crate) fn restart_refresh(&mut self, now: Instant) {
        self.timer.restart(now);
    }

    /// Records a change of the static or the dynamic part.
    pub(crate) fn changed(&mut self) {
        self.timer.changed();
    }

    /// Requires a number of packets with all fields, some of which have changed.
    pub(crate) fn require_ir(&mut self, packets: u8) {
        self.ir = self.ir.max(packets);
        self.is_refresh = false;
    }

    /// Requires a number of packets with all fields that can change, some of which have.
    pub(crate) fn require_dynamic(&mut self, packets: u8) {
        self.dynamic = self.dynamic.max(packets);
        self.is_refresh = false;
    }

    /// Records that feedback arrived; false if it may be damage that looks like FEEDBACK-1. The first one ends the refreshes of a
    /// channel without feedback.
    #[cold]
    #[inline(never)]
    pub(crate) fn admits(&mut self, now: Instant, feedback: &Feedback) -> bool {
        let is_admitted = self.two_way || feedback.protected;
        if is_admitted {
            self.answered(now);
        }
        is_admitted
    }

    /// Records that the decompressor has sent feedback.
    pub(crate) fn answered(&mut self, now: Instant) {
        if !self.two_way {
            self.two_way = true;
            self.timer.restart(now);
        }
    }

    /// Starts the repair that a NACK or STATIC-NACK requests. A NACK of a decompressor that may not have the static part has the
    /// meaning of a STATIC-NACK. Returns true if the repair has the static part.
    #[cold]
    #[inline(never)]
    pub(crate) fn repair(&mut self, ack: AckType, has_static: bool, packets: u8) -> bool {
        let needs_static = ack != AckType::Nack || !has_static;
        if needs_static {
            self.require_ir(packets);
        } else {
            self.require_dynamic(packets);
        }
        self.is_refresh = true;
        needs_static
    }

    /// Ends IR: its packets have arrived.
    pub(crate) fn end_ir(&mut self) {
        self.ir = 0;
    }

    /// Ends the state: a packet with all of it was acknowledged.
    pub(crate) fn acknowledge(&mut self) {
        (self.ir, self.dynamic, self.is_refresh) = (0, 0, false);
    }

    /// Records a packet that was sent. `rebuilds` is true if a decompressor without a context has one after it.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, done: &Compressed, rebuilds: bool, policy: &Refresh) {
        self.timer.sent(now, done, rebuilds, policy);
    }

    /// Counts the format of a packet that was sent.
    #[inline]
    pub(crate) fn count(&mut self, format: Format) {
        if self.is_established() || !format.carries_dynamic() {
            return;
        }
        self.dynamic = self.dynamic.saturating_sub(1);
        if format.carries_static() {
            self.ir = self.ir.saturating_sub(1);
        }
        self.is_refresh &= !self.is_established();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cid::Cid;
    use alloc::string::String;
    use core::fmt::Write as _;

    /// A context in a state, for which two packets are left.
    fn context(state: CompressorState) -> Establishment {
        let mut context = Establishment::new(Instant::ZERO, 0);
        match state {
            CompressorState::Ir => context.require_ir(2),
            CompressorState::Fo => context.require_dynamic(2),
            CompressorState::So => {}
        }
        context
    }

    fn feedback(ack: AckType) -> Feedback {
        Feedback { sn_bits: 8, protected: true, ..Feedback::new(Cid::new(0).unwrap(), ack) }
    }

    #[test]
    fn states_change_like_the_figure_of_section_5_3_1() {
        type Event = (&'static str, fn(&mut Establishment));
        let events: [Event; 8] = [
            ("ACK", |context| context.acknowledge()),
            ("NACK", |context| _ = context.repair(AckType::Nack, true, 2)),
            ("NACK, static part unknown", |context| _ = context.repair(AckType::Nack, false, 2)),
            ("STATIC-NACK", |context| _ = context.repair(AckType::StaticNack, true, 2)),
            ("change", |context| context.require_dynamic(2)),
            ("static change", |context| context.require_ir(2)),
            ("two IR-DYN", |context| (0..2).for_each(|_| context.count(Format::IrDyn))),
            ("two IR", |context| (0..2).for_each(|_| context.count(Format::Ir))),
        ];
        let mut table = String::new();
        for (name, event) in events {
            let _ = write!(table, "{name}:");
            for state in [CompressorState::Ir, CompressorState::Fo, CompressorState::So] {
                let mut context = context(state);
                event(&mut context);
                let _ = write!(table, " {}>{}", state.name(), context.state().name());
            }
            table.push('\n');
        }
        assert_eq!(
            table,
            "ACK: IR>SO FO>SO SO>SO\n\
             NACK: IR>IR FO>FO SO>FO\n\
             NACK, static part unknown: IR>IR FO>IR SO>IR\n\
             STATIC-NACK: IR>IR FO>IR SO>IR\n\
             change: IR>IR FO>FO SO>FO\n\
             static change: IR>IR FO>IR SO>IR\n\
             two IR-DYN: IR>IR FO>SO SO>SO\n\
             two IR: IR>SO FO>SO SO>SO\n"
        );
    }

    #[test]
    fn only_a_repair_is_a_refresh_and_a_change_ends_it() {
        let mut context = context(CompressorState::So);
        assert!(!context.repair(AckType::Nack, true, 2) && context.is_refresh());
        context.count(Format::IrDyn);
        assert!(context.is_refresh());
        context.require_dynamic(1);
        assert!(!context.is_refresh());
        context.repair(AckType::StaticNack, true, 1);
        context.count(Format::Ir);
        assert!(!context.is_refresh() && context.is_established());
    }

    #[test]
    fn feedback_without_a_crc_is_ignored_until_there_was_some() {
        let mut context = context(CompressorState::Ir);
        let unprotected = Feedback { protected: false, ..feedback(AckType::Ack) };
        assert!(!context.admits(Instant::ZERO, &unprotected) && !context.is_two_way());
        assert!(context.admits(Instant::ZERO, &feedback(AckType::Ack)));
        assert!(context.admits(Instant::ZERO, &unprotected) && context.is_two_way());
    }
}
