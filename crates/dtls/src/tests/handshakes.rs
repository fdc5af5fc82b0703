//! Handshakes: octets, losses, fragments, errors.

use core::time::Duration;
use std::vec::Vec;

use super::support::*;
use crate::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// A handshake of two round trips for the cookie and the keys, and another one for Finished.
#[test]
fn a_handshake_has_few_octets() {
    for (has_cids, expected) in [(true, 487), (false, 467)] {
        let client_config = ClientConfig { cid: has_cids.then_some(Cid::EMPTY), ..ClientConfig::default() };
        let path = Path::connected(client_config, ServerConfig { has_cids, ..ServerConfig::default() });
        let octets: usize = path.sent.iter().map(|(_, datagram)| datagram.len()).sum();
        std::println!(
            "{} datagrams, {octets} octets of UDP payload; connection IDs: {has_cids}",
            path.sent.len()
        );
        assert_eq!((path.sent.len(), octets), (6, expected));
    }
}

#[test]
fn a_handshake_survives_losses_duplicates_and_reordering() {
    let impairments = Impairments { loss: 20, duplicates: 10, reordered: 20 };
    let mut times = Vec::new();
    for seed in 0..300 {
        let mut path = Path::impaired(
            client(ClientConfig::default()),
            server(ServerConfig::default()),
            impairments,
            seed,
        );
        let start = path.now;
        // Who gives up tries again, as after a packet of the application.
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
                assert!(content[0] <= number);
                path.answer(session, &content);
            }
            path.run(Duration::from_secs(1));
            answered += path.at_client.len();
            path.at_client.clear();
        }
        assert!((5..=20).contains(&answered), "seed {seed}: {answered} of 20");
        path.run(HOUR);
        assert_eq!((path.client.poll_timeout(), path.server.poll_timeout()), (None, None));
    }
    times.sort();
    let [half, most, worst] = [150, 297, 299].map(|place| times[place]);
    std::println!("20 % loss: 150 handshakes within {half:?}, 297 within {most:?}, 300 within {worst:?}");
    assert!(
        half <= Duration::from_secs(3)
            && most <= Duration::from_secs(40)
            && worst <= 2 * Duration::from_secs(63)
    );
}

/// Each datagram of a handshake is lost once: it is done within the first timeout, and a little.
#[test]
fn one_loss_costs_one_timeout() {
    for lost in 0..6 {
        let mut path = Path::new(client(ClientConfig::default()), server(ServerConfig::default()));
        path.client.connect(path.now);
        let mut buffer = [0; 2_048];
        let (mut count, start) = (0, path.now);
        while !path.client.is_connected() {
            while let Some(len) = path.client.poll_datagram(path.now, &mut buffer) {
                if count != lost {
                    assert!(path.server.handle_datagram(path.now, 1, &mut &mut buffer[..len]).is_none());
                }
                count += 1;
            }
            while let Some((_, len)) = path.server.poll_datagram(path.now, &mut buffer) {
                if count != lost {
                    assert!(path.client.handle_datagram(path.now, &mut &mut buffer[..len]).is_none());
                }
                count += 1;
            }
            if !path.client.is_connected() && count > lost {
                let timers = [path.client.poll_timeout(), path.server.poll_timeout()];
                let next = timers.into_iter().flatten().min().unwrap();
                if path.now < next && path.now.since(start) < Duration::from_secs(2) {
                    path.now = next;
                    path.client.handle_timeout(path.now);
                    path.server.handle_timeout(path.now);
                }
            }
        }
        assert!(path.now.since(start) <= Duration::from_secs(2), "datagram {lost}");
    }
}

#[test]
fn messages_are_divided_where_datagrams_are_short() {
    let identity = [b'i'; MAX_IDENTITY];
    let config = ClientConfig { max_datagram: 128, ..ClientConfig::default() };
    let client = Client::new(psk(&identity), config, numbers(1));
    let server_config = ServerConfig { max_datagram: 128, ..ServerConfig::default() };
    let server = Server::new(std::vec![psk(&identity)], server_config, numbers(2));
    let mut path = Path::new(client, server);
    path.client.connect(path.now);
    path.run(Duration::ZERO);
    assert!(path.client.is_connected());
    assert!(path.sent.iter().all(|(_, datagram)| datagram.len() <= 128));
    assert!(path.sent.len() > 6);
}

/// Identities are no secrets.
#[test]
fn debug_output_has_no_keys() {
    let path = Path::connected(ClientConfig::default(), ServerConfig::default());
    let [client, server] = [std::format!("{:?}", path.client), std::format!("{:?}", path.server)];
    let key = std::format!("{KEY:?}");
    for text in [&client, &server] {
        assert!(
            text.contains("phone") && !text.contains("secret of") && !text.contains(&key[1..20]),
            "{text}"
        );
    }
}

#[test]
fn another_key_is_an_error_at_both_ends() {
    let other = Psk::new(b"phone", b"another secret..").unwrap();
    let mut path =
        Path::new(Client::new(other, ClientConfig::default(), numbers(1)), server(ServerConfig::default()));
    path.client.connect(path.now);
    path.run(Duration::from_secs(1));
    assert_eq!(path.client_events, [ClientEvent::Failed(Failure::Alert(AlertDescription::BAD_RECORD_MAC))]);
    let failure = Failure::Refused(AlertDescription::BAD_RECORD_MAC);
    assert_eq!(path.server_events, [ServerEvent::Failed { peer: 1, failure }]);
    path.run(HOUR);
    // Reported once.
    assert_eq!((path.server_events.len(), path.server.poll_timeout()), (1, None));
}

#[test]
fn an_unknown_identity_is_an_error_at_both_ends() {
    let client = Client::new(psk(b"nobody"), ClientConfig::default(), numbers(1));
    let mut path = Path::new(client, server(ServerConfig::default()));
    path.client.connect(path.now);
    path.run(Duration::ZERO);
    let description = AlertDescription::UNKNOWN_PSK_IDENTITY;
    assert_eq!(path.client_events, [ClientEvent::Failed(Failure::Alert(description))]);
    let failure = Failure::Refused(description);
    assert_eq!(path.server_events, [ServerEvent::Failed { peer: 1, failure }]);
}

#[test]
fn a_server_that_is_not_there_is_given_up() {
    let mut path = Path::new(client(ClientConfig::default()), server(ServerConfig::default()));
    path.impairments.loss = 100;
    path.client.connect(path.now);
    let start = path.now;
    path.run(Duration::from_secs(63) - Duration::from_millis(1));
    assert!(path.client_events.is_empty() && path.sent.len() == 6);
    path.run(Duration::from_millis(1));
    assert_eq!(path.client_events, [ClientEvent::Failed(Failure::NoAnswer { transmissions: 6 })]);
    assert_eq!(path.now.since(start), Duration::from_secs(63));
}

/// A cookie is accepted in its period of a minute and in the next one, from its address alone.
#[test]
fn a_cookie_expires_and_belongs_to_an_address() {
    for (wait, address, is_accepted) in [(0, 1, true), (60, 1, true), (121, 1, false), (0, 2, false)] {
        let mut path = Path::new(client(ClientConfig::default()), server(ServerConfig::default()));
        path.client.connect(path.now);
        let mut buffer = [0; 2_048];
        let mut hello = |path: &mut Path| {
            let len = path.client.poll_datagram(path.now, &mut buffer).unwrap();
            buffer[..len].to_vec()
        };
        let first = hello(&mut path);
        path.forge(true, 1, &first);
        let mut reply = [0; 128];
        let mut rest = first.clone();
        assert!(path.server.handle_datagram(path.now, 1, &mut &mut rest[..]).is_none());
        let (_, len) = path.server.poll_datagram(path.now, &mut reply).unwrap();
        assert!(path.client.handle_datagram(path.now, &mut &mut reply[..len]).is_none());
        let mut second = hello(&mut path);
        let later = path.now + Duration::from_secs(wait);
        assert!(path.server.handle_datagram(later, address, &mut &mut second[..]).is_none());
        assert_eq!(path.server.poll_timeout().is_some(), is_accepted, "after {wait} s, from {address}");
    }
}
