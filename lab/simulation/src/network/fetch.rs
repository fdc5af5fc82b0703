//! One object over a link in virtual time, by CoAP, lean HTTP or SPDY: every packet, and which layer its octets are of.
//!
//! Client and server are the engines that `thinair-lab fetch` and `thinair-lab serve` have, over our TCP. It behaves as that of
//! [`Kernel`](Stack::Kernel)s does, where a SYN-ACK goes before the application has seen the request, and a SYN carries no
//! more than what is left beside all options that there can be; or as RFC 7413 allows at [best](Stack::Best): the SYN is
//! filled, and the response rides in the SYN-ACK.
//!
//! ```
//! use thinair_simulation::network::fetch::{Fetch, Service, Stack};
//! use thinair_link::preset::ZIGBEE_20K;
//!
//! let mut fetch = Fetch::new(Service::IotSpdy, 10, ZIGBEE_20K.model, 128);
//! let kernel = fetch.run(1);
//! fetch.stack = Stack::Best;
//! let best = fetch.run(1);
//! assert_eq!((kernel.packets.len(), kernel.total()), (6, 381));
//! assert_eq!((best.packets.len(), best.total()), (4, 301));
//! assert!(best.took < kernel.took);
//! ```

mod fragmenting;
mod party;
mod recorded;
mod rounds;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use core::time::Duration;

use thinair_coap::{Config, Request, Response, number};
use thinair_http::{Limits, Protocol, Target};
use thinair_link::{LinkModel, Side};
use thinair_wire::time::Instant;

use super::Network;
use super::coap_client::{CoapClient, Pace, Requests, Transport};
use super::coap_server::CoapServer;
use super::ip::{Address, Socket};
use crate::streams::{Purpose, Streams};
use crate::tcp;
use fragmenting::Fragmenting;
use party::{Client, Drawn, Manners, Party, Server};
use recorded::Recorded;
use thinair_emulator::{DirectionTotals, RohcChannel};

pub use recorded::{Octets, Packet};
pub use rounds::{Carried, Round, Rounds};

/// When it is over, at the latest.
const END: Duration = Duration::from_secs(600);

/// Octets of headers of IPv4 and TCP without options.
const HEADERS: u16 = 40;
/// Octets of options that a TCP header can have.
const OPTIONS: u16 = 40;

/// How an object is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// CoAP over UDP, confirmable. What does not fit into a packet goes in fragments of IP.
    Coap,
    /// CoAP over TCP, whose connection stays: RFC 8323.
    CoapTcp,
    /// HTTP/1.1 with no more head than it needs, over TCP as it is.
    Http,
    /// HTTP/1.0 without a field, with Fast Open.
    IotHttp,
    /// SPDY/3.1 with header blocks as short as they can be, with Fast Open.
    IotSpdy,
}

impl Service {
    const fn protocol(self) -> Option<Protocol> {
        match self {
            Self::Coap | Self::CoapTcp => None,
            Self::Http => Some(Protocol::Http),
            Self::IotHttp => Some(Protocol::IotHttp),
            Self::IotSpdy => Some(Protocol::IotSpdy),
        }
    }
}

/// How TCP and those above it work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// As in Linux.
    Kernel,
    /// As RFC 7413 allows.
    Best,
}

/// What TCP says beside data: what sysctls of Linux set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: bool,
    /// `net.ipv4.tcp_sack`.
    pub sack: bool,
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: bool,
    /// Octets of the cookie of Fast Open, which the client has got before; nothing: it goes without
    /// (`net.ipv4.tcp_fastopen` with 0x204).
    pub cookie: Option<u8>,
}

impl TcpOptions {
    /// Nothing that is not needed.
    pub const LEAN: Self = Self { timestamps: false, sack: false, window_scaling: false, cookie: None };
    /// Linux as it is, with cookies of 8 octets.
    pub const DEFAULT: Self = Self { timestamps: true, sack: true, window_scaling: true, cookie: Some(8) };
}

/// How the client ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// By FIN, when the object is there.
    Response,
    /// By FIN at the end of the request.
    Request,
    /// By RST, when the object is there.
    Reset,
    /// It does not: what is fetched in [rounds](Fetch::rounds) comes over the same connection, where the service has one that
    /// stays.
    Never,
}

/// What to fetch, and over what.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// How it is carried.
    pub service: Service,
    /// Octets of the object, whose name is this number.
    pub octets: usize,
    /// The link; the client is at A.
    pub model: LinkModel<'static>,
    /// ROHC on the link. Packets are told as they are without.
    pub rohc: Option<RohcChannel>,
    /// Octets of an IPv4 packet, 68 and more.
    pub mtu: u16,
    /// Host, and port, as HTTP and SPDY say it. `10.9.0.2:8080`
    pub host: String,
    /// How TCP and those above it work together. As kernels.
    pub stack: Stack,
    /// What TCP says beside data. [`TcpOptions::LEAN`].
    pub options: TcpOptions,
    /// How the client ends the connection. By FIN, when the object is there.
    pub close: Close,
    /// True if the acknowledgment of a SYN-ACK waits for what is sent next, and so does that of a request: as `thinair-lab fetch`
    /// and `thinair-lab serve` have it with Fast Open. It does.
    pub holds: bool,
    /// Whether acknowledgments of data wait for a second segment from the beginning on, and not only behind the first 16. They do
    /// not.
    pub thins: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// From the first packet until the last octet of the object was there; nothing if it did not come.
    pub took: Option<Duration>,
    /// Every packet, in the order in which they were sent.
    pub packets: Vec<Packet>,
    /// Octets of all packets by layer.
    pub octets: Octets,
    /// What the link has carried from A and from B; with ROHC that is less.
    pub totals: [DirectionTotals; 2],
}

impl Fetched {
    /// Octets of all packets.
    pub fn total(&self) -> usize {
        self.octets.total()
    }
}

impl Fetch {
    /// The object over this link, as kernels with lean options do it.
    pub fn new(service: Service, octets: usize, model: LinkModel<'static>, mtu: u16) -> Self {
        Self {
            service,
            octets,
            model,
            rohc: None,
            mtu,
            host: "10.9.0.2:8080".to_owned(),
            stack: Stack::Kernel,
            options: TcpOptions::LEAN,
            close: Close::Response,
            holds: true,
            thins: false,
        }
    }

    /// Fetches it. `seed` determines every octet.
    pub fn run(&self, seed: u64) -> Fetched {
        let mut network = Network::new(&self.model, seed, self.rohc.as_ref());
        let sockets = Side::ALL.map(|side| Socket { address: Address::new(side, 0), port: 40_000 });
        let [client, server] = sockets;
        let server = Socket { port: self.port(), ..server };
        if let Some([at_client, at_server]) = self.parties(client, server, Instant::ZERO, seed) {
            network.add(server.address, Recorded::new(Fragmenting::new(at_server, self.mtu)));
            network.add(client.address, Recorded::new(Fragmenting::new(at_client, self.mtu)));
        }
        network.run_until(Instant::ZERO + END, |_, _| false);
        let totals = Side::ALL.map(|side| network.totals(side));
        let hosts: Vec<_> = network.hosts().collect();
        let [at_server, at_client] = hosts.as_slice() else {
            return Fetched { took: None, packets: Vec::new(), octets: Octets::default(), totals };
        };
        let took = at_client.host.host.took();
        let packets = recorded::packets([at_client, at_server]);
        let sum = packets.iter().fold(Octets::default(), |sum, packet| sum + packet.octets);
        // Of what applications have said, the object is the object; what was sent again counts as overhead.
        let object = if took.is_some() { self.octets.min(sum.header) } else { 0 };
        let octets = Octets { header: sum.header - object, object, ..sum };
        Fetched { took, packets, octets, totals }
    }

    /// Where the server listens.
    const fn port(&self) -> u16 {
        match self.service {
            Service::Coap | Service::CoapTcp => 5_683,
            Service::Http | Service::IotHttp | Service::IotSpdy => 8_080,
        }
    }

    fn parties(&self, client: Socket, server: Socket, start: Instant, seed: u64) -> Option<[Party; 2]> {
        let choices = |node| Streams::new(seed).stream(0, node, Purpose::Choice);
        let body = vec![b'x'; self.octets];
        let Some(protocol) = self.service.protocol() else {
            let config = Config::default();
            let tcp = self.tcp();
            let transport = match self.service {
                Service::CoapTcp => Transport::Tcp(tcp),
                _ => Transport::Udp { protection: 0 },
            };
            let asks = CoapClient::new(client, server, transport, config, self.requests(start), choices(1));
            let serves = CoapServer::new(server, 0, tcp, config, Response::content(body), choices(0));
            let serves = serves.stepping(choices(2));
            return Some([Party::CoapClient(Box::new(asks)), Party::CoapServer(Box::new(serves))]);
        };
        let (path, limits) = (self.path(), Limits { body: self.octets, ..Limits::default() });
        let (target, lasts) = (Target { host: &self.host, path: &path }, self.close == Close::Never);
        let asks =
            if lasts { protocol.lasting_client(target, limits) } else { protocol.client(target, limits) };
        let asks = asks.ok()?;
        let serves = protocol.server(lasts, limits);
        let manners = self.manners();
        let client_tcp = self.tcp();
        let drawn = Drawn::from(&mut choices(1));
        let asks = Client::new([client, server], client_tcp, manners, self.close, start, drawn, asks);
        let quick_acks = if manners.holds { 0 } else { client_tcp.quick_acks };
        let server_tcp = tcp::Config { quick_acks, ..client_tcp };
        let drawn = Drawn::from(&mut choices(0));
        let serves = Server::new([server, client], server_tcp, manners, drawn, serves, body);
        Some([Party::Client(Box::new(asks)), Party::Server(Box::new(serves))])
    }

    fn path(&self) -> String {
        format!("/{}", self.octets)
    }

    /// What a client of CoAP asks, once.
    fn requests(&self, start: Instant) -> Requests {
        let mut request = Request::get("");
        request.options.push(number::URI_PATH, self.octets.to_string().as_bytes());
        Requests { request, count: 1, start, pace: Pace::Closed { think: Duration::ZERO } }
    }

    fn is_fast(&self) -> bool {
        self.service.protocol().is_some_and(Protocol::is_fast)
    }

    fn manners(&self) -> Manners {
        let holds = self.stack == Stack::Best || self.holds && self.is_fast();
        Manners { acknowledges_first: !holds, answers_in_syn_ack: self.stack == Stack::Best, holds }
    }

    fn tcp(&self) -> tcp::Config {
        let TcpOptions { timestamps, sack, window_scaling, cookie } = self.options;
        let mss = self.mtu.saturating_sub(HEADERS).max(1);
        let cookie = cookie.map(|octets| vec![0xC0; octets.into()]);
        let fast_open = match cookie.map(|octets| tcp::Cookie::new(&octets)) {
            _ if !self.is_fast() => tcp::FastOpen::Off,
            None => tcp::FastOpen::Cookieless,
            Some(cookie) => tcp::FastOpen::Cookie(cookie),
        };
        tcp::Config {
            mss,
            timestamps,
            sack,
            window_scaling,
            fast_open,
            nagle: tcp::Nagle::Off,
            syn_data: (self.stack == Stack::Kernel).then(|| mss.saturating_sub(OPTIONS)),
            syn_ack_wait: self.manners().holds.then_some(Duration::from_millis(200)),
            quick_acks: if self.thins { 0 } else { tcp::Config::default().quick_acks },
            ..tcp::Config::default()
        }
    }
}
