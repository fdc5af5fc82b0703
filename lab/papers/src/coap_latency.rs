//! `coap-latency`: duration of CoAP exchanges over GPRS and WiFi, with loss, beside a download and over TCP; and the
//! effect of congestion control on links with full queues or long delays, and on paths that pause.

use core::time::Duration;

use thinair_coap::congestion::{Algorithm, CocoaConfig, FasorConfig, Rfc6298Config, Transmission};
use thinair_coap::{Config, Limits, Request, Timing};
use thinair_link::preset::{GPRS, GPRS_IDLE_WAKE, WIFI};
use thinair_link::{
    Airtime, CoDelConfig, ConstrainedLink, Discipline, Jitter, LinkEvent, LinkModel, LossModel, LossUnit,
    Probability, Queue, Rate, Side,
};
use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};
use thinair_simulation::network::{MessageTransport, RequestPace, Requests, Scenario};
use thinair_simulation::plan::Sample;
use thinair_simulation::tcp;
use thinair_simulation::{Purpose, RandomStreams, Summary};
use thinair_wire::time::Instant;

use crate::compressed::channel;
use crate::form::{Figures, Named, PaperRun, Vars, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;
use crate::sweep::Samples;

pub(crate) const PAPER: Paper = declared!("coap-latency", "coap_latency", measure);

/// Figures of a run, by their names in ids.
const METRICS: [Named<Sample>; 7] = [
    ("fct", |sample| sample.fct_ms),
    ("crtt", |sample| sample.crtt_ms),
    ("rtr", |sample| sample.rtr_percent),
    ("octets", |sample| sample.octets),
    ("goodput", |sample| sample.goodput_per_s),
    ("transmissions", |sample| sample.transmissions),
    ("given-up", |sample| sample.given_up),
];

/// Requests per flow. Section 2.6.
const REQUESTS: usize = 100;
/// Time between two requests: 9,988 ms of table 1 are 99 intervals and 18 ms.
const INTERVAL: Duration = Duration::from_micros(100_700);
/// NSTART of an open loop: requests do not wait for each other.
const OPEN: u16 = 100;
/// Duration of a crowd's requests, in seconds.
const CROWD_SECONDS: u64 = 300;
/// Capacity of the link in requests per second: 37 octets at 20 kbit/s.
const CAPACITY: f64 = 20_000.0 / (37.0 * 8.0);

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let samples = run.repeat(|cell, seed, number| {
        let mut scenario = scenario(&cell.vars)?;
        if cell.vars.has("pause") {
            pause(&mut scenario, &cell.vars, seed, number)?;
        }
        Ok(Sample::of(&scenario.run(seed, number)))
    })?;
    for (id, of_cell) in samples.iter() {
        for (name, of) in METRICS {
            samples.put(figures, id, name, of);
        }
        if let Some(id) = id.strip_suffix("/steady") {
            figures.put(format!("{id}/worst"), mean(of_cell, |sample| sample.worst_ms));
        }
        // The total has the octets of the previous flow, too, in which this one's context was learned.
        if id.contains("-warm/") {
            figures.put(format!("{id}/octets"), None);
        }
    }
    behind_pauses(run, &samples, figures)?;
    bands(run, &samples, figures)?;
    let mut asleep = GPRS.model;
    asleep.a_to_b.idle_wake = Some(GPRS_IDLE_WAKE);
    for (name, model) in [("gprs", &asleep), ("gprs-awake", &GPRS.model), ("wifi", &WIFI.model)] {
        figures.put(format!("ping/{name}"), ping(model, run.plan.seed));
    }
    figures.put("crowd/capacity", CAPACITY);
    for vars in run.form.all(&["conclusion"])? {
        let of = |name| Ok::<_, PaperError>(figures.value(vars.text(name)?));
        let Some((of, over)) = of("conclusion.of")?.zip(of("conclusion.over")?) else { continue };
        let holds = match vars.opt("conclusion.less") {
            Some(_) => of / over < vars.parse("conclusion.less")?,
            None => of / over > vars.parse("conclusion.more")?,
        };
        let verdict = if holds { "holds" } else { "does not hold" };
        figures.put_text(format!("verdict/{}", vars.text("conclusion")?), verdict);
    }
    Ok(())
}

/// Requests before and behind a pause: GETs, of which each is one round trip, or PUTs of 20 round trips. The pause begins at
/// random within a round trip, when the path has been measured.
fn pause(scenario: &mut Scenario, cell: &Vars, seed: u64, number: u32) -> Result<(), PaperError> {
    /// Body of a PUT, in octets.
    const BODY: usize = 20_000;
    let round_trip = Duration::from_millis(cell.parse("path")?);
    let (request, count, before) = match cell.text("exchange")? {
        "put" => (Request::put("/stored", vec![b'x'; BODY]), 3, 28),
        _ => (Request::get("/tmp"), 40, 12),
    };
    scenario.model = LinkModel::default();
    (scenario.model.a_to_b.delay, scenario.model.b_to_a.delay) = (round_trip / 2, round_trip / 2);
    let pace = RequestPace::Closed { think: Duration::ZERO };
    scenario.requests = Requests { request, count, pace, ..scenario.requests.clone() };
    let nanos = u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX).max(1);
    let phase = RandomStreams::new(seed).stream(number, 0, Purpose::Arrivals).below(nanos);
    let from = scenario.requests.start + round_trip * before + Duration::from_nanos(phase);
    scenario.pause = Some((from, Duration::from_secs_f64(cell.parse("pause")?)));
    Ok(())
}

/// Longest exchange of all runs, less the pause.
fn behind_pauses(
    run: &PaperRun<'_>,
    samples: &Samples<Sample>,
    figures: &mut Figures,
) -> Result<(), PaperError> {
    for vars in run.form.all(&["exchange", "pause", "path", "cold"])? {
        let id = vars.expand("pause/{exchange}/{pause}/{path}/{cold}")?;
        let longest = samples.of(&id).iter().filter_map(|sample| sample.worst_ms).reduce(f64::max);
        let pause: f64 = vars.parse("pause")?;
        figures.put(format!("{id}/behind"), longest.map(|longest| (longest - 1e3 * pause).max(0.0)));
    }
    Ok(())
}

/// Mean round trip of pings, one a second, in milliseconds. Section 2.4.
fn ping(model: &LinkModel<'static>, seed: u64) -> Option<f64> {
    /// IPv4, ICMP and 56 octets of data.
    const OCTETS: usize = 84;
    const PINGS: u64 = 100;
    let mut link = ConstrainedLink::<Vec<u8>>::new(model, seed);
    let (mut sum, mut answered) = (Duration::ZERO, 0);
    for number in 0..PINGS {
        let sent = Instant::from_millis(1_000 * number);
        if link.offer(sent, Side::A, vec![0; OCTETS]).is_err() {
            continue;
        }
        while let Some(at) = link.poll_at() {
            match link.poll(at) {
                Some(LinkEvent::Delivered { to: Side::B, packet, .. }) => _ = link.offer(at, Side::B, packet),
                Some(LinkEvent::Delivered { to: Side::A, .. }) => {
                    sum += at.since(sent);
                    answered += 1;
                }
                Some(LinkEvent::Dropped { .. }) | None => {}
            }
        }
    }
    (answered > 0).then(|| 1e3 * sum.as_secs_f64() / f64::from(answered))
}

fn mean(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    Summary::of(&samples.iter().filter_map(of).collect::<Vec<_>>()).map(|summary| summary.mean)
}

/// Bars of RAW in table 1, and of TCP over WiFi in table 3. Our mean meets one exactly if the paper's figure, within its
/// rounding, is in our interval.
fn bands(run: &PaperRun<'_>, samples: &Samples<Sample>, figures: &mut Figures) -> Result<(), PaperError> {
    let mut cells = Vec::new();
    for vars in run.form.all(&["access", "loss"])? {
        cells.push(vars.expand("{access}/raw/{loss}")?);
    }
    for vars in run.form.all(&["access=wifi", "loss"])? {
        cells.push(vars.expand("{access}/tcp-nagle/{loss}")?);
    }
    for cell in cells {
        for ((name, of), rounding) in METRICS.into_iter().zip([0.5, 0.5, 0.05]) {
            let id = format!("{cell}/{name}");
            let values: Vec<f64> = samples.of(&cell).iter().filter_map(of).collect();
            let Some((theirs, (low, high))) = run.published.theirs(&id).zip(band_of_three(&values)) else {
                continue;
            };
            let mean = figures.value(&id).unwrap_or_default();
            let (min, max) = (theirs - rounding - (high - mean), theirs + rounding + (mean - low));
            figures.put(id.clone(), mean).bar = Some(Bar { min: Some(min), max: Some(max) });
        }
    }
    Ok(())
}

/// Interval with 95 % of the means of three runs.
fn band_of_three(values: &[f64]) -> Option<(f64, f64)> {
    let mut means: Vec<f64> = values.chunks_exact(3).map(|three| three.iter().sum::<f64>() / 3.0).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * (means.len() as f64 - 1.0)).round() as usize).copied();
    Some((at(0.025)?, at(0.975)?))
}

/// Flow as in section 2.6, open loop, 9 octets of request, 23 of content; and the other properties of a cell.
fn scenario(cell: &Vars) -> Result<Scenario, PaperError> {
    let is_wifi = match cell.opt("access") {
        Some(access) => access == "wifi",
        None => cell.has("rtt"),
    };
    let mut model = if is_wifi { WIFI.model } else { GPRS.model };
    (model.b_to_a.loss, model.b_to_a.loss_unit) = (added(cell)?, LossUnit::Packet);
    let control = ["control.warm", "control", "cold"].into_iter().find_map(|name| cell.opt(name));
    let control = control.unwrap_or(if cell.has("protection") { "fasor" } else { "raw" });
    let nstart = match ["clients", "rtt", "pause"].into_iter().any(|name| cell.has(name)) {
        true => 1,
        false => cell.opt("nstart").map_or(Ok(OPEN), |_| cell.parse("nstart"))?,
    };
    let mut scenario = Scenario {
        model,
        rohc: None,
        clients: 1,
        transport: MessageTransport::Udp { protection: 0 },
        config: config(algorithm(control)?, nstart),
        requests: Requests {
            request: Request::get("/tmp"),
            count: REQUESTS,
            // By then a connection is open, and a download is in progress.
            start: Instant::from_millis(5_000),
            pace: RequestPace::Open { interval: INTERVAL },
        },
        spread: Duration::ZERO,
        content: 23,
        stepping: false,
        download: None,
        download_octets: None,
        warm_up: usize::from(cell.has("control.warm")),
        pause: None,
        end: Instant::from_millis(3_600_000),
    };
    // Cells of loss and congestion control remain.
    if ["steady", "clients", "rtt", "discipline"].into_iter().any(|name| cell.has(name)) {
        scenario.model.a_to_b.jitter = Jitter::default();
        scenario.model.b_to_a.jitter = Jitter::default();
    }
    if cell.has("download") {
        beside_download(&mut scenario, is_wifi);
    }
    if let Some(tcp) = cell.opt("tcp") {
        let nagle = if tcp == "nagle" { tcp::Nagle::Minshall } else { tcp::Nagle::Off };
        scenario.transport = MessageTransport::Tcp(tcp::TcpConfig { nagle, ..tcp::TcpConfig::default() });
    }
    if cell.has("protection.octets") {
        scenario.transport = MessageTransport::Udp { protection: cell.parse("protection.octets")? };
    }
    if cell.has("clients") {
        // Clients that repeat requests as soon as they are answered, on an uplink with an unlimited queue.
        let deep = Queue { held: 1 << 20, ..Queue::packets(1 << 20) };
        (scenario.model.a_to_b.queue, scenario.model.b_to_a.queue) = (deep, deep);
        scenario.clients = cell.parse("clients")?;
        scenario.spread = Duration::from_secs(1);
        scenario.requests.count = usize::MAX;
        scenario.requests.pace = RequestPace::Closed { think: Duration::ZERO };
        scenario.end = scenario.requests.start + Duration::from_secs(CROWD_SECONDS);
    }
    if cell.has("rtt") {
        let way = Duration::from_secs(cell.parse("rtt")?) / 2;
        (scenario.model.a_to_b.delay, scenario.model.b_to_a.delay) = (way, way);
        scenario.requests.pace = RequestPace::Closed { think: Duration::ZERO };
        scenario.end = Instant::from_millis(100_000_000);
    }
    if let Some(discipline) = cell.opt("discipline") {
        beside_full_queue(&mut scenario, discipline == "codel");
    }
    if cell.has("rohc") {
        // The CoAP profile for datagrams, the IP profile for segments. Each client is one flow per direction.
        let profiles = ProfileSet::v1().with(ProfileId::Coap)?;
        scenario.rohc = Some(channel(profiles, scenario.clients, Mode::Optimistic, Refresh::default(), 1)?);
    }
    Ok(scenario)
}

/// GPRS: 4 segments, which match the delay of table 2. WiFi: 20 Mbit/s, and 64 KiB, the largest window without scaling.
fn beside_download(scenario: &mut Scenario, is_wifi: bool) {
    if !is_wifi {
        scenario.download = Some(tcp::TcpConfig { window: Some(4), ..tcp::TcpConfig::default() });
        return;
    }
    scenario.download = Some(tcp::TcpConfig { receive_buffer: 65_535, ..tcp::TcpConfig::default() });
    for direction in [&mut scenario.model.a_to_b, &mut scenario.model.b_to_a] {
        // Order is kept: with delay spikes of single messages thousands of packets would wait for each other.
        direction.jitter.spikes = Probability::NEVER;
        direction.airtime = Rate::from_bps(20_000_000).map_or(Airtime::None, Airtime::Rate);
    }
}

/// Beside a download with an unlimited window, through a queue of 20 kB at 40 kbit/s.
fn beside_full_queue(scenario: &mut Scenario, codel: bool) {
    let discipline = match codel {
        // TARGET above one packet's transmission time. RFC 8289, section 4.4.
        true => Discipline::CoDel(CoDelConfig {
            target: Duration::from_millis(450),
            interval: Duration::from_secs(1),
            ..CoDelConfig::new(1_500)
        }),
        false => Discipline::DropTail,
    };
    scenario.model.b_to_a.queue = Queue { octets: 20_000, discipline, ..Queue::packets(1_000) };
    scenario.download = Some(tcp::TcpConfig { receive_buffer: 1 << 20, ..tcp::TcpConfig::default() });
    scenario.requests.start = Instant::from_millis(30_000);
}

fn algorithm(name: &str) -> Result<Algorithm, PaperError> {
    Ok(match name {
        // The paper's name for it is RAW.
        "raw" => Algorithm::Rfc7252,
        "rfc6298" => Algorithm::Rfc6298(Rfc6298Config::default()),
        // Without a clock granularity, which the draft does not define.
        "cocoa" => Algorithm::Cocoa(CocoaConfig { g: Duration::ZERO, ..CocoaConfig::default() }),
        "fasor" => Algorithm::Fasor(FasorConfig::default()),
        // With less dither.
        "fasor-quick" => Algorithm::Fasor(FasorConfig::quick()),
        other => return Err(PaperError::Form(format!("unknown congestion control {other}"))),
    })
}

fn config(congestion: Algorithm, nstart: u16) -> Config {
    Config {
        timing: Timing {
            transmission: Transmission { nstart, ..Transmission::default() },
            congestion,
            ..Timing::default()
        },
        limits: Limits { max_peers: 2_048, ..Limits::default() },
        ..Config::default()
    }
}

fn added(cell: &Vars) -> Result<LossModel<'static>, PaperError> {
    let percent: u32 = if cell.has("loss") { cell.parse("loss")? } else { 0 };
    Ok(match percent {
        0 => LossModel::None,
        percent => Probability::from_percent(percent).map_or(LossModel::None, LossModel::Random),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_band_of_three_holds_the_middle() {
        let values: Vec<f64> = (0..300).map(f64::from).collect();
        assert_eq!(band_of_three(&values), Some((7.0, 292.0)));
        assert_eq!(band_of_three(&[]), None);
    }
}
