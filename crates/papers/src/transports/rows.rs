//! Every figure, beside the paper's and its bar.

use super::cell::{Cell, Link, Options, Service, Temper};
use super::{Measured, Range, Served, published};
use crate::row::{Bar, Row};

/// Of all that was measured.
pub(super) fn rows(measured: &Measured) -> Vec<Row> {
    let mut rows: Vec<Row> = measured.served.iter().flat_map(of_served).collect();
    rows.push(Row::new(
        "late/max",
        "how late the link delivered a packet of a run that counts, at most",
        "us",
        measured.latest().map(|nanos| nanos as f64 / 1e3),
    ));
    rows.extend(measured.compressed.iter().flat_map(super::rohc::rows));
    rows
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
    if cell.link == Link::Frames {
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
