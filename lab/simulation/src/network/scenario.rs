//! CoAP clients that share a link to a server, with or without a concurrent download.

use core::time::Duration;

use thinair_coap::{Config, Response};
use thinair_link::{LinkModel, Side};
use thinair_wire::time::Instant;

use super::HostNetwork;
use super::any_host::AnyHost;
use super::coap_client::{ClientExchange, CoapClient, MessageTransport, Requests};
use super::coap_server::CoapServer;
use super::download::Download;
use super::hosts::HostWorld;
use super::ip::{Address, HostSocket};
#[cfg(target_os = "linux")]
use super::real_time::{Punctuality, RealTimeError, RealTimeLink, RealTimeNetwork};
use crate::streams::{Purpose, RandomStreams};
use crate::tcp;
use thinair_emulator::{DirectionTotals, RohcChannel};

const COAP: u16 = 5_683;
const COAPS: u16 = 5_684;
const FTP_DATA: u16 = 20;

/// Host number of the download's ends, on either side.
const DOWNLOAD: u16 = 9_999;

/// Experiment without its seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Link; clients are at A.
    pub model: LinkModel<'static>,
    /// ROHC on the link.
    pub rohc: Option<RohcChannel>,
    /// Number of clients.
    pub clients: u16,
    /// Transport of their messages.
    pub transport: MessageTransport,
    /// Configuration of clients and server.
    pub config: Config,
    /// Requests of each client.
    pub requests: Requests,
    /// Time within which clients begin, at random.
    pub spread: Duration,
    /// Content of each response, in octets.
    pub content: usize,
    /// True if the Identifications of the server's datagrams rise in random steps, as those of an unconnected socket of
    /// Linux 5.17 and later; false if they are 0, as before.
    pub stepping: bool,
    /// TCP of a download from B to A, from the start of time.
    pub download: Option<tcp::TcpConfig>,
    /// Size of the download in octets; `None`: as long as there are other events.
    pub download_octets: Option<u64>,
    /// Number of rounds of requests before the measured one, with pauses of a second.
    pub warm_up: usize,
    /// Beginning and length of a time in which every packet is lost, in virtual time only.
    pub pause: Option<(Instant, Duration)>,
    /// Time limit.
    pub end: Instant,
}

/// Results of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioOutcome {
    /// Results by client.
    pub clients: Vec<ClientOutcome>,
    /// Totals of the link from A and from B.
    pub totals: [DirectionTotals; 2],
    /// Octets that the download has delivered.
    pub downloaded: u64,
    /// Time from the start until the download was complete, if it has an end.
    pub download_took: Option<Duration>,
    /// Time of the latest event.
    pub ended: Instant,
    /// Number of events taken from the queue.
    pub events: u64,
}

/// Results of one client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientOutcome {
    /// Its exchanges, in the order of their requests.
    pub exchanges: Vec<ClientExchange>,
    /// Number of retransmissions by the client.
    pub retransmissions: u64,
}

impl ClientOutcome {
    /// Time from the first request to the last response; `None` without a response.
    pub fn completed_after(&self) -> Option<Duration> {
        let first = self.exchanges.first()?.made;
        let answered = self.exchanges.iter().filter(|exchange| exchange.took().is_some());
        Some(answered.filter_map(|exchange| exchange.ended).max()?.since(first))
    }

    /// Durations of answered exchanges.
    pub fn took(&self) -> impl Iterator<Item = Duration> {
        self.exchanges.iter().filter_map(ClientExchange::took)
    }

    /// Mean duration of answered exchanges; `None` without any.
    pub fn mean(&self) -> Option<Duration> {
        let count = u32::try_from(self.took().count()).ok().filter(|count| *count > 0)?;
        Some(self.took().sum::<Duration>() / count)
    }

    /// Retransmissions per request.
    pub fn retransmission_ratio(&self) -> f64 {
        self.retransmissions as f64 / self.exchanges.len().max(1) as f64
    }
}

impl Scenario {
    /// Number of flows in a direction: one for each client, and one for a download.
    pub fn flows(&self) -> u32 {
        u32::from(self.clients) + u32::from(self.download.is_some())
    }

    /// Runs the experiment. `seed` and `run` determine every octet.
    pub fn run(&self, seed: u64, run: u32) -> ScenarioOutcome {
        let link_seed = link_seed(seed, run);
        let mut network = HostNetwork::new(&self.model, link_seed, self.rohc.as_ref());
        if let Some((from, length)) = self.pause {
            network.pause(from, from + length);
        }
        let Ok(outcome) = self.run_in(&mut network, seed, run);
        outcome
    }

    /// Maximum number of clients in real time.
    #[cfg(target_os = "linux")]
    pub const MOST_IN_REAL_TIME: u16 = 100;

    /// Runs the experiment in real time, with random numbers as in virtual time. Returns the reliability of its times,
    /// too.
    ///
    /// # Errors
    /// A signal asks to end, or the system removes a device.
    #[cfg(target_os = "linux")]
    pub fn run_in_real_time(
        &self,
        link: &mut RealTimeLink,
        seed: u64,
        run: u32,
    ) -> Result<(ScenarioOutcome, Punctuality), RealTimeError> {
        let mut network = RealTimeNetwork::new(link, &self.model, link_seed(seed, run), self.rohc.as_ref());
        let outcome = self.run_in(&mut network, seed, run)?;
        Ok((outcome, network.punctuality()))
    }

    fn run_in<W: HostWorld<AnyHost>>(
        &self,
        world: &mut W,
        seed: u64,
        run: u32,
    ) -> Result<ScenarioOutcome, W::Error> {
        self.populate(world, RandomStreams::new(seed), run)?;
        for round in 0..=self.warm_up {
            let mut left = usize::from(self.clients);
            // A client is done once: `done` is called after each of its events.
            let mut done = vec![false; left];
            let mut downloads = self.download.is_some() && self.download_octets.is_some();
            if let Some(AnyHost::Download(download)) = world.hosts().get(left + 1) {
                downloads &= !self.has_brought_all(download);
            }
            world.run_until(self.end, &mut |number, host| {
                match host {
                    AnyHost::CoapClient(client) => {
                        if let Some(done) =
                            done.get_mut(number - 1).filter(|done| !**done && client.is_done())
                        {
                            *done = true;
                            left -= 1;
                        }
                    }
                    AnyHost::Download(download) => downloads &= !self.has_brought_all(download),
                    _ => return false,
                }
                left == 0 && !downloads
            })?;
            if round < self.warm_up {
                let start = world.now() + Duration::from_secs(1);
                for host in world.hosts_mut().iter_mut() {
                    if let AnyHost::CoapClient(client) = host {
                        client.begin(Requests { start, ..self.requests.clone() });
                    }
                }
                world.wake()?;
            }
        }
        let mut outcome = ScenarioOutcome {
            clients: Vec::new(),
            totals: Side::ALL.map(|side| world.totals(side)),
            downloaded: 0,
            download_took: None,
            ended: world.now(),
            events: world.events(),
        };
        for host in world.hosts().iter() {
            match host {
                AnyHost::CoapClient(client) => outcome.clients.push(ClientOutcome {
                    exchanges: client.exchanges().to_vec(),
                    retransmissions: client.retransmissions(),
                }),
                AnyHost::Download(download) => {
                    outcome.downloaded += download.received();
                    if self.has_brought_all(download) {
                        outcome.download_took = download.latest().map(|latest| latest.since(Instant::ZERO));
                    }
                }
                _ => {}
            }
        }
        Ok(outcome)
    }

    /// True if a download with an end is complete.
    fn has_brought_all(&self, download: &Download) -> bool {
        self.download_octets.is_some_and(|octets| download.received() >= octets)
    }

    fn populate<W: HostWorld<AnyHost>>(
        &self,
        world: &mut W,
        streams: RandomStreams,
        run: u32,
    ) -> Result<(), W::Error> {
        let port = if self.transport == MessageTransport::Dtls { COAPS } else { COAP };
        let server = HostSocket { address: Address::new(Side::B, 0), port };
        let choices = |node| streams.stream(run, node, Purpose::Choice);
        let (tcp, protection) = match self.transport {
            MessageTransport::Tcp(tcp) => (tcp, 0),
            MessageTransport::Udp { protection } => (tcp::TcpConfig::default(), protection),
            MessageTransport::Oscore | MessageTransport::Dtls => (tcp::TcpConfig::default(), 0),
        };
        let response = Response::content(vec![b'x'; self.content]).format(0);
        let mut host = CoapServer::new(server, protection, tcp, self.config, response, choices(0));
        if self.transport == MessageTransport::Dtls {
            host = host.secured(choices(u32::MAX));
        }
        if self.transport == MessageTransport::Oscore {
            (0..self.clients).for_each(|number| host.accept(Address::new(Side::A, number)));
        }
        if self.stepping {
            host = host.stepping(streams.stream(run, 0, Purpose::Content));
        }
        world.add(server.address, AnyHost::CoapServer(Box::new(host)))?;
        for number in 0..self.clients {
            let node = u32::from(number) + 1;
            let socket = HostSocket { address: Address::new(Side::A, number), port: 40_000 };
            let within = u64::try_from(self.spread.as_nanos()).unwrap_or(u64::MAX);
            let late =
                if within == 0 { 0 } else { streams.stream(run, node, Purpose::Arrivals).below(within) };
            let start = self.requests.start + Duration::from_nanos(late);
            let requests = Requests { start, ..self.requests.clone() };
            let host = CoapClient::new(socket, server, self.transport, self.config, requests, choices(node));
            world.add(socket.address, AnyHost::CoapClient(Box::new(host)))?;
        }
        if let Some(config) = self.download {
            let [to, from] =
                Side::ALL.map(|side| HostSocket { address: Address::new(side, DOWNLOAD), port: FTP_DATA });
            let receiver = Download::receiver(to, from, config, Instant::ZERO);
            world.add(to.address, AnyHost::Download(Box::new(receiver)))?;
            let octets = self.download_octets.unwrap_or(u64::MAX);
            let sender = Download::sender(from, to, config, octets);
            world.add(from.address, AnyHost::Download(Box::new(sender)))?;
        }
        Ok(())
    }
}

/// Seed of the link, which differs between runs.
fn link_seed(seed: u64, run: u32) -> u64 {
    RandomStreams::new(seed).stream(run, 0, Purpose::Link).next_u64()
}
