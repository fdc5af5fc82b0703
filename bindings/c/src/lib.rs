//! C library of `thinair-rohc`: one handle for a compressor, a decompressor, or the pair of a bearer.
//!
//! `include/thinair_rohc.h` documents every function, structure and constant; the tests of this crate compare it with what is
//! here. The crate translates between C and [`thinair_rohc::Endpoint`], and knows nothing of the profiles.
//!
//! - [`abi`]: structures and constants as C sees them.
//! - `config`: parameters of a handle, checked.
//! - `memory`: a handle with everything that it needs in one block of memory.
//! - [`functions`]: the functions of the library; `handle`: one packet through a handle; `pointers`: pointers of C as references.

#![cfg_attr(not(feature = "std"), no_std)]

pub mod abi;
mod config;
pub mod functions;
mod handle;
mod memory;
mod pointers;

pub use memory::Handle;

/// Stops here: the engine has no call that panics, and without an operating system nobody could be notified.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
