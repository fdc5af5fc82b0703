//! DTLS 1.2 (RFC 6347) of simulated clients, and of their server: records of the real implementation, in `coaps` (RFC 7252, section 9.1).

use std::collections::BTreeMap;

use thinair_dtls::{
    Client, ClientConfig, ClientEvent, MAX_CID, OVERHEAD, Psk, Server, ServerConfig, SessionId,
};
use thinair_link::Random;
use thinair_wire::time::Instant;

use super::ip::HostSocket;

/// Octets that a record adds to a message at most.
const RECORD: usize = OVERHEAD + MAX_CID + 1;

/// Largest datagram of a handshake.
const HANDSHAKE: usize = 1_152;

/// The key of all clients.
fn psk() -> Psk {
    Psk::new(b"phone", b"not secret at all").expect("both are short")
}

/// Returns room for a datagram with a message of so many octets.
fn room(max_message: usize) -> Vec<u8> {
    vec![0; (max_message + RECORD).max(HANDSHAKE)]
}

/// Session of a client with its server.
#[derive(Debug)]
pub(super) struct DtlsClient {
    engine: Client,
    room: Vec<u8>,
}

impl DtlsClient {
    /// Starts a handshake at the start of time.
    pub(super) fn connect(max_message: usize, seed: u64) -> Self {
        let mut numbers = Random::new(seed);
        let mut engine = Client::new(psk(), ClientConfig::default(), move || numbers.next_u64());
        engine.connect(Instant::ZERO);
        Self { engine, room: room(max_message) }
    }

    /// True if there is a session.
    pub(super) const fn is_connected(&self) -> bool {
        self.engine.is_connected()
    }

    /// Decrypts the next message of a datagram in place. A session that has ended, or was not made, is made again.
    pub(super) fn receive<'d>(&mut self, now: Instant, datagram: &mut &'d mut [u8]) -> Option<&'d [u8]> {
        let message = self.engine.handle_datagram(now, datagram);
        self.reconnect(now);
        message
    }

    fn reconnect(&mut self, now: Instant) {
        while let Some(event) = self.engine.poll_event() {
            if event != ClientEvent::Connected && !self.engine.is_connected() {
                self.engine.connect(now);
            }
        }
    }

    /// Returns the datagram of a message; `None` without a session.
    pub(super) fn seal(&mut self, now: Instant, message: &[u8]) -> Option<&[u8]> {
        let len = self.engine.send(now, message, &mut self.room).ok()?;
        self.room.get(..len)
    }

    /// Returns the next datagram of a handshake.
    pub(super) fn poll(&mut self, now: Instant) -> Option<&[u8]> {
        let len = self.engine.poll_datagram(now, &mut self.room)?;
        self.room.get(..len)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
        self.reconnect(now);
    }
}

/// Sessions of a server, by the addresses of its clients.
#[derive(Debug)]
pub(super) struct DtlsServer {
    engine: Server<HostSocket>,
    sessions: BTreeMap<HostSocket, SessionId>,
    room: Vec<u8>,
}

impl DtlsServer {
    pub(super) fn new(max_message: usize, seed: u64) -> Self {
        let mut numbers = Random::new(seed);
        let engine = Server::new(vec![psk()], ServerConfig::default(), move || numbers.next_u64());
        Self { engine, sessions: BTreeMap::new(), room: room(max_message) }
    }

    /// Decrypts the next message of a datagram in place.
    pub(super) fn receive<'d>(
        &mut self,
        now: Instant,
        from: HostSocket,
        datagram: &mut &'d mut [u8],
    ) -> Option<&'d [u8]> {
        let (session, message) = self.engine.handle_datagram(now, from, datagram)?;
        self.sessions.insert(from, session);
        Some(message)
    }

    /// Returns the datagram of a message to a client; `None` without a session.
    pub(super) fn seal(&mut self, to: HostSocket, message: &[u8]) -> Option<&[u8]> {
        let (_, len) = self.engine.send(*self.sessions.get(&to)?, message, &mut self.room).ok()?;
        self.room.get(..len)
    }

    /// Returns the next datagram of a handshake, and its destination.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(HostSocket, &[u8])> {
        // Sessions are found by their messages.
        while self.engine.poll_event().is_some() {}
        let (to, len) = self.engine.poll_datagram(now, &mut self.room)?;
        Some((to, self.room.get(..len)?))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use core::time::Duration;

    use thinair_coap::{Config, Request, Response};
    use thinair_emulator::RohcChannel;
    use thinair_link::{Airtime, Direction, LinkModel, LossModel, Probability, Rate, Side};
    use thinair_rohc::{
        Channel, CidSpace, CompressorConfig, DecompressorConfig, Mode, ProfileId, ProfileSet,
    };

    use super::*;
    use crate::network::any_host::AnyHost;
    use crate::network::{Address, CoapClient, CoapServer, HostNetwork, RequestPace, Requests};
    use crate::streams::{Purpose, RandomStreams};
    use crate::tcp::TcpConfig;

    const RUNS: u64 = 400;

    fn rohc() -> RohcChannel {
        let profiles = ProfileSet::v1().with(ProfileId::Dtls).unwrap();
        let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
        RohcChannel {
            compressor: CompressorConfig::new(channel),
            decompressor: DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) },
            bases: Vec::new(),
            feedback_wait: Duration::from_millis(10),
            ends: None,
        }
    }

    /// Returns time, packets, their octets and those on the link until a client has a session.
    fn handshake(model: &LinkModel<'static>, rohc: Option<&RohcChannel>, seed: u64) -> (Duration, [u64; 3]) {
        let mut network = HostNetwork::new(model, seed, rohc);
        let [client, server] =
            Side::ALL.map(|side| HostSocket { address: Address::new(side, 0), port: 5_684 });
        let choices = |node| RandomStreams::new(seed).stream(0, node, Purpose::Choice);
        let at_server = CoapServer::new(
            server,
            0,
            TcpConfig::default(),
            Config::default(),
            Response::content(Vec::new()),
            choices(0),
        );
        network.add(server.address, AnyHost::CoapServer(Box::new(at_server.secured(choices(2)))));
        let pace = RequestPace::Closed { think: Duration::ZERO };
        let end = Instant::ZERO + Duration::from_secs(600);
        let requests = Requests { request: Request::get(""), count: 1, start: end, pace };
        let transport = crate::network::MessageTransport::Dtls;
        let at_client = CoapClient::new(client, server, transport, Config::default(), requests, choices(1));
        network.add(client.address, AnyHost::CoapClient(Box::new(at_client)));
        network.run_until(end, |_, host| matches!(host, AnyHost::CoapClient(client) if client.is_ready()));
        let totals = Side::ALL.map(|side| network.totals(side));
        let sum = |of: fn(&thinair_emulator::DirectionTotals) -> u64| totals.iter().map(of).sum();
        let counts = [sum(|of| of.packets), sum(|of| of.octets), sum(|of| of.carried_octets)];
        (network.now().since(Instant::ZERO), counts)
    }

    /// 20 kbit/s, 50 ms each way.
    #[test]
    fn handshakes_cost_octets_and_losses_cost_time() {
        println!("| loss | ROHC | packets | octets | on the link | half within | 95 % within |");
        println!("|---|---|---|---|---|---|---|");
        let rohc = rohc();
        let mut table = Vec::new();
        for (loss, channel) in [(0, None), (0, Some(&rohc)), (20, None), (20, Some(&rohc))] {
            let airtime = Airtime::Rate(Rate::from_bps(20_000).unwrap());
            let loss_model = LossModel::Random(Probability::from_percent(loss).unwrap());
            let delay = Duration::from_millis(50);
            let direction = Direction { airtime, delay, loss: loss_model, ..Direction::IDEAL };
            let model = LinkModel { a_to_b: direction, b_to_a: direction, ..LinkModel::default() };
            let runs: Vec<_> = (0..RUNS).map(|seed| handshake(&model, channel, seed)).collect();
            let mut times: Vec<_> = runs.iter().map(|(time, _)| *time).collect();
            times.sort();
            let mean =
                |place: usize| runs.iter().map(|(_, counts)| counts[place]).sum::<u64>() as f64 / RUNS as f64;
            let [packets, octets, carried] = [0, 1, 2].map(mean);
            let [half, most] = [RUNS / 2, RUNS * 95 / 100].map(|place| times[place as usize].as_secs_f64());
            let with = if channel.is_some() { "O-mode" } else { "no" };
            println!(
                "| {loss} % | {with} | {packets:.1} | {octets:.0} | {carried:.0} | {half:.2} s | {most:.2} s |"
            );
            table.push((packets, octets, carried, half, most));
        }
        let [plain, compressed, lossy, both] = &table[..] else { panic!("four rows") };
        // 487 octets of UDP payload in six datagrams.
        assert_eq!((plain.0, plain.1, plain.2), (6.0, 487.0 + 6.0 * 28.0, 487.0 + 6.0 * 28.0));
        assert_eq!((compressed.0, compressed.1), (plain.0, plain.1));
        assert!(compressed.2 < plain.2 && compressed.3 < plain.3 && both.2 < lossy.2, "{table:?}");
        assert!(lossy.3 <= 4.0 && both.3 <= 4.0 && lossy.4 <= 35.0 && both.4 <= 35.0, "{table:?}");
    }
}
