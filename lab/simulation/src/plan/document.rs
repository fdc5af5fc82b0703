//! Sections and keys of a plan, as written. `build` adds the defaults.

use serde::Deserialize;
use toml::Table;

use super::words::{BitRate, PlanTime};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) link: LinkSection,
    pub(super) rohc: Option<RohcSection>,
    pub(super) clients: Clients,
    pub(super) requests: Requests,
    pub(super) download: Option<DownloadSection>,
    pub(super) runs: Runs,
    pub(super) sweep: Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LinkSection {
    pub(super) preset: Option<String>,
    pub(super) mtu: Option<u64>,
    pub(super) half_duplex: Option<PlanTime>,
    pub(super) both: DirectionSection,
    pub(super) up: DirectionSection,
    pub(super) down: DirectionSection,
}

/// Settings of one direction, or of both.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DirectionSection {
    pub(super) rate: Option<BitRate>,
    pub(super) delay: Option<PlanTime>,
    pub(super) jitter: Option<PlanTime>,
    pub(super) spikes: Option<f64>,
    pub(super) spike: Option<PlanTime>,
    pub(super) keeps_order: Option<bool>,
    pub(super) queue: QueueSection,
    pub(super) idle_wake: Option<IdleWake>,
    pub(super) overhead: Option<u64>,
    pub(super) loss: Option<f64>,
    pub(super) burst: Option<f64>,
    pub(super) loss_unit: Option<LossUnit>,
    pub(super) ber: Option<f64>,
    pub(super) deliver_damaged: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct QueueSection {
    pub(super) packets: Option<u64>,
    pub(super) octets: Option<u64>,
    pub(super) codel: Option<bool>,
    pub(super) target: Option<PlanTime>,
    pub(super) interval: Option<PlanTime>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdleWake {
    pub(super) after: PlanTime,
    pub(super) wake: PlanTime,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LossUnit {
    Frame,
    Packet,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RohcSection {
    pub(super) mode: Option<RohcMode>,
    pub(super) profiles: Option<Vec<String>>,
    pub(super) cid: Option<RohcCids>,
    pub(super) max_cid: Option<u64>,
    pub(super) feedback_wait: Option<PlanTime>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RohcCids {
    Small,
    Large,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RohcMode {
    Off,
    U,
    O,
    R,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Clients {
    pub(super) count: Option<u64>,
    pub(super) spread: Option<PlanTime>,
    pub(super) transport: Option<CarrierSetting>,
    pub(super) nagle: Option<Nagle>,
    pub(super) protection: Option<u64>,
    pub(super) congestion: Option<String>,
    pub(super) nstart: Option<u64>,
    pub(super) ack_timeout: Option<PlanTime>,
    pub(super) ack_random_factor: Option<f64>,
    pub(super) max_retransmit: Option<u64>,
    pub(super) warm_up: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CarrierSetting {
    #[default]
    Udp,
    Oscore,
    Dtls,
    Tcp,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Nagle {
    Off,
    On,
    Minshall,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Requests {
    pub(super) path: Option<String>,
    pub(super) content: Option<u64>,
    pub(super) count: Option<u64>,
    pub(super) start: Option<PlanTime>,
    pub(super) interval: Option<PlanTime>,
    pub(super) think: Option<PlanTime>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DownloadSection {
    pub(super) active: Option<bool>,
    pub(super) octets: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) receive_buffer: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Runs {
    pub(super) count: Option<u32>,
    pub(super) seed: Option<u64>,
    pub(super) end: Option<PlanTime>,
}
