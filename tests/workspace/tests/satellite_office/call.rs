//! Call: RTP in both directions, a packet of 20 octets every 20 ms, as in G.729 (RFC 3551, section 4.5.6).

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use thinair_os::Namespace;

use super::OfficeFigure;
use super::place::{HOST, OfficePlace};

const EVERY: Duration = Duration::from_millis(20);

/// Time limit for the last packets to arrive.
const LAST: Duration = Duration::from_secs(3);

/// RTP header and payload of packet `number` of one direction.
fn packet(direction: u8, number: u16) -> [u8; 32] {
    let mut packet = [0; 32];
    packet[..2].copy_from_slice(&[0x80, 18]);
    packet[2..4].copy_from_slice(&number.to_be_bytes());
    packet[4..8].copy_from_slice(&(u32::from(number) * 160).to_be_bytes());
    packet[8..12].copy_from_slice(&[0x5a, 0x17, direction, 0x0e]);
    for (at, octet) in (0u16..).zip(&mut packet[12..]) {
        *octet = (number.wrapping_mul(40_503) >> 5).wrapping_add(at * 37) as u8 ^ direction;
    }
    packet
}

/// Packets received by one end.
#[derive(Default)]
struct ReceivedCall {
    numbers: BTreeSet<u16>,
    /// Altered packets.
    differ: usize,
}

fn send(socket: &UdpSocket, to: SocketAddr, direction: u8, packets: u16) {
    let started = Instant::now();
    for number in 0..packets {
        std::thread::sleep((EVERY * u32::from(number)).saturating_sub(started.elapsed()));
        socket.send_to(&packet(direction, number), to).unwrap();
    }
}

/// Receives packets until `until`; `from` gets the address of the first one.
fn hear(socket: &UdpSocket, direction: u8, until: Instant, from: &OnceLock<SocketAddr>) -> ReceivedCall {
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (mut heard, mut buffer) = (ReceivedCall::default(), [0; 2_048]);
    while Instant::now() < until {
        let Ok((length, source)) = socket.recv_from(&mut buffer) else { continue };
        from.get_or_init(|| source);
        let number = u16::from_be_bytes([buffer[2], buffer[3]]);
        if buffer[..length] == packet(direction, number) {
            heard.numbers.insert(number);
        } else {
            heard.differ += 1;
        }
    }
    heard
}

pub(crate) fn run(place: &OfficePlace, packets: u16) -> Vec<OfficeFigure> {
    let bound = |netns: &str, address: SocketAddr| {
        Namespace::open(netns).unwrap().within(|| UdpSocket::bind(address).unwrap()).unwrap()
    };
    let host = SocketAddr::new(HOST.parse().unwrap(), 40_002);
    let (field, internet) = (bound(&place.field, ([0; 4], 40_000).into()), bound(&place.internet, host));
    // The host sends to the address from which the call arrives.
    let (caller, unused) = (OnceLock::new(), OnceLock::new());
    let until = Instant::now() + EVERY * u32::from(packets) + LAST;
    let [up, down] = std::thread::scope(|scope| {
        let at_host = scope.spawn(|| hear(&internet, 0, until, &caller));
        let at_field = scope.spawn(|| hear(&field, 1, until, &unused));
        scope.spawn(|| send(&field, host, 0, packets));
        send(&internet, *caller.wait(), 1, packets);
        [at_host, at_field].map(|heard| heard.join().unwrap())
    });
    let both = |of: &dyn Fn(&ReceivedCall) -> usize| vec![of(&up) as f64, of(&down) as f64];
    let sent = usize::from(packets);
    vec![
        ("packets that arrive", both(&|heard| heard.numbers.len())),
        ("packets that do not arrive", both(&|heard| sent - heard.numbers.len())),
        ("packets that differ", both(&|heard| heard.differ)),
    ]
}
