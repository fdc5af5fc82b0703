//! `http://` URLs. RFC 9110, section 4.2.1.

use std::fmt;
use std::str::FromStr;

use thinair_coap::uri::{self, Host};
use thinair_http::Target;

/// Port of `http`.
const PORT: u16 = 80;

/// What a URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Who has it.
    pub host: Host,
    /// TCP port.
    pub port: u16,
    /// Host and port as they stand in it.
    authority: String,
    /// Path and query, from the slash on.
    path: String,
}

/// Why a text is not a URL of something that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("expected http://HOST[:PORT]/PATH")]
    Scheme,
    /// TLS is not spoken.
    #[error("https needs TLS, which is not spoken here; there is http")]
    NeedsTls,
    /// Not a host.
    #[error(
        "there is no host in it that makes sense: expected a name, an IPv4 address, or an IPv6 address in brackets"
    )]
    Host,
    /// Not a port.
    #[error("a port is a number from 1 to 65535")]
    Port,
    /// Spaces, control characters or letters beyond ASCII.
    #[error("a character that has to be percent-encoded, as in %20")]
    Character,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let scheme_is =
            |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        if scheme_is("https://") {
            return Err(UrlError::NeedsTls);
        }
        let rest = text.get("http://".len()..).filter(|_| scheme_is("http://")).ok_or(UrlError::Scheme)?;
        // What is behind # is for whoever looks at the object.
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
            _ => (authority, PORT),
        };
        // Hosts are the same in all schemes. RFC 3986, section 3.2.2.
        let host = format!("coap://{name}").parse::<uri::Uri>().map_err(|_| UrlError::Host)?.host;
        if !path.bytes().all(|octet| octet.is_ascii_graphic()) {
            return Err(UrlError::Character);
        }
        Ok(Self { host, port, authority: authority.to_owned(), path })
    }
}

impl Url {
    /// As it is asked for. A zone is nothing that the server knows. RFC 6874, section 4.
    pub fn target(&self) -> Target<'_> {
        Target { host: &self.authority, path: &self.path }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
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
