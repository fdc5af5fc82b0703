//! What the endpoint itself needs to know of the options of a message, in one walk.

use thinair_wire::header::coap::Options as Walk;

use crate::block::Block;
use crate::number;
use crate::table::KeyedHasher;
use core::hash::Hasher;

/// Options that the endpoint acts on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest {
    pub(super) observe: Option<u32>,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    pub(super) size1: Option<u32>,
    pub(super) size2: Option<u32>,
    pub(super) no_response: u8,
    /// The first critical option that nobody recognises, that stands there too often, or that has a wrong length.
    pub(super) refused: Option<u16>,
    /// Proxy-Uri or Proxy-Scheme.
    pub(super) proxy: bool,
}

impl Digest {
    #[inline]
    pub(super) fn of(options: &[u8], recognised: &[u16]) -> Self {
        let mut digest = Self::default();
        let mut previous = None;
        for option in Walk::new(options) {
            let number = option.number;
            let again = previous.replace(number) == Some(number);
            let sound = number::allows(number, option.value.len()) && !(again && !number::is_repeatable(number));
            if number::is_critical(number) {
                if matches!(number, number::PROXY_URI | number::PROXY_SCHEME) {
                    digest.proxy = true;
                } else if !sound || !recognised.contains(&number) {
                    digest.refused = digest.refused.or(Some(number));
                    continue;
                }
            } else if !sound {
                // An elective option that is not right is ignored: RFC 7252, sections 5.4.1, 5.4.3 and 5.4.5.
                continue;
            }
            match number {
                number::OBSERVE => digest.observe = option.uint(),
                number::BLOCK1 => digest.block1 = option.uint().and_then(Block::from_uint),
                number::BLOCK2 => digest.block2 = option.uint().and_then(Block::from_uint),
                number::SIZE1 => digest.size1 = option.uint(),
                number::SIZE2 => digest.size2 = option.uint(),
                number::NO_RESPONSE => digest.no_response = option.uint().unwrap_or(0) as u8,
                _ => {}
            }
        }
        digest
    }
}

/// What blocks of one body have in common: method and options but those that are no part of the cache key, Block1,
/// Block2 and Observe. RFC 7959, section 2.
pub(super) fn transfer_key(method: u8, options: &[u8]) -> u64 {
    let mut hasher = KeyedHasher::new(0x7959);
    hasher.write_u8(method);
    for option in Walk::new(options) {
        if number::is_no_cache_key(option.number)
            || matches!(option.number, number::BLOCK1 | number::BLOCK2 | number::OBSERVE)
        {
            continue;
        }
        hasher.write_u16(option.number);
        hasher.write_usize(option.value.len());
        hasher.write(option.value);
    }
    hasher.finish()
}
