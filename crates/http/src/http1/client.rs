//! One GET.

use alloc::format;
use alloc::vec::Vec;

use super::Form;
use super::body::Body;
use super::head;
use crate::outbox::Outbox;
use crate::{ClientEngine, Error, Limits, Response, Target};

/// A GET on a connection of its own, and the response.
#[derive(Clone, Debug)]
pub struct Client {
    out: Outbox,
    state: State,
    limits: Limits,
}

#[derive(Clone, Debug)]
enum State {
    /// A head, as far as it has come.
    Head(Vec<u8>),
    Body(u16, Body),
    Complete(Response),
}

impl Client {
    /// Asks for it.
    ///
    /// # Errors
    /// [`Error::Target`].
    pub fn new(form: Form, target: Target<'_>, limits: Limits) -> Result<Self, Error> {
        if !target.is_valid() {
            return Err(Error::Target);
        }
        let Target { host, path } = target;
        let mut out = Outbox::default();
        out.push(
            match form {
                Form::Minimal => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
                Form::Reduced => format!("GET {path} HTTP/1.0\r\n\r\n"),
            }
            .as_bytes(),
        );
        Ok(Self { out, state: State::Head(Vec::new()), limits })
    }

    /// Takes a head that is complete, and what is behind it.
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
            // RFC 9110, section 15.2: what is only said on the way. Nobody has asked for 101.
            if (100..200).contains(&head.status) {
                *octets = behind;
                continue;
            }
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
}
