//! SPDY client.

use alloc::vec::Vec;

use super::WINDOW;
use super::frame::{Control, Reset};
use super::header_block::{HeaderBlocks, HeaderList};
use super::reader::{FrameReader, ReceivedFrame};
use crate::deflate::Flush;
use crate::outbox::SendBuffer;
use crate::{ClientEngine, HttpError, HttpLimits, HttpResponse, Target};

/// Identifier of the first stream; those of a client are odd. Section 2.3.2.
const FIRST: u32 = 1;

/// Client for one GET per connection, or for several in sequence.
#[derive(Debug)]
pub struct SpdyClient {
    blocks: HeaderBlocks,
    reader: FrameReader,
    out: SendBuffer,
    limits: HttpLimits,
    stream: u32,
    /// Status code, once it is received.
    status: Option<u16>,
    body: Vec<u8>,
    /// Octets of DATA received but not yet acknowledged by a WINDOW_UPDATE: of this stream and of earlier ones.
    unsaid: i64,
    before: i64,
    response: Option<HttpResponse>,
}

impl SpdyClient {
    /// Sends a GET.
    ///
    /// # Errors
    /// [`HttpError::Target`].
    pub fn new(target: Target<'_>, flush: Flush, limits: HttpLimits) -> Result<Self, HttpError> {
        let mut client = Self {
            blocks: HeaderBlocks::new(flush, limits.head),
            reader: FrameReader::new(limits.head),
            out: SendBuffer::default(),
            limits,
            stream: FIRST,
            status: None,
            body: Vec::new(),
            unsaid: 0,
            before: 0,
            response: None,
        };
        client.push(target)?;
        Ok(client)
    }

    fn push(&mut self, target: Target<'_>) -> Result<(), HttpError> {
        if !target.is_valid() {
            return Err(HttpError::Target);
        }
        // Headers that section 3.2.1 requires, in the order that takes the fewest octets.
        let block = self.blocks.write(&[
            (":path", target.path),
            (":host", target.host),
            (":version", "HTTP/1.1"),
            (":method", "GET"),
            (":scheme", "http"),
        ]);
        self.send(&Control::SynStream {
            stream: self.stream,
            associated: 0,
            priority: 0,
            fin: true,
            unidirectional: false,
            block: &block,
        });
        Ok(())
    }

    fn send(&mut self, control: &Control<'_>) {
        self.out.push_with(|out| control.write(out));
    }

    fn take(&mut self, incoming: ReceivedFrame) -> Result<(), HttpError> {
        match incoming {
            ReceivedFrame::Data { stream, octets, fin } => self.take_data(stream, &octets, fin),
            ReceivedFrame::Control(whole) => self.take_control(&whole.control()?),
        }
    }

    fn take_control(&mut self, control: &Control<'_>) -> Result<(), HttpError> {
        match *control {
            Control::SynReply { stream, fin, block } => {
                let headers = self.blocks.read(block)?;
                if stream != self.stream || self.status.is_some() {
                    return Err(HttpError::Head);
                }
                self.status = Some(status(&headers)?);
                self.complete(fin)
            }
            Control::Headers { stream, fin, block } => {
                self.blocks.read(block)?;
                self.complete(fin && stream == self.stream)
            }
            Control::SynStream { stream, block, .. } => {
                // Pushed stream. It is not wanted, but later header blocks refer to its headers.
                self.blocks.read(block)?;
                self.send(&Control::RstStream { stream, reset: Reset::REFUSED_STREAM });
                Ok(())
            }
            Control::RstStream { stream, reset } if stream == self.stream => Err(HttpError::Reset(reset.0)),
            Control::GoAway { last_good, .. } if last_good < self.stream => {
                Err(HttpError::Reset(Reset::REFUSED_STREAM.0))
            }
            // The server's identifiers are even. Section 2.6.5.
            Control::Ping(number) if number % 2 == 0 => {
                self.send(&Control::Ping(number));
                Ok(())
            }
            Control::RstStream { .. }
            | Control::Settings(_)
            | Control::Ping(_)
            | Control::GoAway { .. }
            | Control::WindowUpdate { .. }
            | Control::Other(_) => Ok(()),
        }
    }

    fn take_data(&mut self, stream: u32, octets: &[u8], fin: bool) -> Result<(), HttpError> {
        if stream != self.stream || self.status.is_none() {
            return Err(HttpError::Head);
        }
        if octets.len() > self.limits.body - self.body.len() {
            return Err(HttpError::BodyTooLarge(self.limits.body));
        }
        self.body.extend_from_slice(octets);
        self.unsaid += octets.len() as i64;
        // Most objects are complete before this.
        if self.unsaid >= WINDOW / 2 && !fin {
            let (of_all, of_it) = ((self.before + self.unsaid) as u32, self.unsaid as u32);
            (self.unsaid, self.before) = (0, 0);
            self.send(&Control::WindowUpdate { stream: 0, delta: of_all });
            self.send(&Control::WindowUpdate { stream: self.stream, delta: of_it });
        }
        self.complete(fin)
    }

    fn complete(&mut self, fin: bool) -> Result<(), HttpError> {
        if fin {
            let status = self.status.ok_or(HttpError::Head)?;
            self.response = Some(HttpResponse { status, body: core::mem::take(&mut self.body) });
        }
        Ok(())
    }
}

/// Number of a status such as `200` or `200 OK`.
fn status(headers: &HeaderList) -> Result<u16, HttpError> {
    let status = headers.value(":status").and_then(|status| status.get(..3)).ok_or(HttpError::Head)?;
    status.parse().ok().filter(|status| (100..600).contains(status)).ok_or(HttpError::Head)
}

impl ClientEngine for SpdyClient {
    fn output(&self) -> &[u8] {
        self.out.waiting()
    }

    fn sent(&mut self, octets: usize) {
        self.out.sent(octets);
    }

    fn handle_input(&mut self, octets: &[u8]) -> Result<(), HttpError> {
        self.reader.push(octets);
        while self.response.is_none()
            && let Some(incoming) = self.reader.next()?
        {
            self.take(incoming)?;
        }
        Ok(())
    }

    fn handle_end(&mut self) -> Result<(), HttpError> {
        if self.response.is_some() { Ok(()) } else { Err(HttpError::Truncated(self.body.len())) }
    }

    fn response(&self) -> Option<&HttpResponse> {
        self.response.as_ref()
    }

    fn ask(&mut self, target: Target<'_>) -> Result<(), HttpError> {
        // Stream identifiers have 31 bits.
        let next = self.stream.checked_add(2).filter(|next| *next <= i32::MAX as u32);
        let (Some(next), Some(_)) = (next, &self.response) else { return Err(HttpError::NoOther) };
        let before = core::mem::replace(&mut self.stream, next);
        if let Err(why) = self.push(target) {
            self.stream = before;
            return Err(why);
        }
        (self.status, self.response) = (None, None);
        self.before += core::mem::take(&mut self.unsaid);
        if self.before >= WINDOW / 2 {
            let delta = core::mem::take(&mut self.before) as u32;
            self.send(&Control::WindowUpdate { stream: 0, delta });
        }
        Ok(())
    }
}
