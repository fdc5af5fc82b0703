//! Payloads as text for a terminal: CBOR in diagnostic notation (RFC 8949, section 8), JSON indented, and control
//! characters escaped, whoever sent them.

use std::fmt::Write as _;

use thinair_coap::Received;

use super::names;

/// Largest depth of nested CBOR items or JSON values that are indented.
const DEPTH: usize = 64;

/// Returns a payload as a terminal shows it. `None` if its Content-Format is neither text nor CBOR, or it is malformed.
pub(super) fn readable(message: &Received<'_>) -> Option<String> {
    let format = message.options.content_format();
    let name = format.and_then(names::format).unwrap_or_default();
    if is_cbor(name) {
        return diagnostic(&message.payload).map(|text| names::printable(&text));
    }
    if !format.is_none_or(names::is_text) {
        return None;
    }
    let text = std::str::from_utf8(&message.payload).ok()?;
    let indented = name.contains("json").then(|| indented(text)).flatten();
    // Lines may end with CR LF.
    Some(names::printable(&indented.unwrap_or_else(|| text.replace("\r\n", "\n"))))
}

fn is_cbor(name: &str) -> bool {
    name.contains("cbor") || name == "application/cwt"
}

/// Indents a JSON text by two spaces a level, with its values as they are. `None` if it is no JSON text.
fn indented(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let mut characters = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', 2 * depth.min(DEPTH)));
    };
    while let Some(character) = characters.next() {
        if quoted {
            quoted = character != '"' || escaped;
            escaped = character == '\\' && !escaped;
            out.push(character);
            continue;
        }
        match character {
            '{' | '[' => {
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                out.push(character);
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => {
                quoted = other == '"';
                out.push(other);
            }
        }
    }
    Some(out)
}

/// Returns a sequence of CBOR items in diagnostic notation, one a line. `None` if it is not well-formed.
fn diagnostic(mut octets: &[u8]) -> Option<String> {
    let mut out = String::new();
    while !octets.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        item(&mut octets, &mut out, DEPTH)?;
    }
    Some(out)
}

/// Argument of an item, or an indefinite length. RFC 8949, section 3.
enum Argument {
    Value(u64),
    Indefinite,
}

fn take<'o>(octets: &mut &'o [u8], count: u64) -> Option<&'o [u8]> {
    let (taken, rest) = octets.split_at_checked(usize::try_from(count).ok()?)?;
    *octets = rest;
    Some(taken)
}

fn uint(octets: &mut &[u8], count: u64) -> Option<u64> {
    Some(take(octets, count)?.iter().fold(0, |value, octet| value << 8 | u64::from(*octet)))
}

fn argument(octets: &mut &[u8], information: u8) -> Option<Argument> {
    Some(Argument::Value(match information {
        ..24 => u64::from(information),
        24..28 => uint(octets, 1 << (information - 24))?,
        31 => return Some(Argument::Indefinite),
        _ => return None,
    }))
}

/// True if a Break follows, which is taken.
fn ends(octets: &mut &[u8]) -> bool {
    match octets.split_first() {
        Some((0xFF, rest)) => {
            *octets = rest;
            true
        }
        _ => false,
    }
}

fn item(octets: &mut &[u8], out: &mut String, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let first = *take(octets, 1)?.first()?;
    let (major, information) = (first >> 5, first & 0x1F);
    if major == 7 {
        return simple(octets, out, information);
    }
    match (major, argument(octets, information)?) {
        (0, Argument::Value(value)) => _ = write!(out, "{value}"),
        (1, Argument::Value(value)) => _ = write!(out, "{}", -1 - i128::from(value)),
        (2 | 3, Argument::Value(length)) => string(take(octets, length)?, major == 3, out)?,
        (2 | 3, Argument::Indefinite) => {
            out.push_str("(_ ");
            list(octets, out, None, |octets, out| {
                // Chunks have the type of their string, and a length.
                let is_chunk = octets.first().is_some_and(|chunk| chunk >> 5 == major && chunk & 0x1F != 31);
                is_chunk.then(|| item(octets, out, depth)).flatten()
            })?;
            out.push(')');
        }
        (4, length) => {
            out.push('[');
            let count = count(&length, out);
            list(octets, out, count, |octets, out| item(octets, out, depth))?;
            out.push(']');
        }
        (5, length) => {
            out.push('{');
            let count = count(&length, out);
            list(octets, out, count, |octets, out| {
                item(octets, out, depth)?;
                out.push_str(": ");
                item(octets, out, depth)
            })?;
            out.push('}');
        }
        (6, Argument::Value(tag)) => {
            let _ = write!(out, "{tag}(");
            item(octets, out, depth)?;
            out.push(')');
        }
        _ => return None,
    }
    Some(())
}

fn count(length: &Argument, out: &mut String) -> Option<u64> {
    match length {
        Argument::Value(count) => Some(*count),
        Argument::Indefinite => {
            out.push_str("_ ");
            None
        }
    }
}

/// Writes elements until their count or a Break ends them.
fn list(
    octets: &mut &[u8],
    out: &mut String,
    count: Option<u64>,
    mut element: impl FnMut(&mut &[u8], &mut String) -> Option<()>,
) -> Option<()> {
    let mut number = 0;
    loop {
        match count {
            Some(count) if number == count => return Some(()),
            None if ends(octets) => return Some(()),
            _ => {}
        }
        if number > 0 {
            out.push_str(", ");
        }
        element(octets, out)?;
        number += 1;
    }
}

fn string(octets: &[u8], is_text: bool, out: &mut String) -> Option<()> {
    if is_text {
        out.push_str(&serde_json::to_string(std::str::from_utf8(octets).ok()?).ok()?);
    } else {
        out.push_str("h'");
        octets.iter().for_each(|octet| _ = write!(out, "{octet:02x}"));
        out.push('\'');
    }
    Some(())
}

/// Simple values and floating-point numbers.
fn simple(octets: &mut &[u8], out: &mut String, information: u8) -> Option<()> {
    let number = match information {
        20 => return write!(out, "false").ok(),
        21 => return write!(out, "true").ok(),
        22 => return write!(out, "null").ok(),
        23 => return write!(out, "undefined").ok(),
        ..20 => return write!(out, "simple({information})").ok(),
        24 => {
            let value = uint(octets, 1)?;
            return (value >= 32).then(|| write!(out, "simple({value})").ok()).flatten();
        }
        25 => half(uint(octets, 2)? as u16),
        26 => f64::from(f32::from_bits(uint(octets, 4)? as u32)),
        27 => f64::from_bits(uint(octets, 8)?),
        _ => return None,
    };
    let _ = match number {
        number if number.is_nan() => write!(out, "NaN"),
        number if number.is_infinite() => write!(out, "{}Infinity", if number < 0.0 { "-" } else { "" }),
        number => write!(out, "{number:?}"),
    };
    Some(())
}

/// Converts a number of IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f64::from(bits & 0x3FF));
    let value = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1_024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8949, appendix A.
    #[test]
    fn cbor_is_shown_as_in_the_appendix() {
        let cases: [(&[u8], &str); 26] = [
            (b"\x00", "0"),
            (b"\x18\x64", "100"),
            (b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
            (b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "-18446744073709551616"),
            (b"\x38\x63", "-100"),
            (b"\xf9\x3c\x00", "1.0"),
            (b"\xf9\x7b\xff", "65504.0"),
            (b"\xf9\x00\x01", "5.960464477539063e-8"),
            (b"\xf9\xc4\x00", "-4.0"),
            (b"\xfa\x47\xc3\x50\x00", "100000.0"),
            (b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", "1.1"),
            (b"\xf9\x7e\x00", "NaN"),
            (b"\xf9\xfc\x00", "-Infinity"),
            (b"\xf5", "true"),
            (b"\xf6", "null"),
            (b"\xf8\xff", "simple(255)"),
            (b"\xc1\x1a\x51\x4b\x67\xb0", "1(1363896240)"),
            (b"\x44\x01\x02\x03\x04", "h'01020304'"),
            (b"\x62\x22\x5c", "\"\\\"\\\\\""),
            (b"\x83\x01\x82\x02\x03\x82\x04\x05", "[1, [2, 3], [4, 5]]"),
            (b"\xa2\x01\x02\x03\x04", "{1: 2, 3: 4}"),
            (b"\x5f\x42\x01\x02\x43\x03\x04\x05\xff", "(_ h'0102', h'030405')"),
            (b"\x9f\xff", "[_ ]"),
            (b"\x83\x01\x82\x02\x03\x9f\x04\x05\xff", "[1, [2, 3], [_ 4, 5]]"),
            (b"\xbf\x61\x61\x01\x61\x62\x9f\x02\x03\xff\xff", "{_ \"a\": 1, \"b\": [_ 2, 3]}"),
            (b"\x01\x02", "1\n2"),
        ];
        for (octets, text) in cases {
            assert_eq!(diagnostic(octets).as_deref(), Some(text), "{octets:02x?}");
        }
        let malformed: [&[u8]; 7] =
            [b"\x18", b"\x62a", b"\x82\x01", b"\xff", b"\x5f\x61a\xff", b"\xf8\x01", &[0x81; 100]];
        for octets in malformed {
            assert_eq!(diagnostic(octets), None, "{octets:02x?}");
        }
    }

    #[test]
    fn json_is_indented_with_its_values_as_they_are() {
        let text = r#"[{"n":"a\"]","v":18446744073709551616.10},{ },[ ],"x"]"#;
        let shown = "[\n  {\n    \"n\": \"a\\\"]\",\n    \"v\": 18446744073709551616.10\n  },\n  {},\n  [],\n  \"x\"\n]";
        assert_eq!(indented(text).as_deref(), Some(shown));
        assert_eq!(indented("{\"a\""), None);
    }

    /// Base fields hold from their record on (RFC 8428, section 4.1), so none is resolved, left out or moved.
    #[test]
    fn each_record_of_a_senml_pack_is_shown_with_its_base_name() {
        let shown = |format, payload: &'static [u8]| {
            let response = thinair_coap::Response::content(payload).format(format);
            let options = response.options.clone();
            let options = options.as_options();
            readable(&Received { code: response.code, options, payload: response.payload })
                .unwrap_or_default()
        };
        let json = br#"[{"bn":"urn:dev:mac:01:","n":"t","v":20.5},{"bn":"urn:dev:mac:02:","n":"t","v":3.5}]"#;
        assert_eq!(
            shown(110, json),
            "[\n  {\n    \"bn\": \"urn:dev:mac:01:\",\n    \"n\": \"t\",\n    \"v\": 20.5\n  },\n  {\n    \
             \"bn\": \"urn:dev:mac:02:\",\n    \"n\": \"t\",\n    \"v\": 3.5\n  }\n]"
        );
        // Labels of section 6: -2 is the base name, 0 the name, 2 the value.
        let cbor = b"\x82\xa3\x21\x62a:\x00\x61t\x02\xf9\x4d\x20\xa3\x21\x62b:\x00\x61t\x02\xf9\x43\x00";
        let records = "[{-2: \"a:\", 0: \"t\", 2: 20.5}, {-2: \"b:\", 0: \"t\", 2: 3.5}]";
        assert_eq!(shown(112, cbor), records);
    }

    /// `ESC [ 2 J` clears a terminal, and so does the one-character CSI.
    #[test]
    fn escape_sequences_of_a_peer_are_shown_and_not_sent() {
        for (format, payload) in [
            (None, &b"a\x1b[2Jb\xc2\x9b2J\x7f\r\n"[..]),
            (Some(0), b"\x1b]0;title\x07"),
            (Some(50), b"\"\xc2\x9b2J\""),
            (Some(50), b"no JSON \x1b[2J"),
            (Some(60), b"\x65\x1b[2J\x7f"),
        ] {
            let response = thinair_coap::Response::content(payload);
            let response = match format {
                Some(format) => response.format(format),
                None => response,
            };
            let options = response.options.clone();
            let message =
                Received { code: response.code, options: options.as_options(), payload: response.payload };
            let shown = readable(&message).unwrap_or_default();
            assert!(!shown.is_empty());
            assert!(!shown.chars().any(|character| character.is_control() && character != '\n'), "{shown:?}");
        }
    }
}
