//! What needs no kernel and no root: the same services over our TCP in virtual time. The exact exchange, also as RFC 7413 allows
//! at best; links with bit errors and bursts; clients that share a queue; and fewer acknowledgments.

use std::time::Duration;

use thinair_lab::network::fetch::{Fetch, Fetched, Service, Stack, TcpOptions};
use thinair_link::preset::{ZIGBEE_20K, ZIGBEE_250K};
use thinair_link::{
    BitErrorModel, GilbertElliott, Integrity, LinkModel, LossModel, MeanBurst, Probability, Queue,
};

use super::Range;
use super::cell::{Link, SIZES};
use crate::paper::{Error, Plan, Progress};
use crate::row::Row;
use crate::sweep::sweep;

/// Those that there are.
pub(super) const SERVICES: [Service; 4] = [Service::Coap, Service::Http, Service::IotHttp, Service::IotSpdy];

/// The paper's hosts, as far as octets tell: no timestamps, no SACK, and a cookie.
const OPTIONS: TcpOptions = TcpOptions { window_scaling: true, cookie: Some(8), ..TcpOptions::LEAN };

/// Clients of a crowd begin within it.
pub(super) const SPREAD: Duration = Duration::from_secs(1);

/// What happens to packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Harm {
    /// Each bit is wrong with this probability, and whoever receives the frame finds out.
    Bits(f64),
    /// This share of the frames is lost, in bursts of three.
    Bursts(f64),
}

pub(super) const HARMS: [Harm; 5] =
    [Harm::Bits(1e-5), Harm::Bits(1e-4), Harm::Bits(3e-4), Harm::Bursts(0.02), Harm::Bursts(0.1)];

/// Packets that may wait, and clients.
pub(super) const QUEUES: [u32; 3] = [5, 20, 50];
pub(super) const CROWDS: [u16; 3] = [5, 20, 50];

/// One exchange, to the bit.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    pub(super) service: Service,
    pub(super) link: Link,
    pub(super) size: usize,
    pub(super) stack: Stack,
    /// Fewer acknowledgments than kernels send at first.
    pub(super) thins: bool,
    pub(super) fetched: Fetched,
}

/// Many runs, or clients.
#[derive(Clone, Debug)]
pub(super) struct Many {
    pub(super) service: Service,
    pub(super) size: usize,
    pub(super) what: What,
    /// Milliseconds of those whose object came.
    pub(super) times: Vec<f64>,
    pub(super) runs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    Harmed(Harm),
    Crowd { queue: u32, clients: u16 },
}

impl Many {
    /// The share whose object came: 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.times.len() as f64 / self.runs.max(1) as f64
    }

    pub(super) fn median(&self) -> Option<f64> {
        Range::of(self.times.clone()).map(|range| range.median)
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (!self.times.is_empty()).then(|| self.times.iter().sum::<f64>() / self.times.len() as f64)
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Virtual {
    pub(super) exact: Vec<Exact>,
    pub(super) many: Vec<Many>,
}

pub(super) const fn name(service: Service) -> &'static str {
    match service {
        Service::Coap => "coap",
        Service::CoapTcp => "coap-tcp",
        Service::Http => "http",
        Service::IotHttp => "iot-http",
        Service::IotSpdy => "iot-spdy",
    }
}

pub(super) const fn what(service: Service) -> &'static str {
    match service {
        Service::Coap => "CoAP",
        Service::CoapTcp => "CoAP over TCP",
        Service::Http => "HTTP/1.1",
        Service::IotHttp => "IoT-HTTP",
        Service::IotSpdy => "IoT-SPDY",
    }
}

pub(super) fn fetch(service: Service, link: Link, size: usize) -> Fetch {
    let (model, mtu) = match link {
        Link::Slow | Link::Frames | Link::Iphc => (ZIGBEE_20K.model, 128),
        Link::Fast => (ZIGBEE_250K.model, 128),
        Link::Wide => (thinair_lab::emulator::with_mtu(&ZIGBEE_250K.model, 1_280), 1_280),
    };
    // As in real time: IoT-HTTP is that of the paper, whose client acknowledges the SYN-ACK at once.
    Fetch { options: OPTIONS, holds: service != Service::IotHttp, ..Fetch::new(service, size, model, mtu) }
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
                // A width of 64 finds all damage.
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

    pub(super) fn what(self) -> String {
        match self {
            Self::Bits(rate) => format!("bit errors {rate:.0e}"),
            Self::Bursts(share) => format!("{} % of frames lost in bursts", share * 100.0),
        }
    }
}

/// Measures all of it. The same seed gives the same figures, on any machine.
pub(super) fn measure(plan: &Plan, progress: Progress<'_>) -> Result<Virtual, Error> {
    let mut exact = Vec::new();
    for (link, service) in
        Link::PUBLISHED.into_iter().flat_map(|link| SERVICES.map(|service| (link, service)))
    {
        for size in SIZES {
            for (stack, thins) in [(Stack::Kernel, false), (Stack::Best, false), (Stack::Kernel, true)] {
                // CoAP has neither.
                if service == Service::Coap && (stack, thins) != (Stack::Kernel, false) {
                    continue;
                }
                let plain = Fetch { stack, thins, ..fetch(service, link, size) };
                // Without a cookie, so that as much as can be is in the SYN.
                let best = Fetch { options: TcpOptions::LEAN, holds: true, ..plain.clone() };
                let fetched = if stack == Stack::Best { best } else { plain }.run(plan.seed);
                exact.push(Exact { service, link, size, stack, thins, fetched });
            }
        }
    }
    let (runs, crowds) = if plan.quick { (40, 2) } else { (400, 20) };
    let mut jobs = Vec::new();
    for service in SERVICES {
        for size in [10, 1_000] {
            jobs.extend(HARMS.map(|harm| (service, size, What::Harmed(harm))));
        }
        for (queue, clients) in QUEUES.into_iter().flat_map(|queue| CROWDS.map(|clients| (queue, clients))) {
            jobs.push((service, 10, What::Crowd { queue, clients }));
        }
    }
    let many = sweep(
        &jobs,
        plan.threads,
        progress,
        |_| 1,
        |&(service, size, what)| {
            let plain = fetch(service, Link::Slow, size);
            let took: Vec<Option<Duration>> = match what {
                What::Harmed(harm) => {
                    let harmed = Fetch { model: harm.on(&plain.model), ..plain };
                    (0..runs)
                        .map(|run| harmed.run(plan.seed.wrapping_mul(1_000_003).wrapping_add(run)).took)
                        .collect()
                }
                What::Crowd { queue, clients } => {
                    let model = both(&plain.model, |direction| direction.queue = Queue::packets(queue));
                    let crowd = Fetch { model, ..plain };
                    let seeds = (0..crowds).map(|run| plan.seed.wrapping_mul(1_000_003).wrapping_add(run));
                    seeds.flat_map(|seed| crowd.crowd(clients, SPREAD, seed)).collect()
                }
            };
            let times = took.iter().flatten().map(|took| took.as_secs_f64() * 1e3).collect();
            Ok(Many { service, size, what, times, runs: took.len() })
        },
    )?;
    Ok(Virtual { exact, many })
}

pub(super) fn rows(of: &Virtual) -> Vec<Row> {
    let exact = of.exact.iter().flat_map(|of| {
        let suffix = match (of.stack, of.thins) {
            (Stack::Best, _) => "/best",
            (Stack::Kernel, true) => "/thin",
            (Stack::Kernel, false) => "",
        };
        let row = |figure: &str, words: &str, unit, ours: Option<f64>| {
            let id = format!("virtual/{}/{}/{}/{figure}{suffix}", name(of.service), of.link.id(), of.size);
            let stack = match (of.stack, of.thins) {
                (Stack::Best, _) => "the most that RFC 7413 allows",
                (Stack::Kernel, true) => "as kernels, fewer acknowledgments",
                (Stack::Kernel, false) => "as kernels",
            };
            let what =
                format!("{}, {} octets, {}, {stack}: {words}", what(of.service), of.size, of.link.what());
            Row::new(id, what, unit, ours)
        };
        let time = of.fetched.took.map(|took| took.as_secs_f64() * 1e3);
        [
            row("packets", "IP packets", "", Some(of.fetched.packets.len() as f64)),
            row("octets", "octets of IP packets", "octets", Some(of.fetched.total() as f64)),
            row("odt", "object download time", "ms", time),
        ]
    });
    let many = of.many.iter().flat_map(|of| {
        let (id, words) = match of.what {
            What::Harmed(harm) => (harm.name(), harm.what()),
            What::Crowd { queue, clients } => {
                (format!("crowd-{clients}-{queue}"), format!("{clients} clients, queue of {queue}"))
            }
        };
        let row = |figure: &str, words_of: &str, unit, ours| {
            let id = format!("virtual/{}/20k/128/{}/{id}/{figure}", name(of.service), of.size);
            Row::new(id, format!("{}, {} octets, {words}: {words_of}", what(of.service), of.size), unit, ours)
        };
        [
            row("came", "objects that came", "%", Some(of.share() * 100.0)),
            row("median", "time of those, median", "ms", of.median()),
            row("mean", "time of those, mean", "ms", of.mean()),
        ]
    });
    exact.chain(many).collect()
}
