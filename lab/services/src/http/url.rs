//! `http://` and `https://` URLs. RFC 9110, section 4.2.

use std::fmt;
use std::str::FromStr;

use thinair_coap::uri::{self, Host};
use thinair_http::Target;

/// Scheme of a URL, which determines its default port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UrlScheme {
    Http,
    Https,
}

impl UrlScheme {
    const fn begin(self) -> &'static str {
        match self {
            Self::Http => "http://",
            Self::Https => "https://",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host.
    pub host: Host,
    /// TCP port; UDP port in HTTP/3.
    pub port: u16,
    scheme: UrlScheme,
    /// Host and port, as written.
    authority: String,
    /// Path and query, from the slash on.
    path: String,
}

/// Error in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("expected http://HOST[:PORT]/PATH")]
    Scheme,
    /// Another scheme, or none, where TLS is required.
    #[error("expected https://HOST[:PORT]/PATH")]
    NotSecure,
    /// The scheme requires TLS, which is not supported.
    #[error("https needs TLS, which only http3 supports here: use http")]
    NeedsTls,
    /// Invalid host.
    #[error("invalid host: expected a name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// Invalid port.
    #[error("a port is a number from 1 to 65535")]
    Port,
    /// Spaces, control characters or letters beyond ASCII.
    #[error("invalid character: percent-encode it, as in %20")]
    Character,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if behind(text, UrlScheme::Https).is_some() {
            return Err(UrlError::NeedsTls);
        }
        Self::behind(behind(text, UrlScheme::Http).ok_or(UrlError::Scheme)?, UrlScheme::Http)
    }
}

/// Text after the scheme, if the URL has it.
fn behind(text: &str, scheme: UrlScheme) -> Option<&str> {
    let (start, rest) = text.split_at_checked(scheme.begin().len())?;
    start.eq_ignore_ascii_case(scheme.begin()).then_some(rest)
}

impl Url {
    /// Parses an `https://` URL.
    ///
    /// # Errors
    /// The text is not one.
    pub fn secure(text: &str) -> Result<Self, UrlError> {
        Self::behind(behind(text, UrlScheme::Https).ok_or(UrlError::NotSecure)?, UrlScheme::Https)
    }

    fn behind(rest: &str, scheme: UrlScheme) -> Result<Self, UrlError> {
        // The fragment is for the client's use only.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => {
                let is_number = port.bytes().all(|octet| octet.is_ascii_digit());
                let number = port.parse().ok().filter(|port| is_number && *port != 0);
                (name, number.ok_or(UrlError::Port)?)
            }
            _ => (authority, scheme.port()),
        };
        // Hosts have one syntax in all schemes. RFC 3986, section 3.2.2.
        let host = format!("coap://{name}").parse::<uri::Uri>().map_err(|_| UrlError::Host)?.host;
        if !path.bytes().all(|octet| octet.is_ascii_graphic()) {
            return Err(UrlError::Character);
        }
        Ok(Self { host, port, scheme, authority: authority.to_owned(), path })
    }

    /// Target of the request, without a zone, which has no meaning to the server. RFC 6874, section 4.
    pub fn target(&self) -> Target<'_> {
        Target { host: &self.authority, path: &self.path }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.scheme.begin(), self.authority, self.path)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_a_port_and_a_path() {
        for (text, host, port, path) in [
            ("http://10.9.0.2:8080/10", "10.9.0.2", 8080, "/10"),
            ("HTTP://Example.net", "example.net", 80, "/"),
            ("http://example.net?a=b", "example.net", 80, "/?a=b"),
            ("http://[fd00::1]/a/b?c#d", "[fd00::1]", 80, "/a/b?c"),
            ("http://[::1]:81/", "[::1]", 81, "/"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!((&*url.host.to_string(), url.port, url.target().path), (host, port, path), "{text}");
        }
        let url: Url = "http://10.9.0.2:8080/10".parse().unwrap();
        assert_eq!(url.target().host, "10.9.0.2:8080");
    }

    #[test]
    fn what_tls_protects_has_a_scheme_and_a_port_of_its_own() {
        let url = Url::secure("HTTPS://example.net/a").unwrap();
        assert_eq!((url.port, url.target().path, &*url.to_string()), (443, "/a", "https://example.net/a"));
        assert_eq!(Url::secure("https://[::1]:8443").unwrap().port, 8443);
        assert_eq!(Url::secure("http://h/"), Err(UrlError::NotSecure));
        assert_eq!(Url::secure("https:/"), Err(UrlError::NotSecure));
    }

    #[test]
    fn what_cannot_be_fetched_is_told() {
        for (text, why) in [
            ("", UrlError::Scheme),
            ("10.9.0.2/10", UrlError::Scheme),
            ("coap://h/", UrlError::Scheme),
            ("https://h/", UrlError::NeedsTls),
            ("http:///10", UrlError::Host),
            ("http://a b/", UrlError::Host),
            ("http://u@h/", UrlError::Host),
            ("http://[::1/", UrlError::Host),
            ("http://h:0/", UrlError::Port),
            ("http://h:+80/", UrlError::Port),
            ("http://h:65536/", UrlError::Port),
            ("http://h/a b", UrlError::Character),
            ("http://h/\r\nA: b", UrlError::Character),
        ] {
            assert_eq!(text.parse::<Url>(), Err(why), "{text}");
        }
    }
}
