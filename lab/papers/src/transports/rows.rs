//! Every figure, beside the paper's and its bar.

use super::cell::{Cell, Link, Options, Service, Temper};
use super::{Measured, Range, Served, published};
use crate::row::{Bar, Row};

/// Of all that was measured.
pub(super) fn rows(measured: &Measured) -> Vec<Row> {
    let mut rows: Vec<Row> = measured.served.iter().flat_map(of_served).collect();
    rows.extend(super::http3::rows());
    rows.push(Row::new(
        "late/max",
        "how late the link delivered a packet of a run that counts, at most",
        "us",
        measured.latest().map(|nanos| nanos as f64 / 1e3),
    ));
    rows.extend(measured.compressed.iter().flat_map(super::rohc::rows));
    rows.extend(measured.kept.iter().flat_map(super::kept::real_rows));
    rows.extend(CONCLUSIONS.iter().map(|conclusion| conclusion.row(measured)));
    rows
}

/// What the paper concludes, as a share: a figure of one cell, in percent of that of another one. All with lean options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conclusion {
    id: &'static str,
    pub(super) what: &'static str,
    figure: Figure,
    of: (Service, Link, usize),
    to: (Service, Link, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Time,
    Octets,
}

/// The object that the paper's tables are about.
const TEN: usize = 10;

pub(super) const CONCLUSIONS: [Conclusion; 7] = [
    Conclusion {
        id: "time/iot-http/http",
        what: "time of IoT-HTTP in that of HTTP, 20 kbit/s",
        figure: Figure::Time,
        of: (Service::IotHttp, Link::Slow, TEN),
        to: (Service::Http, Link::Slow, TEN),
    },
    Conclusion {
        id: "time/iot-http/spdy",
        what: "time of IoT-HTTP in that of SPDY, 20 kbit/s",
        figure: Figure::Time,
        of: (Service::IotHttp, Link::Slow, TEN),
        to: (Service::Spdy, Link::Slow, TEN),
    },
    Conclusion {
        id: "time/iot-spdy/http",
        what: "time of IoT-SPDY in that of HTTP, 20 kbit/s",
        figure: Figure::Time,
        of: (Service::IotSpdy, Link::Slow, TEN),
        to: (Service::Http, Link::Slow, TEN),
    },
    Conclusion {
        id: "time/iot-spdy/spdy",
        what: "time of IoT-SPDY in that of SPDY, 20 kbit/s",
        figure: Figure::Time,
        of: (Service::IotSpdy, Link::Slow, TEN),
        to: (Service::Spdy, Link::Slow, TEN),
    },
    Conclusion {
        id: "time/iot-http/coap/250k",
        what: "time of IoT-HTTP in that of CoAP, 250 kbit/s",
        figure: Figure::Time,
        of: (Service::IotHttp, Link::Fast, TEN),
        to: (Service::Coap, Link::Fast, TEN),
    },
    Conclusion {
        id: "octets/http/mtu",
        what: "octets of HTTP with an MTU of 1,280 in those with 128, 1,000 octets",
        figure: Figure::Octets,
        of: (Service::Http, Link::Wide, 1_000),
        to: (Service::Http, Link::Fast, 1_000),
    },
    Conclusion {
        id: "octets/spdy/mtu",
        what: "octets of SPDY with an MTU of 1,280 in those with 128, 1,000 octets",
        figure: Figure::Octets,
        of: (Service::Spdy, Link::Wide, 1_000),
        to: (Service::Spdy, Link::Fast, 1_000),
    },
];

impl Conclusion {
    const fn cell((service, link, size): (Service, Link, usize)) -> Cell {
        Cell { service, link, options: Options::Lean, size, temper: Temper::Warm }
    }

    /// In percent.
    pub(super) fn ours(&self, measured: &Measured) -> Option<f64> {
        let figure = |cell| {
            let served = measured.of(&Self::cell(cell))?;
            let range = match self.figure {
                Figure::Time => served.time(),
                Figure::Octets => served.range(|of| Some(of.total() as f64)),
            };
            Some(range?.median)
        };
        Some(figure(self.of)? / figure(self.to)? * 100.0)
    }

    /// In percent, where the paper has both figures.
    pub(super) fn theirs(&self) -> Option<f64> {
        let [of, to] = [self.of, self.to].map(|cell| published::totals(&Self::cell(cell)));
        match self.figure {
            Figure::Time => Some(of?.odt / to?.odt * 100.0),
            Figure::Octets => Some(of?.octets / to?.octets * 100.0),
        }
    }

    fn row(&self, measured: &Measured) -> Row {
        Row::new(format!("share/{}", self.id), self.what, "%", self.ours(measured)).theirs(self.theirs())
    }
}

/// The range around a figure of the paper that a run of today's programs must meet.
const fn about(figure: f64) -> Bar {
    Bar { min: Some(figure * 0.9), max: Some(figure * 1.1) }
}

const fn exactly(figure: f64) -> Option<Bar> {
    Some(Bar { min: Some(figure), max: Some(figure) })
}

const fn at_most(figure: f64) -> Option<Bar> {
    Some(Bar { min: None, max: Some(figure) })
}

/// The bar of a figure. All are of 10 octets over 20 kbit/s with an MTU of 128.
fn bar(cell: &Cell, figure: &str) -> Option<Bar> {
    if cell.link != Link::Slow || cell.size != 10 || cell.temper != Temper::Warm {
        return None;
    }
    match (cell.service, cell.options, figure) {
        (Service::Coap | Service::CoapOurs, Options::Lean, "packets") => at_most(2.0),
        (Service::Coap | Service::CoapOurs, Options::Lean, "octets" | "odt") => at_most(80.0),
        // The configuration of the paper, as its octets tell it.
        (Service::IotHttp, Options::Lean, "packets") => exactly(6.0),
        (Service::IotHttp, Options::Lean, "overhead/ip") => exactly(120.0),
        (Service::IotHttp, Options::Lean, "overhead/transport") => exactly(148.0),
        // Ours: either six packets, or five.
        (Service::IotHttp, Options::Cookieless, "packets") => at_most(6.0),
        (Service::IotHttp, Options::Cookieless, "octets") => at_most(297.0),
        (Service::IotHttp, Options::Cookieless, "odt") => at_most(112.0),
        (Service::IotHttpHeld, Options::Cookieless, "packets") => at_most(5.0),
        (Service::IotHttpHeld, Options::Cookieless, "octets") => at_most(269.0),
        (Service::IotHttpHeld, Options::Cookieless, "odt") => at_most(117.0),
        (Service::IotSpdy, Options::Lean, "packets") => at_most(7.0),
        (Service::IotSpdy, Options::Lean, "octets") => at_most(440.0),
        (Service::IotSpdy, Options::Lean, "odt") => at_most(226.0),
        // The paper does not say which options its hosts had for these; both are printed.
        (Service::Http, Options::Lean, "octets") => Some(about(1_546.0)),
        (Service::Spdy, Options::Default, "octets") => Some(about(1_382.0)),
        _ => None,
    }
}

fn of_served(served: &Served) -> Vec<Row> {
    let cell = &served.cell;
    let (totals, overhead) = (published::totals(cell), published::overhead(cell));
    let row = |figure: &str, words: &str, unit, ours: Option<f64>, theirs: Option<f64>| {
        let row = Row::new(cell.id(figure), format!("{}: {words}", cell.what()), unit, ours).theirs(theirs);
        match bar(cell, figure) {
            Some(bar) => row.within(bar),
            None => row,
        }
    };
    let median = |range: Option<Range>| range.map(|range| range.median);
    let octets = |of: fn(&thinair_analyze::exchange::Exchange) -> u64| {
        median(served.range(|exchange| Some(of(exchange) as f64)))
    };
    let theirs = |of: fn(&published::Overhead) -> f64| overhead.as_ref().map(of);
    let mut rows = vec![
        row("packets", "IP packets", "", octets(|of| of.packets), totals.map(|totals| totals.packets)),
        row(
            "octets",
            "octets of IP packets",
            "octets",
            octets(|of| of.total()),
            totals.map(|totals| totals.octets),
        ),
        row("odt", time_of(cell), "ms", median(served.time()), totals.map(|totals| totals.odt)),
        row("overhead/ip", "IP headers", "octets", octets(|of| of.octets.ip), theirs(|of| of.ip)),
        row(
            "overhead/transport",
            "UDP or TCP headers",
            "octets",
            octets(|of| of.octets.transport),
            theirs(|of| of.transport),
        ),
        row(
            "overhead/application",
            "headers of the service",
            "octets",
            octets(|of| of.octets.application),
            theirs(|of| of.application),
        ),
        row("again", "packets with nothing new", "", octets(|of| of.again), None),
    ];
    if cell.service.is_download() {
        let share = served.range(|of| of.set_up_share().map(|share| share * 100.0));
        rows.push(row("set-up", "share of the time before the request", "%", median(share), None));
    }
    if cell.link.is_ipv6() {
        rows.push(row("frames", "frames on the link", "", median(served.of_link(|of| of.frames)), None));
        let octets = median(served.of_link(|of| of.frame_octets));
        rows.push(row("frame-octets", "octets of frames", "octets", octets, None));
    }
    let unfinished = served.unfinished();
    if unfinished > 0 {
        rows.push(row("unfinished", "runs that did not finish", "", Some(unfinished as f64), None));
    }
    if cell.link == Link::Slow && cell.service.is_steady() {
        let spread = |of: fn(&thinair_analyze::exchange::Exchange) -> u64| {
            served.range(|exchange| Some(of(exchange) as f64)).map(|range| range.max - range.min)
        };
        let both =
            spread(|of| of.packets).zip(spread(|of| of.total())).map(|(packets, octets)| packets + octets);
        let words = "by how much packets and octets differ between runs";
        rows.push(row("spread", words, "", both, None).at_most(0.0));
    }
    rows
}

/// What is measured of its time.
pub(super) fn time_of(cell: &Cell) -> &'static str {
    if cell.service.is_download() { "object download time" } else { "until the acknowledgment has come" }
}
