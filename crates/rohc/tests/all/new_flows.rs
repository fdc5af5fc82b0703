//! CoAP clients that take new ports: what their flows cost, and which of them gets a context. Section 9.6 of `docs/coap-profile.md`.

use super::coap::{CoapLink, channel};
use crate::common::SplitMix64;
use crate::common::coap::{CoapSide, TestMessage, datagram_of, label_by_port};
use thinair_rohc::{Channel, CidSpace, CompressorConfig, Format, Integrity, Mode, ProfileSet, Refresh};

/// Clients of one host and their server, with the Message IDs, tokens and IP-IDs of programs.
struct Clients {
    link: CoapLink,
    random: SplitMix64,
    six: bool,
    /// A flow label for each port, on IPv6.
    labels: bool,
    server_ip_id: u16,
    /// Octets of headers before and behind compression, and of feedback.
    plain: usize,
    sent: usize,
    packets: usize,
}

impl Clients {
    fn new(channel: Channel, mode: Mode, six: bool) -> Self {
        let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        let link = CoapLink::new(config, mode);
        Self {
            link,
            random: SplitMix64(7),
            six,
            labels: false,
            server_ip_id: 0x1000,
            plain: 0,
            sent: 0,
            packets: 0,
        }
    }

    fn of(integrity: Integrity, mode: Mode) -> Self {
        Self::new(channel(CidSpace::Small, integrity), mode, false)
    }

    /// Carries one message, and returns its octets on the link without those of the payload.
    fn carry(&mut self, side: CoapSide, port: u16, ip_id: u16, message: &TestMessage) -> usize {
        let mut sent = datagram_of((self.six, 9, port), side, ip_id, 64, &message.octets(), true);
        if self.labels {
            label_by_port(&mut sent, port);
        }
        let (octets, delivered) = self.link.carry(side, &sent);
        assert_eq!(delivered.as_deref(), Some(&sent[..]), "{:?}: {:?}", self.link.last, self.link.error);
        let payload = message.payload.len();
        self.plain += sent.len() - payload;
        self.sent += octets - payload;
        self.packets += 1;
        octets - payload
    }

    /// A request and its response; octets of both without payload.
    fn exchange(&mut self, port: u16, request: &TestMessage, etag: Option<&[u8]>) -> [usize; 2] {
        let mut options: Vec<_> = etag.map(|etag| (4, etag.to_vec())).into_iter().collect();
        options.push((12, vec![]));
        let block = request.options.iter().find(|(number, _)| *number == 23);
        options.extend(block.cloned());
        self.exchange_with(port, request, options)
    }

    /// [`exchange`](Self::exchange) with the options of the response.
    fn exchange_with(
        &mut self,
        port: u16,
        request: &TestMessage,
        options: Vec<(u16, Vec<u8>)>,
    ) -> [usize; 2] {
        let ip_id = if self.six { 0 } else { request.id.wrapping_mul(3) };
        let there = self.carry(CoapSide::Client, port, ip_id, request);
        self.server_ip_id = self.server_ip_id.wrapping_add(1 + self.random.below(20) as u16);
        let response = TestMessage {
            kind: 2,
            code: 69,
            id: request.id,
            token: request.token.clone(),
            options,
            payload: b"21.5 C".to_vec(),
        };
        [there, self.carry(CoapSide::Server, port, self.server_ip_id, &response)]
    }

    fn port(&mut self) -> u16 {
        32_768 + self.random.below(28_000) as u16
    }

    /// A GET by a program that is started anew, with a token of so many random octets.
    fn get(&mut self, token: usize) -> [usize; 2] {
        let token = self.random.next().to_be_bytes()[..token].to_vec();
        let request = TestMessage { token, ..TestMessage::get(self.random.next() as u16, &[b"time"]) };
        let port = self.port();
        self.exchange(port, &request, None)
    }

    /// Octets of headers of one packet, with feedback.
    fn mean(&self) -> f64 {
        (self.sent + self.link.feedback) as f64 / self.packets as f64
    }
}

#[test]
fn a_request_from_a_new_port_costs_a_few_octets() {
    // Tokens of one octet as of libcoap's client, and of eight as of the npm package `coap`.
    for (token, most) in [(1, [11.0, 14.0]), (8, [18.5, 21.5])] {
        for integrity in [Integrity::None, Integrity::Crc32] {
            for (mode, most) in [Mode::Optimistic, Mode::Unidirectional].into_iter().zip(most) {
                let mut clients = Clients::of(integrity, mode);
                for _ in 0..30 {
                    clients.get(token);
                }
                let mean = clients.mean();
                assert!(mean <= most, "token of {token}, {mode:?}: {mean:.2} octets, not {most}");
                // MSN; 2 octets each of port, IP-ID and Message ID, and the token; and the IP-ID of the server.
                let check = if integrity == Integrity::None { 2 } else { 1 };
                assert_eq!(clients.get(token), [7 + token + check, 2 + check], "{mode:?}");
                assert_eq!(clients.link.last, if check == 2 { Format::Pt0c } else { Format::Pt1 });
            }
        }
    }
}

/// Linux takes a flow label for each port; the server's packets have one, too.
#[test]
fn a_flow_label_for_each_port_costs_three_octets() {
    for (mode, most) in [(Mode::Optimistic, 14.0), (Mode::Unidirectional, 17.0)] {
        for integrity in [Integrity::None, Integrity::Crc32] {
            let mut clients = Clients::new(channel(CidSpace::Small, integrity), mode, true);
            clients.labels = true;
            for _ in 0..30 {
                clients.get(1);
            }
            let mean = clients.mean();
            assert!(mean <= most, "{mode:?}: {mean:.2} octets, not {most}");
            // MSN, check, port, flow label, Message ID, token; MSN, check, flow label.
            let check = if integrity == Integrity::None { 2 } else { 1 };
            assert_eq!(clients.get(1), [1 + check + 2 + 3 + 2 + 1, 1 + check + 3], "{mode:?}");
            // One port: after a while the label is in the context again. The token stays in each request.
            let request = TestMessage { token: vec![1], ..TestMessage::get(7, &[b"time"]) };
            let last = (0..40)
                .map(|i| clients.exchange(40_000, &TestMessage { id: 7 + i, ..request.clone() }, None))
                .last();
            assert_eq!(last, Some([1 + check + 1, 1 + check]), "{mode:?}");
        }
    }
}

/// An answer proves that its request has arrived, with feedback or without.
#[test]
fn an_answer_acknowledges_a_request() {
    for mode in [Mode::Optimistic, Mode::Unidirectional] {
        let mut clients = Clients::of(Integrity::None, mode);
        clients.six = true;
        let [first, _] = clients.exchange(40_000, &TestMessage::get(1, &[b"time"]), None);
        let [second, _] = clients.exchange(40_000, &TestMessage::get(2, &[b"time"]), None);
        assert!(first > 57, "{first}");
        assert!(second <= 3, "{mode:?}: {second} octets");
        let [third, _] = clients.exchange(40_000, &TestMessage::get(3, &[b"time"]), None);
        assert!(third <= 3, "{mode:?}: {third} octets");
    }
}

/// Flows that live side by side end up with a context each, whatever their number is.
#[test]
fn flows_that_take_turns_get_a_context_each() {
    for count in [2, 3, 8] {
        let mut clients = Clients::of(Integrity::None, Mode::Optimistic);
        clients.six = true;
        for i in 0..40 * count {
            let (flow, number) = (i % count, i / count);
            let request = TestMessage::get(5_000 * flow + number, &[b"time"]);
            let octets = clients.exchange(40_000 + flow, &request, None);
            // One octet is that of the CID.
            assert!(number < 30 || octets[0] <= 4 && octets[1] <= 4, "{count} flows, {i}: {octets:?}");
        }
    }
}

/// A flow of many packets loses its context to a short one, gets it back, and keeps it.
#[test]
fn a_long_flow_that_comes_back_keeps_its_context() {
    let mut clients = Clients::of(Integrity::None, Mode::Optimistic);
    clients.six = true;
    for number in 0..30 {
        clients.exchange(40_000, &TestMessage::get(number, &[b"time"]), None);
    }
    for round in 0..10 {
        clients.get(1);
        let before = clients.sent;
        clients.exchange(40_000, &TestMessage::get(30 + round, &[b"time"]), None);
        let octets = clients.sent - before;
        let most = if round == 0 { 12 } else { 6 };
        assert!(octets <= most, "round {round}: {octets} octets");
    }
}

/// ETags of contents differ from request to request; a transfer has one.
#[test]
fn an_option_that_follows_the_content_goes_irregular_at_its_first_change() {
    let mut clients = Clients::of(Integrity::None, Mode::Optimistic);
    for number in 0..20_u8 {
        let request = TestMessage::get(u16::from(number), &[b"time"]);
        let [_, response] =
            clients.exchange(40_000, &request, Some(&[0xA0, 7, number.wrapping_mul(77), 9 ^ number]));
        assert!(number < 5 || response <= 9, "{number}: {response} octets by {:?}", clients.link.last);
    }
}

/// Blocks of five transfers, each from a port of its own, of which the first packet has another shape.
#[test]
fn transfers_from_new_ports_cost_little_more_than_one() {
    for (mode, most) in [(Mode::Optimistic, 16.0), (Mode::Unidirectional, 22.0)] {
        let mut clients = Clients::of(Integrity::None, mode);
        for transfer in 0..5_u8 {
            let (port, id) = (clients.port(), clients.random.next() as u16);
            for block in 0..8_u8 {
                let mut request = TestMessage::get(id.wrapping_add(u16::from(block)), &[b"example_data"]);
                request.token = vec![1 + block];
                let value = block << 4 | if block < 7 { 0x0E } else { 6 };
                request.options.push((23, vec![value]));
                clients.exchange(port, &request, Some(&[transfer]));
            }
        }
        assert!(clients.mean() <= most, "{mode:?}: {:.2} octets", clients.mean());
    }
}

/// Transfers of four blocks, as libcoap's client and server make them: nothing acknowledges a template for the last block, so that all
/// blocks have one template.
#[test]
fn blocks_of_short_transfers_share_a_template_without_feedback() {
    for integrity in [Integrity::None, Integrity::Crc32] {
        let mut clients = Clients::of(integrity, Mode::Unidirectional);
        let mut last = [0; 4];
        for transfer in 0..6_u8 {
            let (port, id) = (clients.port(), clients.random.next() as u16);
            for block in 0..4_u8 {
                let mut request = TestMessage::get(id.wrapping_add(block.into()), &[b"example_data"]);
                request.token = vec![1];
                if block > 0 {
                    request.token = vec![1 + block, 0, 0, 0, 0, 0, 2];
                    request.options.push((23, vec![block << 4 | 6]));
                }
                let value = block << 4 | if block < 3 { 0x0E } else { 6 };
                let options = vec![(4, vec![transfer]), (23, vec![value]), (28, vec![0x10, 0])];
                [_, last[usize::from(block)]] = clients.exchange_with(port, &request, options);
            }
        }
        // MSN, check, IP-ID, ETag, block.
        let check = if integrity == Integrity::None { 2 } else { 1 };
        assert_eq!(last, [1 + check + 3; 4]);
        assert!(clients.mean() <= 18.0, "{integrity:?}: {:.2} octets", clients.mean());
    }
}

/// Ten thousand clients with one request each, against one that sends all of them, with equal messages.
#[test]
fn ten_thousand_clients_cost_little_more_than_one() {
    let octets = |contexts: u16, is_one: bool| {
        let cids = if contexts > 16 { CidSpace::Large } else { CidSpace::Small };
        let channel = Channel::new(cids, contexts - 1, ProfileSet::default()).unwrap();
        let mut clients = Clients::new(channel, Mode::Optimistic, true);
        for _ in 0..10_000 {
            let token = clients.random.next().to_be_bytes()[..4].to_vec();
            let request = TestMessage { token, ..TestMessage::get(clients.random.next() as u16, &[b"time"]) };
            let port = clients.port();
            clients.exchange(if is_one { 40_000 } else { port }, &request, None);
        }
        // Both directions, payload and feedback included.
        (clients.sent + clients.packets / 2 * 6 + clients.link.feedback) as f64 / 10_000.0
    };
    for contexts in [16, 1_024] {
        let (many, one) = (octets(contexts, false), octets(contexts, true));
        assert!(many <= 1.15 * one, "{contexts} contexts: {many:.2} octets an exchange, one client {one:.2}");
    }
}
