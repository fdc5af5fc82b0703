//! Measurements without kernel and root: the services over our TCP in virtual time. Exact exchanges, also with the
//! fewest packets that RFC 7413 allows; links with bit errors and bursts; clients that share a queue; and fewer
//! acknowledgments.

use std::time::Duration;

use thinair_link::preset::{ZIGBEE_20K, ZIGBEE_250K};
use thinair_link::{
    BitErrorModel, GilbertElliott, Integrity, LinkModel, LossModel, MeanBurst, Probability, Queue,
};
use thinair_simulation::network::fetch::{Fetch, FetchService, TcpInteraction, TcpOptions};

use super::Range;
use super::cell::{SIZES, TransportLink};
use crate::form::{Figures, PaperRun};
use crate::paper::PaperError;
use crate::sweep::sweep;

/// Condition of exchanges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ExchangeCondition {
    Harmed(Harm),
    Crowd { queue: u32, clients: u16 },
}

/// Services that are implemented.
pub(super) const SERVICES: [FetchService; 4] =
    [FetchService::Coap, FetchService::Http, FetchService::IotHttp, FetchService::IotSpdy];

/// Options of the paper's hosts, as its octets imply: no timestamps, no SACK, and a cookie.
const OPTIONS: TcpOptions = TcpOptions { window_scaling: true, cookie: Some(8), ..TcpOptions::LEAN };

/// Time within which the clients of a crowd begin.
pub(super) const SPREAD: Duration = Duration::from_secs(1);

/// Impairment of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Harm {
    /// Bit error rate; a check detects all damage.
    Bits(f64),
    /// Share of lost frames, in bursts of three.
    Bursts(f64),
}

const HARMS: [Harm; 5] =
    [Harm::Bits(1e-5), Harm::Bits(1e-4), Harm::Bits(3e-4), Harm::Bursts(0.02), Harm::Bursts(0.1)];

/// Queue in packets, and number of clients.
pub(super) const QUEUES: [u32; 3] = [5, 20, 50];
pub(super) const CROWDS: [u16; 3] = [5, 20, 50];

pub(super) const fn name(service: FetchService) -> &'static str {
    match service {
        FetchService::Coap => "coap",
        FetchService::CoapOscore => "coap-oscore",
        FetchService::CoapDtls => "coap-dtls",
        FetchService::CoapTcp => "coap-tcp",
        FetchService::Http => "http",
        FetchService::IotHttp => "iot-http",
        FetchService::IotSpdy => "iot-spdy",
    }
}

pub(super) fn fetch(service: FetchService, link: TransportLink, size: usize) -> Fetch {
    let (model, mtu) = match link {
        TransportLink::Slow | TransportLink::Frames | TransportLink::Iphc => (ZIGBEE_20K.model, 128),
        TransportLink::Fast => (ZIGBEE_250K.model, 128),
        TransportLink::Wide => (thinair_simulation::emulator::with_mtu(&ZIGBEE_250K.model, 1_280), 1_280),
    };
    // As in real time: IoT-HTTP is that of the paper, whose client acknowledges the SYN-ACK at once.
    Fetch {
        options: OPTIONS,
        holds: service != FetchService::IotHttp,
        ..Fetch::new(service, size, model, mtu)
    }
}

pub(super) fn both(
    model: &LinkModel<'static>,
    change: impl Fn(&mut thinair_link::Direction<'static>),
) -> LinkModel<'static> {
    let mut model = *model;
    change(&mut model.a_to_b);
    change(&mut model.b_to_a);
    model
}

impl Harm {
    pub(super) fn on(self, model: &LinkModel<'static>) -> LinkModel<'static> {
        both(model, |direction| match self {
            Self::Bits(rate) => {
                direction.bit_errors =
                    BitErrorModel::Random(Probability::from_f64(rate).unwrap_or(Probability::NEVER));
                // A width of 64 detects all damage.
                direction.integrity = Integrity::Modelled { width: 64 };
            }
            Self::Bursts(share) => {
                let of_three = MeanBurst::from_thousandths(3_000).zip(Probability::from_f64(share));
                let bursts = of_three.and_then(|(burst, share)| GilbertElliott::bursts(share, burst).ok());
                direction.loss = bursts.map_or(direction.loss, LossModel::Bursts);
            }
        })
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Bits(rate) => format!("ber-{rate:.0e}"),
            Self::Bursts(share) => format!("bursts-{}", share * 100.0),
        }
    }
}

/// Measures everything. Equal seeds give equal figures, on any machine.
pub(super) fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let plan = run.plan;
    for (link, service) in
        TransportLink::PUBLISHED.into_iter().flat_map(|link| SERVICES.map(|service| (link, service)))
    {
        for size in SIZES {
            for (stack, thins, suffix) in [
                (TcpInteraction::Kernel, false, ""),
                (TcpInteraction::Best, false, "/best"),
                (TcpInteraction::Kernel, true, "/thin"),
            ] {
                // CoAP has neither.
                if service == FetchService::Coap && !suffix.is_empty() {
                    continue;
                }
                let plain = Fetch { stack, thins, ..fetch(service, link, size) };
                // Without a cookie, so that the SYN has room for as much as possible.
                let best = Fetch { options: TcpOptions::LEAN, holds: true, ..plain.clone() };
                let fetched = if stack == TcpInteraction::Best { best } else { plain }.run(plan.seed);
                let id = |figure| format!("virtual/{}/{}/{size}/{figure}{suffix}", name(service), link.id());
                figures.put(id("packets"), fetched.packets.len() as f64);
                figures.put(id("octets"), fetched.total() as f64);
                figures.put(id("odt"), fetched.took.map(|took| took.as_secs_f64() * 1e3));
            }
        }
    }
    let mut jobs = Vec::new();
    for service in SERVICES {
        for size in [10, 1_000] {
            jobs.extend(HARMS.map(|harm| (service, size, ExchangeCondition::Harmed(harm))));
        }
        for (queue, clients) in QUEUES.into_iter().flat_map(|queue| CROWDS.map(|clients| (queue, clients))) {
            jobs.push((service, 10, ExchangeCondition::Crowd { queue, clients }));
        }
    }
    let (runs, crowds) = if plan.quick { (40, 2) } else { (400, 20) };
    let seed = |run: u64| plan.seed.wrapping_mul(1_000_003).wrapping_add(run);
    let many = sweep(
        &jobs,
        plan.threads,
        run.progress,
        |_| 1,
        |&(service, size, what)| {
            let plain = fetch(service, TransportLink::Slow, size);
            let took: Vec<Option<Duration>> = match what {
                ExchangeCondition::Harmed(harm) => {
                    let harmed = Fetch { model: harm.on(&plain.model), ..plain };
                    (0..runs).map(|run| harmed.run(seed(run)).took).collect()
                }
                ExchangeCondition::Crowd { queue, clients } => {
                    let model = both(&plain.model, |direction| direction.queue = Queue::packets(queue));
                    let crowd = Fetch { model, ..plain };
                    (0..crowds).flat_map(|run| crowd.crowd(clients, SPREAD, seed(run))).collect()
                }
            };
            Ok(took)
        },
    )?;
    for ((service, size, what), took) in jobs.into_iter().zip(many) {
        let what = match what {
            ExchangeCondition::Harmed(harm) => harm.name(),
            ExchangeCondition::Crowd { queue, clients } => format!("crowd-{clients}-{queue}"),
        };
        let times: Vec<f64> = took.iter().flatten().map(|took| took.as_secs_f64() * 1e3).collect();
        put_times(figures, &format!("virtual/{}/20k/128/{size}/{what}", name(service)), &times, took.len());
    }
    Ok(())
}

/// Puts the share of delivered objects, and the median and the mean of their times in milliseconds.
pub(super) fn put_times(figures: &mut Figures, id: &str, times: &[f64], asked: usize) {
    let mean = (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64);
    figures.put(format!("{id}/came"), times.len() as f64 / asked.max(1) as f64 * 100.0);
    figures.put(format!("{id}/median"), Range::of(times.to_vec()).map(|range| range.median));
    figures.put(format!("{id}/mean"), mean);
}
