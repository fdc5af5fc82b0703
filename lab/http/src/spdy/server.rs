//! SPDY server: a connection with streams, which are answered in the order of their requests.

use alloc::borrow::ToOwned as _;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use super::WINDOW;
use super::frame::{Control, INITIAL_WINDOW_SIZE, LONGEST, Reset, write_data};
use super::header_block::{HeaderBlocks, HeaderList};
use super::reader::{FrameReader, ReceivedFrame};
use crate::deflate::Flush;
use crate::outbox::SendBuffer;
use crate::status;
use crate::{HttpError, HttpLimits, HttpRequest, HttpResponse, Method, ServerEngine};

/// Size of the unsent responses, in octets, above which no further request is returned.
const ENOUGH: usize = 65_536;

/// Server side of one connection.
#[derive(Debug)]
pub struct SpdyServer {
    blocks: HeaderBlocks,
    reader: FrameReader,
    out: SendBuffer,
    limits: HttpLimits,
    keeps: bool,
    /// The client has sent more than requests, as clients do that reuse the connection.
    settles: bool,
    /// Requests not yet returned; `asked` has all unanswered ones.
    requests: VecDeque<HttpRequest>,
    asked: Vec<OpenStream>,
    /// Bodies that wait for the client's window.
    bodies: VecDeque<UnsentBody>,
    /// Send window in octets, of the connection and of a new stream.
    window: i64,
    initial_window: i64,
    /// Highest stream identifier so far.
    last: u32,
    closing: bool,
    /// The client has ended its side of the stream.
    ended: bool,
}

/// Stream that waits for its response.
#[derive(Clone, Copy, Debug)]
struct OpenStream {
    stream: u32,
    method: Method,
    window: i64,
}

/// Unsent rest of a response.
#[derive(Debug)]
struct UnsentBody {
    stream: u32,
    octets: Vec<u8>,
    sent: usize,
    window: i64,
}

impl UnsentBody {
    fn waiting(&self) -> usize {
        self.octets.len() - self.sent
    }
}

impl SpdyServer {
    /// Creates a server. `keeps`: the connection stays open when no request is left. Otherwise it closes as soon as all
    /// requests are answered, without a GOAWAY, which would be 16 octets; unless the client has sent SETTINGS, as
    /// clients do that expect a lasting connection.
    pub fn new(keeps: bool, flush: Flush, limits: HttpLimits) -> Self {
        Self {
            blocks: HeaderBlocks::new(flush, limits.head),
            reader: FrameReader::new(limits.head),
            out: SendBuffer::default(),
            limits,
            keeps,
            settles: false,
            requests: VecDeque::new(),
            asked: Vec::new(),
            bodies: VecDeque::new(),
            window: WINDOW,
            initial_window: WINDOW,
            last: 0,
            closing: false,
            ended: false,
        }
    }

    fn send(&mut self, control: &Control<'_>) {
        self.out.push_with(|out| control.write(out));
    }

    /// Processes received octets. An error is one of the connection.
    fn read(&mut self) -> Result<(), HttpError> {
        while !self.closing
            && let Some(incoming) = self.reader.next()?
        {
            match incoming {
                ReceivedFrame::Control(whole) => self.take(&whole.control()?)?,
                // Usually another protocol.
                ReceivedFrame::Data { stream, .. } if stream > self.last => return Err(HttpError::Head),
                // Requests have no bodies: it is ignored, and the window stays as it is.
                ReceivedFrame::Data { .. } => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, control: &Control<'_>) -> Result<(), HttpError> {
        match *control {
            Control::SynStream { stream, block, unidirectional, .. } => {
                let headers = self.blocks.read(block)?;
                self.open(stream, unidirectional, &headers)
            }
            Control::SynReply { block, .. } | Control::Headers { block, .. } => {
                self.blocks.read(block)?;
                Ok(())
            }
            Control::RstStream { stream, .. } => {
                self.requests.retain(|request| request.stream != stream);
                self.asked.retain(|asked| asked.stream != stream);
                self.bodies.retain(|body| body.stream != stream);
                Ok(())
            }
            Control::Settings(ref pairs) => {
                self.settles = true;
                for (_, value) in pairs.iter().filter(|(name, _)| *name == INITIAL_WINDOW_SIZE) {
                    let delta = i64::from(*value) - self.initial_window;
                    self.initial_window += delta;
                    self.asked.iter_mut().for_each(|asked| asked.window += delta);
                    self.bodies.iter_mut().for_each(|body| body.window += delta);
                }
                Ok(())
            }
            // The client's identifiers are odd. Section 2.6.5.
            Control::Ping(number) if number % 2 == 1 => {
                self.send(&Control::Ping(number));
                Ok(())
            }
            Control::WindowUpdate { stream, delta } => self.allow(stream, i64::from(delta)),
            Control::GoAway { .. } | Control::Ping(_) | Control::Other(_) => Ok(()),
        }
    }

    /// Enlarges a window. Section 2.6.8.
    fn allow(&mut self, stream: u32, delta: i64) -> Result<(), HttpError> {
        let mut windows: Vec<&mut i64> = match stream {
            0 => Vec::from([&mut self.window]),
            _ => {
                let asked = self.asked.iter_mut().filter(|asked| asked.stream == stream);
                let bodies = self.bodies.iter_mut().filter(|body| body.stream == stream);
                asked.map(|asked| &mut asked.window).chain(bodies.map(|body| &mut body.window)).collect()
            }
        };
        for window in &mut windows {
            **window += delta;
            if **window > i64::from(i32::MAX) {
                return Err(HttpError::Head);
            }
        }
        Ok(())
    }

    fn open(&mut self, stream: u32, unidirectional: bool, headers: &HeaderList) -> Result<(), HttpError> {
        // Section 2.3.2.
        if stream.is_multiple_of(2) || stream <= self.last {
            return Err(HttpError::Head);
        }
        self.last = stream;
        if unidirectional || self.asked.len() >= self.limits.streams as usize {
            self.send(&Control::RstStream { stream, reset: Reset::REFUSED_STREAM });
            return Ok(());
        }
        match request(stream, headers) {
            Ok(request) => {
                self.asked.push(OpenStream { stream, method: request.method, window: self.initial_window });
                self.requests.push_back(request);
            }
            Err(status) => {
                self.asked.push(OpenStream { stream, method: Method::Get, window: self.initial_window });
                self.respond(stream, HttpResponse::empty(status));
            }
        }
        Ok(())
    }

    /// Sends as much of the bodies as the windows allow. After the client has ended its stream, it cannot send
    /// WINDOW_UPDATE: then all is sent, subject to TCP's window.
    fn pump(&mut self) {
        let (window, out, ended) = (&mut self.window, &mut self.out, self.ended);
        for body in &mut self.bodies {
            let allowed = if ended { i64::MAX } else { body.window.min(*window) };
            let allowed = usize::try_from(allowed).unwrap_or(0);
            let len = body.waiting().min(allowed).min(LONGEST);
            if len == 0 {
                continue;
            }
            let octets = body.octets.get(body.sent..body.sent + len).unwrap_or_default();
            body.sent += len;
            body.window = body.window.saturating_sub(len as i64);
            *window = window.saturating_sub(len as i64);
            let fin = body.waiting() == 0;
            out.push_with(|out| write_data(body.stream, fin, octets, out));
        }
        self.bodies.retain(|body| body.waiting() > 0);
    }

    /// Closes the connection if everything is done.
    fn settle(&mut self) {
        self.pump();
        let is_done = self.requests.is_empty() && self.asked.is_empty() && self.bodies.is_empty();
        self.closing |= is_done && (self.ended || !self.keeps && !self.settles && self.last > 0);
    }
}

/// Parses a stream's request; the error is the status code of the response. Section 3.2.1.
fn request(stream: u32, headers: &HeaderList) -> Result<HttpRequest, u16> {
    let value = |name: &str| headers.value(name).ok_or(status::BAD_REQUEST);
    let (method, target) = (value(":method")?, value(":path")?);
    for name in [":version", ":host", ":scheme"] {
        value(name)?;
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => return Err(status::METHOD_NOT_ALLOWED),
    };
    if !target.starts_with('/') {
        return Err(status::BAD_REQUEST);
    }
    Ok(HttpRequest { stream, method, target: target.to_owned() })
}

impl ServerEngine for SpdyServer {
    fn handle_input(&mut self, octets: &[u8]) {
        if self.closing {
            return;
        }
        self.reader.push(octets);
        if self.read().is_err() {
            // No later frame can be parsed. Section 2.4.1.
            (self.closing, self.bodies) = (true, VecDeque::new());
            self.requests.clear();
            self.asked.clear();
            self.send(&Control::GoAway { last_good: self.last, status: Reset::PROTOCOL_ERROR.0 });
            return;
        }
        self.settle();
    }

    fn handle_end(&mut self) {
        self.ended = true;
        self.settle();
    }

    fn poll_request(&mut self) -> Option<HttpRequest> {
        let waiting: usize = self.bodies.iter().map(UnsentBody::waiting).sum();
        if waiting >= ENOUGH { None } else { self.requests.pop_front() }
    }

    fn respond(&mut self, stream: u32, response: HttpResponse) {
        let Some(at) = self.asked.iter().position(|asked| asked.stream == stream) else { return };
        let asked = self.asked.swap_remove(at);
        let HttpResponse { status, body } = response;
        let line = format!("{status} {}", status::phrase(status));
        let block = self.blocks.write(&[(":status", &line), (":version", "HTTP/1.1")]);
        let fin = body.is_empty() || asked.method == Method::Head;
        self.send(&Control::SynReply { stream, fin, block: &block });
        if !fin {
            self.bodies.push_back(UnsentBody { stream, octets: body, sent: 0, window: asked.window });
        }
        self.settle();
    }

    fn output(&self) -> &[u8] {
        self.out.waiting()
    }

    fn sent(&mut self, octets: usize) {
        self.out.sent(octets);
    }

    fn wants_input(&self) -> bool {
        self.closing || self.out.waiting().len() < ENOUGH && self.reader.has_room()
    }

    fn is_idle(&self) -> bool {
        let nothing = self.requests.is_empty() && self.asked.is_empty() && self.bodies.is_empty();
        nothing && self.reader.is_empty() && self.out.waiting().is_empty()
    }

    fn is_closing(&self) -> bool {
        self.closing
    }

    fn is_last(&self) -> bool {
        self.ended
    }
}
