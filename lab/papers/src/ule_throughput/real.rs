//! Measurements in real time, between network namespaces: TS packets by the clock over UDP, and the payload that iperf3
//! counts after the decompressor. Nothing else depends on it.

use super::model::Way;
use crate::paper::Plan;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) payload: u32,
    pub(super) way: Way,
    /// Throughput of payload, in kbit/s.
    pub(super) kbps: f64,
}

/// Maximum number of measurements of a row if the machine was late to send. The highest figure counts.
#[cfg(target_os = "linux")]
const TRIALS: usize = 3;

/// Performs all measurements; the error is the reason that there are none.
pub(super) fn measure(plan: &Plan) -> Result<Vec<Measured>, String> {
    if !plan.real_time {
        return Err("a run in real time was not asked for".to_owned());
    }
    run(plan)
}

#[cfg(target_os = "linux")]
fn run(plan: &Plan) -> Result<Vec<Measured>, String> {
    use super::model::{BITRATE, PAYLOADS};
    use super::simulate::SCHEDULE;
    use thinair_simulation::broadcast::real_time;

    let seconds = if plan.quick { 2 } else { 5 };
    let mut measured = Vec::new();
    for payload in PAYLOADS {
        for way in Way::BOTH {
            let refresh = match way {
                Way::Unc => None,
                Way::Cmp => Some(SCHEDULE),
            };
            let octets = u16::try_from(payload).map_err(|error| error.to_string())?;
            // More than fits: the payload has as many bits as the stream.
            let plan =
                real_time::Plan { bitrate: BITRATE, refresh, payload: octets, offered: BITRATE, seconds };
            let mut kbps: f64 = 0.0;
            for _ in 0..TRIALS {
                let outcome = real_time::run(&plan).map_err(|error| said(&error))?;
                kbps = kbps.max(outcome.throughput / 1e3);
                if outcome.lateness.is_good() {
                    break;
                }
            }
            measured.push(Measured { payload, way, kbps });
        }
    }
    Ok(measured)
}

/// Text of an error with its causes.
#[cfg(target_os = "linux")]
fn said(error: &dyn std::error::Error) -> String {
    let reasons = std::iter::successors(error.source(), |error| error.source());
    reasons.fold(error.to_string(), |said, reason| format!("{said}: {reason}"))
}

#[cfg(not(target_os = "linux"))]
fn run(_: &Plan) -> Result<Vec<Measured>, String> {
    Err("this system has no network namespaces of Linux".to_owned())
}
