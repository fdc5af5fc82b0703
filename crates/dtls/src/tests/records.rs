//! Records: nonces, connection IDs, forgery, repetition.

use core::time::Duration;

use super::support::*;
use crate::record::{HEADER, MAX_SEQUENCE};
use crate::*;

/// Settings with connection IDs in neither, one, or both directions.
fn settings() -> [(ClientConfig, ServerConfig); 3] {
    let cid = |cid| ClientConfig { cid, ..ClientConfig::default() };
    let own = Cid::new(b"me").unwrap();
    let has_cids = |has_cids| ServerConfig { has_cids, ..ServerConfig::default() };
    [(cid(None), has_cids(true)), (cid(Some(Cid::EMPTY)), has_cids(true)), (cid(Some(own)), has_cids(true))]
}

#[test]
fn nonces_are_epoch_and_sequence_number() {
    for (client_config, server_config) in settings() {
        let mut path = Path::connected(client_config, server_config);
        for number in 1..4_u64 {
            for (datagram, cid) in [
                (path.send(b"request"), client_config.cid.map_or(0, |_| 2)),
                (path.answer(path.session(), b"response"), client_config.cid.map_or(0, |cid| cid.len())),
            ] {
                let explicit = &datagram[HEADER + cid..][..8];
                assert_eq!((&datagram[3..11], explicit), (explicit, &(1 << 48 | number).to_be_bytes()[..]));
            }
        }
    }
}

/// 29 octets, and with a connection ID of 1 octet 31. RFC 6655, RFC 9146.
#[test]
fn a_record_has_29_octets_beside_its_content_and_with_a_connection_id_one_more_and_its_own() {
    for ((client_config, server_config), (up, down)) in
        settings().into_iter().zip([(29, 29), (32, 29), (32, 32)])
    {
        let mut path = Path::connected(client_config, server_config);
        let session = path.session();
        assert_eq!(path.send(b"").len(), up);
        assert_eq!(path.answer(session, b"").len(), down);
        let types = [path.send(b"")[0], path.answer(session, b"")[0]];
        assert_eq!(types, [up, down].map(|len| if len == OVERHEAD { 23 } else { 25 }));
    }
}

#[test]
fn a_record_with_one_flipped_bit_is_refused() {
    for (client_config, server_config) in settings() {
        let mut path = Path::connected(client_config, server_config);
        let session = path.session();
        path.send(b"first");
        path.run(Duration::ZERO);
        path.impairments.loss = 100;
        let (request, response) = (path.send(b"request"), path.answer(session, b"response"));
        path.at_server.clear();
        for bit in 0..8 * request.len() {
            let mut flipped = request.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            path.forge(true, 1, &flipped);
        }
        for bit in 0..8 * response.len() {
            let mut flipped = response.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            path.forge(false, 1, &flipped);
        }
        path.run(Duration::ZERO);
        assert!(path.at_server.is_empty() && path.at_client.is_empty());
        path.impairments.loss = 0;
        // Nothing has changed: the right ones are still accepted.
        path.forge(true, 1, &request);
        path.forge(false, 1, &response);
        path.run(Duration::ZERO);
        assert_eq!((path.at_server.len(), path.at_client.len()), (1, 1));
        assert!(path.client.is_connected() && path.server.sessions() == [session]);
    }
}

/// RFC 6347, section 4.1.2.6, and RFC 9147, section 4.5.1: duplicates and what is left of the window are refused; the window moves by
/// authentic records alone.
#[test]
fn a_record_is_accepted_once_and_not_behind_the_window() {
    for (client_config, server_config) in settings() {
        let mut path = Path::connected(client_config, server_config);
        path.impairments.loss = 100;
        let records: std::vec::Vec<_> = (0..100_u8).map(|number| path.send(&[number])).collect();
        let mut forged = records[99].clone();
        let last = forged.len() - 1;
        forged[last] ^= 1;
        path.forge(true, 1, &forged);
        path.forge(true, 1, &records[0]);
        path.forge(true, 1, &records[70]);
        path.forge(true, 1, &records[0]);
        path.forge(true, 1, &records[6]);
        path.forge(true, 1, &records[7]);
        path.forge(true, 1, &records[7]);
        path.forge(true, 1, &records[69]);
        path.forge(true, 1, &records[70]);
        path.run(Duration::ZERO);
        let numbers: std::vec::Vec<_> = path.at_server.iter().map(|(_, content)| content[0]).collect();
        assert_eq!(numbers, [0, 70, 7, 69]);
    }
}

#[test]
fn records_share_a_datagram() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    path.impairments.loss = 100;
    let both = [path.send(b"one"), path.send(b"two")].concat();
    path.forge(true, 1, &both);
    path.run(Duration::ZERO);
    let contents: std::vec::Vec<_> = path.at_server.iter().map(|(_, content)| &content[..]).collect();
    assert_eq!(contents, [b"one", b"two"]);
}

#[test]
fn what_is_too_long_is_not_sent_and_uses_no_number() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    let mut out = [0; 100];
    assert_eq!(path.client.send(path.now, &[0; 69], &mut out), Err(SendError::TooLong { len: 101 }));
    assert_eq!(
        path.client.send(path.now, &[0; 16_385], &mut [0; 20_000]),
        Err(SendError::TooLong { len: 16_417 })
    );
    assert_eq!(path.send(b"x")[10], 1);
    let unconnected = client(ClientConfig::default()).send(path.now, b"", &mut out);
    assert_eq!(unconnected, Err(SendError::NotConnected));
}

#[test]
fn sequence_numbers_do_not_wrap() {
    let mut path = Path::connected(ClientConfig::default(), ServerConfig::default());
    path.client.set_sequence(MAX_SEQUENCE);
    path.send(b"last");
    path.run(Duration::ZERO);
    assert_eq!(path.at_server.len(), 1);
    assert_eq!(path.client.send(path.now, b"", &mut [0; 100]), Err(SendError::Exhausted));
}
