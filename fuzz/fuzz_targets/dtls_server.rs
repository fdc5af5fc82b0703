//! A server of DTLS with a client beside strangers: octets of nobody are neither answered by more octets nor accepted, and the
//! client's handshake and data, with datagrams lost, repeated, cut and changed, do no harm.

#![no_main]

use arbitrary::Arbitrary;
use core::time::Duration;
use libfuzzer_sys::fuzz_target;
use thinair_dtls::{Client, ClientConfig, Psk, Server, ServerConfig};
use thinair_wire::time::Instant;

#[derive(Arbitrary, Debug)]
enum ServerStep<'a> {
    /// A datagram of a stranger.
    Datagram(&'a [u8]),
    /// Datagrams of the client and answers, in order.
    Exchange,
    /// A datagram of the client, with octets changed and its end cut off, from its own address or another one.
    Changed { changes: Vec<(u8, u8)>, cut: u8, from: u8 },
    /// Application data of the client.
    Data(&'a [u8]),
    /// Time passes.
    Seconds(u8),
}

/// Address of the client.
const CLIENT: u8 = 0;

fn psk() -> Psk {
    Psk::new(b"phone", b"a secret of both").expect("short")
}

fn take(server: &mut Server<u8>, now: Instant, from: u8, datagram: &mut [u8]) -> Option<Vec<u8>> {
    let mut rest = datagram;
    let mut received = None;
    while !rest.is_empty() {
        if let Some((_, content)) = server.handle_datagram(now, from, &mut rest) {
            received = Some(content.to_vec());
        }
    }
    received
}

fuzz_target!(|steps: Vec<ServerStep<'_>>| {
    let mut numbers = 0_u64;
    let random = move || {
        numbers += 1;
        numbers
    };
    let mut server = Server::<u8>::new(vec![psk()], ServerConfig::default(), || 7);
    let mut client = Client::new(psk(), ClientConfig::default(), random);
    let (mut now, mut buffer) = (Instant::from_millis(1_000_000), [0; 20_000]);
    client.connect(now);
    for step in steps {
        match step {
            ServerStep::Datagram(octets) => {
                let mut datagram = octets.to_vec();
                while server.poll_datagram(now, &mut buffer).is_some() {}
                assert_eq!(take(&mut server, now, 9, &mut datagram), None);
                let answered: usize =
                    core::iter::from_fn(|| server.poll_datagram(now, &mut buffer)).map(|(_, len)| len).sum();
                assert!(answered <= octets.len(), "{answered} octets for {}", octets.len());
            }
            ServerStep::Exchange => {
                while let Some(len) = client.poll_datagram(now, &mut buffer) {
                    take(&mut server, now, CLIENT, &mut buffer[..len]);
                }
                while let Some((to, len)) = server.poll_datagram(now, &mut buffer) {
                    let mut rest = &mut buffer[..len];
                    while to == CLIENT && !rest.is_empty() {
                        assert!(client.handle_datagram(now, &mut rest).is_none());
                    }
                }
            }
            ServerStep::Changed { changes, cut, from } => {
                let len = match client.poll_datagram(now, &mut buffer) {
                    Some(len) => len,
                    None => client.send(now, b"data", &mut buffer).unwrap_or_default(),
                };
                let mut datagram = buffer[..len].to_vec();
                for (place, octet) in changes {
                    if let Some(place) = datagram.get_mut(usize::from(place)) {
                        *place = octet;
                    }
                }
                datagram.truncate(datagram.len().saturating_sub(usize::from(cut)));
                let received = take(&mut server, now, from, &mut datagram);
                assert!(received.is_none_or(|received| received == b"data"));
            }
            ServerStep::Data(content) => {
                if let Ok(len) = client.send(now, content, &mut buffer) {
                    take(&mut server, now, CLIENT, &mut buffer[..len]);
                }
            }
            ServerStep::Seconds(seconds) => {
                now = now + Duration::from_secs(u64::from(seconds));
                server.handle_timeout(now);
                client.handle_timeout(now);
            }
        }
        while server.poll_event().is_some() || client.poll_event().is_some() {}
    }
});
