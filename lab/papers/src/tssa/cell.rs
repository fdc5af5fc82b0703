//! One scenario of the paper, and what its runs give.

use core::time::Duration;

use thinair_lab::Streams;
use thinair_lab::csma::{
    AccessFailure, BitErrorRate, Compression, Config, Forwarding, Framing, MacConfig, Outcome, Point,
    Topology, Transfer,
};
use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};
use thinair_segment::{
    Adaptive, AfterFirstLoss, Dmss, DmssConfig, FastStart, Fixed, Measure, Sizer, Tssa, TssaConfig,
};
use thinair_wire::time::Instant;

use crate::compressed::channel;
use crate::paper::Error;
use crate::sweep::Repeated;

/// Sizes of which the best is what others are held against.
pub(super) const SIZES: [u16; 8] = [64, 106, 170, 276, 382, 512, 700, 1_024];

/// Bit error rates of the base set.
pub(super) const RATES: [f64; 9] = [1e-5, 3e-5, 5e-5, 7e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 4e-4];

/// The MSS that is negotiated.
const MSS: u16 = 1_024;

/// When a transfer is given up.
const LIMIT: Duration = Duration::from_secs(6_000);

/// Runs of which sizes are kept.
const TRACED: u32 = 5;

/// When the stepped rate steps up, and down.
pub(super) const STEPS: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(240)];

/// What is looked at: everything that a cell's name says.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) id: String,
    runs: u32,
    transfer: Transfer,
    sizer: Sizer,
}

/// The chain and the TCP of a cell, without its errors and sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) hops: u16,
    pub(super) window: u32,
    pub(super) kib: u64,
    pub(super) sense_range: u8,
    pub(super) access_failure: AccessFailure,
    pub(super) forwarding: Forwarding,
    pub(super) headers: Headers,
}

/// What stands in front of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Headers {
    /// As table I has them, in frames of numbers.
    Paper,
    /// IPv6, in frames of octets, as all that follow.
    Ipv6,
    /// LOWPAN_IPHC.
    Iphc,
    /// ROHC, profile 0x0006, with feedback.
    Rohc,
}

impl Headers {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Paper => "table I",
            Self::Ipv6 => "ipv6",
            Self::Iphc => "6lowpan",
            Self::Rohc => "rohc",
        }
    }

    fn framing(self) -> Result<Framing, Error> {
        Ok(match self {
            Self::Paper => Framing::PAPER,
            Self::Ipv6 => Framing::Rfc4944(Compression::None),
            Self::Iphc => Framing::Rfc4944(Compression::Iphc),
            Self::Rohc => {
                let profiles = ProfileSet::of(&[ProfileId::Tcp])?;
                let channel = channel(profiles, 1, Mode::Optimistic, Refresh::default(), 1)?;
                Framing::Rfc4944(Compression::Rohc(Box::new(channel)))
            }
        })
    }
}

/// What figures 5 to 7 are run with: selected, see “Why different”.
pub(super) const BASE: Setting = Setting {
    name: "base",
    hops: 5,
    window: 1,
    kib: 512,
    sense_range: 2,
    access_failure: AccessFailure::Retry,
    forwarding: Forwarding::Single,
    headers: Headers::Paper,
};

/// Four segments under way.
pub(super) const WINDOW4: Setting = Setting { name: "window-4", window: 4, ..BASE };

/// As the runs of ns-3.
pub(super) const NS3: Setting =
    Setting { name: "ns3", sense_range: 1, forwarding: Forwarding::Reassembled(4), ..BASE };

/// The base set with the octets of real frames, one segment under way, and four.
pub(super) const REAL: [[Setting; 3]; 2] = [
    [
        Setting { name: "ipv6", headers: Headers::Ipv6, ..BASE },
        Setting { name: "6lowpan", headers: Headers::Iphc, ..BASE },
        Setting { name: "rohc", headers: Headers::Rohc, ..BASE },
    ],
    [
        Setting { name: "ipv6-window-4", headers: Headers::Ipv6, ..WINDOW4 },
        Setting { name: "6lowpan-window-4", headers: Headers::Iphc, ..WINDOW4 },
        Setting { name: "rohc-window-4", headers: Headers::Rohc, ..WINDOW4 },
    ],
];

/// Hidden terminals, as figure 2 reads.
pub(super) const HIDDEN: Setting = Setting { name: "cs-1", sense_range: 1, ..BASE };

/// Settings for which nothing was tuned.
pub(super) const ELSEWHERE: [Setting; 4] = [
    Setting { name: "hops-3", hops: 3, ..BASE },
    Setting { name: "hops-7", hops: 7, ..BASE },
    Setting { name: "128-kib", kib: 128, ..BASE },
    HIDDEN,
];

/// What is turned in the base set, one at a time.
pub(super) const TURNED: [Setting; 3] = [
    HIDDEN,
    Setting { name: "reassembled", forwarding: Forwarding::Reassembled(4), ..BASE },
    Setting { name: "access-failure-drops", access_failure: AccessFailure::Drop, ..BASE },
];

/// A control of sizes with its name.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) name: String,
    sizer: Sizer,
    mss: u16,
}

impl Control {
    pub(super) fn fixed(size: u16) -> Self {
        Self { name: size.to_string(), sizer: Fixed::new(size).into(), mss: size }
    }

    pub(super) fn tssa() -> Self {
        Self::turned("tssa", TssaConfig::default())
    }

    pub(super) fn turned(name: &str, config: TssaConfig) -> Self {
        Self { name: name.into(), sizer: Tssa::new(config).into(), mss: MSS }
    }

    pub(super) fn adaptive() -> Self {
        Self { name: "adaptive".into(), sizer: Adaptive::default().into(), mss: MSS }
    }

    pub(super) fn dmss(name: &str, measure: Measure, window: u16, rate: f64) -> Self {
        let mut dmss = Dmss::new(DmssConfig { measure, window, ..DmssConfig::default() });
        let full = super::model::frame_error_rate(rate, 127);
        dmss.set_frame_error_rate((full * 1e6) as u32);
        Self { name: name.into(), sizer: dmss.into(), mss: MSS }
    }

    /// All whose energy is compared at a rate.
    pub(super) fn all(rate: f64) -> Vec<Self> {
        let others = [Self::tssa(), Self::dmss("dmss", Measure::Frames, 100, rate), Self::adaptive()];
        SIZES.map(Self::fixed).into_iter().chain(others).collect()
    }
}

/// What the paper leaves open of TSSA, each turned once.
pub(super) fn ambiguities() -> Vec<(&'static str, Control)> {
    let base = TssaConfig::default();
    let turned = |name, config| (name, Control::turned(name, config));
    vec![
        turned("s-max-3", TssaConfig { s_max: 3, ..base }),
        turned("s-max-5", TssaConfig { s_max: 5, ..base }),
        turned("s-max-20", TssaConfig { s_max: 20, ..base }),
        turned("s-max-50", TssaConfig { s_max: 50, ..base }),
        turned("step-64", TssaConfig { step: 64, ..base }),
        turned("step-212", TssaConfig { step: 212, ..base }),
        turned("start-512", TssaConfig { start: 512, ..base }),
        turned("no-fast-start", TssaConfig { fast_start: FastStart::Off, ..base }),
        turned("first-loss-steps", TssaConfig { after_first_loss: AfterFirstLoss::Step, ..base }),
        turned("first-loss-keeps", TssaConfig { after_first_loss: AfterFirstLoss::Keep, ..base }),
        turned("consecutive-losses", TssaConfig { consecutive: true, ..base }),
        turned("one-loss", TssaConfig { l_max: 1, ..base }),
        turned("timer-counts-twice", TssaConfig { timer_counts_twice: true, ..base }),
    ]
}

/// How a rate is written in ids.
pub(super) fn written(rate: f64) -> String {
    format!("{rate:e}")
}

pub(super) fn id(setting: &Setting, rate: f64, control: &str) -> String {
    format!("{}/{}/{control}", setting.name, written(rate))
}

impl Cell {
    pub(super) fn new(setting: &Setting, rate: f64, control: &Control, runs: u32) -> Result<Self, Error> {
        Ok(Self {
            id: id(setting, rate, &control.name),
            runs,
            transfer: Transfer {
                network: Config {
                    topology: Topology::Chain { hops: setting.hops },
                    mac: MacConfig {
                        sense_range: setting.sense_range,
                        access_failure: setting.access_failure,
                        ..MacConfig::default()
                    },
                    framing: setting.headers.framing()?,
                    forwarding: setting.forwarding,
                    errors: BitErrorRate::constant(rate),
                },
                from: 0,
                to: setting.hops,
                octets: setting.kib * 1_024,
                tcp: Transfer::tcp(control.mss, setting.window),
                limit: LIMIT,
                trace: true,
            },
            sizer: control.sizer.clone(),
        })
    }

    /// A rate of 1e-5 that is 3e-4 for a while.
    pub(super) fn stepped(control: &Control, runs: u32) -> Result<Self, Error> {
        let mut cell = Self::new(&BASE, 1e-5, control, runs)?;
        let [up, down] = STEPS.map(|time| Instant::ZERO + time);
        cell.id = format!("stepped/{}", control.name);
        cell.transfer.network.errors = BitErrorRate::constant(1e-5).then(up, 3e-4).then(down, 1e-5);
        // As long as it takes to see what comes after.
        cell.transfer.octets *= 2;
        Ok(cell)
    }

    /// Less of the file, for quick runs.
    pub(super) fn of_kib(mut self, kib: u64) -> Self {
        self.transfer.octets = kib * 1_024;
        self
    }
}

impl Repeated for Cell {
    type Sample = Sample;

    fn runs(&self) -> u32 {
        self.runs
    }

    fn run(&self, seed: u64, run: u32) -> Result<Sample, Error> {
        let mut sample = Sample::of(self.transfer.run(&mut self.sizer.clone(), Streams::new(seed), run));
        // Sizes are looked at in a few runs only.
        if run >= TRACED {
            sample.sizes = Vec::new();
        }
        Ok(sample)
    }
}

/// A run in figures.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) is_complete: bool,
    /// Joules: of the airtime, with overhearing, with waiting.
    pub(super) energy: f64,
    pub(super) overhearing: f64,
    pub(super) idle: f64,
    /// Seconds.
    pub(super) duration: f64,
    pub(super) mean_size: f64,
    /// Frames with their acknowledgments, and bits, of all nodes.
    pub(super) frames: f64,
    pub(super) bits: f64,
    /// By node.
    pub(super) collisions: Vec<f64>,
    pub(super) sizes: Vec<Point>,
}

impl Sample {
    fn of(outcome: Outcome) -> Self {
        let all = outcome.all();
        Self {
            is_complete: outcome.is_complete,
            energy: outcome.energy.airtime.as_joules(),
            overhearing: outcome.energy.with_overhearing.as_joules(),
            idle: outcome.energy.with_idle.as_joules(),
            duration: outcome.duration.as_secs_f64(),
            mean_size: outcome.mean_size,
            frames: (all.sent + all.acks) as f64,
            bits: all.octets as f64 * 8.0,
            collisions: outcome.nodes.iter().map(|node| node.collisions as f64).collect(),
            sizes: outcome.sizes,
        }
    }
}
