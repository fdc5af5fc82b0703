//! The paper's exchange, and every size and percentage that it states of it.

use std::collections::BTreeMap;

use thinair_report::{Cell, Column, Section, Table};
use thinair_rohc::{Format, Instant, ProfileId, ProfileSet, Refresh};

use super::table::{figure_cell, verdict};
use crate::pair::{End, Pair, Settings};
use crate::paper::{Error, Findings, Plan};
use crate::row::Row;
use crate::traffic::{Flow, Kind, Packet, Version};

/// Exchanges of a run.
const EXCHANGES: u64 = 200;
/// A loss that no window bridges, so that the decompressor asks for a refresh.
const LOST: std::ops::Range<u64> = 100..140;
/// Packets between two refreshes in U-mode.
const REFRESH: u32 = 32;
/// Milliseconds between two packets.
const PACE: u64 = 1_000;
/// The smallest CoAP message: no token, no options.
const LEAST_COAP: f64 = 4.0;

/// Which half of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    Get,
    Response,
}

impl Half {
    const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Response => "rsp",
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::Get => Kind::A,
            Self::Response => Kind::B,
        }
    }

    const fn end(self) -> End {
        match self {
            Self::Get => End::Client,
            Self::Response => End::Server,
        }
    }
}

/// Which packet of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packets {
    /// The first one.
    Ir,
    /// The first one, with the largest feedback of the run in front.
    IrWithFeedback,
    IrDyn,
    /// UOR-2, or what follows IR-DYN in its place.
    Uor2,
    Uo0,
}

impl Packets {
    const fn name(self) -> &'static str {
        match self {
            Self::Ir => "ir",
            Self::IrWithFeedback => "ir-feedback",
            Self::IrDyn => "ir-dyn",
            Self::Uor2 => "uor-2",
            Self::Uo0 => "uo-0",
        }
    }
}

/// A size of the paper: what it states of it, in octets and as a saving in percent, and our bar.
struct Size {
    version: Version,
    half: Half,
    profile: ProfileId,
    packets: Packets,
    octets: Option<f64>,
    saved: Option<f64>,
    max: Option<f64>,
}

const fn size(version: Version, half: Half, profile: ProfileId, packets: Packets) -> Size {
    Size { version, half, profile, packets, octets: None, saved: None, max: None }
}

impl Size {
    const fn states(mut self, octets: f64) -> Self {
        self.octets = Some(octets);
        self
    }

    const fn saves(mut self, percent: f64) -> Self {
        self.saved = Some(percent);
        self
    }

    const fn max(mut self, octets: f64) -> Self {
        self.max = Some(octets);
        self
    }
}

const SIZES: [Size; 27] = {
    use Half::{Get, Response};
    use Packets::{Ir, IrDyn, IrWithFeedback, Uo0, Uor2};
    use ProfileId::{Coap2015, Ip, Udp};
    use Version::{V4, V6};
    [
        size(V4, Get, Coap2015, Ir).states(38.0),
        size(V4, Get, Coap2015, IrWithFeedback).states(44.0),
        size(V4, Get, Coap2015, IrDyn).states(15.0).saves(59.5).max(15.0),
        size(V4, Get, Coap2015, Uor2).states(6.0).max(6.0),
        size(V4, Get, Coap2015, Uo0).states(5.0).saves(86.5).max(5.0),
        size(V4, Response, Coap2015, Ir).states(53.0),
        size(V4, Response, Coap2015, IrWithFeedback).states(58.0),
        size(V4, Response, Coap2015, IrDyn).states(31.0).max(30.0),
        size(V4, Response, Coap2015, Uor2).states(22.0).max(21.0),
        size(V4, Response, Coap2015, Uo0).states(21.0).saves(58.8).max(20.0),
        size(V6, Get, Coap2015, Ir).states(61.0),
        size(V6, Get, Coap2015, IrWithFeedback).states(68.0),
        size(V6, Get, Coap2015, IrDyn).states(12.0).max(12.0),
        size(V6, Get, Coap2015, Uor2).max(6.0),
        size(V6, Get, Coap2015, Uo0).states(5.0).saves(91.2).max(5.0),
        size(V6, Response, Coap2015, Ir).states(75.0),
        size(V6, Response, Coap2015, IrDyn).states(27.0).max(27.0),
        size(V6, Response, Coap2015, Uor2).max(21.0),
        size(V6, Response, Coap2015, Uo0).states(20.0).saves(71.8).max(20.0),
        size(V4, Get, Udp, IrDyn).states(22.0).saves(40.5),
        size(V6, Get, Udp, Uo0).states(12.0).saves(78.9),
        size(V6, Response, Udp, Uo0).states(26.0).saves(63.3),
        size(V4, Get, Ip, IrDyn).states(28.0).saves(24.3),
        size(V4, Get, Ip, Uo0).states(18.0).saves(51.4),
        size(V4, Response, Ip, Uo0).states(33.0).saves(35.3),
        size(V6, Get, Ip, Uo0).states(18.0).saves(68.4),
        size(V6, Response, Ip, Uo0).states(32.0).saves(54.9),
    ]
};

pub(super) fn measure(plan: &Plan, findings: &mut Findings) -> Result<(), Error> {
    let mut runs = BTreeMap::new();
    for profile in [ProfileId::Coap2015, ProfileId::Udp, ProfileId::Ip] {
        for version in Version::ALL {
            runs.insert((profile, version), run(profile, version, plan.seed)?);
        }
    }
    let columns = [
        Column::text("packet"),
        Column::text("profile"),
        Column::number("theirs").unit("B"),
        Column::number("ours").unit("B"),
        Column::number("theirs saved").unit("%"),
        Column::number("ours saved").unit("%"),
    ];
    let mut table = Table::new("", columns);
    for size in &SIZES {
        let seen = &runs[&(size.profile, size.version)][size.half as usize];
        let ours = seen.octets(size.packets);
        let (version, half) = (size.version.name(), size.half.name());
        let (profile, packets) = (size.profile.name(), size.packets.name());
        let id = format!("paper/{version}/{half}/{profile}/{packets}");
        let what = format!("{half} over {version} by profile {profile}: {packets}");
        let saved = ours.map(|ours| 100.0 * (1.0 - ours / seen.plain as f64));
        let maybe = |value: Option<f64>| value.map_or(Cell::Empty, figure_cell);
        let percent = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::number(value, 1));
        table.row([
            Cell::text(format!("{version} {half} {packets}")),
            Cell::text(profile),
            maybe(size.octets),
            ours.map_or(Cell::text("never sent"), |ours| verdict(ours, size.max)),
            percent(size.saved),
            percent(saved.filter(|_| size.saved.is_some())),
        ]);
        if size.saved.is_some() {
            let row = Row::new(format!("{id}/saved"), format!("{what}, saved"), "%", saved);
            findings.rows.push(row.theirs(size.saved));
        }
        findings.rows.push(Row::new(id, what, "octets", ours).theirs(size.octets).at_most(size.max));
    }
    coap_header(&runs[&(ProfileId::Coap2015, Version::V4)], &runs[&(ProfileId::Udp, Version::V4)], findings);
    findings.ours.push(
        Section::new("The paper's exchange")
            .text(
                "Sizes of each packet type of a GET of “time” (37 octets over IPv4, 57 over IPv6) and its response (51 and 71), \
                    and what they save of the whole packet.",
            )
            .table(table),
    );
    Ok(())
}

/// What the CoAP profile leaves of the CoAP header of a GET: its packets beside those of the UDP profile, which
/// leaves all of it.
fn coap_header(coap: &[Seen; 2], udp: &[Seen; 2], findings: &mut Findings) {
    let [coap, udp] = [coap, udp].map(|runs| &runs[Half::Get as usize]);
    let whole = (coap.plain - 28) as f64;
    let left = match (coap.octets(Packets::Uo0), udp.octets(Packets::Uo0)) {
        (Some(coap), Some(udp)) => Some(whole - (udp - coap)),
        _ => None,
    };
    let saved = |whole: f64| left.map(|left| 100.0 * (1.0 - left / whole));
    findings.rows.extend([
        Row::new("paper/coap-header/get/saved", "of the 9 octets of a GET's CoAP header", "%", saved(whole))
            .theirs(77.8),
        Row::new(
            "paper/coap-header/least/saved",
            "of a CoAP header of 4 octets, if as much is left of it",
            "%",
            saved(LEAST_COAP),
        )
        .theirs(50.0),
    ]);
}

/// What was seen of one half.
#[derive(Clone, Debug, Default)]
struct Seen {
    plain: usize,
    first: Option<usize>,
    feedback: usize,
    /// The smallest packet of each format.
    smallest: BTreeMap<Format, usize>,
    /// The smallest packet right behind an IR-DYN.
    behind_ir_dyn: Option<usize>,
}

impl Seen {
    fn octets(&self, packets: Packets) -> Option<f64> {
        let smallest = |format| self.smallest.get(&format).copied();
        let octets = match packets {
            Packets::Ir => self.first,
            Packets::IrWithFeedback => self.first.map(|first| first + self.feedback),
            Packets::IrDyn => smallest(Format::IrDyn),
            Packets::Uor2 => smallest(Format::Uor2).or(self.behind_ir_dyn),
            Packets::Uo0 => smallest(Format::Uo0),
        };
        octets.map(|octets| octets as f64)
    }
}

/// Both halves of the exchange by one profile, in O-mode and in U-mode.
fn run(profile: ProfileId, version: Version, seed: u64) -> Result<[Seen; 2], Error> {
    let mut seen = [Seen::default(), Seen::default()];
    let mut settings = match profile {
        ProfileId::Coap2015 => Settings::new(Some(profile), seed)?,
        _ => Settings::new(None, seed)?,
    };
    if profile == ProfileId::Ip {
        settings.profiles = ProfileSet::of(&[profile])?;
    }
    let refresh = Refresh::Periodic { packets: Some(REFRESH), time: None, backoff: false };
    exchange(&settings.optimistic(), version, seed, &mut seen)?;
    exchange(&Settings { refresh: Some(refresh), ..settings }, version, seed, &mut seen)?;
    Ok(seen)
}

fn exchange(settings: &Settings, version: Version, seed: u64, seen: &mut [Seen; 2]) -> Result<(), Error> {
    let mut pair = Pair::new(settings)?;
    // The same seed, so that the hosts and the Message IDs are the same.
    let mut flows = [Half::Get, Half::Response].map(|half| (half, Flow::new(half.kind(), version, seed)));
    let mut is_behind_ir_dyn = [false; 2];
    let mut packet = Packet::default();
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

    #[test]
    fn the_profiles_of_rfc_3095_need_what_the_paper_states() {
        for size in SIZES.iter().filter(|size| matches!(size.profile, ProfileId::Udp | ProfileId::Ip)) {
            let seen = run(size.profile, size.version, 1).unwrap();
            let ours = seen[size.half as usize].octets(size.packets).unwrap();
            // The Add-CID octet of their second flow.
            let add_cid = if (size.half, size.version) == (Half::Response, Version::V4) { 1.0 } else { 0.0 };
            let theirs = size.octets.unwrap();
            assert_eq!(ours + add_cid, theirs, "{:?} {:?} {:?}", size.profile, size.version, size.half);
        }
    }

    #[test]
    fn the_percentages_of_the_paper_are_those_of_its_sizes() {
        for size in &SIZES {
            let (Some(octets), Some(saved)) = (size.octets, size.saved) else { continue };
            let plain = match (size.half, size.version) {
                (Half::Get, Version::V4) => 37.0,
                (Half::Response, Version::V4) => 51.0,
                (Half::Get, Version::V6) => 57.0,
                (Half::Response, Version::V6) => 71.0,
            };
            // To the decimal that it states; it cuts some.
            assert!((100.0 * (1.0 - octets / plain) - saved).abs() < 0.1, "{octets} of {plain}: {saved} %");
        }
    }
}
