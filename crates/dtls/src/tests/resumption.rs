//! Resumed sessions: RFC 5246, section 7.3.

use core::time::Duration;
use std::vec::Vec;

use super::support::*;
use crate::prf::MasterSecret;
use crate::*;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Ends the session, and connects again. Returns the number of datagrams of the handshake, and their octets.
fn reconnect(path: &mut Path) -> (usize, usize) {
    path.client.close();
    path.run(Duration::ZERO);
    path.sent.clear();
    path.client.connect(path.now);
    path.run(Duration::ZERO);
    assert_eq!(path.client_events.last(), Some(&ClientEvent::Connected));
    (path.sent.len(), path.sent.iter().map(|(_, datagram)| datagram.len()).sum())
}

/// Sends data both ways.
fn exchange(path: &mut Path) {
    path.at_client.clear();
    path.at_server.clear();
    path.send(b"request");
    path.run(Duration::ZERO);
    let session = path.session();
    assert_eq!(path.at_server, [(session, b"request".to_vec())]);
    assert_eq!(path.server.identity(session), Some(&b"phone"[..]));
    path.answer(session, b"response");
    path.run(Duration::ZERO);
    assert_eq!(path.at_client, [b"response"]);
}

#[test]
fn a_session_is_resumed_by_a_shorter_handshake() {
    for (cid, octets) in [(Some(Cid::EMPTY), 446), (Cid::new(b"me"), 453), (None, 426)] {
        let config = ClientConfig { cid, ..ClientConfig::default() };
        let mut path = Path::connected(config, ServerConfig::default());
        for _ in 0..2 {
            assert_eq!(reconnect(&mut path), (5, octets));
            exchange(&mut path);
        }
        assert_eq!((path.server.sessions().len(), path.server.handshakes()), (1, 0));
        // Its connection ID is negotiated anew, and the session found by it.
        path.address = 7;
        path.send(b"from elsewhere");
        path.run(Duration::ZERO);
        assert_eq!(path.server.peer(path.session()), Some(7));
    }
}

#[test]
fn a_server_that_has_lost_or_never_kept_a_session_makes_a_new_one() {
    let restarted = |max_resumable: usize| {
        Server::new(
            std::vec![psk(b"phone")],
            ServerConfig { max_resumable, ..ServerConfig::default() },
            numbers(99),
        )
    };
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    for (max_resumable, first, second) in [(1, (6, 503), (5, 446)), (0, (6, 495), (6, 479))] {
        path.server = restarted(max_resumable);
        assert_eq!([reconnect(&mut path), reconnect(&mut path)], [first, second]);
        exchange(&mut path);
    }
}

/// A day behind its full handshake, however often it was resumed; or at once, behind a fatal alert.
#[test]
fn a_session_expires() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    for (wait, datagrams) in [(DAY / 2, 5), (DAY / 2, 6), (Duration::from_secs(1), 5)] {
        path.run(wait);
        assert_eq!(reconnect(&mut path).0, datagrams);
    }
    let mut buffer = [0; 64];
    let len = path.client.seal_fatal_alert(&mut buffer).unwrap();
    path.forge(true, 1, &buffer[..len]);
    path.run(Duration::ZERO);
    assert_eq!(path.server.sessions(), []);
    assert_eq!(reconnect(&mut path).0, 6);
}

#[test]
fn the_newest_sessions_can_be_resumed() {
    let config = ServerConfig { max_resumable: 2, ..ServerConfig::default() };
    let mut path = Path::new(client(ClientConfig::default()), server(config));
    let clients: Vec<_> = (0..3)
        .map(|number| {
            path.address = number;
            path.client = Client::new(psk(b"phone"), ClientConfig::default(), numbers(number.into()));
            path.client.connect(path.now);
            path.run(Duration::ZERO);
            core::mem::replace(&mut path.client, client(ClientConfig::default()))
        })
        .collect();
    // The first one is displaced by the third one, and then displaces the second one.
    for (client, (address, datagrams)) in clients.into_iter().zip([(0, 6), (1, 6), (2, 6)]) {
        path.address = address;
        path.client = client;
        assert_eq!(reconnect(&mut path).0, datagrams);
        assert_eq!(reconnect(&mut path).0, 5);
    }
}

/// The session ID is in the clear.
#[test]
fn a_session_id_without_its_secret_resumes_nothing() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    let session = path.session();
    path.impairments.loss = 100;
    path.client.close();
    path.run(Duration::ZERO);
    path.impairments.loss = 0;
    path.client.set_secret(MasterSecret::new(&psk(b"phone"), &[0; 32]));
    path.client.connect(path.now);
    path.run(Duration::from_secs(3_600));
    // It does not open the server's Finished.
    let failure = Failure::NotConfirmed { transmissions: 6 };
    assert_eq!(path.client_events.last(), Some(&ClientEvent::Failed(failure)));
    assert!(!path.client.is_connected());
    assert_eq!((path.server.sessions(), path.server.handshakes()), (std::vec![session], 0));
    // The next handshake is with the key.
    assert_eq!(reconnect(&mut path).0, 6);
    exchange(&mut path);
}

#[test]
fn resumption_survives_losses_duplicates_and_reordering() {
    let impairments = Impairments { loss: 20, duplicates: 10, reordered: 20 };
    let mut times = Vec::new();
    for seed in 0..300 {
        let mut path = Path::impaired(
            client(ClientConfig::default()),
            server(ServerConfig::default()),
            impairments,
            seed,
        );
        path.impairments.loss = 0;
        path.client.connect(path.now);
        path.run(Duration::ZERO);
        path.client.close();
        path.run(Duration::ZERO);
        path.impairments = impairments;
        let start = path.now;
        while !path.client.is_connected() {
            path.client.connect(path.now);
            path.run(Duration::from_millis(100));
        }
        times.push(path.now.since(start));
        let mut answered = 0;
        for number in 0..20_u8 {
            path.send(&[number]);
            path.run(Duration::from_secs(1));
            for (session, content) in core::mem::take(&mut path.at_server) {
                path.answer(session, &content);
            }
            path.run(Duration::from_secs(1));
            answered += path.at_client.len();
            path.at_client.clear();
        }
        assert!((5..=20).contains(&answered), "seed {seed}: {answered} of 20");
        path.run(Duration::from_secs(3_600));
        assert_eq!((path.client.poll_timeout(), path.server.poll_timeout()), (None, None));
    }
    times.sort();
    let [half, worst] = [150, 299].map(|place| times[place]);
    std::println!("20 % loss: 150 sessions are resumed within {half:?}, 300 within {worst:?}");
    assert!(half <= Duration::from_secs(2) && worst <= 2 * Duration::from_secs(63));
}
