//! Size controls of constrained hosts, kept from one stream to the next.

use std::collections::BTreeMap;
use std::net::IpAddr;

use thinair_segment::Sizer;
use thinair_wire::time::Instant;

/// Largest number of hosts.
const HOSTS: usize = 1_024;

/// Size control of a host, and time of its last use.
#[derive(Debug)]
struct HostSizer {
    sizer: Sizer,
    used: Instant,
}

/// Size controls of all hosts.
#[derive(Debug)]
pub(super) struct Sizers {
    fresh: Sizer,
    hosts: BTreeMap<IpAddr, HostSizer>,
}

impl Sizers {
    pub(super) fn new(fresh: Sizer) -> Self {
        Self { fresh, hosts: BTreeMap::new() }
    }

    /// Returns the control of a host. A new one replaces the least recently used.
    pub(super) fn of(&mut self, host: IpAddr, now: Instant) -> &mut Sizer {
        if self.hosts.len() >= HOSTS && !self.hosts.contains_key(&host) {
            let oldest = self.hosts.iter().min_by_key(|(_, host)| host.used).map(|(address, _)| *address);
            oldest.and_then(|oldest| self.hosts.remove(&oldest));
        }
        let fresh = &self.fresh;
        let host = self.hosts.entry(host).or_insert_with(|| HostSizer { sizer: fresh.clone(), used: now });
        host.used = now;
        &mut host.sizer
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use thinair_segment::{LossDetection, SegmentSizer as _, Tssa};

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_host_is_remembered_until_there_are_too_many() {
        let mut sizers = Sizers::new(Tssa::default().into());
        let grown = sizers.of(address(0), Instant::ZERO);
        grown.on_acked(64, None, Instant::ZERO);
        grown.on_lost(LossDetection::Fast, Instant::ZERO);
        let grown = grown.clone();
        assert_ne!(sizers.of(address(1), Instant::from_millis(1)), &grown);
        for number in 1..HOSTS as u32 {
            sizers.of(address(number), Instant::from_millis(1));
        }
        assert_eq!(sizers.of(address(0), Instant::from_millis(2)), &grown);
        sizers.of(address(HOSTS as u32), Instant::from_millis(3));
        assert_eq!(sizers.hosts.len(), HOSTS);
        assert_eq!(sizers.of(address(0), Instant::from_millis(4)), &grown, "another one was forgotten");
    }
}
