//! `thinair chart`: a message sequence chart of a capture.

use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use thinair_analyze::chart::{self, Chart, Choice, LayerOctets};
use thinair_report::{Cell, Column, Sequence, SequenceMessage, Table};
use thinair_rohc::Ports;

use crate::packets::PacketOptions;
use crate::terminal::{print, style};
use crate::values::is_stdio;

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 110;

const AFTER_HELP: &str = "\
Examples:\n  \
thinair chart capture.pcap\n  \
thinair chart link.pcapng --port 5683 --count 20 --svg exchange.svg\n\n\
Exit status: 0 for success; 1 if the file cannot be read or contains no matching packet; 2 for wrong arguments.";

#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ChartArguments {
    /// Capture to draw (pcap, pcapng, also .gz and .zst); `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Include only packets between these hosts; give it twice or more
    #[arg(long, value_name = "ADDRESS")]
    host: Vec<IpAddr>,
    /// Include only packets from or to this port
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Number of packets to skip at the beginning
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Maximum number of packets to draw
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// UDP ports of CoAP, at most 8, separated by commas [default: 5683]
    #[arg(long, value_name = "LIST", value_parser = crate::options::coap_ports)]
    coap_ports: Option<Ports>,
    #[command(flatten)]
    packets: PacketOptions,
    /// Write the chart to an SVG file, too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the messages as JSON (thinair.chart/1)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ChartArguments) -> anyhow::Result<ExitCode> {
    let wrong = |what: String| {
        eprintln!("thinair: {what}");
        Ok(ExitCode::from(2))
    };
    if arguments.host.len() == 1 {
        return wrong("--host names one end; give the other one, too".to_owned());
    }
    let mut choice = Choice {
        hosts: arguments.host.clone(),
        port: arguments.port,
        skip: arguments.skip,
        most: arguments.count as usize,
        coap_ports: arguments.coap_ports.unwrap_or(Ports::COAP),
        ..Choice::default()
    };
    choice.contexts = match arguments.packets.contexts() {
        Ok(contexts) => contexts,
        Err(error) => return wrong(error),
    };
    choice.keep_tunnels = arguments.packets.outer;
    let name = arguments.file.display().to_string();
    let read = match is_stdio(&arguments.file) {
        true => chart::read(std::io::stdin().lock(), &choice),
        false => {
            chart::read(File::open(&arguments.file).with_context(|| format!("cannot open {name}"))?, &choice)
        }
    };
    let chart = read.with_context(|| name.clone())?;
    for (reason, count) in &chart.skipped {
        eprintln!("thinair: {count} records without an IP packet: {reason}");
    }
    if let Some(why) = &chart.ended_by {
        eprintln!("thinair: {name} was not read to its end: {why}");
    }
    anyhow::ensure!(!chart.messages.is_empty(), "{name} contains no packet that matches the options");
    if let Some(path) = &arguments.svg {
        crate::whole::write(path, drawn(&name, &chart).to_svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("thinair: wrote {}", path.display());
    }
    if arguments.json {
        let mut value = serde_json::to_value(&chart)?;
        value["schema"] = "thinair.chart/1".into();
        print(&(serde_json::to_string_pretty(&value)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = style(PLAIN_WIDTH);
    let mut text = drawn(&name, &chart).to_text(&style) + "\n" + &directions(&chart).to_text(&style);
    if chart.more > 0 {
        text += &format!("\n{} more packets; --skip and --count choose others.\n", chart.more);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn drawn(name: &str, chart: &Chart) -> Sequence {
    let mut sequence = Sequence::new(name, "ms", chart.hosts.iter().map(String::as_str));
    for message in &chart.messages {
        let again = if message.again { ", again" } else { "" };
        sequence.message(SequenceMessage {
            time: format!("{:.3}", message.time_ns as f64 / 1e6),
            from: message.from,
            to: message.to,
            label: message.label.clone(),
            note: format!("{} octets{again}", message.octets.total()),
        });
    }
    sequence
}

fn directions(chart: &Chart) -> Table {
    let columns = ["packets", "again", "octets", "IP", "transport", "CoAP", "payload"].map(Column::number);
    let mut table =
        Table::new("", [vec![Column::text("from"), Column::text("to")], columns.to_vec()].concat());
    for direction in &chart.ways {
        let host = |number: usize| Cell::text(chart.hosts.get(number).map_or("", String::as_str));
        let LayerOctets { ip, transport, application, payload } = direction.octets;
        let total = direction.octets.total();
        let counts = [direction.packets, direction.again, total, ip, transport, application, payload];
        table.row([host(direction.from), host(direction.to)].into_iter().chain(counts.map(Cell::integer)));
    }
    table
}
