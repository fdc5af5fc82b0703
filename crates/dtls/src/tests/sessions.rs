//! Sessions: new addresses, restarts of either end, limits.

use core::time::Duration;
use std::vec::Vec;

use super::support::*;
use crate::*;

#[test]
fn a_session_survives_a_new_address_by_its_connection_id() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    let session = path.session();
    path.impairments.loss = 100;
    let late = path.send(b"late");
    path.impairments.loss = 0;
    path.address = 7;
    path.send(b"from elsewhere");
    path.run(Duration::ZERO);
    assert_eq!(path.at_server, [(session, b"from elsewhere".to_vec())]);
    assert_eq!(path.server_events.last(), Some(&ServerEvent::Moved { session, peer: 7 }));
    // An older record does not move it, nor does one that is forged or repeated: RFC 9146, section 6.
    path.forge(true, 9, &late);
    let repeated = path.sent.last().unwrap().1.clone();
    path.forge(true, 9, &repeated);
    path.run(Duration::ZERO);
    assert_eq!((path.at_server.len(), path.server.peer(session)), (2, Some(7)));
    path.answer(session, b"there");
    path.run(Duration::ZERO);
    assert_eq!(path.at_client, [b"there"]);
}

#[test]
fn without_a_connection_id_a_new_address_needs_a_new_session() {
    let config = ClientConfig { cid: None, ..ClientConfig::default() };
    let mut path = Path::connected(config, ServerConfig::default());
    path.address = 7;
    path.send(b"lost");
    path.run(Duration::ZERO);
    // The server's alert has started the handshake.
    assert_eq!(path.client_events, [ClientEvent::Connected; 2]);
    path.send(b"heard");
    path.run(Duration::ZERO);
    assert_eq!(path.at_server, [(path.session(), b"heard".to_vec())]);
}

/// A server that was restarted has no session, and the client that sends it a record has another one a round trip later.
#[test]
fn a_restart_of_the_server_leads_to_a_new_session_at_once() {
    for cid in [None, Some(Cid::EMPTY), Cid::new(b"me")] {
        let mut path =
            Path::connected(ClientConfig { cid, ..ClientConfig::default() }, ServerConfig::default());
        path.server = Server::new(std::vec![psk(b"phone")], ServerConfig::default(), numbers(99));
        // Each is answered by an alert, also during the handshake.
        path.send(b"lost");
        path.send(b"lost");
        path.run(Duration::ZERO);
        path.send(b"heard");
        path.run(Duration::ZERO);
        assert_eq!(path.at_server, [(path.session(), b"heard".to_vec())]);
    }
}

/// A server that drops records of no session, as others do: the client tries again by itself.
#[test]
fn silence_leads_to_a_new_session() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    path.server = Server::new(std::vec![psk(b"phone")], ServerConfig::default(), numbers(99));
    let start = path.now;
    for wait in [0, 2, 4, 8] {
        path.run(Duration::from_millis(1_000 * wait + 1));
        path.impairments.loss = 100;
        path.send(b"request");
        path.impairments.loss = 0;
        path.run(Duration::ZERO);
        if path.client_events.len() > 1 {
            break;
        }
    }
    assert_eq!(path.client_events, [ClientEvent::Connected; 2]);
    assert!(path.now.since(start) < Duration::from_secs(20));
}

/// Forged alerts do not end a session; they cause a handshake in ten seconds at most.
#[test]
fn an_alert_that_is_not_authentic_ends_no_session() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    let session = path.session();
    path.impairments.loss = 100;
    for second in 0..60 {
        path.forge(false, 1, &[21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, second, 0, 2, 2, 10]);
        path.forge(true, 1, &[21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, second, 0, 2, 2, 10]);
        path.run(Duration::from_secs(1));
    }
    let hellos = path.sent.iter().filter(|(to_server, datagram)| *to_server && datagram[13] == 1).count();
    assert!(hellos <= 2 * 6 + 2, "{hellos}");
    path.impairments.loss = 0;
    path.send(b"still here");
    path.run(Duration::ZERO);
    assert_eq!(path.at_server, [(session, b"still here".to_vec())]);
}

/// RFC 6347, section 4.2.8: a session stays until another client at its address has proved that it has the key.
#[test]
fn a_handshake_that_does_not_end_displaces_no_session() {
    let config = ClientConfig { cid: None, ..ClientConfig::default() };
    let mut path = Path::connected(config, ServerConfig::default());
    let session = path.session();
    let mut stranger = Client::new(Psk::new(b"phone", b"guessed").unwrap(), config, numbers(5));
    let mut buffer = [0; 2_048];
    stranger.connect(path.now);
    for _ in 0..6 {
        while let Some(len) = stranger.poll_datagram(path.now, &mut buffer) {
            assert!(path.server.handle_datagram(path.now, 1, &mut &mut buffer[..len]).is_none());
        }
        while let Some((_, len)) = path.server.poll_datagram(path.now, &mut buffer) {
            assert!(stranger.handle_datagram(path.now, &mut &mut buffer[..len]).is_none());
        }
    }
    assert!(!stranger.is_connected());
    path.send(b"still here");
    path.run(Duration::ZERO);
    assert_eq!(path.at_server, [(session, b"still here".to_vec())]);
    // The right client, restarted at its address.
    path.client = Client::new(psk(b"phone"), config, numbers(6));
    path.client.connect(path.now);
    path.run(Duration::ZERO);
    assert!(path.server_events.contains(&ServerEvent::Closed { session }));
    path.send(b"again");
    path.run(Duration::ZERO);
    assert_eq!(path.at_server.last(), Some(&(path.session(), b"again".to_vec())));
    assert_eq!(path.server.sessions(), [path.session()]);
}

#[test]
fn either_end_closes_a_session() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    let session = path.session();
    assert_eq!(path.server.identity(session), Some(&b"phone"[..]));
    path.server.close(session);
    path.run(Duration::ZERO);
    assert_eq!(path.client_events.last(), Some(&ClientEvent::Closed(AlertDescription::CLOSE_NOTIFY)));
    assert!(!path.client.is_connected() && path.server.sessions().is_empty());
    assert_eq!(path.server.send(session, b"", &mut [0; 100]), Err(SendError::NotConnected));
    path.client.connect(path.now);
    path.run(Duration::ZERO);
    let session = path.session();
    path.client.close();
    path.run(Duration::ZERO);
    assert_eq!(path.server_events.last(), Some(&ServerEvent::Closed { session }));
    assert_eq!(path.server.identity(session), None);
}

/// Connects clients of these addresses, one after the other.
pub(super) fn connect(server: &mut Server<u16>, now: thinair_wire::time::Instant, address: u16) -> Client {
    let mut client = Client::new(psk(b"tag"), ClientConfig::default(), numbers(u64::from(address)));
    let mut buffer = [0; 2_048];
    client.connect(now);
    while !client.is_connected() {
        while let Some(len) = client.poll_datagram(now, &mut buffer) {
            assert!(server.handle_datagram(now, address, &mut &mut buffer[..len]).is_none());
        }
        while let Some((_, len)) = server.poll_datagram(now, &mut buffer) {
            assert!(client.handle_datagram(now, &mut &mut buffer[..len]).is_none());
        }
    }
    client
}

#[test]
fn a_further_session_displaces_the_one_that_is_unused_for_longest() {
    let config = ServerConfig { max_sessions: 3, ..ServerConfig::default() };
    let mut server = Server::<u16>::new(std::vec![psk(b"tag")], config, numbers(2));
    let at = |second| thinair_wire::time::Instant::from_millis(1_000 * second);
    let mut clients: Vec<_> = (0..3).map(|place| connect(&mut server, at(u64::from(place)), place)).collect();
    let mut buffer = [0; 100];
    let len = clients[0].send(at(5), b"", &mut buffer).unwrap();
    assert!(server.handle_datagram(at(5), 0, &mut &mut buffer[..len]).is_some());
    let connected = |server: &mut Server<u16>| {
        let mut sessions = server.sessions();
        sessions.sort_by_key(|session| server.peer(*session));
        sessions.iter().filter_map(|session| server.peer(*session)).collect::<Vec<_>>()
    };
    assert_eq!(connected(&mut server), [0, 1, 2]);
    connect(&mut server, at(6), 3);
    assert_eq!(connected(&mut server), [0, 2, 3]);
}

/// Clients that return cookies, and have no key.
#[test]
fn handshakes_displace_no_session() {
    let config = ServerConfig { max_sessions: 3, max_handshakes: 2, ..ServerConfig::default() };
    let mut server = Server::<u16>::new(std::vec![psk(b"tag")], config, numbers(2));
    let now = thinair_wire::time::Instant::from_millis(1_000_000);
    connect(&mut server, now, 0);
    let session = server.sessions();
    for address in 1..100 {
        let mut client = Client::new(psk(b"tag"), ClientConfig::default(), numbers(u64::from(address)));
        let mut buffer = [0; 2_048];
        client.connect(now);
        for _ in 0..2 {
            let len = client.poll_datagram(now, &mut buffer).unwrap();
            assert!(server.handle_datagram(now, address, &mut &mut buffer[..len]).is_none());
            let (_, len) = server.poll_datagram(now, &mut buffer).unwrap();
            assert!(client.handle_datagram(now, &mut &mut buffer[..len]).is_none());
        }
        assert!(server.handshakes() <= 2);
    }
    assert_eq!(server.sessions(), session);
}
