//! Learning the behavior of the IP-ID of a flow, and of the flow label in its place, at the compressor. Section 4.2 of
//! `docs/coap-profile.md`.

use super::learn::{MISS, TOO_MANY};
use super::state::IpIdMode;

/// Number of packets in a row in which an IP-ID must count to be (again) a counter.
const RUN: u8 = 8;

/// Behavior of the IP-ID of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IpIdWatcher {
    last: u16,
    last_msn: u16,
    seen: bool,
    misses: u8,
    /// Numbers of packets in a row that were equal, that counted with the MSN, and that moved a little.
    same: u8,
    counted: u8,
    small: u8,
}

impl IpIdWatcher {
    /// Initial mode of a flow.
    pub(super) fn first(ip_id: u16) -> IpIdMode {
        // RFC 6864: an IP-ID of an atomic datagram is often zero throughout.
        if ip_id == 0 { IpIdMode::Constant } else { IpIdMode::Counted }
    }

    /// Records the next flow label, folded, and returns `Irregular` if every packet is to carry its own: a change less than [`RUN`]
    /// packets behind the last one, or behind the start, shows that clients take a new label with each port.
    #[inline]
    pub(super) fn watch_label(&mut self, mode: IpIdMode, label: u16) -> IpIdMode {
        let same = self.seen && label == self.last;
        let run = self.same;
        self.last = label;
        self.same = if same { run.saturating_add(1) } else { 0 };
        let seen = core::mem::replace(&mut self.seen, true);
        match mode {
            IpIdMode::Irregular if same && run >= 2 * RUN => IpIdMode::Constant,
            IpIdMode::Irregular => IpIdMode::Irregular,
            _ if seen && !same && run < RUN => IpIdMode::Irregular,
            _ => mode,
        }
    }

    /// Records that the flow label is that of the context again.
    #[inline]
    pub(super) fn count_same_label(&mut self) {
        self.same = self.same.saturating_add(1);
    }

    /// Records the next IP-ID, and returns the mode that encodes the next ones with fewest octets.
    /// A flow that begins has no last one.
    pub(super) fn watch(
        &mut self,
        mode: IpIdMode,
        ip_id: u16,
        msn: u16,
        unsettled: bool,
        begins: bool,
    ) -> IpIdMode {
        let step = ip_id.wrapping_sub(self.last);
        let same = step == 0;
        let counted = step == msn.wrapping_sub(self.last_msn);
        let small = step.wrapping_add(4) < 40;
        let seen = self.seen;
        (self.last, self.last_msn, self.seen) = (ip_id, msn, true);
        if !seen || begins {
            return mode;
        }
        let run = |run: u8, goes_on: bool| if goes_on { run.saturating_add(1) } else { 0 };
        self.same = run(self.same, same);
        self.counted = run(self.counted, counted);
        self.small = run(self.small, small);
        let right = match mode {
            IpIdMode::Constant => same,
            IpIdMode::Counted => counted,
            IpIdMode::Lsb => small,
            IpIdMode::Irregular => true,
        };
        self.misses = if right { self.misses.saturating_sub(1) } else { self.misses.saturating_add(MISS) };
        let settled_run = 2 * RUN;
        let better = match mode {
            IpIdMode::Constant | IpIdMode::Counted => None,
            _ if self.same >= settled_run => Some(IpIdMode::Constant),
            _ if self.counted >= settled_run => Some(IpIdMode::Counted),
            IpIdMode::Irregular if self.small >= settled_run => Some(IpIdMode::Lsb),
            IpIdMode::Irregular | IpIdMode::Lsb => None,
        };
        if let Some(better) = better {
            self.misses = 0;
            return better;
        }
        if right || self.misses < TOO_MANY && !unsettled {
            return mode;
        }
        self.misses = 0;
        if counted {
            IpIdMode::Counted
        } else if same {
            IpIdMode::Constant
        } else if small {
            IpIdMode::Lsb
        } else {
            IpIdMode::Irregular
        }
    }
}
