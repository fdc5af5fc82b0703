//! Packets that no other profile takes: profile 0x0000.

use thinair_wire::coder::Writer;
use thinair_wire::crc::Check;
use thinair_wire::time::Instant;

use super::flows::Kind;
use super::worth::Pairs;
use super::{CompressError, Compressed, Compressor, CompressorConfig};
use crate::cid::Cid;
use crate::framing::Frame;
use crate::profile::{Format, ProfileId, uncompressed};
use crate::refresh::{Due, Refresh, Timer};

impl Compressor<'_> {
    /// Profile 0x0000. RFC 5795, section 5.4.
    pub(super) fn uncompressed(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        let cid = match self.flows.uncompressed() {
            Some(cid) => cid,
            None => {
                let cid = self.flows.claim(0, Pairs::NONE).ok_or(CompressError::NoContexts)?;
                self.release(cid);
                self.begin_uncompressed(now, cid);
                cid
            }
        };
        self.uncompressed_by(now, cid, packet, out)
    }

    /// A packet whose flow has a new context that cannot compress it, on a CID of which the decompressor still holds memory for
    /// the flow before: by this CID, so that both ends give it back.
    #[cold]
    pub(super) fn uncompressed_instead(
        &mut self,
        now: Instant,
        cid: Cid,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        self.release(cid);
        self.begin_uncompressed(now, cid);
        self.uncompressed_by(now, cid, packet, out)
    }

    fn begin_uncompressed(&mut self, now: Instant, cid: Cid) {
        let state = Uncompressed::start(now, self.config.repetitions);
        self.flows.set(cid, Kind::Uncompressed(state));
    }

    fn uncompressed_by(
        &mut self,
        now: Instant,
        cid: Cid,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Compressed, CompressError> {
        self.flows.touch(cid);
        let Kind::Uncompressed(state) = self.flows.kind(cid) else { return Err(CompressError::NoContexts) };
        let refresh = state.tick(now, &self.config);
        let frame = Frame::new(cid, self.config.channel.cids());
        let format = if state.ir_left > 0 { Format::Ir } else { Format::Normal };
        let header_out = match format {
            Format::Ir => frame.len() + uncompressed::IR_LEN,
            _ => frame.len(),
        };
        let have = out.len();
        let too_small = CompressError::OutputTooSmall { have };
        let len = header_out + packet.len();
        let out = out.get_mut(..len).ok_or(too_small)?;
        if format == Format::Ir {
            state.ir_left -= 1;
            let _ = uncompressed::ir(&mut Writer::new(out, frame.len()));
        }
        frame.close(header_out, packet, out).map_err(|_| too_small)?;
        if format == Format::Ir {
            // The CRC is the last octet of the header and does not cover itself.
            out[header_out - 1] = Check::Crc8.of(&out[..header_out - 1]);
        }
        let compressed = Compressed {
            cid,
            profile: ProfileId::Uncompressed,
            format,
            header_in: 0,
            header_out,
            len,
            refresh,
        };
        state.timer.sent(now, &compressed, format == Format::Ir, state.policy(&self.config));
        Ok(compressed)
    }
}

/// The one context of profile 0x0000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncompressed {
    /// Feedback was received: IR packets are no longer repeated.
    pub(super) two_way: bool,
    /// IR packets still to be sent before Normal packets.
    pub(super) ir_left: u8,
    timer: Timer,
}

impl Uncompressed {
    fn start(now: Instant, repetitions: u8) -> Self {
        Self { two_way: false, ir_left: repetitions.max(1), timer: Timer::start(now) }
    }

    /// The refresh policy of the mode.
    fn policy<'c>(&self, config: &'c CompressorConfig) -> &'c Refresh {
        if self.two_way { &config.refresh_two_way } else { &config.refresh }
    }

    /// Returns whether the packet is a refresh.
    fn tick(&mut self, now: Instant, config: &CompressorConfig) -> bool {
        let policy = self.policy(config);
        let due = self.timer.tick(now, policy) == Due::Everything && self.ir_left == 0;
        if due {
            // RFC 3095, section 5.10.3 a): "only one when refreshing".
            self.ir_left = match policy {
                Refresh::Cycle { ir, .. } => u8::try_from(*ir).unwrap_or(u8::MAX),
                Refresh::Budget { .. } | Refresh::Periodic { .. } | Refresh::Off => 1,
            };
        }
        due
    }
}
