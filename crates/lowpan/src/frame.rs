//! Frames of the IEEE 802.15.4 MAC: data, acknowledgements, beacons, commands. IEEE 802.15.4-2015, section 7.2.
//!
//! The header is one format over a [`Coder`], of frame versions 0 (2003), 1 (2006) and 2 (2015). The content of
//! beacons, commands, Information Elements and encrypted payloads is not interpreted.

mod security;

use thinair_wire::coder::{Coder, NoRoom, Reader, Step, Writer};

use crate::link::{LinkAddress, Links};
pub use security::{AuxSecurityHeader, KeyIdMode};

/// Longest frame of the 2.4 GHz PHY, check sequence included, in octets (`aMaxPHYPacketSize`).
pub const MAX_LEN: usize = 127;

/// Short address of all nodes of a PAN.
pub const BROADCAST: LinkAddress = LinkAddress::Short(0xFFFF);

/// Type of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameType {
    /// Beacon: its payload begins with the superframe specification.
    Beacon,
    /// Data: its payload is that of the layer above.
    #[default]
    Data,
    /// Acknowledgement of a frame with its sequence number.
    Acknowledgment,
    /// Command: its payload is a MAC command.
    Command,
}

/// Edition of the standard that a frame follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameVersion {
    /// Frame version 0: IEEE 802.15.4-2003, and any frame that is identical in it.
    #[default]
    V2003,
    /// Frame version 1: secured, or longer than 2003 allows.
    V2006,
    /// Frame version 2: Information Elements, sequence numbers and PAN IDs that may be missing.
    V2015,
}

/// A frame without its check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WpanFrame<'p> {
    /// Type.
    pub frame_type: FrameType,
    /// Version.
    pub version: FrameVersion,
    /// True if the sender has more frames for the receiver.
    pub frame_pending: bool,
    /// True if the receiver is to acknowledge it.
    pub ack_request: bool,
    /// Sequence number; `None` only in version 2.
    pub sequence_number: Option<u8>,
    /// Destination PAN ID, if it is in-line.
    pub destination_pan: Option<u16>,
    /// Address of the receiver.
    pub destination: LinkAddress,
    /// Source PAN ID, if it is in-line; otherwise it is that of the destination.
    pub source_pan: Option<u16>,
    /// Address of the sender.
    pub source: LinkAddress,
    /// Auxiliary Security Header; `None` if the frame is not secured.
    pub security: Option<AuxSecurityHeader>,
    /// Information Elements with their terminations, only in version 2.
    pub information_elements: &'p [u8],
    /// Payload of the layer above; encrypted if [`AuxSecurityHeader::is_encrypted`].
    pub payload: &'p [u8],
    /// Message Integrity Code of a secured frame.
    pub mic: &'p [u8],
}

/// Reason why octets cannot be read as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WpanFrameError {
    /// The peer sent a Multipurpose, Fragment or Extended frame, which have other headers, or a reserved type.
    Type {
        /// Frame Type, 4 to 7.
        value: u8,
    },
    /// The peer sent a malformed frame: a header that is cut off, a reserved value, or an invalid PAN ID Compression.
    Malformed {
        /// Offset at which decoding ended.
        offset: usize,
    },
    /// The frame is secured by the rules of 2003, which put the security header after the MAC header, with a length
    /// that only the two ends have.
    Security2003,
}

impl core::fmt::Display for WpanFrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Type { value } => write!(f, "frame type {value} is not supported"),
            Self::Malformed { offset } => write!(f, "malformed frame before octet {offset}"),
            Self::Security2003 => write!(f, "security of IEEE 802.15.4-2003 is not supported"),
        }
    }
}

impl core::error::Error for WpanFrameError {}

/// Reason why a frame cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WpanFrameWriteError {
    /// This version does not allow these addresses with these PAN IDs.
    Pan,
    /// The version does not allow a field: only version 2 has frames without a sequence number, or with Information
    /// Elements; security headers of version 0 are not supported.
    Version,
    /// The Message Integrity Code does not have the length of the security level.
    Mic,
    /// `out` is too short.
    OutputTooSmall {
        /// Length of `out`, in octets.
        have: usize,
    },
}

impl core::fmt::Display for WpanFrameWriteError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Pan => write!(f, "no frame of this version can have these addresses and PAN IDs"),
            Self::Version => write!(f, "the frame version does not allow a field of the frame"),
            Self::Mic => write!(f, "the integrity code does not have the length of the security level"),
            Self::OutputTooSmall { have } => write!(f, "the output buffer of {have} octets is too short"),
        }
    }
}

impl core::error::Error for WpanFrameWriteError {}

impl<'p> WpanFrame<'p> {
    /// Creates a data frame of version 0 within a PAN, as RFC 4944 requires: both addresses in-line, one PAN ID.
    pub const fn data(pan: u16, links: Links, sequence_number: u8, payload: &'p [u8]) -> Self {
        Self {
            frame_type: FrameType::Data,
            version: FrameVersion::V2003,
            frame_pending: false,
            ack_request: !matches!(links.destination, BROADCAST),
            sequence_number: Some(sequence_number),
            destination_pan: Some(pan),
            destination: links.destination,
            source_pan: None,
            source: links.source,
            security: None,
            information_elements: &[],
            payload,
            mic: &[],
        }
    }

    /// Creates the acknowledgement of a frame of version 0 or 1: 3 octets.
    pub const fn acknowledgment(sequence_number: u8) -> Self {
        Self {
            frame_type: FrameType::Acknowledgment,
            ack_request: false,
            destination_pan: None,
            ..Self::data(0, NO_LINKS, sequence_number, &[])
        }
    }

    /// Returns the addresses, for [`crate::decompress`].
    pub const fn links(&self) -> Links {
        Links { source: self.source, destination: self.destination }
    }

    /// Reads a frame without check sequence.
    pub fn read(octets: &'p [u8]) -> Result<Self, WpanFrameError> {
        let mut reader = Reader::contiguous(octets);
        let mut h = MacHeader::default();
        let frame_type = match octets.first().map(|octet| octet & 0b111) {
            None | Some(0) => FrameType::Beacon,
            Some(1) => FrameType::Data,
            Some(2) => FrameType::Acknowledgment,
            Some(3) => FrameType::Command,
            Some(value) => return Err(WpanFrameError::Type { value }),
        };
        header(&mut reader, &mut h).map_err(|_| WpanFrameError::Malformed { offset: reader.position() })?;
        let version = match h.version {
            0 => FrameVersion::V2003,
            1 => FrameVersion::V2006,
            _ => FrameVersion::V2015,
        };
        if h.is_secured && version == FrameVersion::V2003 {
            return Err(WpanFrameError::Security2003);
        }
        let (pans, security) = (h.pans(), h.is_secured.then_some(h.security));
        let start = reader.position();
        let behind = reader.remaining();
        let mic = security.map_or(0, AuxSecurityHeader::mic_len);
        let content =
            behind.len().checked_sub(mic).ok_or(WpanFrameError::Malformed { offset: octets.len() })?;
        let (content, mic) = behind.split_at_checked(content).unwrap_or_default();
        let elements = if h.has_elements() {
            elements_len(content, security.is_some_and(AuxSecurityHeader::is_encrypted))
                .map_err(|at| WpanFrameError::Malformed { offset: start + at })?
        } else {
            0
        };
        let (information_elements, payload) = content.split_at_checked(elements).unwrap_or_default();
        Ok(Self {
            frame_type,
            version,
            frame_pending: h.frame_pending,
            ack_request: h.ack_request,
            sequence_number: (!h.is_sequence_suppressed()).then_some(h.sequence_number),
            destination_pan: pans.is_some_and(|pans| pans.0).then_some(u16::from_le_bytes(h.destination_pan)),
            destination: h.destination.link(),
            source_pan: pans.is_some_and(|pans| pans.1).then_some(u16::from_le_bytes(h.source_pan)),
            source: h.source.link(),
            security,
            information_elements,
            payload,
            mic,
        })
    }

    /// Writes the frame, without check sequence, at the start of `out`; returns its end.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, WpanFrameWriteError> {
        let have = out.len();
        let is_2015 = self.version == FrameVersion::V2015;
        let has_elements = !self.information_elements.is_empty();
        let needs_2015 = has_elements || self.sequence_number.is_none();
        let is_2003_secured = self.version == FrameVersion::V2003 && self.security.is_some();
        if needs_2015 && !is_2015 || is_2003_secured {
            return Err(WpanFrameWriteError::Version);
        }
        if self.mic.len() != self.security.map_or(0, AuxSecurityHeader::mic_len) {
            return Err(WpanFrameWriteError::Mic);
        }
        let mut h = MacHeader {
            frame_type: self.frame_type as u8,
            is_secured: self.security.is_some(),
            frame_pending: self.frame_pending,
            ack_request: self.ack_request,
            is_pan_id_compressed: false,
            sequence_suppression: self.sequence_number.is_none(),
            elements_present: has_elements,
            version: self.version as u8,
            sequence_number: self.sequence_number.unwrap_or(0),
            destination_pan: self.destination_pan.unwrap_or(0).to_le_bytes(),
            destination: MacAddress::of(self.destination),
            source_pan: self.source_pan.unwrap_or(0).to_le_bytes(),
            source: MacAddress::of(self.source),
            security: self.security.unwrap_or_default(),
        };
        // PAN ID Compression is the value that gives the present PAN IDs; at most one does.
        let wanted = Some((self.destination_pan.is_some(), self.source_pan.is_some()));
        if h.pans() != wanted {
            h.is_pan_id_compressed = true;
            if h.pans() != wanted {
                return Err(WpanFrameWriteError::Pan);
            }
        }
        let mut writer = Writer::new(out, 0);
        // All values were chosen to fit.
        header(&mut writer, &mut h).map_err(|_| WpanFrameWriteError::Version)?;
        for part in [self.information_elements, self.payload, self.mic] {
            writer.copy(part);
        }
        writer.finish().map_err(|NoRoom| WpanFrameWriteError::OutputTooSmall { have })
    }
}

const NO_LINKS: Links = Links { source: LinkAddress::None, destination: LinkAddress::None };

/// Fields of the MAC header as encoded. Those that are not sent have no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MacHeader {
    frame_type: u8,
    is_secured: bool,
    frame_pending: bool,
    ack_request: bool,
    is_pan_id_compressed: bool,
    sequence_suppression: bool,
    elements_present: bool,
    version: u8,
    sequence_number: u8,
    destination_pan: [u8; 2],
    destination: MacAddress,
    source_pan: [u8; 2],
    source: MacAddress,
    security: AuxSecurityHeader,
}

/// MHR: Frame Control, Sequence Number, addressing fields, Auxiliary Security Header; without Information Elements.
/// IEEE 802.15.4-2015, section 7.2.1 and figure 7-2.
///
/// The standard draws Frame Control from bit 0 on; here each of its octets begins with the most significant bit.
fn header<'p, C: Coder<'p>>(c: &mut C, h: &mut MacHeader) -> Step {
    c.reserved(1)?;
    c.flag("PAN ID Compression", &mut h.is_pan_id_compressed)?;
    c.flag("AR", &mut h.ack_request)?;
    c.flag("Frame Pending", &mut h.frame_pending)?;
    let is_secured = c.flag("Security Enabled", &mut h.is_secured)?;
    c.uint("Frame Type", 3, &mut h.frame_type)?;
    c.uint("Source Addressing Mode", 2, &mut h.source.mode)?;
    c.uint("Frame Version", 2, &mut h.version)?;
    c.uint("Destination Addressing Mode", 2, &mut h.destination.mode)?;
    // Reserved before 2015.
    c.flag("IE Present", &mut h.elements_present)?;
    c.flag("Sequence Number Suppression", &mut h.sequence_suppression)?;
    c.require(h.version <= VERSION_2015)?;
    if !h.is_sequence_suppressed() {
        c.uint("Sequence Number", 8, &mut h.sequence_number)?;
    }
    let pans = h.pans();
    c.require(pans.is_some())?;
    let (has_destination_pan, has_source_pan) = pans.unwrap_or_default();
    if has_destination_pan {
        c.octets("Destination PAN ID", &mut h.destination_pan)?;
    }
    h.destination.code(c, "Destination Address")?;
    if has_source_pan {
        c.octets("Source PAN ID", &mut h.source_pan)?;
    }
    h.source.code(c, "Source Address")?;
    if is_secured && h.version > 0 {
        h.security.code(c)?;
    }
    Ok(())
}

const VERSION_2015: u8 = 2;

impl MacHeader {
    const fn is_sequence_suppressed(&self) -> bool {
        self.version == VERSION_2015 && self.sequence_suppression
    }

    const fn has_elements(&self) -> bool {
        self.version == VERSION_2015 && self.elements_present
    }

    /// Returns true for each PAN ID that is in-line, of destination and source; `None` if the combination of bits is
    /// invalid.
    const fn pans(&self) -> Option<(bool, bool)> {
        let (destination, source) = (self.destination.mode, self.source.mode);
        if self.version < VERSION_2015 {
            // 2006, section 7.2.1.1.5: "If ... only one address is present, this field shall be set to zero".
            return match (destination > 0, source > 0, self.is_pan_id_compressed) {
                (true, true, is_compressed) => Some((true, !is_compressed)),
                (has_destination, has_source, false) => Some((has_destination, has_source)),
                _ => None,
            };
        }
        // 2015, table 7-2.
        Some(match (destination, source, self.is_pan_id_compressed) {
            (NONE, NONE, is_compressed) => (is_compressed, false),
            (_, NONE, is_compressed) => (!is_compressed, false),
            (NONE, _, is_compressed) => (false, !is_compressed),
            (EXTENDED, EXTENDED, is_compressed) => (!is_compressed, false),
            (_, _, is_compressed) => (true, !is_compressed),
        })
    }
}

/// An address and its mode. Octets are in the order of the frame, least significant first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MacAddress {
    mode: u8,
    octets: [u8; 8],
}

/// Addressing modes; 1 is reserved.
const NONE: u8 = 0;
const SHORT: u8 = 2;
const EXTENDED: u8 = 3;

impl MacAddress {
    fn code<'p, C: Coder<'p>>(&mut self, c: &mut C, name: &'static str) -> Step {
        let [a, b, ..] = self.octets;
        let mut short = [a, b];
        match self.mode {
            NONE => Ok(()),
            SHORT => {
                c.octets(name, &mut short)?;
                self.octets = [short[0], short[1], 0, 0, 0, 0, 0, 0];
                Ok(())
            }
            EXTENDED => c.octets(name, &mut self.octets),
            _ => c.require(false),
        }
    }

    fn of(address: LinkAddress) -> Self {
        match address {
            LinkAddress::None => Self::default(),
            LinkAddress::Short(address) => {
                let [low, high] = address.to_le_bytes();
                Self { mode: SHORT, octets: [low, high, 0, 0, 0, 0, 0, 0] }
            }
            LinkAddress::Extended(mut octets) => {
                octets.reverse();
                Self { mode: EXTENDED, octets }
            }
        }
    }

    fn link(self) -> LinkAddress {
        let [a, b, ..] = self.octets;
        match self.mode {
            SHORT => LinkAddress::Short(u16::from_le_bytes([a, b])),
            EXTENDED => {
                let mut octets = self.octets;
                octets.reverse();
                LinkAddress::Extended(octets)
            }
            _ => LinkAddress::None,
        }
    }
}

/// Header Termination 1 and 2: Payload Information Elements follow; the payload follows.
const HT1: u16 = 0x7E;
const HT2: u16 = 0x7F;
/// Group ID of the Payload Termination.
const PAYLOAD_TERMINATION: u16 = 0xF;

/// Returns the length of the Information Elements at the start of `content`, terminations included, or the offset of
/// an error. Encrypted elements are not examined. IEEE 802.15.4-2015, section 7.4.
fn elements_len(content: &[u8], is_encrypted: bool) -> Result<usize, usize> {
    let mut at = 0;
    let mut is_header = true;
    // A list may also end with the frame.
    while let Some(&descriptor) = content.get(at..).and_then(<[u8]>::first_chunk) {
        let descriptor = u16::from_le_bytes(descriptor);
        let is_payload_element = descriptor >> 15 == 1;
        if is_payload_element == is_header {
            return Err(at);
        }
        let (len, id) = if is_header {
            (descriptor & 0x7F, descriptor >> 7 & 0xFF)
        } else {
            (descriptor & 0x7FF, descriptor >> 11 & 0xF)
        };
        let end = at + 2 + usize::from(len);
        if end > content.len() {
            return Err(at);
        }
        at = end;
        match (is_header, id) {
            (true, HT1) if is_encrypted => return Ok(at),
            (true, HT1) => is_header = false,
            (true, HT2) | (false, PAYLOAD_TERMINATION) => return Ok(at),
            _ => {}
        }
    }
    if at == content.len() { Ok(at) } else { Err(at) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
