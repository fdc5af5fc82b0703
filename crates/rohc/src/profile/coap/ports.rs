//! Flows of one client that follow one another in a context, each with a port of its own: which of them keeps the context. Section 9.6 of
//! `docs/coap-profile.md`.
//!
//! A new flow takes over the context of the flow before, and costs a few octets instead of an IR packet. A flow that comes back gets the
//! context for itself, so that flows which live side by side end up with a context each.

/// Number of flows of one packet in a row from which on others like them are expected.
const SINGLES: u8 = 3;

/// Packets behind a change of the port from which on another one is unlikely.
pub(super) const RECENT: u8 = 64;

/// What a context is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextUse {
    /// Flows that follow one another.
    Shared,
    /// One flow, whose port stays.
    OneFlow,
    /// A flow that is not CoAP after all: none of its packets is from now on.
    Abandoned,
}

/// Former port of a context, by which a flow that comes back is recognized.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FormerPort {
    /// The port; 0 for none.
    port: u16,
    /// Number of flows after which another port is remembered.
    left: u16,
    /// Its smallest value at the beginning, as a power of two, in the 4 low bits. It doubles each time, so that flows which take turns
    /// are found whatever their number is. Above them, the number of flows in a row that had one packet.
    interval_and_singles: u8,
    /// Packets that the current flow has sent, and MSN of its first one.
    packets: u8,
    began: u16,
}

impl FormerPort {
    /// Records a packet of a flow of that port, behind one of the flow `before`.
    #[inline]
    pub(super) fn note(&mut self, msn: u32, port: u16, before: u16) {
        if port == before {
            self.packets = self.packets.saturating_add(1);
        } else {
            self.take_over(msn, before);
        }
    }

    #[cold]
    fn take_over(&mut self, msn: u32, before: u16) {
        let packets = u16::from(core::mem::replace(&mut self.packets, 1));
        let (interval, singles) = (self.interval_and_singles & 0xF, self.interval_and_singles >> 4);
        let singles = if packets > 1 { 0 } else { (singles + 1).min(0xF) };
        self.began = msn as u16;
        self.left = self.left.saturating_sub(1);
        let is_over = self.left == 0;
        if is_over || packets > self.left {
            (self.port, self.left) = (before, packets.max(1 << interval));
        }
        let interval = if is_over { (interval + 1).min(14) } else { interval };
        self.interval_and_singles = singles << 4 | interval;
    }

    /// True if a template that was used last with that MSN is new to the current flow: nothing predicts its values.
    pub(super) fn is_new(&self, used: u32) -> bool {
        // Only the 16 low bits of the MSN are known.
        self.is_recent() && (used as u16).wrapping_sub(self.began).cast_signed() < 0
    }

    /// True if flows have one packet each.
    pub(super) fn has_singles(&self) -> bool {
        self.packets <= 1 && self.interval_and_singles >> 4 >= SINGLES
    }

    /// True if another flow may follow soon.
    pub(super) fn is_short(&self) -> bool {
        self.packets < RECENT
    }

    /// True if others had the context not long ago.
    pub(super) fn is_recent(&self) -> bool {
        self.port != 0 && self.packets < u8::MAX
    }

    /// True if the current flow has more packets than such flows.
    pub(super) fn is_long(&self) -> bool {
        self.packets > 4
    }

    /// True if the flow of that port has had the context before.
    pub(super) fn is(&self, port: u16) -> bool {
        self.port == port && port != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of packets until one of `count` flows that take turns is recognized.
    fn turns(count: u16) -> Option<u16> {
        let mut former = FormerPort::default();
        (1..8 * count).find(|&n| {
            let port = n % count;
            let is_back = former.is(port);
            former.note(0, port, (n - 1) % count);
            is_back
        })
    }

    #[test]
    fn flows_that_take_turns_are_recognized_within_four_rounds() {
        for count in 2..1_000 {
            assert!(turns(count).is_some_and(|packets| packets <= 4 * count), "{count}: {:?}", turns(count));
        }
    }

    #[test]
    fn a_flow_of_many_packets_is_recognized_after_others() {
        let mut former = FormerPort::default();
        for _ in 0..20 {
            former.note(0, 7, 7);
        }
        for port in 100..119 {
            former.note(0, port, if port == 100 { 7 } else { port - 1 });
            assert!(former.is(7), "{port}");
        }
    }
}
