//! An emulated link between two hosts: compression, transmission, loss and delivery of packets ([`Engine`]), in
//! virtual time or, between two network namespaces, in real time ([`run`]).
//!
//! The engine receives the time and packets. It uses the link of [`thinair_link::ConstrainedLink`] and ROHC of
//! [`thinair_rohc::Endpoint`]. The real-time loop moves octets, and reports how late it did.

mod channel;
mod codec;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod ends;
mod engine;
mod header_cycle;
mod iphc;
mod lateness;
#[cfg(target_os = "linux")]
mod realtime;
mod stack;
mod totals;

pub use channel::{ChannelEnd, NewEnd, ROOM, RohcChannel, Terminal};
#[cfg(target_os = "linux")]
pub use command::Ended;
#[cfg(target_os = "linux")]
pub use ends::{LinkEnds, Where};
pub use engine::{Engine, Passage, PassageOutcome};
pub use header_cycle::{HeaderCycleError, header_cycle};
pub use lateness::Lateness;
#[cfg(target_os = "linux")]
pub use realtime::{EmulatorError, RunReport, run};
pub use stack::{ParseStackError, ProtocolStack, StackFlow};
pub use totals::{DirectionTotals, FeedbackTotals};

use std::net::IpAddr;

use thinair_link::{Direction, Fragmentation, Framing, LinkModel, Side};

/// Smallest MTU of a link below IPv6, in octets. RFC 8200, section 5.
pub const IPV6_MIN_MTU: u32 = 1_280;

/// Smallest MTU of a link below IPv4, in octets. RFC 791, section 3.2.
pub const IPV4_MIN_MTU: u32 = 68;

/// MTU where the link sets no limit, in octets: that of Ethernet.
const USUAL_MTU: u32 = 1_500;

/// Returns the addresses of a side, with the length of the prefix that both sides share.
pub fn addresses(side: Side) -> [(IpAddr, u8); 2] {
    let host = match side {
        Side::A => 1,
        Side::B => 2,
    };
    [(IpAddr::from([10, 9, 0, host]), 30), (IpAddr::from([0xfd09, 0, 0, 0, 0, 0, 0, u16::from(host)]), 64)]
}

/// Returns the model with frames of at most `octets`, without the overhead of the link layer: longer packets are
/// fragmented below IP, as IPv6 requires where frames are shorter than 1,280 octets. RFC 4944, section 5.3.
pub fn with_mtu<'a>(model: &LinkModel<'a>, octets: u16) -> LinkModel<'a> {
    let with = |direction: Direction<'a>| Direction {
        framing: Framing { mtu: 0, fragmentation: Fragmentation::rfc4944(octets), ..direction.framing },
        ..direction
    };
    LinkModel { a_to_b: with(model.a_to_b), b_to_a: with(model.b_to_a), ..*model }
}

/// Returns the model with each limit on packets that would exclude IPv6 replaced by a limit on frames.
pub fn fragmenting<'a>(model: &LinkModel<'a>) -> LinkModel<'a> {
    let with = |direction: Direction<'a>| {
        let mtu = direction.framing.mtu;
        let is_limit = mtu > 0 && mtu < IPV6_MIN_MTU;
        let fragmentation = match (direction.framing.fragmentation, u16::try_from(mtu)) {
            (Fragmentation::None, Ok(mtu)) if is_limit => Fragmentation::rfc4944(mtu),
            (fragmentation, _) => fragmentation,
        };
        let mtu = if is_limit { 0 } else { mtu };
        Direction { framing: Framing { mtu, fragmentation, ..direction.framing }, ..direction }
    };
    LinkModel { a_to_b: with(model.a_to_b), b_to_a: with(model.b_to_a), ..*model }
}

/// Returns the largest packet that fits into one frame in both directions, in octets; `None` if there is no limit.
pub fn mtu(model: &LinkModel<'_>) -> Option<u32> {
    let limits = [model.a_to_b, model.b_to_a].map(|direction| {
        let frame = match direction.framing.fragmentation {
            Fragmentation::Frames { payload, .. } => Some(u32::from(payload)),
            Fragmentation::None => None,
        };
        let packet = Some(direction.framing.mtu).filter(|&mtu| mtu > 0);
        [frame, packet].into_iter().flatten().min()
    });
    limits.into_iter().flatten().min()
}

/// Returns the MTUs of IPv4 and IPv6, for their routes over a link with this limit, in octets.
///
/// IPv4 fragments to the size of a frame. The MTU of IPv6 is at least 1,280 octets; the link fragments below that.
pub const fn route_mtus(mtu: Option<u32>) -> (u32, u32) {
    match mtu {
        None => (USUAL_MTU, USUAL_MTU),
        Some(mtu) => {
            let four = if mtu < IPV4_MIN_MTU { IPV4_MIN_MTU } else { mtu };
            (four, if mtu < IPV6_MIN_MTU { IPV6_MIN_MTU } else { mtu })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_is_fragmented_below_ip_where_frames_are_short() {
        let model = with_mtu(&LinkModel::default(), 128);
        assert_eq!(mtu(&model), Some(128));
        assert_eq!(model.a_to_b.framing.frames(1_280).count(), 11);
        assert_eq!(route_mtus(Some(128)), (128, 1_280));
        assert_eq!(route_mtus(Some(40)), (68, 1_280));
        assert_eq!(route_mtus(Some(9_000)), (9_000, 9_000));
        assert_eq!((mtu(&LinkModel::default()), route_mtus(None)), (None, (1_500, 1_500)));
    }

    #[test]
    fn a_limit_on_packets_becomes_one_on_frames() {
        let limited = |mtu| {
            let framing = Framing { mtu, overhead: 9, ..Framing::default() };
            fragmenting(&LinkModel {
                a_to_b: Direction { framing, ..Direction::IDEAL },
                ..LinkModel::default()
            })
        };
        assert_eq!(
            limited(128).a_to_b.framing,
            Framing { overhead: 9, mtu: 0, fragmentation: Fragmentation::rfc4944(128) }
        );
        assert_eq!(limited(1_500).a_to_b.framing.mtu, 1_500);
        assert_eq!((mtu(&limited(128)), mtu(&limited(1_500))), (Some(128), Some(1_500)));
    }
}
