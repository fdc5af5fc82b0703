//! Metrics of a run.

use core::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::network::Punctuality;
use crate::network::ScenarioOutcome;

/// Measurements of one run. A figure without measurements, as no exchange was answered, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Flow completion time: from a client's first request to its last response, maximum over the clients; ms.
    pub fct_ms: Option<f64>,
    /// Mean duration of an answered exchange; ms.
    pub crtt_ms: Option<f64>,
    /// Maximum duration of an answered exchange; ms.
    pub worst_ms: Option<f64>,
    /// Retransmissions of clients per 100 requests.
    pub rtr_percent: Option<f64>,
    /// Answered exchanges per second, from the first request to the end of the run.
    pub goodput_per_s: Option<f64>,
    /// Transmissions of requests per answered exchange.
    pub transmissions: Option<f64>,
    /// Requests that were given up.
    pub given_up: Option<f64>,
    /// Octets on the link, in both directions, per answered exchange: IP or ROHC packets, including traffic other than
    /// the exchanges.
    pub octets: Option<f64>,
    /// Time from the start until a download is complete; ms.
    #[serde(default)]
    pub download_ms: Option<f64>,
}

impl Sample {
    /// Measurements of an outcome.
    pub fn of(outcome: &ScenarioOutcome) -> Self {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let all = || outcome.clients.iter().flat_map(|client| &client.exchanges);
        let took = || all().filter_map(|exchange| exchange.took());
        let (asked, answered) = (all().count() as f64, took().count() as f64);
        let again: u64 = outcome.clients.iter().map(|client| client.retransmissions).sum();
        let carried: u64 = outcome.totals.iter().map(|totals| totals.carried_octets).sum();
        let begun = all().map(|exchange| exchange.made).min();
        let lasted = begun.map_or(0.0, |begun| outcome.ended.since(begun).as_secs_f64());
        let of = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Self {
            fct_ms: outcome.clients.iter().filter_map(|client| client.completed_after()).max().map(ms),
            crtt_ms: of(took().map(ms).sum(), answered),
            worst_ms: took().max().map(ms),
            rtr_percent: of(100.0 * again as f64, asked),
            goodput_per_s: of(answered, lasted),
            transmissions: of(again as f64 + asked, answered),
            given_up: Some(all().filter(|exchange| exchange.error.is_some()).count() as f64),
            octets: of(carried as f64, answered),
            download_ms: outcome.download_took.map(ms),
        }
    }
}

/// Lateness of packets from the link in a run in real time, which limits the accuracy of its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// 99th percentile; us.
    pub p99_us: f64,
    /// Maximum; us.
    pub max_us: f64,
    /// Steal time: share of the machine's time that its host gave to others; percent.
    pub stolen_percent: f64,
}

impl Lateness {
    #[cfg(target_os = "linux")]
    pub(super) fn of(punctuality: &Punctuality) -> Self {
        let us = |nanos: u64| nanos as f64 / 1e3;
        let late = &punctuality.lateness;
        Self {
            p99_us: us(late.percentile(99).unwrap_or(0)),
            max_us: us(late.max()),
            stolen_percent: 100.0 * punctuality.stolen,
        }
    }

    /// Maximum of both.
    fn worse(self, other: Self) -> Self {
        Self {
            p99_us: self.p99_us.max(other.p99_us),
            max_us: self.max_us.max(other.max_us),
            stolen_percent: self.stolen_percent.max(other.stolen_percent),
        }
    }

    pub(super) fn worst(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.worse(other)),
            (one, other) => one.or(other),
        }
    }

    /// True if times are accurate to 1 ms.
    pub fn is_good(&self) -> bool {
        self.p99_us <= 1_000.0
    }
}

/// Metric of a [`Sample`].
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Key in JSON.
    pub key: &'static str,
    /// Title.
    pub title: &'static str,
    /// Unit; empty for a count.
    pub unit: &'static str,
    /// Significant decimals.
    pub decimals: u8,
    /// Gets the value from a sample.
    pub of: fn(&Sample) -> Option<f64>,
}

impl Metric {
    /// All metrics, in the order of presentation.
    pub const ALL: [Self; 9] = [
        Self { key: "fct_ms", title: "FCT", unit: "ms", decimals: 1, of: |sample| sample.fct_ms },
        Self { key: "crtt_ms", title: "C-RTT", unit: "ms", decimals: 1, of: |sample| sample.crtt_ms },
        Self { key: "worst_ms", title: "worst", unit: "ms", decimals: 1, of: |sample| sample.worst_ms },
        Self { key: "rtr_percent", title: "RTR", unit: "%", decimals: 2, of: |sample| sample.rtr_percent },
        Self {
            key: "goodput_per_s",
            title: "goodput",
            unit: "1/s",
            decimals: 2,
            of: |sample| sample.goodput_per_s,
        },
        Self {
            key: "transmissions",
            title: "transmissions",
            unit: "",
            decimals: 3,
            of: |sample| sample.transmissions,
        },
        Self { key: "given_up", title: "given up", unit: "", decimals: 2, of: |sample| sample.given_up },
        Self { key: "octets", title: "octets", unit: "B", decimals: 1, of: |sample| sample.octets },
        Self {
            key: "download_ms",
            title: "download",
            unit: "ms",
            decimals: 1,
            of: |sample| sample.download_ms,
        },
    ];
}
