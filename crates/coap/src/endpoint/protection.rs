//! Protection of exchanges by OSCORE, between the message layer and requests. RFC 8613, section 8.
//!
//! A received message is unprotected after it was found to be no duplicate, and before anything else reads it; a message to
//! send is protected when it is complete. So a retransmission and the answer to a duplicate are the same octets again, and
//! blocks, observations and Echo are those of the message within.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::time::Instant;

use super::Endpoint;
use super::call::Observing;
use super::digest::Digest;
use super::flight::MessageContent;
use super::receive::OpenedResponse;
use super::remembered::MessageRef;
use super::server::PendingRequest;
use crate::block::Block;
use crate::code::{self, Code, MessageKind};
use crate::event::{CallError, CallId, Event, RequestError, RequestId};
use crate::message::Message;
use crate::number;
use crate::option::{OptionList, Options};
pub(super) use crate::oscore::ContextId;
use crate::oscore::{Binding, Context, ContextError, Established, Id, KeyExchange, OscoreError, Unprotected};
use crate::request::{Request, Response};
use crate::table::SlotKey;
use crate::token::Token;

/// Context of a protected request, and the binding of its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protection {
    context: ContextId,
    request: Binding,
}

/// Context of a protected call, and the bindings of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallProtection {
    context: ContextId,
    /// Latest request.
    request: Option<Binding>,
    /// Request that has registered for notifications.
    registration: Option<Binding>,
    /// Notification Number: the largest Partial IV of the registration's notifications. RFC 8613, section 4.1.3.5.2.
    notification: Option<u64>,
    /// True if the nonce of the registration was used by a notification.
    is_answered: bool,
    /// True after the first notification.
    is_observed: bool,
}

/// Content of a protected message.
pub(super) struct ProtectedContent {
    code: Code,
    token: Token,
    options: OptionList,
    payload: Vec<u8>,
}

impl ProtectedContent {
    pub(super) fn into_parts(self) -> (OptionList, Vec<u8>) {
        (self.options, self.payload)
    }

    pub(super) fn as_content(&self) -> MessageContent<'_> {
        let Self { code, token, options, payload } = self;
        MessageContent { code: *code, token: *token, options: options.octets(), payload }
    }
}

/// A message that was unprotected, with the options that the endpoint processes.
pub(super) struct InnerMessage {
    message: Unprotected,
    pub(super) digest: Digest,
}

impl InnerMessage {
    fn new(message: Unprotected, recognised: &[u16]) -> Self {
        let mut digest = Digest::default();
        message.options().iter().for_each(|option| digest.note(message.code, &option, recognised));
        if digest.is_protected {
            // Protection within protection.
            digest.refused = Some(number::OSCORE);
        }
        Self { message, digest }
    }

    /// Returns the message with the header of the outer one.
    pub(super) fn with_header_of(&self, outer: &Message<'_>) -> Message<'_> {
        Message {
            message_type: outer.message_type,
            code: self.message.code,
            message_id: outer.message_id,
            token: outer.token,
            options: self.message.options(),
            payload: self.message.payload(),
        }
    }
}

impl<P: Copy + Eq + Hash> Endpoint<P> {
    /// Adds a security context, for requests by [`request_protected`](Self::request_protected) and from its other end.
    ///
    /// # Errors
    /// Another context has the same Recipient ID and ID Context.
    pub fn add_context(&mut self, context: Context) -> Result<ContextId, ContextError> {
        self.contexts.insert(context)
    }

    /// Removes a security context, with its keys. Its exchanges come to nothing.
    pub fn remove_context(&mut self, context: ContextId) -> Option<Context> {
        self.contexts.remove(context)
    }

    /// Adds the context of a key exchange whose message 3 came by itself.
    ///
    /// # Errors
    /// Another context has the same Recipient ID.
    pub fn establish(&mut self, established: Established) -> Result<ContextId, ContextError> {
        self.contexts.establish(established)
    }

    /// Sets the Responder of EDHOC, which completes exchanges whose message 3 comes with a protected request.
    pub fn set_key_exchange(&mut self, exchange: impl KeyExchange + 'static) {
        self.contexts.key_exchange = Some(Box::new(exchange));
    }

    /// Returns a security context.
    pub fn context(&self, context: ContextId) -> Option<&Context> {
        self.contexts.get(context)
    }

    /// Returns the security context with this Recipient ID, and no ID Context.
    pub fn context_with(&self, recipient_id: &[u8]) -> Option<ContextId> {
        self.contexts.find(&Id::new(recipient_id)?, None)
    }

    /// Returns the context of a request that waits for its response. `None` if it is not protected.
    pub fn context_of(&self, request: RequestId) -> Option<ContextId> {
        self.requests.get(request.0)?.transfer.0
    }

    /// Sends a request like [`request`](Self::request), protected by a context. All its responses have to be protected, too.
    ///
    /// # Errors
    /// The request cannot be sent.
    pub fn request_protected(
        &mut self,
        now: Instant,
        peer: P,
        request: &Request<'_>,
        context: ContextId,
    ) -> Result<CallId, RequestError> {
        self.contexts.get(context).ok_or(RequestError::NoContext)?;
        let protection = CallProtection {
            context,
            request: None,
            registration: None,
            notification: None,
            is_answered: false,
            is_observed: false,
        };
        self.begin_call(now, peer, request, Some(protection))
    }

    /// Returns the largest number of octets that protection adds to a message.
    pub(super) fn protection_overhead(&self, context: Option<ContextId>) -> usize {
        context.and_then(|context| self.contexts.get(context)).map_or(0, Context::overhead)
    }

    /// Protects a response, or a notification. `Ok(None)` if the exchange is not protected.
    pub(super) fn protect_response(
        &mut self,
        protection: Option<Protection>,
        content: &MessageContent<'_>,
    ) -> Result<Option<ProtectedContent>, OutOfNumbers> {
        let Some(Protection { context, request }) = protection else { return Ok(None) };
        let context = self.contexts.get_mut(context).ok_or(OutOfNumbers)?;
        let options = Options::walked(content.options);
        let protected = context.protect_response(request, content.code, &options, content.payload);
        let protected = protected.ok_or(OutOfNumbers)?;
        let (code, options, payload) = (protected.code, protected.options, protected.payload);
        Ok(Some(ProtectedContent { code, token: content.token, options, payload }))
    }

    /// Protects a message of a call. `Ok(None)` if the call is not protected.
    pub(super) fn protect_request(
        &mut self,
        key: SlotKey,
        content: &MessageContent<'_>,
    ) -> Result<Option<ProtectedContent>, OutOfNumbers> {
        let Some(call) = self.calls.get_mut(key) else { return Ok(None) };
        let registers = call.observing == Observing::Registering && call.download.is_none();
        let Some(protection) = &mut call.protection else { return Ok(None) };
        let context = self.contexts.get_mut(protection.context).ok_or(OutOfNumbers)?;
        let options = Options::walked(content.options);
        let protected = context.protect_request(content.code, &options, content.payload);
        let (protected, binding) = protected.ok_or(OutOfNumbers)?;
        protection.request = Some(binding);
        if registers {
            (protection.registration, protection.notification, protection.is_answered) =
                (Some(binding), None, false);
        }
        let (code, options, payload) = (protected.code, protected.options, protected.payload);
        Ok(Some(ProtectedContent { code, token: content.token, options, payload }))
    }

    /// Unprotects the response to a call. RFC 8613, section 8.4.
    pub(super) fn open_response(
        &mut self,
        key: SlotKey,
        message: &Message<'_>,
        digest: &Digest,
    ) -> OpenedResponse {
        let Some(call) = self.calls.get_mut(key) else { return OpenedResponse::Plain };
        let observed = call.observed == Some(message.token);
        let Some(protection) = &mut call.protection else {
            return match digest.is_protected {
                true => OpenedResponse::Failed(CallError::BadOption { number: number::OSCORE }),
                false => OpenedResponse::Plain,
            };
        };
        // Once the server has proved itself, nothing that is not verified ends an observation: section 8.4.2.
        let ends = |error| match protection.is_observed && observed {
            true => OpenedResponse::Ignored,
            false => OpenedResponse::Failed(error),
        };
        if !digest.is_protected {
            return match message.code.class() {
                // A response of its own that the server cannot protect: section 8.2.
                4 | 5 => ends(CallError::NotProtected { code: message.code }),
                _ => OpenedResponse::Ignored,
            };
        }
        if is_divided(digest) {
            return ends(CallError::Oscore(OscoreError::OuterBlock));
        }
        let context = self.contexts.get_mut(protection.context);
        let is_notification = observed && call.observing != Observing::Leaving;
        let request = if is_notification { protection.registration } else { protection.request };
        let (Some(context), Some(request)) = (context, request) else { return OpenedResponse::Ignored };
        let response = match context.unprotect_response(request, &message.options, message.payload) {
            Ok(response) => response,
            Err(error) => {
                self.counters.unverified += 1;
                return ends(CallError::Oscore(error));
            }
        };
        let number = response.partial_iv;
        let mut inner = InnerMessage::new(response, &[]);
        if inner.digest.observe.is_some() {
            // The Partial IVs of notifications increase; only the first one may have none. Sections 7.4.1 and 8.4.2.
            let is_fresh = match (number, protection.notification) {
                (None, None) => !core::mem::replace(&mut protection.is_answered, true),
                (None, Some(_)) => false,
                (Some(number), latest) => latest.is_none_or(|latest| latest < number),
            };
            if !observed || !is_fresh {
                return OpenedResponse::Ignored;
            }
            protection.notification = number.or(protection.notification);
            protection.is_observed = true;
            // "the three least significant bytes of the Partial IV": section 4.1.3.5.2.
            inner.digest.observe = Some(number.unwrap_or(0) as u32 & 0xFF_FFFF);
        }
        OpenedResponse::Inner(inner)
    }

    /// Processes a request with the OSCORE option. RFC 8613, section 8.2.
    pub(super) fn handle_protected_request(
        &mut self,
        now: Instant,
        peer: SlotKey,
        memory: Option<MessageRef>,
        message: &Message<'_>,
        digest: &Digest,
        octets: usize,
    ) -> Option<Event<'static, P>> {
        let outer = self.pending(now, peer, memory, message, digest, octets);
        if self.contexts.is_empty() || digest.proxy {
            // To an endpoint without contexts the option is not known.
            let mut digest = *digest;
            digest.refused = Some(number::OSCORE);
            self.refuse(now, &outer, &digest);
            return None;
        }
        let opened = match is_divided(digest) {
            true => Err(OscoreError::OuterBlock.as_response()),
            false => self.contexts.complete_exchange(now, &message.options, message.payload).and_then(
                |ciphertext| {
                    let opened = self.contexts.unprotect_request(&message.options, ciphertext);
                    opened.map_err(OscoreError::as_response)
                },
            ),
        };
        let (request, context, binding) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                self.counters.unverified += 1;
                self.answer_briefly(now, &outer, refusal);
                return None;
            }
        };
        let inner = InnerMessage::new(request, self.config.policy.recognised);
        let protection = Some(Protection { context, request: binding });
        let message = inner.with_header_of(message);
        let pending = self.pending(now, peer, memory, &message, &inner.digest, octets);
        let transfer = (Some(context), pending.transfer.1);
        let pending = PendingRequest { protection, transfer, ..pending };
        if code::kind(message.code) != MessageKind::Request {
            self.answer_plain(now, &pending, Response::new(code::BAD_REQUEST));
            return None;
        }
        let context = self.contexts.get_mut(context)?;
        if context.is_unsynchronized() {
            // Appendix B.1.2: what echoes a value of this process was sent after its start.
            let state = self.peers.get(peer)?;
            if inner.digest.echo.is_none() || inner.digest.echo != state.echo {
                self.challenge(now, &pending);
                return None;
            }
            context.synchronize(binding);
        }
        self.handle_open_request(now, &pending, message, &inner.digest).map(Event::into_owned)
    }
}

/// No Sender Sequence Number is left, or the context is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutOfNumbers;

/// True if a message is one of several outer blocks.
fn is_divided(digest: &Digest) -> bool {
    let is_part = |block: Option<Block>| block.is_some_and(|block| block.more || block.num > 0);
    is_part(digest.block1) || is_part(digest.block2)
}

impl CallProtection {
    pub(super) const fn context(&self) -> ContextId {
        self.context
    }
}
