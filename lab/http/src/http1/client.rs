//! HTTP/1 client.

use alloc::format;
use alloc::vec::Vec;

use super::Form;
use super::body::Body;
use super::head;
use crate::outbox::Outbox;
use crate::{ClientEngine, Error, Limits, Response, Target};

/// Client for one GET per connection, or for several in sequence.
#[derive(Clone, Debug)]
pub struct Client {
    out: Outbox,
    state: State,
    limits: Limits,
    /// True while neither side has announced the end of the connection.
    lasts: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// Head, as far as it has arrived.
    Head(Vec<u8>),
    Body(u16, Body),
    Complete(Response),
}

impl Client {
    /// Sends a GET.
    ///
    /// # Errors
    /// [`Error::Target`].
    pub fn new(form: Form, target: Target<'_>, limits: Limits) -> Result<Self, Error> {
        let mut client = Self::silent(limits);
        client.push(form, target)?;
        Ok(client)
    }

    /// Sends a GET in [`Form::Minimal`], on a connection that stays open if the server agrees.
    ///
    /// # Errors
    /// [`Error::Target`].
    pub fn lasting(target: Target<'_>, limits: Limits) -> Result<Self, Error> {
        let mut client = Self { lasts: true, ..Self::silent(limits) };
        client.push(Form::Minimal, target)?;
        Ok(client)
    }

    fn silent(limits: Limits) -> Self {
        Self { out: Outbox::default(), state: State::Head(Vec::new()), limits, lasts: false }
    }

    fn push(&mut self, form: Form, target: Target<'_>) -> Result<(), Error> {
        if !target.is_valid() {
            return Err(Error::Target);
        }
        let Target { host, path } = target;
        let close = if self.lasts { "" } else { "Connection: close\r\n" };
        let head = match form {
            Form::Minimal => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{close}\r\n"),
            Form::Reduced => format!("GET {path} HTTP/1.0\r\n\r\n"),
        };
        self.out.push(head.as_bytes());
        Ok(())
    }

    /// Parses complete heads, and passes on the octets after them.
    fn take_heads(&mut self) -> Result<(), Error> {
        while let State::Head(octets) = &mut self.state {
            let Some(head) = head::response(octets)? else {
                let is_too_large = octets.len() > self.limits.head;
                return if is_too_large { Err(Error::HeadTooLarge(self.limits.head)) } else { Ok(()) };
            };
            if head.len > self.limits.head {
                return Err(Error::HeadTooLarge(self.limits.head));
            }
            let behind = octets.split_off(head.len);
            // Interim responses. RFC 9110, section 15.2. A 101 is not expected, as nothing requested it.
            if (100..200).contains(&head.status) {
                *octets = behind;
                continue;
            }
            self.lasts &= head.persists;
            let mut body = Body::new(head.length, self.limits.body)?;
            body.take(&behind)?;
            self.state = State::Body(head.status, body);
            self.complete();
        }
        Ok(())
    }

    fn complete(&mut self) {
        if let State::Body(status, body) = &self.state
            && body.is_complete()
        {
            self.state = State::Complete(Response { status: *status, body: body.clone().into_octets() });
        }
    }
}

impl ClientEngine for Client {
    fn output(&self) -> &[u8] {
        self.out.waiting()
    }

    fn sent(&mut self, octets: usize) {
        self.out.sent(octets);
    }

    fn handle_input(&mut self, octets: &[u8]) -> Result<(), Error> {
        match &mut self.state {
            State::Head(head) => {
                head.extend_from_slice(octets);
                self.take_heads()
            }
            State::Body(_, body) => {
                body.take(octets)?;
                self.complete();
                Ok(())
            }
            State::Complete(_) if octets.is_empty() => Ok(()),
            State::Complete(_) => Err(Error::Unexpected),
        }
    }

    fn handle_end(&mut self) -> Result<(), Error> {
        match &mut self.state {
            State::Head(_) => Err(Error::Truncated(0)),
            State::Body(_, body) => {
                body.end()?;
                self.complete();
                Ok(())
            }
            State::Complete(_) => Ok(()),
        }
    }

    fn response(&self) -> Option<&Response> {
        match &self.state {
            State::Complete(response) => Some(response),
            State::Head(_) | State::Body(..) => None,
        }
    }

    fn ask(&mut self, target: Target<'_>) -> Result<(), Error> {
        if !self.lasts || self.response().is_none() {
            return Err(Error::NoOther);
        }
        self.push(Form::Minimal, target)?;
        self.state = State::Head(Vec::new());
        Ok(())
    }
}
