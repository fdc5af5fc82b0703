//! The rows as tables and plots.

use thinair_lab::Stack;
use thinair_lab::broadcast::mesh::Topology;
use thinair_report::{Axis, Cell, Column, Figure, Lines, Section, Series, Table};
use thinair_ule::capacity::{Encapsulation, Filling};

use super::Results;
use super::model::{Way, gain, sndus_per_ts, ts_per_second};
use super::published::{self, PAYLOADS};
use super::rows::{added, first_loss, topology_name};
use super::simulate::{Job, PACES, PAPER_THRESHOLD, SITES, STACK_PAYLOADS, Scheme, paced, rates};
use crate::row::Bar;

const PAPER: Scheme = Scheme::Threshold(PAPER_THRESHOLD);

/// Payloads of the curves that are computed.
const FIRST: u32 = 20;
const LAST: u32 = 1_100;
const EVERY: usize = 4;

pub(super) fn sections(results: &Results) -> Vec<Section> {
    let throughput = Section::new("Throughput over payload")
        .text("kbit/s of payload. Model: equations; exact: packing counted. Both as the paper's schedule asks for.")
        .table(throughput(results, Way::Unc))
        .table(throughput(results, Way::Cmp))
        .table(gains(results))
        .figure(throughput_plot(results))
        .figure(gain_plot(results));
    let short = Section::new("Why small packets fell short")
        .text(
            "The paper's measurements beside what one SNDU a TS packet carries. Without compression 40 and 120 octets are the \
                same to four digits; with it there are hardly more SNDUs.",
        )
        .table(short(results));
    let padding = Section::new("Padding").table(padding(results)).figure(padding_plot(results));
    let further = Section::new("Beyond the paper")
        .text("kbit/s of payload, simulated: without refreshes, and with 8 PDUs an SNDU.")
        .table(further(results))
        .table(stacks(results, "Stacks: gained by compression, %", 1, gain))
        .table(stacks(results, "Stacks: compressed, kbit/s", 0, |_, cmp| cmp));
    let thresholds = Section::new("Packing Threshold")
        .text(
            "40 octets, compressed. A threshold packs if packets come faster than it, and delays them; pulling does neither \
                until the link is full: what it pads would have been null packets.",
        )
        .table(paced_table(results, "TS packets a packet", 3, |found| found.ts_packets))
        .table(paced_table(results, "Added delay, mean, ms", 2, |found| added(found.mean_delay)))
        .figure(paced_plot(results, "TS packets a packet over the threshold", Axis::new("TS packets"), |found| {
            found.ts_packets
        }))
        .figure(paced_plot(
            results,
            "Added delay over the threshold",
            Axis::new("mean delay").unit("ms"),
            |found| added(found.mean_delay),
        ));
    let sweep = Section::new("Offered and delivered").table(sweep(results));
    let sweep = [&PAYLOADS[..3], &PAYLOADS[3..5], &PAYLOADS[5..]]
        .into_iter()
        .fold(sweep, |section, payloads| section.figure(sweep_plot(results, payloads)));
    let mesh = Section::new("Mesh and star").table(mesh(results));
    vec![throughput, short, padding, further, thresholds, sweep, mesh]
}

fn number(value: Option<f64>, decimals: u8) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::number(value, decimals))
}

/// A figure beside its bar.
fn verdict(value: Option<f64>, decimals: u8, bar: Bar) -> Cell {
    let Some(value) = value else { return Cell::Empty };
    let sign = if bar.holds(value) { '✓' } else { '✗' };
    Cell::text(format!("{value:.*} {sign}", usize::from(decimals)))
}

fn simulated(results: &Results, stack: Stack, payload: u32, way: Way, scheme: Scheme) -> Option<f64> {
    results.of(Job::Saturated { stack, payload, way, scheme }).map(|found| found.kbps)
}

fn paper(results: &Results, payload: u32, way: Way, scheme: Scheme) -> Option<f64> {
    simulated(results, Stack::IPV6_UDP, payload, way, scheme)
}

fn real(results: &Results, payload: u32, way: Way) -> Option<f64> {
    results.real.iter().find(|real| (real.payload, real.way) == (payload, way)).map(|real| real.kbps)
}

fn measured(payload: u32, way: Way) -> Option<f64> {
    published::measured(payload).map(|three| match way {
        Way::Unc => three.unc,
        Way::Cmp => three.cmp,
    })
}

fn payload_column() -> Column {
    Column::number("payload").unit("B")
}

/// Only if there is something to be shown in it.
fn real_column(results: &Results) -> Option<Column> {
    (!results.real.is_empty()).then(|| Column::number("real"))
}

fn throughput(results: &Results, way: Way) -> Table {
    let mut columns = vec![payload_column()];
    if way == Way::Unc {
        columns.push(Column::number("MPE, model"));
    }
    columns.extend(["model", "exact", "simulated", "pulled"].map(Column::number));
    columns.extend(real_column(results));
    columns.push(Column::number("the paper's"));
    let title = match way {
        Way::Unc => "Uncompressed, kbit/s",
        Way::Cmp => "Compressed, kbit/s",
    };
    let mut table = Table::new(title, columns);
    for payload in PAYLOADS {
        let ule = |filling| results.headers.ule(filling, payload, way);
        let exact = ule(Filling::Packing);
        let within = Bar { min: Some(exact * 0.995), max: Some(exact * 1.005) };
        let mut cells = vec![Cell::integer(payload)];
        if way == Way::Unc {
            let mpe = results.headers.kbps(Encapsulation::MPE, Filling::Ideal, payload, way);
            cells.push(Cell::number(mpe, 1));
        }
        cells.extend([
            Cell::number(ule(Filling::Ideal), 1),
            Cell::number(exact, 1),
            verdict(paper(results, payload, way, PAPER), 1, within),
            verdict(paper(results, payload, way, Scheme::Pull), 1, within),
        ]);
        if !results.real.is_empty() {
            let least = Bar { min: Some(0.97 * exact), max: None };
            cells.push(verdict(real(results, payload, way), 1, least));
        }
        cells.push(number(measured(payload, way), 0));
        table.row(cells);
    }
    let real = if results.real.is_empty() { "" } else { "; real: at least 0.97 of it" };
    table.note(format!("✓: within 0.5 % of exact packing{real}."))
}

fn gains(results: &Results) -> Table {
    let mut columns = vec![payload_column()];
    columns.extend(["model", "exact", "simulated"].map(Column::number));
    columns.extend(real_column(results));
    columns.push(Column::number("the paper's"));
    let mut table = Table::new("Gained by compression, %", columns);
    for payload in PAYLOADS {
        let of = |one: &dyn Fn(Way) -> Option<f64>| Some(gain(one(Way::Unc)?, one(Way::Cmp)?));
        let ule = |filling| move |way| Some(results.headers.ule(filling, payload, way));
        let mut cells = vec![
            Cell::integer(payload),
            number(of(&ule(Filling::Ideal)), 2),
            number(of(&ule(Filling::Packing)), 2),
            number(of(&|way| paper(results, payload, way, PAPER)), 2),
        ];
        if !results.real.is_empty() {
            cells.push(number(of(&|way| real(results, payload, way)), 2));
        }
        cells.push(number(published::measured(payload).map(|three| three.gain), 1));
        table.row(cells);
    }
    table
}

fn payload_axis() -> Axis {
    Axis::new("payload").unit("B").logarithmic()
}

/// A curve through the payloads at which something is known.
fn points(name: &str, of: impl Fn(u32) -> Option<f64>) -> Series {
    Series::new(name, PAYLOADS.into_iter().filter_map(|payload| Some((f64::from(payload), of(payload)?))))
}

/// A curve that is computed.
fn dense(name: &str, of: impl Fn(u32) -> f64) -> Series {
    Series::new(name, (FIRST..=LAST).step_by(EVERY).map(|payload| (f64::from(payload), of(payload))))
}

fn with(lines: Lines, series: Vec<Series>) -> Lines {
    series.into_iter().filter(|series| !series.points.is_empty()).fold(lines, Lines::series)
}

fn throughput_plot(results: &Results) -> Figure {
    let mut series = Vec::new();
    for way in [Way::Cmp, Way::Unc] {
        let name = |of: &str| format!("{}, {of}", way.what());
        series.extend([
            points(&name("the paper's"), |payload| measured(payload, way)),
            points(&name("real"), |payload| real(results, payload, way)),
            points(&name("simulated"), |payload| paper(results, payload, way, PAPER)),
            dense(&name("model"), |payload| results.headers.ule(Filling::Ideal, payload, way)),
        ]);
    }
    let plot = with(Lines::new(payload_axis(), Axis::new("throughput").unit("kbit/s")), series);
    Figure::new("Throughput over payload", plot)
        .note("The paper's points are those that it gives in numbers: 40, 80 and 120 octets.")
}

fn gain_plot(results: &Results) -> Figure {
    let of = |one: &dyn Fn(Way) -> Option<f64>| Some(gain(one(Way::Unc)?, one(Way::Cmp)?));
    let series = vec![
        points("the paper's", |payload| published::measured(payload).map(|three| three.gain)),
        points("real", |payload| of(&|way| real(results, payload, way))),
        points("simulated", |payload| of(&|way| paper(results, payload, way, PAPER))),
        dense("model", |payload| {
            let [unc, cmp] = Way::BOTH.map(|way| results.headers.ule(Filling::Ideal, payload, way));
            gain(unc, cmp)
        }),
    ];
    let plot = with(Lines::new(payload_axis(), Axis::new("gain").unit("%")), series);
    Figure::new("Gain over payload", plot)
}

fn short(results: &Results) -> Table {
    let columns = [
        payload_column(),
        Column::text(""),
        Column::number("the paper's").unit("kbit/s"),
        Column::number("one SNDU a TS packet").unit("kbit/s"),
        Column::number("its SNDUs a TS packet"),
        Column::number("ours, simulated"),
    ];
    let mut table = Table::new("", columns);
    for (payload, way) in PAYLOADS.into_iter().flat_map(|payload| Way::BOTH.map(|way| (payload, way))) {
        let Some(theirs) = measured(payload, way) else { continue };
        let job = Job::Saturated { stack: Stack::IPV6_UDP, payload, way, scheme: PAPER };
        let ours = results.of(job).and_then(|found| found.ts_packets).map(|each| 1.0 / each);
        table.row([
            Cell::integer(payload),
            Cell::text(way.what()),
            Cell::number(theirs, 0),
            Cell::number(ts_per_second() * f64::from(payload * 8) / 1e3, 1),
            Cell::number(sndus_per_ts(theirs, payload), 3),
            number(ours, 3),
        ]);
    }
    table
}

fn padding(results: &Results) -> Table {
    let columns = [
        payload_column(),
        Column::number("uncompressed").unit("kbit/s"),
        Column::number("compressed").unit("kbit/s"),
        Column::number("gain").unit("%"),
        Column::number("simulated: uncompressed"),
        Column::number("compressed").unit("kbit/s"),
    ];
    let mut table = Table::new("", columns);
    for payload in PAYLOADS {
        let [unc, cmp] = Way::BOTH.map(|way| results.headers.ule(Filling::Padding, payload, way));
        let [one, other] = Way::BOTH.map(|way| paper(results, payload, way, Scheme::Padding));
        table.row([
            Cell::integer(payload),
            Cell::number(unc, 1),
            Cell::number(cmp, 1),
            Cell::number(gain(unc, cmp), 1),
            number(one, 1),
            number(other, 1),
        ]);
    }
    table
}

fn padding_plot(results: &Results) -> Figure {
    let ule = |filling, way| move |payload| results.headers.ule(filling, payload, way);
    let series = vec![
        dense("compressed, padding", ule(Filling::Padding, Way::Cmp)),
        dense("uncompressed, padding", ule(Filling::Padding, Way::Unc)),
        dense("uncompressed, packing", ule(Filling::Packing, Way::Unc)),
    ];
    let axes = Lines::new(Axis::new("payload").unit("B"), Axis::new("throughput").unit("kbit/s"));
    Figure::new("Padding over payload", with(axes, series)).note(
        "A step is where an SNDU takes a TS packet more. Compression gains from a step of the uncompressed packets to the \
            next one of the compressed.",
    )
}

fn further(results: &Results) -> Table {
    let schemes = [PAPER, Scheme::Optimistic, Scheme::Concat, Scheme::OptimisticConcat];
    let mut columns = vec![payload_column(), Column::number("uncompressed")];
    columns.extend(["3 IR, 50 SO", "O-mode", "8 PDUs an SNDU", "both"].map(Column::number));
    columns.push(Column::number("gain of both").unit("%"));
    let mut table = Table::new("", columns);
    for payload in PAYLOADS {
        let unc = paper(results, payload, Way::Unc, PAPER);
        let cmp = schemes.map(|scheme| paper(results, payload, Way::Cmp, scheme));
        let both = unc.zip(cmp[3]).map(|(unc, cmp)| gain(unc, cmp));
        let cells = [Cell::integer(payload), number(unc, 1)].into_iter();
        table.row(cells.chain(cmp.map(|kbps| number(kbps, 1))).chain([number(both, 1)]));
    }
    table
}

/// Some figure of both throughputs.
fn stacks(results: &Results, title: &str, decimals: u8, figure: impl Fn(f64, f64) -> f64) -> Table {
    let mut columns = vec![Column::text("stack")];
    columns.extend(STACK_PAYLOADS.map(|payload| Column::number(payload.to_string()).unit("B")));
    let mut table = Table::new(title, columns);
    let all = std::iter::once(Stack::IPV6_UDP).chain(results.others.iter().map(|(stack, _)| *stack));
    for stack in all {
        let cells = STACK_PAYLOADS.map(|payload| {
            let [unc, cmp] = Way::BOTH.map(|way| simulated(results, stack, payload, way, PAPER));
            number(unc.zip(cmp).map(|(unc, cmp)| figure(unc, cmp)), decimals)
        });
        table.row([Cell::text(stack.name())].into_iter().chain(cells));
    }
    table.note("udp0 is UDP without checksum. CoAP: its option and the payload marker are headers.")
}

fn scheme_name(scheme: Scheme) -> String {
    match scheme {
        Scheme::Threshold(threshold) => format!("{threshold} ms"),
        Scheme::Bounded(threshold) => format!("{threshold} ms, from the first"),
        Scheme::Pull => "pulled".to_owned(),
        _ => "padding".to_owned(),
    }
}

fn paced_table(
    results: &Results,
    title: &str,
    decimals: u8,
    figure: impl Fn(&super::Found) -> Option<f64>,
) -> Table {
    let mut columns = vec![Column::text("threshold")];
    columns.extend(PACES.map(|packets| Column::number(packets.to_string()).unit("/s")));
    let mut table = Table::new(title, columns);
    for scheme in paced() {
        let cells = PACES
            .map(|packets| number(results.of(Job::Pace { scheme, packets }).and_then(&figure), decimals));
        table.row([Cell::text(scheme_name(scheme))].into_iter().chain(cells));
    }
    table
}

fn paced_plot(
    results: &Results,
    title: &str,
    y: Axis,
    figure: impl Fn(&super::Found) -> Option<f64>,
) -> Figure {
    let series = PACES.map(|packets| {
        let points = paced().filter_map(|scheme| {
            let threshold = match scheme {
                Scheme::Threshold(threshold) => threshold as f64,
                Scheme::Padding => 0.0,
                _ => return None,
            };
            Some((threshold, figure(results.of(Job::Pace { scheme, packets })?)?))
        });
        Series::new(format!("{packets} packets/s"), points)
    });
    let plot = with(Lines::new(Axis::new("threshold").unit("ms"), y), series.into());
    Figure::new(title, plot).note("0 ms is padding.")
}

fn sweep(results: &Results) -> Table {
    let columns = [
        payload_column(),
        Column::text(""),
        Column::number("exact packing"),
        Column::number("first load with loss"),
        Column::number("most throughput"),
        Column::number("the paper's most").unit("kbit/s"),
    ];
    let mut table = Table::new("", columns);
    for (payload, way) in PAYLOADS.into_iter().flat_map(|payload| Way::BOTH.map(|way| (payload, way))) {
        let runs: Vec<_> =
            rates().filter_map(|kbps| Some((kbps, results.of(Job::Sweep { payload, way, kbps })?))).collect();
        let exact = results.headers.ule(Filling::Packing, payload, way);
        let first = runs.iter().find(|(_, found)| found.loss > 0.0).map(|(kbps, _)| *kbps as f64);
        let most = runs.iter().map(|(_, found)| found.kbps).reduce(f64::max);
        let bar = first_loss(exact, payload, results.scale.sweep.as_secs_f64());
        table.row([
            Cell::integer(payload),
            Cell::text(way.what()),
            Cell::number(exact, 1),
            verdict(first, 0, bar),
            number(most, 1),
            number(measured(payload, way), 0),
        ]);
    }
    table.note("✓: where the link is full, to the step of 100 kbit/s, or, in a short run, until the queue overflows.")
}

fn sweep_plot(results: &Results, payloads: &[u32]) -> Figure {
    let curves = payloads.iter().flat_map(|payload| {
        [Way::Cmp, Way::Unc].map(|way| {
            let points = rates().filter_map(|kbps| {
                Some((kbps as f64, results.of(Job::Sweep { payload: *payload, way, kbps })?.kbps))
            });
            Series::new(format!("{payload} B, {}", way.what()), points)
        })
    });
    let axes = Lines::new(Axis::new("offered").unit("kbit/s"), Axis::new("delivered").unit("kbit/s"));
    let names: Vec<_> = payloads.iter().map(u32::to_string).collect();
    Figure::new(format!("Offered and delivered: {} octets", names.join(", ")), with(axes, curves.collect()))
}

fn mesh(results: &Results) -> Table {
    let columns = [
        Column::number("sites"),
        Column::text(""),
        Column::number("delay, mean").unit("ms"),
        Column::number("99 %").unit("ms"),
        Column::number("TS packets").unit("/s"),
        Column::number("delivered after a failure").unit("%"),
    ];
    let mut table = Table::new("", columns);
    for (sites, topology) in
        SITES.into_iter().flat_map(|sites| [Topology::Mesh, Topology::Star].map(|topology| (sites, topology)))
    {
        let of = |fails| results.of(Job::Mesh { sites, topology, fails });
        let whole = of(false);
        let after = of(true).and_then(|found| found.after_failure).map(|part| part * 100.0);
        table.row([
            Cell::integer(sites),
            Cell::text(topology_name(topology)),
            number(whole.and_then(|found| found.mean_delay), 1),
            number(whole.and_then(|found| found.p99_delay), 1),
            number(whole.and_then(|found| found.ts_packets), 0),
            number(after, 1),
        ]);
    }
    table.note("The hub fails, or in the mesh the first site; between the sites that are left.")
}
