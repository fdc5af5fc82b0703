//! A security context: keys, identifiers, sequence number, replay window. RFC 8613, section 3.

use alloc::boxed::Box;
use core::fmt;

use super::keys::{KEY, Keys};
use super::nonce::{Id, MAX_NUMBER};
use super::window::ReplayWindow;

/// Longest Sender ID and Recipient ID, in octets. RFC 8613, section 3.3.
pub const MAX_ID: usize = 7;

/// Longest ID Context, in octets: messages have room for it beside a block of 1,024 octets.
pub(super) const MAX_ID_CONTEXT: usize = 32;

/// Input of the key derivation, common to both ends but for the identifiers, which are exchanged. RFC 8613, section 3.2.
#[derive(Clone, Copy)]
pub struct ContextParameters<'a> {
    /// Master Secret: at least 16 octets, chosen at random.
    pub master_secret: &'a [u8],
    /// Master Salt. Default: empty.
    pub master_salt: &'a [u8],
    /// ID Context, at most 32 octets. It is part of every request.
    pub id_context: Option<&'a [u8]>,
    /// Sender ID, at most [`MAX_ID`] octets.
    pub sender_id: &'a [u8],
    /// Recipient ID, at most [`MAX_ID`] octets.
    pub recipient_id: &'a [u8],
}

/// Reason why a context cannot be made. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContextError {
    /// The Master Secret has fewer than 16 octets.
    ShortSecret,
    /// An identifier has more than [`MAX_ID`] octets.
    LongId,
    /// The ID Context has more than 32 octets.
    LongIdContext,
    /// Sender ID and Recipient ID are equal.
    EqualIds,
    /// The endpoint has another context with this Recipient ID and ID Context.
    Ambiguous,
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortSecret => write!(f, "the Master Secret has fewer than {KEY} octets"),
            Self::LongId => write!(f, "a Sender ID or Recipient ID has more than {MAX_ID} octets"),
            Self::LongIdContext => write!(f, "the ID Context has more than {MAX_ID_CONTEXT} octets"),
            Self::EqualIds => write!(f, "Sender ID and Recipient ID are equal"),
            Self::Ambiguous => write!(f, "another context has the same Recipient ID and ID Context"),
        }
    }
}

impl core::error::Error for ContextError {}

/// Storage of Sender Sequence Numbers that survives the process. RFC 8613, appendix B.1.1.
///
/// A closure reserves numbers, too, for tests and for contexts that end with the process.
pub trait SequenceNumbers: Send {
    /// Reserves numbers from `next` on. Returns the first one that is **not** reserved, after it was stored durably as the next
    /// one of the next start. `None` if that has failed: nothing is sent.
    fn reserve(&mut self, next: u64) -> Option<u64>;

    /// Returns the reserved numbers from `next` on: none of them was used, and none will be.
    fn release(&mut self, next: u64) {
        let _ = next;
    }
}

impl<F: FnMut(u64) -> Option<u64> + Send> SequenceNumbers for F {
    fn reserve(&mut self, next: u64) -> Option<u64> {
        self(next)
    }
}

/// Security context of two endpoints.
///
/// **A Sender Sequence Number must never be used twice**, also not by another process, after a restart, or by a copy of the
/// context: two messages with one nonce reveal their contents, and messages can be forged. [`SequenceNumbers`] are for that.
pub struct Context {
    pub(super) keys: Box<Keys>,
    pub(super) sender_id: Id,
    pub(super) recipient_id: Id,
    pub(super) id_context: Option<Box<[u8]>>,
    /// Message 3 of EDHOC, until the other end is known to have it.
    pub(super) message_3: Option<Box<[u8]>>,
    owner: u32,
    /// Next Sender Sequence Number.
    next: u64,
    /// First Sender Sequence Number that is not reserved.
    end: u64,
    numbers: Box<dyn SequenceNumbers>,
    /// `None` after a restart, until a request is known to be fresh.
    pub(super) window: Option<ReplayWindow>,
}

impl Context {
    /// Derives a context. RFC 8613, section 3.2.1.
    ///
    /// `next` is the first Sender Sequence Number that was never used.
    ///
    /// `is_new`: true if no request was ever received in this context. Otherwise the first request is answered with a
    /// request to echo a value (RFC 8613, appendix B.1.2).
    ///
    /// # Errors
    /// The parameters are not allowed.
    pub fn new(
        parameters: &ContextParameters<'_>,
        next: u64,
        is_new: bool,
        numbers: impl SequenceNumbers + 'static,
    ) -> Result<Self, ContextError> {
        if parameters.master_secret.len() < KEY {
            return Err(ContextError::ShortSecret);
        }
        if parameters.id_context.is_some_and(|id| id.len() > MAX_ID_CONTEXT) {
            return Err(ContextError::LongIdContext);
        }
        let sender_id = Id::new(parameters.sender_id).ok_or(ContextError::LongId)?;
        let recipient_id = Id::new(parameters.recipient_id).ok_or(ContextError::LongId)?;
        if sender_id == recipient_id {
            return Err(ContextError::EqualIds);
        }
        Ok(Self {
            keys: Keys::derive(parameters),
            sender_id,
            recipient_id,
            id_context: parameters.id_context.map(Into::into),
            message_3: None,
            owner: 0,
            next,
            end: next,
            numbers: Box::new(numbers),
            window: is_new.then(ReplayWindow::default),
        })
    }

    /// Sends this message 3 of EDHOC with each request until the first response: the other end derives the context from it.
    /// It is a CBOR byte string. RFC 9668, section 3.
    pub fn with_message_3(mut self, message_3: &[u8]) -> Self {
        self.message_3 = Some(message_3.into());
        self
    }

    /// Sets the number of its owner, by which an application finds, for example, rights. Default: 0.
    pub const fn with_owner(mut self, owner: u32) -> Self {
        self.owner = owner;
        self
    }

    /// Returns the number of its owner.
    pub const fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns the Sender ID.
    pub fn sender_id(&self) -> &[u8] {
        self.sender_id.octets()
    }

    /// Returns the Recipient ID.
    pub fn recipient_id(&self) -> &[u8] {
        self.recipient_id.octets()
    }

    /// Returns the ID Context.
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }

    /// Returns a Sender Sequence Number that no message has. `None` if there is none: none could be reserved, or the last
    /// one was used.
    pub(super) fn take_number(&mut self) -> Option<u64> {
        if self.next >= self.end {
            self.end = self.numbers.reserve(self.next)?;
        }
        let number = self.next;
        if number >= self.end || number > MAX_NUMBER {
            return None;
        }
        self.next += 1;
        Some(number)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.numbers.release(self.next);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("sender_id", &self.sender_id())
            .field("recipient_id", &self.recipient_id())
            .field("id_context", &self.id_context())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ContextParameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextParameters")
            .field("id_context", &self.id_context)
            .field("sender_id", &self.sender_id)
            .field("recipient_id", &self.recipient_id)
            .finish_non_exhaustive()
    }
}
