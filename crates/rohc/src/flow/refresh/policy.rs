//! Refresh policies, and their notation in options of commands.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A share of the octets sent, in steps of 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// The whole, in permille.
    const ALL: u16 = 1_000;

    /// Creates a share in permille, 1 to 1,000; `None` for another number.
    pub const fn permille(permille: u16) -> Option<Self> {
        if permille >= 1 && permille <= Self::ALL { Some(Self(permille)) } else { None }
    }

    /// Number of octets that must be sent for `header` octets to be this share of them.
    pub(super) fn pays_for(self, header: usize) -> i32 {
        let octets = header.saturating_mul(usize::from(Self::ALL)) / usize::from(self.0.max(1));
        i32::try_from(octets).unwrap_or(i32::MAX)
    }
}

impl FromStr for Share {
    type Err = ParseRefreshError;

    /// Parses a number in percent with at most one decimal: `5%`, `2.5%`.
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
    /// IR packets that take a share of the octets sent, and are frequent enough to bound the wait of a decompressor that starts
    /// late.
    Budget {
        /// Largest share of the octets sent that headers of refreshes take, unless `packets` demands more.
        share: Share,
        /// Largest number of packets from one IR packet to the next, whether the share pays for it or not, if they take longer
        /// than `time`. `None` sends refreshes only where the share pays for them.
        packets: Option<u32>,
        /// Minimum time from one IR packet to the next; `None` has no minimum.
        time: Option<Duration>,
    },
    /// An IR packet whenever `packets` packets or the `time` have passed since the last one, whichever is
    /// first, and an IR-DYN packet half way.
    Periodic {
        /// Packets between two refreshes; `None` counts no packets.
        packets: Option<u32>,
        /// Time between two refreshes; `None` uses no clock.
        time: Option<Duration>,
        /// A new context starts at a sixteenth of both, and each refresh doubles them up to the whole (RFC
        /// 2507, section 3.3.1, calls it compression slow-start).
        backoff: bool,
    },
    /// `ir` IR packets, then `so` packets in SO state, repeated: the setup of satellite evaluations.
    Cycle {
        /// Number of IR packets in a row.
        ir: u32,
        /// Number of packets in SO state.
        so: u32,
        /// Change from IR to SO without packets in FO state in between.
        direct: bool,
    },
    /// No refreshes, except on feedback.
    Off,
}

impl Default for Refresh {
    /// `budget=5%,packets=128,time=16`.
    fn default() -> Self {
        Self::Budget { share: Share(50), packets: Some(128), time: Some(Duration::from_secs(16)) }
    }
}

impl Refresh {
    /// Number of IR packets in a row: that of a cycle, or `otherwise`.
    pub(crate) fn ir_packets(&self, otherwise: u8) -> u8 {
        match self {
            Self::Cycle { ir, .. } => u8::try_from(*ir).unwrap_or(u8::MAX),
            Self::Budget { .. } | Self::Periodic { .. } | Self::Off => otherwise,
        }
    }
}

/// Error in the text of a refresh policy.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use alloc::string::ToString;

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
}
