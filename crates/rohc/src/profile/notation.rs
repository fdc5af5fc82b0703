//! The formal notation of RFC 4997, as far as tests hold formats against it, or describe those of our own profiles: names, order and widths
//! of fields.

use std::format;
use std::string::{String, ToString};
use std::sync::Mutex;
use std::vec::Vec;

use thinair_wire::coder::{Describer, FormatField, Step};

/// True if fields are those of the notation. A field there may be several here, which follow each other.
pub(crate) fn agree(notation: &[&str], ours: &[FormatField]) -> bool {
    let Some((token, rest)) = notation.split_first() else { return ours.is_empty() };
    let sums = |n: usize| ours[..n].iter().map(|field| field.bits).sum::<u32>();
    let Some((name, widths)) = token.split_once(':') else {
        // A pattern: a discriminator, or bits that are read one by one.
        let is_pattern = |n: usize| {
            let whole = &ours[..n];
            let bits = whole.iter().map(|f| {
                (0..f.bits).rev().map(|bit| f.pattern.checked_shr(bit).unwrap_or(0) & 1).collect::<Vec<_>>()
            });
            let bits: String = bits.flatten().map(|bit| if bit == 1 { '1' } else { '0' }).collect();
            sums(n) == token.len() as u32 && (whole.iter().any(|f| !f.name.is_empty()) || bits == *token)
        };
        return (1..=ours.len()).any(|n| is_pattern(n) && agree(rest, &ours[n..]));
    };
    let widths = widths.split('~').next().unwrap_or_default();
    let is_open = widths.chars().any(|c| !c.is_ascii_digit() && c != ',');
    let is_width = |n: usize| widths.split(',').any(|width| width.parse() == Ok(sums(n)));
    let is_name = |name: &str, own: &str| name == own || name.starts_with(own) && own.len() > 4;
    let is_named = |n: usize| {
        n == 0
            || ours[..n].iter().any(|field| name.split('+').any(|name| is_name(name, field.name)))
            || ours[..n].iter().all(|field| ["discriminator", "reserved"].contains(&field.name))
    };
    (0..=ours.len()).any(|n| (is_open || is_width(n) && is_named(n)) && agree(rest, &ours[n..]))
}

/// The COMPRESSED blocks of an RFC from a heading on, with their fields.
pub(crate) fn blocks_of(text: &str, start: &str) -> Vec<(String, String)> {
    let start = text.rfind(start).unwrap();
    let is_page = |line: &&str| {
        !line.starts_with("Pelletier") && !line.starts_with("RFC 6846  ") && !line.starts_with("RFC 5225  ")
    };
    let lines: Vec<_> = text[start..]
        .lines()
        .filter(is_page)
        .map(|line| line.split("//").next().unwrap_or_default().trim_end().trim_start_matches('\x0c'))
        .collect();
    let mut method = String::new();
    let (mut found, mut open) = (Vec::new(), None::<(String, String)>);
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with('{') {
            // `name` or `name(arguments)`, over up to four lines.
            let mut before: Vec<_> =
                lines[..i].iter().rev().filter(|line| !line.is_empty()).take(4).copied().collect();
            before.reverse();
            let before = before.join(" ");
            let head = before.trim_end();
            let head = if head.ends_with(')') { &head[..head.rfind('(').unwrap()] } else { head };
            method = head.rsplit(' ').next().unwrap_or_default().to_string();
        } else if let Some(rest) = line.trim_start().strip_prefix("COMPRESSED") {
            let (name, rest) = rest.split_once('{').unwrap();
            open = Some((std::format!("{method}.{}", name.trim()), rest.to_string()));
        } else if line.trim_start().starts_with('}') {
            found.extend(open.take());
        } else if let Some((_, body)) = &mut open {
            body.push(' ');
            body.push_str(line.trim());
        }
    }
    found.into_iter().map(|(name, body)| (name, fields_of(&body))).collect()
}

/// The fields of a block: a pattern or `name:width`, `~p` behind that of an `lsb(k, p)`, names that share a width joined by `+`.
fn fields_of(body: &str) -> String {
    // One field of the RFC has no semicolon.
    let body = body.replace("] ttl_flag", "]; ttl_flag");
    let fields =
        body.split(';').map(str::trim).filter(|field| !field.is_empty() && !field.starts_with("ENFORCE"));
    let fields = fields.map(|field| {
        let (field, width) = match field.rsplit_once('[') {
            Some((field, width)) => (field, width.trim_end_matches(']').replace(' ', "")),
            None => (field, "?".to_string()),
        };
        let (name, encoding) = field.split_once("=:=").unwrap_or((field, ""));
        let (name, encoding) = (name.trim().replace(" : ", "+"), encoding.trim());
        if let Some(pattern) = encoding.strip_prefix('\'') {
            return pattern.trim_end_matches('\'').to_string();
        }
        let offset = match encoding.strip_suffix(')').and_then(|encoding| encoding.rsplit_once(", ")) {
            Some((head, p)) if head.starts_with("lsb(") || head.starts_with("ip_id_lsb(") => {
                std::format!("~{}", p.replace(' ', ""))
            }
            _ => String::new(),
        };
        std::format!("{}:{width}{offset}", name.trim())
    });
    fields.collect::<Vec<_>>().join(" ")
}

/// Lock: only one test at a time writes a document.
static WRITING: Mutex<()> = Mutex::new(());

/// Asserts that the document at `path` has a block with this name and these lines; with `THINAIR_BLESS=1`, writes it.
pub(crate) fn hold(path: &str, name: &str, block: &str) {
    let guard = WRITING.lock();
    let document = std::fs::read_to_string(path).unwrap_or_default();
    let start = format!("```text {name}\n");
    let found = document.split_once(&start).and_then(|(before, behind)| {
        let (old, after) = behind.split_once("```\n")?;
        Some((before, old, after))
    });
    let Some((before, old, after)) = found else { panic!("the document has no block `{name}`") };
    if std::env::var_os("THINAIR_BLESS").is_some() {
        let written = std::fs::write(path, format!("{before}{start}{block}```\n{after}"));
        assert!(written.is_ok(), "the document cannot be written");
    } else {
        assert_eq!(old, block, "block `{name}`; THINAIR_BLESS=1 writes it anew");
    }
    drop(guard);
}

/// Returns the description of a format in the notation of RFC 4997, with its flags given as bits.
pub(crate) fn described(title: &str, choices: u32, run: impl FnOnce(&mut Describer<128>) -> Step) -> String {
    let mut describer = Describer::new(choices);
    assert_eq!(run(&mut describer), Ok(()), "{title}");
    let mut text = format!("{title}\n{{\n");
    let mut fields = describer.fields().iter().peekable();
    while let Some(field) = fields.next() {
        let mut bits = field.bits;
        // Addresses, tokens and connection IDs are described octet by octet.
        while bits % 8 == 0 && fields.peek().is_some_and(|next| next.name == field.name && next.bits == 8) {
            bits += fields.next().map_or(0, |next| next.bits);
        }
        let (name, encoding) = match field.name {
            "" => ("discriminator", format!("'{:0width$b}'", field.pattern, width = bits as usize)),
            "reserved" => ("reserved", format!("'{:0width$b}'", 0, width = bits as usize)),
            "MSN" => ("MSN", format!("lsb({bits})")),
            "CRC" | "control CRC" | "header CRC" => (field.name, format!("crc{bits}")),
            "CHECK" => ("CHECK", "check16".to_string()),
            name if bits == 0 => (name, "octets".to_string()),
            name => (name, format!("irregular({bits})")),
        };
        let width = if bits == 0 { "length".to_string() } else { bits.to_string() };
        text += &format!("  {name:<25} =:= {encoding:<14} [ {width:>6} ];\n");
    }
    text + "}\n"
}
