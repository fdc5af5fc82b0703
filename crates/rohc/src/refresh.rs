//! When a compressor refreshes a context by itself. RFC 3095, section 5.3.1.1.2.
//!
//! On sparse traffic the refresh policy decides what compression saves, so it is chosen, not hidden.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thinair_wire::time::Instant;

/// With back-off, the first interval of a new context is this part of the whole one.
const SLOW_START: u32 = 16;

/// A refresh policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
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
    /// 1,024 packets or 16 seconds, with back-off.
    fn default() -> Self {
        Self::Periodic { packets: Some(1_024), time: Some(Duration::from_secs(16)), backoff: true }
    }
}

/// A text is no refresh policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseRefreshError;

impl fmt::Display for ParseRefreshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected `packets=N,time=SECONDS[,backoff]` (either or both), `ir=N,so=N[,direct]`, or `off`",
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
        let (mut packets, mut time, mut ir, mut so) = (None, None, None, None);
        let (mut direct, mut backoff) = (false, false);
        for part in text.split(',') {
            let number = |value: &str| value.parse().ok().filter(|n| *n > 0).ok_or(ParseRefreshError);
            match part.split_once('=') {
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
        match (packets, time, ir, so) {
            (None, None, Some(ir), Some(so)) if !backoff => Ok(Self::Cycle { ir, so, direct }),
            (None, None, None, None) => Err(ParseRefreshError),
            (_, _, None, None) if !direct => Ok(Self::Periodic { packets, time, backoff }),
            _ => Err(ParseRefreshError),
        }
    }
}

impl fmt::Display for Refresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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

/// The clock of one context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    refreshed: Instant,
    /// Nothing is due before so many milliseconds have passed since, nor before so many packets.
    quiet_ms: u32,
    quiet_packets: u32,
    /// Packets since the last refresh.
    packets: u32,
    /// How often the interval was doubled.
    doubled: u8,
    /// The IR-DYN packet half way was asked for.
    half_way: bool,
}

impl Timer {
    pub(crate) fn start(now: Instant) -> Self {
        Self { refreshed: now, quiet_ms: 0, quiet_packets: 0, packets: 0, doubled: 0, half_way: false }
    }

    /// A packet is about to be sent: what must it refresh?
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant, policy: &Refresh) -> Due {
        let quiet = self.is_quiet(now);
        self.count();
        if quiet { Due::Nothing } else { self.look(now, policy) }
    }

    /// Whether nothing is due at the next packet.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let elapsed = now.nanos_since(self.refreshed);
        self.packets < self.quiet_packets && elapsed < u64::from(self.quiet_ms) * 1_000_000
    }

    /// A packet was sent that refreshed nothing.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// Everything was just sent for another reason, or the policy is another one now.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { packets: 1, doubled: self.doubled, ..Self::start(now) };
    }

    /// Looks at the policy, and notes when to look again.
    fn look(&mut self, now: Instant, policy: &Refresh) -> Due {
        match *policy {
            Refresh::Off => {
                (self.quiet_packets, self.quiet_ms) = (u32::MAX, u32::MAX);
                Due::Nothing
            }
            Refresh::Cycle { ir, so, .. } => {
                (self.quiet_packets, self.quiet_ms) = (ir.saturating_add(so), u32::MAX);
                if self.packets > self.quiet_packets {
                    self.restart(now);
                    return Due::Everything;
                }
                Due::Nothing
            }
            Refresh::Periodic { packets, time, backoff } => {
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
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn policies_are_read_and_told() {
        for text in [
            "off",
            "packets=1700",
            "time=0.5",
            "packets=400,time=10,backoff",
            "ir=3,so=50,direct",
            "ir=1,so=9",
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
}
