//! The place of [`protection`](super) in an endpoint without OSCORE: no exchange is protected.

use alloc::vec::Vec;
use core::hash::Hash;

use thinair_wire::time::Instant;

use super::Endpoint;
use super::digest::Digest;
use super::flight::MessageContent;
use super::receive::OpenedResponse;
use super::remembered::MessageRef;
use crate::event::Event;
use crate::message::Message;
use crate::option::OptionList;
use crate::table::SlotKey;

/// No context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContextId {}

/// No protected request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {}

/// No protected call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallProtection {}

/// No protected message.
pub(super) enum ProtectedContent {}

impl ProtectedContent {
    pub(super) fn into_parts(self) -> (OptionList, Vec<u8>) {
        match self {}
    }

    pub(super) fn as_content(&self) -> MessageContent<'_> {
        match *self {}
    }
}

/// No message is unprotected.
pub(super) struct InnerMessage {
    pub(super) digest: Digest,
    never: ContextId,
}

impl InnerMessage {
    pub(super) fn with_header_of(&self, _outer: &Message<'_>) -> Message<'_> {
        match self.never {}
    }
}

/// Protection never fails.
#[allow(dead_code, reason = "as with OSCORE")]
#[derive(Clone, Copy, Debug)]
pub(super) struct OutOfNumbers;

impl<P: Copy + Eq + Hash> Endpoint<P> {
    pub(super) const fn protection_overhead(&self, _context: Option<ContextId>) -> usize {
        0
    }

    pub(super) fn protect_response(
        &mut self,
        _protection: Option<Protection>,
        _content: &MessageContent<'_>,
    ) -> Result<Option<ProtectedContent>, OutOfNumbers> {
        Ok(None)
    }

    pub(super) fn protect_request(
        &mut self,
        _key: SlotKey,
        _content: &MessageContent<'_>,
    ) -> Result<Option<ProtectedContent>, OutOfNumbers> {
        Ok(None)
    }

    pub(super) fn open_response(
        &mut self,
        _key: SlotKey,
        _message: &Message<'_>,
        _digest: &Digest,
    ) -> OpenedResponse {
        OpenedResponse::Plain
    }

    pub(super) fn handle_protected_request(
        &mut self,
        _now: Instant,
        _peer: SlotKey,
        _memory: Option<MessageRef>,
        _message: &Message<'_>,
        _digest: &Digest,
        _octets: usize,
    ) -> Option<Event<'static, P>> {
        None
    }
}

impl CallProtection {
    pub(super) const fn context(&self) -> ContextId {
        match *self {}
    }
}
