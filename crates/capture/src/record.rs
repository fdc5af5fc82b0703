//! One captured frame.

use std::ops::Range;

use crate::link::{self, Network, Rohc, Skip};
use crate::mac_frame::{MacFrame, mac_frame};
use crate::{LinkType, Timestamp};

/// One captured frame, as it lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Which record of the file this is. The first is 1, as in Wireshark.
    pub number: u64,
    /// When it was captured; 0 in a Simple Packet Block, which has no time.
    pub time: Timestamp,
    /// What `data` begins with.
    pub link_type: LinkType,
    /// The octets that were captured.
    pub data: &'a [u8],
    /// Octets that the frame had on the link. Files exist in which this is less than `data.len()`.
    pub original_len: u32,
}

impl<'a> Record<'a> {
    /// Whether the capture's snap length cut off the end of the frame.
    pub fn is_truncated(&self) -> bool {
        link::is_truncated(self.data, self.original_len)
    }

    /// The IP packet in the frame: see [`network_packet`](crate::network_packet).
    ///
    /// # Errors
    /// Why there is none, or none that is whole.
    pub fn network_packet(&self) -> Result<Network<'a>, Skip> {
        link::network_packet(self.link_type, self.data, self.original_len)
    }

    /// Octets that were captured of the IP packet in the frame, also if its end is missing: see
    /// [`network_packet`](crate::network_packet) and [`Network::missing_len`].
    ///
    /// # Errors
    /// Why there is none; [`Skip::Truncated`] if it gives itself no length, too.
    pub fn part_of_network_packet(&self) -> Result<Network<'a>, Skip> {
        link::part_of_network_packet(self.link_type, self.data, self.original_len)
    }

    /// The ROHC packet in the frame: see [`rohc_packet`](crate::rohc_packet).
    ///
    /// # Errors
    /// Why there is none, or none that is whole.
    pub fn rohc_packet(&self) -> Result<Rohc<'a>, Skip> {
        link::rohc_packet(self.link_type, self.data, self.original_len)
    }

    /// The MAC frame of IEEE 802.15.4: see [`mac_frame`](crate::mac_frame()).
    ///
    /// # Errors
    /// Why there is none, or none that is whole.
    pub fn mac_frame(&self) -> Result<MacFrame<'a>, Skip> {
        mac_frame(self.link_type, self.data, self.original_len)
    }
}

/// A record in the octets of its record or block, before it is lent to the caller.
#[derive(Debug)]
pub(crate) struct Found {
    /// Where the data lies, from the start of the record's or block's headers.
    pub(crate) data: Range<usize>,
    pub(crate) time: Timestamp,
    pub(crate) link_type: LinkType,
    pub(crate) original_len: u32,
}
