//! `thinair analyze`: cost of each flow of a capture, and savings by header compression.
//!
//! This module reads arguments and captures and sets the exit status. `thinair-analyze` computes the results;
//! `text` prints them on a terminal, `page` as an HTML page. [`Results`] are for callers without files and terminal, such
//! as a browser.

mod advice;
mod json;
mod live;
mod page;
mod results;
mod rows;
pub(crate) mod source;
mod text;
mod unusable;
pub(crate) mod words;

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use thinair_analyze::{
    Billing, CarrierOverhead, MOST_FLOWS, MOST_PARTITIONS, Outcome, RandomLoss, SchemeName, SchemeSpec,
    Settings, Survey, Tariff, more_contexts,
};
use thinair_report::Numerals;
use thinair_rohc::profile::coap::Base;
use thinair_rohc::{Channel, Mode, Ports, ProfileSet};

use self::advice::{Advice, MEGABYTE};
pub use self::results::{Results, check};
use self::source::{Captures, is_file};
pub use self::source::{ReadAt, Reading};
use crate::learn;
use crate::options::{ChannelOptions, CidOption, MOST_BASES};
use crate::packets::PacketOptions;
use crate::terminal::{print, sentence_width, style};
use crate::usage::Usage;
use crate::values::is_stdio;

const EXIT_STATUS: &str = "\
Exit status: 0 if every packet was restored bit for bit; 1 if not, if a file cannot be read, or if no capture \
contains an IP packet; 2 for wrong arguments; 3 if the savings are below --fail-under.";

/// Scheme that uses the profiles of `--profiles`, if that option is given.
const ROHC_V1: &str = SchemeName::RohcV1.name();

/// Scheme with the most profiles; its bases are learned from the captures.
const COAP_LEARNED: &str = "coap-learned";

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 140;

#[derive(Args, Debug)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct AnalyzeArguments {
    /// Captures (pcap, pcapng, also .gz and .zst), one per link; `-` is standard input
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    live: live::LiveOptions,
    /// Schemes to compare, separated by commas [default: all that apply]
    #[arg(long, value_parser = scheme_names(), value_name = "LIST", value_delimiter = ',', conflicts_with = "profiles")]
    schemes: Option<Vec<SchemeName>>,
    /// Mode of ROHC: u, o or r [default: compare u and o]
    ///
    /// Unidirectional, bidirectional optimistic or bidirectional reliable mode (RFC 3095, section 4.4).
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,
    /// Number of threads, which changes no result [default: that of processors]
    ///
    /// Each thread carries the packets of some schemes, and of some --partitions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    #[command(flatten)]
    channel: ChannelOptions,
    /// Number of parallel channels of each link, each with contexts of its own
    ///
    /// Both addresses select the channel of a packet. Results depend on this number: more channels have more
    /// contexts for many flows.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PARTITIONS)),
        hide_short_help = true,
        help_heading = "Channel"
    )]
    partitions: u32,
    /// Drop this percentage of compressed packets and feedback, 0 to 100
    ///
    /// SYN segments are not dropped: the packets that follow show that they arrived.
    #[arg(long, value_name = "PCT", value_parser = percentage, help_heading = "Link")]
    loss: Option<f64>,
    /// Seed of the random losses; equal seeds drop equal packets
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        hide_short_help = true,
        requires = "loss",
        help_heading = "Link"
    )]
    seed: u64,
    /// Smallest unit that is billed, in octets; packets are rounded up
    #[arg(
        long,
        value_name = "OCTETS",
        value_parser = clap::value_parser!(u32).range(1..),
        hide_short_help = true,
        help_heading = "Link"
    )]
    billing_unit: Option<u32>,
    /// Price of a megabyte (10^6 octets), or of a --billing-unit [default: 1]
    #[arg(long, value_name = "P", value_parser = price, help_heading = "Link")]
    price: Option<f64>,
    /// Price list of the link, a file (docs/tariffs.md)
    ///
    /// The recommendation goes by its money, and the results have what packing saves.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["billing_unit", "price"], help_heading = "Link")]
    tariff: Option<PathBuf>,
    /// Count packets that exceed this MTU, before and after compression
    #[arg(long, hide_short_help = true, value_name = "OCTETS", help_heading = "Link")]
    link_mtu: Option<u32>,
    #[command(flatten)]
    packets: PacketOptions,
    /// Print the results as JSON (thinair.analyze/1)
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    json: bool,
    /// Print a table of flows as CSV
    #[arg(long, help_heading = "Output")]
    csv: bool,
    /// Write the report with plots as one self-contained HTML file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Show every scheme and mode, octets by layer and packet type
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// List every flow, not only the largest ones
    #[arg(long, help_heading = "Output")]
    all_flows: bool,
    /// Number of flows with all figures in JSON and CSV, largest first; others list octets only
    #[arg(long, value_name = "N", default_value_t = MOST_FLOWS, hide_short_help = true, help_heading = "Output")]
    most_flows: usize,
    /// Exit with status 3 if the best scheme saves less than this, in % of all octets
    #[arg(long, value_name = "PCT", value_parser = threshold, allow_negative_numbers = true, help_heading = "Output")]
    fail_under: Option<f64>,
    /// Corrupt one octet of one compressed packet, to test that verification detects it
    #[arg(long = "break", hide = true)]
    damage: bool,
}

impl AnalyzeArguments {
    /// Number of threads.
    fn jobs(&self) -> u16 {
        let processors =
            || std::thread::available_parallelism().map_or(1, |processors| processors.get().min(256) as u16);
        self.jobs.unwrap_or_else(processors)
    }

    /// Files that contain the packets after the command has ended; none for a live capture that is not
    /// written to a file.
    fn kept(&self) -> &[PathBuf] {
        match &self.live.interface {
            Some(_) => self.live.written(),
            None => &self.files,
        }
    }
}

pub(crate) fn run(arguments: &AnalyzeArguments) -> anyhow::Result<ExitCode> {
    let mut settings = match settings(arguments) {
        Ok(settings) => settings,
        Err(wrong) => {
            eprintln!("thinair: {wrong}");
            return Ok(ExitCode::from(2));
        }
    };
    settings.bases = arguments.channel.bases()?;
    if let Some(path) = &arguments.tariff {
        set_tariff(&mut settings, tariff(path)?)?;
    }
    if let Some(name) = arguments.channel.template_name(&settings.bases) {
        eprintln!("template {name}");
    }
    let (mut captures, dropped) = match &arguments.live.interface {
        Some(name) => {
            let mut live_settings = settings.clone();
            live_settings.schemes = live_schemes(arguments, &settings.channel)?;
            let capture = live::capture(&arguments.live, name, &live_settings)?;
            settings.duration = Some(capture.duration);
            let is_kept = arguments.live.written().iter().any(|path| is_file(path));
            (Captures::of(name, capture.file, is_kept), Some(capture.dropped))
        }
        None => (Captures::open(&arguments.files)?, None),
    };
    let mut outcome = analyzed(arguments, &mut settings, &mut captures, |_| ())?;
    for input in &mut outcome.inputs {
        input.dropped = dropped;
    }
    for line in unusable::lines(&outcome, &captures) {
        eprintln!("thinair: {line}");
    }
    if outcome.totals.packets == 0 {
        for line in words::endings(&outcome) {
            eprintln!("thinair: {line}");
        }
        if arguments.json {
            print_pieces(|out| json::write(&outcome, out))?;
        }
        return Ok(ExitCode::FAILURE);
    }

    match (arguments.json, arguments.csv) {
        (true, _) => print_pieces(|out| json::write(&outcome, out))?,
        (_, true) => print_pieces(|out| text::write_flows_csv(&outcome, out))?,
        (false, false) => print(&shown(arguments, &settings, &outcome))?,
    }
    if let Some(path) = &arguments.html {
        let advice = advice(Numerals::TYPESET, arguments, &settings, &outcome);
        let page = page::document(&settings, &outcome, &advice).to_html();
        crate::whole::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("thinair: wrote {}", path.display());
    }
    Ok(verdict(arguments, &outcome))
}

/// Reads all captures two or three times, and chooses the schemes if none are given. `begin` is called before each reading.
fn analyzed(
    arguments: &AnalyzeArguments,
    settings: &mut Settings,
    captures: &mut Captures,
    mut begin: impl FnMut(Reading),
) -> anyhow::Result<Outcome> {
    settings.schemes = named(arguments, &settings.channel)?;
    begin(Reading::Survey);
    let survey = captures.survey(settings)?;
    if learns(arguments, &survey, captures) {
        begin(Reading::Learning);
        settings.learned = learned(arguments, captures)?;
    }
    settings.schemes = schemes(arguments, settings, &survey);
    begin(Reading::Analysis);
    captures.analyze(settings, &survey, arguments.jobs())
}

/// Prints a document that is written in pieces.
fn print_pieces(
    write: impl FnOnce(&mut BufWriter<io::StdoutLock<'_>>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    // A failed write is not repeated.
    let _ = out.into_parts();
    crate::terminal::written(written)
}

fn settings(arguments: &AnalyzeArguments) -> Result<Settings, String> {
    if arguments.files.iter().filter(|file| is_stdio(file)).count() > 1 {
        return Err("standard input can be read only once".to_owned());
    }
    let channel = arguments.channel.channel_with(arguments.channel.profiles.unwrap_or(ProfileSet::v1()))?;
    let mut settings = Settings::new(channel, &[]);
    settings.compressor = arguments.channel.compressor(channel);
    settings.decompressor = arguments.channel.decompressor(channel);
    settings.loss =
        arguments.loss.map(|percent| RandomLoss { probability: percent / 100.0, seed: arguments.seed });
    settings.billing = match (arguments.billing_unit, arguments.price) {
        (Some(unit), price) => Some(Billing::new(unit, price.unwrap_or(1.0))),
        (None, price) => price.map(|price| Billing::new(1, price / MEGABYTE)),
    };
    settings.carriers = CarrierOverhead::TUNNEL.to_vec();
    settings.link_mtu = arguments.link_mtu;
    settings.contexts = arguments.packets.contexts()?;
    settings.keep_tunnels = arguments.packets.outer;
    settings.most_flows = arguments.most_flows;
    settings.damage_one = arguments.damage;
    settings.partitions = arguments.partitions;
    Ok(settings)
}

fn tariff(path: &Path) -> anyhow::Result<Tariff> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    Tariff::read(&text).map_err(|error| anyhow::anyhow!("{name}, {error}"))
}

fn set_tariff(settings: &mut Settings, tariff: Tariff) -> anyhow::Result<()> {
    if tariff.session.is_some() && settings.partitions > 1 {
        let wrong = "a price list with sessions is for links of one channel: leave out --partitions";
        return Err(Usage::error(wrong));
    }
    settings.set_tariff(tariff);
    Ok(())
}

/// True if bases of profile `coap` are learned from the captures: not if a template file or schemes are given.
fn learns(arguments: &AnalyzeArguments, survey: &Survey, captures: &Captures) -> bool {
    let options = &arguments.channel;
    let is_asked = arguments.schemes.is_none() && options.profiles.is_none() && options.template().is_none();
    is_asked && survey.has_coap() && captures.are_kept
}

fn learned(arguments: &AnalyzeArguments, captures: &Captures) -> anyhow::Result<Vec<Base>> {
    let options = &arguments.channel;
    let ports = options.coap_ports.unwrap_or(Ports::COAP);
    let captures = captures.reopened();
    let (bases, _) = learn::bases(captures, &arguments.packets, options.coap_checksum, ports, MOST_BASES)?;
    Ok(bases.into_iter().map(|(base, _)| base).collect())
}

/// Returns the schemes of the table during a live capture: those of ROHC, since the others need rules or
/// prefixes beforehand.
fn live_schemes(arguments: &AnalyzeArguments, channel: &Channel) -> anyhow::Result<Vec<SchemeSpec>> {
    let mode = arguments.mode.unwrap_or(Mode::Optimistic);
    if arguments.channel.profiles.is_some() {
        let (name, channel, learned) = (ROHC_V1, *channel, false);
        return Ok(vec![SchemeSpec::Rohc { name, channel, mode, learned }]);
    }
    let usual = [SchemeName::RohcV1, SchemeName::Coap, SchemeName::Tcp];
    let mut specs = Vec::new();
    for name in arguments.schemes.as_deref().unwrap_or(&usual) {
        specs.extend(name.specs(channel, &[mode])?);
    }
    specs.retain(|spec| matches!(spec, SchemeSpec::Rohc { .. }));
    Ok(specs)
}

/// Modes to compare.
fn modes(arguments: &AnalyzeArguments) -> Vec<Mode> {
    arguments.mode.map_or(vec![Mode::Unidirectional, Mode::Optimistic], |mode| vec![mode])
}

/// Returns the given schemes, or those that are compared without any.
fn named(arguments: &AnalyzeArguments, usual: &Channel) -> anyhow::Result<Vec<SchemeSpec>> {
    let modes = modes(arguments);
    if arguments.channel.profiles.is_some() {
        let (name, channel, learned) = (ROHC_V1, *usual, false);
        return Ok(modes.iter().map(|&mode| SchemeSpec::Rohc { name, channel, mode, learned }).collect());
    }
    let mut specs = Vec::new();
    for name in arguments.schemes.as_deref().unwrap_or(&SchemeName::USUAL) {
        specs.extend(name.specs(usual, &modes)?);
    }
    Ok(specs)
}

/// Returns the schemes to compare: those given, or all that can differ on these captures. Contexts are added
/// where the captures have more flows.
fn schemes(arguments: &AnalyzeArguments, settings: &Settings, survey: &Survey) -> Vec<SchemeSpec> {
    let modes = modes(arguments);
    let mut specs = settings.schemes.clone();
    if arguments.schemes.is_none() {
        specs = survey.applicable(&specs);
    }
    let is_free = arguments.channel.cid == CidOption::Small && arguments.channel.max_cid.is_none();
    let fullest =
        specs.iter().enumerate().rev().find_map(|(at, spec)| Some((at, spec.name(), spec.channel()?)));
    if let Some((at, name, channel)) = fullest {
        let with = |name, channel, learned| {
            modes.iter().map(move |&mode| SchemeSpec::Rohc { name, channel, mode, learned })
        };
        let more = if is_free { more_contexts(&channel, survey.most_flows()) } else { Vec::new() };
        let more = more.into_iter().flat_map(|channel| with(name, channel, false));
        let learned = (!settings.learned.is_empty()).then(|| with(COAP_LEARNED, channel, true));
        let added: Vec<_> = more.chain(learned.into_iter().flatten()).collect();
        specs.splice(at + 1..at + 1, added);
    }
    let mut once = Vec::new();
    specs.retain(|spec| {
        !once.contains(spec) && {
            once.push(*spec);
            true
        }
    });
    specs
}

/// Returns the text for standard output.
fn shown(arguments: &AnalyzeArguments, settings: &Settings, outcome: &Outcome) -> String {
    let most_flows = if arguments.all_flows { usize::MAX } else { text::MOST_FLOWS };
    let (style, room) = (style(PLAIN_WIDTH), sentence_width());
    let report = match arguments.all {
        true => text::report(settings, outcome, text::Extent::All, most_flows, &style, room),
        false => {
            text::report(settings, &outcome.best_of_each(), text::Extent::Best, most_flows, &style, room)
        }
    };
    format!("{report}\n{}", advice(Numerals::TERMINAL, arguments, settings, outcome).to_text(room))
}

fn advice(n: Numerals, arguments: &AnalyzeArguments, settings: &Settings, outcome: &Outcome) -> Advice {
    let paths: Vec<_> = arguments.kept().iter().map(|path| path.display().to_string()).collect();
    Advice::of(n, &arguments.channel, settings, outcome, &paths)
}

fn verdict(arguments: &AnalyzeArguments, outcome: &Outcome) -> ExitCode {
    for line in words::endings(outcome).into_iter().chain(words::faults(outcome)) {
        eprintln!("thinair: {line}");
    }
    if outcome.mismatches() > 0 {
        return ExitCode::FAILURE;
    }
    if arguments.damage {
        eprintln!("thinair: no packet has an octet of payload that could be damaged");
        return ExitCode::FAILURE;
    }
    if outcome.inputs.iter().any(|input| input.damaged) {
        return ExitCode::FAILURE;
    }
    if let (Some(percent), Some(best)) = (arguments.fail_under, words::best(outcome))
        && best.saved_ratio * 100.0 < percent
    {
        let saved = best.saved_ratio * 100.0;
        eprintln!("thinair: {} saves {saved:.2} %, less than the {percent} % asked for", words::name(best));
        return ExitCode::from(3);
    }
    ExitCode::SUCCESS
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::from_letter(text).ok_or_else(|| "expected u, o or r".to_owned())
}

fn scheme_names() -> impl TypedValueParser<Value = SchemeName> {
    let names = SchemeName::ALL.map(|name| PossibleValue::new(name.name()).help(name.summary()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<SchemeName>())
}

fn percentage(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

fn threshold(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|percent: &f64| percent.is_finite());
    number.ok_or_else(|| "expected a number".to_owned())
}

fn price(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    number.ok_or_else(|| "expected a number that is not negative".to_owned())
}
