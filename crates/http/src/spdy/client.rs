//! One GET on one stream.

use alloc::vec::Vec;

use super::WINDOW;
use super::frame::{Control, Reset};
use super::header_block::{HeaderBlocks, Headers};
use super::reader::{Incoming, Reader};
use crate::deflate::Flush;
use crate::outbox::Outbox;
use crate::{ClientEngine, Error, Limits, Response, Target};

/// The stream.
const STREAM: u32 = 1;

/// A GET on a connection of its own, and the response.
#[derive(Debug)]
pub struct Client {
    blocks: HeaderBlocks,
    reader: Reader,
    out: Outbox,
    limits: Limits,
    /// The status, once it is there.
    status: Option<u16>,
    body: Vec<u8>,
    /// Octets of DATA that the server has not been told to be read: of the stream, and of all.
    unsaid: i64,
    response: Option<Response>,
}

impl Client {
    /// Asks for it.
    ///
    /// # Errors
    /// [`Error::Target`].
    pub fn new(target: Target<'_>, flush: Flush, limits: Limits) -> Result<Self, Error> {
        if !target.is_valid() {
            return Err(Error::Target);
        }
        let mut blocks = HeaderBlocks::new(flush, limits.head);
        // What section 3.2.1 demands, in the order that takes the fewest octets.
        let block = blocks.write(&[
            (":path", target.path),
            (":host", target.host),
            (":version", "HTTP/1.1"),
            (":method", "GET"),
            (":scheme", "http"),
        ]);
        let mut client = Self {
            blocks,
            reader: Reader::new(limits.head),
            out: Outbox::default(),
            limits,
            status: None,
            body: Vec::new(),
            unsaid: 0,
            response: None,
        };
        client.send(&Control::SynStream {
            stream: STREAM,
            associated: 0,
            priority: 0,
            fin: true,
            unidirectional: false,
            block: &block,
        });
        Ok(client)
    }

    fn send(&mut self, control: &Control<'_>) {
        self.out.push_with(|out| control.write(out));
    }

    fn take(&mut self, incoming: Incoming) -> Result<(), Error> {
        match incoming {
            Incoming::Data { stream, octets, fin } => self.take_data(stream, &octets, fin),
            Incoming::Control(whole) => self.take_control(&whole.control()?),
        }
    }

    fn take_control(&mut self, control: &Control<'_>) -> Result<(), Error> {
        match *control {
            Control::SynReply { stream, fin, block } => {
                let headers = self.blocks.read(block)?;
                if stream != STREAM || self.status.is_some() {
                    return Err(Error::Head);
                }
                self.status = Some(status(&headers)?);
                self.complete(fin)
            }
            Control::Headers { stream, fin, block } => {
                self.blocks.read(block)?;
                self.complete(fin && stream == STREAM)
            }
            Control::SynStream { stream, block, .. } => {
                // Something is pushed. It is not wanted; but what follows refers to its headers.
                self.blocks.read(block)?;
                self.send(&Control::RstStream { stream, reset: Reset::REFUSED_STREAM });
                Ok(())
            }
            Control::RstStream { stream: STREAM, reset } => Err(Error::Reset(reset.0)),
            Control::GoAway { last_good: 0, .. } => Err(Error::Reset(Reset::REFUSED_STREAM.0)),
            // Those of the server are even. Section 2.6.5.
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

    fn take_data(&mut self, stream: u32, octets: &[u8], fin: bool) -> Result<(), Error> {
        if stream != STREAM || self.status.is_none() {
            return Err(Error::Head);
        }
        if octets.len() > self.limits.body - self.body.len() {
            return Err(Error::BodyTooLarge(self.limits.body));
        }
        self.body.extend_from_slice(octets);
        self.unsaid += octets.len() as i64;
        // Most objects are over before that.
        if self.unsaid >= WINDOW / 2 && !fin {
            let delta = self.unsaid as u32;
            self.unsaid = 0;
            [0, STREAM].into_iter().for_each(|stream| self.send(&Control::WindowUpdate { stream, delta }));
        }
        self.complete(fin)
    }

    fn complete(&mut self, fin: bool) -> Result<(), Error> {
        if fin {
            let status = self.status.ok_or(Error::Head)?;
            self.response = Some(Response { status, body: core::mem::take(&mut self.body) });
        }
        Ok(())
    }
}

/// The number of a status such as `200` or `200 OK`.
fn status(headers: &Headers) -> Result<u16, Error> {
    let status = headers.value(":status").and_then(|status| status.get(..3)).ok_or(Error::Head)?;
    status.parse().ok().filter(|status| (100..600).contains(status)).ok_or(Error::Head)
}

impl ClientEngine for Client {
    fn output(&self) -> &[u8] {
        self.out.waiting()
    }

    fn sent(&mut self, octets: usize) {
        self.out.sent(octets);
    }

    fn handle_input(&mut self, octets: &[u8]) -> Result<(), Error> {
        self.reader.push(octets);
        while self.response.is_none()
            && let Some(incoming) = self.reader.next()?
        {
            self.take(incoming)?;
        }
        Ok(())
    }

    fn handle_end(&mut self) -> Result<(), Error> {
        if self.response.is_some() { Ok(()) } else { Err(Error::Truncated(self.body.len())) }
    }

    fn response(&self) -> Option<&Response> {
        self.response.as_ref()
    }
}
