//! Options of a message that the endpoint itself processes, collected in one walk.

use core::hash::Hasher;

use thinair_wire::header::coap::{CoapOption, Code};

use crate::block::Block;
use crate::number;
use crate::table::KeyedHasher;

/// Octets of an Echo value. A response that consists of such a value only is at most three times as long as its
/// request: 4 + 2 + 6 octets and a Token, against 4 octets and a Token.
pub(super) const ECHO: usize = 6;

/// Critical options that a response may have.
const IN_RESPONSES: &[u16] = &[number::BLOCK1, number::BLOCK2];

/// Options that the endpoint processes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest {
    pub(super) observe: Option<u32>,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    pub(super) size1: Option<u32>,
    pub(super) size2: Option<u32>,
    pub(super) no_response: u8,
    /// Echo, if it has the length of an own value.
    pub(super) echo: Option<[u8; ECHO]>,
    /// First critical option that is not recognized, is repeated too often, or has a wrong length.
    pub(super) refused: Option<u16>,
    /// True with OSCORE, if this crate implements it.
    pub(super) is_protected: bool,
    /// True with Proxy-Uri or Proxy-Scheme.
    pub(super) proxy: bool,
    transfer: KeyedHasher,
    previous: Option<u16>,
}

impl Digest {
    /// Adds an option of a message with this code, in the order of the message. A request may have critical options
    /// that are `recognised`.
    #[inline]
    pub(super) fn note(&mut self, code: Code, option: &CoapOption<'_>, recognised: &[u16]) {
        let number = option.number;
        let again = self.previous.replace(number) == Some(number);
        let sound = number::allows(number, option.value.len()) && (!again || number::is_repeatable(number));
        if cfg!(feature = "oscore") && number == number::OSCORE && !again {
            self.is_protected = true;
            return;
        }
        if number::is_critical(number) {
            let recognised = if code.class() == 0 { recognised } else { IN_RESPONSES };
            if matches!(number, number::PROXY_URI | number::PROXY_SCHEME) {
                self.proxy = true;
            } else if !sound || !recognised.contains(&number) {
                self.refused = self.refused.or(Some(number));
                return;
            }
        } else if !sound {
            // An invalid elective option is ignored: RFC 7252, sections 5.4.1, 5.4.3 and 5.4.5.
            return;
        }
        if !self.take(option) && !number::is_no_cache_key(number) {
            self.transfer.write_u32(u32::from(number) << 16 | option.value.len() as u32 & 0xFFFF);
            self.transfer.write(option.value);
        }
    }

    /// Returns a hash common to the blocks of one body: of the method and all options except those that are no part of
    /// the cache key, Block1, Block2 and Observe. RFC 7959, section 2.
    #[inline]
    pub(super) fn transfer(&self, method: Code) -> u64 {
        let mut transfer = self.transfer;
        transfer.write_u8(method.0);
        transfer.finish()
    }

    /// Stores an option that the endpoint processes; false if it is another one.
    #[inline]
    fn take(&mut self, option: &CoapOption<'_>) -> bool {
        match option.number {
            number::OBSERVE => self.observe = option.uint(),
            number::BLOCK1 => self.block1 = option.uint().and_then(Block::from_uint),
            number::BLOCK2 => self.block2 = option.uint().and_then(Block::from_uint),
            number::SIZE1 => self.size1 = option.uint(),
            number::SIZE2 => self.size2 = option.uint(),
            number::NO_RESPONSE => self.no_response = option.uint().unwrap_or(0) as u8,
            number::ECHO => self.echo = option.value.try_into().ok(),
            _ => return false,
        }
        true
    }
}
