//! Payloads of a flow in fewer, larger packets, as if each waited for others: savings where a price list has a floor or a
//! step.
//!
//! Datagrams of UDP and UDP-Lite wait, except those of DNS. All other packets are billed as they are.

use thinair_rohc::Instant;
use thinair_wire::header::protocol;

use crate::packet::ParsedPacket;
use crate::settings::Billing;
use crate::sides::CaptureSide;

/// Compared waits, in seconds.
pub(crate) const WAITS: [u32; 5] = [1, 10, 30, 60, 300];

/// Octets of the largest packet: the minimum MTU of IPv6 (RFC 8200, section 5).
const LARGEST: usize = 1_280;

/// Ports of DNS and of multicast DNS.
const DNS: [u16; 2] = [53, 5_353];

/// Packed datagrams of a flow, for each of [`WAITS`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packing([Packed; WAITS.len()]);

#[derive(Clone, Copy, Debug, Default)]
struct Packed {
    /// Octets of the packet that waits for more; 0 if there is none.
    octets: usize,
    /// Time of its first payload.
    since: Instant,
    /// Billed units of earlier packets.
    units: u64,
}

impl Packing {
    /// Adds a packet of the flow.
    pub(crate) fn add(
        &mut self,
        billing: &Billing,
        from: CaptureSide,
        now: Instant,
        packet: &ParsedPacket<'_>,
    ) {
        let (len, headers) = (packet.octets.len(), packet.headers());
        let waits = can_wait(packet);
        for (packed, seconds) in self.0.iter_mut().zip(WAITS) {
            if !waits {
                packed.units += billing.units(from, len);
                continue;
            }
            let is_within = now.nanos_since(packed.since) <= u64::from(seconds) * 1_000_000_000;
            let together = packed.octets + len.saturating_sub(headers);
            if packed.octets > 0 && is_within && together <= LARGEST {
                packed.octets = together;
            } else {
                *packed = Packed { octets: len, since: now, units: packed.billed(billing, from) };
            }
        }
    }

    /// Billed units of all packets so far, for each of [`WAITS`].
    pub(crate) fn units(&self, billing: &Billing, from: CaptureSide) -> [u64; WAITS.len()] {
        self.0.map(|packed| packed.billed(billing, from))
    }
}

impl Packed {
    fn billed(&self, billing: &Billing, from: CaptureSide) -> u64 {
        let open = if self.octets > 0 { billing.units(from, self.octets) } else { 0 };
        self.units + open
    }
}

fn can_wait(packet: &ParsedPacket<'_>) -> bool {
    let is_of_dns = |(source, destination)| DNS.contains(&source) || DNS.contains(&destination);
    let is_datagram = matches!(packet.key.protocol, protocol::UDP | protocol::UDP_LITE);
    is_datagram && !packet.is_fragment && packet.key.ports.is_some_and(|ports| !is_of_dns(ports))
}
