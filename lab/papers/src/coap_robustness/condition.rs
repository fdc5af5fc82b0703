//! Impairments of the link.

use thinair_link::{
    BitErrorModel, Duplicate, GilbertElliott, Impairments, Integrity, LossModel, MeanBurst, Probability,
    Reorder,
};

use crate::form::Vars;
use crate::paper::PaperError;

/// Share of packets that are late, or that arrive twice, in percent.
const OFTEN: u32 = 10;

/// Impairments of a cell's link: loss in percent and in bursts (`rate`, `burst`), displacement in packets of late
/// packets (`late`) or of copies (`twice`), bit errors in a million (`ppm`), and a link layer CRC (`crc`).
pub(super) fn impairments(cell: &Vars) -> Result<Impairments<'static>, PaperError> {
    let mut impairments = Impairments::default();
    let prefix = if cell.has("rate") { "" } else { "link." };
    let name = |field: &str| format!("{prefix}{field}");
    let has = |field: &str| cell.has(&name(field));
    if has("rate") {
        impairments.loss = bursts(cell.parse(&name("rate"))?, cell.parse(&name("burst"))?);
    }
    if has("late") {
        impairments.reorder = Reorder { probability: percent(OFTEN), up_to: cell.parse(&name("late"))? };
    }
    if has("twice") {
        impairments.duplicate = Duplicate { probability: percent(OFTEN), up_to: cell.parse(&name("twice"))? };
    }
    if has("ppm") {
        let rate = Probability::from_ppm(cell.parse(&name("ppm"))?).unwrap_or_default();
        impairments.bit_errors = BitErrorModel::Random(rate);
        impairments.integrity = if has("crc") { Integrity::Crc32 } else { Integrity::None };
    }
    Ok(impairments)
}

fn percent(percent: u32) -> Probability {
    Probability::from_percent(percent).unwrap_or_default()
}

/// Independent losses if bursts would be shorter than theirs.
fn bursts(rate: u32, burst: u32) -> LossModel<'static> {
    let chain = MeanBurst::from_units(burst).map(|burst| GilbertElliott::bursts(percent(rate), burst));
    match chain {
        Some(Ok(chain)) => LossModel::Bursts(chain),
        Some(Err(_)) | None => LossModel::Random(percent(rate)),
    }
}

#[cfg(test)]
mod tests {
    use thinair_link::Link;

    use super::*;

    #[test]
    fn links_lose_what_their_name_says() {
        for (rate, burst) in
            [1, 5, 10, 20, 30].into_iter().flat_map(|rate| [1, 2, 5, 10].map(|burst| (rate, burst)))
        {
            let mut link = Link::new(Impairments { loss: bursts(rate, burst), ..Impairments::default() }, 3);
            for _ in 0..100_000 {
                link.offer(&mut [0]);
            }
            let lost = link.counters().lost as f64 / 1_000.0;
            // With bursts of 10, a hundred thousand packets are as significant as 5,000 independent ones.
            assert!((lost - f64::from(rate)).abs() < 3.0, "{rate} {burst}: {lost} %");
        }
    }
}
