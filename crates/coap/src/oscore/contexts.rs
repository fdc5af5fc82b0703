//! Contexts of an endpoint, found by their Recipient ID and ID Context.

use core::hash::Hash;

use super::context::{Context, ContextError};
use super::nonce::Id;
use super::protect::{Unprotected, kid};
use super::{Binding, ContextId, OscoreError, OscoreOption};
use crate::number;
use crate::option::Options;
use crate::table::{Index, KeyedHasher, Slab};

/// Security contexts of an endpoint.
#[derive(Debug)]
pub(crate) struct Contexts {
    slab: Slab<Context>,
    index: Index,
    hash_key: u64,
}

impl Contexts {
    pub(crate) fn new(hash_key: u64) -> Self {
        Self { slab: Slab::new(usize::MAX), index: Index::default(), hash_key }
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

    pub(crate) const fn is_empty(&self) -> bool {
        self.slab.len() == 0
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

    fn find(&self, id: &Id, id_context: Option<&[u8]>) -> Option<ContextId> {
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
