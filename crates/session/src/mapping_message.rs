//! Messages on the mapping of a NAT: a request for an answer after a delay, and the answer. Both have the same length.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use super::BodyFlags;

/// A message on the mapping of a NAT. A request has the flag `several`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingMessage {
    /// Requests an answer after a delay, to the address that the request comes from.
    Request {
        /// Its number.
        id: u16,
        /// Delay, in whole milliseconds.
        delay: Duration,
    },
    /// Answers a request.
    Answer {
        /// Number of the request.
        id: u16,
        /// Address that the request came from.
        address: IpAddr,
    },
}

/// Length of a message: number, delay in milliseconds, and address, of which a request or an answer has one.
const LENGTH: usize = 2 + 4 + 16;

impl MappingMessage {
    /// Returns the body of a datagram, and its flags.
    pub(super) fn to_body(self) -> (BodyFlags, [u8; LENGTH]) {
        let (id, delay, address) = match self {
            Self::Request { id, delay } => (id, delay, Ipv6Addr::UNSPECIFIED),
            Self::Answer { id, address } => (id, Duration::ZERO, in_six(address)),
        };
        let millis = u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
        let mut body = [0; LENGTH];
        body[..2].copy_from_slice(&id.to_be_bytes());
        body[2..6].copy_from_slice(&millis.to_be_bytes());
        body[6..].copy_from_slice(&address.octets());
        let flags = BodyFlags { several: matches!(self, Self::Request { .. }), addressed: false };
        (flags, body)
    }

    /// Reads the body of a datagram. `None`: it has another length.
    pub(super) fn of_body(flags: BodyFlags, body: &[u8]) -> Option<Self> {
        let (id, rest) = body.split_first_chunk()?;
        let (millis, address) = rest.split_first_chunk()?;
        let address: [u8; 16] = address.try_into().ok()?;
        let id = u16::from_be_bytes(*id);
        Some(match flags.several {
            true => Self::Request { id, delay: Duration::from_millis(u32::from_be_bytes(*millis).into()) },
            false => Self::Answer { id, address: Ipv6Addr::from(address).to_canonical() },
        })
    }
}

fn in_six(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_and_no_octets_are_one() {
        let address = [IpAddr::from([192, 0, 2, 7]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7])];
        for message in [
            MappingMessage::Request { id: 7, delay: Duration::from_millis(271_529) },
            MappingMessage::Answer { id: 0xffff, address: address[0] },
            MappingMessage::Answer { id: 0, address: address[1] },
        ] {
            let (flags, body) = message.to_body();
            assert_eq!(MappingMessage::of_body(flags, &body), Some(message));
            for len in 0..LENGTH {
                assert_eq!(MappingMessage::of_body(flags, &body[..len]), None);
            }
        }
    }
}
