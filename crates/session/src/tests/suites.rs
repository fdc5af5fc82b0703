//! Agreement on a suite.

use super::room::*;
use crate::{Over, Refused, Sender, Suite};

/// Two ends with these suites, of which some offer AES-GCM. The left one asks. Returns the suites of both sessions.
fn agreed([left, right]: [(Suite, bool); 2]) -> [Option<Suite>; 2] {
    let mut room = Room::new(Over::Datagrams, left.0);
    room.ends[RIGHT].seal = with_parameters(room.now, right.0, PARAMETERS);
    for (end, (_, offers)) in room.ends.iter_mut().zip([left, right]) {
        if offers {
            end.seal.offer_aes();
        }
    }
    room.run();
    if room.ends[RIGHT].seal.session(0).is_some() {
        room.talk(LEFT, b"there");
        room.talk(RIGHT, b"and back");
    } else {
        let refused = RoomEvent::Refused(Refused::OtherSuite(Sender::Peer(0)));
        assert!(room.ends.iter().all(|end| end.events.contains(&refused)));
    }
    room.ends.each_ref().map(|end| end.seal.session(0).map(|session| session.suite))
}

#[test]
fn aes_is_used_where_both_offer_it_and_a_chosen_suite_stays() {
    use Suite::{AesCcm8, AesGcm, ChaCha20Poly1305 as ChaCha};
    for (ends, suite) in [
        // Both, one, or none has AES. Earlier versions offer nothing.
        ([(ChaCha, true), (ChaCha, true)], Some(AesGcm)),
        ([(ChaCha, true), (ChaCha, false)], Some(ChaCha)),
        ([(ChaCha, false), (ChaCha, true)], Some(ChaCha)),
        ([(ChaCha, false), (ChaCha, false)], Some(ChaCha)),
        // One has chosen its suite.
        ([(ChaCha, true), (AesGcm, false)], Some(AesGcm)),
        ([(AesGcm, false), (ChaCha, true)], Some(AesGcm)),
        ([(AesGcm, false), (ChaCha, false)], None),
        ([(ChaCha, true), (AesCcm8, false)], None),
        ([(AesCcm8, true), (AesCcm8, true)], Some(AesCcm8)),
    ] {
        assert_eq!(agreed(ends), [suite; 2], "{ends:?}");
    }
}

#[test]
fn nobody_without_the_key_takes_an_offer_out() {
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.ends.iter_mut().for_each(|end| end.seal.offer_aes());
    let mut octets = Vec::new();
    room.ends[LEFT].seal.poll(room.now, &mut octets).expect("a request");
    let request = Flying { from: address(LEFT), to: Some(address(RIGHT)), octets };
    assert_eq!(room.arrive(RIGHT, &request), None);
    let mut octets = Vec::new();
    room.ends[RIGHT].seal.poll(room.now, &mut octets).expect("an answer");
    let answer = Flying { from: address(RIGHT), to: Some(address(LEFT)), octets };
    for message in [&request, &answer] {
        for bit in 0..8 * message.octets.len() {
            let mut changed = message.clone();
            changed.octets[bit / 8] ^= 1 << (bit % 8);
            // Also as a request of an earlier version, whose end is not checked before it is decrypted.
            if message.octets.len() == 91 {
                changed.octets[75..].fill(0);
            }
            let end = if message == &request { RIGHT } else { LEFT };
            let is_the_same = changed.octets[..75.min(changed.octets.len())]
                == message.octets[..75.min(message.octets.len())];
            assert!(
                is_the_same || matches!(room.arrive(end, &changed), Some(RoomEvent::Refused(_))),
                "{bit}"
            );
        }
    }
    room.arrive(LEFT, &answer);
    assert_eq!(room.ends[LEFT].seal.session(0).map(|session| session.suite), Some(Suite::AesGcm));
}
