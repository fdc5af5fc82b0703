//! Measurements in real time, between network namespaces: TS packets by the clock over UDP, and the payload that iperf3
//! counts after the decompressor. Nothing else depends on it.

use super::model::HeaderForm;
use crate::paper::RunPlan;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RealMeasurement {
    pub(super) payload: u32,
    pub(super) way: HeaderForm,
    /// Throughput of payload, in kbit/s.
    pub(super) kbps: f64,
}

/// Maximum number of measurements of a row if the machine was late to send. The highest figure counts.
#[cfg(target_os = "linux")]
const TRIALS: usize = 3;

/// Performs all measurements; the error is the reason that there are none.
pub(super) fn measure(plan: &RunPlan) -> Result<Vec<RealMeasurement>, String> {
    if !plan.real_time {
        return Err("real-time runs were not requested".to_owned());
    }
    run(plan)
}

#[cfg(target_os = "linux")]
fn run(plan: &RunPlan) -> Result<Vec<RealMeasurement>, String> {
    use super::model::{BITRATE, PAYLOADS};
    use super::simulate::SCHEDULE;
    use thinair_simulation::broadcast::real_time;

    let seconds = if plan.quick { 2 } else { 5 };
    let mut measured = Vec::new();
    for payload in PAYLOADS {
        for way in HeaderForm::BOTH {
            let refresh = match way {
                HeaderForm::Unc => None,
                HeaderForm::Cmp => Some(SCHEDULE),
            };
            let octets = u16::try_from(payload).map_err(|error| error.to_string())?;
            // More than fits: the payload has as many bits as the stream.
            let plan = real_time::RealTimePlan {
                bitrate: BITRATE,
                refresh,
                payload: octets,
                offered: BITRATE,
                seconds,
            };
            let mut kbps: f64 = 0.0;
            for _ in 0..TRIALS {
                let outcome = real_time::run(&plan).map_err(|error| with_causes(&error))?;
                kbps = kbps.max(outcome.throughput / 1e3);
                if outcome.lateness.is_good() {
                    break;
                }
            }
            measured.push(RealMeasurement { payload, way, kbps });
        }
    }
    Ok(measured)
}

/// Text of an error with its causes.
#[cfg(target_os = "linux")]
fn with_causes(error: &dyn std::error::Error) -> String {
    let reasons = std::iter::successors(error.source(), |error| error.source());
    reasons.fold(error.to_string(), |text, reason| format!("{text}: {reason}"))
}

#[cfg(not(target_os = "linux"))]
fn run(_: &RunPlan) -> Result<Vec<RealMeasurement>, String> {
    Err("this system has no network namespaces of Linux".to_owned())
}
