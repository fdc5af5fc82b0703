//! Handshakes and what follows them.

use super::room::*;
use crate::plan::Suite;
use crate::seal::{NewSession, NotSealed, Over};

const SUITES: [Suite; 3] = [Suite::ChaCha20Poly1305, Suite::AesCcm8, Suite::AesCcm4];

#[test]
fn two_ends_agree_on_keys_and_talk() {
    for suite in SUITES {
        for over in [Over::Datagrams, Over::Line] {
            let mut room = Room::new(over, suite);
            assert_eq!(room.send(LEFT, b"early"), Err(NotSealed::NoSession));
            room.run();
            for end in &room.ends {
                assert_eq!(end.events, [Event::Session(NewSession { restarted: false })]);
            }
            for i in 0..20_u8 {
                room.talk(LEFT, &[i; 40]);
                room.talk(RIGHT, &[i; 1]);
            }
        }
    }
}
