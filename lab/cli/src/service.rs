//! Protocols that carry an object, by name.

use clap::ValueEnum;

/// Protocol that carries an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceName {
    /// CoAP over UDP (RFC 7252)
    Coap,
    /// CoAP over TCP (RFC 8323)
    CoapTcp,
    /// HTTP/1.1 with short heads
    Http,
    /// HTTP/1.0 without header fields, with TCP Fast Open
    IotHttp,
    /// SPDY/3.1 with short header blocks, with TCP Fast Open
    IotSpdy,
    /// HTTP/3 over QUIC (RFC 9114), if the feature `http3` was built
    Http3,
}

impl ServiceName {
    /// Name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::CoapTcp => "coap-tcp",
            Self::Http => "http",
            Self::IotHttp => "iot-http",
            Self::IotSpdy => "iot-spdy",
            Self::Http3 => "http3",
        }
    }

    /// Protocol over TCP; `None` for CoAP and HTTP/3.
    #[cfg(target_os = "linux")]
    pub(crate) const fn http(self) -> Option<thinair_http_services::http::HttpProtocol> {
        use thinair_http_services::http::HttpProtocol;
        match self {
            Self::Coap | Self::CoapTcp | Self::Http3 => None,
            Self::Http => Some(HttpProtocol::Http),
            Self::IotHttp => Some(HttpProtocol::IotHttp),
            Self::IotSpdy => Some(HttpProtocol::IotSpdy),
        }
    }
}

/// Error for a build without HTTP/3.
#[cfg(all(target_os = "linux", not(feature = "http3")))]
pub(crate) fn without_http3() -> anyhow::Error {
    thinair_cli::usage::Usage::error(
        "this thinair-lab is built without http3: `cargo build --release -p thinair-lab` builds one with it",
    )
}
