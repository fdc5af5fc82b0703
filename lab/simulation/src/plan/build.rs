//! Scenario of a parsed plan: defaults, ranges, and contradictions.

use core::ops::RangeInclusive;
use core::time::Duration;

use thinair_coap::congestion::{Algorithm, CocoaConfig, Transmission};
use thinair_coap::{Config, Limits, Request, Timing};
use thinair_link::preset::{self, presets};
use thinair_link::{
    Airtime, BitErrorModel, CoDelConfig, Discipline, Duplex, GilbertElliott, IdleWake, Integrity, Jitter,
    LinkModel, LossModel, MeanBurst, Probability, Rate,
};
use thinair_rohc::{Channel, CidSpace, CompressorConfig, DecompressorConfig, Mode, ProfileId, ProfileSet};
use thinair_wire::time::Instant;

use super::document::{self, CarrierSetting, Document, LossUnit, RohcCids, RohcMode};
use super::words::PlanTime;
use crate::network::{MessageTransport, RequestPace, Requests, Scenario};
use crate::tcp;
use thinair_emulator::{RohcChannel, fragmenting, with_mtu};

/// Error in the value of a key.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) message: String,
}

fn wrong(key: &'static str, message: impl Into<String>) -> Wrong {
    Wrong { key, message: message.into() }
}

/// Packet size without a limit, in octets: that of Ethernet.
const USUAL_MTU: u32 = 1_500;

/// Maximum number of clients: each has an address.
const MOST_CLIENTS: u64 = 9_000;

/// Congestion controls with other settings than those of their RFCs and drafts.
const VARIANTS: &str = "cocoa-fine (no clock granularity)";

/// Number in its range, or the default.
fn number(
    key: &'static str,
    given: Option<u64>,
    default: u64,
    range: RangeInclusive<u64>,
) -> Result<u64, Wrong> {
    let value = given.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    Err(wrong(key, format!("is {value}; give {} to {}", range.start(), range.end())))
}

pub(super) fn scenario(document: &Document) -> Result<Scenario, Wrong> {
    let Document { clients, requests, runs, .. } = document;
    let config = config(clients)?;
    let transport = transport(clients)?;
    let pace = match (requests.interval, requests.think) {
        (Some(_), Some(_)) => {
            return Err(wrong(
                "requests.think",
                "is for clients that wait for responses, requests.interval for those that do not; take one out",
            ));
        }
        (Some(PlanTime(Duration::ZERO)), None) => {
            return Err(wrong("requests.interval", "is zero; give a time"));
        }
        (Some(interval), None) => RequestPace::Open { interval: interval.0 },
        (None, think) => RequestPace::Closed { think: think.map_or(Duration::ZERO, |think| think.0) },
    };
    let start = requests.start.map_or(Duration::from_secs(5), |start| start.0);
    let end = runs.end.map_or(Duration::from_secs(3_600), |end| end.0);
    if end <= start {
        return Err(wrong("runs.end", "is not behind requests.start; give a later time"));
    }
    let path = requests.path.as_deref().unwrap_or("/tmp");
    if !path.starts_with('/') {
        return Err(wrong("requests.path", "does not begin with /; write it as \"/tmp\""));
    }
    Ok(Scenario {
        model: model(&document.link)?,
        rohc: document.rohc.as_ref().map(rohc).transpose()?.flatten(),
        clients: number("clients.count", clients.count, 1, 1..=MOST_CLIENTS)? as u16,
        transport,
        config,
        requests: Requests {
            request: Request::get(path),
            count: number("requests.count", requests.count, 100, 1..=u64::from(u32::MAX))? as usize,
            start: Instant::ZERO + start,
            pace,
        },
        spread: clients.spread.map_or(Duration::ZERO, |spread| spread.0),
        // Content of one message, without blocks.
        content: number("requests.content", requests.content, 23, 0..=1_024)? as usize,
        stepping: false,
        download: document.download.as_ref().map(download).transpose()?.flatten(),
        download_octets: document.download.as_ref().map(download_octets).transpose()?.flatten(),
        warm_up: number("clients.warm_up", clients.warm_up, 0, 0..=1_000)? as usize,
        pause: None,
        end: Instant::ZERO + end,
    })
}

fn config(clients: &document::Clients) -> Result<Config, Wrong> {
    let usual = Transmission::default();
    let factor = clients.ack_random_factor.unwrap_or(1.5);
    if !(1.0..=10.0).contains(&factor) {
        return Err(wrong("clients.ack_random_factor", format!("is {factor}; give 1 to 10")));
    }
    let ack_timeout = clients.ack_timeout.map_or(usual.ack_timeout, |timeout| timeout.0);
    if ack_timeout.is_zero() {
        return Err(wrong("clients.ack_timeout", "is zero; give a time, as \"2s\""));
    }
    let nstart = number("clients.nstart", clients.nstart, 1, 1..=65_535)? as u16;
    let max_retransmit = number("clients.max_retransmit", clients.max_retransmit, 4, 0..=20)? as u8;
    let congestion = match clients.congestion.as_deref() {
        None => Algorithm::default(),
        Some("cocoa-fine") => Algorithm::Cocoa(CocoaConfig { g: Duration::ZERO, ..CocoaConfig::default() }),
        Some(name) => name
            .parse()
            .map_err(|error| wrong("clients.congestion", format!("is {name:?}: {error}; and {VARIANTS}")))?,
    };
    let transmission = Transmission {
        ack_timeout,
        ack_random_factor: (factor * 1e3).round() as u16,
        max_retransmit,
        nstart,
        ..usual
    };
    // A server must hold state for every client.
    let max_peers = 2_048.max(clients.count.unwrap_or(1).min(MOST_CLIENTS) as usize);
    Ok(Config {
        timing: Timing { transmission, congestion, ..Timing::default() },
        limits: Limits { max_peers, ..Limits::default() },
        ..Config::default()
    })
}

fn transport(clients: &document::Clients) -> Result<MessageTransport, Wrong> {
    match clients.transport.unwrap_or_default() {
        CarrierSetting::Udp => Ok(MessageTransport::Udp {
            protection: number("clients.protection", clients.protection, 0, 0..=1_024)? as usize,
        }),
        CarrierSetting::Oscore | CarrierSetting::Dtls | CarrierSetting::Tcp
            if clients.protection.is_some_and(|octets| octets > 0) =>
        {
            Err(wrong(
                "clients.protection",
                "is of datagrams; take it out, or set clients.transport to \"udp\"",
            ))
        }
        CarrierSetting::Oscore => Ok(MessageTransport::Oscore),
        CarrierSetting::Dtls => Ok(MessageTransport::Dtls),
        CarrierSetting::Tcp => {
            let nagle = match clients.nagle {
                Some(document::Nagle::Off) => tcp::Nagle::Off,
                Some(document::Nagle::On) => tcp::Nagle::On,
                Some(document::Nagle::Minshall) | None => tcp::Nagle::Minshall,
            };
            Ok(MessageTransport::Tcp(tcp::TcpConfig { nagle, ..tcp::TcpConfig::default() }))
        }
    }
}

fn download(download: &document::DownloadSection) -> Result<Option<tcp::TcpConfig>, Wrong> {
    let usual = tcp::TcpConfig::default();
    let buffer =
        number("download.receive_buffer", download.receive_buffer, usual.receive_buffer.into(), 1..=1 << 30)?;
    let window = match download.window {
        None => None,
        given => Some(number("download.window", given, 1, 1..=100_000)? as u32),
    };
    let config = tcp::TcpConfig { window, receive_buffer: buffer as u32, ..usual };
    Ok(download.active.unwrap_or(true).then_some(config))
}

fn download_octets(download: &document::DownloadSection) -> Result<Option<u64>, Wrong> {
    download.octets.map(|octets| number("download.octets", Some(octets), 0, 1..=1 << 40)).transpose()
}

fn rohc(rohc: &document::RohcSection) -> Result<Option<RohcChannel>, Wrong> {
    let mode = match rohc.mode {
        None => return Err(wrong("rohc.mode", "is missing: give \"off\", \"u\", \"o\" or \"r\"")),
        Some(RohcMode::Off) => return Ok(None),
        Some(RohcMode::U) => Mode::Unidirectional,
        Some(RohcMode::O) => Mode::Optimistic,
        Some(RohcMode::R) => Mode::Reliable,
    };
    let mut named = Vec::new();
    let usual = ["v1".to_owned(), "coap".to_owned()];
    for name in rohc.profiles.as_deref().unwrap_or(&usual) {
        match ProfileId::by_name(name) {
            Some(profile) => named.push(profile),
            None if name == "v1" => named.extend(ProfileSet::v1().iter()),
            None => {
                let known = ProfileId::ALL.map(ProfileId::name).join(", ");
                return Err(wrong(
                    "rohc.profiles",
                    format!("has {name:?}; there are {known}, and the set v1"),
                ));
            }
        }
    }
    let profiles =
        ProfileSet::of(&named).map_err(|error| wrong("rohc.profiles", format!("are no set: {error}")))?;
    let cids = match rohc.cid {
        None | Some(RohcCids::Small) => CidSpace::Small,
        Some(RohcCids::Large) => CidSpace::Large,
    };
    let highest = CidSpace::Small.highest();
    let max_cid = number("rohc.max_cid", rohc.max_cid, highest.into(), 0..=cids.highest().into())?;
    let channel = Channel::new(cids, u16::try_from(max_cid).unwrap_or(highest), profiles)
        .map_err(|error| wrong("rohc.profiles", format!("make no channel: {error}")))?;
    Ok(Some(RohcChannel {
        compressor: CompressorConfig::new(channel),
        decompressor: DecompressorConfig { mode, ..DecompressorConfig::new(channel) },
        bases: Vec::new(),
        feedback_wait: rohc.feedback_wait.map_or(Duration::ZERO, |wait| wait.0),
        ends: None,
    }))
}

fn model(link: &document::LinkSection) -> Result<LinkModel<'static>, Wrong> {
    let preset = match link.preset.as_deref() {
        None => None,
        Some(name) => Some(preset::by_name(name).ok_or_else(|| {
            let known: Vec<_> = presets().iter().map(|preset| preset.name).collect();
            wrong("link.preset", format!("is {name:?}; there are {}", known.join(", ")))
        })?),
    };
    let mut model = preset.map_or(LinkModel::default(), |preset| preset.model);
    if let Some(turnaround) = link.half_duplex {
        model.duplex = Duplex::Half { turnaround: turnaround.0 };
    }
    let mtu = link.mtu.map(|octets| number("link.mtu", Some(octets), 0, 16..=65_535)).transpose()?;
    let packet = mtu.map(|mtu| mtu as u32).or(preset.map(|preset| preset.mtu.into())).unwrap_or(USUAL_MTU);
    change(&mut model.a_to_b, [&link.up, &link.both], &UP, packet)?;
    change(&mut model.b_to_a, [&link.down, &link.both], &DOWN, packet)?;
    Ok(match mtu {
        Some(octets) => with_mtu(&model, octets as u16),
        None => fragmenting(&model),
    })
}

/// Names of keys of a direction, for errors.
struct Names {
    spikes: &'static str,
    queue: &'static str,
    octets: &'static str,
    codel: &'static str,
    overhead: &'static str,
    loss: &'static str,
    burst: &'static str,
    ber: &'static str,
    deliver_damaged: &'static str,
}

macro_rules! names {
    ($way:literal) => {
        Names {
            spikes: concat!("link.", $way, ".spikes"),
            queue: concat!("link.", $way, ".queue.packets"),
            octets: concat!("link.", $way, ".queue.octets"),
            codel: concat!("link.", $way, ".queue.codel"),
            overhead: concat!("link.", $way, ".overhead"),
            loss: concat!("link.", $way, ".loss"),
            burst: concat!("link.", $way, ".burst"),
            ber: concat!("link.", $way, ".ber"),
            deliver_damaged: concat!("link.", $way, ".deliver_damaged"),
        }
    };
}

const UP: Names = names!("up");
const DOWN: Names = names!("down");
const BOTH: Names = names!("both");

/// Overrides a preset. Keys of one direction take precedence over those of both.
fn change(
    direction: &mut thinair_link::Direction<'static>,
    given: [&document::DirectionSection; 2],
    own: &Names,
    mtu: u32,
) -> Result<(), Wrong> {
    let [one, both] = given;
    // Name of the key where the value was given.
    macro_rules! given {
        ($($key:ident).+, $name:ident) => {
            match &one.$($key).+ {
                Some(value) => (Some(*value), own.$name),
                None => (both.$($key).+, BOTH.$name),
            }
        };
        ($($key:ident).+) => {
            one.$($key).+.or(both.$($key).+)
        };
    }
    if let Some(rate) = given!(rate) {
        // A BitRate is at least 1.
        direction.airtime = Rate::from_bps(rate.0).map_or(Airtime::None, Airtime::Rate);
    }
    direction.delay = given!(delay).map_or(direction.delay, |delay| delay.0);
    if let Some(deviation) = given!(jitter) {
        direction.jitter = Jitter { deviation: deviation.0, ..Jitter::default() };
    }
    if let (Some(share), name) = given!(spikes, spikes) {
        direction.jitter.spikes = percent(name, share)?;
    }
    direction.jitter.spike = given!(spike).map_or(direction.jitter.spike, |spike| spike.0);
    direction.keeps_order = given!(keeps_order).unwrap_or(direction.keeps_order);
    queue(&mut direction.queue, [&one.queue, &both.queue], own, mtu)?;
    direction.idle_wake = given!(idle_wake)
        .map(|given| IdleWake { after: given.after.0, wake: given.wake.0 })
        .or(direction.idle_wake);
    if let (Some(octets), name) = given!(overhead, overhead) {
        direction.framing.overhead = number(name, Some(octets), 0, 0..=65_535)? as u16;
    }
    let ((loss, loss_name), (burst, burst_name)) = (given!(loss, loss), given!(burst, burst));
    match (loss, burst) {
        (Some(loss), None) => direction.loss = random(percent(loss_name, loss)?),
        (Some(loss), Some(burst)) => {
            let rate = percent(loss_name, loss)?;
            let frames = Some(burst).filter(|burst| (1.0..=1e6).contains(burst));
            let burst = frames
                .and_then(|frames| MeanBurst::from_thousandths((frames * 1e3).round() as u32))
                .ok_or_else(|| wrong(burst_name, format!("is {burst}; give 1 to 1000000")))?;
            direction.loss = match rate == Probability::NEVER {
                true => LossModel::None,
                false => GilbertElliott::bursts(rate, burst).map(LossModel::Bursts).map_err(|_| {
                    wrong(
                        burst_name,
                        "is too short for so much loss; give a longer one, or 1 for loss by chance",
                    )
                })?,
            };
        }
        (None, Some(_)) => {
            return Err(wrong(burst_name, "has no effect without loss: give loss, too"));
        }
        (None, None) => {}
    }
    match given!(loss_unit) {
        None => {}
        Some(LossUnit::Frame) => direction.loss_unit = thinair_link::LossUnit::Frame,
        Some(LossUnit::Packet) => direction.loss_unit = thinair_link::LossUnit::Packet,
    }
    let (damaged, damaged_name) = given!(deliver_damaged, deliver_damaged);
    match given!(ber, ber) {
        (Some(rate), name) => {
            let rate = Probability::from_f64(rate)
                .ok_or_else(|| wrong(name, format!("is {rate}; give 0 to 1, as 1e-4")))?;
            direction.bit_errors =
                if rate == Probability::NEVER { BitErrorModel::None } else { BitErrorModel::Random(rate) };
            // A width of 64 detects all damage.
            direction.integrity = match damaged.unwrap_or(false) {
                true => Integrity::None,
                false => Integrity::Modelled { width: 64 },
            };
        }
        (None, _) if damaged.is_some() => {
            return Err(wrong(damaged_name, "has no effect without ber: give ber, too"));
        }
        (None, _) => {}
    }
    Ok(())
}

fn queue(
    queue: &mut thinair_link::Queue,
    [one, both]: [&document::QueueSection; 2],
    own: &Names,
    mtu: u32,
) -> Result<(), Wrong> {
    if let Some(packets) = one.packets.or(both.packets) {
        let name = if one.packets.is_some() { own.queue } else { BOTH.queue };
        let packets = number(name, Some(packets), 0, 1..=10_000_000)? as u32;
        *queue = thinair_link::Queue {
            octets: queue.octets,
            discipline: queue.discipline,
            ..thinair_link::Queue::packets(packets)
        };
    }
    if let Some(octets) = one.octets.or(both.octets) {
        let name = if one.octets.is_some() { own.octets } else { BOTH.octets };
        queue.octets = number(name, Some(octets), 0, 1..=1 << 40)?;
    }
    let (target, interval) = (one.target.or(both.target), one.interval.or(both.interval));
    match one.codel.or(both.codel) {
        Some(true) => {
            let usual = CoDelConfig::new(mtu);
            queue.discipline = Discipline::CoDel(CoDelConfig {
                target: target.map_or(usual.target, |target| target.0),
                interval: interval.map_or(usual.interval, |interval| interval.0),
                ..usual
            });
        }
        Some(false) => queue.discipline = Discipline::DropTail,
        None if target.or(interval).is_some() => {
            let name = if one.target.or(one.interval).is_some() { own.codel } else { BOTH.codel };
            return Err(wrong(name, "is missing, but its target or interval is given: give codel = true"));
        }
        None => {}
    }
    Ok(())
}

fn percent(key: &'static str, percent: f64) -> Result<Probability, Wrong> {
    Probability::from_f64(percent / 100.0)
        .ok_or_else(|| wrong(key, format!("is {percent}; give a percentage, 0 to 100")))
}

fn random(rate: Probability) -> LossModel<'static> {
    if rate == Probability::NEVER { LossModel::None } else { LossModel::Random(rate) }
}
