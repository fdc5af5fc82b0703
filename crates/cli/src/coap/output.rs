//! Output of responses as text and as JSON.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use thinair_coap::uri::resource;
use thinair_coap::{Block, Received, number};
use thinair_services::coap::client::{ClientError, Continuation, TaskReport};

use super::names::{self, OptionFormat};
use super::options::RequestOptions;
use super::request::Ask;
use super::{discover, payload};
use crate::base64::base64;

/// Content-Format of a list of links (RFC 6690).
const LINK_FORMAT: u16 = 40;

/// Destination of responses.
pub(super) struct ResponseOutput<'a> {
    asked: &'a Ask<'a>,
    is_terminal: bool,
    /// Number of responses and notifications so far.
    pub(super) shown: u64,
}

impl<'a> ResponseOutput<'a> {
    pub(super) fn new(asked: &'a Ask<'a>) -> Self {
        Self { asked, is_terminal: io::stdout().is_terminal(), shown: 0 }
    }

    /// True if several messages are printed: notifications, responses of a group, or of several requests.
    const fn is_one_of_many(&self) -> bool {
        self.asked.observe.is_some() || self.options().group.is_some() || self.asked.in_series
    }

    const fn options(&self) -> &'a RequestOptions {
        &self.asked.arguments.options
    }

    /// Prints a response or a notification. Breaks if the reader has closed the pipe.
    pub(super) fn show(
        &mut self,
        message: &Received<'_>,
        report: &TaskReport,
    ) -> anyhow::Result<Continuation> {
        let options = self.options();
        self.shown += 1;
        if options.json {
            return self.print_json(&Json::new(self.asked, report).with(message));
        }
        if options.include {
            include(message);
        }
        // Payloads of errors go to standard error.
        if !message.is_success() {
            return Ok(Continuation::Go);
        }
        if let Some(path) = &options.output {
            crate::whole::write(path, &message.payload)
                .with_context(|| format!("cannot write {}", path.display()))?;
            return Ok(Continuation::Go);
        }
        self.print_payload(message)
    }

    /// Prints the response of a member of a group, with its address.
    pub(super) fn show_member(
        &mut self,
        message: &Received<'_>,
        report: &TaskReport,
    ) -> anyhow::Result<Continuation> {
        if let Some(address) = report.address.filter(|_| !self.options().json) {
            eprintln!("{address}: {}", names::code(message.code));
            let first = message.options.uint(number::BLOCK2).and_then(Block::from_uint);
            if first.is_some_and(|block| block.more) {
                let octets = message.payload.len();
                eprintln!("thinair: the first {octets} octets; request the rest from coap://{address}");
            }
        }
        self.show(message, report)
    }

    /// Prints the end of an observation.
    pub(super) fn finish(&self, report: &TaskReport) {
        if self.options().timing && !self.options().json {
            timing(report);
        }
    }

    /// Prints the failure of a request.
    pub(super) fn failed(&self, error: &ClientError, report: &TaskReport) -> anyhow::Result<()> {
        if self.options().json {
            self.print_json(&Json { error: Some(error.to_string()), ..Json::new(self.asked, report) })?;
        } else if self.options().timing {
            timing(report);
        }
        Ok(())
    }

    /// Prints a payload. Text payloads of several messages are separated by newlines.
    fn print_payload(&self, message: &Received<'_>) -> anyhow::Result<Continuation> {
        let payload = &*message.payload;
        if self.is_terminal {
            let Some(shown) = shown(message) else {
                let len = payload.len();
                eprintln!(
                    "thinair: {len} octets that are no text are not written to a terminal; give --output FILE"
                );
                return Ok(Continuation::Go);
            };
            let end = if shown.is_empty() || shown.ends_with('\n') { "" } else { "\n" };
            return print(&[shown.as_bytes(), end.as_bytes()]);
        }
        let ends_line = payload.last().is_none_or(|octet| *octet == b'\n');
        let wants_line = text(message).is_some() && self.is_one_of_many();
        let end: &[u8] = if wants_line && !ends_line { b"\n" } else { b"" };
        print(&[payload, end])
    }

    fn print_json(&self, json: &Json) -> anyhow::Result<Continuation> {
        let text = match self.is_one_of_many() {
            true => serde_json::to_string(json)?,
            false => serde_json::to_string_pretty(json)?,
        };
        print(&[controls_escaped(&text).as_bytes(), b"\n"])
    }
}

/// Escapes the control characters that JSON allows in strings: DEL, and those of ISO 6429 from U+0080 on, which a terminal
/// may obey.
fn controls_escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns a payload as a terminal shows it: a list of links is a table.
fn shown(message: &Received<'_>) -> Option<String> {
    let is_list = message.options.content_format() == Some(LINK_FORMAT);
    let table = is_list.then(|| discover::table(message).ok()).flatten();
    table.or_else(|| payload::readable(message))
}

/// Writes to standard output. A closed pipe is not an error; it ends an observation.
fn print(parts: &[&[u8]]) -> anyhow::Result<Continuation> {
    let mut out = io::stdout().lock();
    match parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush()) {
        Ok(()) => Ok(Continuation::Go),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Continuation::Stop),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Prints code, options and times, as far as requested.
pub(super) fn print_details(options: &RequestOptions, message: &Received<'_>, report: &TaskReport) {
    if options.include {
        include(message);
    }
    if options.timing {
        timing(report);
    }
}

/// Returns the payload if it is text.
fn text<'m>(message: &'m Received<'_>) -> Option<&'m str> {
    let is_text = message.options.content_format().is_none_or(names::is_text);
    std::str::from_utf8(&message.payload).ok().filter(|_| is_text)
}

fn include(message: &Received<'_>) {
    eprintln!("{}", names::code(message.code));
    for option in message.options.iter() {
        let value = names::value(option.number, option.value);
        match names::option(option.number) {
            Some((name, OptionFormat::Empty)) => eprintln!("{name}"),
            Some((name, _)) => eprintln!("{name}: {value}"),
            None => eprintln!("Option {}: {value}", option.number),
        }
    }
}

fn timing(report: &TaskReport) {
    let since = |time: Duration| format!("{:.1} ms", milliseconds(time));
    let first = report
        .first
        .map_or_else(|| "nothing came".to_owned(), |first| format!("first octets {}", since(first)));
    let rto = report.rto.map(|rto| format!("; RTO {}", since(rto))).unwrap_or_default();
    let blocks = match (report.blocks_up, report.blocks_down) {
        (0, 0) => String::new(),
        (up, 0) => format!("; {up} blocks up"),
        (0, down) => format!("; {down} blocks down"),
        (up, down) => format!("; {up} blocks up, {down} down"),
    };
    if let Some(handshake) = &report.handshake {
        eprintln!(
            "handshake of DTLS: {} octets sent in {} datagrams, {} received in {}: {} octets of UDP payload",
            handshake.sent_octets,
            handshake.sent,
            handshake.received_octets,
            handshake.received,
            handshake.sent_octets + handshake.received_octets,
        );
    }
    eprintln!(
        "host found {}, connected {}, {first}, done {}; {} sent, {} of them again{blocks}; {} octets sent, {} received{rto}",
        since(report.resolved),
        since(report.connected),
        since(report.total),
        if report.transmissions == 1 {
            "1 request".to_owned()
        } else {
            format!("{} requests", report.transmissions)
        },
        report.retransmissions,
        report.sent_octets,
        report.received_octets,
    );
}

fn milliseconds(time: Duration) -> f64 {
    // Rounded to microseconds.
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[derive(Serialize)]
struct Json {
    schema: &'static str,
    uri: String,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    address: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed_addresses: Vec<FailedAddress>,
    #[serde(flatten)]
    response: Option<JsonResponse>,
    times_ms: Times,
    messages: Messages,
    octets: OctetCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    handshake_octets: Option<OctetCounts>,
    blocks: Blocks,
    rto_ms: Option<f64>,
}

#[derive(Serialize)]
struct FailedAddress {
    address: String,
    why: String,
}

#[derive(Serialize)]
struct JsonResponse {
    code: String,
    code_name: &'static str,
    options: Vec<OptionValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    payload: String,
    payload_encoding: &'static str,
    payload_octets: usize,
}

#[derive(Serialize)]
struct OptionValue {
    number: u16,
    name: Option<&'static str>,
    value: serde_json::Value,
    hex: String,
}

#[derive(Serialize)]
struct Times {
    resolved: f64,
    connected: f64,
    first: Option<f64>,
    total: f64,
}

#[derive(Serialize)]
struct Messages {
    transmissions: u64,
    retransmissions: u64,
    sent: u64,
    received: u64,
}

#[derive(Serialize)]
struct OctetCounts {
    sent: u64,
    received: u64,
}

#[derive(Serialize)]
struct Blocks {
    up: u64,
    down: u64,
}

impl Json {
    fn new(asked: &Ask<'_>, report: &TaskReport) -> Self {
        let failed = report.attempts.iter().map(|attempt| FailedAddress {
            address: attempt.address.to_string(),
            why: attempt.why.to_string(),
        });
        Self {
            schema: "thinair.coap/1",
            uri: asked.arguments.uri.to_string(),
            method: names::code_name(asked.method),
            error: None,
            address: report.address.map(|address| address.to_string()),
            failed_addresses: failed.collect(),
            response: None,
            times_ms: Times {
                resolved: milliseconds(report.resolved),
                connected: milliseconds(report.connected),
                first: report.first.map(milliseconds),
                total: milliseconds(report.total),
            },
            messages: Messages {
                transmissions: report.transmissions,
                retransmissions: report.retransmissions,
                sent: report.sent,
                received: report.received,
            },
            octets: OctetCounts { sent: report.sent_octets, received: report.received_octets },
            handshake_octets: report.handshake.map(|handshake| OctetCounts {
                sent: handshake.sent_octets,
                received: handshake.received_octets,
            }),
            blocks: Blocks { up: report.blocks_up, down: report.blocks_down },
            rto_ms: report.rto.map(milliseconds),
        }
    }

    fn with(self, message: &Received<'_>) -> Self {
        let (payload, payload_encoding) = match text(message) {
            Some(text) => (text.to_owned(), "text"),
            None => (base64(&message.payload), "base64"),
        };
        let options = &message.options;
        let has_location = options
            .iter()
            .any(|option| matches!(option.number, number::LOCATION_PATH | number::LOCATION_QUERY));
        let location = || resource(options.all(number::LOCATION_PATH), options.all(number::LOCATION_QUERY));
        let response = JsonResponse {
            code: message.code.to_string(),
            code_name: names::code_name(message.code),
            options: options.iter().map(|option| value(option.number, option.value)).collect(),
            location: has_location.then(location),
            payload,
            payload_encoding,
            payload_octets: message.payload.len(),
        };
        Self { response: Some(response), ..self }
    }
}

fn value(number: u16, octets: &[u8]) -> OptionValue {
    let known = names::option(number);
    let uint = || octets.iter().fold(0_u64, |uint, octet| uint << 8 | u64::from(*octet));
    let value = match known.map_or(OptionFormat::Opaque, |(_, kind)| kind) {
        OptionFormat::Uint | OptionFormat::Format if octets.len() <= 4 => uint().into(),
        OptionFormat::Text => String::from_utf8_lossy(octets).into(),
        OptionFormat::Empty => true.into(),
        OptionFormat::Uint | OptionFormat::Format | OptionFormat::Block | OptionFormat::Opaque => {
            names::value(number, octets).into()
        }
    };
    OptionValue { number, name: known.map(|(name, _)| name), value, hex: names::hexadecimal(octets) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DEL, and CSI as one character.
    #[test]
    fn json_has_no_control_characters() {
        let json = serde_json::to_string("\x1b[2J\x7f\u{9b}2J\u{a0}").unwrap_or_default();
        assert_eq!(controls_escaped(&json), "\"\\u001b[2J\\u007f\\u009b2J\u{a0}\"");
    }

    #[test]
    fn options_have_values_of_their_kind() {
        assert_eq!(value(number::CONTENT_FORMAT, &[50]).value, 50);
        assert_eq!(value(number::BLOCK2, &[0x1E]).value, "1/1/1024");
        assert_eq!(value(number::IF_NONE_MATCH, &[]).value, true);
        assert_eq!(value(4_242, b"a").value, "0x61");
    }
}
