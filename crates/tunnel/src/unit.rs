//! What channels hand to the packaging: a ROHC packet, or something else that has a Type of its own.

/// The number of a site in a mesh: 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(std::num::NonZeroU8);

impl SiteId {
    /// The site of that number; `None` for 0, which stands for nobody.
    pub fn new(number: u8) -> Option<Self> {
        std::num::NonZeroU8::new(number).map(Self)
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0.get()
    }
}

/// What a unit is: the Type field of an SNDU or a GSE Packet (RFC 4326, section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A ROHC packet (EtherType 0x22F1).
    Rohc,
    /// An IPv4 packet as it is (0x0800).
    Ipv4,
    /// An IPv6 packet as it is (0x86DD).
    Ipv6,
    /// An Ethernet frame (RFC 4326, section 4.7.5). If its EtherType is that of ROHC, a ROHC packet stands where the
    /// packet was.
    Bridged,
}

/// What is carried as a whole, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'u> {
    /// What the octets are.
    pub protocol: Protocol,
    /// The one site of a mesh that it is for, which is so for feedback; `None`: whoever hears it.
    pub to: Option<SiteId>,
    /// Whether it belongs to the channel with large CIDs, where a pair has two channels.
    pub large: bool,
    /// The octets.
    pub octets: &'u [u8],
}
