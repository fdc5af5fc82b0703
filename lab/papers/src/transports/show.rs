//! The rows as tables and plots.

use thinair_analyze::exchange::Exchange;
use thinair_report::{Axis, Cell as Field, Column, Figure, Lines, Section, Series, Table};

use super::cell::{Cell, Link, Options, SIZES, Scale, Service, Temper};
use super::rows::CONCLUSIONS;
use super::{Measured, Range, Served, http3, published};

pub(super) fn sections(measured: &Measured, scale: Scale) -> Vec<Section> {
    let mut sections = vec![names(), of_paper(measured)];
    sections.extend(Link::PUBLISHED.iter().filter_map(|link| of_link(measured, *link)));
    sections.push(others(measured));
    sections.push(of_http3(measured));
    sections.push(fast_open(measured));
    sections.push(framed(measured));
    if !measured.compressed.is_empty() {
        sections.push(compressed(measured));
    }
    sections.push(settings(measured, scale));
    sections
}

fn cell(service: Service, link: Link, options: Options, size: usize) -> Cell {
    Cell { service, link, options, size, temper: Temper::Warm }
}

/// Which service is called what.
fn names() -> Section {
    let mut table = Table::new("Services", ["name", "client and server"].map(Column::text));
    for service in Service::all() {
        table.row([service.name(), service.what()].map(Field::text));
    }
    Section::new("").table(table)
}

/// What the paper has in numbers.
fn of_paper(measured: &Measured) -> Section {
    let mut columns = vec![Column::text("service")];
    columns.extend(["theirs, ms", "lean", "default"].map(Column::number));
    columns.extend(["theirs, packets", "lean", "default"].map(Column::number));
    columns.extend(["theirs, octets", "lean", "default"].map(Column::number));
    let mut totals = Table::new("10 octets over 20 kbit/s, 20 ms, MTU 128", columns);
    for service in Service::PUBLISHED {
        let cells = [Options::Lean, Options::Default].map(|options| cell(service, Link::Slow, options, 10));
        let theirs = published::totals(&cells[0]);
        let mut row = vec![Field::text(service.name())];
        row.push(theirs.map_or(Field::Empty, |theirs| Field::number(theirs.odt, 0)));
        row.extend(cells.map(|cell| time(measured.of(&cell))));
        row.push(theirs.map_or(Field::Empty, |theirs| Field::number(theirs.packets, 0)));
        row.extend(cells.map(|cell| count(measured.of(&cell), |of| of.packets)));
        row.push(theirs.map_or(Field::Empty, |theirs| Field::number(theirs.octets, 0)));
        row.extend(cells.map(|cell| count(measured.of(&cell), Exchange::total)));
        totals.row(row);
    }
    let layers = ["IP", "UDP, TCP", "service"];
    let mut columns = vec![Column::text("service"), Column::number("object")];
    for whose in ["theirs", "lean", "default"] {
        columns.extend(layers.map(|layer| Column::number(format!("{whose}: {layer}"))));
    }
    let mut overhead = Table::new("Octets of headers, 20 kbit/s, MTU 128", columns);
    for (service, size) in
        Service::PUBLISHED.into_iter().flat_map(|service| [(service, 10), (service, 1_000)])
    {
        let cells = [Options::Lean, Options::Default].map(|options| cell(service, Link::Slow, options, size));
        let mut row = vec![Field::text(service.name()), Field::integer(size)];
        match published::overhead(&cells[0]) {
            Some(of) => {
                row.extend([of.ip, of.transport, of.application].map(|octets| Field::number(octets, 0)))
            }
            None => row.extend([Field::Empty, Field::Empty, Field::Empty]),
        }
        for cell in cells {
            let served = measured.of(&cell);
            row.push(count(served, |of| of.octets.ip));
            row.push(count(served, |of| of.octets.transport));
            row.push(count(served, |of| of.octets.application));
        }
        overhead.row(row);
    }
    let note = "Medians; in brackets the range, where counts differ, or times by more than 1 %. Packets and octets include the end of the \
        connection.";
    let columns = ["theirs, %", "ours"].map(Column::number);
    let mut shares =
        Table::new("What the paper concludes", std::iter::once(Column::text("share")).chain(columns));
    for conclusion in &CONCLUSIONS {
        let number = |value: Option<f64>| value.map_or(Field::Empty, |value| Field::number(value, 0));
        shares.row([
            Field::text(conclusion.what),
            number(conclusion.theirs()),
            number(conclusion.ours(measured)),
        ]);
    }
    let shares = shares.note(
        "Lean options. The paper says that lean forms take 50 to 75 % less time, that CoAP and IoT-HTTP are comparable at 250 kbit/s, \
            and that a larger MTU saves octets.",
    );
    Section::new("The paper's tables").table(totals.note(note)).table(overhead).table(shares)
}

/// The matrix over one link.
fn of_link(measured: &Measured, link: Link) -> Option<Section> {
    let sizes: Vec<usize> = SIZES
        .into_iter()
        .filter(|&size| {
            Service::PUBLISHED
                .iter()
                .any(|&service| measured.of(&cell(service, link, Options::Lean, size)).is_some())
        })
        .collect();
    if sizes.is_empty() {
        return None;
    }
    let table = |title: &str, of: fn(Option<&Served>) -> Field| {
        let mut columns = vec![Column::text("service"), Column::text("options")];
        columns.extend(sizes.iter().map(|size| Column::number(format!("{size} B"))));
        let mut table = Table::new(title, columns);
        for (service, options) in Service::PUBLISHED
            .into_iter()
            .flat_map(|service| [Options::Lean, Options::Default].map(|options| (service, options)))
        {
            let fields = sizes.iter().map(|&size| of(measured.of(&cell(service, link, options, size))));
            let names = [service.name(), options.name()].map(Field::text);
            table.row(names.into_iter().chain(fields));
        }
        table
    };
    let figure = |title: &str, axis: Axis, of: fn(&Served) -> Option<Range>| {
        let lines = Lines::new(Axis::new("object").unit("octets"), axis);
        let lines = Service::PUBLISHED.into_iter().fold(lines, |lines, service| {
            let points = sizes.iter().filter_map(|&size| {
                let range = of(measured.of(&cell(service, link, Options::Lean, size))?)?;
                Some((size as f64, range.median))
            });
            lines.series(Series::new(service.name(), points))
        });
        Figure::new(format!("{title}, {}", link.what()), lines).note("Lean options; medians.")
    };
    let octets = |served: &Served| served.range(|of| Some(of.total() as f64));
    Some(
        Section::new(format!("Over {}", link.what()))
            .figure(figure("Object download time", Axis::new("time").unit("ms"), Served::time))
            .figure(figure("Octets of an exchange", Axis::new("octets on the link"), octets))
            .table(table("Object download time, ms", time))
            .table(table("Octets of all packets", |served| count(served, Exchange::total)))
            .table(table("Packets", |served| count(served, |of| of.packets)))
            .table(table("Time before the request, % of the download", |served| {
                let share = served.and_then(|served| served.range(|of| of.set_up_share()));
                share.map_or(Field::Empty, |share| Field::number(share.median * 100.0, 0))
            })),
    )
}

/// A line for each cell that is there.
fn listed<'m>(title: &str, cells: impl Iterator<Item = &'m Served>) -> Table {
    let mut columns = ["service", "link", "options"].map(Column::text).to_vec();
    let numbers =
        ["object", "time, ms", "packets", "octets", "IP", "UDP, TCP", "service", "again", "set-up, %"];
    columns.extend(numbers.map(Column::number));
    let mut table = Table::new(title, columns);
    for served in cells {
        let Cell { service, link, options, size, temper } = served.cell;
        let temper = if temper == Temper::Cold { ", first contact" } else { "" };
        let names = [service.name().to_owned(), link.id().to_owned(), format!("{}{temper}", options.name())];
        let served = Some(served);
        let share = served.and_then(|served| served.range(|of| of.set_up_share()));
        let numbers = [
            Field::integer(size),
            time(served),
            count(served, |of| of.packets),
            count(served, Exchange::total),
            count(served, |of| of.octets.ip),
            count(served, |of| of.octets.transport),
            count(served, |of| of.octets.application),
            count(served, |of| of.again),
            share.map_or(Field::Empty, |share| Field::number(share.median * 100.0, 0)),
        ];
        table.row(names.map(Field::text).into_iter().chain(numbers));
    }
    table
}

fn others(measured: &Measured) -> Section {
    let is_other = |served: &&Served| Service::OTHERS.contains(&served.cell.service);
    Section::new("Other services")
        .text("MQTT publishes the object: its time is that until the acknowledgment of QoS 1.")
        .table(listed("Services that the paper does not have", measured.served.iter().filter(is_other)))
}

fn of_http3(measured: &Measured) -> Section {
    let is_of_it = |served: &&Served| served.cell.service == Service::Http3;
    let mut table = listed("HTTP/3, full handshake and 0-RTT", measured.served.iter().filter(is_of_it));
    for cell in http3::impossible() {
        let names = [cell.service.name(), cell.link.id(), ""].map(Field::text);
        table.row(names.into_iter().chain([Field::integer(cell.size), Field::text("MTU too small")]));
    }
    Section::new("HTTP/3")
        .text(
            "What is said is encrypted: the time is by the clock of the client, from the connect to the last octet of the object, and all \
                above UDP counts as the service's header. First contact: with certificate and handshake. Otherwise the same \
                client had a connection before, and resumes its session: the request is in the first datagram (0-RTT, RFC 9001). A \
                first datagram has 1,200 octets, either way, so that an MTU of 128 carries none (RFC 9000, section 14).",
        )
        .table(table)
}

fn fast_open(measured: &Measured) -> Section {
    let is_of_it = |served: &&Served| {
        let cell = served.cell;
        cell.service.has_cookie() && matches!(cell.size, 10 | 1_000)
    };
    let mut cells: Vec<&Served> = measured.served.iter().filter(is_of_it).collect();
    cells.sort_by_key(|served| {
        let Cell { service, link, options, size, temper } = served.cell;
        (service, link, size, options, temper)
    });
    Section::new("Fast Open")
        .text(
            "At first contact a client asks for a cookie, and sends its request when the handshake is done (RFC 7413, section \
                4.1.2). From then on the request is in the SYN, as far as it fits. Without cookies it is from the beginning, \
                and options of 12 octets are saved; whoever sends a SYN then makes the server answer to an address that it \
                has not proven to be its own.",
        )
        .table(listed("First contact, with a cookie, without cookies", cells.into_iter()))
}

/// IPv6 over short frames.
fn framed(measured: &Measured) -> Section {
    let mut columns = vec![Column::text("service"), Column::text("headers"), Column::number("object")];
    let numbers = ["time, ms", "IP packets", "octets", "frames", "octets"];
    columns.extend(numbers.map(Column::number));
    let mut table = Table::new("IPv6 over 20 kbit/s in frames of 128 octets, lean options", columns);
    for served in measured.served.iter().filter(|served| served.cell.link.is_ipv6()) {
        let some = Some(served);
        table.row([
            Field::text(served.cell.service.name()),
            Field::text(if served.cell.link == Link::Iphc { "IPHC" } else { "as they are" }),
            Field::integer(served.cell.size),
            time(some),
            count(some, |of| of.packets),
            count(some, Exchange::total),
            range(some, served.of_link(|of| of.frames), 0),
            range(some, served.of_link(|of| of.frame_octets), 0),
        ]);
    }
    Section::new("An MTU below that of IPv6")
        .text(
            "IPv6 has no packets of less than 1,280 octets to fragment to: below IP, packets are cut into frames with the headers of RFC \
                4944, section 5.3. The request fits into the SYN, so that all of IoT-SPDY is there; an object of 1,000 octets \
                is one segment, with one acknowledgment. LOWPAN_IPHC (RFC 6282) takes headers of IPv6 and UDP, in the best case: addresses \
                are made of those of the link. It has nothing for TCP.",
        )
        .table(table)
}

fn compressed(measured: &Measured) -> Section {
    let mut columns = vec![Column::text("service")];
    columns.extend(
        ["octets: first", "from exchange 20", "at most", "without ROHC", "%", "ms", "without ROHC"]
            .map(Column::number),
    );
    let mut table =
        Table::new("Exchanges of 10 octets over ROHC, octets on the link and download time", columns);
    for of in &measured.compressed {
        let number = |value: Option<f64>| value.map_or(Field::Empty, |value| Field::number(value, 0));
        table.row([
            Field::text(of.what()),
            of.first().map_or(Field::Empty, Field::integer),
            number(of.octets().map(|range| range.median)),
            number(of.octets().map(|range| range.max)),
            number(of.plain().map(|range| range.median)),
            number(of.share().map(|share| share * 100.0)),
            of.time().map_or(Field::Empty, |time| Field::number(time.median, 1)),
            time(measured.of(&of.without())),
        ]);
    }
    Section::new("Over ROHC")
        .text(
            "`thinair link run --rohc --mode o --profiles v1,tcp,coap`: 20 kbit/s, MTU 128, lean options. All packets of an \
                exchange, and feedback. Each exchange of a TCP service is a new connection, for which a new context is made.",
        )
        .table(table)
}

/// What the runs had in common, and how far they can be trusted.
fn settings(measured: &Measured, scale: Scale) -> Section {
    let mut table = Table::new(
        "/proc/sys/net/ipv4 of both hosts",
        std::iter::once(Column::text("")).chain(Options::ALL.map(|options| Column::text(options.name()))),
    );
    let columns = Options::ALL.map(Options::sysctls);
    for (at, (name, _)) in columns[0].iter().enumerate() {
        table.row(std::iter::once(Field::text(*name)).chain(columns.map(|column| Field::text(column[at].1))));
    }
    let runs: usize = measured.served.iter().map(|served| served.samples.len()).sum();
    let late =
        measured.served.iter().flat_map(|served| &served.samples).filter(|sample| sample.late_ns > 1_000_000);
    let late = late.count();
    let repeated: usize = measured.served.iter().map(|served| served.repeated).sum();
    let latest = measured.latest().unwrap_or(0) as f64 / 1e3;
    Section::new("Settings")
        .table(table)
        .text(format!(
            "Congestion control is cubic, by the routes. {runs} exchanges count, {} of each cell. The link was at most {latest:.0} us \
                late in them; {late} of them had a packet more than 1 ms late, and {repeated} more were repeated for that. The host of \
                this machine gave {:.1} % of its time to others.",
            scale.runs,
            measured.stolen * 100.0
        ))
}

/// The time of a cell.
fn time(served: Option<&Served>) -> Field {
    range(served, served.and_then(Served::time), 1)
}

/// A count of it.
fn count(served: Option<&Served>, of: fn(&Exchange) -> u64) -> Field {
    range(served, served.and_then(|served| served.range(|exchange| Some(of(exchange) as f64))), 0)
}

fn range(served: Option<&Served>, range: Option<Range>, decimals: usize) -> Field {
    let Some(served) = served else { return Field::Empty };
    let unfinished = match served.unfinished() {
        0 => String::new(),
        some => format!(", {some} of {} did not finish", served.samples.len()),
    };
    match range {
        None => Field::text("did not finish"),
        Some(range) => Field::text(format!("{}{unfinished}", text(range, decimals))),
    }
}

/// The median, and the range where there is one that matters.
pub(super) fn text(Range { median, min, max }: Range, decimals: usize) -> String {
    let is_range = if decimals > 0 { max - min > median / 100.0 } else { max > min };
    if is_range {
        format!("{median:.decimals$} [{min:.decimals$}–{max:.decimals$}]")
    } else {
        format!("{median:.decimals$}")
    }
}
