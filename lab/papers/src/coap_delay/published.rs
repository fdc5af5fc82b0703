//! What others have published: tables I and II of the paper, and rohc-lib on the same messages.

use thinair_rohc::ProfileId;

use super::exchange::{Case, Half, ROWS, Type};
use super::instructions::Side;

/// A row of tables I and II.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// Packet size, feedback included.
    pub(super) octets: f64,
    /// Octets that ours may take: the size without the feedback and without the Add-CID octet of responses.
    pub(super) most: f64,
    /// Milliseconds to compress, to decompress, and in total. Table I.
    pub(super) laptop: [f64; 3],
    /// Table II.
    pub(super) raspberry_pi: [f64; 3],
}

/// In the order of [`ROWS`].
const PUBLISHED: [Published; 12] = [
    published(38.0, 38.0, [0.322, 0.365, 0.687], [1.506, 1.618, 2.976]),
    published(58.0, 52.0, [0.215, 0.283, 0.498], [1.837, 1.009, 2.846]),
    published(44.0, 38.0, [0.248, 0.265, 0.512], [0.703, 0.803, 1.627]),
    published(53.0, 52.0, [0.143, 0.217, 0.360], [0.603, 0.723, 1.326]),
    published(38.0, 38.0, [0.175, 0.235, 0.409], [0.578, 0.688, 1.266]),
    published(53.0, 52.0, [0.143, 0.228, 0.371], [0.511, 0.811, 1.321]),
    published(15.0, 15.0, [0.148, 0.191, 0.339], [0.507, 0.616, 1.124]),
    published(31.0, 30.0, [0.130, 0.167, 0.297], [0.476, 0.611, 1.087]),
    published(6.0, 6.0, [0.172, 0.211, 0.384], [0.545, 0.617, 1.162]),
    published(22.0, 21.0, [0.112, 0.164, 0.276], [0.428, 0.584, 1.012]),
    published(5.0, 5.0, [0.139, 0.145, 0.254], [0.397, 0.427, 0.824]),
    published(21.0, 20.0, [0.101, 0.138, 0.216], [0.370, 0.469, 0.838]),
];

const fn published(octets: f64, most: f64, laptop: [f64; 3], raspberry_pi: [f64; 3]) -> Published {
    Published { octets, most, laptop, raspberry_pi }
}

/// What the paper states of a packet type.
pub(super) fn of(kind: Type, half: Half) -> Option<Published> {
    let at = ROWS.iter().position(|row| *row == (kind, half))?;
    PUBLISHED.get(at).copied()
}

/// The ROHC state, as the paper names it.
pub(super) fn state(kind: Type) -> &'static str {
    match kind {
        Type::Ir1 | Type::Ir2 | Type::Ir3 => "IR",
        Type::IrDyn | Type::Uor2 => "FO",
        Type::Uo0 => "SO",
    }
}

/// The packet type, as the paper names it.
pub(super) fn label(kind: Type, half: Half) -> String {
    let kind = match kind {
        Type::Ir1 | Type::Ir2 | Type::Ir3 => "IR",
        Type::IrDyn => "IR-DYN",
        Type::Uor2 => "UOR-2",
        Type::Uo0 => "UO-0",
    };
    let half = match half {
        Half::Get => "GET",
        Half::Response => "RESP",
    };
    format!("{kind}/{half}")
}

/// Least and most nanoseconds that rohc-lib (master 70589cc2, UDP profile) takes to compress and to decompress, GET
/// and response alike. Measured elsewhere.
pub(super) fn rohc_lib(kind: Type) -> Option<[(f64, f64); 2]> {
    Some(match kind {
        Type::Ir1 => [(1_140.0, 4_900.0), (1_240.0, 6_200.0)],
        Type::Ir2 | Type::Ir3 => [(270.0, 310.0), (190.0, 210.0)],
        Type::IrDyn => [(250.0, 260.0), (170.0, 180.0)],
        Type::Uor2 => [(250.0, 280.0), (170.0, 170.0)],
        Type::Uo0 => [(240.0, 240.0), (160.0, 160.0)],
    })
}

/// Instructions of rohc-lib (master 70589cc2) for a packet of a UDP/IPv4 flow in steady state, x86-64, callgrind.
/// Measured elsewhere.
pub(super) fn rohc_lib_instructions(case: Case, side: Side) -> Option<f64> {
    let is_there = case.kind == Type::Uo0 && case.profile == ProfileId::Udp;
    is_there.then_some(match side {
        Side::Compress => 3_894.0,
        Side::Decompress => 2_224.0,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_that_the_paper_prints_sums_or_not() {
        let differs: Vec<_> = ROWS
            .iter()
            .filter(|(kind, half)| {
                let row = of(*kind, *half).unwrap();
                [row.laptop, row.raspberry_pi].iter().any(|[a, b, total]| (a + b - total).abs() > 0.0015)
            })
            .map(|(kind, half)| label(*kind, *half))
            .collect();
        // IR/GET twice and UO-0: anything else would be a figure that was copied wrongly.
        assert_eq!(differs, ["IR/GET", "IR/GET", "UO-0/GET", "UO-0/RESP"]);
    }
}
