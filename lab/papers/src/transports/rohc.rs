//! The same services over a link that carries ROHC: what exchanges take when contexts are there.

use super::cell::{Cell, Link, Options, Service, Temper};
use super::{Range, Sample};
use crate::row::Row;

/// Exchanges that are not counted, as contexts are made meanwhile.
const BEFORE: usize = 19;

/// Exchanges that are counted.
const COUNTED: usize = 4;

/// Octets of a request and a response of CoAP over IPv6, with their checksums and without. Over IPv4 the kernel draws the IP-ID of
/// responses at random steps, which take two octets more.
const MOST_CARRIED: f64 = 16.0;
const MOST_ELIDED: f64 = 14.0;

/// Octets of IoT-HTTP, as a share of those without compression.
const MOST_OF_PLAIN: f64 = 0.45;

/// How the service is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A new client each time, checksums of UDP carried.
    Anew,
    /// One client of CoAP that goes on, over IPv4.
    GoesOn,
    /// The same over IPv6.
    GoesOnV6,
    /// The same over IPv6, checksums elided: computed anew where they were right.
    Elided,
}

impl Way {
    const fn link(self) -> Link {
        match self {
            Self::Anew | Self::GoesOn => Link::Slow,
            Self::GoesOnV6 | Self::Elided => Link::Frames,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Anew => "anew",
            Self::GoesOn => "ipv4",
            Self::GoesOnV6 => "carried",
            Self::Elided => "elided",
        }
    }
}

/// Exchanges of a service, one after the other, of 10 octets over 20 kbit/s with an MTU of 128 and lean options.
#[derive(Clone, Debug)]
pub(super) struct Compressed {
    pub(super) service: Service,
    pub(super) way: Way,
    samples: Vec<Sample>,
}

impl Compressed {
    /// Of exchanges with contexts.
    fn range(&self, of: fn(&Sample) -> f64) -> Option<Range> {
        Range::of(self.samples.iter().skip(BEFORE).map(of).collect())
    }

    /// Octets on the link.
    pub(super) fn octets(&self) -> Option<Range> {
        self.range(|sample| sample.link_octets as f64)
    }

    /// Milliseconds until the object was there.
    pub(super) fn time(&self) -> Option<Range> {
        let times = self.samples.iter().skip(BEFORE).filter_map(|sample| sample.exchange.download_ns);
        Range::of(times.map(|nanos| nanos as f64 / 1e6).collect())
    }

    /// Octets of the IP packets.
    pub(super) fn plain(&self) -> Option<Range> {
        self.range(|sample| sample.ip_octets as f64)
    }

    /// Octets on the link of the first exchange.
    pub(super) fn first(&self) -> Option<u64> {
        self.samples.first().map(|sample| sample.link_octets)
    }

    /// What is left of the octets, from 0 to 1 and more.
    pub(super) fn share(&self) -> Option<f64> {
        Some(self.octets()?.median / self.plain()?.median)
    }

    /// The same without ROHC, of a new client each time; over IPv6 in frames.
    pub(super) const fn without(&self) -> Cell {
        let link = self.way.link();
        Cell { service: self.service, link, options: Options::Lean, size: 10, temper: Temper::Warm }
    }

    pub(super) fn what(&self) -> String {
        let service = self.service.what();
        match self.way {
            Way::Anew => service.to_owned(),
            Way::GoesOn => format!("{service}, one client that goes on"),
            Way::GoesOnV6 => format!("{service}, one client that goes on, IPv6"),
            Way::Elided => format!("{service}, one client that goes on, IPv6, checksums elided"),
        }
    }
}

pub(super) fn rows(of: &Compressed) -> Vec<Row> {
    let id = |figure: &str| format!("{}/20k/128/10/rohc/{}/{figure}", of.service.name(), of.way.name());
    let what = |words: &str| format!("{} over ROHC, from exchange {}: {words}", of.what(), BEFORE + 1);
    // The most, so that every exchange meets the bar.
    let most = of.octets().map(|octets| octets.max);
    let octets = Row::new(id("octets"), what("octets on the link, at most"), "octets", most);
    let share = Row::new(id("share"), what("share of the octets without"), "", of.share());
    let time = of.time().map(|time| time.median);
    let time = Row::new(id("odt"), what("object download time"), "ms", time);
    match (of.service, of.way) {
        (Service::Coap, Way::GoesOnV6) => vec![octets.at_most(MOST_CARRIED), share, time],
        (Service::Coap, Way::Elided) => vec![octets.at_most(MOST_ELIDED), share, time],
        (Service::IotHttp, _) => vec![octets, share.at_most(MOST_OF_PLAIN), time],
        _ => vec![octets, share, time],
    }
}

/// Measures each service of the paper that is there.
#[cfg(target_os = "linux")]
pub(super) fn measure(
    plan: &crate::paper::Plan,
    missing: &std::collections::BTreeMap<Service, String>,
    program: &std::path::Path,
    interrupt: &crate::children::Interrupt,
) -> Result<Vec<Compressed>, crate::paper::Error> {
    let of_coap = [Way::GoesOn, Way::GoesOnV6, Way::Elided].map(|way| (Service::Coap, way));
    let all = of_coap.into_iter().chain(Service::PUBLISHED.map(|service| (service, Way::Anew)));
    let jobs: Vec<_> = all.filter(|(service, _)| !missing.contains_key(service)).collect();
    crate::sweep::sweep(
        &jobs,
        plan.threads,
        &|_, _| (),
        |_| 1,
        |&(service, way)| {
            let mut options = vec!["--rohc", "--mode", "o", "--profiles", "v1,tcp,coap"];
            if way == Way::Elided {
                options.extend(["--coap-checksum", "elide"]);
            }
            let link = way.link();
            let site = super::site::Site::open(link, Options::Lean, program, &options)?;
            let cell = Cell { service, link, options: Options::Lean, size: 10, temper: Temper::Warm };
            let mut children = crate::children::Children::new(interrupt)?;
            let client = match way {
                Way::Anew => super::site::Client::Processes,
                Way::GoesOn | Way::GoesOnV6 | Way::Elided => super::site::Client::OneOfCoap,
            };
            let samples = site.round(&vec![cell; BEFORE + COUNTED], client, &mut children)?;
            Ok(Compressed { service, way, samples })
        },
    )
}
