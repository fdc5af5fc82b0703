//! Writer of template files, laid out for people.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thinair_rohc::profile::coap::outline::{Class, Entries, OutlineEntry};
use thinair_rohc::profile::coap::{Base, BaseEnd, BasePath, BaseTemplate, TokenMode};

use super::names::{self, CHECKSUMS, IP_IDS, MESSAGE_IDS, OPTIONS, TYPES};
use super::read::VERSION;
use super::{hex, name};
use crate::learn::is_writable;

/// Returns the file of bases, each below its comment. Skips bases of flows with wrong checksums.
pub(crate) fn text<'b>(bases: impl IntoIterator<Item = (&'b Base, String)>) -> String {
    let bases: Vec<_> = bases.into_iter().filter(|(base, _)| is_writable(base)).collect();
    let list: Vec<Base> = bases.iter().map(|(base, _)| **base).collect();
    let mut out = format!(
        "# Provisioned bases of ROHC profile `coap`: both ends of a channel need the same, in the same order.\n\
         # template {}\n\nversion = {VERSION}\n",
        name(&list)
    );
    for (base, comment) in &bases {
        out.push('\n');
        for line in comment.lines() {
            let _ = writeln!(out, "# {line}");
        }
        let path = base.base_path();
        out.push_str("[[base]]\n");
        put_path(&mut out, &path);
        for template in base.templates() {
            out.push_str("\n[[base.template]]\n");
            put_template(&mut out, &template);
        }
    }
    out
}

fn put_path(out: &mut String, path: &BasePath) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name} = {value}");
    };
    for (name, end) in [("source", path.source), ("destination", path.destination)] {
        line(name, format!("\"{}\"", address(path, end)));
        line(&format!("{name}_port"), end.port.to_string());
    }
    if path.v6 {
        line("traffic_class", path.tos.to_string());
        line("hop_limit", path.ttl.to_string());
        line("flow_label", path.flow_label.to_string());
    } else {
        line("tos", path.tos.to_string());
        line("ttl", path.ttl.to_string());
        line("df", path.df.to_string());
        line("ip_id", quoted_word(names::word(IP_IDS, &path.ip_id)));
    }
    line("checksum", quoted_word(names::word(CHECKSUMS, &path.checksum)));
}

/// Returns the address of an end.
pub(crate) fn address(path: &BasePath, end: BaseEnd) -> IpAddr {
    let [a, b, c, d, ..] = end.address;
    if path.v6 { Ipv6Addr::from(end.address).into() } else { Ipv4Addr::new(a, b, c, d).into() }
}

fn put_template(out: &mut String, template: &BaseTemplate<'_>) {
    let _ = writeln!(out, "type = {}", quoted_word(names::word(TYPES, &template.message_type)));
    let _ = writeln!(out, "code = \"{}\"", template.code);
    let _ = writeln!(out, "message_id = {}", quoted_word(names::word(MESSAGE_IDS, &template.message_id)));
    let length = template.token.len();
    let _ = writeln!(
        out,
        "token = {{ {} }}",
        match template.token_mode {
            TokenMode::Static => format!("mode = \"static\", value = \"{}\"", hex(template.token)),
            TokenMode::CountedUint => "mode = \"counted-uint\"".to_owned(),
            TokenMode::Counted => format!("mode = \"counted\", length = {length}"),
            TokenMode::OfRequest => format!("mode = \"of-request\", length = {length}"),
            TokenMode::Irregular => format!("mode = \"irregular\", length = {length}"),
        }
    );
    if template.outline.is_empty() {
        return;
    }
    out.push_str("options = [\n");
    for entry in Entries::new(template.outline) {
        let option = match names::word(OPTIONS, &entry.number) {
            Some(name) => format!("\"{name}\""),
            None => entry.number.to_string(),
        };
        let _ = writeln!(out, "    {{ option = {option}, {} }},", class(&entry));
    }
    out.push_str("]\n");
}

/// Formats class and parameters.
fn class(entry: &OutlineEntry<'_>) -> String {
    let block = |low: u8| format!("more = {}, szx = {}", low & 0b1000 != 0, low & 0b111);
    match entry.class {
        Class::Static(value) => format!("class = \"static\", {}", static_value(entry.number, value)),
        Class::Counted => "class = \"counted\"".to_owned(),
        Class::Lsb => "class = \"lsb\"".to_owned(),
        Class::Step(step) => format!("class = \"step\", step = {step}"),
        Class::Block(low) => format!("class = \"block\", {}", block(low)),
        Class::BlockOfRequest(low) => format!("class = \"block-of-request\", {}", block(low)),
        Class::PartialIv(flags, behind) => {
            format!("class = \"partial-iv\", flags = {flags}, {}", octets(behind))
        }
        Class::Irregular(length) => format!("class = \"irregular\", length = {length}"),
        Class::Variable => "class = \"variable\"".to_owned(),
        Class::Prefix(length, prefix) => format!("class = \"prefix\", length = {length}, {}", octets(prefix)),
    }
}

/// Formats a value as a number, if it is usually written so and the number represents it fully.
fn static_value(option: u16, value: &[u8]) -> String {
    if names::is_uint(option) && value.len() <= 4 && value.first() != Some(&0) {
        let uint = value.iter().fold(0, |uint, octet| uint << 8 | u32::from(*octet));
        return format!("uint = {uint}");
    }
    octets(value)
}

/// Formats octets as text if they are printable.
fn octets(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) => {
            format!("value = \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        _ => format!("hex = \"{}\"", hex(value)),
    }
}

fn quoted_word(word: Option<&str>) -> String {
    format!("\"{}\"", word.unwrap_or_default())
}
