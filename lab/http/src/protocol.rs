//! The protocols, by name.

use alloc::boxed::Box;

use crate::deflate::Flush;
use crate::http1::{self, Form};
use crate::{ClientEngine, Error, Limits, ServerEngine, Target, spdy};

/// A way to carry objects over a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with no more head than it needs, over TCP as the system has it.
    Http,
    /// IoT-HTTP: HTTP/1.0 without a field, and Fast Open.
    IotHttp,
    /// IoT-SPDY: SPDY/3.1 with header blocks as short as they can be, and Fast Open.
    IotSpdy,
}

impl Protocol {
    /// Whether the request travels with the SYN, and acknowledgments wait for what is sent next.
    pub const fn is_fast(self) -> bool {
        match self {
            Self::Http => false,
            Self::IotHttp | Self::IotSpdy => true,
        }
    }

    /// One that asks for this.
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

    /// One that asks for this, and can ask for others on the same connection.
    ///
    /// # Errors
    /// [`Error::Target`]; [`Error::NoOther`] of IoT-HTTP, where the end of the connection is that of the object.
    pub fn lasting_client(self, target: Target<'_>, limits: Limits) -> Result<Box<dyn ClientEngine>, Error> {
        match self {
            Self::Http => Ok(Box::new(http1::Client::lasting(target, limits)?)),
            Self::IotHttp => Err(Error::NoOther),
            Self::IotSpdy => self.client(target, limits),
        }
    }

    /// One connection of a server. `keeps`: it may have more than one request.
    pub fn server(self, keeps: bool, limits: Limits) -> Box<dyn ServerEngine> {
        match self {
            Self::Http => Box::new(http1::Server::new(Form::Minimal, keeps, limits)),
            Self::IotHttp => Box::new(http1::Server::new(Form::Reduced, keeps, limits)),
            Self::IotSpdy => Box::new(spdy::Server::new(keeps, Flush::Least, limits)),
        }
    }
}
