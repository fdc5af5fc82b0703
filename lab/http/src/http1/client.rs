//! HTTP/1 client.

use alloc::format;
use alloc::vec::Vec;

use super::HeadForm;
use super::body::BodyReader;
use super::head;
use crate::outbox::SendBuffer;
use crate::{ClientEngine, HttpError, HttpLimits, HttpResponse, Target};

/// Client for one GET per connection, or for several in sequence.
#[derive(Clone, Debug)]
pub struct Http1Client {
    out: SendBuffer,
    state: ClientState,
    limits: HttpLimits,
    /// True while neither side has announced the end of the connection.
    lasts: bool,
}

#[derive(Clone, Debug)]
enum ClientState {
    /// Head, as far as it has arrived.
    Head(Vec<u8>),
    Body(u16, BodyReader),
    Complete(HttpResponse),
}

impl Http1Client {
    /// Sends a GET.
    ///
    /// # Errors
    /// [`HttpError::Target`].
    pub fn new(form: HeadForm, target: Target<'_>, limits: HttpLimits) -> Result<Self, HttpError> {
        let mut client = Self::silent(limits);
        client.push(form, target)?;
        Ok(client)
    }

    /// Sends a GET in [`HeadForm::Minimal`], on a connection that stays open if the server agrees.
    ///
    /// # Errors
    /// [`HttpError::Target`].
    pub fn lasting(target: Target<'_>, limits: HttpLimits) -> Result<Self, HttpError> {
        let mut client = Self { lasts: true, ..Self::silent(limits) };
        client.push(HeadForm::Minimal, target)?;
        Ok(client)
    }

    fn silent(limits: HttpLimits) -> Self {
        Self { out: SendBuffer::default(), state: ClientState::Head(Vec::new()), limits, lasts: false }
    }

    fn push(&mut self, form: HeadForm, target: Target<'_>) -> Result<(), HttpError> {
        if !target.is_valid() {
            return Err(HttpError::Target);
        }
        let Target { host, path } = target;
        let close = if self.lasts { "" } else { "Connection: close\r\n" };
        let head = match form {
            HeadForm::Minimal => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{close}\r\n"),
            HeadForm::Reduced => format!("GET {path} HTTP/1.0\r\n\r\n"),
        };
        self.out.push(head.as_bytes());
        Ok(())
    }

    /// Parses complete heads, and passes on the octets after them.
    fn take_heads(&mut self) -> Result<(), HttpError> {
        while let ClientState::Head(octets) = &mut self.state {
            let Some(head) = head::response(octets)? else {
                let is_too_large = octets.len() > self.limits.head;
                return if is_too_large { Err(HttpError::HeadTooLarge(self.limits.head)) } else { Ok(()) };
            };
            if head.len > self.limits.head {
                return Err(HttpError::HeadTooLarge(self.limits.head));
            }
            let behind = octets.split_off(head.len);
            // Interim responses. RFC 9110, section 15.2. A 101 is not expected, as nothing requested it.
            if (100..200).contains(&head.status) {
                *octets = behind;
                continue;
            }
            self.lasts &= head.persists;
            let mut body = BodyReader::new(head.length, self.limits.body)?;
            body.take(&behind)?;
            self.state = ClientState::Body(head.status, body);
            self.complete();
        }
        Ok(())
    }

    fn complete(&mut self) {
        if let ClientState::Body(status, body) = &self.state
            && body.is_complete()
        {
            self.state =
                ClientState::Complete(HttpResponse { status: *status, body: body.clone().into_octets() });
        }
    }
}

impl ClientEngine for Http1Client {
    fn output(&self) -> &[u8] {
        self.out.waiting()
    }

    fn sent(&mut self, octets: usize) {
        self.out.sent(octets);
    }

    fn handle_input(&mut self, octets: &[u8]) -> Result<(), HttpError> {
        match &mut self.state {
            ClientState::Head(head) => {
                head.extend_from_slice(octets);
                self.take_heads()
            }
            ClientState::Body(_, body) => {
                body.take(octets)?;
                self.complete();
                Ok(())
            }
            ClientState::Complete(_) if octets.is_empty() => Ok(()),
            ClientState::Complete(_) => Err(HttpError::Unexpected),
        }
    }

    fn handle_end(&mut self) -> Result<(), HttpError> {
        match &mut self.state {
            ClientState::Head(_) => Err(HttpError::Truncated(0)),
            ClientState::Body(_, body) => {
                body.end()?;
                self.complete();
                Ok(())
            }
            ClientState::Complete(_) => Ok(()),
        }
    }

    fn response(&self) -> Option<&HttpResponse> {
        match &self.state {
            ClientState::Complete(response) => Some(response),
            ClientState::Head(_) | ClientState::Body(..) => None,
        }
    }

    fn ask(&mut self, target: Target<'_>) -> Result<(), HttpError> {
        if !self.lasts || self.response().is_none() {
            return Err(HttpError::NoOther);
        }
        self.push(HeadForm::Minimal, target)?;
        self.state = ClientState::Head(Vec::new());
        Ok(())
    }
}
