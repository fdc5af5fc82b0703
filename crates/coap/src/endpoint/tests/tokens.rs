//! Tokens and Message IDs of a client: one Token for a transfer, numbers that count from a start that is hard to guess, and
//! no Token twice. RFC 7252, section 5.3.1.

use crate::config::Policy;
use std::vec::Vec;

use super::support::*;
use crate::*;

/// Ports that Linux chooses from, each as likely as another: 32,768 to 60,999 (`net.ipv4.ip_local_port_range`).
const PORTS: f64 = 28_232.0;

fn with_tokens(tokens: Tokens) -> Config {
    Config {
        policy: Policy { tokens, block_size: BlockSize::at_most(64), ..Policy::default() },
        ..Config::default()
    }
}

/// Runs a client whose randomness comes from a seed against a server that answers each request with `body`. Returns the
/// Tokens of the requests.
fn tokens_of(tokens: Tokens, request: &Request<'_>, body: &[u8]) -> Vec<Vec<u8>> {
    let (mut client, mut server) = (endpoint_with(7, with_tokens(tokens)), plain(with_tokens(tokens)));
    client.request(at(0), PEER, request).unwrap();
    let (mut seen, mut done) = (Vec::new(), false);
    for millis in 0..100 {
        for datagram in sent(&mut client, at(millis)) {
            seen.push(token(&datagram).octets().to_vec());
            for event in received(&mut server, at(millis), &datagram) {
                let Event::Request { id, .. } = event else { panic!("{event:?}") };
                server.respond(at(millis), id, &Response::content(body)).unwrap();
            }
        }
        for datagram in sent(&mut server, at(millis)) {
            let events = received(&mut client, at(millis), &datagram);
            done |= events.iter().any(|event| matches!(event, Event::Response { .. }));
        }
    }
    assert!(done);
    seen
}

fn token(datagram: &[u8]) -> Token {
    Message::read(datagram).unwrap().token
}

fn message_id(datagram: &[u8]) -> u16 {
    u16::from_be_bytes([datagram[2], datagram[3]])
}

fn uint(token: &Token) -> u64 {
    token.octets().iter().fold(0, |uint, octet| uint << 8 | u64::from(*octet))
}

/// Sends a request, and returns its datagram; the response follows at once.
fn exchange(client: &mut Endpoint<u8>, peer: u8) -> Vec<u8> {
    client.request(at(0), peer, &Request::get("/a")).unwrap();
    let datagram = sent(client, at(0)).pop().unwrap();
    let mut answer = [0; 16];
    let builder = Builder::new(
        &mut answer,
        Type::Acknowledgement,
        Code::CONTENT,
        message_id(&datagram),
        &token(&datagram),
    );
    let len = builder.unwrap().finish();
    assert!(client.handle_datagram(at(0), peer, &answer[..len]).is_some());
    datagram
}

/// RFC 7959 allows another Token for each block; there are servers that find the blocks of a body by their Token.
#[test]
fn a_transfer_has_one_token() {
    let body = [7; 300];
    for tokens in [Tokens::Counting, Tokens::Random(4), Tokens::Sequence(3)] {
        for (request, answer, messages) in [
            (Request::put("/a", &body[..]), &body[..10], 5),
            (Request::get("/a"), &body[..], 5),
            (Request::post("/a", &body[..]), &body[..], 9),
        ] {
            let seen = tokens_of(tokens, &request, answer);
            assert_eq!(seen.len(), messages);
            assert!(
                seen.iter().all(|token| *token == seen[0]),
                "{tokens:?} {:?}: {seen:02x?}",
                request.method
            );
        }
    }
}

/// A server that processes a retransmission again sends a second separate response, with another Message ID: of a block
/// that is complete, and no answer to the message under way.
#[test]
fn a_late_response_of_the_block_before_changes_nothing() {
    for (request, block) in
        [(Request::put("/a", &[7; 40][..]), number::BLOCK1), (Request::get("/a"), number::BLOCK2)]
    {
        let mut client = plain(Config {
            policy: Policy { block_size: BlockSize::MIN, ..Policy::default() },
            ..Config::default()
        });
        let call = client.request(at(0), PEER, &request).unwrap();
        let token = token(&sent(&mut client, at(0))[0]);
        let separate = |message_id: u16, num: u32, more: bool| {
            let code = if more && block == number::BLOCK1 { code::CONTINUE } else { Code::CONTENT };
            let mut datagram = [0; 64];
            let mut builder =
                Builder::new(&mut datagram, Type::Confirmable, code, message_id, &token).unwrap();
            builder.uint(block, Block { num, more, size: BlockSize::MIN }.to_uint()).unwrap();
            let payload = if block == number::BLOCK2 { &[num as u8; 16][..] } else { &[] };
            let len = builder.payload(payload).unwrap();
            datagram[..len].to_vec()
        };
        assert!(matches!(
            received(&mut client, at(10), &separate(100, 0, true))[..],
            [Event::Progress { .. }]
        ));
        let under_way = sent(&mut client, at(10)).pop().unwrap();
        let timeout = client.poll_timeout().unwrap();
        // The second response of block 0 is acknowledged, and nothing else: the message under way is sent again.
        assert_eq!(received(&mut client, at(20), &separate(101, 0, true)), []);
        assert_eq!(sent(&mut client, at(20)), [b"\x60\x00\x00\x65"]);
        client.handle_timeout(timeout);
        assert_eq!(sent(&mut client, timeout), [under_way]);
        assert!(matches!(
            received(&mut client, timeout, &separate(102, 1, true))[..],
            [Event::Progress { .. }]
        ));
        assert_eq!(received(&mut client, timeout, &separate(103, 1, true)), []);
        let events = received(&mut client, timeout, &separate(104, 2, false));
        assert!(matches!(&events[..], [Event::Response { call: of, .. }] if *of == call), "{events:?}");
    }
}

/// RFC 7641, section 3.6: the rest of a notification is fetched without Observe, by another Token; there is one for each
/// notification.
#[test]
fn the_rest_of_a_notification_has_a_token_of_its_own() {
    let mut client = plain(with_tokens(Tokens::Sequence(2)));
    client.request(at(0), PEER, &Request::get("/a").observe()).unwrap();
    let observed = token(&sent(&mut client, at(0))[0]);
    let mut fetched = Vec::new();
    for state in 0..2 {
        // Notifications of three blocks.
        for num in 0..3_u32 {
            let (message_type, token, message_id) = match num {
                0 if state == 0 => (Type::Acknowledgement, observed, 0),
                0 => (Type::NonConfirmable, observed, 50),
                _ => {
                    let datagram = sent(&mut client, at(0)).pop().unwrap();
                    fetched.push(token(&datagram));
                    (Type::Acknowledgement, token(&datagram), message_id(&datagram))
                }
            };
            let mut datagram = [0; 100];
            let mut builder =
                Builder::new(&mut datagram, message_type, Code::CONTENT, message_id, &token).unwrap();
            if num == 0 {
                builder.uint(number::OBSERVE, 5 + state).unwrap();
            }
            builder
                .uint(number::BLOCK2, Block { num, more: num < 2, size: BlockSize::at_most(64) }.to_uint())
                .unwrap();
            let len = builder.payload(&[state as u8; 64]).unwrap();
            let events = received(&mut client, at(0), &datagram[..len]);
            let is_whole = matches!(events[..], [Event::Notification { .. }]);
            assert_eq!(is_whole, num == 2, "{events:?}");
        }
    }
    assert_eq!((fetched[0], fetched[2]), (fetched[1], fetched[3]));
    assert!(fetched[0] != observed && fetched[2] != observed && fetched[0] != fetched[2]);
}

#[test]
fn tokens_and_message_ids_count_by_one_for_each_destination() {
    let mut client = endpoint_with(3, Config { policy: Policy::CLIENT, ..Config::default() });
    let mut latest = [None, None];
    for round in 0..600 {
        for peer in 0..2 {
            // Other requests to one destination change nothing for the other.
            if peer == 1 && round % 3 > 0 {
                continue;
            }
            let datagram = exchange(&mut client, peer);
            let (token, message_id) = (token(&datagram), message_id(&datagram));
            assert_eq!(token.len(), 3);
            if let Some((before, id_before)) = latest[usize::from(peer)].replace((uint(&token), message_id)) {
                assert_eq!((uint(&token), message_id), ((before + 1) & 0xFF_FFFF, id_before.wrapping_add(1)));
            }
        }
    }
    let [Some(one), Some(other)] = latest else { panic!() };
    assert!(one.0.abs_diff(other.0) > 1_000 && one.1.abs_diff(other.1) > 1_000, "{one:?} {other:?}");
}

/// "A client that is connected to the general Internet SHOULD use at least 32 bits of randomness." The bits that differ
/// between processes and between destinations, none of which follows from others, are counted. The section also notes
/// that a separate response needs no Message ID: Token and port alone have to suffice.
#[test]
fn starts_have_32_bits_that_are_hard_to_guess() {
    let config = Config { policy: Policy::CLIENT, ..Config::default() };
    let start = |client: &mut Endpoint<u8>, peer| {
        let datagram = exchange(client, peer);
        uint(&token(&datagram)) << 16 | u64::from(message_id(&datagram))
    };
    let mut processes: Vec<u64> = (0..1_000).map(|seed| start(&mut endpoint_with(seed, config), 0)).collect();
    let mut client = endpoint_with(1, config);
    let mut destinations: Vec<u64> = (0..=255).map(|peer| start(&mut client, peer)).collect();
    for starts in [&mut processes, &mut destinations] {
        let first = starts[0];
        let rank = rank(starts.iter().map(|start| start ^ first));
        assert_eq!(rank, 24 + 16);
        assert!(24.0 + PORTS.log2() >= 32.0);
        // Each bit takes both values about equally often.
        for bit in 0..rank {
            let ones = starts.iter().filter(|start| *start >> bit & 1 == 1).count();
            let share = ones as f64 / starts.len() as f64;
            assert!((0.35..0.65).contains(&share), "bit {bit}: {share}");
        }
        starts.sort_unstable();
        starts.dedup();
    }
    assert_eq!((processes.len(), destinations.len()), (1_000, 256));
}

/// Number of bits of which none is a sum of others: the rank over GF(2).
fn rank(vectors: impl Iterator<Item = u64>) -> u32 {
    let mut rows = [0_u64; 64];
    for mut vector in vectors {
        while vector != 0 {
            let top = vector.ilog2() as usize;
            if rows[top] == 0 {
                rows[top] = vector;
                break;
            }
            vector ^= rows[top];
        }
    }
    rows.iter().filter(|row| **row != 0).count() as u32
}

/// The Token of an observation stays in use while the others come round.
#[test]
fn a_token_in_use_is_left_out() {
    let mut client = plain(with_tokens(Tokens::Sequence(1)));
    exchange(&mut client, PEER);
    client.request(at(0), PEER, &Request::get("/b").observe()).unwrap();
    let datagram = sent(&mut client, at(0)).pop().unwrap();
    let observed = token(&datagram);
    assert_eq!(observed.octets(), [1]);
    let registered = [&[0x61, 0x45, 0, 1, 1, 0x61, 5, 0xFF][..], b"one"].concat();
    assert!(matches!(received(&mut client, at(0), &registered)[..], [Event::Notification { .. }]));
    let seen: Vec<Vec<u8>> =
        (0..510).map(|_| token(&exchange(&mut client, PEER)).octets().to_vec()).collect();
    let expected: Vec<Vec<u8>> =
        (2..=255).chain([0]).cycle().map(|octet| std::vec![octet]).take(510).collect();
    assert_eq!(seen, expected);
}

/// More requests than Tokens of one octet.
#[test]
fn tokens_become_longer_when_all_short_ones_are_in_use() {
    for tokens in [Tokens::Counting, Tokens::Sequence(1), Tokens::Random(1)] {
        let limits = Limits { max_calls: 700, max_flights: 700, ..Limits::default() };
        let mut config = Config { limits, ..with_tokens(tokens) };
        config.timing.transmission.nstart = 700;
        let mut client = endpoint_with(5, config);
        for _ in 0..700 {
            client.request(at(0), PEER, &Request::get("/a")).unwrap();
        }
        let mut seen: Vec<Token> = sent(&mut client, at(0)).iter().map(|datagram| token(datagram)).collect();
        if tokens == Tokens::Sequence(1) {
            assert!(seen[..256].iter().all(|token| token.len() == 1));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 700);
    }
}
