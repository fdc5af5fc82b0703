//! Frames out of octets that come in pieces.

use alloc::vec::Vec;

use super::frame::{Control, FrameError, HEAD, Head};

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A control frame, to be read by [`Reader::control`].
    Control(Whole),
    /// Octets of DATA; `fin`: the last ones of the stream.
    Data { stream: u32, octets: Vec<u8>, fin: bool },
}

/// A control frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    kind: u16,
    flags: u8,
    octets: Vec<u8>,
}

impl Whole {
    pub(super) fn control(&self) -> Result<Control<'_>, FrameError> {
        Control::read(self.kind, self.flags, &self.octets)
    }
}

/// Octets that are no whole frame yet. DATA is handed out as it comes, so that only control frames are kept.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    octets: Vec<u8>,
    /// DATA that is not complete: stream, whether it is the last, and octets that are missing.
    data: Option<(u32, bool, usize)>,
    /// Octets of a control frame, at most.
    most: usize,
}

impl Reader {
    pub(super) fn new(most: usize) -> Self {
        Self { octets: Vec::new(), data: None, most }
    }

    pub(super) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Whether nothing has come of a frame that is not complete.
    pub(super) fn is_empty(&self) -> bool {
        self.octets.is_empty() && self.data.is_none()
    }

    /// Whether there is room for more.
    pub(super) fn has_room(&self) -> bool {
        self.octets.len() < self.most + HEAD
    }

    /// The next one, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Incoming>, FrameError> {
        loop {
            if let Some((stream, fin, missing)) = self.data {
                if self.octets.is_empty() && missing > 0 {
                    return Ok(None);
                }
                let len = missing.min(self.octets.len());
                let octets = self.octets.drain(..len).collect();
                self.data = (len < missing).then_some((stream, fin, missing - len));
                return Ok(Some(Incoming::Data { stream, octets, fin: fin && len == missing }));
            }
            let Some(head) = self.octets.first_chunk::<HEAD>() else { return Ok(None) };
            match Head::read(*head)? {
                Head::Data { stream, fin, len } => {
                    self.octets.drain(..HEAD);
                    self.data = Some((stream, fin, len));
                }
                Head::Control { len, .. } if len > self.most => return Err(FrameError::TooLarge),
                Head::Control { kind, flags, len } => {
                    if self.octets.len() < HEAD + len {
                        return Ok(None);
                    }
                    let octets = self.octets.drain(..HEAD + len).skip(HEAD).collect();
                    return Ok(Some(Incoming::Control(Whole { kind, flags, octets })));
                }
            }
        }
    }
}
