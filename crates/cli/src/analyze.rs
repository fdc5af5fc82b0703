//! `thinair analyze`: what each flow of a capture costs, and what header compression saves.
//!
//! Knows arguments, where data comes from and goes to, and exit codes. What is computed is in `thinair-analyze`;
//! how it reads on a terminal is in [`text`], on a page in [`page`].

mod page;
pub(crate) mod source;
mod text;
mod words;

use std::io::{self, IsTerminal, Write};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use thinair_analyze::outcome::Scheme;
use thinair_analyze::{Analysis, Billing, Loss, Outcome, SchemeSpec, Settings};
use thinair_lowpan as lowpan;
use thinair_report::Style;
use thinair_rohc::{Mode, ProfileId, ProfileSet};

use crate::options::ChannelOptions;
use crate::template;

const EXIT_STATUS: &str = "\
Exit status: 0 if every packet came back bit for bit; 1 if not, or if a file cannot be read; 2 for wrong \
arguments; 3 if less was saved than --fail-under asks.";

/// The name of ROHC with whatever profiles are asked for.
const ROHC_V1: &str = "rohc-v1";

/// Columns of the output when it does not go to a terminal.
const PLAIN_WIDTH: usize = 140;

#[derive(Args, Debug)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// Captures (pcap, pcapng), each of another link; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Schemes to compare, separated by commas [default: all that apply but tcp]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', conflicts_with = "profiles")]
    schemes: Option<Vec<SchemeName>>,
    /// Mode of ROHC, u, o or r [default: u and o, side by side]
    ///
    /// Unidirectional, bidirectional optimistic or bidirectional reliable.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,
    #[command(flatten)]
    channel: ChannelOptions,
    /// Lose this share of compressed packets and feedback, 0 to 100 %
    #[arg(long, value_name = "PCT", value_parser = percentage, help_heading = "Link")]
    loss: Option<f64>,
    /// Seed of the losses: the same number loses the same packets
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        hide_short_help = true,
        requires = "loss",
        help_heading = "Link"
    )]
    seed: u64,
    /// The link is billed by started units of so many octets, per packet
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Link")]
    billing_unit: Option<u32>,
    /// Price of a unit [default: 1]
    #[arg(long, value_name = "P", value_parser = price, requires = "billing_unit", help_heading = "Link")]
    price: Option<f64>,
    /// Count packets larger than this, before and after
    #[arg(long, hide_short_help = true, value_name = "OCTETS", help_heading = "Link")]
    link_mtu: Option<u32>,
    /// Context of 6LoWPAN in a captured network of IEEE 802.15.4, number and prefix, as in 0=2001:db8::/64; may be repeated
    #[arg(long, value_name = "ID=PREFIX/BITS", value_parser = context, hide_short_help = true, help_heading = "Link")]
    lowpan_context: Vec<(u8, lowpan::Context)>,
    /// Print everything as JSON (thinair.analyze/1)
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    json: bool,
    /// Print the flows as CSV
    #[arg(long, help_heading = "Output")]
    csv: bool,
    /// Write a page with plots, too: one file, which needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// List every flow, not only the largest ones
    #[arg(long, help_heading = "Output")]
    all_flows: bool,
    /// Exit with status 3 if the best scheme saves less, in % of all octets
    #[arg(long, value_name = "PCT", value_parser = threshold, allow_negative_numbers = true, help_heading = "Output")]
    fail_under: Option<f64>,
    /// Damage one octet of one compressed packet: the command must notice
    #[arg(long = "break", hide = true)]
    damage: bool,
}

/// A scheme by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SchemeName {
    /// ROHC with the profiles of RFC 3095, RFC 3843 and RFC 4019: RTP, UDP, UDP-Lite, ESP and IP
    RohcV1,
    /// rohc-v1 and the CoAP profile published in 2015
    #[value(name = "coap-2015")]
    Coap2015,
    /// rohc-v1 and profile `coap`
    Coap,
    /// rohc-v1 and profile `tcp` (RFC 6846)
    Tcp,
    /// SCHC (RFC 8724, RFC 8824) with the best rules for the capture at both ends
    Schc,
    /// 6LoWPAN (RFC 6282) with the prefixes of the capture as contexts; IPv6 only
    #[value(name = "6lowpan")]
    Lowpan,
}

impl SchemeName {
    /// Those that are shown if none is named: as many as fit into a line.
    const USUAL: [Self; 5] = [Self::RohcV1, Self::Coap2015, Self::Coap, Self::Schc, Self::Lowpan];

    /// What it is in each of these modes, if it has modes.
    fn specs(self, modes: &[Mode]) -> Result<Vec<SchemeSpec>, String> {
        let rohc = |name, more: Option<ProfileId>| {
            let profiles = more.map_or(Ok(ProfileSet::v1()), |more| ProfileSet::v1().with(more));
            let profiles = profiles.map_err(|error| error.to_string())?;
            Ok(modes.iter().map(|&mode| SchemeSpec::Rohc { name, profiles, mode }).collect())
        };
        match self {
            Self::RohcV1 => rohc(ROHC_V1, None),
            Self::Coap2015 => rohc("coap-2015", Some(ProfileId::Coap2015)),
            Self::Coap => rohc("coap", Some(ProfileId::Coap)),
            Self::Tcp => rohc("tcp", Some(ProfileId::Tcp)),
            Self::Schc => Ok(vec![SchemeSpec::Schc]),
            Self::Lowpan => Ok(vec![SchemeSpec::Lowpan]),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut settings = match settings(arguments) {
        Ok(settings) => settings,
        Err(wrong) => {
            eprintln!("thinair: {wrong}");
            return Ok(ExitCode::from(2));
        }
    };
    settings.bases = arguments.channel.bases()?;
    if arguments.channel.coap_template.is_some() {
        eprintln!("template {}", template::name(&settings.bases));
    }
    let mut analysis = Analysis::new(settings.clone());
    source::read_all(&arguments.files, &mut analysis)?;
    let outcome = applying(arguments, analysis.finish());

    print(&shown(arguments, &settings, &outcome)?)?;
    if let Some(path) = &arguments.html {
        let page = page::document(&settings, &outcome).to_html();
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("thinair: wrote {}", path.display());
    }
    Ok(verdict(arguments, &outcome))
}

/// Without the schemes that have no way for any packet, unless they were asked for.
fn applying(arguments: &Arguments, outcome: Outcome) -> Outcome {
    let packets = outcome.totals.packets;
    let applies = |scheme: &Scheme| packets == 0 || scheme.not_applicable < packets;
    let schemes = outcome.totals.schemes.iter();
    let names: Vec<_> = match arguments.schemes {
        Some(_) => Vec::new(),
        None => schemes.filter(|scheme| !applies(scheme)).map(|scheme| scheme.scheme).collect(),
    };
    names.into_iter().fold(outcome, Outcome::without)
}

fn settings(arguments: &Arguments) -> Result<Settings, String> {
    if arguments.files.iter().filter(|file| source::is_stdin(file)).count() > 1 {
        return Err("standard input can be read only once".to_owned());
    }
    let modes = match arguments.mode {
        Some(mode) => vec![mode],
        None => vec![Mode::Unidirectional, Mode::Optimistic],
    };
    let channel = arguments.channel.channel_with(arguments.channel.profiles.unwrap_or(ProfileSet::v1()))?;
    let mut settings = Settings::new(channel, &schemes(arguments, &modes)?);
    settings.compressor = arguments.channel.compressor(channel);
    settings.decompressor = arguments.channel.decompressor(channel);
    settings.loss = arguments.loss.map(|percent| Loss { probability: percent / 100.0, seed: arguments.seed });
    settings.billing =
        arguments.billing_unit.map(|unit| Billing { unit, price: arguments.price.unwrap_or(1.0) });
    settings.link_mtu = arguments.link_mtu;
    for &(id, context) in &arguments.lowpan_context {
        settings.contexts = settings.contexts.with(id, context).map_err(|error| error.to_string())?;
    }
    settings.damage_one = arguments.damage;
    Ok(settings)
}

/// A context of 6LoWPAN.
pub(crate) fn context(text: &str) -> Result<(u8, lowpan::Context), String> {
    let parts = || {
        let (id, prefix) = text.split_once('=')?;
        let (address, bits) = prefix.split_once('/')?;
        Some((id.parse().ok()?, address.parse::<Ipv6Addr>().ok()?, bits.parse().ok()?))
    };
    let (id, address, bits) = parts().ok_or("expected a number and a prefix, as in 0=2001:db8::/64")?;
    lowpan::Context::new(address.octets(), bits)
        .map(|context| (id, context))
        .map_err(|error| error.to_string())
}

/// The schemes, each once.
fn schemes(arguments: &Arguments, modes: &[Mode]) -> Result<Vec<SchemeSpec>, String> {
    if let Some(profiles) = arguments.channel.profiles {
        return Ok(modes.iter().map(|&mode| SchemeSpec::Rohc { name: ROHC_V1, profiles, mode }).collect());
    }
    let named = arguments.schemes.as_deref().unwrap_or(&SchemeName::USUAL);
    let mut specs = Vec::new();
    for name in named {
        for spec in name.specs(modes)? {
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
    }
    Ok(specs)
}

/// What goes to standard output.
fn shown(arguments: &Arguments, settings: &Settings, outcome: &Outcome) -> anyhow::Result<String> {
    if arguments.json {
        return Ok(serde_json::to_string_pretty(outcome)? + "\n");
    }
    if arguments.csv {
        return Ok(text::flows_csv(outcome));
    }
    let most_flows = if arguments.all_flows { usize::MAX } else { text::MOST_FLOWS };
    Ok(text::report(settings, outcome, most_flows, &style(PLAIN_WIDTH)))
}

/// How to write to standard output; `plain_width` columns if that is no terminal.
pub(crate) fn style(plain_width: usize) -> Style {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Style::plain(plain_width);
    }
    let width =
        terminal_size::terminal_size_of(&stdout).map_or(plain_width, |(width, _)| usize::from(width.0));
    // https://no-color.org: set and not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if no_color || dumb { Style::plain(width) } else { Style::color(width) }
}

/// Whoever reads may stop reading: that is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

fn verdict(arguments: &Arguments, outcome: &Outcome) -> ExitCode {
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
    match text {
        "u" => Ok(Mode::Unidirectional),
        "o" => Ok(Mode::Optimistic),
        "r" => Ok(Mode::Reliable),
        _ => Err("there are u, o and r".to_owned()),
    }
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
