//! Contexts of an endpoint, found by their Recipient ID and ID Context.

use alloc::boxed::Box;
use core::fmt;
use core::hash::Hash;

use thinair_wire::time::Instant;

use super::context::{Context, ContextError};
use super::nonce::Id;
use super::protect::{Unprotected, kid};
use super::{Binding, ContextId, Established, KeyExchange, OscoreError, OscoreOption, key_exchange};
use crate::number;
use crate::option::Options;
use crate::request::Response;
use crate::table::{Index, KeyedHasher, Slab};

/// Security contexts of an endpoint.
pub(crate) struct Contexts {
    slab: Slab<Context>,
    index: Index,
    hash_key: u64,
    pub(crate) key_exchange: Option<Box<dyn KeyExchange>>,
}

impl Contexts {
    pub(crate) fn new(hash_key: u64) -> Self {
        Self { slab: Slab::new(usize::MAX), index: Index::default(), hash_key, key_exchange: None }
    }

    /// Octets of memory, without ID Contexts and stores of numbers.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.slab.capacity() + self.index.capacity()
    }

    /// Largest number of contexts that are compared to find one.
    #[cfg(test)]
    pub(crate) fn longest_bucket(&self) -> usize {
        self.index.longest_bucket()
    }

    /// True if the endpoint does without OSCORE.
    pub(crate) const fn is_empty(&self) -> bool {
        self.slab.len() == 0 && self.key_exchange.is_none()
    }

    fn hash(&self, id: &Id, id_context: Option<&[u8]>) -> u32 {
        struct Key<'a>(&'a Id, Option<&'a [u8]>);
        impl Hash for Key<'_> {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                self.0.hash(state);
                self.1.hash(state);
            }
        }
        KeyedHasher::of(self.hash_key, &Key(id, id_context)) as u32
    }

    /// Returns the context with this Recipient ID and ID Context.
    pub(crate) fn find(&self, id: &Id, id_context: Option<&[u8]>) -> Option<ContextId> {
        let is = |slot| {
            self.slab
                .at(slot)
                .is_some_and(|(_, context)| context.recipient_id == *id && context.id_context() == id_context)
        };
        let slot = self.index.find(self.hash(id, id_context), is)?;
        self.slab.at(slot).map(|(key, _)| ContextId(key))
    }

    /// Adds a context.
    pub(crate) fn insert(&mut self, context: Context) -> Result<ContextId, ContextError> {
        let (id, hash) = (context.recipient_id, self.hash(&context.recipient_id, context.id_context()));
        if self.find(&id, context.id_context()).is_some() {
            return Err(ContextError::Ambiguous);
        }
        let key = self.slab.insert(context).map_err(|_| ContextError::Ambiguous)?;
        self.index.insert(hash, key.slot);
        Ok(ContextId(key))
    }

    /// Adds the context of a key exchange, and removes the one that it replaces.
    pub(crate) fn establish(&mut self, established: Established) -> Result<ContextId, ContextError> {
        let replaced = established.replaced.and_then(|id| self.find(&Id::new(&id)?, None));
        if let Some(replaced) = replaced {
            self.remove(replaced);
        }
        self.insert(established.context)
    }

    /// Removes a context, with its keys.
    pub(crate) fn remove(&mut self, id: ContextId) -> Option<Context> {
        let context = self.slab.remove(id.0)?;
        self.index.remove(id.0.slot);
        Some(context)
    }

    pub(crate) fn get(&self, id: ContextId) -> Option<&Context> {
        self.slab.get(id.0)
    }

    pub(crate) fn get_mut(&mut self, id: ContextId) -> Option<&mut Context> {
        self.slab.get_mut(id.0)
    }

    /// Adds the context of a request with message 3 of EDHOC, unless it is there. Returns the ciphertext. RFC 9668, section
    /// 3.3.1.
    pub(crate) fn complete_exchange<'p>(
        &mut self,
        now: Instant,
        options: &Options<'_>,
        payload: &'p [u8],
    ) -> Result<&'p [u8], Response<'static>> {
        if options.first(number::EDHOC).is_none() {
            return Ok(payload);
        }
        let value = options.first(number::OSCORE).map(OscoreOption::read);
        let value = value.ok_or(OscoreError::Malformed).and_then(|value| value);
        let id = value.and_then(|value| kid(&value).ok_or(OscoreError::Malformed));
        let id = id.map_err(OscoreError::as_response)?;
        let (message_3, ciphertext) =
            key_exchange::split(payload).ok_or(OscoreError::Malformed.as_response())?;
        // After the loss of its response, a request has message 3 again.
        if self.find(&id, None).is_none() {
            let exchange = self.key_exchange.as_mut().ok_or(OscoreError::NoContext.as_response())?;
            let established = exchange.complete(now, id.octets(), message_3)?;
            self.establish(established).map_err(|_| OscoreError::NoContext.as_response())?;
        }
        Ok(ciphertext)
    }

    /// Unprotects a request, and returns its context.
    pub(crate) fn unprotect_request(
        &mut self,
        options: &Options<'_>,
        payload: &[u8],
    ) -> Result<(Unprotected, ContextId, Binding), OscoreError> {
        let value = OscoreOption::read(options.first(number::OSCORE).ok_or(OscoreError::Malformed)?)?;
        let recipient = kid(&value).ok_or(OscoreError::Malformed)?;
        let id = self.find(&recipient, value.kid_context).ok_or(OscoreError::NoContext)?;
        let context = self.get_mut(id).ok_or(OscoreError::NoContext)?;
        let (request, binding) = context.unprotect_request(options, payload)?;
        Ok((request, id, binding))
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contexts").field("contexts", &self.slab.len()).finish_non_exhaustive()
    }
}
