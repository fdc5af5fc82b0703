//! What the programs of this package share: the channel, and what happens on a panic.
//!
//! The programs are linked for a Cortex-M4 but not laid out for one: without a memory map they do not start on a
//! board. They exist to be measured. Their static memory is that of the compressor or decompressor and nothing
//! else; packets lie on the stack, as buffers belong to the driver of a radio.

#![no_std]

use thinair_rohc::{Channel, ChannelError, CidSpace, ProfileSet};

/// Contexts: flows that are compressed at the same time.
pub const CONTEXT_COUNT: usize = 4;

/// Blocks for extension headers: one for each context.
pub const BLOCK_COUNT: usize = 4;

/// Templates of CoAP messages: four for each context.
pub const TEMPLATE_COUNT: usize = 4 * CONTEXT_COUNT;

/// Messages of one direction that those of the other can refer to, twice: half of them may be lost.
pub const EXCHANGE_COUNT: usize = 16;

/// The longest packet in octets: the MTU of IPv6 on constrained links.
pub const MTU: usize = 1_280;

/// Small CIDs 0 to 3, and every profile of the build.
pub fn channel() -> Result<Channel, ChannelError> {
    Channel::new(CidSpace::Small, CONTEXT_COUNT as u16 - 1, ProfileSet::default())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
