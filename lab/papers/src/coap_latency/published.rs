//! Tables 1, 2 and 3 as they are printed.

use super::cell::{Access, Metric};

/// Loss that is added, in percent.
pub(super) const LOSSES: [u32; 3] = [0, 2, 5];

/// Table 1: FCT and C-RTT in ms, RTR in %, at +0, +2 and +5 %.
pub(super) const fn table1(access: Access, cocoa: bool, metric: Metric) -> [f64; 3] {
    match (access, cocoa, metric) {
        (Access::Gprs, false, Metric::Fct) => [10_173.0, 10_868.0, 10_697.0],
        (Access::Gprs, false, Metric::CRtt) => [178.0, 243.0, 332.0],
        (Access::Gprs, false, Metric::Rtr) => [0.0, 2.7, 5.3],
        (Access::Gprs, true, Metric::Fct) => [10_175.0, 10_170.0, 10_176.0],
        (Access::Gprs, true, Metric::CRtt) => [172.0, 182.0, 203.0],
        (Access::Gprs, true, Metric::Rtr) => [7.0, 18.0, 9.0],
        (Access::Wifi, false, Metric::Fct) => [9_988.0, 10_818.0, 10_889.0],
        (Access::Wifi, false, Metric::CRtt) => [18.0, 105.0, 180.0],
        (Access::Wifi, false, Metric::Rtr) => [0.0, 3.3, 6.3],
        (Access::Wifi, true, Metric::Fct) => [10_175.0, 10_170.0, 10_176.0],
        (Access::Wifi, true, Metric::CRtt) => [18.0, 18.0, 18.0],
        (Access::Wifi, true, Metric::Rtr) => [3.5, 5.3, 6.8],
    }
}

/// Half of the last digit that is printed.
pub(super) const fn rounding(metric: Metric) -> f64 {
    match metric {
        Metric::Fct | Metric::CRtt => 0.5,
        Metric::Rtr => 0.05,
    }
}

/// Table 2, with the download: FCT and C-RTT in ms.
pub(super) const fn table2(access: Access, cocoa: bool) -> [f64; 2] {
    match (access, cocoa) {
        (Access::Gprs, false) => [11_270.0, 1_344.0],
        (Access::Gprs, true) => [11_288.0, 1_315.0],
        (Access::Wifi, false) => [9_969.0, 30.9],
        (Access::Wifi, true) => [9_969.0, 25.4],
    }
}

/// Table 2, WiFi without the download, CoCoA: the FCT that table 1 does not have.
pub(super) const WIFI_COCOA_FCT: f64 = 9_985.0;

/// Table 3: C-RTT of CoAP over TCP in ms, at +0, +2 and +5 %.
pub(super) const fn table3(access: Access) -> [f64; 3] {
    match access {
        Access::Gprs => [450.0, 421.0, 454.0],
        Access::Wifi => [18.0, 31.0, 40.0],
    }
}

/// What table 1 says that cannot be had again, and why.
pub(super) const fn not_reproducible(
    access: Access,
    cocoa: bool,
    metric: Metric,
    loss: u32,
) -> Option<&'static str> {
    match (access, cocoa, metric, loss) {
        (Access::Gprs, true, Metric::Rtr, _) => Some("7, 18 and 9 % rise and fall again with the loss"),
        (Access::Wifi, true, Metric::Fct, _) => {
            Some("printed is a copy of the column of GPRS; table 2 has 9,985")
        }
        (Access::Wifi, true, Metric::CRtt, 5) => {
            Some("a loss costs a timeout, and 18 ms have no room for one in 15")
        }
        _ => None,
    }
}
