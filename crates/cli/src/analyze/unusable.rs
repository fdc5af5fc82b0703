//! Explanation of captures without IP packets: their content, and a remedy.

use thinair_analyze::Outcome;
use thinair_analyze::outcome::InputSummary;
use thinair_capture::LinkType;

use super::words::counted;
use crate::records::reasons;

/// Returns a line for each capture without IP packets.
pub(super) fn lines(outcome: &Outcome) -> Vec<String> {
    outcome.inputs.iter().filter(|input| input.ip_packets == 0).map(line).collect()
}

fn line(input: &InputSummary) -> String {
    let path = &input.path;
    if input.packets == 0 {
        if input.dropped.is_some() {
            let advice = "check that this is the right interface, and capture while there is traffic";
            return format!("{path}: no packet: no frame was captured; {advice}");
        }
        let of_types = of_types(input);
        return match input.ended_by {
            Some(_) => format!(
                "{path}: no packet: the file{of_types} ends within its first record; capture again, or copy the file \
                 again"
            ),
            None => format!(
                "{path}: no packet: the file has a header and no record{of_types}; check the interface and the filter of the \
                 capture, and capture while there is traffic"
            ),
        };
    }
    let records = counted(input.packets, "record");
    let reasons = reasons(&input.skipped);
    format!("{path}: no IP packet among {records}{}: {reasons}; {}", of_types(input), advice(input))
}

/// Formats link types as ` of LINKTYPE_ETHERNET (1)`.
fn of_types(input: &InputSummary) -> String {
    let name = |link_type: &LinkType| match link_type.name() {
        Some(_) => format!("LINKTYPE_{link_type}"),
        None => format!("link type {link_type}"),
    };
    let names: Vec<_> = input.link_types.keys().map(name).collect();
    if names.is_empty() { String::new() } else { format!(" of {}", names.join(" and ")) }
}

/// Returns advice on the most frequent reason.
fn advice(input: &InputSummary) -> String {
    let main = input.skipped.iter().max_by_key(|(_, records)| **records).map_or("", |(reason, _)| reason);
    let has = |types: &[LinkType]| input.link_types.keys().any(|link_type| types.contains(link_type));
    let is_wlan = has(&[
        LinkType::IEEE802_11,
        LinkType::IEEE802_11_PRISM,
        LinkType::IEEE802_11_RADIOTAP,
        LinkType::IEEE802_11_AVS,
    ]);
    match main {
        "encrypted" if is_wlan => format!(
            "decrypt it first, for example with `airdecap-ng -e SSID -p PASSPHRASE {}`, or capture on the interface of an end, \
             which has the packets in the clear",
            input.path
        ),
        "encrypted" => "capture where the packets are in the clear, as on the border router".to_owned(),
        "not_data" => {
            "these are management and control frames; capture on the channel of the network while it is \
                       used, or on the interface of an end"
                .to_owned()
        }
        "truncated" => {
            "the capture holds too few octets of each frame; capture again with whole frames, for example with \
                        `tcpdump -s 0`"
                .to_owned()
        }
        "not_ip" if has(&[LinkType::USER0]) => {
            "if these are ROHC packets, `thinair rohc dissect` and `thinair rohc decompress` read them"
                .to_owned()
        }
        "not_ip" => {
            "these are frames of other protocols, such as ARP; capture while the application runs".to_owned()
        }
        "unsupported_link_type" => {
            "this link type is not supported; capture on an interface that \
                                    carries IP packets (`ip link` lists them)"
                .to_owned()
        }
        "no_context" => "give the prefixes of the network with --lowpan-context".to_owned(),
        "aggregated" => "capture on the interface of an end, which has the packets one by one".to_owned(),
        _ => "capture on an interface that carries IP packets (`ip link` lists them)".to_owned(),
    }
}
