//! Tests without network.

use thinair_analyze::exchange::Exchange;

use super::cell::{KernelOptions, Temper, TransportLink, TransportService};
use super::*;

fn served(service: TransportService, downloads: &[Option<u64>]) -> Served {
    let cell = TransportCell {
        service,
        link: TransportLink::Slow,
        options: KernelOptions::Lean,
        size: 10,
        temper: Temper::Warm,
    };
    let sample = |download: &Option<u64>| ExchangeSample {
        exchange: Exchange { packets: 2, download_ns: *download, ..Exchange::default() },
        ..ExchangeSample::default()
    };
    Served { cell, samples: downloads.iter().map(sample).collect(), repeated: 0 }
}

/// Rows of the measurements.
fn rows(measured: &TransportMeasurements) -> Vec<crate::FigureRow> {
    let (form, published) = PAPER.read().expect("it is written well");
    let (plan, mut figures) = (RunPlan::default(), Figures::default());
    let run = PaperRun { plan: &plan, form: &form, published: &published, progress: &|_, _| Ok(()) };
    measured.put(&run, FULL, &mut figures).expect("it has all variables");
    form.findings(figures, &published, false).expect("it is written well").rows
}

fn row<'r>(rows: &'r [crate::FigureRow], id: &str) -> Option<&'r crate::FigureRow> {
    rows.iter().find(|row| row.id() == id)
}

#[test]
fn medians_are_of_runs_that_finished_and_the_others_are_counted() {
    let of = served(TransportService::Coap, &[Some(90_000_000), None, Some(72_000_000), Some(74_000_000)]);
    assert_eq!(of.time(), Some(Range { median: 74.0, min: 72.0, max: 90.0 }));
    let measured = TransportMeasurements { served: vec![of], ..TransportMeasurements::default() };
    let rows = rows(&measured);
    assert_eq!(row(&rows, "coap/20k/128/10/unfinished").and_then(crate::FigureRow::ours), Some(1.0));
    let time = row(&rows, "coap/20k/128/10/odt");
    assert_eq!(time.map(|row| (row.ours(), row.stated(), row.met())), Some((Some(74.0), Some(80.0), true)));
}

#[test]
fn what_never_finished_misses_its_bar() {
    let measured = TransportMeasurements {
        served: vec![served(TransportService::IotHttp, &[None, None])],
        ..TransportMeasurements::default()
    };
    let rows = rows(&measured);
    let packets = row(&rows, "iot-http/20k/128/10/packets");
    assert_eq!(packets.map(|row| (row.ours(), row.met())), Some((None, false)));
}

#[test]
fn without_real_time_there_is_virtual_time_and_it_says_so() {
    let plan = RunPlan { quick: true, ..RunPlan::default() };
    let [first, second] = [1, 2].map(|threads| {
        let findings = PAPER.run(&RunPlan { threads, ..plan.clone() }, &|_, _| Ok(()));
        findings.map(|findings| (findings.rows, findings.left_out.join("")))
    });
    let Ok((rows, why)) = first else { panic!("it runs") };
    assert!(why.contains("real time"), "{why}");
    assert_eq!(second.ok().map(|(rows, _)| rows), Some(rows.clone()));
    let ours = |id: &str| row(&rows, id).and_then(crate::FigureRow::ours);
    // Packets of the paper, with a shorter header.
    assert_eq!(ours("virtual/iot-http/20k/128/10/packets"), Some(6.0));
    assert_eq!(ours("virtual/iot-http/20k/128/10/octets"), Some(384.0 - 106.0 + 39.0));
    // Octets that ROHC saves also save time, under every service.
    for (service, size) in ["coap", "http", "iot-http", "iot-spdy"]
        .into_iter()
        .flat_map(|service| [(service, 10), (service, 1_000)])
    {
        for figure in ["octets", "mean"] {
            let [plain, u, o] = ["plain", "u", "o"]
                .map(|below| ours(&format!("virtual/{service}/20k/128/{size}/rohc/{below}/clean/{figure}")));
            assert!(plain.is_some() && u < plain && o < plain, "{service} {size} {figure}");
        }
    }
    // A later object costs less than the first one, and its costs are nearer to CoAP's.
    for service in ["coap-tcp", "http", "iot-spdy"] {
        let [first, next] = ["first", "next"]
            .map(|which| ours(&format!("virtual/{service}/20k/128/10/kept/plain/{which}/odt")));
        assert!(next.is_some() && next < first, "{service}");
    }
    assert_eq!(ours("virtual/http/20k/128/10/kept/plain/next/packets"), Some(3.0));
    // OSCORE has no handshake, and 25 octets more than CoAP without protection.
    for which in ["first", "next"] {
        let octets = ["coap", "coap-oscore"]
            .map(|service| ours(&format!("virtual/{service}/20k/128/10/kept/plain/{which}/octets")));
        assert_eq!(octets, [Some(80.0), Some(105.0)], "{which}");
    }
    assert_eq!(ours("virtual/rohc/u/altered"), Some(0.0));
    assert_eq!(ours("virtual/rohc/o/altered"), Some(0.0));
    assert!(ours("virtual/rohc/o/compared") > Some(10_000.0));
    // The response arrives with the SYN-ACK, and nothing follows.
    assert_eq!(ours("virtual/iot-spdy/20k/128/10/packets/best"), Some(4.0));
    // As in docs/transports.md; libnghttp2 1.52 produces as many octets of this request by HPACK.
    let blocks = ["http1", "spdy", "iot-spdy", "hpack", "qpack"]
        .map(|codec| ours(&format!("headers/{codec}/first/request")).unwrap_or(0.0));
    assert_eq!(blocks, [41.0, 71.0, 65.0, 18.0, 20.0]);
}
