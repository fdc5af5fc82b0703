//! Parsers for option values that several commands share.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use thinair_wire::time::span;

/// True if a path is `-`, standard input or output.
pub fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Parses a time above 0 and at most 366 days: a number and a unit.
///
/// # Errors
/// Text that describes the expected value.
pub fn time(text: &str) -> Result<Duration, String> {
    span(text)
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(366 * 86_400))
        .ok_or_else(|| "expected a number above 0 with us, ms, s, min or h, as in 1.5s".to_owned())
}

/// Parses the address of a server; a port alone means 127.0.0.1.
///
/// # Errors
/// Text that describes the expected value.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "expected a port, or an address and a port, as in 8080 or [::1]:8080".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        assert_eq!(listen("8080"), Ok("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(listen("[::1]:80"), Ok("[::1]:80".parse().unwrap()));
        for text in ["", "localhost:80", "70000", "::1"] {
            assert!(listen(text).is_err(), "{text}");
        }
    }
}
