//! Splits a stream of octets into frames.

use alloc::vec::Vec;

use super::frame::{Control, FrameHead, HEAD, SpdyFrameError};

/// Received frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceivedFrame {
    /// Control frame, for [`FrameReader::control`].
    Control(Whole),
    /// Octets of DATA; `fin`: the last ones of the stream.
    Data { stream: u32, octets: Vec<u8>, fin: bool },
}

/// Control frame as received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    kind: u16,
    flags: u8,
    octets: Vec<u8>,
}

impl Whole {
    pub(super) fn control(&self) -> Result<Control<'_>, SpdyFrameError> {
        Control::read(self.kind, self.flags, &self.octets)
    }
}

/// Octets of an incomplete frame. DATA is passed on as it arrives, so that only control frames are stored.
#[derive(Clone, Debug)]
pub(super) struct FrameReader {
    octets: Vec<u8>,
    /// Incomplete DATA frame: stream, FLAG_FIN, and number of missing octets.
    data: Option<(u32, bool, usize)>,
    /// Maximum size of a control frame, in octets.
    most: usize,
}

impl FrameReader {
    pub(super) fn new(most: usize) -> Self {
        Self { octets: Vec::new(), data: None, most }
    }

    pub(super) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// True if no frame is incomplete.
    pub(super) fn is_empty(&self) -> bool {
        self.octets.is_empty() && self.data.is_none()
    }

    /// True if there is room for more octets.
    pub(super) fn has_room(&self) -> bool {
        self.octets.len() < self.most + HEAD
    }

    /// Returns the next frame, or the next part of a DATA frame.
    pub(super) fn next(&mut self) -> Result<Option<ReceivedFrame>, SpdyFrameError> {
        loop {
            if let Some((stream, fin, missing)) = self.data {
                if self.octets.is_empty() && missing > 0 {
                    return Ok(None);
                }
                let len = missing.min(self.octets.len());
                let octets = self.octets.drain(..len).collect();
                self.data = (len < missing).then_some((stream, fin, missing - len));
                return Ok(Some(ReceivedFrame::Data { stream, octets, fin: fin && len == missing }));
            }
            let Some(head) = self.octets.first_chunk::<HEAD>() else { return Ok(None) };
            match FrameHead::read(*head)? {
                FrameHead::Data { stream, fin, len } => {
                    self.octets.drain(..HEAD);
                    self.data = Some((stream, fin, len));
                }
                FrameHead::Control { len, .. } if len > self.most => return Err(SpdyFrameError::TooLarge),
                FrameHead::Control { kind, flags, len } => {
                    if self.octets.len() < HEAD + len {
                        return Ok(None);
                    }
                    let octets = self.octets.drain(..HEAD + len).skip(HEAD).collect();
                    return Ok(Some(ReceivedFrame::Control(Whole { kind, flags, octets })));
                }
            }
        }
    }
}
