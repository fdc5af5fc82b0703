//! Requests and responses in a capture at the client's host, and the time between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use thinair_capture::Reader;

use crate::paper::PaperError;

/// Port of CoAP. RFC 7252, section 6.1.
pub(super) const PORT: u16 = 5_683;

/// GET, and 2.05 Content. RFC 7252, section 12.1.
const GET: u8 = 0x01;
const CONTENT: u8 = 0x45;

/// Request, and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoapExchange {
    /// Server.
    pub(super) server: IpAddr,
    message_id: u16,
    /// Time of the first request, in nanoseconds.
    asked: u64,
    /// Time of the response.
    answered: Option<u64>,
    /// Number of times that the request was sent.
    requests: u32,
}

impl CoapExchange {
    /// Milliseconds from the request to the response; `None` if it was repeated or not answered.
    pub(super) fn round_trip(&self) -> Option<f64> {
        let answered = self.answered.filter(|_| self.requests == 1)?;
        Some(answered.saturating_sub(self.asked) as f64 / 1e6)
    }
}

/// All exchanges of a capture, in the order of their requests.
pub(super) fn read(path: &Path) -> Result<Vec<CoapExchange>, PaperError> {
    let file =
        std::fs::File::open(path).map_err(|source| PaperError::Open { path: path.to_owned(), source })?;
    let failed = |source| PaperError::Read { path: path.to_owned(), source };
    let mut reader = Reader::new(file).map_err(failed)?;
    let mut exchanges = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = record.map_err(failed)?;
        if let Ok(network) = record.network_packet()
            && let Some(message) = CoapMessage::of(network.packet)
        {
            message.note(record.time.as_nanos(), &mut exchanges);
        }
    }
    Ok(exchanges)
}

/// Fields of a message that matter here.
struct CoapMessage {
    server: IpAddr,
    message_id: u16,
    is_request: bool,
}

impl CoapMessage {
    /// `None` if the packet belongs to no exchange.
    fn of(packet: &[u8]) -> Option<Self> {
        let (addresses, udp) = match packet.first()? >> 4 {
            4 => {
                let address = |at| Some(IpAddr::V4(Ipv4Addr::from(*octets::<4>(packet, at)?)));
                ([address(12)?, address(16)?], packet.get(usize::from(packet[0] & 0x0f) * 4..)?)
            }
            _ => {
                let address = |at| Some(IpAddr::V6(Ipv6Addr::from(*octets::<16>(packet, at)?)));
                ([address(8)?, address(24)?], packet.get(40..)?)
            }
        };
        let port = |at| octets(udp, at).copied().map(u16::from_be_bytes);
        let code = *udp.get(9)?;
        let message_id = port(10)?;
        match (port(0)?, port(2)?) {
            (_, PORT) if code == GET => Some(Self { server: addresses[1], message_id, is_request: true }),
            (PORT, _) if code == CONTENT => {
                Some(Self { server: addresses[0], message_id, is_request: false })
            }
            _ => None,
        }
    }

    fn note(&self, time: u64, exchanges: &mut Vec<CoapExchange>) {
        // Latest exchange with that server: requests are sent in sequence.
        let latest = exchanges.iter_mut().rev().find(|exchange| exchange.server == self.server);
        let open = latest.filter(|exchange| exchange.message_id == self.message_id);
        match open.filter(|exchange| exchange.answered.is_none()) {
            Some(exchange) if self.is_request => exchange.requests += 1,
            Some(exchange) => exchange.answered = Some(time),
            None if self.is_request => exchanges.push(CoapExchange {
                server: self.server,
                message_id: self.message_id,
                asked: time,
                answered: None,
                requests: 1,
            }),
            // Duplicate response.
            None => {}
        }
    }
}

fn octets<const N: usize>(packet: &[u8], at: usize) -> Option<&[u8; N]> {
    packet.get(at..)?.first_chunk()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// IPv4 packet between host 1 and server 2.
    fn packet(is_request: bool, code: u8, message_id: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
        let (from, to) = if is_request { (1, 2) } else { (2, 1) };
        packet.extend([10, 77, 1, from, 10, 77, 1, to]);
        let ports = if is_request { [40_000, PORT] } else { [PORT, 40_000] };
        packet.extend(ports.iter().flat_map(|port: &u16| port.to_be_bytes()));
        packet.extend([0, 12, 0, 0, 0x40, code]);
        packet.extend(message_id.to_be_bytes());
        packet
    }

    fn exchanges(packets: &[(u64, Vec<u8>)]) -> Vec<CoapExchange> {
        let mut exchanges = Vec::new();
        for (time, packet) in packets {
            if let Some(message) = CoapMessage::of(packet) {
                message.note(*time, &mut exchanges);
            }
        }
        exchanges
    }

    #[test]
    fn a_response_belongs_to_the_request_with_its_message_id() {
        let found = exchanges(&[
            (1_000_000, packet(true, GET, 7)),
            (1_500_000, packet(false, CONTENT, 6)),
            (1_750_000, packet(false, CONTENT, 7)),
            (2_000_000, packet(false, CONTENT, 7)),
            (9_000_000, packet(true, GET, 8)),
        ]);
        assert_eq!(found.iter().map(CoapExchange::round_trip).collect::<Vec<_>>(), [Some(0.75), None]);
        assert_eq!(found[0].server, "10.77.1.2".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn what_was_sent_twice_is_no_round_trip() {
        let found = exchanges(&[
            (0, packet(true, GET, 7)),
            (2_000_000_000, packet(true, GET, 7)),
            (2_001_000_000, packet(false, CONTENT, 7)),
            // A reused Message ID, later: another exchange.
            (3_000_000_000, packet(true, GET, 7)),
            (3_002_000_000, packet(false, CONTENT, 7)),
        ]);
        assert_eq!(found.iter().map(CoapExchange::round_trip).collect::<Vec<_>>(), [None, Some(2.0)]);
    }

    #[test]
    fn what_is_no_exchange_is_passed_over() {
        for other in [vec![], vec![0x45; 10], packet(true, 0x02, 1), packet(false, 0, 1), vec![0x60; 44]] {
            assert!(exchanges(&[(0, other)]).is_empty());
        }
    }
}
