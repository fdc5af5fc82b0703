//! Profile 0x00F0, an example of a profile: packets of IPv6 whose Next Header is 253, for experiments (RFC 3692).
//!
//! This file has the packets that the profile accepts, and their formats. [`ToySender`] is a context at the compressor,
//! [`ToyReceiver`] one at the decompressor.
//!
//! A flow has one constant IPv6 header, except its Payload Length, which is inferred. There are three formats: `IR` carries the
//! header, `UO-0` relies on it, and `IR-CR` carries what differs from the header of another flow, the base, whose context both ends
//! have: the source (context replication, RFC 4164). There is no IR-DYN, since nothing is dynamic. MSN counts packets from the last IR
//! packet, modulo 16.
//!
//! So a context has memory across flows: an acknowledged one is a base for new flows, until the decompressor shows that it lacks it.

mod receiver;
mod sender;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use thinair_wire::coder::{Coder, Step};
use thinair_wire::crc::Check;
use thinair_wire::header::chain::{HeaderChain, IpHeader};
use thinair_wire::header::ipv6::Ipv6;

use crate::compressor::FlowKey;
use crate::id::ProfileId;

pub(crate) use receiver::ToyReceiver;
pub(crate) use sender::ToySender;

/// "Use for experimentation and testing" (IANA, Protocol Numbers).
const NEXT_HEADER: u8 = 253;

/// First octet of an IR packet. RFC 5795, section 5.2.2.1, with zero for the bit that the profile defines.
const IR: u8 = 0b1111_1100;

/// First octet of an IR-CR packet, with one for that bit.
const IR_CR: u8 = 0b1111_1101;

/// `IR`: the IPv6 header. CRC-8 over the ROHC header (RFC 3095, section 5.9.1).
fn ir<'p, C: Coder<'p>>(c: &mut C, header: &mut Ipv6) -> Step {
    c.discriminator(8, u32::from(IR))?;
    c.discriminator(8, u32::from(ProfileId::Toy.low_octet()))?;
    c.crc("CRC", 8)?;
    header.code(c)
}

/// Fields of `IR-CR`.
#[derive(Clone, Copy, Debug, Default)]
struct Replicated {
    /// CID of the base.
    base: u8,
    source: [u8; 16],
    payload_length: u16,
    /// CRC-8 over the IPv6 header, which the CRC of the packet does not cover.
    check: u8,
}

/// `IR-CR`: what differs from the base. CRC-8 over the ROHC header, and one over the IPv6 header.
fn ir_cr<'p, C: Coder<'p>>(c: &mut C, x: &mut Replicated) -> Step {
    c.discriminator(8, u32::from(IR_CR))?;
    c.discriminator(8, u32::from(ProfileId::Toy.low_octet()))?;
    c.crc("CRC", 8)?;
    c.uint("Base CID", 8, &mut x.base)?;
    c.octets("Source Address", &mut x.source)?;
    c.uint("Payload Length", 16, &mut x.payload_length)?;
    c.uint("Check", 8, &mut x.check)
}

/// `UO-0`: MSN. CRC-3 over the IPv6 header and an octet with the MSN.
fn uo_0<'p, C: Coder<'p>>(c: &mut C, msn: &mut u8) -> Step {
    c.discriminator(1, 0b0)?;
    c.uint("MSN", 4, msn)?;
    c.crc("CRC", 3)
}

/// Returns the CRC-3 of `UO-0`.
fn crc3(header: Ipv6, msn: u8) -> u8 {
    Check::Crc3.update(of(Check::Crc3, header), &[msn])
}

/// Returns a check over the IPv6 header.
fn of(check: Check, header: Ipv6) -> u8 {
    let mut octets = [0; Ipv6::LEN];
    // There is room for it.
    let _ = header.write(&mut octets, 0);
    check.of(&octets)
}

/// Fields that the packets of a flow share: their IPv6 header with zero for Payload Length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ToyFlow(Ipv6);

/// A packet of the profile.
pub(crate) struct ToyPacket<'p> {
    flow: ToyFlow,
    payload: &'p [u8],
}

impl<'p> ToyPacket<'p> {
    /// Returns the packet with these headers; `None` if another profile has to compress it.
    fn of(chain: &HeaderChain<'p>) -> Option<Self> {
        let [ip] = chain.ips() else { return None };
        let IpHeader::V6(header) = ip.header() else { return None };
        if header.next_header != NEXT_HEADER || ip.oddity.is_some() {
            return None;
        }
        let flow = ToyFlow(Ipv6 { payload_length: 0, ..header });
        Some(Self { flow, payload: chain.packet().get(Ipv6::LEN..)? })
    }
}

impl ToyFlow {
    /// Returns the same flow from another source.
    fn from_source(self, source: [u8; 16]) -> Self {
        Self(Ipv6 { source, ..self.0 })
    }

    /// Returns the header in front of a payload. `None` if the payload is too long for the field.
    fn header(&self, payload: &[u8]) -> Option<Ipv6> {
        Some(Ipv6 { payload_length: payload.len().try_into().ok()?, ..self.0 })
    }
}

impl FlowKey for ToyPacket<'_> {
    fn key(&self, mut word: impl FnMut(u64)) {
        let header = &self.flow.0;
        for address in [header.source, header.destination].map(u128::from_be_bytes) {
            word((address >> 64) as u64);
            word(address as u64);
        }
        let class_and_hops = u64::from(header.traffic_class) << 8 | u64::from(header.hop_limit);
        word(u64::from(header.flow_label) << 32 | class_and_hops << 8 | ProfileId::Toy as u64);
    }
}
