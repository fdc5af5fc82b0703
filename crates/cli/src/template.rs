//! Template files: the provisioned bases of profile 0x0081 as people read and edit them. TOML; section 10 of
//! `docs/coap-profile.md` tells what a base is.
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
//! [[base.template]]         # the one of a flow's first packet first
//! type = "CON"
//! code = "0.01"
//! message_id = "counted"    # or "of-request", "irregular"
//! token = { mode = "irregular", length = 4 }
//! options = [
//!     { option = "Uri-Path", class = "static", value = "time" },
//! ]
//! ```
//!
//! [`read()`] makes bases of it, [`text`] writes it. Both ends of a channel need the same bases in the same order:
//! [`name`] is what they compare.

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

/// Octets of the hash that make the name of a list.
const NAME_OCTETS: usize = 8;

/// The bases of a template file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Base>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    read::bases(&text).with_context(|| format!("{name} is no template file"))
}

/// What both ends compare: the first octets of the SHA-256 of a list of bases, in hexadecimal. The hash is over, for
/// each base, IP version, addresses, ports, TOS, TTL, DF, Flow Label, the numbers of its modes and of its templates;
/// and for each of these T, code, the numbers of its modes, length of the token and the token if it is static,
/// length of the outline and the outline. Numbers are one octet, ports two and the Flow Label four, big-endian.
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
