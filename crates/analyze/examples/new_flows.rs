//! First packets of flows: captures of clients that begin a flow for each request, by scheme.
//!
//! `cargo run -p thinair-analyze --example new_flows` prints the tables of docs/results.md. ROHC has the profiles v1, CoAP
//! and TCP and small CIDs; SCHC has the rules that are best for the capture. `elided`: a link layer CRC protects every
//! frame, and CoAP and SCHC leave out correct UDP checksums.

use std::error::Error;
use std::fs;
use std::path::Path;

use thinair_analyze::{Analysis, Outcome, SchemeSpec, Settings, Survey};
use thinair_rohc::{Channel, CidSpace, Integrity, Mode, ProfileId, ProfileSet};

/// Client and capture.
const CAPTURES: [(&str, &str); 10] = [
    ("CoAP, IPv4, libcoap", "coap_udp4_libcoap_new_port_each"),
    ("CoAP, IPv4, Node", "coap_udp4_node_new_port_each"),
    ("CoAP, IPv6, Node", "coap_udp6_node_new_port_each"),
    ("DNS, IPv4, dig", "dns_udp4_dig_new_port_each"),
    ("NTP, IPv4, chrony", "ntp_udp4_chrony_new_port_each"),
    ("DTLS, IPv4, libcoap", "coaps_udp4_dtls_psk"),
    ("DTLS, IPv6, OpenSSL", "dtls_udp6_openssl_new_port_each"),
    ("QUIC, IPv4, aioquic", "quic_udp4_aioquic_new_port_each"),
    ("HTTP, IPv4, curl", "http11_tcp4_get_each"),
    ("HTTP, IPv6, curl", "http11_tcp6_get_each"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut outcomes = Vec::new();
    for (client, capture) in CAPTURES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../captures/{capture}.pcap"));
        let file = fs::read(path)?;
        let outcomes_of = [analyzed(&file, Integrity::None)?, analyzed(&file, Integrity::Crc32)?];
        outcomes.push((client, outcomes_of));
    }

    println!("Headers of the first packet of a flow, in octets:");
    head("flows");
    for (client, outcomes) in &outcomes {
        let flows = outcomes[0].totals.flows;
        let mean = |octets: u64| format!("{:.1}", octets as f64 / flows as f64);
        row(client, flows, outcomes, |outcome| {
            let before = outcome.totals.traffic.first_header_bytes_in;
            (
                mean(before),
                outcome.totals.schemes.iter().map(|scheme| mean(scheme.first_header_bytes_out)).collect(),
            )
        });
    }
    println!();
    println!("Octets of all packets, feedback included:");
    head("packets");
    for (client, outcomes) in &outcomes {
        row(client, outcomes[0].totals.packets, outcomes, |outcome| {
            let schemes = outcome.totals.schemes.iter();
            (
                outcome.totals.traffic.bytes_in.to_string(),
                schemes.map(|scheme| scheme.sent_bytes().to_string()).collect(),
            )
        });
    }
    Ok(())
}

fn head(count: &str) {
    println!();
    println!(
        "| | {count} | plain | U-mode | O-mode | SCHC | U-mode, elided | O-mode, elided | SCHC, elided |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
}

/// One row: the uncompressed capture, and the schemes without and with elided checksums.
fn row(client: &str, count: u64, outcomes: &[Outcome; 2], cells: impl Fn(&Outcome) -> (String, Vec<String>)) {
    let [(before, carried), (_, elided)] = outcomes.each_ref().map(cells);
    println!("| {client} | {count} | {before} | {} | {} |", carried.join(" | "), elided.join(" | "));
}

/// Sends a capture through each scheme.
fn analyzed(capture: &[u8], integrity: Integrity) -> Result<Outcome, Box<dyn Error>> {
    let profiles = ProfileSet::v1().with(ProfileId::Coap)?.with(ProfileId::Tcp)?;
    let channel = Channel::new(CidSpace::Small, 15, profiles)?.with_integrity_below(integrity);
    let rohc = |mode| SchemeSpec::Rohc { name: "rohc", channel, mode, learned: false };
    let settings =
        Settings::new(channel, &[rohc(Mode::Unidirectional), rohc(Mode::Optimistic), SchemeSpec::Schc]);
    let mut survey = Survey::default();
    survey.read(&settings, capture, |_| ())?;
    let mut analysis = Analysis::new(settings, survey);
    analysis.read("capture", capture, |_| ())?;
    let outcome = analysis.finish();
    assert_eq!(outcome.mismatches(), 0);
    Ok(outcome)
}
