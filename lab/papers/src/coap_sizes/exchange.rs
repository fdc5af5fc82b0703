//! The paper's exchange, and every size and percentage that it states for it.

use std::collections::BTreeMap;

use thinair_rohc::{Format, Instant, ProfileId, ProfileSet, Refresh};

use crate::form::{Figures, PaperRun};
use crate::pair::{EndPair, PairEnd, PairSettings};
use crate::paper::PaperError;
use crate::traffic::{CoapFlow, TrafficKind, TrafficPacket, TrafficVersion};

/// Exchanges of a run.
const EXCHANGES: u64 = 200;
/// Loss that exceeds every window, so that the decompressor requests a refresh.
const LOST: std::ops::Range<u64> = 100..140;
/// Packets between two refreshes in U-mode.
const REFRESH: u32 = 32;
/// Milliseconds between two packets.
const PACE: u64 = 1_000;
/// Size of the smallest CoAP message: no token, no options.
const LEAST_COAP: f64 = 4.0;

/// Half of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    Get,
    Response,
}

impl Half {
    const fn kind(self) -> TrafficKind {
        match self {
            Self::Get => TrafficKind::A,
            Self::Response => TrafficKind::B,
        }
    }

    const fn end(self) -> PairEnd {
        match self {
            Self::Get => PairEnd::Client,
            Self::Response => PairEnd::Server,
        }
    }
}

/// Profile of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PaperProfile {
    Coap2015,
    Udp,
    Ip,
}

impl PaperProfile {
    /// Name in row ids.
    const fn name(self) -> &'static str {
        match self {
            Self::Coap2015 => thinair_coap_2015::NAME,
            Self::Udp => ProfileId::Udp.name(),
            Self::Ip => ProfileId::Ip.name(),
        }
    }

    fn settings(self, seed: u64) -> Result<PairSettings, PaperError> {
        Ok(match self {
            Self::Coap2015 => PairSettings::coap_2015(seed)?,
            Self::Udp => PairSettings::new(None, seed)?,
            Self::Ip => {
                PairSettings { profiles: ProfileSet::of(&[ProfileId::Ip])?, ..PairSettings::new(None, seed)? }
            }
        })
    }
}

pub(super) fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    for profile in [PaperProfile::Coap2015, PaperProfile::Udp, PaperProfile::Ip] {
        for version in TrafficVersion::ALL {
            let seen = both_halves(profile, version, run.plan.seed)?;
            for (half, seen) in ["get", "rsp"].into_iter().zip(&seen) {
                let of = format!("paper/{}/{half}/{}/", version.name(), profile.name());
                for packets in ["ir", "ir-feedback", "ir-dyn", "uor-2", "uo-0"] {
                    let (id, octets) = (format!("{of}{packets}"), seen.octets(packets));
                    let saved = octets.map(|octets| 100.0 * (1.0 - octets / seen.plain as f64));
                    for (id, figure) in [(format!("{id}/saved"), saved), (id, octets)] {
                        if run.published.get(&id).is_some() {
                            figures.put(id, figure);
                        }
                    }
                }
            }
        }
    }
    // Octets that the CoAP profile leaves of a GET's CoAP header: its packets beside those of the UDP profile, which
    // leaves all of it.
    let [coap, udp] = [PaperProfile::Coap2015, PaperProfile::Udp].map(|profile| {
        both_halves(profile, TrafficVersion::V4, run.plan.seed)
            .map(|[get, _]| (get.plain, get.octets("uo-0")))
    });
    let ((plain, coap), (_, udp)) = (coap?, udp?);
    let whole = (plain - 28) as f64;
    let left = coap.zip(udp).map(|(coap, udp)| whole - (udp - coap));
    for (header, whole) in [("get", whole), ("least", LEAST_COAP)] {
        let saved = left.map(|left| 100.0 * (1.0 - left / whole));
        figures.put(format!("paper/coap-header/{header}/saved"), saved);
    }
    Ok(())
}

/// Sizes of one half's packets.
#[derive(Clone, Debug, Default)]
struct HalfSizes {
    plain: usize,
    first: Option<usize>,
    feedback: usize,
    /// Smallest packet of each format.
    smallest: BTreeMap<Format, usize>,
    /// Smallest packet directly after an IR-DYN.
    behind_ir_dyn: Option<usize>,
}

impl HalfSizes {
    /// Octets of a packet of that kind. The packet after an IR-DYN may stand in for UOR-2.
    fn octets(&self, packets: &str) -> Option<f64> {
        let smallest = |format| self.smallest.get(&format).copied();
        let octets = match packets {
            "ir" => self.first,
            // Preceded by the largest feedback of the run.
            "ir-feedback" => self.first.map(|first| first + self.feedback),
            "ir-dyn" => smallest(Format::IrDyn),
            "uor-2" => smallest(Format::Uor2).or(self.behind_ir_dyn),
            _ => smallest(Format::Uo0),
        };
        octets.map(|octets| octets as f64)
    }
}

/// Both halves of the exchange by one profile, in O-mode and in U-mode.
fn both_halves(
    profile: PaperProfile,
    version: TrafficVersion,
    seed: u64,
) -> Result<[HalfSizes; 2], PaperError> {
    let mut seen = [HalfSizes::default(), HalfSizes::default()];
    let settings = profile.settings(seed)?;
    let refresh = Refresh::Periodic { packets: Some(REFRESH), time: None, backoff: false };
    exchange(&settings.optimistic(), version, seed, &mut seen)?;
    exchange(&PairSettings { refresh: Some(refresh), ..settings }, version, seed, &mut seen)?;
    Ok(seen)
}

fn exchange(
    settings: &PairSettings,
    version: TrafficVersion,
    seed: u64,
    seen: &mut [HalfSizes; 2],
) -> Result<(), PaperError> {
    let mut pair = EndPair::new(settings)?;
    // Equal seeds give equal hosts and Message IDs.
    let mut flows = [Half::Get, Half::Response].map(|half| (half, CoapFlow::new(half.kind(), version, seed)));
    let mut is_behind_ir_dyn = [false; 2];
    let mut packet = TrafficPacket::default();
    for number in 0..EXCHANGES {
        let now = Instant::from_millis(number * PACE);
        for (half, flow) in &mut flows {
            flow.next(&mut packet);
            let trip = if LOST.contains(&number) {
                pair.lose(now, half.end(), &packet.octets)?
            } else {
                pair.carry(now, half.end(), &packet.octets)?
            };
            let (seen, is_behind) = (&mut seen[*half as usize], &mut is_behind_ir_dyn[*half as usize]);
            let (len, format) = (trip.compressed.len, trip.compressed.format);
            seen.plain = packet.octets.len();
            seen.first.get_or_insert(len);
            seen.feedback = seen.feedback.max(trip.feedback);
            let smallest = seen.smallest.entry(format).or_insert(len);
            *smallest = len.min(*smallest);
            if *is_behind && !format.is_initialization() {
                seen.behind_ir_dyn = Some(seen.behind_ir_dyn.map_or(len, |smallest| smallest.min(len)));
            }
            *is_behind = format == Format::IrDyn;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::form::Published;

    /// Figures of the paper: version, half, profile, packets, octets, and saving in percent.
    fn stated() -> Vec<(TrafficVersion, usize, String, String, f64, Option<f64>)> {
        let published = Published::read(include_str!("published.csv")).unwrap();
        let of = published.iter().filter_map(|(id, figure)| {
            let fields: Vec<&str> = id.split('/').collect();
            let ["paper", version, half, profile, packets] = fields[..] else { return None };
            let (version, half) = (TrafficVersion::by_name(version).ok()?, usize::from(half == "rsp"));
            let saved = published.theirs(&format!("{id}/saved"));
            Some((version, half, profile.to_owned(), packets.to_owned(), figure.theirs?, saved))
        });
        of.collect()
    }

    #[test]
    fn the_profiles_of_rfc_3095_need_what_the_paper_states() {
        for (version, half, profile, packets, theirs, _) in stated() {
            let id = match profile.as_str() {
                "udp" => PaperProfile::Udp,
                "ip" => PaperProfile::Ip,
                _ => continue,
            };
            let ours = both_halves(id, version, 1).unwrap()[half].octets(&packets).unwrap();
            // Add-CID octet of their second flow.
            let add_cid = if (half, version) == (1, TrafficVersion::V4) { 1.0 } else { 0.0 };
            assert_eq!(ours + add_cid, theirs, "{profile} {version:?} {half}");
        }
    }

    #[test]
    fn the_percentages_of_the_paper_are_those_of_its_sizes() {
        for (version, half, _, _, octets, saved) in stated() {
            let Some(saved) = saved else { continue };
            let plain = [[37.0, 57.0], [51.0, 71.0]][half][version as usize];
            // To the one decimal of the paper, which truncates some values.
            assert!((100.0 * (1.0 - octets / plain) - saved).abs() < 0.1, "{octets} of {plain}: {saved} %");
        }
    }
}
