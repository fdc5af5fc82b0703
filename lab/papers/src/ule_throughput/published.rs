//! What others have found: the paper's measurements, its model worked elsewhere, and another program that filled TS packets
//! by the rules of RFC 4326.

/// Octets of payload that the paper has measured, in section 4.4.
pub(super) const PAYLOADS: [u32; 8] = [40, 80, 120, 160, 200, 300, 512, 1_024];

/// Bit/s of whole TS packets: the link from USM to SFC.
pub(super) const BITRATE: u64 = 3_507_000;

/// Octets of the headers of an IR packet and of one in SO state, and how many of each follow on each other.
pub(super) const IR: (f64, f64) = (50.0, 3.0);
pub(super) const SO: (f64, f64) = (3.0, 50.0);

/// Plain, compressed: kbit/s; and percent more by compression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Three {
    pub(super) unc: f64,
    pub(super) cmp: f64,
    pub(super) gain: f64,
}

const fn three(unc: f64, cmp: f64, gain: f64) -> Three {
    Three { unc, cmp, gain }
}

/// Equations 3, 4, 6 and 7, in the order of [`PAYLOADS`].
const MODEL: [Three; 8] = [
    three(1_430.16, 2_558.60, 78.90),
    three(2_019.05, 2_931.77, 45.21),
    three(2_340.26, 3_081.59, 31.68),
    three(2_542.51, 3_162.39, 24.38),
    three(2_681.55, 3_212.93, 19.82),
    three(2_892.46, 3_282.90, 13.50),
    three(3_093.98, 3_343.19, 8.05),
    three(3_254.41, 3_387.20, 4.08),
];

/// TS packets filled by the rules of RFC 4326, section 6.2, with 200,000 SNDUs.
const PACKING: [Three; 8] = [
    three(1_422.39, 2_544.65, 78.90),
    three(2_007.88, 2_911.43, 45.00),
    three(2_327.46, 3_064.52, 31.67),
    three(2_530.49, 3_145.19, 24.29),
    three(2_670.95, 3_197.67, 19.72),
    three(2_884.23, 3_272.37, 13.46),
    three(3_088.34, 3_336.71, 8.04),
    three(3_251.40, 3_383.87, 4.07),
];

/// In padding mode.
const PADDING: [Three; 8] = [
    three(746.2, 746.2, 0.0),
    three(1_492.3, 1_492.3, 0.0),
    three(2_238.5, 2_238.5, 0.0),
    three(1_492.3, 2_824.8, 89.3),
    three(1_865.4, 1_865.4, 0.0),
    three(2_798.1, 2_798.1, 0.0),
    three(2_387.7, 3_124.7, 30.9),
    three(3_183.7, 3_183.7, 0.0),
];

/// Most throughput with PDU-Concat of 8 PDUs in O-mode, by equations: kbit/s.
pub(super) const CONCAT: [(u32, f64); 3] = [(40, 2_969.0), (80, 3_184.0), (160, 3_303.0)];

/// What the paper tells of its measurements in numbers: payload, plain, compressed. Section 5.
const MEASURED: [(u32, f64, f64); 3] = [(40, 746.0, 828.0), (80, 1_547.0, 1_656.0), (120, 2_238.0, 2_315.0)];

fn of(table: [Three; 8], payload: u32) -> Option<Three> {
    PAYLOADS.iter().position(|other| *other == payload).and_then(|at| table.get(at).copied())
}

pub(super) fn model(payload: u32) -> Option<Three> {
    of(MODEL, payload)
}

pub(super) fn packing(payload: u32) -> Option<Three> {
    of(PACKING, payload)
}

pub(super) fn padding(payload: u32) -> Option<Three> {
    of(PADDING, payload)
}

/// The paper's measurement.
pub(super) fn measured(payload: u32) -> Option<Three> {
    let (_, unc, cmp) = MEASURED.into_iter().find(|(other, ..)| *other == payload)?;
    Some(Three { unc, cmp, gain: (cmp / unc - 1.0) * 100.0 })
}

/// Octets of IR headers that rohc-lib sends for a stack, checksums on; 1 in SO state, and the checksum. Read from the packets
/// that it is tested with.
pub(super) fn rohc_lib_ir(stack: &str) -> Option<u32> {
    Some(match stack {
        "ipv4/udp" | "ipv4/udp0" => 27,
        "ipv6/udp/rtp" => 63,
        "ipv4/udp/rtp" | "ipv4/udp0/rtp" => 39,
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_those_of_their_columns() {
        for table in [MODEL, PACKING, PADDING] {
            for Three { unc, cmp, gain } in table {
                assert!(((cmp / unc - 1.0) * 100.0 - gain).abs() < 0.04, "{unc} {cmp} {gain}");
            }
        }
    }

    #[test]
    fn the_paper_gains_what_its_text_says() {
        assert!((measured(40).unwrap().gain - 11.0).abs() < 0.05);
        // "2.2 %" are points of the link of 3,500 kbit/s.
        let Three { unc, cmp, gain } = measured(120).unwrap();
        assert!((gain - 3.4).abs() < 0.05 && ((cmp - unc) / 35.0 - 2.2).abs() < 0.01);
        assert_eq!(measured(160), None);
    }
}
