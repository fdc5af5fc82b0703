//! Template files: the provisioned bases of profile 0x0181 in TOML, for people to read and edit. Section 10 of
//! `docs/coap-profile.md` defines bases.
//!
//! ```toml
//! version = 1
//!
//! [[base]]
//! source = "192.0.2.2"
//! source_port = 50000
//! destination = "192.0.2.1"
//! destination_port = 5683
//! tos = 0                   # IPv6: traffic_class
//! ttl = 64                  # IPv6: hop_limit
//! df = true                 # IPv6: flow_label, a number
//! checksum = "carried"      # or "elided", "zero"
//! ip_id = "counted"         # or "constant", "lsb", "irregular"; not in IPv6
//!
//! [[base.template]]         # that of a flow's first packet comes first
//! type = "CON"
//! code = "0.01"
//! message_id = "counted"    # or "of-request", "irregular"
//! token = { mode = "irregular", length = 4 }
//! options = [
//!     { option = "Uri-Path", class = "static", value = "time" },
//! ]
//! ```
//!
//! [`read()`] parses a file, [`text`] writes one. Both ends of a channel need equal bases in equal order: they
//! compare the [`name`] of the list.

mod names;
mod read;
#[cfg(feature = "rohc")]
mod write;

use std::path::Path;

use anyhow::Context as _;
use sha2::{Digest, Sha256};
use thinair_rohc::profile::coap::{Base, TokenMode};

#[cfg(feature = "rohc")]
pub(crate) use write::text;

/// Length of the name of a list, in octets of the hash.
const NAME_OCTETS: usize = 8;

/// Reads the bases of a template file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Base>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    read::bases(&text).with_context(|| format!("{name} is not a valid template file"))
}

/// Name of a list of bases, which both ends compare: the first octets of its SHA-256, in hexadecimal. The
/// hash is over, for each base, IP version, addresses, ports, TOS, TTL, DF, Flow Label, the numbers of its
/// modes and of its templates; and for each of these T, code, the numbers of its modes, length of the token
/// and the token if it is static, length of the outline and the outline. Numbers take one octet, ports two
/// and the Flow Label four, big-endian.
pub(crate) fn name(bases: &[Base]) -> String {
    let mut hash = Sha256::new();
    for base in bases {
        let path = base.base_path();
        let (version, len) = if path.v6 { (6, 16) } else { (4, 4) };
        hash.update([version]);
        for end in [path.source, path.destination] {
            hash.update(&end.address[..len]);
            hash.update(end.port.to_be_bytes());
        }
        hash.update([path.tos, path.ttl, u8::from(path.df)]);
        hash.update(path.flow_label.to_be_bytes());
        hash.update([path.checksum as u8, path.ip_id as u8, base.templates().count() as u8]);
        for template in base.templates() {
            let (message_id, token) = (template.message_id as u8, template.token_mode as u8);
            hash.update([template.message_type as u8, template.code.0, message_id, token]);
            hash.update([template.token.len() as u8]);
            if template.token_mode == TokenMode::Static {
                hash.update(template.token);
            }
            hash.update([template.outline.len() as u8]);
            hash.update(template.outline);
        }
    }
    hex(hash.finalize().get(..NAME_OCTETS).unwrap_or_default())
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(all(test, feature = "rohc"))]
mod tests;
