//! Comparison of our TCP with the kernel's: equal applications over equal links.

use std::time::Duration;

use thinair_coap::congestion::Transmission;
use thinair_coap::{Config, Request, Timing};
use thinair_emulator::EmulatorError;
use thinair_link::preset::{GPRS, WIFI};
use thinair_link::{Airtime, Direction, LinkModel, LossModel, LossUnit, Probability, Queue, Rate};
use thinair_simulation::kernel::{self, Exchanges};
use thinair_simulation::network::{MessageTransport, RequestPace, Requests, Scenario};
use thinair_simulation::tcp;
use thinair_wire::time::Instant;

/// Time between two requests.
const INTERVAL: Duration = Duration::from_micros(100_700);

/// Size of a download in octets.
pub(crate) const OCTETS: usize = 1_000_000;

/// Loss of downloads in percent.
pub(crate) const LOSSES: [u32; 3] = [0, 1, 3];

/// Least and most of our mean, of the kernel's: for each of [`ACCESSES`], then for each of [`LOSSES`]. Runs of the kernel
/// spread: 200 exchanges took 485 to 505 ms over GPRS, and over WiFi 18.7 to 30.6, 26.3 to 38.5 and 39.9 to 60.0 ms; downloads
/// with 3 % of loss had 950 to 2,957 kbit/s.
pub(crate) const BANDS: [[f64; 2]; 7] =
    [[0.9, 1.1], [0.7, 1.4], [0.7, 1.4], [0.7, 1.4], [0.9, 1.1], [0.7, 1.4], [0.6, 1.6]];

/// Sizes of CoAP over TCP (RFC 8323) with 23 octets of content: GET of "/tmp" with a Token of one octet, and its
/// response.
const REQUEST: usize = 7;
const RESPONSE: usize = 29;

fn base(model: LinkModel<'static>, count: usize) -> Scenario {
    let transmission = Transmission { nstart: 1_000, ..Transmission::default() };
    Scenario {
        model,
        rohc: None,
        clients: 1,
        transport: MessageTransport::Tcp(tcp::TcpConfig::default()),
        config: Config { timing: Timing { transmission, ..Timing::default() }, ..Config::default() },
        requests: Requests {
            request: Request::get("/tmp"),
            count,
            start: Instant::from_millis(2_000),
            pace: RequestPace::Open { interval: INTERVAL },
        },
        spread: Duration::ZERO,
        content: 23,
        stepping: false,
        download: None,
        download_octets: None,
        warm_up: 0,
        pause: None,
        end: Instant::from_millis(600_000),
    }
}

/// Links of exchanges, and their additional loss of responses in percent.
pub(crate) const ACCESSES: [(&str, LinkModel<'static>, u32); 4] =
    [("GPRS", GPRS.model, 0), ("WiFi", WIFI.model, 0), ("WiFi", WIFI.model, 2), ("WiFi", WIFI.model, 5)];

fn with_loss(mut model: LinkModel<'static>, percent: u32) -> LinkModel<'static> {
    if let Some(loss) = Probability::from_percent(percent).filter(|_| percent > 0) {
        (model.b_to_a.loss, model.b_to_a.loss_unit) = (LossModel::Random(loss), LossUnit::Packet);
    }
    model
}

/// Mean duration of our exchanges in ms; packets of A and B.
pub(crate) fn ours_exchanges(model: LinkModel<'static>, loss: u32, count: u32, run: u32) -> (f64, [u64; 2]) {
    let outcome = base(with_loss(model, loss), count as usize).run(1, run);
    let took = outcome.clients[0].mean().map_or(f64::NAN, |mean| mean.as_secs_f64() * 1e3);
    (took, outcome.totals.map(|totals| totals.packets))
}

/// Mean duration of the kernel's exchanges in ms; packets of A and B, and 99th percentile of their lateness in us.
pub(crate) fn theirs_exchanges(
    model: LinkModel<'static>,
    loss: u32,
    count: u32,
    seed: u64,
) -> Result<(f64, [u64; 2], u64), EmulatorError> {
    let plan = Exchanges { request: REQUEST, response: RESPONSE, count, interval: INTERVAL };
    let seen = kernel::exchanges(&with_loss(model, loss), seed, plan)?;
    let sum: Duration = seen.what.iter().sum();
    let late = seen.lateness.percentile(99).unwrap_or(0) / 1_000;
    Ok((sum.as_secs_f64() * 1e3 / f64::from(count), seen.totals.map(|totals| totals.packets), late))
}

/// Link of 4 Mbit/s with 30 ms one-way delay and a queue of 60 packets.
fn lossy(percent: u32) -> LinkModel<'static> {
    let airtime = Rate::from_bps(4_000_000).map_or(Airtime::None, Airtime::Rate);
    let delay = Duration::from_millis(30);
    let one = Direction { airtime, delay, queue: Queue::packets(60), ..Direction::IDEAL };
    let loss = Probability::from_percent(percent).filter(|_| percent > 0);
    let loss = loss.map_or(LossModel::None, LossModel::Random);
    let down = Direction { loss, loss_unit: LossUnit::Packet, ..one };
    LinkModel { a_to_b: one, b_to_a: down, ..LinkModel::default() }
}

/// Goodput of our download in kbit/s.
pub(crate) fn ours_download(percent: u32, run: u32) -> f64 {
    let config = tcp::TcpConfig { receive_buffer: 1 << 20, ..tcp::TcpConfig::default() };
    let outcome = Scenario {
        transport: MessageTransport::Udp { protection: 0 },
        download: Some(config),
        download_octets: Some(OCTETS as u64),
        ..base(lossy(percent), 1)
    }
    .run(1, run);
    goodput(outcome.download_took.unwrap_or(Duration::MAX))
}

/// Goodput of the kernel's download in kbit/s, and 99th percentile of the packets' lateness in us.
pub(crate) fn theirs_download(percent: u32, seed: u64) -> Result<(f64, u64), EmulatorError> {
    let seen = kernel::download(&lossy(percent), seed, OCTETS)?;
    Ok((goodput(seen.what), seen.lateness.percentile(99).unwrap_or(0) / 1_000))
}

fn goodput(took: Duration) -> f64 {
    OCTETS as f64 * 8.0 / 1e3 / took.as_secs_f64()
}
