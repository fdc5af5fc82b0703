//! Changes that are sent several times, or until a packet with them is acknowledged. RFC 3095, sections 5.3.1.1.1 and 5.4.1.1.

use thinair_wire::serial::Serial;

/// A pending change: number of packets left that must carry it (optimistic approach), and SN of the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingChange {
    left: u8,
    /// As octets, to avoid padding.
    since: [u8; 2],
}

impl PendingChange {
    pub(super) fn start(&mut self, sn: u16, repetitions: u8) {
        *self = Self { left: repetitions.max(1), since: sn.to_be_bytes() };
    }

    /// Sets the first SN of a change that is not counted.
    pub(super) fn mark(&mut self, sn: u16) {
        self.since = sn.to_be_bytes();
    }

    pub(super) fn since(&self) -> u16 {
        u16::from_be_bytes(self.since)
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.left > 0
    }

    #[inline]
    pub(super) fn sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Handles the acknowledgment of a packet with the change.
    pub(super) fn acknowledge(&mut self, sn: u16) {
        if !sn.is_before(self.since()) {
            self.left = 0;
        }
    }
}

/// Changed fields of one IP header: indices in [`Pending`](crate::flow::pending::Pending).
pub(super) mod changes {
    pub(in super::super) const TOS: usize = 0;
    pub(in super::super) const TTL: usize = 1;
    /// DF, NBO, RND.
    pub(in super::super) const FLAGS: usize = 2;
    /// The full IP-ID, because its byte order or randomness has changed.
    pub(in super::super) const ID: usize = 3;
    pub(in super::super) const COUNT: usize = 4;
}
