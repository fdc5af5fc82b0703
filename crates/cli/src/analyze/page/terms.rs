//! Explanations of the terms on the page, each at its first use.

use thinair_analyze::outcome::Scheme;

/// A term and its meaning.
pub(super) type Meaning = (String, &'static str);

/// Explains the schemes, and the modes of operation at the end of their labels, each once.
pub(super) fn schemes<'s>(shown: impl IntoIterator<Item = &'s Scheme>) -> Vec<Meaning> {
    let mut terms = Vec::new();
    let mut modes = Vec::new();
    let add = |terms: &mut Vec<Meaning>, word: &str, meaning| {
        if terms.iter().all(|(one, _)| one != word) {
            terms.push((word.to_owned(), meaning));
        }
    };
    for scheme in shown {
        add(&mut terms, scheme.scheme, of_scheme(scheme.scheme));
        if let Some((mode, meaning)) = scheme.mode.and_then(of_mode) {
            add(&mut modes, mode, meaning);
        }
        if let Some(contexts) = scheme.contexts {
            add(&mut modes, &contexts.max_cid.to_string(), MORE_CONTEXTS);
        }
    }
    terms.extend(modes);
    terms
}

const MORE_CONTEXTS: &str =
    "MAX_CID, where it is not the usual one: contexts for that many flows and one more, and more memory.";

/// Meaning of a scheme.
pub(super) fn of_scheme(name: &str) -> &'static str {
    match name {
        "rohc-v1" => {
            "Robust Header Compression (RFC 5795), with profiles for RTP, UDP, UDP-Lite, ESP and IP. Both ends remember what \
             the headers of a flow have in common, its context, and only what changes is sent."
        }
        "rohc-v2" => {
            "ROHCv2 (RFC 5225): the profiles of RTP, UDP, UDP-Lite, ESP and IP that also bear packets in another order."
        }
        "coap" => "ROHC, and for CoAP a profile that learns which headers a flow repeats.",
        "coap-learned" => {
            "ROHC with profile coap and with bases: descriptions of the first packets of flows that were learned from these very packets and \
             given to both ends."
        }
        "dtls" => "ROHC, and for DTLS a profile that predicts the headers of records.",
        "tcp" => "ROHC, and for TCP the profile of RFC 6846.",
        "schc" => {
            "Static Context Header Compression (RFC 8724, RFC 8824): rules that both ends are given beforehand describe the \
             headers. Here the rules are the best ones for these very packets."
        }
        "6lowpan" => {
            "Header compression of IEEE 802.15.4 networks (RFC 6282), for IPv6 only. Each packet is compressed by itself."
        }
        _ => "A scheme of header compression.",
    }
}

/// Letter of a mode of operation after the name of a scheme, and its meaning.
pub(super) fn of_mode(mode: &str) -> Option<(&'static str, &'static str)> {
    match mode {
        "u" => Some((
            "U",
            "U-mode, unidirectional: nothing comes back from the receiver, so the sender repeats the context from time to \
             time. Such a repetition is a refresh.",
        )),
        "o" => Some((
            "O",
            "O-mode, bidirectional optimistic: the receiver acknowledges a new context, and asks for it again when it has \
             lost it. These short messages the other way are feedback.",
        )),
        "r" => Some((
            "R",
            "R-mode, bidirectional reliable: the sender relies on a change only once feedback has acknowledged it.",
        )),
        _ => None,
    }
}

/// Segments of the bar of octets by layer.
pub(super) const LAYERS: [(&str, &str); 5] = [
    ("IP, transport", "Headers of IP, and of UDP, UDP-Lite, TCP or ESP, that are sent as they are."),
    (
        "compressed",
        "Headers as the scheme sends them, in place of those of IP, transport and, with some schemes, CoAP.",
    ),
    ("CoAP/RTP", "Headers of the application that are sent as they are."),
    ("payload", "Octets behind all headers, which no scheme compresses."),
    ("feedback", "Messages of the receiver to the sender, the other way."),
];

/// Explains those names that are formats of compressed packets.
pub(super) fn packet_types<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<Meaning> {
    let families: Vec<_> = names.into_iter().filter_map(family).collect();
    FAMILIES
        .iter()
        .filter(|(family, _)| families.contains(family))
        .map(|(family, meaning)| ((*family).to_owned(), *meaning))
        .collect()
}

const FAMILIES: [(&str, &str); 12] = [
    ("IR", "Initialization and Refresh: the whole context of a flow. Begins it, or repeats it."),
    ("IR-DYN", "The part of a context that changes, without the addresses and ports that do not."),
    (
        "UO-0, UO-1, UOR-2",
        "Compressed headers of ROHC of 1, 2 and 3 octets or more: the lowest bits of counters (W-LSB encoding, which sends \
         as many as the receiver needs), and a checksum over what is restored. -ID, -TS and -EXT name further fields.",
    ),
    ("R-0, R-1", "Compressed headers of ROHC in R-mode, of 1 octet and of 2 or more."),
    ("CCE()", "Compressed headers of UDP-Lite with the octets that a checksum covers (RFC 4019)."),
    ("IR-CR", "The context of a flow, as far as it differs from that of another one (RFC 4164)."),
    (
        "co_, pt_",
        "Compressed headers of the CoAP profile and of ROHCv2 (RFC 5225); the TCP profile has a co_common of its own.",
    ),
    (
        "rnd_, seq_",
        "Compressed headers of the TCP profile (RFC 6846), for IP-IDs that are random or count up.",
    ),
    ("Normal", "A packet as it is, behind the number of its context."),
    (
        "rule",
        "A header that a rule of SCHC describes: the number of the rule, and the bits that it leaves open.",
    ),
    ("IPHC", "An IPv6 header as 6LoWPAN compresses it."),
    ("IPv6", "An IPv6 packet that 6LoWPAN sends as it is."),
];

fn family(name: &str) -> Option<&'static str> {
    let starts = |with: &[&str]| with.iter().any(|start| name.starts_with(start));
    match name {
        "IR" => Some("IR"),
        "IR-DYN" => Some("IR-DYN"),
        "Normal" => Some("Normal"),
        "rule" => Some("rule"),
        "IPHC" => Some("IPHC"),
        "IPv6" => Some("IPv6"),
        "IR-CR" => Some("IR-CR"),
        _ if starts(&["UO-", "UOR-"]) => Some("UO-0, UO-1, UOR-2"),
        _ if starts(&["R-"]) => Some("R-0, R-1"),
        _ if starts(&["CCE("]) => Some("CCE()"),
        _ if starts(&["co_", "pt_"]) => Some("co_, pt_"),
        _ if starts(&["rnd_", "seq_"]) => Some("rnd_, seq_"),
        _ => None,
    }
}

/// Explains the term "flow", and those names that are ROHC profiles.
pub(super) fn profiles<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<Meaning> {
    let mut terms = vec![
        (
            "flow".to_owned(),
            "One direction of a conversation: packets that share addresses, ports and protocol.",
        ),
        (
            "protocol / profile".to_owned(),
            "What the packets are, and the part of ROHC that compressed them: a profile knows the headers of one protocol.",
        ),
    ];
    let mut seen: Vec<&str> = names.into_iter().collect();
    seen.sort_unstable();
    seen.dedup();
    terms.extend(seen.into_iter().filter_map(|name| Some((format!("profile {name}"), of_profile(name)?))));
    terms
}

fn of_profile(name: &str) -> Option<&'static str> {
    match name.strip_suffix("-v2").unwrap_or(name) {
        "uncompressed" => Some("Packets as they are, behind one octet or two."),
        "rtp" => Some("IP, UDP and RTP headers."),
        "udp" => Some("IP and UDP headers."),
        "esp" => Some("IP and ESP headers; what is encrypted stays as it is."),
        "ip" => Some("IP headers alone; what follows them, such as a TCP header, stays as it is."),
        "tcp" => Some("IP and TCP headers."),
        "rtp-udp-lite" => Some("IP, UDP-Lite and RTP headers."),
        "udp-lite" => Some("IP and UDP-Lite headers."),
        "coap" => Some("IP, UDP and CoAP headers."),
        "dtls" => Some("IP and UDP headers, and those of DTLS records; what is encrypted stays as it is."),
        _ => None,
    }
}

/// Columns of the table of SCHC rules (RFC 8724, section 7).
pub(super) const RULES: [(&str, &str); 7] = [
    ("Up, Dw", "Direction of the packets: from side a of the link, or to it."),
    ("FL", "Field Length, in bits."),
    ("FP", "Field Position: which of several fields of that name."),
    ("TV", "Target Value, which the field is compared with."),
    ("MO", "Matching Operator: how it is compared."),
    ("CDA", "Compression/Decompression Action: what is sent of the field, and how it is restored."),
    ("bits sent", "Bits of the field on the link."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_explained_once_and_only_where_they_occur() {
        let words = |names: &[&str]| {
            packet_types(names.iter().copied()).into_iter().map(|term| term.0).collect::<Vec<_>>()
        };
        assert_eq!(words(&["UO-1-TS", "IR", "UO-0", "UOR-2-EXT-3"]), ["IR", "UO-0, UO-1, UOR-2"]);
        assert_eq!(words(&["rule"]), ["rule"]);
        assert!(words(&[]).is_empty());
    }

    #[test]
    fn every_format_has_a_meaning() {
        for format in thinair_rohc::Format::ALL {
            assert!(FAMILIES.iter().any(|(one, _)| Some(*one) == family(format.name())), "{}", format.name());
        }
    }

    #[test]
    fn every_profile_has_a_meaning() {
        for id in thinair_rohc::ProfileId::ALL {
            assert!(of_profile(id.name()).is_some(), "{}", id.name());
        }
    }
}
