//! Refreshes that a compressor sends without being asked. RFC 3095, section 5.3.1.1.2.
//!
//! On sparse traffic the refresh policy decides how much compression saves: a refresh every 16 seconds makes an IR packet
//! of every packet of a sensor that sends one a minute. So the default of U-mode is a budget, [`Refresh::Budget`]:
//!
//! - A refresh is an IR packet: it serves a decompressor that starts late, and one that has lost its context as well. IR-DYN
//!   packets would serve the latter alone, from the same budget.
//! - At the latest, `packets` packets after an IR packet there is the next one. This is what bounds the wait, at any pace.
//! - Before that, a refresh must be paid for. Every octet that is sent adds to a balance, and a refresh takes its header
//!   divided by `share` from it. Once the balance pays for one, and `time` has passed since the last IR packet, it is sent:
//!   dense traffic is refreshed by the clock, and sparse traffic as often as its octets pay for.
//! - At the start of a flow, and after a change of the static or dynamic chain, refreshes come 8, 16, 32 and 64 packets
//!   after the one before. Such a refresh may be sent on credit, one at a time.
//! - What `packets` demands and the balance does not pay for is not owed: a flow of tiny packets pays for one IR header
//!   every `packets` packets, and for no more. The balance keeps two refreshes at most, so that one that has saved for long
//!   does not spend it on every packet when its pace changes.
//!
//! So with `share` s, the headers of refreshes take at most s times the octets sent, and one header every `packets` packets,
//! and one in advance. docs/refresh.md has figures.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::compressor::Compressed;

/// With back-off, the first interval of a new context is this part of the whole one.
const SLOW_START: u32 = 16;

/// The first refresh of a budget comes after so many packets, each further one after twice as many.
const FIRST: u32 = 8;

/// Refreshes at the start of a flow, and after a change, that come early: 8, 16, 32 and 64 packets after the one before.
const EARLY: u8 = 4;

/// Refreshes for which a balance can be saved.
const SAVED: i32 = 2;

/// A share of the octets sent, in steps of 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// The whole.
    const ALL: u16 = 1_000;

    /// A share in permille, 1 to 1,000; `None` for another number.
    pub const fn permille(permille: u16) -> Option<Self> {
        if permille >= 1 && permille <= Self::ALL { Some(Self(permille)) } else { None }
    }

    /// Octets that must be sent for `header` octets to be this share of them.
    fn pays_for(self, header: usize) -> i32 {
        let octets = header.saturating_mul(usize::from(Self::ALL)) / usize::from(self.0.max(1));
        i32::try_from(octets).unwrap_or(i32::MAX)
    }
}

impl FromStr for Share {
    type Err = ParseRefreshError;

    /// Reads a number in percent with at most one decimal: `5%`, `2.5%`.
    fn from_str(text: &str) -> Result<Self, ParseRefreshError> {
        let number = text.strip_suffix('%').ok_or(ParseRefreshError)?;
        let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
        if !is_digits(whole) || !is_digits(tenths) || tenths.len() > 1 {
            return Err(ParseRefreshError);
        }
        let whole: u16 = whole.parse().map_err(|_| ParseRefreshError)?;
        let tenths: u16 = tenths.parse().map_err(|_| ParseRefreshError)?;
        let permille = whole.checked_mul(10).and_then(|whole| whole.checked_add(tenths));
        permille.and_then(Self::permille).ok_or(ParseRefreshError)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => write!(f, "{whole}%"),
            (whole, tenths) => write!(f, "{whole}.{tenths}%"),
        }
    }
}

/// A refresh policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// IR packets that take a share of the octets sent, and come often enough to bound the wait of a decompressor that
    /// starts late.
    Budget {
        /// Largest share of the octets sent that headers of refreshes take, as far as `packets` does not demand more.
        share: Share,
        /// Packets from one IR packet to the next at most, whether the share pays for it or not; `None` sends refreshes
        /// only where the share pays for them.
        packets: Option<u32>,
        /// Least time from an IR packet to a refresh for which the share pays; `None` sends one as soon as it does.
        time: Option<Duration>,
    },
    /// An IR packet whenever `packets` packets or the `time` have passed since the last one, whichever is
    /// first, and an IR-DYN packet half way.
    Periodic {
        /// Packets between two refreshes; `None` does not count packets.
        packets: Option<u32>,
        /// Time between two refreshes; `None` does not look at the clock.
        time: Option<Duration>,
        /// A new context starts at a sixteenth of both, and each refresh doubles them up to the whole (RFC
        /// 2507, section 3.3.1, calls it compression slow-start).
        backoff: bool,
    },
    /// `ir` IR packets, then `so` packets in SO state, then again: the setup of satellite evaluations.
    Cycle {
        /// IR packets in a row.
        ir: u32,
        /// Packets in SO state.
        so: u32,
        /// From IR to SO without packets in FO state in between.
        direct: bool,
    },
    /// Never: feedback asks for refreshes, or nothing does.
    Off,
}

impl Default for Refresh {
    /// `budget=5%,packets=128,time=16`.
    fn default() -> Self {
        Self::Budget { share: Share(50), packets: Some(128), time: Some(Duration::from_secs(16)) }
    }
}

/// A text is no refresh policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseRefreshError;

impl fmt::Display for ParseRefreshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected `budget=PERCENT%[,packets=N][,time=SECONDS]`, `packets=N,time=SECONDS[,backoff]` (either or \
             both), `ir=N,so=N[,direct]`, or `off`",
        )
    }
}

impl core::error::Error for ParseRefreshError {}

impl FromStr for Refresh {
    type Err = ParseRefreshError;

    fn from_str(text: &str) -> Result<Self, ParseRefreshError> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let (mut share, mut packets, mut time, mut ir, mut so) = (None, None, None, None, None);
        let (mut direct, mut backoff) = (false, false);
        for part in text.split(',') {
            let number = |value: &str| value.parse().ok().filter(|n| *n > 0).ok_or(ParseRefreshError);
            match part.split_once('=') {
                Some(("budget", value)) if share.is_none() => share = Some(value.parse()?),
                Some(("packets", value)) if packets.is_none() => packets = Some(number(value)?),
                Some(("time", value)) if time.is_none() => {
                    let seconds = value.parse().ok().filter(|s: &f64| *s > 0.0).ok_or(ParseRefreshError)?;
                    time = Some(Duration::try_from_secs_f64(seconds).map_err(|_| ParseRefreshError)?);
                }
                Some(("ir", value)) if ir.is_none() => ir = Some(number(value)?),
                Some(("so", value)) if so.is_none() => so = Some(number(value)?),
                None if part == "direct" && !direct => direct = true,
                None if part == "backoff" && !backoff => backoff = true,
                _ => return Err(ParseRefreshError),
            }
        }
        match (share, packets, time, ir, so) {
            (Some(share), _, _, None, None) if !backoff && !direct => {
                Ok(Self::Budget { share, packets, time })
            }
            (None, None, None, Some(ir), Some(so)) if !backoff => Ok(Self::Cycle { ir, so, direct }),
            (None, None, None, None, None) => Err(ParseRefreshError),
            (None, _, _, None, None) if !direct => Ok(Self::Periodic { packets, time, backoff }),
            _ => Err(ParseRefreshError),
        }
    }
}

impl fmt::Display for Refresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { share, packets, time } => {
                write!(f, "budget={share}")?;
                if let Some(packets) = packets {
                    write!(f, ",packets={packets}")?;
                }
                time.map_or(Ok(()), |time| write!(f, ",time={}", time.as_secs_f64()))
            }
            Self::Periodic { packets, time, backoff } => {
                let comma = if packets.is_some() && time.is_some() { "," } else { "" };
                if let Some(packets) = packets {
                    write!(f, "packets={packets}")?;
                }
                f.write_str(comma)?;
                if let Some(time) = time {
                    write!(f, "time={}", time.as_secs_f64())?;
                }
                f.write_str(if *backoff { ",backoff" } else { "" })
            }
            Self::Cycle { ir, so, direct } => {
                write!(f, "ir={ir},so={so}{}", if *direct { ",direct" } else { "" })
            }
            Self::Off => f.write_str("off"),
        }
    }
}

/// What is due before a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The dynamic part: FO state.
    Dynamic,
    /// Everything: IR state.
    Everything,
}

/// The clock, the count and the balance of one context.
///
/// **Each packet of the flow goes to [`tick`](Self::tick) before it is compressed and to [`sent`](Self::sent) behind that; one
/// that takes the fast path goes to [`count`](Self::count) alone.**
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    refreshed: Instant,
    /// Nothing is due by the clock before so many milliseconds have passed since, nor before the balance is `price`.
    quiet_ms: u32,
    /// Nothing is due by count before so many packets.
    quiet_packets: u32,
    /// Packets since the last refresh.
    packets: u32,
    /// Octets sent that have paid for no refresh yet. Negative: octets that must be sent to pay for the last one.
    balance: i32,
    /// Balance that pays for a refresh like the last IR packet.
    price: i32,
    /// How often the interval was doubled; with a budget, early refreshes so far.
    doubled: u8,
    /// The IR-DYN packet half way was asked for.
    half_way: bool,
    /// With a budget: the refresh that is due comes by count, and owes nothing.
    is_demanded: bool,
}

impl Timer {
    pub(crate) fn start(now: Instant) -> Self {
        Self {
            refreshed: now,
            quiet_ms: 0,
            quiet_packets: 0,
            packets: 0,
            balance: 0,
            price: i32::MIN,
            doubled: 0,
            half_way: false,
            is_demanded: false,
        }
    }

    /// A packet is about to be sent: what must it refresh?
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant, policy: &Refresh) -> Due {
        let quiet = self.is_quiet(now);
        self.count(0);
        if quiet { Due::Nothing } else { self.look(now, policy) }
    }

    /// Whether nothing is due at the next packet.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let elapsed = now.nanos_since(self.refreshed);
        self.packets < self.quiet_packets
            && (elapsed < u64::from(self.quiet_ms) * 1_000_000 || self.balance < self.price)
    }

    /// A packet of so many octets was sent that refreshed nothing.
    #[inline]
    pub(crate) fn count(&mut self, octets: usize) {
        self.packets = self.packets.saturating_add(1);
        // No packet has as many octets as would change the sign.
        self.balance = self.balance.saturating_add(octets as i32);
    }

    /// A packet was sent that had a [`tick`](Self::tick). `rebuilds`: who has no context has one behind it.
    pub(crate) fn sent(&mut self, now: Instant, done: &Compressed, rebuilds: bool, policy: &Refresh) {
        self.balance = self.balance.saturating_add(done.len as i32);
        let Refresh::Budget { share, packets, .. } = policy else { return };
        if done.refresh {
            let price = share.pays_for(done.header_out);
            let before = self.balance.min(price.saturating_mul(SAVED));
            let after = before.saturating_sub(price);
            self.balance = if self.is_demanded { after.max(before.min(0)) } else { after };
        }
        if rebuilds {
            self.price = share.pays_for(done.header_out);
            self.restart(now);
            self.is_demanded = false;
            self.doubled = if done.refresh { self.doubled.saturating_add(1) } else { 0 };
            self.quiet_packets = self.early().min(packets.unwrap_or(u32::MAX));
        }
    }

    /// The static or the dynamic chain has changed.
    pub(crate) fn changed(&mut self) {
        // Before the first look there is nothing that could come earlier, and without a budget nothing does.
        if self.price != i32::MIN {
            self.doubled = 0;
            self.quiet_packets = self.quiet_packets.min(self.packets.saturating_add(FIRST));
        }
    }

    /// Everything was just sent for another reason, or the policy is another one now.
    pub(crate) fn restart(&mut self, now: Instant) {
        let Self { doubled, balance, price, .. } = *self;
        *self = Self { packets: 1, doubled, balance, price, ..Self::start(now) };
    }

    /// Packets from an IR packet to an early refresh; `u32::MAX` if there were all of them.
    fn early(&self) -> u32 {
        if self.doubled < EARLY { FIRST << self.doubled } else { u32::MAX }
    }

    /// Looks at the policy, and notes when to look again.
    fn look(&mut self, now: Instant, policy: &Refresh) -> Due {
        match *policy {
            Refresh::Off => {
                (self.quiet_packets, self.quiet_ms) = (u32::MAX, u32::MAX);
                Due::Nothing
            }
            Refresh::Budget { packets, time, .. } => {
                if self.price == i32::MIN {
                    // No IR packet was sent yet.
                    return Due::Nothing;
                }
                let most = packets.unwrap_or(u32::MAX);
                let time = time.unwrap_or_default();
                let is_counted = self.packets > self.quiet_packets;
                let is_paid = self.balance >= self.price;
                self.is_demanded = self.packets > most && !is_paid;
                let by_clock = is_paid && now.since(self.refreshed) >= time;
                if self.packets > most || is_counted && self.balance >= 0 || by_clock {
                    return Due::Everything;
                }
                if is_counted {
                    self.doubled = self.doubled.saturating_add(1);
                    self.quiet_packets = self.packets.saturating_add(self.early()).min(most);
                }
                self.quiet_ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
                Due::Nothing
            }
            Refresh::Cycle { ir, so, .. } => {
                self.price = i32::MIN;
                (self.quiet_packets, self.quiet_ms) = (ir.saturating_add(so), u32::MAX);
                if self.packets > self.quiet_packets {
                    self.restart(now);
                    return Due::Everything;
                }
                Due::Nothing
            }
            Refresh::Periodic { packets, time, backoff } => {
                self.price = i32::MIN;
                let part = if backoff { (SLOW_START >> self.doubled.min(31)).max(1) } else { 1 };
                // A policy of fewer packets than the slow start has steps begins with every packet.
                let packets = |share: u32| packets.map_or(u32::MAX, |all| (all / part / share).max(1));
                let time = |share: u32| time.map_or(Duration::MAX, |all| all / part / share);
                let elapsed = now.since(self.refreshed);
                if self.packets > packets(1) || elapsed >= time(1) {
                    self.restart(now);
                    self.doubled = self.doubled.saturating_add(1);
                    return Due::Everything;
                }
                if !self.half_way && (self.packets > packets(2) || elapsed >= time(2)) {
                    self.half_way = true;
                    return Due::Dynamic;
                }
                let share = if self.half_way { 1 } else { 2 };
                let quiet = u32::try_from(time(share).as_millis()).unwrap_or(u32::MAX);
                (self.quiet_packets, self.quiet_ms) = (packets(share), quiet);
                Due::Nothing
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cid::Cid;
    use crate::profile::{Format, ProfileId};
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn policies_are_read_and_told() {
        for text in [
            "off",
            "packets=1700",
            "time=0.5",
            "packets=400,time=10,backoff",
            "ir=3,so=50,direct",
            "ir=1,so=9",
            "budget=5%",
            "budget=0.1%,packets=64",
            "budget=2.5%,time=0.5",
            "budget=100%,packets=1,time=3600",
        ] {
            assert_eq!(text.parse::<Refresh>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "on",
            "packets=0",
            "time=-1",
            "ir=3",
            "direct",
            "backoff",
            "ir=1,so=1,backoff",
            "packets=1,ir=1,so=1",
            "packets=1,packets=2",
            "budget=5",
            "budget=0%",
            "budget=0.05%",
            "budget=100.1%",
            "budget=99999999%",
            "budget=+5%",
            "budget=%",
            "budget=5%,budget=5%",
            "budget=5%,backoff",
            "budget=5%,direct",
            "budget=5%,ir=1,so=1",
            "budget=5%,packets=0",
        ] {
            assert!(text.parse::<Refresh>().is_err(), "{text}");
        }
    }

    #[test]
    fn intervals_double_up_to_the_whole_one() {
        let policy = Refresh::Periodic { packets: Some(32), time: None, backoff: true };
        let mut timer = Timer::start(Instant::ZERO);
        let due: Vec<_> =
            (0..130).filter(|_| timer.tick(Instant::ZERO, &policy) == Due::Everything).collect();
        assert_eq!(due, [2, 6, 14, 30, 62, 94, 126]);
    }

    #[test]
    fn time_counts_from_the_last_refresh() {
        let policy = Refresh::Periodic { packets: None, time: Some(Duration::from_secs(16)), backoff: true };
        let mut timer = Timer::start(Instant::ZERO);
        let at = |timer: &mut Timer, ms| timer.tick(Instant::from_millis(ms), &policy);
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
        let mut timer = Timer::start(Instant::ZERO);
        let due: Vec<_> = (0..20).filter(|_| timer.tick(Instant::ZERO, &policy) == Due::Everything).collect();
        assert_eq!(due, [8, 16]);
    }

    /// A flow whose packets are all alike: an IR header of 60 octets, any other one of 3.
    struct Flow {
        timer: Timer,
        policy: Refresh,
        now: u64,
        sent: usize,
        refreshes: usize,
    }

    impl Flow {
        fn new(policy: &str) -> Self {
            let timer = Timer::start(Instant::ZERO);
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

        /// A packet so many milliseconds later; returns whether it is a refresh.
        fn packet(&mut self, gap: u64, payload: usize) -> bool {
            self.now += gap;
            let now = Instant::from_millis(self.now);
            if self.timer.is_quiet(now) {
                self.timer.count(3 + payload);
                self.sent += 3 + payload;
                return false;
            }
            let refresh = self.timer.tick(now, &self.policy) == Due::Everything;
            self.send(payload, refresh, refresh);
            refresh
        }

        /// The packets that are refreshes, among so many.
        fn refreshes(&mut self, packets: usize, gap: u64, payload: usize) -> Vec<usize> {
            (1..=packets).filter(|_| self.packet(gap, payload)).collect()
        }
    }

    #[test]
    fn a_budget_of_small_packets_goes_by_count_behind_one_early_refresh() {
        for gap in [1, 1_000, 600_000] {
            let mut flow = Flow::new("budget=5%,packets=128,time=16");
            assert_eq!(flow.refreshes(400, gap, 0), [8, 136, 264, 392], "{gap} ms");
        }
    }

    #[test]
    fn a_budget_of_large_packets_goes_by_the_clock_behind_early_refreshes() {
        let mut flow = Flow::new("budget=5%,packets=1000,time=16");
        assert_eq!(flow.refreshes(900, 100, 500), [8, 24, 56, 120, 280, 440, 600, 760]);
    }

    #[test]
    fn a_budget_of_sparse_packets_goes_by_what_they_pay_for() {
        let mut flow = Flow::new("budget=5%,time=16");
        let due = flow.refreshes(300, 60_000, 97);
        // A packet of 100 octets adds 100, and a refresh takes 20 times 60.
        let steps: Vec<_> = due.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(steps[1..].iter().all(|step| (11..=12).contains(step)), "{due:?}");
    }

    #[test]
    fn a_change_is_refreshed_early_and_only_on_one_credit() {
        let mut flow = Flow::new("budget=5%,packets=128,time=16");
        assert_eq!(flow.refreshes(30, 1_000, 22), [8]);
        flow.timer.changed();
        // The first refresh is not paid for yet.
        assert_eq!(flow.refreshes(12, 1_000, 22), []);
        let mut flow = Flow::new("budget=5%,packets=128,time=3600");
        flow.refreshes(800, 1_000, 22);
        let before = flow.timer.packets;
        assert!(before < 100 && flow.timer.balance >= 0, "{before}, {}", flow.timer.balance);
        flow.timer.changed();
        // The packet that says the change, and 8 more.
        assert_eq!(flow.refreshes(9, 1_000, 22), [9]);
    }

    #[test]
    fn savings_of_a_dense_flow_are_not_spent_when_it_gets_sparse() {
        let mut flow = Flow::new("budget=5%,time=16");
        flow.refreshes(100_000, 1, 1_000);
        assert!(flow.refreshes(100, 60_000, 0).len() <= 3);
    }

    #[test]
    fn another_policy_takes_over_from_a_budget() {
        let mut flow = Flow::new("budget=5%,packets=128,time=16");
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
            let mut flow = Flow::new(&alloc::format!("budget={percent}%,time=1"));
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
            let mut flow = Flow::new(&alloc::format!("budget=0.1%,packets={most}"));
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
