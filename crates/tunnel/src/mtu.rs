//! Sizes and overheads: the longest packet, the octets added to it, and the room in a carrier.
//!
//! From the outside in: a datagram or frame, the body in it without authentication header and tag, the
//! largest unit of a body, the largest packet of the interface. IPv6 needs 1,280 octets there (RFC 8200,
//! section 5), and the kernel disables it on interfaces with less; if a unit has less room, packets are
//! segmented (RFC 5795, section 5.2.5).

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use thinair_rohc::Integrity;

use crate::site_config::{Carrier, Framing, Others, Packaging, Security, SiteConfig};

/// Minimum MTU of an interface with IPv6 (RFC 8200, section 5).
pub const IPV6_LEAST: u16 = 1_280;

/// Minimum MTU of IPv4 (RFC 791, section 3.2).
pub const IPV4_LEAST: u16 = 68;

/// Default MTU of interfaces whose carrier has no limit: that of Ethernet.
const USUAL: u16 = 1_500;

/// Maximum growth of a packet without extension headers in an IR packet, in octets.
pub const GROWTH: usize = 16;

/// Maximum growth of a packet with CSRC identifiers and as many extension headers as are compressed, in
/// octets. Such packets are rare enough to be segmented.
pub const GROWTH_WITH_EXTENSIONS: usize = 32;

/// Octets of the CRC of a segmented unit.
const UNIT_CRC: usize = 4;

/// Octets of addresses and EtherType of a frame.
const ETHERNET: usize = 14;

/// Size of a TS Packet in octets.
const TS_PACKET: usize = 188;

/// Maximum size of a PDU in an SNDU with an NPA, in octets: 15 bits of Length, minus CRC and NPA (RFC 4326,
/// section 4.3).
const SNDU_MOST: usize = 0x7FFF - 4 - 6;

/// Maximum size of a fragmented PDU in GSE, in octets: 16 bits of Total Length, minus Type and label.
const GSE_MOST: usize = 0xFFFF - 2 - 6;

/// Octets of the header of a BBFrame, and of its longest data field.
const BB_FRAME: (usize, usize) = (10, 7_264);

/// Minimum size of a unit in octets.
const UNIT_LEAST: usize = 20;

/// All sizes of a tunnel, in octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// MTU of the interface: size of the longest IP packet.
    pub mtu: u16,
    /// True if the configuration sets it.
    pub is_given: bool,
    /// MRRU of the channel: size of the largest segmented unit, with its CRC; 0 disables segments.
    pub mrru: u16,
    /// True if ordinary packets of MTU size are segmented.
    pub is_cut: bool,
    /// Size of the largest UDP datagram, or frame of a line without framing and CRC.
    pub largest_datagram: usize,
    /// Size of the largest body before encryption.
    pub largest_body: usize,
    /// Size of the largest unit.
    pub largest_unit: usize,
    /// Overhead of a packet that is alone in its datagram, from the outside in.
    pub layers: Vec<OverheadLayer>,
    /// Integrity check by carrier and encryption.
    pub integrity: Integrity,
    /// Size of the largest IP packet or frame of the carrier.
    pub carrier_mtu: u16,
    /// Overhead of a datagram or frame, outside of encryption.
    pub outer: usize,
    bridged: bool,
    packed: bool,
}

/// Sizes on a path with a smaller MTU than configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Size of the largest body.
    pub body: usize,
    /// Size of the largest unit.
    pub unit: usize,
    /// MTU of the interface.
    pub mtu: u16,
    carrier_mtu: u16,
    is_given: bool,
    packed: bool,
    /// True if packets that are too long can be segmented.
    pub(crate) is_cut: bool,
}

impl Narrow {
    /// True if bodies can be adapted to a path MTU: TS Packets have a fixed size.
    pub(crate) fn is_possible(&self) -> bool {
        self.packed
    }

    /// Returns the sizes on a path of that MTU, which is at most the configured one.
    pub fn on_path(&self, path_mtu: u16) -> Self {
        let less = usize::from(self.carrier_mtu.saturating_sub(path_mtu));
        let unit = self.unit.saturating_sub(less).max(UNIT_LEAST);
        let fits = u16::try_from(unit.saturating_sub(GROWTH)).unwrap_or(u16::MAX).max(IPV6_LEAST);
        let mtu = if self.is_given { self.mtu } else { self.mtu.min(fits) };
        Self { body: self.body.saturating_sub(less).max(UNIT_LEAST + 1), unit, mtu, ..*self }
    }
}

/// Overhead of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverheadLayer {
    /// Name of the layer.
    pub name: &'static str,
    /// Overhead in octets; the usual one if it varies.
    pub octets: usize,
    /// Further overhead, and its condition.
    pub more: &'static str,
}

/// Reason why sizes are impossible: the configuration is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// No room is left for units.
    #[error(
        "a carrier MTU of {mtu} octets leaves too little room: {overhead} octets are overhead; raise the MTU of the carrier"
    )]
    Narrow {
        /// Size of the longest IP packet, or frame of a line.
        mtu: u16,
        /// Octets that are not part of units.
        overhead: usize,
    },
    /// The messages of the key exchange do not fit into a datagram, and cannot be segmented.
    #[error(
        "a carrier MTU of {mtu} octets allows datagrams of {room}, and the key exchange needs {need}: set the carrier's \
         `mtu` to at least {least} at both ends"
    )]
    Keys {
        /// Size of the longest IP packet, or frame of a line.
        mtu: u16,
        /// Size of the longest datagram.
        room: usize,
        /// Size of the longest message of a handshake, or of an announcement.
        need: usize,
        /// Minimum MTU of the carrier for this message.
        least: usize,
    },
    /// The number of TS Packets per datagram is too large.
    #[error("{asked} TS Packets with their overhead exceed {mtu} octets: the maximum is {fit}")]
    TsPackets {
        /// Configured number of TS Packets per datagram.
        asked: u8,
        /// Maximum number.
        fit: usize,
        /// Size of the longest IP packet.
        mtu: u16,
    },
    /// IPv6 needs a larger MTU.
    #[error(
        "an MTU of {0} octets is too small for IPv6 on the interface: the system would disable IPv6 below 1280"
    )]
    TooSmallForIpv6(u16),
    /// The MTU is smaller than any IP packet may be.
    #[error("an MTU of {0} octets is below the minimum of IPv4, 68")]
    TooSmall(u16),
    /// Packets do not fit, and segments are disabled.
    #[error(
        "packets of {mtu} octets need units of {need}, and the carrier has room for {room}: set MRRU, which is {mrru}, to at \
         least {least} to segment them (or omit it), or raise the MTU of the carrier"
    )]
    Mrru {
        /// MTU of the interface.
        mtu: u16,
        /// Size of the unit of such a packet.
        need: usize,
        /// Size of the largest unit.
        room: usize,
        /// MRRU of the configuration.
        mrru: u16,
        /// Minimum MRRU for such packets.
        least: usize,
    },
    /// Frames without an IP packet cannot be segmented.
    #[error(
        "Ethernet frames with an MTU of {mtu} octets need units of {need}, and the carrier has room for {room}: only IP \
         packets can be segmented; raise the MTU of the carrier, or use TUN"
    )]
    Bridge {
        /// MTU of the interface.
        mtu: u16,
        /// Size of the unit of such a frame.
        need: usize,
        /// Size of the largest unit.
        room: usize,
    },
    /// MRRU has 16 bits.
    #[error("an MTU of {0} octets exceeds what segments can carry (MRRU has 16 bits)")]
    TooLarge(u16),
}

impl Budget {
    /// Returns the budget of a configuration.
    pub fn of(config: &SiteConfig) -> Result<Self, BudgetError> {
        let mut layers = Vec::new();
        let mut below = 0;
        let mut layer = |name, octets, more| layers.push(OverheadLayer { name, octets, more });
        let largest_datagram = match &config.carrier {
            Carrier::Udp { mtu, .. } => {
                let (name, octets) =
                    if is_over_ipv6(config) { ("outer IPv6", 40) } else { ("outer IPv4", 20) };
                layer(name, octets, "");
                layer("UDP", 8, "");
                below = octets + 8;
                usize::from(*mtu).saturating_sub(octets + 8)
            }
            Carrier::Serial { mtu, framing, crc, .. } => {
                match framing {
                    Framing::Slip => layer("SLIP", 2, "1 per octet 0xC0 and 0xDB"),
                    Framing::Cobs => layer("COBS", 2, "1 per 254 octets"),
                }
                layer("CRC-32", if *crc { 4 } else { 0 }, "");
                below = 2 + if *crc { 4 } else { 0 };
                usize::from(*mtu)
            }
            Carrier::File { .. } => usize::MAX,
        };
        let around = config.around();
        match config.security {
            Security::Key { .. } => {
                layer("seal header", around.header, "6 with the whole counter");
                layer("tag", around.tag, "");
            }
            Security::Insecure => layer("kind", around.header, ""),
            Security::Open => {}
        }
        let carrier_mtu = match &config.carrier {
            Carrier::Udp { mtu, .. } | Carrier::Serial { mtu, .. } => *mtu,
            Carrier::File { .. } => u16::MAX,
        };
        let need = around.longest_message;
        if need > largest_datagram {
            let least = usize::from(carrier_mtu) + need - largest_datagram;
            return Err(BudgetError::Keys { mtu: carrier_mtu, room: largest_datagram, need, least });
        }
        let for_body = largest_datagram.saturating_sub(around.most());
        let (largest_body, largest_unit) = units(config, for_body, &mut layer)?;
        let outer: usize = layers.iter().map(|layer| layer.octets).sum();
        let bridged = config.inside.bridged;
        if largest_unit < UNIT_LEAST {
            return Err(BudgetError::Narrow { mtu: carrier_mtu, overhead: outer });
        }
        if bridged {
            layers.push(OverheadLayer { name: "Ethernet", octets: ETHERNET, more: "" });
        }
        let (mtu, mrru) = inside(config, largest_unit)?;
        Ok(Self {
            mtu,
            is_given: config.inside.mtu.is_some(),
            mrru,
            is_cut: usize::from(mtu) + GROWTH
                > largest_unit.saturating_sub(if bridged { ETHERNET } else { 0 }),
            largest_datagram: if largest_datagram == usize::MAX { largest_body } else { largest_datagram },
            largest_body,
            largest_unit,
            layers,
            integrity: integrity(config),
            carrier_mtu,
            outer: below,
            bridged,
            packed: matches!(&config.carrier, Carrier::Udp { packaging: Packaging::Packed, .. }),
        })
    }

    /// Returns the sizes that can be adapted to a path MTU.
    pub fn narrow(&self) -> Narrow {
        Narrow {
            body: self.largest_body,
            unit: self.largest_unit,
            mtu: self.mtu,
            carrier_mtu: self.carrier_mtu,
            is_given: self.is_given,
            packed: self.packed,
            is_cut: !self.bridged && usize::from(self.mrru) >= usize::from(self.mtu) + GROWTH + UNIT_CRC,
        }
    }

    /// Overhead of a packet that is alone in its datagram, in octets.
    pub fn overhead(&self) -> usize {
        self.layers.iter().map(|layer| layer.octets).sum()
    }
}

/// Returns the size of the largest body, and of the largest unit in it, with room for `for_body` octets.
fn units(
    config: &SiteConfig,
    for_body: usize,
    layer: &mut impl FnMut(&'static str, usize, &'static str),
) -> Result<(usize, usize), BudgetError> {
    let packed = Packaging::Packed;
    let (packaging, rtp, mtu) = match &config.carrier {
        Carrier::Udp { packaging, rtp, mtu, .. } => (packaging, *rtp, *mtu),
        Carrier::Serial { mtu, .. } => (&packed, false, *mtu),
        Carrier::File { packaging, .. } => (packaging, false, u16::MAX),
    };
    match packaging {
        // One octet for the number of the site to which feedback of a mesh is sent.
        Packaging::Packed => {
            layer("packaging", 0, "1 or 2 per further packet in a datagram");
            Ok((for_body, for_body.saturating_sub(1)))
        }
        Packaging::Ts { per_datagram, .. } => {
            let rtp = if rtp { 12 } else { 0 };
            if rtp > 0 {
                layer("RTP", rtp, "");
            }
            let fit = for_body.saturating_sub(rtp) / TS_PACKET;
            if usize::from(*per_datagram) > fit {
                return Err(BudgetError::TsPackets { asked: *per_datagram, fit, mtu });
            }
            layer("TS Packets", 5, "4 per further TS Packet, and padding");
            layer("SNDU", 4, "6 with an NPA");
            layer("CRC-32 of SNDU", 4, "");
            Ok((rtp + usize::from(*per_datagram) * TS_PACKET, SNDU_MOST))
        }
        Packaging::Gse { .. } => {
            let (header, most) = BB_FRAME;
            layer("BBFrame", header, "");
            layer("GSE", 4, "6 with an NPA, and 3 to 7 in fragments");
            let body = for_body.min(header + most);
            Ok((body, if body > header + 32 { GSE_MOST } else { 0 }))
        }
    }
}

/// Returns MTU and MRRU for units of `largest_unit` octets.
fn inside(config: &SiteConfig, largest_unit: usize) -> Result<(u16, u16), BudgetError> {
    let bridged = config.inside.bridged;
    let room = largest_unit.saturating_sub(if bridged { ETHERNET } else { 0 });
    // An unlimited carrier does not require a large MTU.
    let usual = if largest_unit >= SNDU_MOST { USUAL } else { u16::MAX };
    let fits = u16::try_from(room.saturating_sub(GROWTH)).unwrap_or(u16::MAX).min(usual);
    let mtu = config.inside.mtu.unwrap_or(fits.max(IPV6_LEAST));
    if mtu < IPV4_LEAST {
        return Err(BudgetError::TooSmall(mtu));
    }
    if mtu < IPV6_LEAST && has_ipv6_inside(config) {
        return Err(BudgetError::TooSmallForIpv6(mtu));
    }
    let need = usize::from(mtu) + GROWTH;
    let least = need + UNIT_CRC;
    let fits = need <= room;
    if bridged && !fits {
        return Err(BudgetError::Bridge { mtu, need: need + ETHERNET, room: largest_unit });
    }
    if !fits && least > usize::from(u16::MAX) {
        return Err(BudgetError::TooLarge(mtu));
    }
    match config.channel.mrru {
        Some(mrru) if !fits && usize::from(mrru) < least => {
            Err(BudgetError::Mrru { mtu, need, room: largest_unit, mrru, least })
        }
        Some(mrru) => Ok((mtu, mrru)),
        None => {
            // Ends with different smaller MTUs agree.
            let most = usize::from(mtu.max(USUAL)) + GROWTH_WITH_EXTENSIONS + UNIT_CRC;
            Ok((mtu, u16::try_from(most).unwrap_or(u16::MAX)))
        }
    }
}

/// Returns the integrity check by carrier and encryption.
///
/// A tag of 8 octets or more is a MIC. Serial lines and SNDUs have a CRC-32 that is checked at the end of the
/// link; GSE has one over fragmented PDUs only, and UDP has a checksum of 16 bits.
pub fn integrity(config: &SiteConfig) -> Integrity {
    let ends_with_crc = match &config.carrier {
        Carrier::Serial { crc, .. } => *crc,
        Carrier::Udp { packaging, .. } | Carrier::File { packaging, .. } => match packaging {
            Packaging::Ts { .. } => true,
            Packaging::Gse { .. } | Packaging::Packed => false,
        },
    };
    match &config.security {
        Security::Key { suite, .. } if suite.tag() >= 8 => Integrity::Mic,
        Security::Key { .. } | Security::Open | Security::Insecure if ends_with_crc => Integrity::Crc32,
        Security::Key { .. } | Security::Open | Security::Insecure => Integrity::None,
    }
}

/// True if datagrams can be sent over IPv6: they need room for its header.
fn is_over_ipv6(config: &SiteConfig) -> bool {
    let Carrier::Udp { listen, group, .. } = &config.carrier else { return false };
    let is_six = |address: &SocketAddr| is_six(&address.ip());
    let others = match &config.others {
        Others::Peers(peers) => {
            // A peer that contacts an IPv6 socket uses IPv6, or may use it.
            let comes = |address: Option<SocketAddr>| address.unwrap_or(*listen);
            peers.iter().any(|peer| is_six(&comes(peer.address)))
        }
        Others::Mesh(mesh) => mesh.to.as_ref().is_some_and(is_six),
    };
    others || group.as_ref().is_some_and(|(group, _)| self::is_six(group))
}

fn has_ipv6_inside(config: &SiteConfig) -> bool {
    let prefixes = config.inside.addresses.iter().chain(&config.inside.routes);
    prefixes.into_iter().any(|(address, _)| is_six(address))
}

/// True for IPv6 addresses, except IPv4-mapped ones.
fn is_six(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = if self.bridged { "TAP" } else { "TUN" };
        let given = if self.is_given { "as given" } else { "the maximum of the carrier, at least 1280" };
        writeln!(f, "{device} MTU           {:>5} octets, {given}", self.mtu)?;
        writeln!(f, "largest datagram  {:>5} octets", self.largest_datagram)?;
        writeln!(f, "largest unit      {:>5} octets", self.largest_unit)?;
        match (self.is_cut, self.mrru) {
            (true, mrru) => writeln!(f, "MRRU              {mrru:>5} octets: long packets are segmented")?,
            (false, 0) => writeln!(f, "MRRU                  0: no segments")?,
            (false, mrru) => {
                writeln!(f, "MRRU              {mrru:>5} octets: segments only for long chains of headers")?;
            }
        }
        writeln!(f, "around a packet   {:>5} octets", self.overhead())?;
        for layer in &self.layers {
            let more = if layer.more.is_empty() { String::new() } else { format!(" (and {})", layer.more) };
            writeln!(f, "  {:<15} {:>5}{more}", layer.name, layer.octets)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
