//! TS Packets: 188 octets with a PID each. ISO/IEC 13818-1, section 2.4.3; RFC 4326, section 2.

use core::fmt;
use thinair_wire::coder::{Coder, Reader, Refusal, Step, Writer};

/// A TS Packet with its header, as sent.
///
/// A plain array, so that a datagram or a file is a slice of them without a copy; the type does not guarantee
/// that it begins with [`SYNC`].
pub type TsPacket = [u8; LEN];

/// Length of a TS Packet, in octets.
pub const LEN: usize = 188;

/// First octet of every TS Packet.
pub const SYNC: u8 = 0x47;

/// Length of a TS header, in octets.
pub const HEADER: usize = 4;

/// Octets of a TS Packet after the header.
pub const PAYLOAD: usize = LEN - HEADER;

/// Padding of a TS Packet after its last SNDU.
pub const STUFFING: u8 = 0xFF;

/// A TS Packet without content, which fills a constant rate.
pub const NULL_PACKET: TsPacket = {
    let mut packet = [STUFFING; LEN];
    [packet[0], packet[1], packet[2], packet[3]] = [SYNC, 0x1F, 0xFF, 0x10];
    packet
};

/// Packet Identifier: identifies a stream of a multiplex, 13 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(u16);

impl Pid {
    /// PID of the Program Association Table.
    pub const PAT: Self = Self(0x0000);
    /// PID of null packets.
    pub const NULL: Self = Self(0x1FFF);

    /// Creates a PID, 0 to 0x1FFF.
    #[inline]
    pub const fn new(value: u16) -> Option<Self> {
        if value <= Self::NULL.0 { Some(Self(value)) } else { None }
    }

    /// Returns the number.
    #[inline]
    pub const fn value(self) -> u16 {
        self.0
    }

    /// True if a stream may have it: PIDs below 0x0020 are reserved by MPEG-2 and DVB, and one is that of null
    /// packets.
    #[inline]
    pub const fn is_for_streams(self) -> bool {
        matches!(self.0, 0x0020..0x1FFF)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// Continuity Counter: 4 bits that count the TS Packets of a PID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cc(u8);

impl Cc {
    /// Creates a counter of the low 4 bits of a number.
    #[inline]
    pub const fn new(value: u8) -> Self {
        Self(value & 0xF)
    }

    /// Returns the number, 0 to 15.
    #[inline]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns the counter of the next TS Packet.
    #[inline]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }
}

/// Adaptation Field Control: content after a TS header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afc {
    /// `00`: reserved.
    Reserved,
    /// `01`: payload. The only value that a ULE Encapsulator sends.
    Payload,
    /// `10`: an adaptation field.
    Adaptation,
    /// `11`: an adaptation field, followed by payload.
    AdaptationAndPayload,
}

/// The header of a TS Packet, without its first octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsHeader {
    /// Transport Error Indicator: a receiver has marked the packet as damaged.
    pub transport_error: bool,
    /// Payload Unit Start Indicator (PUSI): an SNDU starts in the packet, and a Payload Pointer comes first.
    pub payload_unit_start: bool,
    /// Transport Priority.
    pub priority: bool,
    /// PID of the stream.
    pub pid: Pid,
    /// Transport Scrambling Control, 0 for none, up to 3.
    pub scrambling: u8,
    /// Adaptation Field Control.
    pub afc: Afc,
    /// Continuity Counter.
    pub cc: Cc,
}

/// Error: a packet does not begin with [`SYNC`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSync;

impl TsHeader {
    /// Creates the header of a packet with payload only, not scrambled.
    #[inline]
    pub const fn new(pid: Pid, payload_unit_start: bool, cc: Cc) -> Self {
        Self {
            transport_error: false,
            payload_unit_start,
            priority: false,
            pid,
            scrambling: 0,
            afc: Afc::Payload,
            cc,
        }
    }

    /// Reads the header of a packet.
    #[inline]
    pub fn read(packet: &TsPacket) -> Result<Self, NoSync> {
        let [a, b, c, d, ..] = *packet;
        let mut fields = Self::new(Pid::NULL, false, Cc::default());
        match header(&mut Reader::contiguous(&[a, b, c, d]), &mut fields) {
            Ok(()) => Ok(fields),
            Err(Refusal::NotThis | Refusal::DoesNotFit | Refusal::Malformed) => Err(NoSync),
        }
    }

    /// Returns the octets of the header.
    #[inline]
    pub fn octets(mut self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        // No value is rejected: every one has its place.
        let _ = header(&mut Writer::new(&mut octets, 0), &mut self);
        octets
    }
}

/// The TS header, field by field. RFC 4326, section 2, under "TS Header".
#[inline(always)]
fn header<'p, C: Coder<'p>>(c: &mut C, header: &mut TsHeader) -> Step {
    c.discriminator(8, u32::from(SYNC))?;
    c.flag("Transport Error Indicator", &mut header.transport_error)?;
    c.flag("Payload Unit Start Indicator", &mut header.payload_unit_start)?;
    c.flag("Transport Priority", &mut header.priority)?;
    c.uint("PID", 13, &mut header.pid.0)?;
    c.uint("Transport Scrambling Control", 2, &mut header.scrambling)?;
    let mut afc = header.afc as u8;
    c.uint("Adaptation Field Control", 2, &mut afc)?;
    header.afc = match afc {
        0b00 => Afc::Reserved,
        0b01 => Afc::Payload,
        0b10 => Afc::Adaptation,
        _ => Afc::AdaptationAndPayload,
    };
    c.uint("Continuity Counter", 4, &mut header.cc.0)
}

/// Error: the length of a datagram is not a multiple of 188.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWhole {
    /// Octets of the datagram.
    pub octets: usize,
}

impl fmt::Display for NotWhole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets are not a multiple of {LEN}, the length of a TS Packet", self.octets)
    }
}

impl core::error::Error for NotWhole {}

/// Returns the TS Packets of a datagram, usually 7.
pub fn packets(datagram: &[u8]) -> Result<&[TsPacket], NotWhole> {
    match datagram.as_chunks() {
        (packets @ [_, ..], []) => Ok(packets),
        _ => Err(NotWhole { octets: datagram.len() }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_wire::coder::Describer;

    #[test]
    fn fields_have_the_widths_of_the_standard() {
        let mut describer = Describer::<9>::new(0);
        header(&mut describer, &mut TsHeader::new(Pid::PAT, false, Cc::new(0))).unwrap();
        assert!(describer.fields().iter().map(|field| field.bits).eq([8, 1, 1, 1, 13, 2, 2, 4]));
        assert_eq!(describer.fields()[0].pattern, 0x47);
    }

    #[test]
    fn a_header_is_read_as_it_is_written() {
        for bits in 0..1_u32 << 24 {
            // All values of two fields at a time suffice.
            if bits & 0x00F0_0F00 != 0 && bits & 0x000F_00F0 != 0 {
                continue;
            }
            let mut packet = NULL_PACKET;
            packet[1..4].copy_from_slice(&bits.to_be_bytes()[1..]);
            let header = TsHeader::read(&packet).unwrap();
            assert_eq!(header.octets(), packet[..HEADER]);
        }
    }

    #[test]
    fn where_the_fields_lie() {
        let mut packet = NULL_PACKET;
        packet[..4].copy_from_slice(&[0x47, 0x40, 0x35, 0x1F]);
        let pid = Pid::new(0x35).unwrap();
        assert_eq!(TsHeader::read(&packet), Ok(TsHeader::new(pid, true, Cc::new(15))));
        packet[1] = 0xA0;
        packet[3] = 0xB3;
        let header = TsHeader::read(&packet).unwrap();
        assert!(header.transport_error && header.priority && !header.payload_unit_start);
        assert_eq!((header.scrambling, header.afc, header.cc), (2, Afc::AdaptationAndPayload, Cc::new(3)));
        packet[0] = 0x46;
        assert_eq!(TsHeader::read(&packet), Err(NoSync));
    }

    #[test]
    fn values_that_cannot_be_are_not() {
        assert_eq!(Pid::new(0x2000), None);
        assert!(
            [0x001F, 0x0020, 0x1FFE, 0x1FFF].map(|pid| Pid(pid).is_for_streams())
                == [false, true, true, false]
        );
        assert_eq!(Cc::new(15).next(), Cc::new(0));
        assert_eq!(TsHeader::read(&NULL_PACKET).unwrap().pid, Pid::NULL);
    }

    #[test]
    fn a_datagram_holds_whole_packets() {
        let octets = [SYNC; 3 * LEN];
        assert_eq!(packets(&octets).unwrap().len(), 3);
        for len in [0, 1, LEN - 1, LEN + 1] {
            assert_eq!(packets(&octets[..len]), Err(NotWhole { octets: len }));
        }
    }
}
