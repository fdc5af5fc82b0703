//! The run on Linux: settings, hosts, command and report.

use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::Context as _;
use thinair_emulator::{
    Ended, Engine, LinkEnds, Passage, RohcChannel, RunReport, Where, addresses, route_mtus,
};
use thinair_link::Side;
use thinair_os::clock;
use thinair_rohc::{CompressorConfig, DecompressorConfig, Mode};

use super::super::model::LinkSpec;
use super::super::record::RunRecord;
use super::super::report;
use super::RunArguments;
use crate::options::ModeOption;

pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let (asked, channel) = match settings(arguments)? {
        Ok(settings) => settings,
        Err(wrong) => {
            eprintln!("thinair: {wrong}");
            return Ok(ExitCode::from(2));
        }
    };
    let place = match &arguments.netns {
        Some((a, b)) => Where::Open { a: a.clone(), b: b.clone() },
        None => Where::Create,
    };
    let ends = LinkEnds::open(&place, route_mtus(asked.mtu), &arguments.congestion).map_err(advise)?;
    let engine = Engine::new(&asked.model, arguments.link.seed, channel.as_ref());
    let mut engine = match (arguments.iphc, arguments.unnumbered) {
        (true, _) => engine.with_iphc(),
        (false, false) => engine.with_numbered_frames(),
        (false, true) => engine,
    };
    let mut record = RunRecord::create(arguments, clock::now(), clock::epoch())?;
    let mut command = command(arguments, &ends)?;
    if command.is_none() {
        welcome(&ends);
    }

    let mut watch = |passage: &Passage, late: Option<u64>| record.add(passage, late);
    let report =
        thinair_emulator::run(&mut engine, &ends, command.as_mut(), !arguments.no_realtime, &mut watch)?;
    record.finish()?;

    report::print(arguments, &asked, channel.as_ref(), &ends, &engine, &report)?;
    Ok(status(arguments, &ends, &report))
}

/// Returns the settings. The inner error describes contradicting options.
fn settings(arguments: &RunArguments) -> anyhow::Result<Result<(LinkSpec, Option<RohcChannel>), String>> {
    let asked = match arguments.link.asked()? {
        Ok(asked) => asked,
        Err(wrong) => return Ok(Err(wrong)),
    };
    if !arguments.rohc {
        let is_asked = arguments.channel.profiles.is_some() || arguments.channel.refresh.is_some();
        if is_asked || arguments.channel.template().is_some() {
            return Ok(Err("channel options need ROHC on the link; add --rohc".to_owned()));
        }
        return Ok(Ok((asked, None)));
    }
    let channel = match arguments.channel.channel() {
        Ok(channel) => channel,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let mode = arguments.mode.map_or(Mode::Unidirectional, ModeOption::mode);
    let channel = RohcChannel {
        compressor: CompressorConfig {
            seed: arguments.link.seed,
            counted: !arguments.unnumbered,
            ..arguments.channel.compressor(channel)
        },
        decompressor: DecompressorConfig { mode, ..arguments.channel.decompressor(channel) },
        bases: arguments.channel.bases()?,
        feedback_wait: arguments.feedback_wait,
        ends: None,
    };
    Ok(Ok((asked, Some(channel))))
}

/// Adds advice to an error about a missing privilege or driver.
pub fn advise(error: thinair_os::Error) -> anyhow::Error {
    let advice = match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; this needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN). Without root, put \
             `unshare --user --map-root-user --net --mount` in front of the command, if the system allows that"
        }
        std::io::ErrorKind::NotFound if error.to_string().contains("/dev/net/tun") => {
            "; the kernel needs CONFIG_TUN (`modprobe tun`), and a container `--device /dev/net/tun`"
        }
        _ => "",
    };
    let whole = anyhow::Error::from(error);
    if advice.is_empty() { whole } else { anyhow::anyhow!("{whole:#}{advice}") }
}

/// Returns the command, with variables that describe its environment.
fn command(arguments: &RunArguments, ends: &LinkEnds) -> anyhow::Result<Option<Command>> {
    let Some((program, rest)) = arguments.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(rest);
    for (variable, side) in [("THINAIR_A", Side::A), ("THINAIR_B", Side::B)] {
        command.env(variable, ends.namespace(side).called());
    }
    if arguments.json {
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().context("cannot use standard error")?;
        command.stdout(Stdio::from(stderr));
    }
    Ok(Some(command))
}

fn welcome(ends: &LinkEnds) {
    for side in Side::ALL {
        let [(four, _), (six, _)] = addresses(side);
        let namespace = ends.namespace(side);
        eprintln!("thinair: side {side:?} is {}, with {four} and {six}", namespace.called());
    }
    let a = ends.namespace(Side::A).prefix();
    eprintln!("thinair: try `{a} ping 10.9.0.2`; the link is there until it is interrupted");
}

fn status(arguments: &RunArguments, ends: &LinkEnds, report: &RunReport) -> ExitCode {
    let Ended::Command(status) = report.ended else { return ExitCode::SUCCESS };
    if !status.success() {
        let program = arguments.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        let namespace = ends.namespace(Side::A);
        eprintln!("thinair: `{program}` at side A ({}) ended with {status}", namespace.called());
    }
    ExitCode::from(code(status))
}

/// Exit status of a command, as shells report it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Reason for the end, and exit status of the command, for reports.
pub(in crate::link) fn ended(report: &RunReport) -> (&'static str, Option<u8>) {
    match report.ended {
        Ended::Command(status) => ("command", Some(code(status))),
        Ended::Signal => ("signal", None),
    }
}
