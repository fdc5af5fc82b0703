//! What is run: a scenario of the lab for each cell of a table, many times.

use core::time::Duration;

use thinair_coap::congestion::{Algorithm, CocoaConfig, FasorConfig, Rfc6298Config, Transmission};
use thinair_coap::{Config, Limits, Request, Timing};
use thinair_lab::network::{Pace, Requests, Scenario, Transport};
use thinair_lab::plan::Sample;
use thinair_lab::tcp;
use thinair_link::preset::{GPRS, WIFI};
use thinair_link::{
    Airtime, CoDelConfig, Discipline, Jitter, LinkModel, LossModel, LossUnit, Probability, Queue, Rate,
};
use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};
use thinair_wire::time::Instant;

use crate::compressed::channel;
use crate::paper::Error;
use crate::sweep::Repeated;

/// Requests of a flow. Section 2.6.
const REQUESTS: usize = 100;

/// From one to the next: 9,988 ms of table 1 are 99 intervals and 18 ms.
const INTERVAL: Duration = Duration::from_micros(100_700);

/// Open loop: requests do not wait for each other.
pub(super) const OPEN: u16 = 100;

/// By what the client is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Gprs,
    Wifi,
}

impl Access {
    pub(super) const ALL: [Self; 2] = [Self::Gprs, Self::Wifi];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gprs => "gprs",
            Self::Wifi => "wifi",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Gprs => "GPRS",
            Self::Wifi => "WiFi",
        }
    }

    const fn model(self) -> LinkModel<'static> {
        match self {
            Self::Gprs => GPRS.model,
            Self::Wifi => WIFI.model,
        }
    }
}

/// What is measured of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// Flow completing time, ms.
    Fct,
    /// Mean time of an exchange, ms.
    CRtt,
    /// Retransmissions per request, %.
    Rtr,
}

impl Metric {
    pub(super) const ALL: [Self; 3] = [Self::Fct, Self::CRtt, Self::Rtr];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fct => "fct",
            Self::CRtt => "crtt",
            Self::Rtr => "rtr",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Fct => "FCT",
            Self::CRtt => "C-RTT",
            Self::Rtr => "RTR",
        }
    }

    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Fct | Self::CRtt => "ms",
            Self::Rtr => "%",
        }
    }

    pub(super) const fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Fct => sample.fct_ms,
            Self::CRtt => sample.crtt_ms,
            Self::Rtr => sample.rtr_percent,
        }
    }
}

/// Congestion control, and whether it knows the path from a flow before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Control {
    pub(super) name: &'static str,
    pub(super) algorithm: Algorithm,
    pub(super) warm: bool,
}

impl Control {
    const fn new(name: &'static str, algorithm: Algorithm) -> Self {
        Self { name, algorithm, warm: false }
    }

    /// RFC 7252: what the paper calls RAW.
    pub(super) const fn raw() -> Self {
        Self::new("raw", Algorithm::Rfc7252)
    }

    pub(super) fn rfc6298() -> Self {
        Self::new("rfc6298", Algorithm::Rfc6298(Rfc6298Config::default()))
    }

    /// CoCoA without a clock granularity, which its draft does not say.
    pub(super) fn cocoa() -> Self {
        Self::new("cocoa", Algorithm::Cocoa(CocoaConfig { g: Duration::ZERO, ..CocoaConfig::default() }))
    }

    pub(super) fn fasor() -> Self {
        Self::new("fasor", Algorithm::Fasor(FasorConfig::default()))
    }

    /// FASOR with less dither.
    pub(super) fn quick() -> Self {
        Self::new("fasor-quick", Algorithm::Fasor(FasorConfig::quick()))
    }

    /// The same, with what it has learned in a flow a second before.
    pub(super) fn warm(self, name: &'static str) -> Self {
        Self { name, warm: true, ..self }
    }
}

/// A scenario with a name.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) id: String,
    pub(super) runs: u32,
    pub(super) scenario: Scenario,
}

impl Cell {
    /// A flow as in section 2.6: open loop, 9 octets of request, 23 of content.
    pub(super) fn flow(access: Access, control: Control, loss: u32, runs: u32) -> Self {
        let mut model = access.model();
        (model.b_to_a.loss, model.b_to_a.loss_unit) = (added(loss), LossUnit::Packet);
        Self {
            id: format!("{}/{}/{loss}", access.name(), control.name),
            runs,
            scenario: Scenario {
                model,
                rohc: None,
                clients: 1,
                transport: Transport::Udp { protection: 0 },
                config: config(control.algorithm, OPEN),
                requests: Requests {
                    request: Request::get("/tmp"),
                    count: REQUESTS,
                    // A connection is open, and a download is under way, by then.
                    start: Instant::from_millis(5_000),
                    pace: Pace::Open { interval: INTERVAL },
                },
                spread: Duration::ZERO,
                content: 23,
                download: None,
                download_octets: None,
                warm_up: usize::from(control.warm),
                end: Instant::from_millis(3_600_000),
            },
        }
    }

    pub(super) fn named(self, id: String) -> Self {
        Self { id, ..self }
    }

    pub(super) fn nstart(mut self, nstart: u16) -> Self {
        self.scenario.config.timing.transmission.nstart = nstart;
        self
    }

    /// Without jitter: what is left is loss and congestion control.
    pub(super) fn steady(mut self) -> Self {
        self.scenario.model.a_to_b.jitter = Jitter::default();
        self.scenario.model.b_to_a.jitter = Jitter::default();
        self
    }

    /// Beside a download. GPRS: 4 segments, which is what the delay of table 2 holds. WiFi: 20 Mbit/s, and 64 KiB, the
    /// largest window without scaling.
    pub(super) fn beside_download(mut self, access: Access) -> Self {
        self.scenario.download = Some(match access {
            Access::Gprs => tcp::Config { window: Some(4), ..tcp::Config::default() },
            Access::Wifi => tcp::Config { receive_buffer: 65_535, ..tcp::Config::default() },
        });
        if access == Access::Wifi {
            // Order is kept: with the spikes of single messages thousands of packets would wait for each other.
            self.scenario.model.a_to_b.jitter.spikes = Probability::NEVER;
            self.scenario.model.b_to_a.jitter.spikes = Probability::NEVER;
            self.scenario.model.b_to_a.airtime = rate(20_000_000);
            self.scenario.model.a_to_b.airtime = rate(20_000_000);
        }
        self
    }

    /// Over a stream of TCP that is open before.
    pub(super) fn over_tcp(mut self, nagle: tcp::Nagle) -> Self {
        self.scenario.transport = Transport::Tcp(tcp::Config { nagle, ..tcp::Config::default() });
        self
    }

    /// With ROHC on the link: the CoAP profile for datagrams, the IP profile for segments. Each client is a flow each way.
    pub(super) fn compressed(mut self) -> Result<Self, Error> {
        let profiles = ProfileSet::v1().with(ProfileId::Coap)?;
        let flows = self.scenario.clients;
        self.scenario.rohc = Some(channel(profiles, flows, Mode::Optimistic, Refresh::default(), 1)?);
        self.id.push_str("/rohc");
        Ok(self)
    }

    /// Octets that protect each message.
    pub(super) fn protected(mut self, protection: usize) -> Self {
        self.scenario.transport = Transport::Udp { protection };
        self
    }

    /// Many clients that ask again as soon as they are answered, on an uplink of 20 kbit/s with a queue without end.
    pub(super) fn crowd(control: Control, clients: u16, runs: u32) -> Self {
        let flow = Self::flow(Access::Gprs, control, 0, runs).steady().nstart(1);
        let mut scenario = flow.scenario;
        let deep = Queue { held: 1 << 20, ..Queue::packets(1 << 20) };
        (scenario.model.a_to_b.queue, scenario.model.b_to_a.queue) = (deep, deep);
        scenario.clients = clients;
        scenario.spread = Duration::from_secs(1);
        scenario.requests.count = usize::MAX;
        scenario.requests.pace = Pace::Closed { think: Duration::ZERO };
        scenario.end = scenario.requests.start + Duration::from_secs(CROWD_SECONDS);
        Self { id: format!("crowd/{clients}/{}", control.name), runs, scenario }
    }

    /// One client on a path with that round trip, without loss, which asks again once it is answered.
    pub(super) fn long(control: Control, rtt: Duration, runs: u32) -> Self {
        let flow = Self::flow(Access::Wifi, control, 0, runs).steady().nstart(1);
        let mut scenario = flow.scenario;
        scenario.model.a_to_b.delay = rtt / 2;
        scenario.model.b_to_a.delay = rtt / 2;
        scenario.requests.pace = Pace::Closed { think: Duration::ZERO };
        scenario.end = Instant::from_millis(100_000_000);
        Self { id: format!("rtt/{}/{}", rtt.as_secs(), control.name), runs, scenario }
    }

    /// Beside a download without a limit of its window, through a queue of 20 kB at 40 kbit/s.
    pub(super) fn queue(control: Control, codel: bool, runs: u32) -> Self {
        let flow = Self::flow(Access::Gprs, control, 0, runs).steady();
        let mut scenario = flow.scenario;
        let discipline = match codel {
            // TARGET of more than a packet on the air. RFC 8289, section 4.4.
            true => Discipline::CoDel(CoDelConfig {
                target: Duration::from_millis(450),
                interval: Duration::from_secs(1),
                ..CoDelConfig::new(1_500)
            }),
            false => Discipline::DropTail,
        };
        scenario.model.b_to_a.queue = Queue { octets: 20_000, discipline, ..Queue::packets(1_000) };
        scenario.download = Some(tcp::Config { receive_buffer: 1 << 20, ..tcp::Config::default() });
        scenario.requests.start = Instant::from_millis(30_000);
        let discipline = if codel { "codel" } else { "drop-tail" };
        Self { id: format!("queue/{discipline}/{}", control.name), runs, scenario }
    }
}

impl Repeated for Cell {
    type Sample = Sample;

    fn runs(&self) -> u32 {
        self.runs
    }

    fn cost(&self) -> u64 {
        match self.scenario.requests.count {
            usize::MAX => 200 * u64::from(self.scenario.clients),
            _ => 100 * (1 + self.scenario.warm_up as u64),
        }
    }

    fn run(&self, seed: u64, run: u32) -> Result<Sample, Error> {
        Ok(Sample::of(&self.scenario.run(seed, run)))
    }
}

/// How long a crowd asks.
pub(super) const CROWD_SECONDS: u64 = 300;

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

fn added(percent: u32) -> LossModel<'static> {
    match percent {
        0 => LossModel::None,
        percent => Probability::from_percent(percent).map_or(LossModel::None, LossModel::Random),
    }
}

fn rate(bps: u64) -> Airtime {
    Rate::from_bps(bps).map_or(Airtime::None, Airtime::Rate)
}
