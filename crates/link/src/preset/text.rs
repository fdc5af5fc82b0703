//! Text of a direction, generated from its numbers, so that lists of presets agree with the models.

use core::fmt;
use core::time::Duration;

use crate::airtime::Airtime;
use crate::bit_errors::BitErrorModel;
use crate::framing::Fragmentation;
use crate::loss::LossModel;
use crate::model::{Direction, Discipline};

impl fmt::Display for Airtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no limit of rate"),
            Self::Rate(rate) => match rate.as_bps() {
                bits @ 0..1_000 => write!(f, "{bits} bit/s"),
                bits @ 1_000..1_000_000 => write!(f, "{} kbit/s", Thousandths(bits)),
                bits => write!(f, "{} Mbit/s", Thousandths(bits / 1_000)),
            },
            Self::Ofdm(modem) => {
                write!(
                    f,
                    "OFDM of {} bits in {}",
                    modem.bits,
                    DurationText(Duration::from_nanos(modem.symbol.into()))
                )
            }
            Self::LoRa(modem) => {
                write!(f, "LoRa SF {} at {} kHz", modem.spreading_factor, Thousandths(modem.bandwidth.into()))
            }
        }
    }
}

impl fmt::Display for Direction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.airtime)?;
        if !self.per_frame.is_zero() {
            write!(f, " and {} a frame", DurationText(self.per_frame))?;
        }
        match self.delay {
            Duration::ZERO => f.write_str(", no delay")?,
            delay => write!(f, ", {}", DurationText(delay))?,
        }
        if !self.jitter.deviation.is_zero() {
            write!(f, ", jitter |N(0, {})|", DurationText(self.jitter.deviation))?;
        }
        let spikes = self.jitter.spikes.as_f64();
        if spikes > 0.0 {
            let and = if self.jitter.deviation.is_zero() { ", jitter" } else { " and" };
            write!(f, "{and} exp({}) for {} % of packets", DurationText(self.jitter.spike), Percent(spikes))?;
        }
        if !self.keeps_order {
            f.write_str(", packets may overtake each other")?;
        }
        if self.framing.overhead > 0 {
            write!(f, ", {} octets a frame", self.framing.overhead)?;
        }
        if let Fragmentation::Frames { payload, .. } = self.framing.fragmentation {
            write!(f, ", frames of {payload} octets")?;
        }
        if self.framing.mtu > 0 {
            write!(f, ", at most {} octets", self.framing.mtu)?;
        }
        if let Some(idle) = self.idle_wake {
            write!(f, ", {} to wake after {}", DurationText(idle.wake), DurationText(idle.after))?;
        }
        if let Some(share) = self.duty_cycle {
            write!(f, ", duty cycle {} %", Percent(f64::from(share.per_mille()) / 1e3))?;
        }
        if self.loss != LossModel::None {
            f.write_str(", loss")?;
        }
        if self.bit_errors != BitErrorModel::None {
            f.write_str(", bit errors")?;
        }
        write!(f, ", queue of {} packets", self.queue.packets)?;
        match self.queue.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::CoDel(_) => f.write_str(" with CoDel"),
        }
    }
}

/// A number of thousandths, written without trailing zeros.
struct Thousandths(u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut rest) = (self.0 / 1_000, self.0 % 1_000);
        write!(f, "{whole}")?;
        if rest == 0 {
            return Ok(());
        }
        let mut digits = 3;
        while rest % 10 == 0 {
            (rest, digits) = (rest / 10, digits - 1);
        }
        write!(f, ".{rest:0digits$}")
    }
}

/// A duration in a suitable unit; nanoseconds below a microsecond.
struct DurationText(Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        match nanoseconds {
            0..1_000 => write!(f, "{nanoseconds} ns"),
            1_000..1_000_000 => write!(f, "{} us", Thousandths(nanoseconds)),
            1_000_000..1_000_000_000 => write!(f, "{} ms", Thousandths(nanoseconds / 1_000)),
            _ => write!(f, "{} s", Thousandths(nanoseconds / 1_000_000)),
        }
    }
}

/// A share, to a thousandth of a percent.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Below 10^5, and not below 0.
        Thousandths((self.0 * 1e5 + 0.5) as u64).fmt(f)
    }
}
