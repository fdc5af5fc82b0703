//! What needs no network.

use thinair_analyze::exchange::Exchange;

use super::cell::{Link, Options, Service, Temper};
use super::*;

fn served(service: Service, downloads: &[Option<u64>]) -> Served {
    let cell = Cell { service, link: Link::Slow, options: Options::Lean, size: 10, temper: Temper::Warm };
    let sample = |download: &Option<u64>| Sample {
        exchange: Exchange { packets: 2, download_ns: *download, ..Exchange::default() },
        ..Sample::default()
    };
    Served { cell, samples: downloads.iter().map(sample).collect(), repeated: 0 }
}

fn row<'r>(rows: &'r [crate::Row], id: &str) -> Option<&'r crate::Row> {
    rows.iter().find(|row| row.id() == id)
}

#[test]
fn medians_are_of_runs_that_finished_and_the_others_are_counted() {
    let of = served(Service::Coap, &[Some(90_000_000), None, Some(72_000_000), Some(74_000_000)]);
    assert_eq!(of.time(), Some(Range { median: 74.0, min: 72.0, max: 90.0 }));
    let measured = Measured { served: vec![of], ..Measured::default() };
    let rows = rows::rows(&measured);
    assert_eq!(row(&rows, "coap/20k/128/10/unfinished").and_then(crate::Row::ours), Some(1.0));
    let time = row(&rows, "coap/20k/128/10/odt");
    assert_eq!(time.map(|row| (row.ours(), row.stated(), row.met())), Some((Some(74.0), Some(80.0), true)));
}

#[test]
fn what_never_finished_misses_its_bar() {
    let measured = Measured { served: vec![served(Service::IotHttp, &[None, None])], ..Measured::default() };
    let rows = rows::rows(&measured);
    let packets = row(&rows, "iot-http/20k/128/10/packets");
    assert_eq!(packets.map(|row| (row.ours(), row.met())), Some((None, false)));
}

#[test]
fn without_real_time_all_is_left_out_and_says_so() {
    let findings = Transports.run(&Plan { quick: true, ..Plan::default() }, &|_, _| ());
    let left_out = findings.map(|findings| (findings.rows.len(), findings.left_out.join("")));
    assert!(left_out.is_ok_and(|(rows, why)| rows == 0 && why.contains("real time")));
}
