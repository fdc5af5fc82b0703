//! Refreshes that a compressor sends without a request. RFC 3095, section 5.3.1.1.2.
//!
//! On sparse traffic the refresh policy decides how much compression saves: a refresh every 16 seconds makes an IR packet
//! of every packet of a sensor that sends one a minute. So the default of U-mode is a budget, [`Refresh::Budget`]:
//!
//! - A refresh is an IR packet: it serves a decompressor that starts late, and one that has lost its context as well. Half way
//!   there is an IR-DYN packet, which serves only the latter, if the balance (below) already pays for an IR packet: in dense
//!   traffic.
//! - Once `packets` packets and `time` have passed since an IR packet, there is the next one. This bounds the wait at any
//!   pace: by the clock where traffic is dense, by packets where it is sparse.
//! - A refresh that comes before that many packets must be paid for, and still `time` must have passed. Every octet that is
//!   sent adds to a balance, and a refresh takes its header divided by `share` from it.
//! - At the start of a flow, and after a change of the static or dynamic chain, both bounds are a sixteenth, and each refresh
//!   doubles them. Such a refresh may be sent on credit, one at a time. Another change before the bounds are whole again
//!   does not make them smaller.
//! - What `packets` demands and the balance does not pay for is not owed: a flow of tiny packets pays for one IR header every
//!   `packets` packets, and for no more. The balance holds at most two refreshes, so that a flow that has saved for long does not
//!   spend it on every packet when its pace changes.
//!
//! With `share` s, the headers of refreshes therefore take at most s times the octets sent, plus one header every `packets`
//! packets, plus one in advance. Figures are in docs/refresh.md.

mod policy;

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::compressor::Compressed;
pub use policy::{ParseRefreshError, Refresh, Share};

/// Number of early refreshes at the start of a flow with back-off or a budget, and after a change. Each doubles the bounds, from a
/// sixteenth on.
const EARLY: u8 = 4;

/// Number of packets after which a refresh that could not be sent on credit is considered again.
const AGAIN: u32 = 8;

/// Largest number of refreshes in a balance.
const SAVED: i32 = 2;

/// Refresh that is due before a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The dynamic part: FO state.
    Dynamic,
    /// Static and dynamic part: IR state.
    Everything,
}

/// Time, packets and balance since the last refresh of one context.
///
/// **Call [`tick`](Self::tick) before each packet of the flow is compressed and [`sent`](Self::sent) after that; for a regular
/// packet (`rfc3095/regular.rs`) call [`count`](Self::count) alone.**
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefreshTimer {
    /// Time before which nothing is due by the clock; with a budget, nothing at all. In stage [`Stage::Started`], the time of the
    /// last refresh.
    quiet_until: Instant,
    /// Number of packets before which nothing is due by count.
    quiet_packets: u32,
    /// Number of packets since the last refresh.
    packets: u32,
    /// Octets that must still be sent until the balance of a budget pays for the next refresh; 0 or less if it does.
    missing: i32,
    /// Octets of the header of the last IR packet; 0 before the first.
    header: u16,
    /// Number of times that the interval was doubled; with a budget, number of early refreshes so far.
    doubled: u8,
    stage: Stage,
}

/// Position between two refreshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The policy has not been evaluated since the last refresh.
    Started,
    /// [`Refresh::Periodic`]: the policy has been evaluated.
    Waiting,
    /// [`Refresh::Periodic`]: the IR-DYN packet half way was requested.
    HalfWay,
    /// [`Refresh::Budget`]: the first half of the time is not over.
    Saving,
    /// [`Refresh::Budget`]: the first half of the time is over, and the IR-DYN packet was requested, or cannot be paid for.
    Saved,
    /// [`Refresh::Budget`]: the static or the dynamic chain has changed since the last evaluation.
    Changed,
    /// [`Refresh::Budget`]: the refresh that is due is demanded by the number of packets, and not charged.
    Demanded,
}

impl RefreshTimer {
    pub(crate) fn start(now: Instant) -> Self {
        Self {
            quiet_until: now,
            quiet_packets: 0,
            packets: 0,
            missing: 0,
            header: 0,
            doubled: 0,
            stage: Stage::Started,
        }
    }

    /// Returns the refresh that the next packet has to carry.
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant, policy: &Refresh) -> Due {
        let quiet = self.is_quiet(now);
        self.count(0);
        if quiet { Due::Nothing } else { self.look(now, policy) }
    }

    /// True if no refresh is due at the next packet.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let is_soon = now < self.quiet_until;
        let is_few = self.packets < self.quiet_packets;
        match self.stage {
            Stage::Started | Stage::Waiting | Stage::HalfWay => is_soon && is_few,
            Stage::Changed => false,
            Stage::Saving | Stage::Saved | Stage::Demanded => is_soon || is_few && self.missing > 0,
        }
    }

    /// Counts a packet of that many octets that refreshed nothing.
    #[inline]
    pub(crate) fn count(&mut self, octets: usize) {
        self.packets = self.packets.saturating_add(1);
        // A packet has too few octets to change the sign.
        self.missing = self.missing.saturating_sub(octets as i32);
    }

    /// Records a packet after its [`tick`](Self::tick). `rebuilds` is true if a decompressor without a context has one after it.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, done: &Compressed, rebuilds: bool, policy: &Refresh) {
        self.missing = self.missing.saturating_sub(done.len as i32);
        if rebuilds || done.refresh {
            self.refreshed(now, done, rebuilds, policy);
        }
    }

    /// Records a packet that refreshed the dynamic part, or everything.
    #[cold]
    fn refreshed(&mut self, now: Instant, done: &Compressed, rebuilds: bool, policy: &Refresh) {
        let header = self.header;
        if rebuilds {
            self.header = u16::try_from(done.header_out).unwrap_or(u16::MAX);
        }
        let Refresh::Budget { share, packets, time } = *policy else { return };
        let mut balance = share.pays_for(header.into()).saturating_sub(self.missing);
        if done.refresh {
            let price = share.pays_for(done.header_out);
            let before = balance.min(price.saturating_mul(SAVED));
            let after = before.saturating_sub(price);
            balance = if self.stage == Stage::Demanded { after.max(before.min(0)) } else { after };
        }
        if rebuilds {
            self.doubled = if done.refresh { self.doubled.saturating_add(1) } else { 0 };
            self.packets = 1;
            self.save(now, packets, time);
        }
        self.missing = share.pays_for(self.header.into()).saturating_sub(balance);
    }

    /// Records a change of the static or the dynamic chain.
    pub(crate) fn changed(&mut self) {
        // A flow that changes all the time does not restart each time.
        if matches!(self.stage, Stage::Saving | Stage::Saved) && self.doubled >= EARLY {
            self.stage = Stage::Changed;
        }
    }

    /// Restarts after everything was sent for another reason, or the policy was replaced.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { packets: 1, doubled: self.doubled, header: self.header, ..Self::start(now) };
    }

    /// Number of times that the bounds are still halved.
    fn halved(&self) -> u32 {
        EARLY.saturating_sub(self.doubled).into()
    }

    /// Sets the earliest time and packet of the next refresh of a budget.
    fn save(&mut self, now: Instant, packets: Option<u32>, time: Option<Duration>) {
        self.stage = Stage::Saving;
        let most = packets.map_or(u32::MAX, |packets| (packets >> self.halved()).max(1));
        self.quiet_packets = (self.packets - 1).saturating_add(most);
        self.quiet_until = later(now, nanos(time.unwrap_or_default()) >> self.halved() >> 1);
    }

    /// Evaluates the policy, and sets the next evaluation.
    fn look(&mut self, now: Instant, policy: &Refresh) -> Due {
        match *policy {
            Refresh::Off => {
                (self.quiet_packets, self.quiet_until) = (u32::MAX, LAST);
                Due::Nothing
            }
            Refresh::Budget { share, packets, time } => self.look_at_budget(now, share, packets, time),
            Refresh::Cycle { ir, so, .. } => {
                self.missing = 0;
                (self.quiet_packets, self.quiet_until) = (ir.saturating_add(so), LAST);
                if self.packets > self.quiet_packets {
                    self.restart(now);
                    return Due::Everything;
                }
                Due::Nothing
            }
            Refresh::Periodic { packets, time, backoff } => {
                self.missing = 0;
                let halved = if backoff { self.halved() } else { 0 };
                // A policy of fewer packets than the slow start has steps begins with every packet.
                let packets = |halved: u32| packets.map_or(u32::MAX, |all| (all >> halved).max(1));
                let time = |halved: u32| time.map_or(u64::MAX, |all| nanos(all) >> halved);
                let (packets, half_packets) = (packets(halved), packets(halved + 1));
                let (time, half_time) = (time(halved), time(halved + 1));
                if !matches!(self.stage, Stage::Waiting | Stage::HalfWay) {
                    self.stage = Stage::Waiting;
                    (self.quiet_packets, self.quiet_until) =
                        (half_packets, later(self.quiet_until, half_time));
                }
                let whole = match self.stage {
                    Stage::HalfWay => self.quiet_until,
                    _ => later(self.quiet_until, time - half_time),
                };
                if self.packets > packets || now >= whole {
                    self.restart(now);
                    self.doubled = self.doubled.saturating_add(1);
                    return Due::Everything;
                }
                if self.stage != Stage::HalfWay && (self.packets > half_packets || now >= self.quiet_until) {
                    self.stage = Stage::HalfWay;
                    (self.quiet_packets, self.quiet_until) = (packets, whole);
                    return Due::Dynamic;
                }
                Due::Nothing
            }
        }
    }

    /// Evaluates a budget.
    fn look_at_budget(
        &mut self,
        now: Instant,
        share: Share,
        packets: Option<u32>,
        time: Option<Duration>,
    ) -> Due {
        if self.header == 0 {
            // No IR packet was sent yet.
            return Due::Nothing;
        }
        match self.stage {
            Stage::Saving | Stage::Saved | Stage::Demanded => {}
            Stage::Changed => {
                let quiet_packets = self.quiet_packets;
                self.doubled = 0;
                self.save(now, packets, time);
                self.quiet_packets = self.quiet_packets.min(quiet_packets);
            }
            Stage::Started | Stage::Waiting | Stage::HalfWay => {
                self.save(now, packets, time);
                self.missing = share.pays_for(self.header.into());
            }
        }
        if now < self.quiet_until {
            return Due::Nothing;
        }
        if self.stage == Stage::Saving {
            let whole = nanos(time.unwrap_or_default()) >> self.halved();
            self.stage = Stage::Saved;
            self.quiet_until = later(self.quiet_until, whole - (whole >> 1));
            if now < self.quiet_until {
                return if self.missing <= 0 { Due::Dynamic } else { Due::Nothing };
            }
        }
        if self.missing <= 0 {
            return Due::Everything;
        }
        if self.packets <= self.quiet_packets {
            return Due::Nothing;
        }
        let most = packets.unwrap_or(u32::MAX);
        if self.packets > most {
            self.stage = Stage::Demanded;
            return Due::Everything;
        }
        if self.missing <= share.pays_for(self.header.into()) {
            return Due::Everything;
        }
        self.quiet_packets = self.packets.saturating_add(AGAIN).min(most);
        Due::Nothing
    }
}

/// Largest time.
const LAST: Instant = Instant::from_nanos(u64::MAX);

/// Returns a time after another one, at most [`LAST`].
fn later(time: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(time.as_nanos().saturating_add(nanos))
}

/// Nanoseconds of a span of time, at most those of a clock.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cid::Cid;
    use crate::id::{Format, ProfileId};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn intervals_double_up_to_the_whole_one() {
        let policy = Refresh::Periodic { packets: Some(32), time: None, backoff: true };
        let mut timer = RefreshTimer::start(Instant::ZERO);
        let due: Vec<_> =
            (0..130).filter(|_| timer.tick(Instant::ZERO, &policy) == Due::Everything).collect();
        assert_eq!(due, [2, 6, 14, 30, 62, 94, 126]);
    }

    #[test]
    fn time_counts_from_the_last_refresh() {
        let policy = Refresh::Periodic { packets: None, time: Some(Duration::from_secs(16)), backoff: true };
        let mut timer = RefreshTimer::start(Instant::ZERO);
        let at = |timer: &mut RefreshTimer, ms| timer.tick(Instant::from_millis(ms), &policy);
        assert_eq!(at(&mut timer, 499), Due::Nothing);
        assert_eq!(at(&mut timer, 500), Due::Dynamic);
        assert_eq!(at(&mut timer, 999), Due::Nothing);
        assert_eq!(at(&mut timer, 1_000), Due::Everything);
        assert_eq!(at(&mut timer, 1_999), Due::Nothing);
        assert_eq!(at(&mut timer, 3_000), Due::Everything);
    }

    #[test]
    fn a_cycle_repeats_itself() {
        let policy = Refresh::Cycle { ir: 3, so: 5, direct: true };
        let mut timer = RefreshTimer::start(Instant::ZERO);
        let due: Vec<_> = (0..20).filter(|_| timer.tick(Instant::ZERO, &policy) == Due::Everything).collect();
        assert_eq!(due, [8, 16]);
    }

    /// A flow of equal packets: an IR header has 60 octets, any other header 3.
    struct UniformFlow {
        timer: RefreshTimer,
        policy: Refresh,
        now: u64,
        sent: usize,
        refreshes: usize,
    }

    impl UniformFlow {
        fn new(policy: &str) -> Self {
            let timer = RefreshTimer::start(Instant::ZERO);
            let mut flow = Self { timer, policy: policy.parse().unwrap(), now: 0, sent: 0, refreshes: 0 };
            flow.send(0, true, false);
            flow
        }

        fn send(&mut self, payload: usize, is_ir: bool, refresh: bool) {
            let header_out = if is_ir { 60 } else { 3 };
            let len = header_out + payload;
            let (cid, profile, format) = (Cid::ZERO, ProfileId::Udp, Format::Ir);
            let done = Compressed { cid, profile, format, header_in: 48, header_out, len, refresh };
            self.timer.sent(Instant::from_millis(self.now), &done, is_ir, &self.policy);
            self.sent += len;
            self.refreshes += if refresh { header_out } else { 0 };
        }

        /// Sends a packet `gap` milliseconds later; returns true if it is a refresh.
        fn packet(&mut self, gap: u64, payload: usize) -> bool {
            self.now += gap;
            let now = Instant::from_millis(self.now);
            if self.timer.is_quiet(now) {
                self.timer.count(3 + payload);
                self.sent += 3 + payload;
                return false;
            }
            let due = self.timer.tick(now, &self.policy);
            self.send(payload, due == Due::Everything, due != Due::Nothing);
            due == Due::Everything
        }

        /// Returns the indices of the refreshes among that many packets.
        fn refreshes(&mut self, packets: usize, gap: u64, payload: usize) -> Vec<usize> {
            (1..=packets).filter(|_| self.packet(gap, payload)).collect()
        }
    }

    #[test]
    fn a_budget_of_small_packets_goes_by_count_behind_one_early_refresh() {
        for gap in [1_000, 15_000, 600_000] {
            let mut flow = UniformFlow::new("budget=5%,packets=128,time=16");
            assert_eq!(flow.refreshes(300, gap, 0), [8, 136, 264], "{gap} ms");
        }
    }

    #[test]
    fn a_budget_of_dense_packets_goes_by_the_clock() {
        let mut flow = UniformFlow::new("budget=5%,packets=128,time=16");
        // After 1, 2, 4, 8 and 16 s.
        assert_eq!(flow.refreshes(4_000, 20, 100), [50, 150, 350, 750, 1_550, 2_350, 3_150, 3_950]);
    }

    #[test]
    fn a_budget_of_sparse_packets_goes_by_what_they_pay_for() {
        let mut flow = UniformFlow::new("budget=5%,packets=128,time=16");
        let due = flow.refreshes(300, 60_000, 97);
        // A packet of 100 octets adds 100, and a refresh takes 20 times 60.
        let steps: Vec<_> = due.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(due[0] == 8 && steps[3..].iter().all(|step| (11..=12).contains(step)), "{due:?}");
    }

    #[test]
    fn a_change_is_refreshed_early_and_only_on_one_credit() {
        let mut flow = UniformFlow::new("budget=5%,packets=128,time=16");
        assert_eq!(flow.refreshes(30, 1_000, 22), [8]);
        flow.timer.changed();
        // The balance does not pay for the first refresh yet.
        assert!(flow.refreshes(12, 1_000, 22).is_empty());
        // A flow without changes for a long time, whose last refresh is paid for, but not the next one.
        let mut flow = UniformFlow::new("budget=5%,packets=128,time=16");
        let is_calm = |timer: &RefreshTimer| timer.doubled >= EARLY && timer.packets > 4;
        while !is_calm(&flow.timer) || !(400..1_200).contains(&flow.timer.missing) {
            flow.packet(1_000, 22);
        }
        flow.timer.changed();
        // The packet with the change, and 8 more.
        assert_eq!(flow.refreshes(16, 1_000, 0), [9]);
    }

    #[test]
    fn savings_of_a_dense_flow_are_not_spent_when_it_gets_sparse() {
        let mut flow = UniformFlow::new("budget=5%,time=16");
        flow.refreshes(100_000, 1, 1_000);
        assert!(flow.refreshes(100, 60_000, 0).len() <= 3);
    }

    #[test]
    fn another_policy_takes_over_from_a_budget() {
        let mut flow = UniformFlow::new("budget=5%,packets=128,time=16");
        flow.refreshes(20, 1_000, 0);
        flow.policy = "time=16".parse().unwrap();
        flow.timer.restart(Instant::from_millis(flow.now));
        assert_eq!(flow.refreshes(40, 1_000, 0), [16, 32]);
    }

    proptest! {
        #[test]
        fn refreshes_take_their_share_and_one_in_advance(
            percent in 1_usize..=100,
            packets in proptest::collection::vec((0_u64..40_000, 0_usize..400, 0_u8..20), 1..600),
        ) {
            let mut flow = UniformFlow::new(&alloc::format!("budget={percent}%,time=1"));
            for (gap, payload, change) in packets {
                if change == 0 {
                    flow.timer.changed();
                }
                flow.packet(gap, payload);
                prop_assert!(flow.refreshes * 100 <= flow.sent * percent + 60 * 100);
            }
        }

        #[test]
        fn no_more_packets_than_demanded_pass_without_a_refresh(
            most in 1_u32..200,
            packets in proptest::collection::vec((0_u64..40_000, 0_usize..100, 0_u8..20), 1..600),
        ) {
            let mut flow = UniformFlow::new(&alloc::format!("budget=0.1%,packets={most}"));
            let mut since = 0;
            for (gap, payload, change) in packets {
                if change == 0 {
                    flow.timer.changed();
                }
                since = if flow.packet(gap, payload) { 0 } else { since + 1 };
                prop_assert!(since < most);
            }
        }
    }
}
