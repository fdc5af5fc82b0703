//! Sizes of the headers of a stack after compression by this project's compressor: measured, not tabulated.

use thinair_rohc::{ChannelError, CompressError, Compressor, CompressorMemory, Instant, ProfileId, Refresh};
use thinair_ule::capacity::HeaderRun;

use crate::stack::{ProtocolStack, StackFlow};

/// Packets after which a flow without refreshes is established.
const SETTLED: u32 = 64;

/// Reason for the absence of a cycle of headers.
#[derive(Debug, thiserror::Error)]
pub enum HeaderCycleError {
    /// The policy does not repeat itself within the packets examined.
    #[error("the refresh policy {0} has no cycle of packets; use `ir=N,so=N[,direct]` or `off`")]
    NoCycle(Refresh),
    /// Invalid channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The compressor rejected a packet.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// A packet used another profile than that of the stack.
    #[error("a packet of the flow used profile {} instead of that of its stack", .0.name())]
    Profile(ProfileId),
}

/// Returns the octets of the ROHC headers of a stack under a refresh policy, as a cycle: the second one, so that it
/// excludes the costs of the start of a flow.
///
/// # Errors
///
/// [`HeaderCycleError::NoCycle`] for policies that depend on time or have a slow start. The other errors do not occur.
pub fn header_cycle(stack: ProtocolStack, refresh: Refresh) -> Result<Vec<HeaderRun>, HeaderCycleError> {
    let (before, packets) = match refresh {
        Refresh::Off => (SETTLED, 1),
        Refresh::Cycle { ir, so, .. } => (ir.saturating_add(so), ir.saturating_add(so)),
        Refresh::Budget { .. } | Refresh::Periodic { .. } => return Err(HeaderCycleError::NoCycle(refresh)),
    };
    let config = stack.compressor(1, refresh)?;
    let mut compressor = Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(0)));
    let Some(flow) = StackFlow::new(stack, 20, 1, 0) else { return Ok(Vec::new()) };
    let (mut packet, mut rohc) = (Vec::new(), [0; 256]);
    let mut cycle: Vec<HeaderRun> = Vec::new();
    for number in 0..before.saturating_add(packets) {
        flow.packet(number, &mut packet);
        let sent = compressor.compress(Instant::from_millis(u64::from(number)), &packet, &mut rohc)?;
        if sent.profile != stack.profile() {
            return Err(HeaderCycleError::Profile(sent.profile));
        }
        if number < before {
            continue;
        }
        let octets = sent.header_out as u32;
        match cycle.last_mut() {
            Some(run) if run.octets == octets => run.packets += 1,
            _ => cycle.push(HeaderRun { packets: 1, octets }),
        }
    }
    Ok(cycle)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Sizes in SO state, by the figures of RFC 3095: 1 octet of UO-0, and the checksum if there is one.
    #[test]
    fn settled_flows_need_an_octet_and_the_checksum() {
        for (name, octets) in [
            ("ipv6/udp", 3),
            ("ipv4/udp", 3),
            ("ipv4/udp0", 1),
            ("ipv6/udp/rtp", 3),
            ("ipv4/udp/rtp", 3),
            ("ipv4/udp0/rtp", 1),
        ] {
            let cycle = header_cycle(name.parse().unwrap(), Refresh::Off).unwrap();
            assert_eq!(cycle, [HeaderRun { packets: 1, octets }], "{name}");
        }
    }

    #[test]
    fn the_published_setup_is_3_ir_of_50_octets_and_50_so_of_3() {
        let refresh = "ir=3,so=50,direct".parse().unwrap();
        let cycle = header_cycle(ProtocolStack::IPV6_UDP, refresh).unwrap();
        assert_eq!(cycle, [HeaderRun { packets: 3, octets: 50 }, HeaderRun { packets: 50, octets: 3 }]);
    }

    /// The IR headers of rohc-lib, read from the packets of its tests, have 27 and 39 octets over IPv4, in first packets
    /// of flows. Ours of RTP have no octet of flags (RX) while all flags are zero, and afterwards two more octets with
    /// the stride of the timestamps, which the first packet cannot contain. RFC 3095, section 5.7.7.6.
    #[test]
    fn ir_headers_of_rtp_contain_the_stride_once_it_is_known() {
        for (name, first, later) in [("ipv4/udp", 27, 27), ("ipv4/udp/rtp", 38, 41)] {
            let stack: ProtocolStack = name.parse().unwrap();
            let refresh: Refresh = "ir=3,so=50,direct".parse().unwrap();
            let config = stack.compressor(1, refresh).unwrap();
            let mut compressor =
                Compressor::new(config, CompressorMemory::owned(config.channel.sizes().blocks(0)));
            let (mut packet, mut rohc) = (Vec::new(), [0; 256]);
            StackFlow::new(stack, 20, 1, 0).unwrap().packet(0, &mut packet);
            let sent = compressor.compress(Instant::ZERO, &packet, &mut rohc).unwrap();
            assert_eq!(sent.header_out, first, "{name}");
            assert_eq!(header_cycle(stack, refresh).unwrap()[0].octets, later, "{name}");
        }
    }

    #[test]
    fn a_policy_by_time_has_no_cycle() {
        let error = header_cycle(ProtocolStack::IPV6_UDP, Refresh::default()).unwrap_err();
        assert!(error.to_string().contains("budget=5%,packets=128,time=16"), "{error}");
    }
}
