//! State of a compressor's context that depends on its profile.

use thinair_wire::time::Instant;

use super::rtp::{RtpFields, RtpHeader};
use super::timestamp::{Needed, SnStep, Timestamps};
use super::{CSRC, Rfc3095Fields};
use crate::compressor::CompressorConfig;
use crate::field::rtp::Guess;
use crate::field::timer::TimerLimits;
use crate::id::Format;

/// State of the headers behind IP and UDP in a context.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::large_enum_variant, reason = "places are of one size, and nothing is allocated")]
pub(super) enum UpperContext {
    #[default]
    None,
    /// Detection of RTP in a flow of UDP or UDP-Lite.
    Guess(Guess),
    /// SPI.
    Esp(u32),
    #[cfg(feature = "rtp")]
    Rtp(RtpContext),
}

/// State of the RTP headers of a flow at the compressor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RtpContext {
    /// Fields of the last packet.
    pub(super) fields: RtpFields,
    pub(super) timestamps: Timestamps,
}

impl UpperContext {
    /// True if the flow is ESP with that SPI.
    #[inline]
    pub(super) fn is_spi(&self, spi: u32) -> bool {
        matches!(self, Self::Esp(kept) if *kept == spi)
    }

    /// State of RTP headers, if the flow has them.
    #[inline]
    pub(super) fn rtp(&self) -> Option<&RtpContext> {
        match self {
            #[cfg(feature = "rtp")]
            Self::Rtp(rtp) => Some(rtp),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn rtp_mut(&mut self) -> Option<&mut RtpContext> {
        match self {
            #[cfg(feature = "rtp")]
            Self::Rtp(rtp) => Some(rtp),
            _ => None,
        }
    }
}

/// Changes of an RTP header.
pub(super) struct NotedRtp {
    /// The CRC-STATIC octets are unchanged, except CSRC identifiers.
    pub(super) is_static_same: bool,
    /// Fields have to be sent, from this packet on.
    pub(super) is_changed: bool,
}

impl RtpContext {
    /// Records the header of a packet, with the fields that have to be sent.
    pub(super) fn note(
        &mut self,
        now: Instant,
        x: &mut Rfc3095Fields<'_>,
        header: &RtpHeader<'_>,
        sn: SnStep,
        config: &CompressorConfig,
        link: Option<&TimerLimits>,
    ) -> NotedRtp {
        x.rtp = header.fields;
        let before = &self.fields;
        let (is_other_x, is_other_p) = (x.rtp.x != before.x, x.rtp.p != before.p);
        let is_other_pt = is_other_p || x.rtp.pt != before.pt;
        if is_other_x || is_other_pt {
            let is_announced = self.timestamps.pt == 0 || self.timestamps.is_x_alone();
            self.timestamps.set_x_alone(!is_other_pt && is_announced);
            self.timestamps.pt = config.repetitions.max(1);
        }
        let is_other_ts = self.timestamps.note(now, &mut x.rtp, before, sn, config, link);
        let is_changed = is_other_ts || is_other_x || is_other_pt;
        NotedRtp { is_static_same: !(is_other_x || is_other_p), is_changed }
    }

    /// Returns the header of a packet if the SN determines all of it; `None` otherwise.
    #[inline]
    pub(super) fn regular(&self, header: &RtpHeader<'_>, link: Option<&TimerLimits>) -> Option<RtpFields> {
        let before = &self.fields;
        let rtp = RtpFields { stride: before.stride, time_stride: before.time_stride, ..header.fields };
        let is_same = rtp == RtpFields { ts: rtp.ts, m: rtp.m, ..*before };
        let is_regular =
            is_same && !rtp.m && header.csrc.is_empty() && link.is_none() && self.timestamps.pt == 0;
        (is_regular && self.timestamps.is_regular(&rtp, before)).then_some(rtp)
    }

    /// Records a packet that was sent with a [`regular`](Self::regular) header.
    #[inline]
    pub(super) fn go_on(&mut self, rtp: RtpFields, window: usize) {
        self.timestamps.go_on(&rtp, window);
        self.fields = rtp;
    }

    /// Fills in the fields of RTP in extension 3, if there is one, which may have to carry the mode.
    pub(super) fn fill_extension(&self, x: &mut Rfc3095Fields<'_>, ts: &Needed, has_mode: bool) {
        let has_x = self.timestamps.pt > 0;
        let has_pt = has_x && !self.timestamps.is_x_alone();
        let extra = &mut x.rtp_extra;
        extra.scaled = ts.scaled;
        extra.stride = self.timestamps.needs_stride();
        extra.time_stride = self.timestamps.needs_time_stride();
        extra.flags = has_mode || has_x || extra.stride || extra.time_stride || x.extra[CSRC].has_list;
        // RFC 4815, section 6.4: without R-PT, the padding bit would become zero.
        extra.pt = extra.flags && (has_pt || x.rtp.p);
    }

    /// Fills in the fields of RTP in a dynamic chain.
    pub(super) fn fill_chain(&self, x: &mut Rfc3095Fields<'_>) {
        x.rtp_extra.stride = self.timestamps.is_stride_known();
        x.rtp_extra.time_stride = x.rtp.time_stride > 0 || self.timestamps.needs_time_stride();
    }

    /// Records a packet that was sent, not in R-mode.
    pub(super) fn commit(&mut self, now: Instant, x: &Rfc3095Fields<'_>, format: Format, window: usize) {
        let in_full = format.is_initialization();
        if in_full || x.rtp_extra.flags {
            self.timestamps.pt = self.timestamps.pt.saturating_sub(1);
        }
        self.timestamps.commit(now, &x.rtp, &x.rtp_extra, in_full, window);
    }
}
