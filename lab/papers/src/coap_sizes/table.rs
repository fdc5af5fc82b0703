//! The size table: each flow, over IPv4 and IPv6, in three ways of ours and beside its peers.

use thinair_report::{Axis, Bars, Cell, Column, Figure, Section, Table};
use thinair_rohc::FormatPolicy;
use thinair_rohc::{Instant, ProfileId};

use super::peers::{self, Peers};
use crate::pair::{End, Pair, Settings};
use crate::paper::{Error, Findings, Plan, Progress};
use crate::row::{Bar, Row};
use crate::sweep::sweep;
use crate::traffic::{Flow, Kind, Packet, Version};

/// Packets that are not counted: the start of a flow.
const START: u64 = 200;
/// Packets of a flow.
const PACKETS: u64 = 500;
/// Milliseconds between two packets.
const PACE: u64 = 100;

/// The way of a packet through one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ElidedPt0,
    ElidedPt1,
    Carried,
    Udp,
    Coap2015,
}

impl Way {
    const ALL: [Self; 5] = [Self::ElidedPt0, Self::ElidedPt1, Self::Carried, Self::Udp, Self::Coap2015];
    const OURS: [Self; 3] = [Self::ElidedPt0, Self::ElidedPt1, Self::Carried];

    /// As in row ids.
    const fn name(self) -> &'static str {
        match self {
            Self::ElidedPt0 => "elided-pt0",
            Self::ElidedPt1 => "elided-pt1",
            Self::Carried => "carried",
            Self::Udp => "udp",
            Self::Coap2015 => "coap-2015",
        }
    }

    fn settings(self, seed: u64) -> Result<Settings, Error> {
        let ours = Settings::new(Some(ProfileId::Coap), seed)?.optimistic();
        Ok(match self {
            Self::ElidedPt0 => ours.elided().format(FormatPolicy::Pt0),
            Self::ElidedPt1 => ours.elided().format(FormatPolicy::Pt1),
            Self::Carried => ours,
            Self::Udp => Settings::new(None, seed)?.optimistic(),
            Self::Coap2015 => Settings::new(Some(ProfileId::Coap2015), seed)?.optimistic(),
        })
    }
}

/// What is known of a flow beforehand. Octets, payload included.
struct Known {
    /// Bars: elided in pt_0, elided in pt_1, carried.
    bars: [f64; 3],
    /// The design of the paper, IPv4 and IPv6.
    paper: Option<[f64; 2]>,
}

const fn known(kind: Kind) -> Known {
    let (bars, paper) = match kind {
        Kind::A => ([1.0, 2.0, 3.0], Some([5.0, 5.0])),
        Kind::B => ([16.0, 17.0, 18.0], Some([21.0, 20.0])),
        Kind::C2 => ([3.0, 4.0, 5.0], Some([7.0, 7.0])),
        Kind::C4 => ([5.0, 6.0, 7.0], Some([9.0, 9.0])),
        Kind::CCount => ([1.0, 2.0, 3.0], Some([7.0, 7.0])),
        Kind::D => ([21.0, 22.0, 23.0], Some([27.0, 27.0])),
        Kind::EReq => ([1.0, 2.0, 3.0], None),
        Kind::ERsp => ([65.0, 66.0, 67.0], None),
        Kind::FReq => ([15.0, 16.0, 17.0], None),
        Kind::FRsp => ([26.0, 27.0, 28.0], Some([31.0, 30.0])),
        Kind::G => ([5.0, 6.0, 7.0], None),
        Kind::H => ([3.0, 4.0, 5.0], Some([5.0, 5.0])),
        // With the 4-octet token of the measured flow.
        Kind::HRsp => ([16.0, 17.0, 18.0], Some([25.0, 24.0])),
    };
    Known { bars, paper }
}

/// The bar of a cell of the table.
fn bar(kind: Kind, version: Version, way: Way) -> Option<f64> {
    let [pt0, pt1, carried] = known(kind).bars;
    match (way, kind, version) {
        (Way::ElidedPt0, ..) => Some(pt0),
        (Way::ElidedPt1, ..) => Some(pt1),
        (Way::Carried, Kind::H, Version::V4) => Some(6.0),
        (Way::Carried, ..) => Some(carried),
        (Way::Udp | Way::Coap2015, ..) => None,
    }
}

/// One flow in one way.
#[derive(Clone, Copy, Debug)]
struct Job {
    kind: Kind,
    version: Version,
    way: Way,
    seed: u64,
}

/// What a flow took.
#[derive(Clone, Copy, Debug, Default)]
struct Steady {
    /// Mean octets of a packet.
    octets: f64,
    /// Octets of a packet before compression.
    plain: usize,
    /// Octets of feedback in all packets.
    feedback: usize,
    /// Packets that did not come back as they were.
    not_exact: u64,
    /// A packet went by profile 0x0080.
    is_coap_2015: bool,
}

fn steady(job: &Job) -> Result<Steady, Error> {
    let mut pair = Pair::new(&job.way.settings(job.seed)?)?;
    let (mut request, mut flow) = match job.kind {
        Kind::HRsp => Flow::exchange(job.version, job.seed),
        kind => (Flow::new(kind, job.version, job.seed), Flow::new(kind, job.version, job.seed)),
    };
    let from = if job.kind.is_from_server() { End::Server } else { End::Client };
    let mut packet = Packet::default();
    let (mut octets, mut steady) = (0, Steady::default());
    for number in 0..PACKETS {
        let now = Instant::from_millis(number * PACE);
        if job.kind == Kind::HRsp {
            request.ask(&mut packet);
            let trip = pair.carry(now, End::Client, &packet.octets)?;
            steady.not_exact += u64::from(!trip.is_exact);
            flow.answer(&request, &mut packet);
        } else {
            flow.next(&mut packet);
        }
        let trip = pair.carry(now, from, &packet.octets)?;
        steady.feedback += trip.feedback;
        steady.not_exact += u64::from(!trip.is_exact);
        steady.is_coap_2015 |= trip.compressed.profile == ProfileId::Coap2015;
        if number >= START {
            octets += trip.compressed.len;
        }
    }
    steady.plain = packet.octets.len();
    steady.octets = octets as f64 / (PACKETS - START) as f64;
    Ok(steady)
}

/// One flow over one version in every way.
struct Line {
    kind: Kind,
    version: Version,
    ways: [Steady; 5],
    peers: Peers,
}

impl Line {
    fn of(&self, way: Way) -> &Steady {
        &self.ways[way as usize]
    }

    fn paper(&self) -> Option<f64> {
        known(self.kind).paper.map(|paper| paper[self.version as usize])
    }

    fn coap_2015(&self) -> Option<f64> {
        let steady = self.of(Way::Coap2015);
        steady.is_coap_2015.then_some(steady.octets)
    }

    fn lowpan(&self, way: Way) -> Option<f64> {
        if way == Way::Carried { self.peers.lowpan_carried } else { self.peers.lowpan_elided }
    }

    fn row(&self, way: Way) -> Row {
        let id = format!("{}/{}/{}", self.kind.name(), self.version.name(), way.name());
        Row::new(id, self.kind.what(), "octets", self.of(way).octets)
            .theirs(self.paper())
            .peer("udp", self.of(Way::Udp).octets)
            .peer("coap-2015", self.coap_2015())
            .peer("schc", self.peers.schc)
            .peer("6lowpan", self.lowpan(way))
            .at_most(bar(self.kind, self.version, way))
    }
}

pub(super) fn measure(plan: &Plan, progress: Progress<'_>, findings: &mut Findings) -> Result<(), Error> {
    let flows: Vec<_> =
        Version::ALL.into_iter().flat_map(|version| Kind::ALL.map(|kind| (kind, version))).collect();
    let jobs: Vec<_> = flows
        .iter()
        .flat_map(|&(kind, version)| Way::ALL.map(|way| Job { kind, version, way, seed: plan.seed }))
        .collect();
    let measured = sweep(&jobs, plan.threads, progress, |_| PACKETS, steady)?;
    let of_peers = sweep(
        &flows,
        plan.threads,
        progress,
        |_| PACKETS,
        |&(kind, version)| Ok(peers::measure(kind, version, plan.seed, PACKETS as usize, START as usize)),
    )?;
    let lines: Vec<_> = flows
        .iter()
        .zip(measured.chunks_exact(Way::ALL.len()))
        .zip(of_peers)
        .filter_map(|((&(kind, version), ways), peers)| {
            Some(Line { kind, version, ways: ways.try_into().ok()?, peers })
        })
        .collect();

    findings.rows.extend(lines.iter().flat_map(|line| Way::OURS.map(|way| line.row(way))));
    let of_ours = || lines.iter().flat_map(|line| Way::OURS.map(|way| line.of(way)));
    let not_exact: u64 = lines.iter().flat_map(|line| &line.ways).map(|steady| steady.not_exact).sum();
    let not_exact = not_exact + lines.iter().map(|line| line.peers.not_exact).sum::<u64>();
    let feedback: usize = of_ours().map(|steady| steady.feedback).sum();
    let packets = of_ours().count() as f64 * PACKETS as f64;
    findings.rows.push(
        Row::new(
            "round-trip/not-exact",
            "packets of the table, its peers included, that did not come back as they were",
            "packets",
            not_exact as f64,
        )
        .at_most(0.0),
    );
    findings.rows.push(Row::new(
        "feedback",
        "feedback in the table, per packet, not counted in its sizes",
        "octets",
        feedback as f64 / packets,
    ));
    let section = Version::ALL
        .into_iter()
        .fold(Section::new("The size table"), |section, version| section.table(table(&lines, version)));
    findings
        .ours
        .push(Version::ALL.into_iter().fold(section, |s, version| s.figure(figure(&lines, version))));
    Ok(())
}

fn table(lines: &[Line], version: Version) -> Table {
    let title = match version {
        Version::V4 => "IPv4, octets",
        Version::V6 => "IPv6, octets",
    };
    let columns = [
        Column::text("flow"),
        Column::number("plain"),
        Column::number("elided pt_0"),
        Column::number("elided pt_1"),
        Column::number("carried"),
        Column::number("paper"),
        Column::number("coap-2015"),
        Column::number("schc"),
        Column::number("6lowpan"),
        Column::number("udp"),
    ];
    let mut table = Table::new(title, columns);
    for line in lines.iter().filter(|line| line.version == version) {
        let ours = |way: Way| verdict(line.of(way).octets, bar(line.kind, version, way));
        let maybe = |value: Option<f64>| value.map_or(Cell::Empty, figure_cell);
        table.row([
            Cell::text(line.kind.name()),
            Cell::integer(line.of(Way::Udp).plain),
            ours(Way::ElidedPt0),
            ours(Way::ElidedPt1),
            ours(Way::Carried),
            maybe(line.paper()),
            maybe(line.coap_2015()),
            figure_cell(line.peers.schc),
            maybe(line.lowpan(Way::Carried)),
            figure_cell(line.of(Way::Udp).octets),
        ]);
    }
    table
}

fn figure(lines: &[Line], version: Version) -> Figure {
    let of = || lines.iter().filter(|line| line.version == version);
    let plot = Bars::new(
        Axis::new("flow"),
        Axis::new("octets without payload").unit("B"),
        of().map(|line| line.kind.name()),
    );
    let without_payload = |line: &Line, octets: f64| octets - line.kind.payload() as f64;
    let series = |way: Way| of().map(move |line| without_payload(line, line.of(way).octets));
    let plot = plot
        .series("coap, elided, pt_1", series(Way::ElidedPt1))
        .series("coap, carried", series(Way::Carried))
        .series("schc", of().map(|line| without_payload(line, line.peers.schc)))
        .series(
            "coap-2015",
            of().map(|line| line.coap_2015().map_or(f64::NAN, |octets| without_payload(line, octets))),
        )
        .series("udp", series(Way::Udp));
    let name = match version {
        Version::V4 => "Headers that are left over IPv4",
        Version::V6 => "Headers that are left over IPv6",
    };
    Figure::new(name, plot).note("Steady state, mean octets a packet that are not payload.")
}

/// A figure beside its bar.
pub(super) fn verdict(ours: f64, max: Option<f64>) -> Cell {
    let Some(max) = max else { return figure_cell(ours) };
    let sign = if (Bar { max: Some(max), min: None }).holds(ours) { '≤' } else { '>' };
    Cell::text(format!("{} {sign} {max}", short(ours)))
}

/// Two decimals where there are any.
pub(super) fn figure_cell(value: f64) -> Cell {
    Cell::number(value, if value.fract() == 0.0 { 0 } else { 2 })
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.2}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_udp_profile_leaves_what_it_is_known_to_leave() {
        // Measured with rohc-lib over IPv6: 3 octets and the CoAP message.
        let sizes = [12.0, 26.0, 14.0, 16.0, 14.0, 37.0, 15.0, 84.0, 28.0, 36.0, 19.0, 12.0, 30.0];
        for (kind, size) in Kind::ALL.into_iter().zip(sizes) {
            let job = Job { kind, version: Version::V6, way: Way::Udp, seed: 5 };
            let steady = steady(&job).unwrap();
            assert_eq!((steady.octets, steady.not_exact), (size, 0), "{kind:?}");
        }
    }

    #[test]
    fn bars_are_those_of_the_design() {
        assert_eq!(bar(Kind::A, Version::V4, Way::Carried), Some(3.0));
        assert_eq!(bar(Kind::H, Version::V4, Way::Carried), Some(6.0));
        assert_eq!(bar(Kind::H, Version::V6, Way::Carried), Some(5.0));
        assert_eq!(bar(Kind::ERsp, Version::V6, Way::ElidedPt0), Some(65.0));

        for kind in Kind::ALL {
            let [pt0, pt1, carried] = known(kind).bars;
            assert_eq!((pt1 - pt0, carried - pt1), (1.0, 1.0), "{kind:?}");
        }
    }
}
