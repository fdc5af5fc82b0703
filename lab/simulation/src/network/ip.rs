//! IP packets of hosts: encoder and parser.

use thinair_link::Side;
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::udp::Udp;

use crate::streams::RandomStream;
use crate::tcp::TcpSegment;

const UDP: u8 = 17;
const TCP: u8 = 6;

/// Address of a host: an IPv4 address of one of the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 4]);

impl Address {
    /// Host `number` of `side`: 10.1.0.1 and following at A, 10.2.0.1 and following at B.
    pub const fn new(side: Side, number: u16) -> Self {
        let [high, low] = number.wrapping_add(1).to_be_bytes();
        Self([10, 1 + side as u8, high, low])
    }

    /// Network of all hosts of a side: address and prefix length.
    #[cfg(target_os = "linux")]
    pub(super) const fn all(side: Side) -> (std::net::IpAddr, u8) {
        (std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 1 + side as u8, 0, 0)), 16)
    }

    /// Side of the host.
    pub const fn side(self) -> Side {
        if self.0[1] == 1 { Side::A } else { Side::B }
    }

    /// Number of the host at its side.
    pub(super) const fn number(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]]).wrapping_sub(1)
    }

    /// Destination of a packet.
    pub(super) fn destination(packet: &[u8]) -> Option<Self> {
        packet.get(16..20)?.try_into().ok().map(Self)
    }
}

/// Address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostSocket {
    /// Address.
    pub address: Address,
    /// Port.
    pub port: u16,
}

/// Payload of a valid packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload<'p> {
    /// The payload of UDP.
    Udp(&'p [u8]),
    /// A segment of TCP.
    Tcp(TcpSegment),
}

/// Writes the packets of a host, with Identifications as in Linux.
#[derive(Clone, Debug)]
pub(super) struct PacketSender {
    identification: u16,
    datagrams: Datagrams,
}

/// Identifications of datagrams.
#[derive(Clone, Debug)]
enum Datagrams {
    /// Connected socket: the Identification counts.
    Count,
    /// Always 0.
    Zero,
    /// Unconnected sockets share the host's counter, which rises in random steps.
    Step(RandomStream),
}

/// Bound of the steps of [`Datagrams::Step`]: the clock ticks since the previous datagram, 250 per second.
const STEPS: u64 = 250;

impl PacketSender {
    pub(super) const fn connected(identification: u16) -> Self {
        Self { identification, datagrams: Datagrams::Count }
    }

    /// Sender of an unconnected socket with DF set, until Linux 5.16.
    pub(super) const fn unconnected(identification: u16) -> Self {
        Self { identification, datagrams: Datagrams::Zero }
    }

    /// Sender of an unconnected socket since Linux 5.17; and of any socket whose packets exceed the MTU, as reassembly
    /// distinguishes packets by it. RFC 6864, section 4.
    pub(super) const fn stepping(identification: u16, steps: RandomStream) -> Self {
        Self { identification, datagrams: Datagrams::Step(steps) }
    }

    /// Replaces the contents of `packet` by a UDP datagram.
    pub(super) fn udp(&mut self, from: HostSocket, to: HostSocket, payload: &[u8], packet: &mut Vec<u8>) {
        let length = (Udp::LEN + payload.len()) as u16;
        let identification = match &mut self.datagrams {
            Datagrams::Zero => 0,
            Datagrams::Count => self.next(1),
            Datagrams::Step(steps) => {
                let step = 1 + steps.below(STEPS) as u16;
                self.next(step)
            }
        };
        header(from, to, UDP, length, identification, packet);
        let header = Udp { source_port: from.port, destination_port: to.port, length, checksum: 0 };
        // The buffer has the room.
        let _ = header.write(packet, Ipv4::LEN);
        packet.truncate(Ipv4::LEN + Udp::LEN);
        packet.extend_from_slice(payload);
        let (addresses, udp) = (pseudo(from, to, UDP), packet.get(Ipv4::LEN..).unwrap_or_default());
        let checksum = match addresses.word(length).octets(udp).checksum() {
            0 => 0xFFFF,
            checksum => checksum,
        };
        packet[26..28].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Replaces the contents of `packet` by a TCP segment.
    pub(super) fn tcp(
        &mut self,
        from: HostSocket,
        to: HostSocket,
        segment: &TcpSegment,
        packet: &mut Vec<u8>,
    ) {
        let octets = segment.write(from.port, to.port, pseudo(from, to, TCP));
        // A SYN is answered before there is a socket that could count.
        let identification = if segment.syn && segment.acknowledgment.is_some() { 0 } else { self.next(1) };
        header(from, to, TCP, octets.len() as u16, identification, packet);
        packet.truncate(Ipv4::LEN);
        packet.extend_from_slice(&octets);
    }

    /// Identification of this packet; the next one's is higher by `step`.
    const fn next(&mut self, step: u16) -> u16 {
        let identification = self.identification;
        self.identification = identification.wrapping_add(step);
        identification
    }
}

fn header(
    from: HostSocket,
    to: HostSocket,
    protocol: u8,
    len: u16,
    identification: u16,
    packet: &mut Vec<u8>,
) {
    packet.clear();
    packet.resize(Ipv4::LEN + Udp::LEN, 0);
    let header = Ipv4 {
        total_length: Ipv4::LEN as u16 + len,
        identification,
        df: true,
        ttl: 64,
        protocol,
        source: from.address.0,
        destination: to.address.0,
        ..Ipv4::default()
    };
    // The buffer has the room.
    let _ = header.write(packet, 0);
    let checksum = Ipv4::checksum_of(packet.get(..Ipv4::LEN).unwrap_or_default());
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn pseudo(from: HostSocket, to: HostSocket, protocol: u8) -> Sum {
    Sum::ZERO.octets(&from.address.0).octets(&to.address.0).word(u16::from(protocol))
}

/// Sender, destination port and payload, if every checksum is right.
pub(super) fn read(packet: &[u8]) -> Option<(HostSocket, u16, Payload<'_>)> {
    let ip = Ipv4::read(packet).ok()?;
    if ip.len() != Ipv4::LEN || !Ipv4::checksum_is_right(packet.get(..Ipv4::LEN)?) {
        return None;
    }
    let rest = packet.get(Ipv4::LEN..usize::from(ip.total_length))?;
    let (from, to) = (Address(ip.source), Address(ip.destination));
    let pseudo =
        pseudo(HostSocket { address: from, port: 0 }, HostSocket { address: to, port: 0 }, ip.protocol);
    match ip.protocol {
        UDP => {
            let udp = Udp::read(rest).ok()?;
            let datagram = rest.get(..usize::from(udp.length))?;
            let sound = udp.checksum == 0 || pseudo.word(udp.length).octets(datagram).checksum() == 0;
            let payload = datagram.get(Udp::LEN..).filter(|_| sound)?;
            Some((
                HostSocket { address: from, port: udp.source_port },
                udp.destination_port,
                Payload::Udp(payload),
            ))
        }
        TCP => {
            let (source, destination, segment) = TcpSegment::read(rest, pseudo).ok()?;
            Some((HostSocket { address: from, port: source }, destination, Payload::Tcp(segment)))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sockets() -> [HostSocket; 2] {
        Side::ALL.map(|side| HostSocket { address: Address::new(side, 299), port: 5_683 + side as u16 })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_no_flipped_bit_passes(payload in vec(any::<u8>(), 0..60), bit: usize) {
            let [from, to] = sockets();
            let segment = TcpSegment { sequence_number: 7, payload: payload.clone(), ..TcpSegment::default() };
            let mut packet = vec![];
            let mut sender = PacketSender::connected(0xFFFF);
            for tcp in [false, true] {
                match tcp {
                    true => sender.tcp(from, to, &segment, &mut packet),
                    false => sender.udp(from, to, &payload, &mut packet),
                }
                prop_assert_eq!(Address::destination(&packet), Some(to.address));
                let expected = if tcp { Payload::Tcp(segment.clone()) } else { Payload::Udp(&payload) };
                prop_assert_eq!(read(&packet), Some((from, to.port, expected)));
                let mut damaged = packet.clone();
                let bit = bit % (8 * packet.len());
                damaged[bit / 8] ^= 1 << (bit % 8);
                // A UDP checksum of zero means no checksum.
                if tcp || !(26..28).contains(&(bit / 8)) {
                    prop_assert_eq!(read(&damaged), None);
                }
            }
        }

        #[test]
        fn any_packet_is_survived(packet in vec(any::<u8>(), 0..80)) {
            let _ = read(&packet);
        }
    }
}
