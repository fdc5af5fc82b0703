//! Feedback for a context at the compressor. RFC 3095, sections 5.4.1.1 and 5.5.1.1.

use thinair_wire::serial::Serial;
use thinair_wire::time::Instant;

use super::compress::{CSRC_STATE, Rfc3095SenderContext};
use super::list_plan::{Assurance, SentItems};
use super::table::{ExtensionBlock, Pool};
use super::{BASE_IPS, CSRC, has_rtp};
use crate::cid::Cid;
use crate::compressor::{CompressorConfig, SenderContext};
use crate::contexts::ContextState;
use crate::feedback::{AckType, Feedback, FeedbackForm};
use crate::flow::pending::Pending;
use crate::id::Format;

/// The last IR packets that were sent in a row, and whether one was acknowledged.
///
/// If a flow had the CID before, the decompressor may hold its static chain until then. Acknowledgments of other packets do not
/// exclude that: the CRC of an IR-DYN packet does not cover the static chain, and CRC-3 may fit both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Initialization {
    /// Low bits of the SN of the newest IR packet.
    sn: u8,
    /// [`ACKNOWLEDGED`], [`SUMS`], and the number of IR packets before the newest one.
    flags: u8,
}

/// Flag of `Initialization`: an IR packet was acknowledged.
const ACKNOWLEDGED: u8 = 0x80;

/// Flag of `Initialization`: the last packet with all fields had a correct transport checksum.
const SUMS: u8 = 0x40;

impl Initialization {
    /// No flow had the CID before.
    pub(super) const CONFIRMED: Self = Self { sn: 0, flags: ACKNOWLEDGED };

    /// True if an IR packet was acknowledged.
    #[inline]
    pub(super) fn is_acknowledged(self) -> bool {
        self.flags & ACKNOWLEDGED != 0
    }

    /// True if the last packet with all fields had a correct transport checksum.
    #[inline]
    pub(super) fn has_right_sum(self) -> bool {
        self.flags & SUMS != 0
    }

    /// The decompressor may have another static chain from now on.
    pub(super) fn restart(&mut self) {
        self.flags &= SUMS;
    }

    /// Records an IR or IR-DYN packet behind that with the SN `previous`.
    pub(super) fn sent(&mut self, format: Format, sn: u16, previous: u16, has_right_sum: bool) {
        let (acknowledged, mut more) = (self.flags & ACKNOWLEDGED, self.flags & !(ACKNOWLEDGED | SUMS));
        if format == Format::Ir {
            more = if self.sn == previous as u8 { (more + 1).min(SUMS - 1) } else { 0 };
            self.sn = sn as u8;
        }
        self.flags = acknowledged | if has_right_sum { SUMS } else { 0 } | more;
    }

    /// Records the acknowledgment of a packet. True if it is the first one of an IR packet.
    fn acknowledge(&mut self, sn: u16) -> bool {
        let more = self.flags & !(ACKNOWLEDGED | SUMS);
        let is_first = !self.is_acknowledged() && self.sn.wrapping_sub(sn as u8) <= more;
        if is_first {
            self.flags |= ACKNOWLEDGED;
        }
        is_first
    }
}

impl SenderContext for Rfc3095SenderContext {
    type Room = ExtensionBlock;

    /// In R-mode packets carry everything until it is acknowledged, however long that takes.
    fn is_charged(&self) -> bool {
        !self.mode.is_secure()
    }

    fn form(&self) -> FeedbackForm {
        FeedbackForm::Rfc3095
    }

    fn has_timestamps(&self) -> bool {
        has_rtp(self.profile)
    }

    /// Handles ACK, NACK and STATIC-NACK. RFC 3095, sections 5.4.1.1.1 and 5.4.1.1.2.
    fn receive_feedback(
        &mut self,
        now: Instant,
        feedback: &Feedback,
        config: &CompressorConfig,
        pool: &mut Pool<'_>,
    ) -> Option<Cid> {
        let repetitions = config.repetitions;
        let next = u32::from(self.since(self.next_sn()));
        let sn = feedback.newer(self.sn).map(|newer| (self.sn as u16).wrapping_sub(newer as u16));
        match feedback.ack {
            AckType::Ack => {
                if let Some(sn) = sn {
                    self.acknowledge(sn, config, pool);
                }
            }
            AckType::Nack if !self.mode.is_secure() && self.caution.repeat_at_once() => {}
            AckType::Nack | AckType::StaticNack => {
                self.caution.refused();
                if self.repair(feedback.ack, next, repetitions) {
                    // No list is established any longer: RFC 3095, section 5.8.2.1 a).
                    self.lists.iter_mut().for_each(|list| list.forget_reference());
                }
            }
        }
        self.note_mode(now, feedback, sn, config);
        None
    }

    fn restart(&mut self, config: &CompressorConfig, _: &mut Pool<'_>) {
        self.require_ir(self.next_sn(), self.ir_packets(config));
    }

    fn release(&mut self, pool: &mut Pool<'_>) -> bool {
        let had_some = !self.table.is_empty();
        self.table.release(pool);
        had_some
    }

    fn context_state(&self, cid: Cid) -> ContextState {
        let state = self.establishment.context_state(cid, self.profile, Some(self.sn));
        ContextState { mode: self.mode.mode(), ..state }
    }
}

impl Rfc3095SenderContext {
    fn acknowledge(&mut self, sn: u16, config: &CompressorConfig, pool: &mut Pool<'_>) {
        if self.initialization.acknowledge(sn) {
            self.strong = self.strong.min(config.repetitions.saturating_mul(2));
        }
        // Packets before the acknowledged one are no longer references.
        let secure = self.mode.is_secure();
        if secure && !self.acknowledge_reference(sn) {
            return;
        }
        let newer = if secure { None } else { self.sns.acknowledge(sn) };
        let width = usize::from(config.window);
        if let Some(newer) = newer {
            self.caution.acknowledge(newer as u32);
            for offsets in &mut self.offsets {
                offsets.acknowledge(newer, width);
            }
        }
        if let (Some(rtp), Some(newer)) = (self.own.rtp_mut(), newer) {
            rtp.timestamps.acknowledge(sn, newer, width);
        }
        if !sn.is_before(self.state_since) {
            self.establishment.acknowledge();
        }
        // An acknowledged packet has carried all changes, if it is not older than the newest one.
        if !sn.is_before(self.pending_since) {
            self.pending = [Pending::NONE; BASE_IPS];
            self.coverage.acknowledge();
            if let Some(rtp) = self.own.rtp_mut() {
                rtp.timestamps.acknowledge_changes();
                if secure {
                    rtp.timestamps.acknowledge_timer();
                }
            }
        }
        let is_rtp = has_rtp(self.profile);
        let assurance = Assurance::of(self.mode, config.repetitions);
        for (i, list) in self.lists.iter_mut().enumerate() {
            let i = if is_rtp && i == CSRC_STATE && self.ip_count == 1 { CSRC } else { i };
            let mut items = SentItems { owner: i, table: &mut self.table, pool };
            list.acknowledge(sn, self.sn as u16, assurance, &mut items);
        }
    }
}
