//! What the link does.

use thinair_link::{
    BitErrorModel, Duplicate, GilbertElliott, Impairments, Integrity, LossModel, MeanBurst, Probability,
    Reorder,
};

/// Loss rates in percent, and mean lengths of a burst in packets.
pub(super) const RATES: [u32; 5] = [1, 5, 10, 20, 30];
pub(super) const BURSTS: [u32; 4] = [1, 2, 5, 10];

/// In percent: packets that are late, or arrive twice.
const OFTEN: u32 = 10;
/// Places that a packet or its copy is late by, at most.
const FAR: u16 = 8;

/// What the link does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    /// Loses so many percent, in bursts of so many packets on average.
    Loss { rate: u32, burst: u32 },
    /// One in ten is late by up to so many places.
    Reorder { up_to: u16 },
    /// One in ten arrives twice.
    Duplicate,
    /// All of these.
    Mixed,
    /// Bit errors in a million, and whether the link checks frames with a CRC-32.
    BitErrors { ppm: u32, is_checked: bool },
}

impl Condition {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let loss = RATES.into_iter().flat_map(|rate| BURSTS.map(|burst| Self::Loss { rate, burst }));
        let order = [1, 4, FAR].map(|up_to| Self::Reorder { up_to });
        let damage = [100, 1_000]
            .into_iter()
            .flat_map(|ppm| [true, false].map(|is_checked| Self::BitErrors { ppm, is_checked }));
        loss.chain(order).chain([Self::Duplicate, Self::Mixed]).chain(damage)
    }

    /// As in row ids.
    pub(super) fn name(self) -> String {
        match self {
            Self::Loss { rate, burst } => format!("loss/{rate}/{burst}"),
            Self::Reorder { up_to } => format!("late/{up_to}"),
            Self::Duplicate => "twice".to_owned(),
            Self::Mixed => "mixed".to_owned(),
            Self::BitErrors { ppm, is_checked: true } => format!("bit-errors/{ppm}ppm/crc-32"),
            Self::BitErrors { ppm, is_checked: false } => format!("bit-errors/{ppm}ppm/no-crc"),
        }
    }

    /// In words.
    pub(super) fn what(self) -> String {
        match self {
            Self::Loss { rate, burst: 1 } => format!("{rate} % lost"),
            Self::Loss { rate, burst } => format!("{rate} % lost, bursts of {burst}"),
            Self::Reorder { up_to } => format!("late by up to {up_to}"),
            Self::Duplicate => "some arrive twice".to_owned(),
            Self::Mixed => "lost, late, twice".to_owned(),
            Self::BitErrors { ppm, is_checked } => {
                let check = if is_checked { "CRC-32" } else { "no CRC" };
                format!("{} bit errors, {check}", rate(ppm))
            }
        }
    }

    /// In a table: percent lost/mean burst.
    pub(super) fn short(self) -> String {
        match self {
            Self::Loss { rate, burst } => format!("{rate} %/{burst}"),
            Self::Reorder { up_to } => format!("late {up_to}"),
            Self::Duplicate => "twice".to_owned(),
            Self::Mixed => "mixed".to_owned(),
            Self::BitErrors { ppm, is_checked: true } => format!("{} CRC", rate(ppm)),
            Self::BitErrors { ppm, is_checked: false } => format!("{} bare", rate(ppm)),
        }
    }

    /// Loss in percent and mean burst, if it is that and nothing else.
    pub(super) fn loss(self) -> Option<(u32, u32)> {
        match self {
            Self::Loss { rate, burst } => Some((rate, burst)),
            Self::Reorder { .. } | Self::Duplicate | Self::Mixed | Self::BitErrors { .. } => None,
        }
    }

    /// Whether octets may arrive otherwise than they were sent.
    pub(super) fn damages(self) -> bool {
        matches!(self, Self::BitErrors { is_checked: false, .. })
    }

    pub(super) fn impairments(self) -> Impairments<'static> {
        let often = percent(OFTEN);
        let late = |up_to| Reorder { probability: often, up_to };
        let twice = Duplicate { probability: often, up_to: FAR };
        let none = Impairments::default();
        match self {
            Self::Loss { rate, burst } => Impairments { loss: bursts(rate, burst), ..none },
            Self::Reorder { up_to } => Impairments { reorder: late(up_to), ..none },
            Self::Duplicate => Impairments { duplicate: twice, ..none },
            Self::Mixed => Impairments { loss: bursts(10, 5), reorder: late(FAR), duplicate: twice, ..none },
            Self::BitErrors { ppm, is_checked } => Impairments {
                bit_errors: BitErrorModel::Random(Probability::from_ppm(ppm).unwrap_or_default()),
                integrity: if is_checked { Integrity::Crc32 } else { Integrity::None },
                ..none
            },
        }
    }
}

fn rate(ppm: u32) -> &'static str {
    if ppm < 1_000 { "10^-4" } else { "10^-3" }
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
        for (rate, burst) in RATES.into_iter().flat_map(|rate| BURSTS.map(|burst| (rate, burst))) {
            let condition = Condition::Loss { rate, burst };
            let mut link = Link::new(condition.impairments(), 3);
            for _ in 0..100_000 {
                link.offer(&mut [0]);
            }
            let lost = link.counters().lost as f64 / 1_000.0;
            // A hundred thousand packets are as good as 5,000 independent ones if bursts are of 10.
            assert!((lost - f64::from(rate)).abs() < 3.0, "{condition:?}: {lost} %");
        }
    }

    #[test]
    fn there_are_twenty_loss_cells_and_nine_others() {
        let all: Vec<_> = Condition::all().collect();
        assert_eq!(all.iter().filter(|condition| condition.loss().is_some()).count(), 20);
        assert_eq!(all.len(), 29);
    }
}
