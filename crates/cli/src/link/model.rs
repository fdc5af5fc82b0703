//! Options that define a link: a preset, and differences from it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use thinair_emulator::{fragmenting, mtu, with_mtu};
use thinair_link::preset::{self, presets};
use thinair_link::{
    Airtime, BitErrorModel, CoDelConfig, Direction, Discipline, Duplex, GilbertElliott, IdleWake, Integrity,
    LinkModel, LossModel, MeanBurst, Probability, Queue, Rate,
};
use thinair_wire::time;

use super::capacity::bitrate;

/// Maximum size of a packet in one frame, in octets: the largest Total Length of IPv4.
const LONGEST: i64 = 65_535;

/// MTU of a link without a limit, in octets: that of Ethernet.
const USUAL_MTU: u32 = 1_500;

/// Properties of a link.
#[derive(Args, Debug)]
pub(super) struct LinkOptions {
    /// Named link (`thinair link presets`); other options override it
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = PossibleValuesParser::new(names()), help_heading = "Link")]
    preset: Option<String>,
    /// Bit rate of both directions in bit/s, such as 250k or 1.5M
    #[arg(long, value_name = "RATE", value_parser = bitrate, help_heading = "Link")]
    rate: Option<u64>,
    /// Bit rate from A to B
    #[arg(long, hide_short_help = true, value_name = "RATE", value_parser = bitrate, help_heading = "Link")]
    rate_ab: Option<u64>,
    /// Bit rate from B to A
    #[arg(long, hide_short_help = true, value_name = "RATE", value_parser = bitrate, help_heading = "Link")]
    rate_ba: Option<u64>,
    /// Propagation delay of both directions, in ms, or with a unit: us, ms, s
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Link")]
    delay: Option<Duration>,
    /// Propagation delay from A to B
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = span, help_heading = "Link")]
    delay_ab: Option<Duration>,
    /// Propagation delay from B to A
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = span, help_heading = "Link")]
    delay_ba: Option<Duration>,
    /// Additional random delay: absolute value of a normal deviate with this standard deviation
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = span, help_heading = "Link")]
    jitter: Option<Duration>,
    /// Queue length of each direction, in packets; further packets are dropped
    #[arg(long, hide_short_help = true, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Link")]
    queue: Option<u32>,
    /// Also drop packets that have waited for too long (CoDel, RFC 8289)
    #[arg(long, hide_short_help = true, help_heading = "Link")]
    codel: bool,
    /// Both directions share one medium; it is idle for TIME before the other side sends [default: 0]
    #[arg(
        long, hide_short_help = true, value_name = "TIME", value_parser = span, num_args = 0..=1, require_equals = true,
        default_missing_value = "0", help_heading = "Link"
    )]
    half_duplex: Option<Duration>,
    /// Delay the first packet after AFTER of silence by WAKE, such as 500ms,400ms
    #[arg(long, hide_short_help = true, value_name = "AFTER,WAKE", value_parser = idle_wake, help_heading = "Link")]
    idle_wake: Option<IdleWake>,
    /// Link layer overhead per frame, in octets
    #[arg(long, hide_short_help = true, value_name = "OCTETS", help_heading = "Link")]
    overhead: Option<u16>,
    /// Maximum size of a packet in one frame, in octets [default: no limit]
    ///
    /// IPv4 packets are fragmented to it, if it is 68 or more; longer IPv6 packets are sent in several
    /// frames, as in RFC 4944.
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(16..=LONGEST), help_heading = "Link")]
    mtu: Option<u16>,
    /// Percentage of frames to drop, 0 to 100
    #[arg(long, value_name = "PCT", value_parser = percentage, help_heading = "Errors")]
    loss: Option<Probability>,
    /// Percentage of frames to drop from A to B
    #[arg(long, hide_short_help = true, value_name = "PCT", value_parser = percentage, help_heading = "Errors")]
    loss_ab: Option<Probability>,
    /// Percentage of frames to drop from B to A
    #[arg(long, hide_short_help = true, value_name = "PCT", value_parser = percentage, help_heading = "Errors")]
    loss_ba: Option<Probability>,
    /// Drop frames in bursts of this mean length (Gilbert model)
    #[arg(long, hide_short_help = true, value_name = "FRAMES", value_parser = burst, help_heading = "Errors")]
    burst: Option<MeanBurst>,
    /// Drop the frames marked 1 in this file of digits 0 and 1, which is repeated
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with_all = ["loss", "loss_ab", "loss_ba", "burst"], help_heading = "Errors")]
    loss_trace: Option<PathBuf>,
    /// Bit error rate, 0 to 1, such as 1e-4
    #[arg(long, hide_short_help = true, value_name = "RATE", value_parser = error_rate, help_heading = "Errors")]
    ber: Option<Probability>,
    /// Deliver frames with bit errors instead of dropping them
    #[arg(long, hide_short_help = true, requires = "ber", help_heading = "Errors")]
    deliver_damaged: bool,
    /// Seed of all random numbers
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 1, help_heading = "Errors")]
    pub(super) seed: u64,
}

/// The link that the options define.
#[derive(Debug)]
pub(super) struct LinkSpec {
    pub(super) preset: Option<String>,
    pub(super) model: LinkModel<'static>,
    /// Maximum size of a packet in one frame, in octets; `None`: no limit.
    pub(super) mtu: Option<u32>,
}

impl LinkOptions {
    /// Returns the link that the options define. The inner error describes contradicting options.
    pub(super) fn asked(&self) -> anyhow::Result<Result<LinkSpec, String>> {
        let preset = self.preset.as_deref().and_then(preset::by_name);
        let mut model = preset.map_or(LinkModel::default(), |preset| preset.model);
        if let Some(turnaround) = self.half_duplex {
            model.duplex = Duplex::Half { turnaround };
        }
        let preset_mtu = preset.map(|preset| u32::from(preset.mtu));
        let trace = self.loss_trace.as_deref().map(trace).transpose()?;
        let ab = (self.rate_ab.or(self.rate), self.delay_ab.or(self.delay), self.loss_ab.or(self.loss));
        let ba = (self.rate_ba.or(self.rate), self.delay_ba.or(self.delay), self.loss_ba.or(self.loss));
        for (direction, own) in [(&mut model.a_to_b, ab), (&mut model.b_to_a, ba)] {
            if let Err(wrong) = self.change(direction, own, trace, preset_mtu) {
                return Ok(Err(wrong));
            }
        }
        let (model, mtu) = match self.mtu {
            Some(octets) => (with_mtu(&model, octets), Some(octets.into())),
            None => (fragmenting(&model), [preset_mtu, mtu(&model)].into_iter().flatten().min()),
        };
        Ok(Ok(LinkSpec { preset: self.preset.clone(), model, mtu }))
    }

    fn change(
        &self,
        direction: &mut Direction<'static>,
        (rate, delay, loss): (Option<u64>, Option<Duration>, Option<Probability>),
        trace: Option<&'static [bool]>,
        preset_mtu: Option<u32>,
    ) -> Result<(), String> {
        if let Some(rate) = rate {
            direction.airtime = Airtime::Rate(Rate::from_bps(rate).ok_or("the minimum rate is 1 bit/s")?);
        }
        direction.delay = delay.unwrap_or(direction.delay);
        direction.jitter.deviation = self.jitter.unwrap_or(direction.jitter.deviation);
        direction.queue = self.queue.map_or(direction.queue, Queue::packets);
        if self.codel {
            let mtu = self.mtu.map(u32::from).or(preset_mtu).unwrap_or(USUAL_MTU);
            direction.queue.discipline = Discipline::CoDel(CoDelConfig::new(mtu));
        }
        direction.idle_wake = self.idle_wake.or(direction.idle_wake);
        direction.framing.overhead = self.overhead.unwrap_or(direction.framing.overhead);
        match (loss, self.burst) {
            (Some(loss), None) => direction.loss = LossModel::Random(loss),
            (Some(loss), Some(burst)) => {
                let bursts = GilbertElliott::bursts(loss, burst).map_err(
                    |_| "--burst is too short for this loss rate: bursts would be longer on average",
                )?;
                direction.loss = LossModel::Bursts(bursts);
            }
            (None, Some(_)) => return Err("--burst needs a loss rate; add --loss PCT".to_owned()),
            (None, None) => {}
        }
        if let Some(trace) = trace {
            direction.loss = LossModel::Pattern(trace);
        }
        if let Some(rate) = self.ber {
            direction.bit_errors = BitErrorModel::Random(rate);
            // A CRC of 64 bits detects all damage.
            direction.integrity =
                if self.deliver_damaged { Integrity::None } else { Integrity::Modelled { width: 64 } };
        }
        Ok(())
    }
}

/// Reads the digits 0 and 1 of a file, once, into memory that is never freed.
fn trace(path: &Path) -> anyhow::Result<&'static [bool]> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let digits = text.chars().filter(|digit| !digit.is_whitespace()).map(|digit| match digit {
        '0' => Ok(false),
        '1' => Ok(true),
        other => anyhow::bail!("{}: expected 0 and 1, not `{other}`", path.display()),
    });
    let digits = digits.collect::<anyhow::Result<Vec<_>>>()?;
    anyhow::ensure!(!digits.is_empty(), "{} contains no digit 0 or 1", path.display());
    Ok(digits.leak())
}

fn names() -> Vec<&'static str> {
    presets().iter().map(|preset| preset.name).collect()
}

/// Parses milliseconds, or a number with a unit.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let span = time::span(text).or_else(|| time::span(&format!("{text}ms")));
    span.filter(|span| *span <= Duration::from_secs(3_600))
        .ok_or_else(|| "expected milliseconds, or a number with us, ms or s; at most 3600s".to_owned())
}

fn idle_wake(text: &str) -> Result<IdleWake, String> {
    let (after, wake) = text.split_once(',').ok_or("expected AFTER,WAKE, as in 500ms,400ms")?;
    Ok(IdleWake { after: span(after)?, wake: span(wake)? })
}

fn percentage(text: &str) -> Result<Probability, String> {
    let percent = text.parse::<f64>().ok().and_then(|percent| Probability::from_f64(percent / 100.0));
    percent.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

fn error_rate(text: &str) -> Result<Probability, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0).and_then(Probability::from_f64);
    rate.ok_or_else(|| "expected a number above 0, and at most 1, as 1e-4".to_owned())
}

fn burst(text: &str) -> Result<MeanBurst, String> {
    let frames = text.parse::<f64>().ok().filter(|frames| (1.0..=1e6).contains(frames));
    let burst = frames.and_then(|frames| MeanBurst::from_thousandths((frames * 1e3).round() as u32));
    burst.ok_or_else(|| "expected a number from 1 to 1000000".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCommand {
        #[command(flatten)]
        link: LinkOptions,
    }

    fn asked(line: &str) -> Result<LinkSpec, String> {
        TestCommand::try_parse_from(std::iter::once("x").chain(line.split_whitespace()))
            .map_err(|error| error.to_string())?
            .link
            .asked()
            .unwrap()
    }

    #[test]
    fn times_are_milliseconds_unless_they_say_otherwise() {
        for (text, micros) in [("20", 20_000), ("8.8ms", 8_800), ("1.5s", 1_500_000), ("7 us", 7), ("0", 0)] {
            assert_eq!(span(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        for wrong in ["", "ms", "-1", "1e9s", "20m", "nan"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_change_a_preset() {
        let asked = asked("--preset zigbee-20k --rate-ba 40k --delay-ab 5 --loss 25 --queue 7").unwrap();
        let zigbee = preset::ZIGBEE_20K.model.a_to_b;
        assert_eq!(asked.mtu, Some(128));
        assert_eq!(asked.model.a_to_b.airtime, zigbee.airtime);
        assert_eq!(asked.model.a_to_b.delay, Duration::from_millis(5));
        assert_eq!(asked.model.b_to_a.airtime, Airtime::Rate(Rate::from_bps(40_000).unwrap()));
        assert_eq!(asked.model.b_to_a.delay, zigbee.delay);
        for direction in [asked.model.a_to_b, asked.model.b_to_a] {
            assert_eq!(direction.loss, LossModel::Random(Probability::from_percent(25).unwrap()));
            assert_eq!(direction.queue, Queue::packets(7));
        }
    }

    #[test]
    fn a_preset_keeps_its_mtu_and_a_link_of_no_preset_has_none() {
        assert_eq!(asked("--preset nb-iot").unwrap().mtu, Some(1_500));
        assert_eq!(asked("--preset zigbee-20k --mtu 80").unwrap().mtu, Some(80));
        let own = asked("--rate 1M --half-duplex=192us --mtu 100").unwrap();
        assert_eq!((own.mtu, own.preset), (Some(100), None));
        assert_eq!(own.model.duplex, Duplex::Half { turnaround: Duration::from_micros(192) });
        assert_eq!(asked("").unwrap().mtu, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "--preset zigbee",
            "--rate 0",
            "--loss 101",
            "--burst 3",
            "--loss 90 --burst 2",
            "--ber 0",
            "--ber 2",
            "--deliver-damaged",
            "--mtu 8",
            "--idle-wake 5",
            "--rohctunnel16 1e-3",
        ] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }
}
