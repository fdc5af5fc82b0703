//! What a compressor's context keeps that one profile alone has.

use thinair_wire::time::Instant;

use super::coap_2015::CoapFields;
use super::rtp::{Header, RtpFields};
use super::timer::Link;
use super::timestamp::{Needed, Timestamps};
use super::{CSRC, Fields};
use crate::compressor::CompressorConfig;
use crate::field::rtp::Guess;
use crate::profile::Format;

/// What a context keeps of the headers behind IP and UDP.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::large_enum_variant, reason = "places are of one size, and nothing is allocated")]
pub(super) enum Own {
    #[default]
    None,
    /// Of a flow of UDP or UDP-Lite: whether it is RTP.
    Guess(Guess),
    /// SPI.
    Esp(u32),
    Coap(CoapFields),
    #[cfg(feature = "rtp")]
    Rtp(RtpContext),
}

/// What the compressor knows of the RTP headers of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RtpContext {
    /// Of the last packet.
    pub(super) fields: RtpFields,
    pub(super) timestamps: Timestamps,
}

impl Own {
    /// True if it is of ESP with that SPI.
    #[inline]
    pub(super) fn is_spi(&self, spi: u32) -> bool {
        matches!(self, Self::Esp(kept) if *kept == spi)
    }

    /// Fields of RTP headers.
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

impl RtpContext {
    /// Notes the header of a packet, and what must be said of it, since when. Returns whether its CRC-STATIC octets are
    /// those of the packet before, the CSRC identifiers apart.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn note(
        &mut self,
        now: Instant,
        x: &mut Fields<'_>,
        header: &Header<'_>,
        sns: (u32, u32, u16),
        config: &CompressorConfig,
        link: Option<&Link>,
        since: &mut u16,
    ) -> bool {
        x.rtp = header.fields;
        let before = &self.fields;
        let (is_other_x, is_other_p) = (x.rtp.x != before.x, x.rtp.p != before.p);
        let is_other_pt = is_other_p || x.rtp.pt != before.pt;
        if is_other_x || is_other_pt {
            let is_said = self.timestamps.pt == 0 || self.timestamps.is_x_alone();
            self.timestamps.set_x_alone(!is_other_pt && is_said);
            self.timestamps.pt = config.repetitions.max(1);
        }
        let said = (config.repetitions, config.window);
        if self.timestamps.note(now, &mut x.rtp, before, sns, said, link) || is_other_x || is_other_pt {
            *since = sns.2;
        }
        !(is_other_x || is_other_p)
    }

    /// The header of a packet of which the SN says everything; `None` if there is more to say.
    #[inline]
    pub(super) fn regular(&self, header: &Header<'_>, link: Option<&Link>) -> Option<RtpFields> {
        let before = &self.fields;
        let rtp = RtpFields { stride: before.stride, time_stride: before.time_stride, ..header.fields };
        let is_same = rtp == RtpFields { ts: rtp.ts, m: rtp.m, ..*before };
        let is_regular =
            is_same && !rtp.m && header.csrc.is_empty() && link.is_none() && self.timestamps.pt == 0;
        (is_regular && self.timestamps.is_regular(&rtp, before)).then_some(rtp)
    }

    /// A packet was sent whose header is [`regular`](Self::regular).
    #[inline]
    pub(super) fn go_on(&mut self, rtp: RtpFields, window: usize) {
        self.timestamps.go_on(&rtp, window);
        self.fields = rtp;
    }

    /// Fills in what extension 3 says of RTP, should there be one, which may have to say the mode.
    pub(super) fn fill_extension(&self, x: &mut Fields<'_>, ts: &Needed, says_mode: bool) {
        let says_x = self.timestamps.pt > 0;
        let says_pt = says_x && !self.timestamps.is_x_alone();
        let extra = &mut x.rtp_extra;
        extra.scaled = ts.scaled;
        extra.stride = self.timestamps.says_stride();
        extra.time_stride = self.timestamps.says_time_stride();
        extra.flags = says_mode || says_x || extra.stride || extra.time_stride || x.extra[CSRC].has_list;
        // RFC 4815, section 6.4: without R-PT, the padding bit would become zero.
        extra.pt = extra.flags && (says_pt || x.rtp.p);
    }

    /// Fills in what a dynamic chain says of RTP.
    pub(super) fn fill_chain(&self, x: &mut Fields<'_>) {
        x.rtp_extra.stride = self.timestamps.is_stride_known();
        x.rtp_extra.time_stride = x.rtp.time_stride > 0 || self.timestamps.says_time_stride();
    }

    /// The packet was sent, not in R-mode.
    pub(super) fn commit(&mut self, now: Instant, x: &Fields<'_>, format: Format, window: usize) {
        let in_full = format.is_initialization();
        if in_full || x.rtp_extra.flags {
            self.timestamps.pt = self.timestamps.pt.saturating_sub(1);
        }
        self.timestamps.commit(now, &x.rtp, &x.rtp_extra, in_full, window);
    }
}
