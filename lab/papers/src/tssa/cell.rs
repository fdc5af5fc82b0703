//! One scenario of the paper, and the figures of its runs.

use core::time::Duration;

use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};
use thinair_segment::{
    Adaptive, AfterFirstLoss, Dmss, DmssConfig, FastStart, Fixed, Measure, Sizer, Tssa, TssaConfig,
};
use thinair_simulation::RandomStreams;
use thinair_simulation::csma::{
    AccessFailure, BitErrorRate, CsmaConfig, CsmaFraming, Forwarding, FrameCompression, MacConfig, Point,
    Topology, Transfer, TransferOutcome,
};
use thinair_wire::time::Instant;

use crate::compressed::channel;
use crate::form::Vars;
use crate::paper::PaperError;

/// MSS that is negotiated.
const MSS: u16 = 1_024;

/// Time after which a transfer is given up.
const LIMIT: Duration = Duration::from_secs(6_000);

/// Number of runs with a trace of sizes.
const TRACED: u32 = 5;

/// Times at which the stepped rate rises and falls.
const STEPS: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(240)];

/// Size of a file in a quick run, in KiB.
const QUICK_KIB: u64 = 32;

/// Chain and file of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) hops: u16,
    pub(super) kib: u64,
}

impl Setting {
    /// Setting of figures 5 to 7, unless the cell has another one: selected, see "Why different".
    pub(super) fn read(cell: &Vars) -> Result<Self, PaperError> {
        Ok(Self { hops: number(cell, "setting.hops", 5)?, kib: number(cell, "setting.kib", 512)? })
    }
}

fn number<T: std::str::FromStr>(cell: &Vars, name: &str, otherwise: T) -> Result<T, PaperError> {
    if cell.has(name) { cell.parse(name) } else { Ok(otherwise) }
}

/// Framing with the numbers of table I, or with our octets.
fn framing(headers: Option<&str>) -> Result<CsmaFraming, PaperError> {
    Ok(match headers {
        None => CsmaFraming::PAPER,
        Some("ipv6") => CsmaFraming::Rfc4944(FrameCompression::None),
        Some("6lowpan") => CsmaFraming::Rfc4944(FrameCompression::Iphc),
        // Profile 0x0006, with feedback.
        Some(_) => {
            let profiles = ProfileSet::of(&[ProfileId::Tcp])?;
            let channel = channel(profiles, 1, Mode::Optimistic, Refresh::default(), 1)?;
            CsmaFraming::Rfc4944(FrameCompression::Rohc(Box::new(channel)))
        }
    })
}

/// Control of sizes, and the MSS that is negotiated with it.
fn control(name: &str, rate: f64) -> Result<(Sizer, u16), PaperError> {
    if let Ok(size) = name.parse() {
        return Ok((Fixed::new(size).into(), size));
    }
    let base = TssaConfig::default();
    let tssa = |config| Tssa::new(config).into();
    let dmss = |measure, window| {
        let mut dmss = Dmss::new(DmssConfig { measure, window, ..DmssConfig::default() });
        let full = super::model::frame_error_rate(rate, 127);
        dmss.set_frame_error_rate((full * 1e6) as u32);
        dmss.into()
    };
    let sizer = match name {
        "adaptive" => Adaptive::default().into(),
        "dmss" => dmss(Measure::Frames, 100),
        "dmss-frames-20" => dmss(Measure::Frames, 20),
        "dmss-frames-500" => dmss(Measure::Frames, 500),
        "dmss-told" => dmss(Measure::Given, 0),
        "dmss-segments" => dmss(Measure::Segments, 50),
        "tssa" => tssa(base),
        // Parameters of TSSA that the paper does not define, varied one by one.
        "s-max-3" => tssa(TssaConfig { s_max: 3, ..base }),
        "s-max-5" => tssa(TssaConfig { s_max: 5, ..base }),
        "s-max-20" => tssa(TssaConfig { s_max: 20, ..base }),
        "s-max-50" => tssa(TssaConfig { s_max: 50, ..base }),
        "step-64" => tssa(TssaConfig { step: 64, ..base }),
        "step-212" => tssa(TssaConfig { step: 212, ..base }),
        "start-512" => tssa(TssaConfig { start: 512, ..base }),
        "no-fast-start" => tssa(TssaConfig { fast_start: FastStart::Off, ..base }),
        "first-loss-steps" => tssa(TssaConfig { after_first_loss: AfterFirstLoss::Step, ..base }),
        "first-loss-keeps" => tssa(TssaConfig { after_first_loss: AfterFirstLoss::Keep, ..base }),
        "consecutive-losses" => tssa(TssaConfig { consecutive: true, ..base }),
        "one-loss" => tssa(TssaConfig { l_max: 1, ..base }),
        "timer-counts-twice" => tssa(TssaConfig { timer_counts_twice: true, ..base }),
        other => return Err(PaperError::Form(format!("unknown control {other}"))),
    };
    Ok((sizer, MSS))
}

/// Runs a cell.
pub(super) fn run(cell: &Vars, is_quick: bool, seed: u64, run: u32) -> Result<TransferSample, PaperError> {
    let Setting { hops, kib } = Setting::read(cell)?;
    let rate = cell.parse("rate")?;
    let (mut sizer, mss) = control(cell.text("control")?, rate)?;
    let kib = if is_quick && !cell.has("whole") { QUICK_KIB } else { kib };
    let mut errors = BitErrorRate::constant(rate);
    // Two files, so that the time after the steps is covered.
    let files = if cell.has("steps") { 2 } else { 1 };
    if cell.has("steps") {
        let [up, down] = STEPS.map(|time| Instant::ZERO + time);
        errors = errors.then(up, 3e-4).then(down, rate);
    }
    let drops = cell.has("setting.drops");
    let transfer = Transfer {
        network: CsmaConfig {
            topology: Topology::Chain { hops },
            mac: MacConfig {
                sense_range: number(cell, "setting.sense", 2)?,
                access_failure: if drops { AccessFailure::Drop } else { AccessFailure::Retry },
                ..MacConfig::default()
            },
            framing: framing(cell.opt("setting.headers"))?,
            forwarding: match cell.opt("setting.reassembled") {
                Some(_) => Forwarding::Reassembled(cell.parse("setting.reassembled")?),
                None => Forwarding::Single,
            },
            errors,
        },
        from: 0,
        to: hops,
        octets: kib * 1_024 * files,
        tcp: Transfer::tcp(mss, number(cell, "setting.window", 1)?),
        limit: LIMIT,
        trace: true,
    };
    let mut sample = TransferSample::of(transfer.run(&mut sizer, RandomStreams::new(seed), run));
    // Only a few runs keep their trace of sizes.
    if run >= TRACED {
        sample.sizes = Vec::new();
    }
    Ok(sample)
}

/// Figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TransferSample {
    pub(super) is_complete: bool,
    /// Joules: airtime, with overhearing, with waiting.
    pub(super) energy: f64,
    pub(super) overhearing: f64,
    pub(super) idle: f64,
    /// Duration in seconds.
    pub(super) duration: f64,
    pub(super) mean_size: f64,
    /// Frames with their acknowledgments, and bits, of all nodes.
    pub(super) frames: f64,
    pub(super) bits: f64,
    /// Collisions by node.
    pub(super) collisions: Vec<f64>,
    pub(super) sizes: Vec<Point>,
}

impl TransferSample {
    fn of(outcome: TransferOutcome) -> Self {
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
