//! A client of DTLS: datagrams of nobody, and those of its server, lost, repeated, cut and changed, do no harm; what it delivers
//! was sent.

#![no_main]

use arbitrary::Arbitrary;
use core::time::Duration;
use libfuzzer_sys::fuzz_target;
use thinair_dtls::{Cid, Client, ClientConfig, Psk, Server, ServerConfig};
use thinair_wire::time::Instant;

#[derive(Arbitrary, Debug)]
enum ClientStep<'a> {
    /// A datagram of anybody.
    Datagram(&'a [u8]),
    /// Datagrams of the client and answers, in order.
    Exchange,
    /// A datagram of the server, with octets changed and its end cut off.
    Changed { changes: Vec<(u8, u8)>, cut: u8 },
    /// Application data of the server.
    Data,
    /// Another handshake.
    Connect,
    /// Time passes.
    Seconds(u8),
}

fn psk() -> Psk {
    Psk::new(b"phone", b"a secret of both").expect("short")
}

fn take(client: &mut Client, now: Instant, datagram: &mut [u8]) {
    let mut rest = datagram;
    while !rest.is_empty() {
        if let Some(content) = client.handle_datagram(now, &mut rest) {
            assert_eq!(content, b"data");
        }
    }
}

fuzz_target!(|input: (bool, Vec<ClientStep<'_>>)| {
    let (has_cid, steps) = input;
    let mut numbers = 0_u64;
    let mut server = Server::<u8>::new(vec![psk()], ServerConfig::default(), || 7);
    let cid = if has_cid { Cid::new(b"me") } else { None };
    let mut client = Client::new(psk(), ClientConfig { cid, ..ClientConfig::default() }, move || {
        numbers += 1;
        numbers
    });
    let (mut now, mut buffer) = (Instant::from_millis(1_000_000), [0; 2_000]);
    client.connect(now);
    for step in steps {
        match step {
            ClientStep::Datagram(octets) => take(&mut client, now, &mut octets.to_vec()),
            ClientStep::Exchange => {
                while let Some(len) = client.poll_datagram(now, &mut buffer) {
                    let mut rest = &mut buffer[..len];
                    while !rest.is_empty() {
                        assert!(server.handle_datagram(now, 0, &mut rest).is_none());
                    }
                }
                while let Some((_, len)) = server.poll_datagram(now, &mut buffer) {
                    take(&mut client, now, &mut buffer[..len]);
                }
            }
            ClientStep::Changed { changes, cut } => {
                let Some((_, len)) = server.poll_datagram(now, &mut buffer) else { continue };
                let mut datagram = buffer[..len].to_vec();
                for (place, octet) in changes {
                    if let Some(place) = datagram.get_mut(usize::from(place)) {
                        *place = octet;
                    }
                }
                datagram.truncate(datagram.len().saturating_sub(usize::from(cut)));
                take(&mut client, now, &mut datagram);
            }
            ClientStep::Data => {
                for session in server.sessions() {
                    if let Ok((_, len)) = server.send(session, b"data", &mut buffer) {
                        take(&mut client, now, &mut buffer[..len]);
                    }
                }
            }
            ClientStep::Connect => client.connect(now),
            ClientStep::Seconds(seconds) => {
                now = now + Duration::from_secs(u64::from(seconds));
                server.handle_timeout(now);
                client.handle_timeout(now);
            }
        }
        while server.poll_event().is_some() || client.poll_event().is_some() {}
    }
});
