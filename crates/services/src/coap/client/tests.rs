#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc;
use std::thread;
use thinair_coap::Limits;

use thinair_coap::message::Message;
use thinair_coap::{Builder, CallError, Code, Type, code, number};

use super::*;

fn uri(scheme: &str, port: u16) -> Uri {
    format!("{scheme}://127.0.0.1:{port}/x").parse().unwrap()
}

fn request(uri: &Uri) -> Request<'static> {
    Request { options: uri.options(), ..Request::get("") }
}

fn go(_: TaskProgress<'_>) -> Continuation {
    Continuation::Go
}

/// Settings with short timeouts.
fn quick() -> Config {
    let mut config = Config::default();
    config.timing.transmission.ack_timeout = Duration::from_millis(20);
    config.timing.transmission.max_retransmit = 2;
    config
}

fn why(outcome: TaskOutcome) -> AddressError {
    match outcome.result {
        Err(ClientError::Failed(attempts)) => attempts.into_iter().next_back().unwrap().why,
        other => panic!("{other:?}"),
    }
}

/// Runs one task with other settings.
fn ask_with(config: Config, task: &ClientTask<'_>) -> TaskOutcome {
    Client::new(config).unwrap().ask(task, &mut go)
}

/// A server of one thread that answers each datagram with the octets that `answer` returns.
fn serve(answer: impl Fn(&Message<'_>) -> Vec<Vec<u8>> + Send + 'static) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            for octets in answer(&Message::read(&buffer[..len]).unwrap()) {
                socket.send_to(&octets, from).unwrap();
            }
        }
    });
    port
}

fn message(
    kind: Type,
    code: Code,
    mid: u16,
    of: &Message<'_>,
    observe: Option<u8>,
    payload: &[u8],
) -> Vec<u8> {
    let mut buffer = [0; 1_152];
    let mut builder = Builder::new(&mut buffer, kind, code, mid, &of.token).unwrap();
    if let Some(observe) = observe {
        builder.option(number::OBSERVE, &[observe]).unwrap();
    }
    let len = builder.payload(payload).unwrap();
    buffer[..len].to_vec()
}

#[test]
fn a_response_comes_with_what_it_took() {
    let port = serve(|request| {
        vec![message(Type::Acknowledgement, Code::CONTENT, request.message_id, request, None, b"here")]
    });
    let uri = uri("coap", port);
    let outcome = ask(&ClientTask::new(&uri, &request(&uri)), &mut go);
    let Ok(Ending::Response(response)) = outcome.result else { panic!("{outcome:?}") };
    assert_eq!((response.code, &*response.payload), (Code::CONTENT, &b"here"[..]));
    let report = outcome.report;
    assert_eq!((report.sent, report.received, report.transmissions, report.retransmissions), (1, 1, 1, 0));
    assert_eq!(report.address.map(|address| address.port()), Some(port));
    // From the measurement and its variation.
    assert!(report.first.is_some() && report.rto.is_some_and(|rto| Some(rto) > report.first));
    // The header with its Token and the path, and the header with the payload.
    assert_eq!((report.sent_octets, report.received_octets), (4 + 3 + 2, 4 + 3 + 5));
}

#[test]
fn a_body_has_its_limit_also_in_one_message() {
    let port = serve(|request| {
        vec![message(Type::Acknowledgement, Code::CONTENT, request.message_id, request, None, b"here")]
    });
    let uri = uri("coap", port);
    let asked = request(&uri);
    let limited = |max_body| {
        let config = Config { limits: Limits { max_body, ..Limits::default() }, ..Config::default() };
        ask_with(config, &ClientTask::new(&uri, &asked))
    };
    assert!(limited(4).result.is_ok());
    assert_eq!(why(limited(3)), AddressError::Call(CallError::TooLarge { limit: 3 }));
}

#[test]
fn a_closed_port_is_reported_by_icmp_and_at_once() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = uri("coap", port);
    let outcome = ask(&ClientTask::new(&uri, &request(&uri)), &mut go);
    let message = outcome.result.as_ref().unwrap_err().to_string();
    assert_eq!(message, format!("127.0.0.1:{port}: nobody listens there (ICMP: port unreachable)"));
    assert_eq!(why(outcome), AddressError::Refused { icmp: true });
}

#[test]
fn silence_is_reported_with_what_was_sent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = uri("coap", silent.local_addr().unwrap().port());
    let asked = request(&uri);
    let outcome = ask_with(quick(), &ClientTask::new(&uri, &asked));
    // After 22 to 27 ms, 65 to 80 ms, and MAX_TRANSMIT_SPAN of 90 ms, unless it is late; given up after MAX_TRANSMIT_WAIT.
    let sent = outcome.report.transmissions;
    assert!((2..=4).contains(&sent) && outcome.report.retransmissions == sent - 1, "{sent}");
    let AddressError::NoAnswer { transmissions, over, icmp: None } = why(outcome) else { panic!() };
    assert!(transmissions == sent && over >= Duration::from_millis(210));

    let limited = ClientTask { limit: Some(Duration::from_millis(30)), ..ClientTask::new(&uri, &asked) };
    let outcome = ask(&limited, &mut go);
    let message = outcome.result.unwrap_err().to_string();
    assert!(
        message.starts_with("no response within 30ms") && message.ends_with("was sent 1 message"),
        "{message}"
    );

    // An observation without a notification fails like a request.
    let observing = asked.clone().observe();
    let limited =
        ClientTask { observe_for: Some(Duration::from_millis(30)), ..ClientTask::new(&uri, &observing) };
    let message = ask(&limited, &mut go).result.unwrap_err().to_string();
    assert!(message.starts_with("no response within 30ms"), "{message}");
}

#[test]
fn what_is_rejected_is_reported() {
    let port = serve(|request| {
        let octets = message(Type::Reset, Code::EMPTY, request.message_id, request, None, b"");
        // A Reset is Empty: no Token.
        vec![[&[octets[0] & 0xF0], &octets[1..4]].concat()]
    });
    let uri = uri("coap", port);
    let outcome = ask(&ClientTask::new(&uri, &request(&uri)), &mut go);
    assert_eq!(why(outcome), AddressError::Call(CallError::Reset));
}

/// Returns the error of a request that is answered by a Confirmable response, and the message that the server gets then.
fn rejected(max_body: usize, answer: fn(Builder<'_>) -> Option<usize>) -> (AddressError, Vec<u8>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = uri("coap", socket.local_addr().unwrap().port());
    let server = thread::spawn(move || {
        let mut buffer = [0; 1_152];
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let token = Message::read(&buffer[..len]).unwrap().token;
        let mut response = [0; 1_152];
        let builder = Builder::new(&mut response, Type::Confirmable, Code::CONTENT, 0x7700, &token).unwrap();
        let len = answer(builder).unwrap();
        socket.send_to(&response[..len], from).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let len = socket.recv(&mut buffer).unwrap();
        buffer[..len].to_vec()
    });
    let config = Config { limits: Limits { max_body, ..Limits::default() }, ..Config::default() };
    let outcome = ask_with(config, &ClientTask::new(&uri, &request(&uri)));
    (why(outcome), server.join().unwrap())
}

/// RFC 7252, section 4.2: "MUST either (a) acknowledge a Confirmable message with an Acknowledgement message or (b)
/// reject" it. The server would send it four times more.
#[test]
fn a_confirmable_response_that_is_rejected_is_answered_before_the_client_ends() {
    type Answer = fn(Builder<'_>) -> Option<usize>;
    let critical: Answer = |mut builder| {
        builder.option(9, b"x").ok()?;
        builder.payload(b"here").ok()
    };
    let block: Answer = |mut builder| {
        // A block of 64 octets that has four.
        builder.option(number::BLOCK2, &[0x0A]).ok()?;
        builder.payload(b"here").ok()
    };
    let whole: Answer = |builder| builder.payload(b"here").ok();
    let large: Answer = |mut builder| {
        builder.option(number::BLOCK2, &[0x08]).ok()?;
        builder.option(number::SIZE2, &[100]).ok()?;
        builder.payload(&[0; 16]).ok()
    };
    let (reset, acknowledgement) = ([0x70, 0, 0x77, 0], [0x60, 0, 0x77, 0]);
    for (answer, error, reply) in [
        (critical, CallError::BadOption { number: 9 }, reset),
        (block, CallError::BadBlock, acknowledgement),
        (whole, CallError::TooLarge { limit: 3 }, acknowledgement),
        (large, CallError::TooLarge { limit: 50 }, acknowledgement),
    ] {
        let max_body = if let CallError::TooLarge { limit } = error { limit } else { 1_000 };
        assert_eq!(rejected(max_body, answer), (AddressError::Call(error), reply.to_vec()));
    }
}

#[test]
fn an_observation_ends_when_it_is_enough() {
    let port = serve(|request| {
        let mid = request.message_id;
        match request.options.uint(number::OBSERVE) {
            Some(0) => vec![
                message(Type::Acknowledgement, Code::CONTENT, mid, request, Some(1), b"one"),
                message(Type::NonConfirmable, Code::CONTENT, 7, request, Some(2), b"two"),
                message(Type::NonConfirmable, Code::CONTENT, 8, request, Some(3), b"three"),
                message(Type::NonConfirmable, Code::CONTENT, 9, request, Some(4), b"four"),
            ],
            Some(1) => vec![message(Type::Acknowledgement, Code::CONTENT, mid, request, None, b"last")],
            _ => vec![],
        }
    });
    let uri = uri("coap", port);
    let observing = request(&uri).observe();
    let mut seen = Vec::new();
    let outcome = ask(&ClientTask::new(&uri, &observing), &mut |message| {
        let TaskProgress::Notification(message, _) = message else { return Continuation::Go };
        seen.push(message.payload.to_vec());
        if seen.len() == 3 { Continuation::Stop } else { Continuation::Go }
    });
    assert_eq!(outcome.result.unwrap(), Ending::Stopped);
    assert_eq!(seen, [&b"one"[..], b"two", b"three"]);
    assert_eq!(outcome.report.transmissions, 2, "it has said that it is over");
}

#[test]
fn a_resource_that_cannot_be_observed_answers_once() {
    let port = serve(|request| {
        vec![message(Type::Acknowledgement, Code::CONTENT, request.message_id, request, None, b"once")]
    });
    let uri = uri("coap", port);
    let outcome = ask(&ClientTask::new(&uri, &request(&uri).observe()), &mut |message| panic!("{message:?}"));
    assert!(matches!(outcome.result, Ok(Ending::Response(response)) if *response.payload == *b"once"));
}

#[test]
fn streams_that_end_too_early_are_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let uri = uri("coap+tcp", port);
    let asked = request(&uri);
    // A server that hangs up at once; sends a message that is not a CSM; sends Abort.
    let said: [&[u8]; 3] = [b"", b"\x00\x45", b"\x00\xe1\x00\xe5"];
    let server = thread::spawn(move || {
        for octets in said {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(octets).unwrap();
            if !octets.is_empty() {
                // Until the client has hung up, so that nothing is reset.
                let _ = stream.read_to_end(&mut Vec::new());
            }
        }
    });
    let message = [(); 3].map(|()| why(ask(&ClientTask::new(&uri, &asked), &mut go)));
    server.join().unwrap();
    assert!(matches!(&message[0], AddressError::Closed(_)), "{message:?}");
    assert_eq!(
        message[1].to_string(),
        "the connection was closed before there was a response: the first message is not a CSM"
    );
    assert_eq!(
        message[2].to_string(),
        "the connection was closed before there was a response: the other side has sent Abort"
    );
}

#[test]
fn a_port_without_a_listener_is_reported() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = uri("coap+tcp", port);
    let outcome = ask(&ClientTask::new(&uri, &request(&uri)), &mut go);
    assert_eq!(why(outcome).to_string(), "nobody listens there");
}

#[test]
fn another_address_is_asked_only_if_that_does_no_harm() {
    let silent = AddressError::NoAnswer { transmissions: 5, over: Duration::ZERO, icmp: None };
    let refused = AddressError::Refused { icmp: true };
    for (method, after_silence) in
        [(Code::GET, true), (Code::PUT, true), (Code::POST, false), (code::PATCH, false), (code::FETCH, true)]
    {
        assert_eq!((silent.allows_another(method), refused.allows_another(method)), (after_silence, true));
        assert!(!AddressError::Call(CallError::Reset).allows_another(method));
    }
}

/// RFC 7252, section 8.1: a request to a group is Non-confirmable, and has several answers.
#[test]
fn a_group_is_no_server() {
    for group in ["224.0.1.187", "[ff02::fd%25lo]"] {
        let uri: Uri = format!("coap://{group}/").parse().unwrap();
        assert_eq!(why(ask(&ClientTask::new(&uri, &request(&uri)), &mut go)), AddressError::Group);
    }
}

#[test]
fn a_zone_that_is_not_there_is_reported() {
    let uri: Uri = "coap://[fe80::1%25nothere]/".parse().unwrap();
    let message = ask(&ClientTask::new(&uri, &request(&uri)), &mut go).result.unwrap_err().to_string();
    assert!(
        message.contains("cannot find the host `[fe80::1%25nothere]`") && message.contains("nothere"),
        "{message}"
    );
}

/// Returns a server that answers each request with its own path, and reports the port, Token and Message ID of each.
fn witness(address: &str) -> (SocketAddr, mpsc::Receiver<(u16, u64, u16)>) {
    let socket = UdpSocket::bind(address).unwrap();
    let address = socket.local_addr().unwrap();
    let (seen, witnessed) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let request = Message::read(&buffer[..len]).unwrap();
            if request.code.class() != 0 || request.code == Code::EMPTY {
                continue;
            }
            let token = request.token.octets().iter().fold(0, |uint, octet| uint << 8 | u64::from(*octet));
            let _ = seen.send((from.port(), token, request.message_id));
            let mut answer = [0; 1_152];
            let mut builder = Builder::new(
                &mut answer,
                Type::Acknowledgement,
                Code::CHANGED,
                request.message_id,
                &request.token,
            )
            .unwrap();
            if let Some(block) = request.options.uint(number::BLOCK1) {
                builder.uint(number::BLOCK1, block).unwrap();
            }
            let len = builder.payload(b"here").unwrap();
            socket.send_to(&answer[..len], from).unwrap();
        }
    });
    (address, witnessed)
}

/// All tasks of a client to servers of one address family have one port; Tokens and Message IDs count for each server.
#[test]
fn tasks_of_a_client_share_a_port_and_count() {
    for hosts in [["127.0.0.1:0", "127.0.0.2:0"], ["[::1]:0", "[::1]:0"]] {
        let servers = hosts.map(witness);
        let mut client = Client::new(Client::config()).unwrap();
        for round in 0..12 {
            // The first server in each round, the other one in every third.
            for (address, _) in servers.iter().take(if round % 3 == 0 { 2 } else { 1 }) {
                let uri: Uri = format!("coap://{address}/x").parse().unwrap();
                let outcome = client.ask(&ClientTask::new(&uri, &request(&uri)), &mut go);
                assert!(matches!(&outcome.result, Ok(Ending::Response(_))), "{outcome:?}");
                assert_eq!((outcome.report.transmissions, outcome.report.retransmissions), (1, 0));
            }
        }
        let seen = servers.map(|(_, witnessed)| witnessed.try_iter().collect::<Vec<_>>());
        assert_eq!(seen.each_ref().map(Vec::len), [12, 4]);
        for of_server in &seen {
            for pair in of_server.windows(2) {
                assert_eq!(pair[1].0, seen[0][0].0, "port");
                assert_eq!(pair[1].1, (pair[0].1 + 1) & 0xFF_FFFF, "Token");
                assert_eq!(pair[1].2, pair[0].2.wrapping_add(1), "Message ID");
            }
        }
        assert_eq!(seen[1][0].0, seen[0][0].0);
        assert_ne!((seen[1][0].1, seen[1][0].2), (seen[0][0].1, seen[0][0].2));
    }
}

/// Another process has another port, and other starts.
#[test]
fn clients_have_starts_of_their_own() {
    let (address, witnessed) = witness("127.0.0.1:0");
    let uri: Uri = format!("coap://{address}/x").parse().unwrap();
    let mut clients: Vec<Client> = (0..16).map(|_| Client::new(Client::config()).unwrap()).collect();
    for client in &mut clients {
        assert!(client.ask(&ClientTask::new(&uri, &request(&uri)), &mut go).result.is_ok());
    }
    let seen: Vec<_> = witnessed.try_iter().collect();
    let distinct = |of: fn(&(u16, u64, u16)) -> u64| seen.iter().map(of).collect::<BTreeSet<_>>().len();
    // Two of 16 random numbers of 16 bits are equal once in 550 runs, three of 24 bits practically never.
    assert_eq!(distinct(|seen| seen.0.into()), 16);
    assert!(distinct(|seen| seen.1) >= 15 && distinct(|seen| seen.2.into()) >= 14, "{seen:?}");
}

#[test]
fn all_blocks_of_a_body_have_one_token() {
    let (address, witnessed) = witness("127.0.0.1:0");
    let uri: Uri = format!("coap://{address}/x").parse().unwrap();
    let put = Request { method: Code::PUT, payload: vec![7; 4_096].into(), ..request(&uri) };
    let outcome = ask(&ClientTask::new(&uri, &put), &mut go);
    assert!(outcome.result.is_ok(), "{outcome:?}");
    let seen: Vec<_> = witnessed.try_iter().collect();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|(port, token, _)| (*port, *token) == (seen[0].0, seen[0].1)), "{seen:?}");
}

/// What nobody waits for any more: the error of a server does not end the request to the next one, and the late response of
/// an earlier server is acknowledged.
#[test]
fn a_task_has_nothing_of_the_task_before() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (open, witnessed) = witness("127.0.0.1:0");
    let late = UdpSocket::bind("127.0.0.1:0").unwrap();
    late.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut client = Client::new(quick()).unwrap();
    let mut task = |address: SocketAddr, limit: Option<Duration>| {
        let uri: Uri = format!("coap://{address}/x").parse().unwrap();
        client.ask(&ClientTask { limit, ..ClientTask::new(&uri, &request(&uri)) }, &mut go)
    };
    for _ in 0..3 {
        assert_eq!(why(task(closed, None)), AddressError::Refused { icmp: true });
        assert!(task(open, None).result.is_ok());
    }
    // No response in time; it arrives before the next task begins.
    let outcome = task(late.local_addr().unwrap(), Some(Duration::from_millis(30)));
    assert!(matches!(outcome.result, Err(ClientError::TimeLimit { .. })), "{outcome:?}");
    let mut buffer = [0; 1_152];
    let (len, from) = late.recv_from(&mut buffer).unwrap();
    let response =
        message(Type::Confirmable, Code::CONTENT, 0x7700, &Message::read(&buffer[..len]).unwrap(), None, b"");
    late.send_to(&response, from).unwrap();
    let outcome = task(open, None);
    assert!(outcome.result.is_ok());
    assert_eq!((outcome.report.received, outcome.report.transmissions), (1, 1));
    // Rejected: the request has ended. What it was sent again comes before.
    let reply = std::iter::from_fn(|| late.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec()));
    assert!(reply.take(5).any(|reply| reply == [0x70, 0, 0x77, 0]));
    assert!(witnessed.try_iter().all(|(port, ..)| port == from.port()));
}
