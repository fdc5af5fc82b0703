//! Text for configurations in logs and in the status, without secrets.

use std::fmt;

use super::{Carrier, Packaging, Security, Suite};

impl fmt::Display for Carrier {
    /// Formats like a URL: kind and address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp { packaging, listen, group, .. } => {
                f.write_str(match packaging {
                    Packaging::Packed => "udp://",
                    Packaging::Ts { .. } => "ule+udp://",
                    Packaging::Gse { .. } => "gse+udp://",
                })?;
                match group {
                    Some((group, _)) if group.is_ipv6() => write!(f, "[{group}]:{}", listen.port()),
                    Some((group, _)) => write!(f, "{group}:{}", listen.port()),
                    None => write!(f, "{listen}"),
                }
            }
            Self::Serial { path, crc, .. } => {
                write!(f, "{}://{}", if *crc { "serial" } else { "serial+raw" }, path.display())
            }
            Self::File { from, to, .. } => {
                let name = |path: &Option<std::path::PathBuf>| {
                    path.as_ref().map_or_else(String::new, |path| path.display().to_string())
                };
                write!(f, "ule+file://{}>{}", name(from), name(to))
            }
        }
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { suite: Suite::ChaCha20Poly1305, negotiates: true, .. } => {
                write!(
                    f,
                    "encrypted with {}, or AES-128-GCM if both processors have AES",
                    Suite::ChaCha20Poly1305
                )
            }
            Self::Key { suite, .. } => write!(f, "encrypted with {suite}"),
            Self::Open => f.write_str("open: not protected, in a standard format"),
            Self::Insecure => f.write_str("insecure: not protected"),
        }
    }
}
