//! The pcapng format: sections of blocks, each block framed by its length (draft-ietf-opsawg-pcapng).
//!
//! `pcap_parser` parses the blocks, with three exceptions: the frame of a block, so that a wrong length
//! within a block costs one record and not the file; the obsolete Packet Block, which it does not support;
//! and `if_tsresol` and `if_tsoffset`, for which it (version 0.17) does not support powers of two and
//! big-endian sections.

use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, SectionHeaderBlock, SimplePacketBlock,
    parse_block_be, parse_block_le,
};

use crate::record::FoundRecord;
use crate::{Flaw, LinkType, Timestamp};

/// Type of a Section Header Block in the file's first four octets, equal in both byte orders.
pub(crate) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Length of the shortest block in octets: type, length, length.
pub(crate) const MIN_BLOCK_LEN: usize = 12;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Limit for memory: each interface needs some, this number 2 MiB.
const MAX_INTERFACES: usize = 65_536;

/// Offset of packet data in a block, in octets.
const PACKET_DATA_AT: usize = 28;
const SIMPLE_PACKET_DATA_AT: usize = 12;

/// Type, length and byte order of a block, from its first [`MIN_BLOCK_LEN`] octets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockFrame {
    pub(crate) kind: BlockKind,
    /// Length of the whole block in octets.
    pub(crate) length: u32,
}

/// Types of blocks that are relevant to a reader of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    SectionHeader,
    InterfaceDescription,
    /// Enhanced, Simple or obsolete Packet Block.
    Packet,
    Other,
}

impl BlockKind {
    const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    const INTERFACE_DESCRIPTION: u32 = 1;
    const PACKET: u32 = 2;
    const SIMPLE_PACKET: u32 = 3;
    const ENHANCED_PACKET: u32 = 6;

    fn of(block_type: u32) -> Self {
        match block_type {
            Self::SECTION_HEADER => Self::SectionHeader,
            Self::INTERFACE_DESCRIPTION => Self::InterfaceDescription,
            Self::PACKET | Self::SIMPLE_PACKET | Self::ENHANCED_PACKET => Self::Packet,
            _ => Self::Other,
        }
    }
}

/// State of a section, from its blocks so far.
///
/// **For each block call [`frame`](Self::frame), then [`end`](Self::end) with its last four octets, then
/// [`handle_block`](Self::handle_block) unless it is [`BlockKind::Other`].**
#[derive(Debug, Default)]
pub(crate) struct SectionState {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

impl SectionState {
    /// Reads the start of a block, at least [`MIN_BLOCK_LEN`] octets.
    pub(crate) fn frame(&mut self, octets: &[u8]) -> Result<BlockFrame, Flaw> {
        if octets.starts_with(&MAGIC) {
            self.order = ByteOrder::of_section(octets).ok_or(Flaw::ByteOrderMagic)?;
        }
        let too_short = Flaw::BlockLength { length: 0 };
        let block_type = self.order.u32_at(octets, 0).ok_or(too_short)?;
        let length = self.order.u32_at(octets, 4).ok_or(too_short)?;
        if length < MIN_BLOCK_LEN as u32 || !length.is_multiple_of(4) {
            return Err(Flaw::BlockLength { length });
        }
        Ok(BlockFrame { kind: BlockKind::of(block_type), length })
    }

    /// Checks that the last four octets of `octets` repeat the length of the block.
    pub(crate) fn end(&self, frame: BlockFrame, octets: &[u8]) -> Result<(), Flaw> {
        match octets.last_chunk().map(|&last| self.order.u32(last)) {
            Some(last) if last != frame.length => Err(Flaw::BlockLengthsDiffer { first: frame.length, last }),
            _ => Ok(()),
        }
    }

    /// Reads a whole block; returns its record if it contains one.
    pub(crate) fn handle_block(
        &mut self,
        frame: BlockFrame,
        block: &[u8],
    ) -> Result<Option<FoundRecord>, Flaw> {
        let parse = match self.order {
            ByteOrder::Little => parse_block_le,
            ByteOrder::Big => parse_block_be,
        };
        match parse(block) {
            Ok((_, Block::SectionHeader(header))) => self.handle_section_header(&header).map(|()| None),
            Ok((_, Block::InterfaceDescription(idb))) => self.handle_interface(&idb).map(|()| None),
            Ok((_, Block::EnhancedPacket(packet))) => self.enhanced_packet(&packet).map(Some),
            Ok((_, Block::SimplePacket(packet))) => self.simple_packet(&packet).map(Some),
            Ok((_, Block::Unknown(_))) if frame.kind == BlockKind::Packet => self.packet(block).map(Some),
            Ok(_) => Ok(None),
            Err(_) => Err(match frame.kind {
                BlockKind::SectionHeader => Flaw::BlockTooShort { block_type: BlockKind::SECTION_HEADER },
                BlockKind::InterfaceDescription => {
                    Flaw::BlockTooShort { block_type: BlockKind::INTERFACE_DESCRIPTION }
                }
                BlockKind::Packet | BlockKind::Other => Flaw::PacketTooLong,
            }),
        }
    }

    /// Link type of the first interface, if one is described.
    pub(crate) fn first_link_type(&self) -> Option<LinkType> {
        self.interfaces.first().map(|interface| interface.link_type)
    }

    fn handle_section_header(&mut self, header: &SectionHeaderBlock<'_>) -> Result<(), Flaw> {
        // Some tools wrote 1.2, which equals 1.0 (section 4.1).
        let (major, minor) = (header.major_version, header.minor_version);
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Flaw::Version { major, minor });
        }
        self.interfaces.clear();
        Ok(())
    }

    fn handle_interface(&mut self, block: &InterfaceDescriptionBlock<'_>) -> Result<(), Flaw> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Flaw::TooManyInterfaces { limit: MAX_INTERFACES });
        }
        let mut interface = Interface {
            link_type: LinkType(block.linktype.0 as u16),
            snap_len: block.snaplen,
            if_tsresol: 6,
            if_tsoffset: 0,
        };
        for option in block.options.iter().take_while(|option| option.code != OptionCode::EndOfOpt) {
            let Ok(value) = option.as_bytes() else { continue };
            match (option.code, value) {
                (OptionCode::IfTsresol, &[resolution]) => interface.if_tsresol = resolution,
                (OptionCode::IfTsoffset, &[a, b, c, d, e, f, g, h]) => {
                    interface.if_tsoffset = self.order.i64([a, b, c, d, e, f, g, h]);
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Reads an Enhanced Packet Block (section 4.3).
    fn enhanced_packet(&self, packet: &EnhancedPacketBlock<'_>) -> Result<FoundRecord, Flaw> {
        let interface = self.interface(packet.if_id)?;
        Ok(FoundRecord {
            data: PACKET_DATA_AT..PACKET_DATA_AT + packet.packet_data().len(),
            time: interface.time(packet.ts_high, packet.ts_low),
            link_type: interface.link_type,
            original_len: packet.origlen,
        })
    }

    /// Reads a Simple Packet Block (section 4.4). It has no captured length: that is the original length,
    /// limited by the snap length of the first interface.
    fn simple_packet(&self, packet: &SimplePacketBlock<'_>) -> Result<FoundRecord, Flaw> {
        let interface = self.interface(0)?;
        let snap_len = match interface.snap_len {
            0 => u32::MAX,
            limit => limit,
        };
        let captured_len = packet.packet_data().len().min(snap_len as usize);
        Ok(FoundRecord {
            data: SIMPLE_PACKET_DATA_AT..SIMPLE_PACKET_DATA_AT + captured_len,
            time: Timestamp::default(),
            link_type: interface.link_type,
            original_len: packet.origlen,
        })
    }

    /// Reads a Packet Block (obsolete, appendix A).
    fn packet(&self, block: &[u8]) -> Result<FoundRecord, Flaw> {
        let u32_at = |at| self.order.u32_at(block, at).ok_or(Flaw::PacketTooLong);
        let interface_id = self.order.u16_at(block, 8).ok_or(Flaw::PacketTooLong)?;
        let (ts_high, ts_low) = (u32_at(12)?, u32_at(16)?);
        let (captured_len, original_len) = (u32_at(20)? as usize, u32_at(24)?);

        let interface = self.interface(interface_id.into())?;
        if captured_len > block.len().saturating_sub(PACKET_DATA_AT + size_of::<u32>()) {
            return Err(Flaw::PacketTooLong);
        }
        Ok(FoundRecord {
            data: PACKET_DATA_AT..PACKET_DATA_AT + captured_len,
            time: interface.time(ts_high, ts_low),
            link_type: interface.link_type,
            original_len,
        })
    }

    fn interface(&self, id: u32) -> Result<&Interface, Flaw> {
        let unknown = Flaw::UnknownInterface { interface: id, described: self.interfaces.len() };
        self.interfaces.get(id as usize).ok_or(unknown)
    }
}

/// Contents of an Interface Description Block (section 4.2).
#[derive(Debug)]
struct Interface {
    link_type: LinkType,
    /// Snap length in octets; 0: no limit.
    snap_len: u32,
    /// Negative exponent of the duration of a tick in seconds: to base 2 if the top bit is set, otherwise to
    /// base 10.
    if_tsresol: u8,
    /// Time of tick 0, in seconds since the epoch.
    if_tsoffset: i64,
}

impl Interface {
    fn time(&self, ts_high: u32, ts_low: u32) -> Timestamp {
        let ticks = i128::from(ts_high) << 32 | i128::from(ts_low);
        let exponent = u32::from(self.if_tsresol & 0x7f);
        // Below 2^94, and thus below every power of ten that does not fit.
        let scaled = ticks * 1_000_000_000;
        let nanos = match self.if_tsresol & 0x80 {
            0 => 10_i128.checked_pow(exponent).map_or(0, |ticks_per_second| scaled / ticks_per_second),
            _ => scaled >> exponent,
        };
        Timestamp::from_wide(nanos + i128::from(self.if_tsoffset) * 1_000_000_000)
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    /// Byte order, from the magic of a Section Header Block.
    fn of_section(block: &[u8]) -> Option<Self> {
        [Self::Little, Self::Big].into_iter().find(|order| order.u32_at(block, 8) == Some(BYTE_ORDER_MAGIC))
    }

    fn u16_at(self, octets: &[u8], at: usize) -> Option<u16> {
        let &octets = octets.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        })
    }

    fn u32_at(self, octets: &[u8], at: usize) -> Option<u32> {
        Some(self.u32(*octets.get(at..)?.first_chunk()?))
    }

    fn u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    fn i64(self, octets: [u8; 8]) -> i64 {
        match self {
            Self::Little => i64::from_le_bytes(octets),
            Self::Big => i64::from_be_bytes(octets),
        }
    }
}
