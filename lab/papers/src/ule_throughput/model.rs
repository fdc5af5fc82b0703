//! Figures without runs: the paper's equations, exact packing, padding.

use thinair_simulation::ProtocolStack;
use thinair_ule::capacity::{Encapsulation, Filling, HeaderRun, PacketFlow, cost};

/// Bit/s of whole TS packets: the link from USM to SFC.
pub(super) const BITRATE: u64 = 3_507_000;

/// Payloads that the paper measured in section 4.4, in octets.
pub(super) const PAYLOADS: [u32; 8] = [40, 80, 120, 160, 200, 300, 512, 1_024];

/// Plain or compressed headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderForm {
    Unc,
    Cmp,
}

impl HeaderForm {
    pub(super) const BOTH: [Self; 2] = [Self::Unc, Self::Cmp];

    /// Name in row ids.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Unc => "unc",
            Self::Cmp => "cmp",
        }
    }
}

/// Sizes of a stack's headers, plain and compressed by our compressor.
#[derive(Clone, Debug)]
pub(super) struct HeaderSizes {
    unc: [HeaderRun; 1],
    cmp: Vec<HeaderRun>,
}

impl HeaderSizes {
    pub(super) fn new(stack: ProtocolStack, cmp: Vec<HeaderRun>) -> Self {
        Self { unc: [HeaderRun { packets: 1, octets: stack.headers() as u32 }], cmp }
    }

    pub(super) fn of(&self, way: HeaderForm) -> &[HeaderRun] {
        match way {
            HeaderForm::Unc => &self.unc,
            HeaderForm::Cmp => &self.cmp,
        }
    }

    /// Throughput of payload, in kbit/s.
    pub(super) fn kbps(
        &self,
        encapsulation: Encapsulation,
        filling: Filling,
        payload: u32,
        way: HeaderForm,
    ) -> f64 {
        kbps(encapsulation, filling, payload, self.of(way))
    }

    /// Throughput with ULE, without PDU-Concat.
    pub(super) fn ule(&self, filling: Filling, payload: u32, way: HeaderForm) -> f64 {
        self.kbps(Encapsulation::ULE, filling, payload, way)
    }
}

pub(super) fn kbps(
    encapsulation: Encapsulation,
    filling: Filling,
    payload: u32,
    headers: &[HeaderRun],
) -> f64 {
    cost(encapsulation, filling, PacketFlow { payload, headers }).throughput(BITRATE) / 1e3
}

/// Percent by which the second exceeds the first.
pub(super) fn gain(unc: f64, cmp: f64) -> f64 {
    (cmp / unc - 1.0) * 100.0
}

/// TS packets per second: equation 1.
pub(super) fn ts_per_second() -> f64 {
    BITRATE as f64 / 1_504.0
}

/// SNDUs per TS packet at a throughput in kbit/s.
pub(super) fn sndus_per_ts(kbps: f64, payload: u32) -> f64 {
    kbps * 1e3 / f64::from(payload * 8) / ts_per_second()
}
