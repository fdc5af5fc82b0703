//! What was found, in sentences.

use std::collections::BTreeMap;

use thinair_analyze::outcome::{Input, Outcome, Scheme};
use thinair_report::Numerals;

const N: Numerals = Numerals::TERMINAL;

/// `ROHC v1 in U-mode`. A saving without its mode says nothing.
pub(crate) fn name(scheme: &Scheme) -> String {
    let family = if scheme.scheme == "rohc-v1" { "ROHC v1" } else { scheme.scheme };
    match scheme.mode {
        Some(_) => format!("{family} in {}", mode(scheme)),
        None => family.to_owned(),
    }
}

/// `U-mode`, or the scheme where it has no modes.
pub(crate) fn mode(scheme: &Scheme) -> String {
    match scheme.mode {
        Some(mode) => format!("{}-mode", mode.to_uppercase()),
        None => scheme.scheme.to_owned(),
    }
}

pub(crate) fn per_packet(octets: u64, packets: u64) -> f64 {
    if packets == 0 { 0.0 } else { octets as f64 / packets as f64 }
}

/// One line that says what a scheme did, good or bad.
pub(crate) fn result(outcome: &Outcome, scheme: &Scheme) -> String {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    if packets == 0 {
        return format!("{}: there is no IP packet to compress.", name(scheme));
    }
    let share = N.percent(scheme.saved_ratio.abs(), 1);
    let word = if scheme.saved_ratio < 0.0 { "more than before" } else { "saved" };
    let mut line = format!(
        "{}: {} -> {} octets, {share} {word}; headers {} -> {} octets a packet; ",
        name(scheme),
        N.integer(traffic.bytes_in.into()),
        N.integer(scheme.bytes_out.into()),
        N.number(per_packet(traffic.header_bytes_in, packets), 1),
        N.number(per_packet(scheme.header_bytes_out, packets), 1),
    );
    if scheme.feedback_packets > 0 {
        line += &format!("{} octets of feedback the other way; ", N.integer(scheme.feedback_bytes.into()));
    }
    if scheme.lost > 0 {
        line += &format!("{} packets were lost; ", N.integer(scheme.lost.into()));
    }
    line += &match (scheme.roundtrip_mismatches, scheme.lost) {
        (0, 0) => "every packet came back bit for bit.".to_owned(),
        (0, _) => "every other packet came back bit for bit.".to_owned(),
        (1, _) => "1 packet did NOT come back bit for bit.".to_owned(),
        (n, _) => format!("{} packets did NOT come back bit for bit.", N.integer(n.into())),
    };
    line
}

/// One line on a capture.
pub(crate) fn input(input: &Input) -> String {
    let mut line = format!(
        "{}: {}, {} compressed",
        input.path,
        counted(input.packets, "packet"),
        N.integer(input.ip_packets.into())
    );
    if !input.skipped.is_empty() {
        line += &format!(", skipped: {}", reasons(&input.skipped));
    }
    if !input.odd.is_empty() {
        line += &format!("; odd, carried exactly all the same: {}", reasons(&input.odd));
    }
    line
}

/// A line for each capture that was not read to its end.
pub(crate) fn endings(outcome: &Outcome) -> Vec<String> {
    let ended = |input: &Input| Some(format!("{}: {}", input.path, input.ended_by.as_ref()?));
    outcome.inputs.iter().filter_map(ended).collect()
}

/// `truncated 3, not_ip 1`.
pub(crate) fn reasons(reasons: &BTreeMap<&'static str, u64>) -> String {
    let parts: Vec<_> =
        reasons.iter().map(|(name, count)| format!("{name} {}", N.integer((*count).into()))).collect();
    parts.join(", ")
}

/// A line for each of the first packets that did not come back.
pub(crate) fn faults(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<_> = outcome
        .faults
        .iter()
        .map(|fault| {
            let path = outcome.inputs.get(fault.input).map_or("", |input| input.path.as_str());
            let mode = fault.mode.map_or_else(String::new, |mode| format!(" {mode}-mode,"));
            format!(
                "{path}: packet {}, {} -> {}, {}{mode} {}: {}",
                fault.packet,
                fault.src,
                fault.dst,
                fault.scheme,
                fault.format.unwrap_or("no format"),
                fault.cause
            )
        })
        .collect();
    let more = outcome.mismatches().saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("... and {} more", N.integer(more.into())));
    }
    lines
}

pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", N.integer(count.into()))
}
