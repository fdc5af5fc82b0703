//! A handshake of OpenSSL 3.0.19 with itself, as it was on the wire: `openssl s_server -dtls1_2 -no_ticket -nocert` and `s_client` with
//! `-cipher PSK-AES128-CCM8@SECLEVEL=0`, on loopback.

use sha2::{Digest as _, Sha256};
use std::vec::Vec;

use crate::association::Association;
use crate::message::MESSAGE_HEADER;
use crate::prf::MasterSecret;
use crate::record::{HANDSHAKE, HEADER, Record};
use crate::*;

const CLIENT_HELLO: &str = "16feff0000000000000001008a0100007e000100000000007efefdb57ec74bf626eddb99d7ce953a0d3d14e4cb9d6ad351b2\
         dcd1bfcf5191428d4d00140501d0daa54096621aa030c546a6e5d4ad94a5e60004c0a800ff0100003c001600000017000000\
         0d0030002e040305030603080708080809080a080b0804080508060401050106010303020303010201030202020402050206\
         02";

const SERVER_HELLO: &str = "16fefd0000000000000001005d020000510001000000000051fefd40d19ba5a6cf5555584e08b00a383bab01f876812fb3b6\
         42480acf2837e73b6920ab0f71fb4150b3c126a15a3ed15b11aebd3935c672a4f16175e4413b20050811c0a8000009ff0100\
         01000017000016fefd0000000000000002000c0e0000000002000000000000";

const CLIENT_FINISHED: &str = "16fefd00000000000000020013100000070002000000000007000570686f6e6514fefd000000000000000300010116fefd00\
         0100000000000000280001000000000000a9908879f7a8a87768805053a373b8baccf021b8db0274344efe5e0fe7d5f1a5";

const SERVER_FINISHED: &str = "14fefd000000000000000300010116fefd0001000000000000002800010000000000003352447a238d1acaa62ce2cc7d89b3\
         a98d25b50f86094a620b3dc7e42b9e7fc0";

const ALERT: &str = "15fefd0001000000000001001200010000000000017076aa6e5b30c3409300";

fn octets(digits: &str) -> Vec<u8> {
    let pair = |place: usize| u8::from_str_radix(&digits[place..place + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// Records of datagrams, each with all of its octets.
fn records(datagrams: &[&str]) -> Vec<Vec<u8>> {
    let mut octets = datagrams.iter().flat_map(|digits| octets(digits)).collect::<Vec<_>>();
    let mut records = Vec::new();
    while !octets.is_empty() {
        let len = HEADER + usize::from(u16::from_be_bytes([octets[11], octets[12]]));
        records.push(octets.drain(..len).collect());
    }
    records
}

fn open(association: &mut Association, record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    let record = Record::take(&mut &mut record[..], 0).unwrap();
    association.open(record).unwrap().content.to_vec()
}

#[test]
fn secrets_and_records_are_those_of_openssl() {
    let [hello, answer, done, exchange, _, client_finished, _, server_finished, alert]: [Vec<u8>; 9] =
        records(&[CLIENT_HELLO, SERVER_HELLO, CLIENT_FINISHED, SERVER_FINISHED, ALERT]).try_into().unwrap();
    let random = |record: &[u8]| record[HEADER + MESSAGE_HEADER + 2..][..32].try_into().unwrap();
    let mut transcript = Sha256::new();
    [&hello, &answer, &done, &exchange].iter().for_each(|record| transcript.update(&record[HEADER..]));
    let psk = Psk::new(b"phone", b"secret_of_phone_").unwrap();
    let hash = |transcript: &Sha256| transcript.clone().finalize().into();
    let secret = MasterSecret::new(&psk, &hash(&transcript));
    let keys = || secret.keys(&random(&hello), &random(&answer));
    let association = |is_client: bool| {
        let (write, read) = match is_client {
            true => (keys().client, keys().server),
            false => (keys().server, keys().client),
        };
        Association::new(write, read, Cid::EMPTY, 0)
    };
    let (mut client, mut server) = (association(true), association(false));

    let finished = open(&mut server, &client_finished);
    assert_eq!(finished[MESSAGE_HEADER..], secret.verify_data(true, &hash(&transcript)));
    // The record, too, is written as OpenSSL does.
    let mut sealed = [0; 100];
    let len = client.seal(HANDSHAKE, &finished, &mut sealed).unwrap();
    assert_eq!(sealed[..len], client_finished);

    transcript.update(&finished);
    let finished = open(&mut client, &server_finished);
    assert_eq!(finished[MESSAGE_HEADER..], secret.verify_data(false, &hash(&transcript)));
    // close_notify.
    assert_eq!(open(&mut client, &alert), [1, 0]);
}
