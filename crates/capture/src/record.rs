//! One captured frame.

use std::ops::Range;

use crate::link::{self, NetworkPacket, RohcPacket, Skip};
use crate::mac_frame::{MacFrame, mac_frame};
use crate::{LinkType, Timestamp};

/// One captured frame, as it is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of the record in the file, from 1, as in Wireshark.
    pub number: u64,
    /// Time of capture; 0 in a Simple Packet Block, which has no time.
    pub time: Timestamp,
    /// Type of the first header in `data`.
    pub link_type: LinkType,
    /// Captured octets.
    pub data: &'a [u8],
    /// Length of the frame on the link, in octets. In some files it is less than `data.len()`.
    pub original_len: u32,
}

impl<'a> Record<'a> {
    /// True if the snap length of the capture truncated the frame.
    pub fn is_truncated(&self) -> bool {
        link::is_truncated(self.data, self.original_len)
    }

    /// Finds the IP packet in the frame: see [`network_packet`](crate::network_packet).
    ///
    /// # Errors
    /// Reason why there is no complete packet.
    pub fn network_packet(&self) -> Result<NetworkPacket<'a>, Skip> {
        link::network_packet(self.link_type, self.data, self.original_len)
    }

    /// Finds the captured part of the IP packet in the frame, also if its end is missing: see
    /// [`network_packet`](crate::network_packet) and [`NetworkPacket::missing_len`].
    ///
    /// # Errors
    /// Reason why there is no packet; also [`Skip::Truncated`] if its length is unknown.
    pub fn part_of_network_packet(&self) -> Result<NetworkPacket<'a>, Skip> {
        link::part_of_network_packet(self.link_type, self.data, self.original_len)
    }

    /// Finds the ROHC packet in the frame: see [`rohc_packet`](crate::rohc_packet).
    ///
    /// # Errors
    /// Reason why there is no complete packet.
    pub fn rohc_packet(&self) -> Result<RohcPacket<'a>, Skip> {
        link::rohc_packet(self.link_type, self.data, self.original_len)
    }

    /// Returns the EtherType of a frame of Ethernet, or of a Linux cooked capture, after VLAN tags; values below
    /// 1,536 are the length of an LLC frame (IEEE 802.3). `None` for other link types and truncated headers.
    pub fn ethertype(&self) -> Option<u16> {
        link::ethertype_of(self.link_type, self.data)
    }

    /// Finds the MAC frame of IEEE 802.15.4: see [`mac_frame`](crate::mac_frame()).
    ///
    /// # Errors
    /// Reason why there is no complete frame.
    pub fn mac_frame(&self) -> Result<MacFrame<'a>, Skip> {
        mac_frame(self.link_type, self.data, self.original_len)
    }
}

/// Position and properties of a record, before it is lent to the caller.
#[derive(Debug)]
pub(crate) struct FoundRecord {
    /// Range of the data, from the start of the headers of the record or block.
    pub(crate) data: Range<usize>,
    pub(crate) time: Timestamp,
    pub(crate) link_type: LinkType,
    pub(crate) original_len: u32,
}
