//! HTTP/1 server.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::vec::Vec;

use super::{HeadForm, head};
use crate::outbox::SendBuffer;
use crate::status;
use crate::{HttpLimits, HttpRequest, HttpResponse, Method, ServerEngine};

/// Server side of one connection; responses follow the order of the requests.
#[derive(Clone, Debug)]
pub struct Http1Server {
    form: HeadForm,
    keeps: bool,
    limits: HttpLimits,
    /// Octets received but not yet parsed.
    input: Vec<u8>,
    asked: Option<PendingRequest>,
    out: SendBuffer,
    closing: bool,
    /// The client closes after this request, or the connection cannot have another one.
    last: bool,
    /// The client has ended its side of the stream.
    ended: bool,
}

/// Request that waits for its response.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    method: Method,
    persists: bool,
}

impl Http1Server {
    /// Creates a server. `keeps`: a connection may have more than one request, if the client agrees.
    pub fn new(form: HeadForm, keeps: bool, limits: HttpLimits) -> Self {
        Self {
            form,
            keeps,
            limits,
            input: Vec::new(),
            asked: None,
            out: SendBuffer::default(),
            closing: false,
            last: false,
            ended: false,
        }
    }

    /// Responds with an error, and closes.
    fn refuse(&mut self, status: u16) {
        // The rest of an invalid request may follow.
        self.answer(&HttpResponse::empty(status), PendingRequest { method: Method::Get, persists: false });
        self.last = false;
    }

    fn answer(&mut self, response: &HttpResponse, asked: PendingRequest) {
        let HttpResponse { status, body } = response;
        let phrase = status::phrase(*status);
        // Without a length, the end of the stream is the end of the object.
        let persists = asked.persists && self.keeps && self.form == HeadForm::Minimal && !self.ended;
        let head = match self.form {
            HeadForm::Reduced => format!("HTTP/1.0 {status} {phrase}\r\n\r\n"),
            HeadForm::Minimal => {
                let allow = if *status == status::METHOD_NOT_ALLOWED { "Allow: GET, HEAD\r\n" } else { "" };
                let close = if persists { "" } else { "Connection: close\r\n" };
                let length = body.len();
                format!("HTTP/1.1 {status} {phrase}\r\nContent-Length: {length}\r\n{allow}{close}\r\n")
            }
        };
        self.out.push(head.as_bytes());
        if asked.method == Method::Get {
            self.out.push(body);
        }
        if !persists {
            self.last = !asked.persists && self.input.is_empty();
            (self.closing, self.input) = (true, Vec::new());
        }
    }
}

impl ServerEngine for Http1Server {
    fn handle_input(&mut self, octets: &[u8]) {
        self.last = false;
        if !self.closing {
            self.input.extend_from_slice(octets);
        }
    }

    fn handle_end(&mut self) {
        self.ended = true;
        // An incomplete request stays incomplete; complete ones are still answered.
        if self.asked.is_none() && !matches!(head::request(&self.input), Ok(Some(_))) {
            self.closing = true;
        }
    }

    fn poll_request(&mut self) -> Option<HttpRequest> {
        if self.closing || self.asked.is_some() {
            return None;
        }
        match head::request(&self.input) {
            Ok(Some(head)) if head.len <= self.limits.head => {
                let request = HttpRequest { stream: 0, method: head.method, target: head.target.to_owned() };
                self.asked = Some(PendingRequest { method: head.method, persists: head.persists });
                let len = head.len;
                self.input.drain(..len);
                Some(request)
            }
            Ok(head) => {
                if head.is_some() || self.input.len() >= self.limits.head {
                    self.refuse(status::HEADER_FIELDS_TOO_LARGE);
                }
                None
            }
            Err(status) => {
                self.refuse(status);
                None
            }
        }
    }

    fn respond(&mut self, _stream: u32, response: HttpResponse) {
        if let Some(asked) = self.asked.take() {
            self.answer(&response, asked);
        }
    }

    fn output(&self) -> &[u8] {
        self.out.waiting()
    }

    fn sent(&mut self, octets: usize) {
        self.out.sent(octets);
    }

    fn wants_input(&self) -> bool {
        self.closing || self.out.waiting().is_empty() && self.input.len() < self.limits.head
    }

    fn is_idle(&self) -> bool {
        self.asked.is_none() && self.input.is_empty() && self.out.waiting().is_empty()
    }

    fn is_closing(&self) -> bool {
        self.closing
    }

    fn is_last(&self) -> bool {
        self.last || self.ended
    }
}
