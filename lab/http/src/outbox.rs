//! Octets that wait to be sent.

use alloc::vec::Vec;

/// Buffer of octets, the first of which are already sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    octets: Vec<u8>,
    gone: usize,
}

impl SendBuffer {
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.octets);
    }

    pub(crate) fn waiting(&self) -> &[u8] {
        self.octets.get(self.gone..).unwrap_or_default()
    }

    pub(crate) fn sent(&mut self, octets: usize) {
        self.gone = self.gone.saturating_add(octets);
        if self.gone >= self.octets.len() {
            // Releases the memory of a burst.
            *self = Self::default();
        }
    }
}
