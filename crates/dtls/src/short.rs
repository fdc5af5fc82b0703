//! A datagram or record that is short: of alerts, cookies and Finished.

/// Octets of the longest one.
const LONGEST: usize = 96;

#[derive(Clone, Copy)]
pub(crate) struct Short {
    octets: [u8; LONGEST],
    len: usize,
}

impl Short {
    /// Creates one by `write`, which returns its length.
    pub(crate) fn new(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<Self> {
        let mut octets = [0; LONGEST];
        let len = write(&mut octets)?;
        Some(Self { octets, len })
    }

    /// Copies octets. `None` if they are too long.
    pub(crate) fn copied(octets: &[u8]) -> Option<Self> {
        Self::new(|out| {
            out.get_mut(..octets.len())?.copy_from_slice(octets);
            Some(octets.len())
        })
    }

    pub(crate) fn octets_mut(&mut self) -> &mut [u8] {
        self.octets.get_mut(..self.len).unwrap_or_default()
    }

    /// Writes it, and returns its length. `None` if `out` is shorter.
    pub(crate) fn write(&self, out: &mut [u8]) -> Option<usize> {
        out.get_mut(..self.len)?.copy_from_slice(self.octets.get(..self.len)?);
        Some(self.len)
    }
}
