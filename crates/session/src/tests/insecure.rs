//! Bodies without protection.

use std::net::SocketAddr;

use thinair_wire::time::Instant;

use crate::{BodyFlags, Destination, Insecure, Missing, NotSealed, Opened, Refused, Seal, Sender, SiteId};

#[test]
fn insecure_bodies_have_an_octet_in_front() {
    let [near, far] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 5_000)));
    let mut seal = Seal::Insecure(Insecure::peers(vec![Some(near), Some(far)]));
    let (now, flags) = (Instant::ZERO, BodyFlags { several: true, addressed: false });
    let mut out = Vec::new();
    seal.seal(now, Destination::Peer(1), flags, b"body", &mut out).expect("a peer");
    assert_eq!(out, b"\xa8body");
    let sealed = seal.seal(now, Destination::Peer(2), flags, b"body", &mut Vec::new());
    assert_eq!(sealed, Err(NotSealed::NoDestination));
    let body = Opened::Body {
        from: Sender::Peer(1),
        flags,
        body: b"body",
        newest: false,
        missing: Missing::Uncounted,
        session: None,
    };
    assert_eq!(seal.open(now, Some(far.into()), &mut out), body);
    let stranger = SocketAddr::from(([192, 0, 2, 3], 5_000));
    assert_eq!(seal.open(now, Some(stranger.into()), &mut out), Opened::Refused(Refused::Unknown));
    for bad in [&b""[..], b"\xa0", b"\xb0body", b"\x20body"] {
        assert_eq!(seal.open(now, Some(far.into()), &mut bad.to_vec()), Opened::Refused(Refused::Malformed));
    }
}

#[test]
fn insecure_groups_say_who_sends() {
    let site = |number| SiteId::new(number).expect("not zero");
    let mut seal = Seal::Insecure(Insecure::group(Some(site(1)), vec![site(2)]));
    let (now, flags) = (Instant::ZERO, BodyFlags::default());
    let mut out = Vec::new();
    seal.seal(now, Destination::Everybody, flags, b"body", &mut out).expect("it sends");
    assert_eq!(out, b"\xa0\x01body");
    assert_eq!(seal.open(now, None, &mut out), Opened::Refused(Refused::Reflected));
    out[1] = 2;
    let from = Sender::Site(site(2));
    assert_eq!(
        seal.open(now, None, &mut out),
        Opened::Body {
            from,
            flags,
            body: b"body",
            newest: false,
            missing: Missing::Uncounted,
            session: None
        }
    );
    out[1] = 3;
    assert_eq!(seal.open(now, None, &mut out), Opened::Refused(Refused::Unknown));
}
