//! Services over a link with ROHC: costs of exchanges with established contexts.

use super::cell::{Cell, Link, Options, Service, Temper};
use super::{Range, Sample};
use crate::form::Figures;

/// Exchanges that are not counted, during which contexts are established.
const BEFORE: usize = 19;

/// Exchanges that are counted.
const COUNTED: usize = 4;

/// Use of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// New client each time, UDP checksums carried.
    Anew,
    /// One CoAP client for all exchanges, over IPv4.
    GoesOn,
    /// One CoAP client for all exchanges, over IPv6.
    GoesOnV6,
    /// One CoAP client for all exchanges, over IPv6, UDP checksums elided and recomputed where they were right.
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

/// Consecutive exchanges of a service, with 10 octets over 20 kbit/s, an MTU of 128 and lean options.
#[derive(Clone, Debug)]
pub(super) struct Compressed {
    pub(super) service: Service,
    pub(super) way: Way,
    samples: Vec<Sample>,
}

impl Compressed {
    /// Range over the exchanges with established contexts.
    fn range(&self, of: fn(&Sample) -> f64) -> Option<Range> {
        Range::of(self.samples.iter().skip(BEFORE).map(of).collect())
    }

    /// Octets on the link.
    fn octets(&self) -> Option<Range> {
        self.range(|sample| sample.link_octets as f64)
    }

    /// Milliseconds until the object was complete.
    fn time(&self) -> Option<Range> {
        let times = self.samples.iter().skip(BEFORE).filter_map(|sample| sample.exchange.download_ns);
        Range::of(times.map(|nanos| nanos as f64 / 1e6).collect())
    }

    /// Octets of the IP packets.
    fn plain(&self) -> Option<Range> {
        self.range(|sample| sample.ip_octets as f64)
    }

    /// Octets on the link of the first exchange.
    fn first(&self) -> Option<u64> {
        self.samples.first().map(|sample| sample.link_octets)
    }

    pub(super) fn put(&self, figures: &mut Figures) {
        let id =
            |figure: &str| format!("{}/20k/128/10/rohc/{}/{figure}", self.service.name(), self.way.name());
        let figure = |range: Option<Range>, of: fn(Range) -> f64| range.map(of);
        // The maximum, so that every exchange meets the bar.
        figures.put(id("octets"), figure(self.octets(), |range| range.max));
        figures.put(id("share"), self.share());
        figures.put(id("odt"), figure(self.time(), |range| range.median));
        figures.put(id("first"), self.first().map(|octets| octets as f64));
        figures.put(id("median"), figure(self.octets(), |range| range.median));
        figures.put(id("plain"), figure(self.plain(), |range| range.median));
    }

    /// Share of the octets that remains: 1 without saving, above 1 if compression adds octets.
    fn share(&self) -> Option<f64> {
        Some(self.octets()?.median / self.plain()?.median)
    }
}

/// Measures each service of the paper that is installed.
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
