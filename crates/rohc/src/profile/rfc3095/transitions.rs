//! Transitions between the states of a context at the compressor: IR, FO and SO. RFC 3095, sections 5.3.1.1 and 5.4.1.1.

use thinair_wire::time::Instant;

use super::compress::Rfc3095SenderContext;
use super::pending::changes;
use crate::compressor::CompressorConfig;
use crate::feedback::AckType;
use crate::flow::refresh::Due;
use crate::id::Format;

impl Rfc3095SenderContext {
    /// Number of IR packets that establish a context.
    pub(super) fn ir_packets(&self, config: &CompressorConfig) -> u8 {
        let repetitions = config.repetitions.max(1);
        if self.mode.is_unidirectional() { config.refresh.ir_packets(repetitions) } else { repetitions }
    }

    /// True if an IR packet was acknowledged in O-mode or R-mode.
    pub(super) fn is_confirmed(&self) -> bool {
        self.initialization.is_acknowledged() && !self.mode.is_unidirectional()
    }

    /// Starts the refresh that is due by count or by clock, if there is one.
    pub(super) fn note_refresh(&mut self, now: Instant, sn: u32, config: &CompressorConfig) {
        if self.pending_since == sn as u16 {
            self.establishment.changed();
        }
        match self.establishment.begin_packet(now, config.policy(self.is_confirmed())) {
            Due::Everything => self.begin_ir(sn),
            Due::Dynamic => self.begin_state(sn),
            Due::Nothing => {}
        }
    }

    /// Sends the static part again, which has changed.
    pub(super) fn require_ir(&mut self, sn: u32, packets: u8) {
        self.establishment.changed();
        self.establishment.require_ir(packets);
        self.begin_ir(sn);
        self.initialization.restart();
    }

    /// Sends the dynamic part again, which has changed.
    pub(super) fn require_dynamic(&mut self, sn: u32, packets: u8) {
        self.establishment.require_dynamic(packets);
        if self.establishment.is_ir() {
            // IR packets carry it, too.
            self.state_since = sn as u16;
            return;
        }
        self.establishment.changed();
        self.begin_state(sn);
    }

    /// Starts a repair that feedback requests. Returns true if it has the static part.
    pub(super) fn repair(&mut self, ack: AckType, sn: u32, packets: u8) -> bool {
        let is_ir = self.establishment.repair(ack, self.initialization.is_acknowledged(), packets);
        if is_ir {
            self.begin_ir(sn);
        } else if !self.establishment.is_ir() {
            self.begin_state(sn);
        }
        is_ir
    }

    fn begin_ir(&mut self, sn: u32) {
        self.begin_state(sn);
        self.mode.on_initialization();
    }

    fn begin_state(&mut self, sn: u32) {
        (self.established, self.state_since) = (false, sn as u16);
        if self.mode.is_secure() {
            // No packet refers to anything before one of these packets is acknowledged.
            self.forget_references(sn as u16);
        }
    }

    /// Counts the last IR packet twice for fields that the second packet of a flow shows: the behavior of the IP-ID, and
    /// TS_STRIDE.
    fn count_once_more(&mut self) {
        for pending in &mut self.pending {
            pending.count(changes::FLAGS, true);
            pending.count(changes::ID, true);
        }
        if let Some(rtp) = self.own.rtp_mut() {
            rtp.timestamps.count_once_more();
        }
    }

    /// Counts an IR or IR-DYN packet that was sent, and leaves the state with the last one.
    pub(super) fn count_initialization(&mut self, format: Format, config: &CompressorConfig) {
        if self.mode.is_secure() {
            return;
        }
        let is_new = format == Format::Ir && !self.establishment.is_refresh();
        self.establishment.count(format);
        if config.interop.established_by_ir && is_new && !self.establishment.is_ir() {
            self.count_once_more();
        }
    }
}
