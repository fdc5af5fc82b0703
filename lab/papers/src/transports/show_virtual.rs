//! The part in virtual time as tables and plots.

use thinair_lab::network::fetch::{Service, Stack};
use thinair_report::{Axis, Cell as Field, Column, Figure, Lines, Section, Series, Table};

use super::cell::{self, Cell, Link, Options, SIZES, Temper};
use super::virtual_time::{CROWDS, Exact, HARMS, Many, QUEUES, SERVICES, Virtual, What, what};
use super::{Measured, Range};

pub(super) fn sections(of: &Virtual, measured: &Measured) -> Vec<Section> {
    vec![exact(of, measured), harmed(of), crowds(of)]
}

impl Virtual {
    fn exact(&self, service: Service, link: Link, size: usize, stack: Stack, thins: bool) -> Option<&Exact> {
        let is_it = |of: &&Exact| {
            (of.service, of.link, of.size, of.stack, of.thins) == (service, link, size, stack, thins)
        };
        self.exact.iter().find(is_it)
    }

    fn many(&self, service: Service, size: usize, what: What) -> Option<&Many> {
        self.many.iter().find(|many| (many.service, many.size, many.what) == (service, size, what))
    }
}

/// What was measured in real time of the same exchange.
fn real(measured: &Measured, service: Service, link: Link, size: usize) -> Option<Range> {
    let service = match service {
        Service::Coap => cell::Service::Coap,
        Service::CoapTcp => cell::Service::CoapTcp,
        Service::Http => cell::Service::HttpOurs,
        Service::IotHttp => cell::Service::IotHttp,
        Service::IotSpdy => cell::Service::IotSpdy,
    };
    measured.of(&Cell { service, link, options: Options::Lean, size, temper: Temper::Warm })?.time()
}

fn exact(of: &Virtual, measured: &Measured) -> Section {
    let mut columns = vec![Column::text("service"), Column::text("link"), Column::number("object")];
    let stacks = ["as kernels", "fewer ACKs", "at best"];
    columns.push(Column::number("measured, ms"));
    columns.extend(stacks.map(|stack| Column::number(format!("{stack}, ms"))));
    columns.extend(stacks.map(|stack| Column::number(format!("{stack}, packets"))));
    columns.extend(stacks.map(|stack| Column::number(format!("{stack}, octets"))));
    let mut table = Table::new("One exchange, to the bit", columns);
    for (link, service, size) in Link::PUBLISHED.into_iter().flat_map(|link| {
        SERVICES.into_iter().flat_map(move |service| [(link, service, 10), (link, service, 1_000)])
    }) {
        let ways = [(Stack::Kernel, false), (Stack::Kernel, true), (Stack::Best, false)];
        let ways = ways.map(|(stack, thins)| of.exact(service, link, size, stack, thins));
        let mut row = vec![Field::text(what(service)), Field::text(link.id()), Field::integer(size)];
        let real = real(measured, service, link, size);
        row.push(real.map_or(Field::Empty, |time| Field::number(time.median, 1)));
        let field = |of: Option<&Exact>, field: &dyn Fn(&Exact) -> Option<Field>| {
            of.and_then(field).unwrap_or(Field::Empty)
        };
        row.extend(ways.map(|way| {
            field(way, &|of| of.fetched.took.map(|took| Field::number(took.as_secs_f64() * 1e3, 1)))
        }));
        row.extend(ways.map(|way| field(way, &|of| Some(Field::integer(of.fetched.packets.len())))));
        row.extend(ways.map(|way| field(way, &|of| Some(Field::integer(of.fetched.total())))));
        table.row(row);
    }
    let lines = Lines::new(Axis::new("object").unit("octets"), Axis::new("time").unit("ms"));
    let lines = SERVICES.into_iter().fold(lines, |lines, service| {
        let points = SIZES.into_iter().filter_map(|size| {
            let took = of.exact(service, Link::Slow, size, Stack::Best, false);
            let took = took.or_else(|| of.exact(service, Link::Slow, size, Stack::Kernel, false));
            Some((size as f64, took?.fetched.took?.as_secs_f64() * 1e3))
        });
        lines.series(Series::new(what(service), points))
    });
    Section::new("In virtual time")
        .text(
            "The engines of `thinair-lab fetch` and `thinair-lab serve` over our TCP. As kernels: a SYN takes no more than 48 octets at an MTU of \
                128, and the SYN-ACK goes before the application has seen the request. At best, as RFC 7413 allows: without a cookie, the SYN is filled, \
                and the response rides in the SYN-ACK. Fewer ACKs: every second segment from the beginning on. Measured: the same \
                exchange in real time, with lean options.",
        )
        .figure(Figure::new(format!("Object download time at best, {}", Link::Slow.what()), lines))
        .table(table)
}

fn harmed(of: &Virtual) -> Section {
    let sizes = [10, 1_000];
    let mut columns = ["what happens", "service"].map(Column::text).to_vec();
    for size in sizes {
        columns.extend(
            ["came, %", "median, ms", "mean"].map(|what| Column::number(format!("{size} B: {what}"))),
        );
    }
    let mut table = Table::new("Objects over 20 kbit/s, MTU 128", columns);
    for (harm, service) in HARMS.into_iter().flat_map(|harm| SERVICES.map(|service| (harm, service))) {
        let names = [harm.what(), what(service).to_owned()].map(Field::text);
        let sizes = sizes.into_iter().flat_map(|size| fields(of.many(service, size, What::Harmed(harm))));
        table.row(names.into_iter().chain(sizes));
    }
    Section::new("Bit errors and bursts")
        .text(
            "Frames with a wrong bit are dropped; bursts are three frames on average (Gilbert). An object of 1,000 octets goes by CoAP \
                in ten fragments of IP, of which each must arrive: one that is lost costs all ten, after 2 to 3 s, so that CoAP is \
                behind HTTP from a bit error rate of 1e-4 on. TCP sends what was lost, and that alone. For 10 octets CoAP has two \
                packets that can be lost and a first timeout of 2 to 3 s, where TCP has more packets and begins with 1 s.",
        )
        .table(table)
}

fn crowds(of: &Virtual) -> Section {
    let mut columns = vec![Column::number("queue"), Column::text("service")];
    for clients in CROWDS {
        columns.extend(
            ["came, %", "median, ms", "mean"].map(|what| Column::number(format!("{clients}: {what}"))),
        );
    }
    let mut table =
        Table::new("Clients that begin within a second, 10 octets each, 20 kbit/s, MTU 128", columns);
    for (queue, service) in QUEUES.into_iter().flat_map(|queue| SERVICES.map(|service| (queue, service))) {
        let names = [Field::integer(queue), Field::text(what(service))];
        let crowds = CROWDS.into_iter();
        let crowds = crowds.flat_map(|clients| fields(of.many(service, 10, What::Crowd { queue, clients })));
        table.row(names.into_iter().chain(crowds));
    }
    Section::new("Crowds")
        .text("One queue in each direction; what finds no room in it is lost. Columns begin with the number of clients.")
        .table(table)
}

/// Share, median and mean.
fn fields(of: Option<&Many>) -> [Field; 3] {
    let Some(of) = of else { return [Field::Empty, Field::Empty, Field::Empty] };
    let time = |value: Option<f64>| value.map_or(Field::Empty, |value| Field::number(value, 0));
    [Field::number(of.share() * 100.0, 1), time(of.median()), time(of.mean())]
}
