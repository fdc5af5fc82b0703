//! Values of Block1 and Block2. RFC 7959, section 2.2; BERT: RFC 8323, section 6.

/// Size of a block: SZX, 0 to 6, for 16 to 1,024 octets, or BERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u8);

impl BlockSize {
    /// 16 octets.
    pub const MIN: Self = Self(0);
    /// 1,024 octets.
    pub const MAX: Self = Self(6);
    /// SZX 7 over a stream: any number of blocks of 1,024 octets in one message.
    pub const BERT: Self = Self(7);

    /// SZX, 0 to 7.
    pub const fn from_szx(szx: u8) -> Option<Self> {
        if szx <= 7 { Some(Self(szx)) } else { None }
    }

    /// Returns the largest size that does not exceed `octets`; 16 if `octets` is less.
    pub const fn at_most(octets: usize) -> Self {
        let mut szx = 6;
        while szx > 0 && 16 << szx > octets {
            szx -= 1;
        }
        Self(szx)
    }

    /// SZX.
    pub const fn szx(self) -> u8 {
        self.0
    }

    /// Octets of a block, 16 to 1,024. The unit of block numbers, also with BERT.
    pub const fn octets(self) -> usize {
        if self.0 >= 6 { 1024 } else { 16 << self.0 }
    }
}

/// A block of a body: NUM, M and SZX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// NUM, at most 2^20 - 1.
    pub num: u32,
    /// M: more blocks follow.
    pub more: bool,
    /// Block size.
    pub size: BlockSize,
}

impl Block {
    /// Largest NUM.
    pub const MAX_NUM: u32 = (1 << 20) - 1;

    /// Returns the block that starts at octet `offset`, a multiple of its size.
    pub const fn at(offset: usize, more: bool, size: BlockSize) -> Self {
        Self { num: (offset / size.octets()) as u32, more, size }
    }

    /// Decodes the value of an option; `None` if it has more than 3 octets.
    pub fn from_uint(value: u32) -> Option<Self> {
        let size = BlockSize::from_szx(value as u8 & 0b111)?;
        (value < 1 << 24).then_some(Self { num: value >> 4, more: value & 0b1000 != 0, size })
    }

    /// Encodes the value of an option.
    pub const fn to_uint(self) -> u32 {
        (self.num & Self::MAX_NUM) << 4 | (self.more as u32) << 3 | self.size.0 as u32
    }

    /// Returns the offset of the block in the body, in octets.
    pub const fn offset(self) -> usize {
        self.num as usize * self.size.octets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7959, section 2.2 and the examples of section 3: `0/1/128`, `3/0/16`.
    #[test]
    fn a_value_is_num_m_and_szx() {
        let block = Block { num: 3, more: true, size: BlockSize::at_most(128) };
        assert_eq!(block.to_uint(), 3 << 4 | 8 | 3);
        for value in [0, 1, 7, 8, 0x3B, 0x00FF_FFFF] {
            assert_eq!(Block::from_uint(value).map(Block::to_uint), Some(value));
        }
        assert_eq!(Block::from_uint(1 << 24), None);
        assert_eq!(block.offset(), 384);
    }

    #[test]
    fn a_size_is_never_above_what_was_asked_for() {
        let sizes =
            [0, 15, 16, 31, 32, 1023, 1024, 1 << 20].map(|octets| BlockSize::at_most(octets).octets());
        assert_eq!(sizes, [16, 16, 16, 16, 32, 512, 1024, 1024]);
        assert_eq!(BlockSize::BERT.octets(), 1024);
    }
}
