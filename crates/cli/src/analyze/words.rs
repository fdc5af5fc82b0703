//! Results in sentences.

use thinair_analyze::Settings;
use thinair_analyze::outcome::{BillCause, BillRow, Flow, InputSummary, LateWait, Outcome, Scheme};
use thinair_report::Numerals;
use thinair_rohc::Integrity;

use crate::records::reasons;

const N: Numerals = Numerals::TERMINAL;

/// Name of a scheme with its mode: `ROHC v1 in U-mode`.
pub(crate) fn name(scheme: &Scheme) -> String {
    let family = match scheme.scheme {
        "rohc-v1" => "ROHC v1",
        "coap" => "ROHC with CoAP",
        "coap-learned" => "ROHC with CoAP and learned bases",
        "dtls" => "ROHC with CoAP and DTLS",
        "tcp" => "ROHC with CoAP and TCP",
        "schc" => "SCHC",
        "6lowpan" => "6LoWPAN",
        other => other,
    };
    match (scheme.mode, scheme.contexts) {
        (Some(mode), None) => format!("{family} in {}-mode", mode.to_uppercase()),
        (Some(mode), Some(contexts)) => {
            format!("{family} in {}-mode with MAX_CID {}", mode.to_uppercase(), contexts.max_cid)
        }
        (None, _) => family.to_owned(),
    }
}

/// Short name of a scheme in tables and plots: `coap U`.
pub(crate) fn label(scheme: &Scheme) -> String {
    let contexts = scheme.contexts.map(|contexts| format!(" {}", contexts.max_cid)).unwrap_or_default();
    match scheme.mode {
        Some(mode) => format!("{} {}{contexts}", scheme.scheme, mode.to_uppercase()),
        None => scheme.scheme.to_owned(),
    }
}

/// Destination of a flow: `192.0.2.2:5683`, or `192.0.2.2 SPI 0x00001000` for ESP, which has no ports.
pub(crate) fn destination(flow: &Flow) -> String {
    match flow.spi {
        Some(spi) => format!("{} SPI {spi:#010x}", flow.dst),
        None => flow.dst.clone(),
    }
}

/// Both ends of a flow.
pub(crate) fn ends(flow: &Flow) -> String {
    format!("{} -> {}", flow.src, destination(flow))
}

/// RTP streams of a flow: `0x00c0ffee, 1 more`. Empty if there are none.
pub(crate) fn ssrcs(flow: &Flow) -> String {
    match flow.ssrcs.as_slice() {
        [] => String::new(),
        [only] => format!("{only:#010x}"),
        [first, others @ ..] => format!("{first:#010x}, {} more", others.len()),
    }
}

/// Type of a flow and the profiles that compressed it: `udp / rtp, udp`.
pub(crate) fn carried_by(flow: &Flow) -> String {
    let profiles = if flow.profiles.is_empty() { flow.profile.to_owned() } else { flow.profiles.join(", ") };
    format!("{} / {profiles}", flow.protocol)
}

/// Returns the scheme that saves most; of several, the first.
pub(crate) fn best(outcome: &Outcome) -> Option<&Scheme> {
    outcome.totals.schemes.iter().rev().max_by(|a, b| a.saved_ratio.total_cmp(&b.saved_ratio))
}

pub(crate) fn per_packet(octets: u64, packets: u64) -> f64 {
    if packets == 0 { 0.0 } else { octets as f64 / packets as f64 }
}

/// Result of a scheme in one line.
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
        N.integer(scheme.sent_bytes().into()),
        N.number(per_packet(traffic.layers_in.all_headers(), packets), 1),
        N.number(per_packet(scheme.layers_out.all_headers(), packets), 1),
    );
    if scheme.not_applicable > 0 {
        line += &format!("{} not IPv6 went as they were; ", counted(scheme.not_applicable, "packet"));
    }
    if scheme.scheme == "schc" {
        line += &format!("rules of {} were given to both ends; ", counted(rules_octets(outcome), "octet"));
    }
    if scheme.feedback_packets > 0 {
        line += &format!("{} octets of it are feedback; ", N.integer(scheme.feedback_bytes.into()));
    }
    if scheme.lost > 0 {
        line += &format!("{} packets were lost; ", N.integer(scheme.lost.into()));
    }
    if let Some(wait) = &scheme.late_wait {
        line += &format!("a late decompressor waits for at most {}; ", late_wait(wait));
    }
    line += &match (scheme.roundtrip_mismatches, scheme.lost) {
        (0, 0) => "every packet came back bit for bit.".to_owned(),
        (0, _) => "every other packet came back bit for bit.".to_owned(),
        (1, _) => "1 packet did NOT come back bit for bit.".to_owned(),
        (n, _) => format!("{} packets did NOT come back bit for bit.", N.integer(n.into())),
    };
    line
}

/// Longest wait of a decompressor that starts late: `128 packets of a flow, 2.1 h`.
pub(crate) fn late_wait(wait: &LateWait) -> String {
    format!("{} of a flow, {}", counted(wait.packets, "packet"), duration(wait.seconds))
}

/// Formats as `10.2 s`, `5.0 min` or `26.1 h`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{} s", N.number(seconds, 1)),
        seconds if seconds < 7_200.0 => format!("{} min", N.number(seconds / 60.0, 1)),
        seconds => format!("{} h", N.number(seconds / 3_600.0, 1)),
    }
}

/// Octets of the SCHC rules provisioned at both ends.
fn rules_octets(outcome: &Outcome) -> u64 {
    let rules = outcome.inputs.iter().filter_map(|input| input.schc_rules.as_ref());
    rules.map(|rules| rules.provisioning_bytes as u64).sum()
}

/// Schemes that a scheme overtakes in the course of a flow, and after how many packets: `schc 38; 6lowpan 4`.
/// Modes with equal numbers are joined: `rohc-v1 U, O 7`.
pub(crate) fn overtaken(flow: &Flow, scheme: &Scheme) -> String {
    let id = scheme.id();
    let mut groups: Vec<(u64, &str, String)> = Vec::new();
    for other in &flow.schemes {
        let than = other.id();
        let lead = flow.break_even.iter().find(|lead| lead.cheaper == id && lead.than == than);
        let Some(after) = lead.map(|lead| lead.after_packets).filter(|&after| after > 1) else { continue };
        let mode = other.mode.map_or_else(String::new, str::to_uppercase);
        match groups.iter_mut().find(|(number, name, _)| *number == after && *name == other.scheme) {
            Some((_, _, modes)) => *modes += &format!(", {mode}"),
            None => groups.push((after, other.scheme, mode)),
        }
    }
    // The largest number comes first, so that it is not cut off.
    groups.sort_by_key(|(after, _, _)| std::cmp::Reverse(*after));
    let parts = groups.iter().map(|(after, name, modes)| match modes.as_str() {
        "" => format!("{name} {}", N.integer((*after).into())),
        modes => format!("{name} {modes} {}", N.integer((*after).into())),
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Assumptions of the schemes: treatment of UDP checksums, and other advantages. May be empty.
pub(crate) fn terms(settings: &Settings, outcome: &Outcome) -> String {
    let has = |name: &str| outcome.totals.schemes.iter().any(|scheme| scheme.scheme == name);
    let mut terms = Vec::new();
    if outcome.partitions > 1 {
        terms.push(format!(
            "Each capture is a link of {} channels with contexts of their own; both addresses of a packet select one.",
            N.integer(outcome.partitions.into())
        ));
    }
    if has("coap") || has("dtls") || has("schc") || has("6lowpan") {
        let eliding = if has("dtls") { "coap, dtls, schc and 6lowpan" } else { "coap, schc and 6lowpan" };
        terms.push(match settings.channel.integrity_below() {
            Integrity::None => {
                format!(
                    "UDP checksums are sent: two octets that {eliding} leave out with --coap-checksum elide."
                )
            }
            Integrity::Crc32 | Integrity::Mic => {
                format!(
                    "{eliding} leave out correct UDP checksums, as if a link layer CRC protected each frame."
                )
            }
        });
    }
    if has("schc") {
        terms.push(format!(
            "Both ends of schc have the rules that are best for these very packets, {}.",
            counted(rules_octets(outcome), "octet")
        ));
    }
    if has("coap-learned") {
        terms.push(
            "Those of coap-learned have bases that `thinair rohc learn` learned from these very packets."
                .to_owned(),
        );
    }
    if has("6lowpan") {
        terms.push(
            "Those of 6lowpan have the prefixes as contexts, and link addresses give the rest of an address."
                .to_owned(),
        );
    }
    terms.join(" ")
}

/// Packets that begin flows: `the first packets of 80 flows`.
pub(crate) fn first_packets(outcome: &Outcome) -> String {
    let flows = counted(outcome.totals.flows, "flow");
    format!("the first packet{} of {flows}", if outcome.totals.flows == 1 { "" } else { "s" })
}

/// Summary of a capture in one line.
pub(crate) fn input(input: &InputSummary) -> String {
    let mut line = format!(
        "{}: {}, {} compressed",
        input.path,
        counted(input.packets, "packet"),
        N.integer(input.ip_packets.into())
    );
    if let Some(dropped @ 1..) = input.dropped {
        line += &format!(", dropped by the kernel: {}", N.integer(dropped.into()));
    }
    if input.cut > 0 {
        line += &format!(" ({} with zeros for octets that were not captured)", N.integer(input.cut.into()));
    }
    if !input.unwrapped.is_empty() {
        line += &format!(", unwrapped: {}", reasons(&input.unwrapped));
    }
    if !input.not_unwrapped.is_empty() {
        line += &format!(", of tunnels that are not opened: {}", reasons(&input.not_unwrapped));
    }
    if !input.skipped.is_empty() {
        line += &format!(", skipped: {}", reasons(&input.skipped));
    }
    if !input.odd.is_empty() {
        line += &format!("; odd, carried exactly all the same: {}", reasons(&input.odd));
    }
    if input.iphc_frames > 0 {
        line += &format!("; {}", iphc(input.iphc_frames));
    }
    line
}

/// Note on frames whose headers were compressed before they were captured.
pub(crate) fn iphc(frames: u64) -> String {
    let frames = counted(frames, "frame");
    format!(
        "{frames} compressed with LOWPAN_IPHC on the air: their octets count as IPv6; compare with row 6lowpan"
    )
}

/// A line for each capture that was not read to its end.
pub(crate) fn endings(outcome: &Outcome) -> Vec<String> {
    let ended = |input: &InputSummary| Some(format!("{}: {}", input.path, input.ended_by.as_ref()?));
    outcome.inputs.iter().filter_map(ended).collect()
}

/// A line for each of the first packets that were not restored.
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
                fault.format.as_deref().unwrap_or("no format"),
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

/// Names a cause of the bill, with its protocol where it has several.
pub(super) fn cause(row: &BillRow) -> String {
    let name = match row.cause {
        BillCause::LinkHeaders => return "headers of frames".to_owned(),
        BillCause::IpHeaders => return "IP headers".to_owned(),
        BillCause::TransportHeaders => return "transport headers".to_owned(),
        BillCause::Payload => "payload",
        BillCause::ApplicationHeaders => "headers",
        BillCause::Handshakes => "handshakes",
        BillCause::Acknowledgments => "acknowledgments without data",
        BillCause::Keepalives => "keepalives",
        BillCause::Retransmissions => "sent again",
        BillCause::NamesAndTime => "names and time",
        BillCause::LinkNoise => "local network",
        BillCause::PathProbes => "probes and errors",
        BillCause::OtherFrames => "other frames",
    };
    match row.protocol.as_str() {
        "other" => name.to_owned(),
        protocol => format!("{name}: {protocol}"),
    }
}
