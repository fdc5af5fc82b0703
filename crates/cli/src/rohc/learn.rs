//! `thinair rohc learn`: learns a template file from captures.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use thinair_rohc::Ports;
use thinair_rohc::profile::coap::Base;

use super::files::is_same;
use crate::learn::bases;
use crate::options::{ChecksumOption, MOST_BASES, coap_ports};
use crate::packets::PacketOptions;
use crate::records::OpenCapture;
use crate::template;
use crate::usage::Usage;
use crate::values::is_stdio;

pub(super) const EXIT_STATUS: &str = "\
Give the file to both ends of a channel with --coap-template: the first packet of a flow then sends only its \
differences from a base. Read the file before you use it, and remove bases of flows that will not occur again.

Exit status: 0 if the file is complete; 1 if a file cannot be read or written, or if the captures contain no CoAP; \
2 for wrong arguments.";

#[derive(Args, Debug)]
pub(crate) struct LearnArguments {
    /// Captures of CoAP over UDP (pcap, pcapng, also .gz and .zst); `-` is standard input
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Maximum number of bases; those that suit most flows are kept
    #[arg(long, value_name = "N", default_value_t = MOST_BASES as u16, value_parser = clap::value_parser!(u16).range(1..=MOST_BASES as i64))]
    most: u16,
    /// Treatment of UDP checksums on the channel that will use the file
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ChecksumOption::Carry)]
    coap_checksum: ChecksumOption,
    /// UDP ports of CoAP, at most 8, separated by commas [default: 5683]
    #[arg(long, value_name = "LIST", value_parser = coap_ports)]
    coap_ports: Option<Ports>,
    #[command(flatten)]
    packets: PacketOptions,
}

pub(super) fn run(arguments: &LearnArguments) -> anyhow::Result<ExitCode> {
    if let Some(output) = &arguments.output
        && arguments.captures.iter().any(|capture| is_same(capture, output))
    {
        let name = output.display();
        return Err(Usage::error(format!("{name} is an input; write to another file")));
    }
    if arguments.captures.iter().filter(|capture| is_stdio(capture)).count() > 1 {
        return Err(Usage::error("standard input can be read only once"));
    }
    let most = usize::from(arguments.most);
    let ports = arguments.coap_ports.unwrap_or(Ports::COAP);
    let captures = arguments.captures.iter().map(|path| OpenCapture::open(path));
    let (bases, left_out) = bases(captures, &arguments.packets, arguments.coap_checksum, ports, most)?;
    if bases.is_empty() {
        eprintln!("thinair: the captures contain no CoAP over UDP from which a base can be learned");
        return Ok(ExitCode::FAILURE);
    }
    if left_out > 0 {
        eprintln!("note: {left_out} bases that suit few flows are omitted; raise the limit with --most");
    }
    let text = template::text(bases.iter().map(|(base, comment)| (base, comment.clone())));
    let list: Vec<Base> = bases.into_iter().map(|(base, _)| base).collect();
    match arguments.output.as_ref().filter(|path| !is_stdio(path)) {
        Some(path) => {
            crate::whole::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => match std::io::stdout().write_all(text.as_bytes()) {
            // The reader has closed the pipe.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.context("cannot write standard output")?,
        },
    }
    eprintln!("learned  {} bases, template {}", list.len(), template::name(&list));
    Ok(ExitCode::SUCCESS)
}
