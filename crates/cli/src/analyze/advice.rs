//! The recommendation: savings, and the settings of both ends as command lines and as a configuration file.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

use thinair_analyze::outcome::{PackingCost, Scheme};
use thinair_analyze::{
    Billing, CarrierCost, MONTH_SECONDS, Outcome, Recommendation, Settings, WORTH_COMPRESSING,
};
use thinair_report::Numerals;
use thinair_rohc::{CidSpace, ProfileId, ProfileSet};

use super::words;
use crate::options::ChannelOptions;
use crate::terminal::sentence;

/// File name of the template file in command lines.
const TEMPLATE: &str = "coap.toml";

/// Introduction of the configuration of a tunnel.
const CONFIGURATION: &str = "The same in a configuration, for both ends";

/// Octets in a megabyte, the unit of `--price`.
pub(crate) const MEGABYTE: f64 = 1e6;

/// Advice on one analysis.
#[derive(Debug)]
pub(crate) struct Advice {
    /// The decision in one line.
    pub(crate) headline: String,
    /// Its reasons: label and text.
    pub(crate) rows: Vec<(&'static str, String)>,
    /// Command lines and files, each with an introductory line.
    pub(crate) blocks: Vec<(&'static str, Vec<String>)>,
}

impl Advice {
    /// Returns the advice on captures read with these options, with numbers formatted for the medium.
    pub(crate) fn of(
        n: Numerals,
        options: &ChannelOptions,
        settings: &Settings,
        outcome: &Outcome,
        paths: &[String],
    ) -> Self {
        match &outcome.recommendation {
            Some(best) => recommended(n, options, settings, outcome, best, paths),
            None => {
                let headline = without_recommendation(n, settings, outcome);
                Self { headline, rows: Vec::new(), blocks: Vec::new() }
            }
        }
    }

    /// The configuration of a tunnel, for both ends; `None` if no tunnel is recommended.
    pub(crate) fn configuration(&self) -> Option<String> {
        let (_, lines) = self.blocks.iter().find(|(heading, _)| *heading == CONFIGURATION)?;
        Some(lines.iter().map(|line| format!("{line}\n")).collect())
    }

    /// The advice as text, with sentences of at most `room` columns. Command lines are not divided.
    pub(crate) fn to_text(&self, room: usize) -> String {
        let mut text = String::new();
        sentence(&mut text, "", &format!("Recommendation: {}", self.headline), room);
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.rows {
            sentence(&mut text, &format!("  {name:width$}  "), value, room);
        }
        for (heading, lines) in &self.blocks {
            text.push('\n');
            sentence(&mut text, "", heading, room);
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

/// Reason why no scheme is recommended.
fn without_recommendation(n: Numerals, settings: &Settings, outcome: &Outcome) -> String {
    if settings.schemes.iter().all(|spec| spec.channel().is_none()) {
        return "none: no scheme of ROHC was compared; add one to --schemes, such as coap".to_owned();
    }
    let best = best_of_rohc(settings, outcome).filter(|(_, saved)| *saved > 0.0);
    if let (None, Some(_)) = (&best, &settings.tariff) {
        let packing = best_wait(outcome)
            .map_or_else(|| "packing saves nothing, either".to_owned(), |wait| packing(n, wait));
        return format!("leave headers as they are: compression saves nothing under this tariff; {packing}");
    }
    if let Some((scheme, saved)) = best {
        return format!(
            "leave headers as they are: the best scheme of ROHC, {}, saves {}, less than {}",
            words::label(scheme),
            n.percent(saved, 2),
            n.percent(WORTH_COMPRESSING, 0),
        );
    }
    match settings.billing {
        Some(Billing { unit: unit @ 2.., .. }) => format!(
            "leave headers as they are: no scheme of ROHC costs less in billing units of {} octets",
            n.integer(unit.into())
        ),
        Some(_) | None => {
            "leave headers as they are: no scheme of ROHC sends fewer octets of these packets".to_owned()
        }
    }
}

/// Lead of a longer wait that is worth it, as a share of the price.
const WORTH_WAITING: f64 = 0.05;

/// Formats as `packing within 30 s saves 61.0 %`.
fn packing(n: Numerals, wait: &PackingCost) -> String {
    let saved = n.percent(wait.saved_ratio, 1);
    format!("packing within {} s saves {saved}", n.integer(wait.within_seconds.into()))
}

/// The shortest wait with which packing saves nearly as much as with the longest. `None` if no wait saves anything, or the link has no
/// price list.
fn best_wait(outcome: &Outcome) -> Option<&PackingCost> {
    let waits = &outcome.totals.packing;
    let most = waits.iter().map(|wait| wait.saved_ratio).fold(WORTH_COMPRESSING, f64::max);
    waits.iter().find(|wait| wait.saved_ratio >= WORTH_COMPRESSING.max(most - WORTH_WAITING))
}

/// The scheme of ROHC that saves most octets, or money if the link has a price, and the share that it saves.
fn best_of_rohc<'o>(settings: &Settings, outcome: &'o Outcome) -> Option<(&'o Scheme, f64)> {
    let traffic = &outcome.totals.traffic;
    let saved = |scheme: &Scheme| match (traffic.cost_in, scheme.cost_out) {
        (Some(before), Some(after)) if before > 0.0 => 1.0 - after / before,
        _ => scheme.saved_ratio,
    };
    let schemes = settings.schemes.iter().zip(&outcome.totals.schemes);
    let rohc = schemes.filter(|(spec, scheme)| spec.channel().is_some() && scheme.roundtrip_mismatches == 0);
    rohc.map(|(_, scheme)| (scheme, saved(scheme))).max_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn recommended(
    n: Numerals,
    options: &ChannelOptions,
    settings: &Settings,
    outcome: &Outcome,
    best: &Recommendation,
    paths: &[String],
) -> Advice {
    let channel = channel_arguments(options, best);
    let of_conversion = |names: &str| format!("thinair rohc {names} --both-ways{}", joined(&channel));
    let capture = match paths {
        [only] if only != "-" => quoted(only),
        _ => "CAPTURE".to_owned(),
    };
    let packets = packet_arguments(settings);
    let lacking: Vec<_> =
        options.given().iter().filter(|given| !given.in_tunnels).map(|given| given.name).collect();
    let tunnels = if lacking.is_empty() { TunnelCost::all(settings, outcome, best) } else { Vec::new() };
    let feedback = match best.feedback_bytes {
        0 => String::new(),
        octets => format!(", {} of them feedback", n.integer(octets.into())),
    };
    let mut rows = vec![
        (
            "saves",
            format!(
                "{} of {} octets: {} are left{feedback}",
                n.percent(best.saved_ratio, 1),
                n.integer(best.bytes_in.into()),
                n.integer(best.bytes_out.into()),
            ),
        ),
        ("a month", month(n, settings, best)),
        (
            "memory",
            format!(
                "{} at each end, for {} contexts each way{}",
                n.octets(best.memory_bytes as u64),
                contexts(best),
                channels(n, outcome.partitions)
            ),
        ),
        ("in a tunnel", in_tunnels(n, settings, &tunnels, &lacking)),
    ];
    if let Some(wait) = best_wait(outcome) {
        let packing = packing(n, wait);
        rows.push((
            "packing",
            format!(
                "{packing} of the price without compression; a tunnel packs what its rules of `hold` name"
            ),
        ));
    }
    if let Some(wait) = &best.late_wait {
        rows.push(("late start", format!("a decompressor waits for at most {}", words::late_wait(wait))));
    }
    let cut: u64 = outcome.inputs.iter().map(|input| input.cut).sum();
    if cut > 0 {
        let packets = words::counted(cut, "packet");
        rows.push((
            "cut",
            format!(
                "`thinair rohc compress` skips {packets} whose octets were not all captured; capture whole frames, for \
                 example with `tcpdump -s 0`"
            ),
        ));
    }
    let mut blocks = Vec::new();
    if best.learned {
        let options = joined(&learn_arguments(options));
        let line = format!("thinair rohc learn {capture} -o {TEMPLATE}{packets}{options}");
        blocks.push((
            "Learn what first packets of flows look like, and give the file to both ends",
            vec![line],
        ));
    }
    if cut < outcome.totals.packets {
        blocks.push((
            "Try it: both ends of a link that carries ROHC packets",
            vec![
                of_conversion(&format!("compress {capture} OUT{packets}")),
                of_conversion("decompress OUT BACK"),
            ],
        ));
    }
    let best_tunnel = tunnels.iter().find(|tunnel| tunnel.saved_ratio >= WORTH_COMPRESSING);
    if let Some(tunnel) = best_tunnel {
        let arguments = joined(&tunnel_arguments(options, best));
        let by_end =
            |(url, address)| format!("thinair tunnel run {url} --key sat.key --address {address}{arguments}");
        let heading = "Use it: a tunnel, one line at each end (the key by `thinair tunnel keygen sat.key`)";
        blocks.push((heading, tunnel.ends.map(by_end).to_vec()));
    }
    if best_tunnel.is_some() {
        blocks.push((CONFIGURATION, config_lines(options, best)));
    }
    let only = if best_tunnel.is_some() { "" } else { ", only where the link itself carries ROHC packets" };
    let headline = headline(best) + only;
    let compression = best_of_rohc(settings, outcome).map_or(0.0, |(_, saved)| saved);
    let headline = match best_wait(outcome).filter(|wait| wait.saved_ratio > compression) {
        Some(wait) => format!(
            "{} of the price, compression alone {}: {headline}",
            packing(n, wait),
            n.percent(compression, 1)
        ),
        None => headline,
    };
    Advice { headline, rows, blocks }
}

/// Formats as `ROHC with profiles v1, coap and tcp in O-mode, 16 small CIDs`.
fn headline(best: &Recommendation) -> String {
    let cids = match best.channel.cids() {
        CidSpace::Small => "small",
        CidSpace::Large => "large",
    };
    let learned = if best.learned { ", learned bases" } else { "" };
    format!(
        "ROHC in {}-mode with profiles {}, {} {cids} CIDs{learned}",
        best.mode.to_uppercase(),
        profiles(best.channel.profiles()),
        Numerals::TERMINAL.integer(contexts(best) as i128)
    )
}

fn contexts(best: &Recommendation) -> usize {
    best.channel.contexts()
}

/// Names the channels of a link with several.
fn channels(n: Numerals, partitions: u32) -> String {
    match partitions {
        1 => String::new(),
        _ => {
            let partitions = n.integer(partitions.into());
            format!(" in each of {partitions} channels; the commands below set up one of them")
        }
    }
}

/// Duration of a capture from which on a month is not marked as extrapolated from little, in seconds: a day has every
/// hour once.
const DAY: f64 = 86_400.0;

/// Traffic of a month, in octets, and in money on a link that carries ROHC packets.
fn month(n: Numerals, settings: &Settings, best: &Recommendation) -> String {
    let Some(month) = &best.month else {
        let seconds = n.number(best.seconds, 1);
        return format!("not known: the capture lasts {seconds} s; give one of a day or more");
    };
    let source = match best.seconds < DAY {
        true => format!(
            "extrapolated from {}, a guess: capture a day or more for a budget",
            words::duration(best.seconds)
        ),
        false => format!("at the rate of these {}", words::duration(best.seconds)),
    };
    let before = settings.billing.and(month.cost_in).unwrap_or(month.bytes_in as f64 / MEGABYTE);
    let after = settings.billing.and(month.cost_out).unwrap_or(month.bytes_out as f64 / MEGABYTE);
    format!(
        "{} -> {}, {source}; to pay where the link itself carries ROHC packets: {}{}",
        n.octets(month.bytes_in),
        n.octets(month.bytes_out),
        paid(n, settings, before, after),
        if settings.billing.is_some() { "" } else { " at 1.00 a megabyte (--price gives yours)" }
    )
}

/// Formats as `7.70 -> 1.40, 6.30 less`, with the currency of a price list.
fn paid(n: Numerals, settings: &Settings, before: f64, after: f64) -> String {
    let word = if after > before { "more" } else { "less" };
    let tariff = settings.tariff.as_ref();
    let currency = tariff.map_or(String::new(), |tariff| format!(" {}", tariff.currency));
    let amount = |price: f64| n.number(price, tariff.map_or(2, |tariff| tariff.decimals(2)));
    format!("{} -> {}{currency}, {} {word}", amount(before), amount(after), amount((before - after).abs()))
}

/// Names of [`CarrierOverhead::TUNNEL`], and the URL of each end.
const CARRIERS: [(&str, [&str; 2]); 2] =
    [("UDP over IPv4", ["udp://:7000", "udp://HOST:7000"]), ("a serial line", ["serial:///dev/ttyS0"; 2])];

/// A tunnel over one carrier that transports the packets of the captures.
struct TunnelCost {
    name: &'static str,
    /// URL of the carrier and address of the interface, for each end.
    ends: [(&'static str, &'static str); 2],
    /// Overhead per packet, in octets.
    overhead: u32,
    /// Saved share of octets, or of billing units, with the overhead.
    saved_ratio: f64,
    /// Price of a month before, and through the tunnel; `None` if the capture is too short.
    month: Option<(f64, f64)>,
}

impl TunnelCost {
    fn all(settings: &Settings, outcome: &Outcome, best: &Recommendation) -> Vec<Self> {
        let addresses = ["10.9.0.1/30", "10.9.0.2/30"];
        let tunnel = |((name, [a, b]), cost): ((_, [_; 2]), &CarrierCost)| {
            let (before, after) = match (outcome.totals.traffic.cost_in, cost.cost_out) {
                (Some(before), Some(after)) => (before, after),
                _ => (best.bytes_in as f64 / MEGABYTE, cost.bytes_out as f64 / MEGABYTE),
            };
            let saved_ratio = match before > 0.0 {
                true => 1.0 - after / before,
                // A price of 0.
                false => cost.saved_ratio,
            };
            let overhead = cost.overhead_bytes;
            let months = MONTH_SECONDS / best.seconds;
            let sessions = outcome.totals.session_cost.unwrap_or(0.0);
            let price = |price: f64| settings.month_price(price, sessions, months);
            let month = best.month.is_some().then(|| (price(before), price(after)));
            Self { name, ends: [(a, addresses[0]), (b, addresses[1])], overhead, saved_ratio, month }
        };
        CARRIERS.into_iter().zip(&best.carriers).map(tunnel).collect()
    }
}

/// Octets and money of each tunnel, overhead included. `lacking`: given options that tunnels lack.
fn in_tunnels(n: Numerals, settings: &Settings, tunnels: &[TunnelCost], lacking: &[&str]) -> String {
    if !lacking.is_empty() {
        return format!("not possible: `thinair tunnel` has no option --{}", lacking.join(", --"));
    }
    let of_units = settings.billing.is_some_and(|billing| billing.unit > 1 || billing.floor > 0);
    let part = |tunnel: &TunnelCost| {
        let change = match tunnel.saved_ratio < 0.0 {
            true => format!("{} more than before", n.percent(-tunnel.saved_ratio, 1)),
            false => format!("{} saved", n.percent(tunnel.saved_ratio, 1)),
        };
        let units = if of_units { " of the price" } else { "" };
        let money = tunnel
            .month
            .map(|(before, after)| format!(", {} to pay a month", paid(n, settings, before, after)));
        let money = money.unwrap_or_default();
        format!("{}: {} octets around each packet, {change}{units}{money}", tunnel.name, tunnel.overhead)
    };
    tunnels.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// Returns the options of `thinair rohc compress` and `decompress`: the recommended ones, and those given to
/// `analyze`.
fn channel_arguments(options: &ChannelOptions, best: &Recommendation) -> Vec<String> {
    let mode = std::iter::once(("mode", best.mode.to_owned()));
    let given = options.given().into_iter().map(|given| (given.name, given.value));
    mode.chain(settings_of(best)).chain(given).map(argument).collect()
}

/// Returns the given options that `thinair rohc learn` has, too.
fn learn_arguments(options: &ChannelOptions) -> Vec<String> {
    let given =
        options.given().into_iter().filter(|given| ["coap-checksum", "coap-ports"].contains(&given.name));
    given.map(|given| argument((given.name, given.value))).collect()
}

/// Returns the options with which `thinair rohc compress` and `learn` select the analyzed packets.
fn packet_arguments(settings: &Settings) -> String {
    let outer = if settings.keep_tunnels { " --outer" } else { "" };
    let context = |id| {
        let context = settings.contexts.context(id)?;
        Some(format!(" --lowpan-context {id}={}/{}", Ipv6Addr::from(context.prefix()), context.length()))
    };
    (0..16).filter_map(context).fold(outer.to_owned(), |all, one| all + &one)
}

/// Returns the options of `thinair tunnel run`, whose default mode is O-mode.
fn tunnel_arguments(options: &ChannelOptions, best: &Recommendation) -> Vec<String> {
    let mode = (best.mode != "o").then(|| ("mode", best.mode.to_owned()));
    mode.into_iter().chain(settings_of(best)).chain(given_in_tunnels(options)).map(argument).collect()
}

/// Returns the section `[channel]` of a configuration file.
fn config_lines(options: &ChannelOptions, best: &Recommendation) -> Vec<String> {
    let mode = std::iter::once(("mode", best.mode.to_owned()));
    let keys = mode.chain(settings_of(best)).chain(given_in_tunnels(options));
    let line = |(name, value): (&str, String)| format!("{} = \"{value}\"", name.replace('-', "_"));
    std::iter::once("[channel]".to_owned()).chain(keys.map(line)).collect()
}

fn given_in_tunnels(options: &ChannelOptions) -> impl Iterator<Item = (&'static str, String)> {
    let given = options.given().into_iter().filter(|given| given.in_tunnels);
    given.map(|given| (given.name, given.value))
}

fn argument((name, value): (&str, String)) -> String {
    format!("--{name} {}", quoted(&value)).trim_end().to_owned()
}

/// Returns profiles and CIDs that differ from the defaults.
fn settings_of(best: &Recommendation) -> impl Iterator<Item = (&'static str, String)> {
    let set = best.channel.profiles();
    let profiles = (set != ProfileSet::default()).then(|| ("profiles", profiles(set)));
    let cids = (best.channel.cids() == CidSpace::Large).then(|| ("cid", "large".to_owned()));
    let highest = best.channel.cids().highest();
    let max_cid =
        (best.channel.max_cid() != highest).then(|| ("max-cid", best.channel.max_cid().to_string()));
    let template = best.learned.then(|| ("coap-template", TEMPLATE.to_owned()));
    profiles.into_iter().chain(cids).chain(max_cid).chain(template)
}

/// Formats a set of profiles as `v1,coap`.
fn profiles(set: ProfileSet) -> String {
    let v1 = ProfileSet::v1();
    let has_v1 = v1.iter().all(|profile| set.has(profile));
    let is_named = |profile: &ProfileId| !(has_v1 && v1.has(*profile)) && *profile != ProfileId::Uncompressed;
    let mut others: Vec<_> = set.iter().filter(is_named).collect();
    others.sort_by_key(|profile| *profile == ProfileId::Tcp);
    let names = has_v1.then_some("v1").into_iter().chain(others.into_iter().map(ProfileId::name));
    names.collect::<Vec<_>>().join(",")
}

fn joined(arguments: &[String]) -> String {
    arguments.iter().map(|argument| format!(" {argument}")).collect()
}

/// Quotes a path for a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match path.chars().all(|c| is_plain(c) || c == '=') && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(all(test, feature = "tunnel"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use thinair_analyze::CarrierOverhead;
    use thinair_tunnel::config::{self, Surroundings};
    use thinair_tunnel::mtu::Budget;

    use super::*;

    #[test]
    fn a_tunnel_puts_so_many_octets_around_a_packet() {
        for ((name, [_, url]), CarrierOverhead { octets: overhead, .. }) in
            CARRIERS.into_iter().zip(CarrierOverhead::TUNNEL)
        {
            let url = url.replace("HOST", "192.0.2.1");
            let mut settings = config::Settings::new();
            for (section, key, value) in
                [("carrier", "url", &*url), ("security", "key", "sat.key"), ("inside", "tun", "thinair0")]
            {
                settings.set(section, key, key, value);
            }
            let surroundings = Surroundings {
                runtime: None,
                state: Path::new("/").to_owned(),
                templates: &|_| Ok(Vec::new()),
                resolve: &config::system_resolver,
                tariff: &|_| Err("no price list".to_owned()),
            };
            let plan = config::site_config(&settings, &surroundings).unwrap();
            assert_eq!(Budget::of(&plan).unwrap().overhead(), overhead as usize, "{name}");
        }
    }
}
