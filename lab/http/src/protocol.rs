//! Protocols by name.

use alloc::boxed::Box;

use crate::deflate::Flush;
use crate::http1::{self, HeadForm};
use crate::{ClientEngine, HttpError, HttpLimits, ServerEngine, Target, spdy};

/// Protocol that carries objects over a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpProtocol {
    /// HTTP/1.1 with a minimal head, over TCP without Fast Open.
    Http,
    /// IoT-HTTP: HTTP/1.0 without fields, over TCP with Fast Open.
    IotHttp,
    /// IoT-SPDY: SPDY/3.1 with the shortest header blocks, over TCP with Fast Open.
    IotSpdy,
}

impl HttpProtocol {
    /// True if the request is sent in the SYN, and acknowledgments wait for the next data.
    pub const fn is_fast(self) -> bool {
        match self {
            Self::Http => false,
            Self::IotHttp | Self::IotSpdy => true,
        }
    }

    /// Creates a client that requests this object.
    ///
    /// # Errors
    /// [`HttpError::Target`].
    pub fn client(self, target: Target<'_>, limits: HttpLimits) -> Result<Box<dyn ClientEngine>, HttpError> {
        Ok(match self {
            Self::Http => Box::new(http1::Http1Client::new(HeadForm::Minimal, target, limits)?),
            Self::IotHttp => Box::new(http1::Http1Client::new(HeadForm::Reduced, target, limits)?),
            Self::IotSpdy => Box::new(spdy::SpdyClient::new(target, Flush::Least, limits)?),
        })
    }

    /// Creates a client that requests this object, and can request others on the same connection.
    ///
    /// # Errors
    /// [`HttpError::Target`]; [`HttpError::NoOther`] for IoT-HTTP, where the end of the connection ends the object.
    pub fn lasting_client(
        self,
        target: Target<'_>,
        limits: HttpLimits,
    ) -> Result<Box<dyn ClientEngine>, HttpError> {
        match self {
            Self::Http => Ok(Box::new(http1::Http1Client::lasting(target, limits)?)),
            Self::IotHttp => Err(HttpError::NoOther),
            Self::IotSpdy => self.client(target, limits),
        }
    }

    /// Creates the server side of one connection. `keeps`: it may have more than one request.
    pub fn server(self, keeps: bool, limits: HttpLimits) -> Box<dyn ServerEngine> {
        match self {
            Self::Http => Box::new(http1::Http1Server::new(HeadForm::Minimal, keeps, limits)),
            Self::IotHttp => Box::new(http1::Http1Server::new(HeadForm::Reduced, keeps, limits)),
            Self::IotSpdy => Box::new(spdy::SpdyServer::new(keeps, Flush::Least, limits)),
        }
    }
}
