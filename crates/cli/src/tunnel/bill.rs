//! `thinair tunnel bill`: what a configuration costs, by cause, before its first packet.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};
use thinair_analyze::{CaptureSide, CountedDirections, Sides, Tariff};
use thinair_report::{Cell, Column, Document, Section, Table};
use thinair_tunnel::config;
use thinair_tunnel::idle::DAY;
use thinair_tunnel::site::trial::{Trial, TrialCause, TrialOctets};
use thinair_tunnel::site_config::{Others, Security, SiteConfig, Suite};

use super::sources::{self, Folders};
use crate::packets::PacketOptions;
use crate::records::{OpenCapture, ReasonTally, RecordClock, unreadable};
use crate::terminal::{print, style};
use crate::usage::Usage;

pub(super) const EXIT_STATUS: &str = "\
Starts nothing, and reads no keys: both ends run in virtual time, with a carrier between them that loses nothing. The other end has the same \
channels, waits for this one if FILE has its address, and has no keepalive. Octets are those of both directions, with the headers of IP and \
UDP. Price lists: docs/tariffs.md.\n\n\
Exit status: 0 for success; 1 if a file cannot be read; 2 for wrong arguments or a wrong configuration.";

const SCHEMA: &str = "thinair.tunnel.bill/1";

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 120;

/// Time after which a start is complete.
const STARTED: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub(crate) struct BillArguments {
    /// Configuration file of this end
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Capture of packets to carry: those from its first address are sent by this end
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Price list of the carrier's network, a TOML file, instead of that of FILE; directions are those of this end
    #[arg(long, value_name = "FILE")]
    tariff: Option<PathBuf>,
    #[command(flatten)]
    packets: PacketOptions,
    /// Print JSON (thinair.tunnel.bill/1)
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &BillArguments) -> anyhow::Result<ExitCode> {
    let settings = sources::read(&arguments.file)?;
    let folders = Folders::of(&settings, sources::name_of(&arguments.file))?;
    let plan = sources::plan(&settings, &folders, &config::system_resolver)?;
    let tariff = match &arguments.tariff {
        Some(path) => Some(sources::tariff(path).map_err(anyhow::Error::msg)?),
        None => plan.tariff.clone(),
    };
    let mut columns = idle(&plan)?;
    if let Some(path) = &arguments.capture {
        columns.extend(carried(&plan, path, &arguments.packets, true)?);
    }
    let tags = tags(&plan, arguments)?;
    match arguments.json {
        true => print(
            &(serde_json::to_string_pretty(&to_json(arguments, &columns, &tags, tariff.as_ref()))? + "\n"),
        )?,
        false => print(&document(&columns, &tags, tariff.as_ref()).to_text(&style(PLAIN_WIDTH)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Octets of a time.
struct BillColumn {
    /// Name in JSON.
    name: &'static str,
    title: String,
    octets: TrialOctets,
    /// Factor to a longer time. Default: 1.
    times: f64,
}

fn trial(plan: &SiteConfig, peer: usize) -> anyhow::Result<Trial> {
    Trial::new(plan, peer).map_err(|error| Usage::error(error.to_string()))
}

/// Start and idle day of all peers.
fn idle(plan: &SiteConfig) -> anyhow::Result<Vec<BillColumn>> {
    let peers = match &plan.others {
        Others::Peers(peers) => peers.len(),
        Others::Mesh(_) => 1,
    };
    let (mut start, mut day) = (TrialOctets::default(), TrialOctets::default());
    for peer in 0..peers {
        let mut trial = trial(plan, peer)?;
        trial.run_to(STARTED);
        let started = trial.spent();
        trial.run_to(STARTED + DAY);
        day.add_all(&trial.spent().since(&started));
        start.add_all(&started);
    }
    Ok(vec![
        BillColumn { name: "start", title: "start".to_owned(), octets: start, times: 1.0 },
        BillColumn { name: "idle_day", title: "idle day".to_owned(), octets: day, times: 1.0 },
    ])
}

/// A capture, and a day of such packets. `is_first`: report packets that are dropped.
fn carried(
    plan: &SiteConfig,
    path: &Path,
    packets: &PacketOptions,
    is_first: bool,
) -> anyhow::Result<Vec<BillColumn>> {
    if let Others::Peers(peers) = &plan.others
        && peers.len() > 1
    {
        return Err(Usage::error(format!("--capture is for one peer, and the file has {}", peers.len())));
    }
    let mut trial = trial(plan, 0)?;
    trial.run_to(STARTED);
    let started = trial.spent();
    let mut unpack = packets.unpack().map_err(Usage::error)?;
    let OpenCapture { name, mut reader } = OpenCapture::open(path)?;
    let (mut sides, mut clock, mut skipped) =
        (Sides::default(), RecordClock::default(), ReasonTally::default());
    let (mut first, mut after, mut sent) = (None, Duration::ZERO, 0_u64);
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                unreadable(&name, error, &mut skipped)?;
                continue;
            }
        };
        let at = clock.at(record.time);
        let Ok(packet) = unpack.network_packet(&record) else { continue };
        let Some((source, destination)) = addresses(packet) else { continue };
        after = at.since(*first.get_or_insert(at));
        trial.send(STARTED + after, sides.of_flow(source, destination) == CaptureSide::B, packet);
        sent += 1;
    }
    if sent == 0 {
        anyhow::bail!("{name} has no IP packet");
    }
    let delivered: u64 = trial.delivered().iter().sum();
    if is_first && delivered < sent {
        eprintln!(
            "note: {} of {sent} packets are dropped: too long, or multicast of a host for itself",
            sent - delivered
        );
    }
    let octets = trial.spent().since(&started);
    let seconds = after.as_secs_f64();
    let mut columns = vec![BillColumn {
        name: "capture",
        title: format!("capture, {seconds:.0} s"),
        octets: octets.clone(),
        times: 1.0,
    }];
    if seconds >= 1.0 {
        let times = DAY.as_secs_f64() / seconds;
        columns.push(BillColumn { name: "capture_day", title: "a day of it".to_owned(), octets, times });
    }
    Ok(columns)
}

/// Octets with a tag of another length.
struct TagCost {
    tag: usize,
    idle_day: u64,
    /// `None` without a capture, or if it can be read only once.
    capture: Option<u64>,
}

/// Costs with tags of other lengths between two ends.
fn tags(plan: &SiteConfig, arguments: &BillArguments) -> anyhow::Result<Vec<TagCost>> {
    let Security::Key { suite, .. } = plan.security else { return Ok(Vec::new()) };
    let mut costs = Vec::new();
    for other in [Suite::ChaCha20Poly1305, Suite::AesCcm8, Suite::AesCcm4] {
        if other.tag() == suite.tag() {
            continue;
        }
        let mut plan = plan.clone();
        if let Security::Key { suite, negotiates, .. } = &mut plan.security {
            (*suite, *negotiates) = (other, false);
        }
        let total = |columns: Vec<BillColumn>, name| {
            columns.iter().find(|column| column.name == name).map_or(0, BillColumn::total)
        };
        let idle_day = total(idle(&plan)?, "idle_day");
        let capture = match arguments.capture.as_deref().filter(|path| path.is_file()) {
            Some(path) => Some(total(carried(&plan, path, &arguments.packets, false)?, "capture")),
            None => None,
        };
        costs.push(TagCost { tag: other.tag(), idle_day, capture });
    }
    Ok(costs)
}

/// Source and destination of an IP packet.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let v4 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let v6 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
    match packet.first()? >> 4 {
        4 => Some((v4(12)?, v4(16)?)),
        6 => Some((v6(8)?, v6(24)?)),
        _ => None,
    }
}

impl BillColumn {
    fn octets(&self, cause: TrialCause) -> u64 {
        (self.octets.of(cause) as f64 * self.times).round() as u64
    }

    fn total(&self) -> u64 {
        TrialCause::ALL.iter().map(|cause| self.octets(*cause)).sum()
    }

    fn datagrams(&self) -> u64 {
        let all: u64 = self.octets.datagrams.iter().flat_map(|sizes| sizes.values()).sum();
        (all as f64 * self.times).round() as u64
    }

    /// Price by a price list, in its currency.
    fn price(&self, tariff: &Tariff) -> f64 {
        let counted = match tariff.directions {
            CountedDirections::Both => [true, true],
            CountedDirections::Up => [true, false],
            CountedDirections::Down => [false, true],
        };
        let sizes = self.octets.datagrams.iter().zip(counted).filter(|(_, counts)| *counts);
        let steps: u64 =
            sizes.flat_map(|(sizes, _)| sizes).map(|(octets, count)| tariff.steps(*octets) * count).sum();
        steps as f64 * f64::from(tariff.step) * tariff.octet * self.times
    }
}

/// Cause in words.
fn words(cause: TrialCause) -> &'static str {
    match cause {
        TrialCause::Packets => "compressed packets",
        TrialCause::Contexts => "headers that set up contexts",
        TrialCause::Refreshes => "refreshes of contexts",
        TrialCause::Feedback => "feedback",
        TrialCause::Packaging => "packaging",
        TrialCause::OuterHeaders => "outer headers",
        TrialCause::Encryption => "encryption",
        TrialCause::Keepalives => "keepalives and signs of life",
        TrialCause::KeyExchanges => "key exchanges",
        TrialCause::PathProbes => "path probes",
    }
}

fn document(columns: &[BillColumn], tags: &[TagCost], tariff: Option<&Tariff>) -> Document {
    let headings = columns.iter().map(|column| Column::number(&column.title));
    let mut table = Table::new("", std::iter::once(Column::text("octets, both directions")).chain(headings));
    let mut row = |name: &str, of: &dyn Fn(&BillColumn) -> Cell| {
        table.row(std::iter::once(Cell::text(name)).chain(columns.iter().map(of)));
    };
    for cause in TrialCause::ALL {
        if columns.iter().any(|column| column.octets(cause) > 0) {
            row(words(cause), &|column| Cell::integer(column.octets(cause)));
        }
    }
    row("datagrams", &|column| Cell::integer(column.datagrams()));
    if let Some(tariff) = tariff {
        let decimals = tariff.decimals(4);
        row(&format!("price, {}", tariff.currency), &|column| Cell::number(column.price(tariff), decimals));
    }
    table.total(
        std::iter::once(Cell::text("octets"))
            .chain(columns.iter().map(|column| Cell::integer(column.total()))),
    );
    let mut section = Section::new("").table(table);
    for TagCost { tag, idle_day, capture } in tags {
        let capture = capture.map(|octets| format!(", {octets} for the capture")).unwrap_or_default();
        section = section.text(format!(
            "With a tag of {tag} octets: {idle_day} octets on an idle day{capture}. One of 2^{} forged datagrams is accepted.",
            8 * tag
        ));
    }
    Document::new("Bill of the tunnel").section(section)
}

fn to_json(
    arguments: &BillArguments,
    columns: &[BillColumn],
    tags: &[TagCost],
    tariff: Option<&Tariff>,
) -> Value {
    let column = |column: &BillColumn| {
        let causes: Map<_, _> = TrialCause::ALL
            .iter()
            .map(|cause| (cause.name().to_owned(), column.octets(*cause).into()))
            .collect();
        let value = json!({
            "octets": column.total(),
            "datagrams": column.datagrams(),
            "causes": causes,
            "price": tariff.map(|tariff| column.price(tariff)),
        });
        (column.name.to_owned(), value)
    };
    let mut json = json!({
        "schema": SCHEMA,
        "file": arguments.file,
        "currency": tariff.map(|tariff| tariff.currency.as_str()),
        "start": null,
        "idle_day": null,
        "capture": null,
        "capture_day": null,
        "tags": tags.iter().map(|cost| json!({
            "tag": cost.tag,
            "idle_day_octets": cost.idle_day,
            "capture_octets": cost.capture,
        })).collect::<Vec<_>>(),
    });
    for (name, value) in columns.iter().map(column) {
        json[name] = value;
    }
    json
}
