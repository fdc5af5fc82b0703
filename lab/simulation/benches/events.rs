//! Events and exchanges per second that the simulation processes on one core.
//!
//! The flow of `thinair-lab paper run coap-latency`: a client and a server, which encode and decode every message, with
//! their IPv4 and UDP headers and checksums, on GPRS without added loss; RFC 7252, requests that do not wait for each
//! other. An event is one entry of the queue. The output is the best of five rounds, by the CPU time of the process.
//!
//! `cargo bench -p thinair-simulation --bench events`; `-- RUNS` sets the runs of 100 exchanges per round, 1,000 by
//! default.

use std::time::Duration;

use thinair_coap::congestion::{Algorithm, Transmission};
use thinair_coap::{Config, Request, Timing};
use thinair_link::preset::GPRS;
use thinair_os::clock;
use thinair_simulation::network::{MessageTransport, RequestPace, Requests, Scenario};
use thinair_wire::time::Instant;

fn scenario() -> Scenario {
    Scenario {
        model: GPRS.model,
        rohc: None,
        clients: 1,
        transport: MessageTransport::Udp { protection: 0 },
        config: Config {
            timing: Timing {
                congestion: Algorithm::Rfc7252,
                transmission: Transmission { nstart: 100, ..Transmission::default() },
                ..Timing::default()
            },
            ..Config::default()
        },
        requests: Requests {
            request: Request::get("/tmp"),
            count: 100,
            start: Instant::from_millis(5_000),
            pace: RequestPace::Open { interval: Duration::from_micros(100_700) },
        },
        spread: Duration::ZERO,
        content: 23,
        stepping: false,
        download: None,
        download_octets: None,
        warm_up: 0,
        pause: None,
        end: Instant::from_millis(3_600_000),
    }
}

fn main() {
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000);
    let scenario = scenario();
    let mut best = [0.0_f64; 2];
    for _ in 0..5 {
        let before = clock::of_this_process();
        let (mut events, mut exchanges) = (0, 0);
        for run in 0..runs {
            let outcome = scenario.run(1, run);
            events += outcome.events;
            exchanges += outcome.clients.iter().map(|client| client.took().count()).sum::<usize>();
        }
        let took = (clock::of_this_process() - before).as_secs_f64();
        let rates = [events as f64 / took, exchanges as f64 / took];
        println!(
            "{:.0} events/s, {:.0} exchanges/s, {:.1} events an exchange",
            rates[0],
            rates[1],
            rates[0] / rates[1]
        );
        best = [best[0].max(rates[0]), best[1].max(rates[1])];
    }
    println!(
        "best: {:.0} events/s (at least 2,000,000), {:.0} exchanges/s (at least 100,000)",
        best[0], best[1]
    );
}
