//! SCHC with rules derived from the capture.

use std::sync::Arc;

use thinair_rohc::Instant;

use super::{CompressedPacket, FormatLabel, Rejection, SchemeEnds};
use crate::schc::{FieldRoom, RuleSet};
use crate::sides::CaptureSide;
use crate::survey::{SurveyedInput, direction};

/// Both sides, which have equal rules and no state.
#[derive(Debug)]
pub(super) struct Schc {
    surveyed: Arc<SurveyedInput>,
    fields: FieldRoom,
    room: Vec<u8>,
}

impl Schc {
    pub(super) fn new(surveyed: Arc<SurveyedInput>) -> Self {
        Self { surveyed, fields: FieldRoom::new(), room: Vec::new() }
    }

    fn rules(&self) -> &RuleSet {
        &self.surveyed.rules
    }

    /// Copies the result to the start of `out`.
    fn copy_to(&self, out: &mut [u8]) -> Result<usize, Rejection> {
        let len = self.room.len();
        let out = out.get_mut(..len).ok_or_else(|| Rejection::new("output_too_small", "no room"))?;
        out.copy_from_slice(&self.room);
        Ok(len)
    }
}

impl SchemeEnds for Schc {
    fn compress(
        &mut self,
        _now: Instant,
        from: CaptureSide,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<CompressedPacket>, Rejection> {
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        let rules = &self.surveyed.rules;
        let (rule, header_in) = rules.compress_headers(direction(from), packet, &mut self.fields, &mut room);
        self.room = room;
        let len = self.copy_to(out)?;
        // The residue, and the padding after the payload; both are shorter than the values in the rule.
        let header_out = len.saturating_sub(packet.len() - header_in);
        let format = FormatLabel::Rule(rule);
        Ok(Some(CompressedPacket {
            format,
            profile: None,
            header_in,
            header_out,
            len,
            cid_len: 0,
            refresh: false,
        }))
    }

    fn decompress(
        &mut self,
        _now: Instant,
        from: CaptureSide,
        sent: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Rejection> {
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        let done = self.rules().decompress(direction(from), sent, &mut room);
        self.room = room;
        done.map_err(|error| Rejection::new("schc", error))?;
        self.copy_to(out)
    }
}
