//! Hosts of different kinds in one network.

use thinair_wire::time::Instant;

use super::NetworkHost;
use super::coap_client::CoapClient;
use super::coap_server::CoapServer;
use super::download::Download;
use super::fetch::{ClientEnd, ServerEnd};

/// Host of any kind.
pub(super) enum AnyHost {
    CoapClient(Box<CoapClient>),
    CoapServer(Box<CoapServer>),
    Download(Box<Download>),
    Client(Box<ClientEnd>),
    Server(Box<ServerEnd>),
}

impl AnyHost {
    fn host(&self) -> &dyn NetworkHost {
        match self {
            Self::CoapClient(host) => &**host,
            Self::CoapServer(host) => &**host,
            Self::Download(host) => &**host,
            Self::Client(host) => &**host,
            Self::Server(host) => &**host,
        }
    }

    fn host_mut(&mut self) -> &mut dyn NetworkHost {
        match self {
            Self::CoapClient(host) => &mut **host,
            Self::CoapServer(host) => &mut **host,
            Self::Download(host) => &mut **host,
            Self::Client(host) => &mut **host,
            Self::Server(host) => &mut **host,
        }
    }
}

impl NetworkHost for AnyHost {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.host_mut().handle_packet(now, packet);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.host_mut().poll_packet(now, packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host().poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host_mut().handle_timeout(now);
    }
}
