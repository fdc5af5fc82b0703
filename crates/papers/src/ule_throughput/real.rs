//! What was measured in real time, between network namespaces: TS packets by the clock over UDP, and the payload that iperf3
//! counts behind the decompressor. Nothing else depends on it.

use super::model::Way;
use crate::paper::Plan;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) payload: u32,
    pub(super) way: Way,
    /// kbit/s of payload.
    pub(super) kbps: f64,
}

/// All measurements; or why there are none.
pub(super) fn measure(plan: &Plan) -> Result<Vec<Measured>, String> {
    if !plan.real_time {
        return Err("a run in real time was not asked for".to_owned());
    }
    Err("there is no run in real time here".to_owned())
}
