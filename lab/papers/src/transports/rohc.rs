//! Services over a link with ROHC: costs of exchanges with established contexts.

use super::cell::{KernelOptions, Temper, TransportCell, TransportLink, TransportService};
use super::{ExchangeSample, Range};
use crate::form::Figures;

/// Exchanges that are not counted, during which contexts are established.
const BEFORE: usize = 19;

/// Exchanges that are counted.
const COUNTED: usize = 4;

/// Use of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceUse {
    /// New client each time, UDP checksums carried.
    Anew,
    /// One CoAP client for all exchanges, over IPv4.
    GoesOn,
    /// One CoAP client for all exchanges, over IPv6.
    GoesOnV6,
    /// One CoAP client for all exchanges, over IPv6, UDP checksums elided and recomputed where they were right.
    Elided,
}

impl ServiceUse {
    const fn link(self) -> TransportLink {
        match self {
            Self::Anew | Self::GoesOn => TransportLink::Slow,
            Self::GoesOnV6 | Self::Elided => TransportLink::Frames,
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
pub(super) struct CompressedService {
    pub(super) service: TransportService,
    pub(super) way: ServiceUse,
    samples: Vec<ExchangeSample>,
}

impl CompressedService {
    /// Range over the exchanges with established contexts.
    fn range(&self, of: fn(&ExchangeSample) -> f64) -> Option<Range> {
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
    plan: &crate::paper::RunPlan,
    missing: &std::collections::BTreeMap<TransportService, String>,
    program: &std::path::Path,
    interrupt: &crate::children::Interrupt,
) -> Result<Vec<CompressedService>, crate::paper::PaperError> {
    let of_coap = [ServiceUse::GoesOn, ServiceUse::GoesOnV6, ServiceUse::Elided]
        .map(|way| (TransportService::Coap, way));
    let all =
        of_coap.into_iter().chain(TransportService::PUBLISHED.map(|service| (service, ServiceUse::Anew)));
    let jobs: Vec<_> = all.filter(|(service, _)| !missing.contains_key(service)).collect();
    crate::sweep::sweep(
        &jobs,
        plan.threads,
        &|_, _| Ok(()),
        |_| 1,
        |&(service, way)| {
            let mut options = vec!["--rohc", "--mode", "o", "--profiles", "v1,tcp,coap"];
            if way == ServiceUse::Elided {
                options.extend(["--coap-checksum", "elide"]);
            }
            let link = way.link();
            let site = super::site::LinkSite::open(link, KernelOptions::Lean, program, &options)?;
            let cell =
                TransportCell { service, link, options: KernelOptions::Lean, size: 10, temper: Temper::Warm };
            let mut children = crate::children::Children::new(interrupt)?;
            let client = match way {
                ServiceUse::Anew => super::site::ClientMode::Processes,
                ServiceUse::GoesOn | ServiceUse::GoesOnV6 | ServiceUse::Elided => {
                    super::site::ClientMode::OneOfCoap
                }
            };
            let samples = site.round(&vec![cell; BEFORE + COUNTED], client, &mut children)?;
            Ok(CompressedService { service, way, samples })
        },
    )
}
