#![allow(clippy::unwrap_used)]

use std::fs::{self, File};

use serde_json::Value;
use thinair_analyze::outcome::Scheme;
use thinair_analyze::{Analysis, SchemeName, Survey};
use thinair_rohc::{Channel, CidSpace, Mode, ProfileSet};

use super::*;

#[test]
fn bars_and_tables_show_the_same_octets() {
    for name in &captures() {
        let (document, outcome) = page(&[name]);
        let json = document.to_json();
        let table = &block(&json, "Schemes side by side", "table")["table"]["rows"];
        let bars = &block(&json, "Where the octets are", "figure")["data"]["rows"];
        assert_eq!(table.as_array().unwrap().len(), bars.as_array().unwrap().len(), "{name}");
        for (row, bar) in table.as_array().unwrap().iter().zip(bars.as_array().unwrap()) {
            assert_eq!(row["scheme"], bar["column"], "{name}");
            assert_eq!(row["octets"].as_f64(), bar["all"].as_f64(), "{name}: {row} {bar}");
        }
        let best = ShownSchemes::of(&outcome).best().unwrap();
        let all = &block(&json, "All schemes and modes", "table")["table"]["rows"];
        let of = |rows: &Value| {
            let found = rows.as_array().unwrap().iter().find(|row| row["scheme"] == words::label(best));
            found.unwrap().clone()
        };
        let (row, deciding) = (of(all), of(table));
        assert_eq!(row["octets"], best.bytes_out + best.feedback_bytes, "{name}: feedback counts");
        assert_eq!(deciding, in_common(&deciding, &row), "{name}: one scheme, one figure");
    }
}

#[test]
fn the_first_scheme_is_the_one_of_the_title_and_needs_fewest_octets() {
    let (document, outcome) = page(&["coap_udp6_get_con.pcap"]);
    assert_eq!(document.title, "ROHC with CoAP in O-mode saves 90.9\u{202f}%");
    let shown = ShownSchemes::of(&outcome);
    let octets: Vec<_> = shown.iter().map(|(_, scheme)| scheme.sent_bytes()).collect();
    assert!(octets.is_sorted(), "{octets:?}");
    let least = outcome.totals.schemes.iter().map(Scheme::sent_bytes).min();
    assert_eq!(octets.first().copied(), least);
}

#[test]
fn changes_have_an_arrow_that_does_not_break() {
    let (document, _) = page(&["coap_udp6_get_con.pcap"]);
    let html = document.to_html();
    assert!(html.contains("61.5\u{a0}→\u{a0}3.3\u{202f}B"));
    assert!(html.contains("38\u{202f}400\u{a0}→\u{a0}3\u{202f}493"));
    let (body, _) = html.split_once("<script>").unwrap();
    assert!(!body.contains("-&gt;") && !body.contains(" -> "));
    assert!(html.contains("<span class=\"whole\">O-mode</span>"));
}

#[test]
fn the_decision_comes_first_and_details_are_folded() {
    let (document, _) = page(&["rtp_udp4_pcmu.pcap", "mqtt311_tcp4_qos1.pcap"]);
    let parts: Vec<_> =
        document.sections.iter().map(|section| (section.heading.as_str(), section.folded)).collect();
    assert_eq!(
        parts,
        [
            ("", false),
            ("What is paid for", false),
            ("What to use", false),
            ("Schemes side by side", false),
            ("Where the octets are", false),
            ("All schemes and modes", true),
            ("Start-up and break-even", true),
            ("Header sizes", true),
            ("Flows", true),
            ("Rules of SCHC", true),
            ("Captures", true),
        ]
    );
}

#[test]
fn modes_schemes_and_profiles_of_a_page_are_explained_on_it() {
    let names = captures();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (document, outcome) = page(&names);
    let json = document.to_json();
    let words: Vec<_> = json["sections"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|section| section["blocks"].as_array().unwrap())
        .filter(|block| block["kind"] == "terms")
        .flat_map(|block| block["terms"].as_array().unwrap())
        .map(|term| term["word"].as_str().unwrap().to_owned())
        .collect();
    for (_, scheme) in ShownSchemes::of(&outcome).iter() {
        assert!(words.iter().any(|word| word == scheme.scheme), "{}", scheme.scheme);
        assert!(scheme.mode.is_none_or(|mode| words.contains(&mode.to_uppercase())), "{:?}", scheme.mode);
    }
    for profile in text::largest(&outcome, MOST_FLOWS).iter().flat_map(|flow| &flow.profiles) {
        assert!(words.contains(&format!("profile {profile}")), "{profile}");
    }
    for word in ["flow", "IR", "IR-DYN", "feedback", "CDA"] {
        assert!(words.iter().any(|one| one == word), "{word}");
    }
}

#[test]
fn a_capture_without_packets_has_a_page() {
    let (document, _) = page(&[]);
    assert_eq!(document.title, "No IP packet to compress");
    assert!(document.to_html().contains("Nothing was compressed."));
}

/// Returns a copy of `one` with the values of `other` under all keys that both have.
fn in_common(one: &Value, other: &Value) -> Value {
    let mut merged = one.clone();
    for (key, value) in merged.as_object_mut().unwrap() {
        if let Some(other) = other.get(key) {
            *value = other.clone();
        }
    }
    merged
}

/// Returns the first block of a kind in the section.
fn block<'j>(json: &'j Value, heading: &str, kind: &str) -> &'j Value {
    let mut sections = json["sections"].as_array().unwrap().iter();
    let section = sections.find(|section| section["heading"] == heading).unwrap();
    section["blocks"].as_array().unwrap().iter().find(|block| block["kind"] == kind).unwrap()
}

const FOLDER: &str = "../../captures";

fn captures() -> Vec<String> {
    let names = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".pcap")).collect();
    names.sort();
    assert!(names.len() > 10);
    names
}

/// Returns the page of these captures in all usual schemes, and their outcome.
fn page(names: &[&str]) -> (Document, Outcome) {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let mut settings = Settings::new(channel, &[]);
    let open = |name: &str| File::open(format!("{FOLDER}/{name}")).unwrap();
    let mut survey = Survey::default();
    for name in names {
        survey.read(&settings, open(name), |_| ()).unwrap();
    }
    let modes = [Mode::Unidirectional, Mode::Optimistic];
    let all = SchemeName::USUAL.iter().flat_map(|name| name.specs(&channel, &modes).unwrap());
    settings.schemes = survey.applicable(&all.collect::<Vec<_>>());
    let mut analysis = Analysis::new(settings.clone(), survey);
    for name in names {
        analysis.read(name, open(name), |_| ()).unwrap();
    }
    let outcome = analysis.finish();
    let advice = Advice { headline: "ROHC".to_owned(), rows: Vec::new(), blocks: Vec::new() };
    (document(&settings, &outcome, &advice), outcome)
}
