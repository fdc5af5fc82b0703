//! Checks JSON documents of the command against the schemas of `docs/schemas`, and columns of its CSV files against the
//! page there.
//!
//! A schema is strict: a key that is added to a document is added to its schema, too. A key that neither an output here
//! nor a list of rare ones has was removed or renamed.

#![allow(clippy::unwrap_used)]

mod outputs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::Value;
use thinair_tests::{files, root};

use outputs::Outputs;

/// Keys that no output of these tests has, by document, with the reason.
const RARE: &[(&str, &[&str], &str)] = &[
    (
        "thinair.analyze/1",
        &["spi", "unwrapped", "not_unwrapped", "iphc_frames", "dropped", "session_cost"],
        "ESP, tunnels, IEEE 802.15.4, interfaces and prices of sessions are in other tests",
    ),
    ("thinair.rohc.dissect/1", &["last", "side"], "segments, and files with both directions"),
    (
        "thinair.coap/1",
        &["failed_addresses", "why", "location", "handshake_octets"],
        "needs a server with two addresses, one that creates, and one with a key",
    ),
    ("thinair.serve/1", &["refused"], "http3 is not in every build"),
    ("thinair.lab/1", LATENESS, "real time needs root"),
    ("thinair.lab.run/1", LATENESS, "real time needs root"),
    (
        "thinair.tunnel.status/1",
        &[
            "host",
            "size",
            "longest_packet",
            "acknowledged",
            "sent_again",
            "reason",
            "text",
            "since_seconds",
            "line",
            "timeout_seconds",
            "probes",
        ],
        "a tunnel with trouble, sources that are not allowed, or a NAT, and one with controlled segment sizes",
    ),
];

const LATENESS: &[&str] = &["lateness", "real_time", "p99_us", "max_us", "stolen_percent"];

/// Documents whose tests need root.
const PRIVILEGED: [&str; 2] = ["thinair.link/1", "thinair.tunnel.status/1"];

fn folder() -> PathBuf {
    root().join("docs/schemas")
}

/// Every schema by the name of its document, `thinair.NAME/VERSION`.
fn schemas() -> BTreeMap<String, Value> {
    let files = files(&folder(), ".schema.json").into_iter();
    files
        .map(|file| {
            let schema: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            let name = schema["properties"]["schema"]["const"].as_str().unwrap().to_owned();
            let file = file.file_name().unwrap().to_string_lossy().into_owned();
            assert_eq!(file, format!("{}.schema.json", name.replace('/', "-")));
            assert_eq!(schema["title"], name);
            (name, schema)
        })
        .collect()
}

/// Documents that the sources name.
fn named_in_sources() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in ["crates", "lab"].into_iter().flat_map(|house| files(&root().join(house), ".rs")) {
        if !file.components().any(|part| part.as_os_str() == "src")
            || file.to_string_lossy().contains("target")
        {
            continue;
        }
        for piece in fs::read_to_string(&file).unwrap().split('"') {
            let known = piece.strip_prefix("thinair.").and_then(|name| name.strip_suffix("/1"));
            if known.is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase() || ".-".contains(c))) {
                names.insert(piece.to_owned());
            }
        }
    }
    names
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).unwrap()
}

#[track_caller]
fn assert_valid(name: &str, validator: &Validator, document: &Value) {
    let errors: Vec<_> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    let shown = &document.to_string()[..document.to_string().len().min(600)];
    assert!(errors.is_empty(), "{name}: {}\n{shown}", errors.join("\n"));
}

#[test]
fn every_document_has_a_schema() {
    assert_eq!(schemas().into_keys().collect::<BTreeSet<_>>(), named_in_sources());
}

#[test]
fn schemas_are_strict_and_describe_every_key() {
    fn assert_described(name: &str, key: &str, property: &Value) {
        let text = property["description"].as_str().unwrap_or_default();
        assert!(text.ends_with('.') && text.len() > 3, "{name}: `{key}` has no description");
    }
    fn look(name: &str, at: &Value) {
        if let Some(properties) = at.get("properties") {
            assert_eq!(at["additionalProperties"], false, "{name}: {at}");
            // A definition has its own description.
            let own =
                properties.as_object().unwrap().iter().filter(|(_, property)| property.get("$ref").is_none());
            own.for_each(|(key, property)| assert_described(name, key, property));
        }
        match at {
            Value::Object(map) => map.values().for_each(|child| look(name, child)),
            Value::Array(list) => list.iter().for_each(|child| look(name, child)),
            _ => {}
        }
    }
    for (name, schema) in schemas() {
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        assert!(jsonschema::draft202012::meta::is_valid(&schema), "{name}");
        assert_described(&name, "the document", &schema);
        let definitions = schema["$defs"].as_object().into_iter().flatten();
        definitions.for_each(|(key, definition)| assert_described(&name, key, definition));
        look(&name, &schema);
    }
}

#[test]
fn outputs_are_what_the_schemas_say() {
    let schemas = schemas();
    let outputs = Outputs::collect(&thinair_tests::command(), &thinair_tests::laboratory());
    let mut missing = Vec::new();
    for (name, schema) in &schemas {
        let Some(documents) = outputs.documents.get(name) else {
            assert!(PRIVILEGED.contains(&name.as_str()), "no output is a {name}");
            continue;
        };
        let validator = validator(schema);
        let mut seen = BTreeSet::new();
        for document in documents {
            assert_valid(name, &validator, document);
            keys(document, &mut seen);
        }
        let mut known = BTreeSet::new();
        properties(schema, &mut known);
        let rare = RARE.iter().filter(|(of, ..)| of == name).flat_map(|(_, keys, _)| keys.iter().copied());
        let rare: BTreeSet<_> = rare.collect();
        let unseen = known.into_iter().filter(|key| !seen.contains(key) && !rare.contains(key.as_str()));
        missing.extend(unseen.map(|key| format!("{name}: {key}")));
        println!("{name}: {} documents, {} keys", documents.len(), seen.len());
    }
    assert!(missing.is_empty(), "keys of schemas that no output has: {missing:#?}");
}

#[test]
fn a_key_that_is_not_in_the_schema_is_found() {
    let output = outputs::run(&thinair_tests::command(), &root(), &["link", "capacity", "--json"]);
    let mut document: Value = serde_json::from_str(&output).unwrap();
    let validator = validator(&schemas()["thinair.capacity/1"]);
    assert_valid("capacity", &validator, &document);
    document["payloads"][0]["model"]["new"] = 1.into();
    assert!(!validator.is_valid(&document));
    document["payloads"][0]["model"].as_object_mut().unwrap().remove("new");
    document["payloads"][0]["model"].as_object_mut().unwrap().remove("gain");
    assert!(!validator.is_valid(&document));
}

/// Collects the keys of all objects in a document.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// Collects the keys that a schema names.
fn properties(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                if let (true, Some(named)) = (key == "properties", value.as_object()) {
                    found.extend(named.keys().cloned());
                    named.values().for_each(|value| properties(value, found));
                } else {
                    properties(value, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| properties(value, found)),
        _ => {}
    }
}

/// Columns that a table of the page explains: `| column | unit | meaning |` below the heading of a file.
fn explained(heading: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    let (_, section) =
        page.split_once(&format!("\n### {heading}\n")).unwrap_or_else(|| panic!("no `{heading}`"));
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert!(cells.len() >= 3 && !cells[2].is_empty(), "`{row}` has no meaning");
        cells[0].trim_end_matches('`').to_owned()
    })
    .collect()
}

#[test]
fn columns_of_flows_are_explained() {
    let explained = explained("`thinair analyze --csv`");
    let capture = "captures/coap_udp6_observe.pcap";
    let schemes = "rohc-v1,coap,tcp,schc,6lowpan";
    let mut used = BTreeSet::new();
    for mode in ["u", "o", "r"] {
        let arguments = ["analyze", capture, "--csv", "--schemes", schemes, "--mode", mode];
        let csv = outputs::run(&thinair_tests::command(), &root(), &arguments);
        for column in csv.lines().next().unwrap().split(',') {
            let name = explained.iter().find(|name| match name.strip_suffix("_SCHEME") {
                Some(prefix) => column.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_')),
                None => name.as_str() == column,
            });
            used.insert(name.unwrap_or_else(|| panic!("`{column}` is not explained")).clone());
        }
    }
    assert_eq!(used, explained);
}

#[test]
fn columns_of_the_log_of_a_link_are_explained() {
    let Some(run) = outputs::link(&thinair_tests::command(), &thinair_tests::laboratory()) else { return };
    let columns: BTreeSet<_> = run.log.lines().next().unwrap().split(',').map(str::to_owned).collect();
    assert_eq!(columns, explained("`thinair link run --log`"));
}
