//! Protocols by name.

use alloc::boxed::Box;

use crate::deflate::Flush;
use crate::http1::{self, Form};
use crate::{ClientEngine, Error, Limits, ServerEngine, Target, spdy};

/// Protocol that carries objects over a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with a minimal head, over TCP without Fast Open.
    Http,
    /// IoT-HTTP: HTTP/1.0 without fields, over TCP with Fast Open.
    IotHttp,
    /// IoT-SPDY: SPDY/3.1 with the shortest header blocks, over TCP with Fast Open.
    IotSpdy,
}

impl Protocol {
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
    /// [`Error::Target`].
    pub fn client(self, target: Target<'_>, limits: Limits) -> Result<Box<dyn ClientEngine>, Error> {
        Ok(match self {
            Self::Http => Box::new(http1::Client::new(Form::Minimal, target, limits)?),
            Self::IotHttp => Box::new(http1::Client::new(Form::Reduced, target, limits)?),
            Self::IotSpdy => Box::new(spdy::Client::new(target, Flush::Least, limits)?),
        })
    }

    /// Creates a client that requests this object, and can request others on the same connection.
    ///
    /// # Errors
    /// [`Error::Target`]; [`Error::NoOther`] for IoT-HTTP, where the end of the connection ends the object.
    pub fn lasting_client(self, target: Target<'_>, limits: Limits) -> Result<Box<dyn ClientEngine>, Error> {
        match self {
            Self::Http => Ok(Box::new(http1::Client::lasting(target, limits)?)),
            Self::IotHttp => Err(Error::NoOther),
            Self::IotSpdy => self.client(target, limits),
        }
    }

    /// Creates the server side of one connection. `keeps`: it may have more than one request.
    pub fn server(self, keeps: bool, limits: Limits) -> Box<dyn ServerEngine> {
        match self {
            Self::Http => Box::new(http1::Server::new(Form::Minimal, keeps, limits)),
            Self::IotHttp => Box::new(http1::Server::new(Form::Reduced, keeps, limits)),
            Self::IotSpdy => Box::new(spdy::Server::new(keeps, Flush::Least, limits)),
        }
    }
}
