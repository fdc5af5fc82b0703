//! One object over a link in virtual time, by CoAP, lean HTTP or SPDY: every packet, and its octets by layer.
//!
//! Client and server are the engines of `thinair-lab fetch` and `thinair-lab serve`, over our TCP. It behaves as that
//! of [`Kernel`](TcpInteraction::Kernel)s, where a SYN-ACK is sent before the application has the request, and the SYN's data
//! leaves room for all possible options; or as RFC 7413 allows at [best](TcpInteraction::Best): the SYN is filled, and the
//! response is sent in the SYN-ACK.
//!
//! ```
//! use thinair_simulation::network::fetch::{Fetch, FetchService, TcpInteraction};
//! use thinair_link::preset::ZIGBEE_20K;
//!
//! let mut fetch = Fetch::new(FetchService::IotSpdy, 10, ZIGBEE_20K.model, 128);
//! let kernel = fetch.run(1);
//! fetch.stack = TcpInteraction::Best;
//! let best = fetch.run(1);
//! assert_eq!((kernel.packets.len(), kernel.total()), (6, 381));
//! assert_eq!((best.packets.len(), best.total()), (4, 301));
//! assert!(best.took < kernel.took);
//! ```

mod ends;
mod fragmenting;
mod recorded;
mod rounds;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use core::time::Duration;

use thinair_coap::{Config, Request, Response, number};
use thinair_http::{HttpLimits, HttpProtocol, Target};
use thinair_link::{LinkModel, Side};
use thinair_wire::time::Instant;

use super::HostNetwork;
use super::any_host::AnyHost;
use super::coap_client::{CoapClient, MessageTransport, RequestPace, Requests};
use super::coap_server::CoapServer;
use super::ip::{Address, HostSocket};
use crate::streams::{Purpose, RandomStreams};
use crate::tcp;
use ends::{Drawn, Manners};
use fragmenting::Fragmenting;
use recorded::Recorded;
use thinair_emulator::{DirectionTotals, RohcChannel};

pub(super) use ends::{ClientEnd, ServerEnd};

pub use recorded::{LayerOctets, RecordedPacket};
pub use rounds::{LinkLoad, Round, Rounds};

/// Time limit of a fetch.
const END: Duration = Duration::from_secs(600);

/// Size of the headers of IPv4 and TCP without options, in octets.
const HEADERS: u16 = 40;
/// Maximum size of the options of a TCP header, in octets.
const OPTIONS: u16 = 40;

/// Protocol of an object's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchService {
    /// CoAP over UDP, confirmable. Larger packets are fragmented by IP.
    Coap,
    /// CoAP over UDP, protected by OSCORE: RFC 8613.
    CoapOscore,
    /// CoAP over UDP in DTLS 1.2 with a pre-shared key, in one session: RFC 7252, section 9.1.
    CoapDtls,
    /// CoAP over TCP, with a persistent connection: RFC 8323.
    CoapTcp,
    /// HTTP/1.1 with a minimal head, over TCP without Fast Open.
    Http,
    /// HTTP/1.0 without fields, with Fast Open.
    IotHttp,
    /// SPDY/3.1 with the shortest header blocks, with Fast Open.
    IotSpdy,
}

impl FetchService {
    const fn protocol(self) -> Option<HttpProtocol> {
        match self {
            Self::Coap | Self::CoapOscore | Self::CoapDtls | Self::CoapTcp => None,
            Self::Http => Some(HttpProtocol::Http),
            Self::IotHttp => Some(HttpProtocol::IotHttp),
            Self::IotSpdy => Some(HttpProtocol::IotSpdy),
        }
    }
}

/// Interaction of TCP with the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpInteraction {
    /// As in Linux.
    Kernel,
    /// As RFC 7413 allows.
    Best,
}

/// TCP options, as set by sysctls of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: bool,
    /// `net.ipv4.tcp_sack`.
    pub sack: bool,
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: bool,
    /// Size in octets of the Fast Open cookie, which the client has already; `None`: Fast Open without cookies
    /// (`net.ipv4.tcp_fastopen` with 0x204).
    pub cookie: Option<u8>,
}

impl TcpOptions {
    /// No optional options.
    pub const LEAN: Self = Self { timestamps: false, sack: false, window_scaling: false, cookie: None };
    /// Defaults of Linux, with cookies of 8 octets.
    pub const DEFAULT: Self = Self { timestamps: true, sack: true, window_scaling: true, cookie: Some(8) };
}

/// End of a connection by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// By FIN, when the object is complete.
    Response,
    /// By FIN at the end of the request.
    Request,
    /// By RST, when the object is complete.
    Reset,
    /// Never: objects of later [rounds](Fetch::rounds) use the same connection, if the service has a persistent one.
    Never,
}

/// Parameters of a fetch.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Protocol.
    pub service: FetchService,
    /// Size of the object in octets; its name is this number.
    pub octets: usize,
    /// Link; the client is at A.
    pub model: LinkModel<'static>,
    /// ROHC on the link. Packets are recorded uncompressed.
    pub rohc: Option<RohcChannel>,
    /// MTU of IPv4 in octets, at least 68.
    pub mtu: u16,
    /// Host and port in requests of HTTP and SPDY. Default: `10.9.0.2:8080`.
    pub host: String,
    /// Interaction of TCP with the application. Default: [`TcpInteraction::Kernel`].
    pub stack: TcpInteraction,
    /// TCP options. Default: [`TcpOptions::LEAN`].
    pub options: TcpOptions,
    /// End of the connection by the client. Default: [`ConnectionEnd::Response`].
    pub close: ConnectionEnd,
    /// True if the acknowledgments of a SYN-ACK and of a request wait for the next data, as in `thinair-lab fetch` and
    /// `thinair-lab serve` with Fast Open. Default: true.
    pub holds: bool,
    /// True if acknowledgments of data wait for a second segment from the start, not only after the first 16. Default:
    /// false.
    pub thins: bool,
}

/// Result of a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Time from the first packet to the last octet of the object; `None` if it did not arrive.
    pub took: Option<Duration>,
    /// Every packet, in the order of sending.
    pub packets: Vec<RecordedPacket>,
    /// Octets of all packets by layer.
    pub octets: LayerOctets,
    /// Totals of the link from A and from B, which are smaller with ROHC.
    pub totals: [DirectionTotals; 2],
}

impl Fetched {
    /// Octets of all packets.
    pub fn total(&self) -> usize {
        self.octets.total()
    }
}

impl Fetch {
    /// Fetch of an object over this link, with [`TcpInteraction::Kernel`] and lean options.
    pub fn new(service: FetchService, octets: usize, model: LinkModel<'static>, mtu: u16) -> Self {
        Self {
            service,
            octets,
            model,
            rohc: None,
            mtu,
            host: "10.9.0.2:8080".to_owned(),
            stack: TcpInteraction::Kernel,
            options: TcpOptions::LEAN,
            close: ConnectionEnd::Response,
            holds: true,
            thins: false,
        }
    }

    /// Fetches the object. `seed` determines every octet.
    pub fn run(&self, seed: u64) -> Fetched {
        let mut network = HostNetwork::new(&self.model, seed, self.rohc.as_ref());
        let sockets = Side::ALL.map(|side| HostSocket { address: Address::new(side, 0), port: 40_000 });
        let [client, server] = sockets;
        let server = HostSocket { port: self.port(), ..server };
        if let Some([at_client, at_server]) = self.ends(client, server, Instant::ZERO, seed) {
            network.add(server.address, Recorded::new(Fragmenting::new(at_server, self.mtu)));
            network.add(client.address, Recorded::new(Fragmenting::new(at_client, self.mtu)));
        }
        network.run_until(Instant::ZERO + END, |_, _| false);
        let totals = Side::ALL.map(|side| network.totals(side));
        let hosts: Vec<_> = network.hosts().collect();
        let [at_server, at_client] = hosts.as_slice() else {
            return Fetched { took: None, packets: Vec::new(), octets: LayerOctets::default(), totals };
        };
        let took = at_client.host.host.took();
        let packets = recorded::packets([at_client, at_server]);
        let sum = packets.iter().fold(LayerOctets::default(), |sum, packet| sum + packet.octets);
        // Of the application's octets, the object counts once; its retransmissions count as overhead.
        let object = if took.is_some() { self.octets.min(sum.header) } else { 0 };
        let octets = LayerOctets { header: sum.header - object, object, ..sum };
        Fetched { took, packets, octets, totals }
    }

    /// Port of the server.
    const fn port(&self) -> u16 {
        match self.service {
            FetchService::Coap | FetchService::CoapOscore | FetchService::CoapTcp => 5_683,
            FetchService::CoapDtls => 5_684,
            FetchService::Http | FetchService::IotHttp | FetchService::IotSpdy => 8_080,
        }
    }

    fn ends(
        &self,
        client: HostSocket,
        server: HostSocket,
        start: Instant,
        seed: u64,
    ) -> Option<[AnyHost; 2]> {
        let choices = |node| RandomStreams::new(seed).stream(0, node, Purpose::Choice);
        let body = vec![b'x'; self.octets];
        let Some(protocol) = self.service.protocol() else {
            let config = Config::default();
            let tcp = self.tcp();
            let transport = match self.service {
                FetchService::CoapTcp => MessageTransport::Tcp(tcp),
                FetchService::CoapOscore => MessageTransport::Oscore,
                FetchService::CoapDtls => MessageTransport::Dtls,
                _ => MessageTransport::Udp { protection: 0 },
            };
            let asks = CoapClient::new(client, server, transport, config, self.requests(start), choices(1));
            let mut serves = CoapServer::new(server, 0, tcp, config, Response::content(body), choices(0));
            if transport == MessageTransport::Oscore {
                serves.accept(client.address);
            }
            if transport == MessageTransport::Dtls {
                serves = serves.secured(choices(3));
            }
            let serves = serves.stepping(choices(2));
            return Some([AnyHost::CoapClient(Box::new(asks)), AnyHost::CoapServer(Box::new(serves))]);
        };
        let (path, limits) = (self.path(), HttpLimits { body: self.octets, ..HttpLimits::default() });
        let (target, lasts) = (Target { host: &self.host, path: &path }, self.close == ConnectionEnd::Never);
        let asks =
            if lasts { protocol.lasting_client(target, limits) } else { protocol.client(target, limits) };
        let asks = asks.ok()?;
        let serves = protocol.server(lasts, limits);
        let manners = self.manners();
        let client_tcp = self.tcp();
        let drawn = Drawn::from(&mut choices(1));
        let asks = ClientEnd::new([client, server], client_tcp, manners, self.close, start, drawn, asks);
        let quick_acks = if manners.holds { 0 } else { client_tcp.quick_acks };
        let server_tcp = tcp::TcpConfig { quick_acks, ..client_tcp };
        let drawn = Drawn::from(&mut choices(0));
        let serves = ServerEnd::new([server, client], server_tcp, manners, drawn, serves, body);
        Some([AnyHost::Client(Box::new(asks)), AnyHost::Server(Box::new(serves))])
    }

    fn path(&self) -> String {
        format!("/{}", self.octets)
    }

    /// The one request of a CoAP client.
    fn requests(&self, start: Instant) -> Requests {
        let mut request = Request::get("");
        request.options.push(number::URI_PATH, self.octets.to_string().as_bytes());
        Requests { request, count: 1, start, pace: RequestPace::Closed { think: Duration::ZERO } }
    }

    fn is_fast(&self) -> bool {
        self.service.protocol().is_some_and(HttpProtocol::is_fast)
    }

    fn manners(&self) -> Manners {
        let holds = self.stack == TcpInteraction::Best || self.holds && self.is_fast();
        Manners { acknowledges_first: !holds, answers_in_syn_ack: self.stack == TcpInteraction::Best, holds }
    }

    fn tcp(&self) -> tcp::TcpConfig {
        let TcpOptions { timestamps, sack, window_scaling, cookie } = self.options;
        let mss = self.mtu.saturating_sub(HEADERS).max(1);
        let cookie = cookie.map(|octets| vec![0xC0; octets.into()]);
        let fast_open = match cookie.map(|octets| tcp::Cookie::new(&octets)) {
            _ if !self.is_fast() => tcp::FastOpen::Off,
            None => tcp::FastOpen::Cookieless,
            Some(cookie) => tcp::FastOpen::Cookie(cookie),
        };
        tcp::TcpConfig {
            mss,
            timestamps,
            sack,
            window_scaling,
            fast_open,
            nagle: tcp::Nagle::Off,
            syn_data: (self.stack == TcpInteraction::Kernel).then(|| mss.saturating_sub(OPTIONS)),
            syn_ack_wait: self.manners().holds.then_some(Duration::from_millis(200)),
            quick_acks: if self.thins { 0 } else { tcp::TcpConfig::default().quick_acks },
            ..tcp::TcpConfig::default()
        }
    }
}
