//! Decompressor with 4 contexts in static memory.

#![no_std]
#![no_main]

use core::hint::black_box;

use static_cell::StaticCell;
use thinair_firmware::{CONTEXT_COUNT, MTU, Rooms, channel};
use thinair_rohc::feedback::MAX_ELEMENT;
use thinair_rohc::{Decompressor, DecompressorConfig, DecompressorStorage, Instant, Mode};

static STORAGE: StaticCell<DecompressorStorage<CONTEXT_COUNT, Rooms>> = StaticCell::new();
static DECOMPRESSOR: StaticCell<Decompressor<'static>> = StaticCell::new();

/// Entry point, from which the linker finds used code. Its name is fixed, which is the only reason for `unsafe`: no
/// other symbol may have it, and none does.
#[allow(unsafe_code, reason = "the linker needs a name")]
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    if let Ok(channel) = channel() {
        let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
        let storage = STORAGE.init_with(DecompressorStorage::sized);
        run(DECOMPRESSOR.init_with(|| Decompressor::new(config, storage)));
    }
    loop {
        core::hint::spin_loop();
    }
}

/// Driver's loop: ROHC packets in, packets and feedback out. The optimizer cannot assume anything about them.
fn run(decompressor: &mut Decompressor<'static>) {
    let mut rohc = [0; MTU + 16];
    let mut out = [0; MTU];
    let mut element = [0; MAX_ELEMENT];
    let mut millis = 0;
    loop {
        millis = black_box(millis);
        let rohc = black_box(&mut rohc);
        if let Ok(done) = decompressor.decompress(Instant::from_millis(millis), rohc, &mut out) {
            black_box(&out[..done.len.min(out.len())]);
        }
        while let Some(len) = decompressor.poll_feedback(&mut element) {
            black_box(&element[..len.min(element.len())]);
        }
    }
}
