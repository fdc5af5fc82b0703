//! Transitions between the states of a context at the compressor: IR, FO and SO. RFC 3095, sections 5.3.1.1 and 5.4.1.1.

use thinair_wire::time::Instant;

use super::compress::{REFRESH, Rfc3095SenderContext};
use crate::compressor::CompressorConfig;
use crate::id::Format;
use crate::refresh::{Due, Refresh};
use crate::state::CompressorState;

impl Rfc3095SenderContext {
    /// Number of IR packets that establish a context.
    pub(super) fn ir_packets(&self, config: &CompressorConfig) -> u8 {
        let repetitions = config.repetitions.max(1);
        if self.mode.is_unidirectional() { config.refresh.ir_packets(repetitions) } else { repetitions }
    }

    /// Refresh policy of the mode; that of U-mode until an IR packet is acknowledged.
    pub(super) fn policy<'c>(&self, config: &'c CompressorConfig) -> &'c Refresh {
        let is_confirmed = self.initialization.is_acknowledged() && !self.mode.is_unidirectional();
        if is_confirmed { &config.refresh_two_way } else { &config.refresh }
    }

    /// Starts the refresh that is due by count or by clock, if there is one.
    pub(super) fn note_refresh(&mut self, now: Instant, sn: u32, config: &CompressorConfig) {
        if self.pending_since == sn as u16 {
            self.timer.changed();
        }
        let policy = self.policy(config);
        match self.timer.tick(now, policy) {
            // Nothing has changed, so that one packet is enough for a decompressor that has lost the context.
            Due::Everything if self.state != CompressorState::Ir => {
                self.enter_ir(sn, policy.ir_packets(1), true)
            }
            Due::Dynamic if self.state == CompressorState::So => self.enter_fo(sn, 1, true),
            Due::Everything | Due::Dynamic | Due::Nothing => {}
        }
    }

    pub(super) fn enter_ir(&mut self, sn: u32, packets: u8, refreshing: bool) {
        self.established = false;
        if !refreshing {
            self.timer.changed();
        }
        self.state.on_static_nack();
        self.enter(sn as u16, packets, refreshing);
        self.mode.on_initialization();
        if !refreshing {
            self.initialization.restart();
        }
    }

    pub(super) fn enter_fo(&mut self, sn: u32, packets: u8, refreshing: bool) {
        if self.state == CompressorState::Ir {
            if !refreshing {
                // IR packets carry it, too; IR-DYN packets carry the rest.
                self.in_state.mark(sn as u16);
                self.dynamic = packets.min(REFRESH - 1);
            }
            return;
        }
        self.established = false;
        if !refreshing {
            self.timer.changed();
        }
        self.state.on_nack();
        self.enter(sn as u16, packets, refreshing);
    }

    fn enter(&mut self, sn: u16, packets: u8, refreshing: bool) {
        self.in_state.start(sn, packets);
        self.dynamic = if refreshing { REFRESH } else { 0 };
        if self.mode.is_secure() {
            // No packet refers to anything before one of these packets is acknowledged.
            self.forget_references(sn);
        }
    }

    /// Counts the last IR packet twice for fields that the second packet of a flow shows: the behavior of the IP-ID, and
    /// TS_STRIDE.
    fn count_once_more(&mut self) {
        for pending in &mut self.pending {
            pending.flags = pending.flags.saturating_sub(1);
            pending.id = pending.id.saturating_sub(1);
        }
        if let Some(rtp) = self.own.rtp_mut() {
            rtp.timestamps.count_once_more();
        }
    }

    /// Counts an IR or IR-DYN packet that was sent, and leaves the state with the last one.
    pub(super) fn count_initialization(&mut self, format: Format, config: &CompressorConfig) {
        let secure = self.mode.is_secure();
        if !secure {
            self.in_state.sent();
            if self.dynamic != REFRESH {
                self.dynamic = self.dynamic.saturating_sub(1);
            }
        }
        if !self.in_state.is_due() {
            let is_new = format == Format::Ir && self.dynamic != REFRESH;
            if config.interop.established_by_ir && is_new && !secure {
                self.count_once_more();
            }
            self.leave_state();
        }
    }

    /// Leaves the state, after enough packets were sent, or one was acknowledged.
    pub(super) fn leave_state(&mut self) {
        let dynamic = core::mem::take(&mut self.dynamic);
        self.state.on_static_confidence();
        self.state.on_dynamic_confidence();
        if dynamic > 0 && dynamic != REFRESH {
            self.in_state.repeat(dynamic);
            self.state.on_nack();
        }
    }
}
