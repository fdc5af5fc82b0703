//! Parts that the programs of this package share: the channel, and the panic handler.
//!
//! The programs are linked for a Cortex-M4 but have no memory layout, without which they do not start on a board. They
//! exist to be measured. Their static memory is only that of the compressor or decompressor; packets are on the stack,
//! as buffers belong to the driver of a radio.

#![no_std]

use thinair_rohc::storage::ExtensionBlock;
#[cfg(feature = "coap")]
use thinair_rohc::storage::Template;
use thinair_rohc::{Channel, ChannelError, CidSpace, ProfileSet};

/// Number of contexts: flows that are compressed at the same time.
pub const CONTEXT_COUNT: usize = 4;

/// Memory of profiles at one end: for each context a block for extension headers and four templates of CoAP messages.
#[cfg(feature = "coap")]
pub type Rooms = ([ExtensionBlock; CONTEXT_COUNT], [Template; 4 * CONTEXT_COUNT]);

/// Memory of profiles at one end: for each context a block for extension headers.
#[cfg(not(feature = "coap"))]
pub type Rooms = [ExtensionBlock; CONTEXT_COUNT];

/// Number of messages of one direction that the other direction can refer to, doubled because half of them may be lost.
pub const EXCHANGE_COUNT: usize = 16;

/// Maximum size of a packet in octets: the MTU of IPv6 on constrained links.
pub const MTU: usize = 1_280;

/// Channel with small CIDs 0 to 3, and every profile of the build.
pub fn channel() -> Result<Channel, ChannelError> {
    Channel::new(CidSpace::Small, CONTEXT_COUNT as u16 - 1, ProfileSet::default())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
