//! Explanation of captures without IP packets: their content, and a remedy.

use thinair_analyze::Outcome;
use thinair_analyze::outcome::InputSummary;
use thinair_capture::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROHC, LinkType};

use super::source::Captures;
use super::words::counted;
use crate::records::reasons;

/// Returns a line for each capture without IP packets.
pub(super) fn lines(outcome: &Outcome, captures: &Captures) -> Vec<String> {
    // `ended_by` has the reason for files that are damaged at their start, or no captures.
    let is_damaged = |input: &InputSummary| input.packets == 0 && input.damaged;
    let inputs = outcome.inputs.iter().enumerate();
    let inputs = inputs.filter(|(_, input)| input.ip_packets == 0 && !is_damaged(input));
    inputs.map(|(at, input)| line(input, || captures.main_ethertype(at))).collect()
}

/// `ethertype`: the most frequent one in its frames.
fn line(input: &InputSummary, ethertype: impl FnOnce() -> Option<u16>) -> String {
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
    format!(
        "{path}: no IP packet among {records}{}: {reasons}; {}",
        of_types(input),
        advice(input, ethertype)
    )
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
fn advice(input: &InputSummary, ethertype: impl FnOnce() -> Option<u16>) -> String {
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
        // Frames in tunnels; those around them hold IP.
        "not_ip" if !input.unwrapped.is_empty() => OTHERS.to_owned(),
        "not_ip" => match ethertype() {
            Some(ethertype) => of_ethertype(ethertype),
            None if has(&[LinkType::RAW, LinkType::DLT_RAW, LinkType::IPV4, LinkType::IPV6]) => DAMAGED.to_owned(),
            None => OTHERS.to_owned(),
        },
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

const OTHERS: &str = "these are frames of other protocols, such as ARP; capture while the application runs";

const DAMAGED: &str = "their IP headers are damaged; check what wrote the file, and capture again";

const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_MPLS: [u16; 2] = [0x8847, 0x8848];

/// EtherTypes from this one on; lower values are lengths of LLC frames (IEEE 802.3).
const LOWEST_ETHERTYPE: u16 = 1_536;

/// Returns advice on a capture with frames that have no IP packet, most of them of an EtherType.
fn of_ethertype(ethertype: u16) -> String {
    let wrapped = match ethertype {
        ETHERTYPE_ARP => return OTHERS.to_owned(),
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => {
            let version = if ethertype == ETHERTYPE_IPV4 { "IPv4" } else { "IPv6" };
            return format!("most are announced as {version} (EtherType {ethertype:#06x}), and {DAMAGED}");
        }
        ETHERTYPE_ROHC => {
            return "most are ROHC packets: `thinair rohc dissect` and `thinair rohc decompress` read them"
                .to_owned();
        }
        ..LOWEST_ETHERTYPE => "most are LLC (a length instead of an EtherType)".to_owned(),
        _ if ETHERTYPE_MPLS.contains(&ethertype) => format!("most are MPLS (EtherType {ethertype:#06x})"),
        _ => format!("most have EtherType {ethertype:#06x}"),
    };
    format!(
        "{wrapped}, which is not unpacked; capture on an interface whose frames hold IP packets, such as that of an end"
    )
}
