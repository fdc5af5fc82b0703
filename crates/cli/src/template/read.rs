//! Parser of template files. Unknown fields, and fields of the other IP version, are errors, so that no part
//! of a file is ignored.

use std::net::IpAddr;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use thinair_rohc::profile::coap::outline::{Class, append};
use thinair_rohc::profile::coap::{Base, BaseEnd, BasePath, BaseTemplate, IpIdMode, TokenMode};
use thinair_wire::header::coap::Code;
use toml::Table;

use super::names::{self, CHECKSUMS, IP_IDS, MESSAGE_IDS, OPTIONS, TYPES};
use crate::options::MOST_BASES;

/// Version of the format.
pub(super) const VERSION: i64 = 1;

/// Room for an outline, in octets: more than any template needs.
const ROOM: usize = 1_024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: i64,
    #[serde(default)]
    base: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseEntry {
    source: IpAddr,
    source_port: u16,
    destination: IpAddr,
    destination_port: u16,
    tos: Option<u8>,
    ttl: Option<u8>,
    df: Option<bool>,
    ip_id: Option<String>,
    traffic_class: Option<u8>,
    hop_limit: Option<u8>,
    flow_label: Option<u32>,
    checksum: String,
    #[serde(default)]
    template: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateEntry {
    #[serde(rename = "type")]
    message_type: String,
    code: String,
    message_id: String,
    token: TokenEntry,
    #[serde(default)]
    options: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case", deny_unknown_fields)]
enum TokenEntry {
    Static {
        value: String,
    },
    CountedUint {},
    Counted {
        length: u8,
    },
    OfRequest {
        #[serde(default)]
        length: u8,
    },
    Irregular {
        length: u8,
    },
}

#[derive(Deserialize)]
#[serde(tag = "class", rename_all = "kebab-case", deny_unknown_fields)]
enum ClassEntry {
    Static { value: Option<String>, hex: Option<String>, uint: Option<u32> },
    Counted {},
    Lsb {},
    Step { step: u8 },
    Block { more: bool, szx: u8 },
    BlockOfRequest { more: bool, szx: u8 },
    PartialIv { flags: u8, value: Option<String>, hex: Option<String> },
    Irregular { length: u8 },
    Variable {},
    Prefix { length: u8, value: Option<String>, hex: Option<String> },
}

/// Parses the bases of a file.
pub(super) fn bases(text: &str) -> anyhow::Result<Vec<Base>> {
    let file: File = toml::from_str(text).map_err(one_error)?;
    let version = file.version;
    ensure!(version == VERSION, "unsupported version {version}; this program reads version {VERSION}");
    let most = MOST_BASES;
    ensure!(file.base.len() <= most, "too many bases: {}; the maximum is {most}", file.base.len());
    let numbered = file.base.into_iter().zip(1..);
    numbered.map(|(table, number)| base(table).with_context(|| format!("base {number}"))).collect()
}

/// Formats an error of the TOML parser with indented lines.
fn one_error(error: toml::de::Error) -> anyhow::Error {
    anyhow::anyhow!("{}", error.to_string().trim_end().replace('\n', "\n  "))
}

fn base(table: Table) -> anyhow::Result<Base> {
    let entry: BaseEntry = table.try_into().map_err(one_error)?;
    let mut base = Base::new(&path(&entry)?);
    ensure!(!entry.template.is_empty(), "no template; add a [[base.template]], or remove the base");
    for (table, number) in entry.template.into_iter().zip(1..) {
        template(table, &mut base).with_context(|| format!("template {number}"))?;
    }
    Ok(base)
}

fn path(entry: &BaseEntry) -> anyhow::Result<BasePath> {
    let of_4 = [entry.tos.is_some(), entry.ttl.is_some(), entry.df.is_some(), entry.ip_id.is_some()];
    let of_6 = [entry.traffic_class.is_some(), entry.hop_limit.is_some(), entry.flow_label.is_some()];
    let path = BasePath {
        source: end(entry.source, entry.source_port),
        destination: end(entry.destination, entry.destination_port),
        checksum: names::value(CHECKSUMS, "checksum", &entry.checksum)?,
        ..BasePath::default()
    };
    match (entry.source, entry.destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => {
            ensure!(
                !of_6.contains(&true),
                "a field of IPv6 in a base with IPv4 addresses; IPv4 has `tos`, `ttl`, `df` and `ip_id`"
            );
            let (Some(tos), Some(ttl), Some(df), Some(ip_id)) =
                (entry.tos, entry.ttl, entry.df, &entry.ip_id)
            else {
                bail!("a field is missing; a base with IPv4 addresses needs `tos`, `ttl`, `df` and `ip_id`");
            };
            let ip_id = names::value(IP_IDS, "ip_id", ip_id)?;
            Ok(BasePath { v6: false, tos, ttl, df, ip_id, ..path })
        }
        (IpAddr::V6(_), IpAddr::V6(_)) => {
            ensure!(
                !of_4.contains(&true),
                "a field of IPv4 in a base with IPv6 addresses; IPv6 has `traffic_class`, `hop_limit` and `flow_label`"
            );
            let (Some(tos), Some(ttl), Some(flow_label)) =
                (entry.traffic_class, entry.hop_limit, entry.flow_label)
            else {
                bail!(
                    "a field is missing; a base with IPv6 addresses needs `traffic_class`, `hop_limit` and `flow_label`"
                );
            };
            ensure!(flow_label < 1 << 20, "`flow_label` {flow_label} exceeds 1048575 (20 bits)");
            Ok(BasePath { v6: true, tos, ttl, flow_label, ip_id: IpIdMode::Constant, ..path })
        }
        _ => bail!("`source` and `destination` must both be IPv4 or both IPv6"),
    }
}

fn end(address: IpAddr, port: u16) -> BaseEnd {
    let mut octets = [0; 16];
    match address {
        IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => octets = address.octets(),
    }
    BaseEnd { address: octets, port }
}

fn template(table: Table, base: &mut Base) -> anyhow::Result<()> {
    let entry: TemplateEntry = table.try_into().map_err(one_error)?;
    let (token_mode, token) = token(&entry.token)?;
    let (mut room, mut len, mut last) = ([0; ROOM], 0, 0);
    for (table, number) in entry.options.into_iter().zip(1..) {
        option(table, &mut room, &mut len, &mut last).with_context(|| format!("option {number}"))?;
    }
    let template = BaseTemplate {
        message_type: names::value(TYPES, "type", &entry.message_type)?,
        code: code(&entry.code)?,
        message_id: names::value(MESSAGE_IDS, "message_id", &entry.message_id)?,
        token_mode,
        token: &token,
        outline: room.get(..len).unwrap_or_default(),
    };
    ensure!(
        base.push(&template),
        "there is no room for it: a base holds 6 templates, 144 octets of options, and templates with 4 options \
         that change; take some out, or make a second base"
    );
    Ok(())
}

/// Parses a code such as `2.05`.
fn code(text: &str) -> anyhow::Result<Code> {
    let parts = text.split_once('.').filter(|(class, detail)| class.len() == 1 && detail.len() == 2);
    match parts.map(|(class, detail)| (class.parse(), detail.parse())) {
        Some((Ok(class @ 0..8), Ok(detail @ 0..32))) => Ok(Code::new(class, detail)),
        _ => bail!("invalid `code` \"{text}\"; expected a code such as \"0.01\" or \"2.05\""),
    }
}

fn token(entry: &TokenEntry) -> anyhow::Result<(TokenMode, Vec<u8>)> {
    let of_length = |mode, length: u8| (mode, vec![0; usize::from(length)]);
    let (mode, token) = match entry {
        TokenEntry::Static { value } => (TokenMode::Static, octets(value).context("`token`")?),
        TokenEntry::CountedUint {} => (TokenMode::CountedUint, Vec::new()),
        TokenEntry::Counted { length } => of_length(TokenMode::Counted, *length),
        TokenEntry::OfRequest { length } => of_length(TokenMode::OfRequest, *length),
        TokenEntry::Irregular { length } => of_length(TokenMode::Irregular, *length),
    };
    ensure!(token.len() <= 8, "`token` has {} octets; the maximum is 8", token.len());
    Ok((mode, token))
}

/// Appends an option to the outline in `room`; `last` is the number of the previous option.
fn option(mut table: Table, room: &mut [u8], len: &mut usize, last: &mut u16) -> anyhow::Result<()> {
    let number = match table.remove("option") {
        Some(toml::Value::String(name)) => names::value(OPTIONS, "option", &name)
            .context("unknown option name; give the number of the option")?,
        Some(toml::Value::Integer(number)) => {
            u16::try_from(number).with_context(|| format!("`option` {number} exceeds 65535"))?
        }
        Some(_) | None => bail!("`option` is missing; expected a number or a name such as \"Uri-Path\""),
    };
    let delta = number.checked_sub(*last).context("options must be in ascending order; move this one up")?;
    let entry: ClassEntry = table.try_into().map_err(one_error)?;
    let value: Vec<u8>;
    let class = match entry {
        ClassEntry::Static { value: None, hex: None, uint: Some(uint) } => {
            value = shortest(uint);
            Class::Static(&value)
        }
        ClassEntry::Static { uint: Some(_), .. } => {
            bail!("expected exactly one of `value`, `hex` and `uint`")
        }
        ClassEntry::Static { value: text, hex, uint: None } => {
            value = one_of(text, hex)?;
            Class::Static(&value)
        }
        ClassEntry::Counted {} => Class::Counted,
        ClassEntry::Lsb {} => Class::Lsb,
        ClassEntry::Step { step } => Class::Step(step),
        ClassEntry::Block { more, szx } => Class::Block(low(more, szx)?),
        ClassEntry::BlockOfRequest { more, szx } => Class::BlockOfRequest(low(more, szx)?),
        ClassEntry::PartialIv { flags, value: text, hex } => {
            ensure!(
                flags & 0b111 == 0,
                "invalid `flags` {flags}: the three low bits (length of the Partial IV) must be 0"
            );
            value = one_of(text, hex)?;
            Class::PartialIv(flags, &value)
        }
        ClassEntry::Irregular { length } => Class::Irregular(length),
        ClassEntry::Variable {} => Class::Variable,
        ClassEntry::Prefix { length, value: text, hex } => {
            value = one_of(text, hex)?;
            ensure!(
                usize::from(length) > value.len(),
                "`length` is that of the whole value, and must exceed that of the prefix"
            );
            Class::Prefix(length, &value)
        }
    };
    ensure!(
        append(room, len, u32::from(delta), &class),
        "the options are too long; the maximum is 144 octets per base"
    );
    *last = number;
    Ok(())
}

/// Packs M and SZX of a Block option (RFC 7959, section 2.2).
fn low(more: bool, szx: u8) -> anyhow::Result<u8> {
    ensure!(szx < 8, "invalid `szx` {szx}; expected 0 (16 octets) to 6 (1024 octets), or 7");
    Ok(u8::from(more) << 3 | szx)
}

fn shortest(uint: u32) -> Vec<u8> {
    uint.to_be_bytes().into_iter().skip_while(|octet| *octet == 0).collect()
}

fn one_of(value: Option<String>, hex: Option<String>) -> anyhow::Result<Vec<u8>> {
    match (value, hex) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(hex)) => octets(&hex),
        _ => bail!("expected exactly one of `value` (text) and `hex`"),
    }
}

fn octets(hex: &str) -> anyhow::Result<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => bail!("invalid octets \"{hex}\"; expected two hexadecimal digits for each"),
    }
}
