//! Compressor with 4 contexts in static memory.

#![no_std]
#![no_main]

use core::hint::black_box;

use static_cell::StaticCell;
use thinair_firmware::{CONTEXT_COUNT, MTU, Rooms, channel};
use thinair_rohc::feedback::MAX_ELEMENT;
use thinair_rohc::{Compressor, CompressorConfig, CompressorStorage, Instant};

static STORAGE: StaticCell<CompressorStorage<CONTEXT_COUNT, Rooms>> = StaticCell::new();
static COMPRESSOR: StaticCell<Compressor<'static>> = StaticCell::new();

/// Entry point, from which the linker finds used code. Its name is fixed, which is the only reason for `unsafe`: no
/// other symbol may have it, and none does.
#[allow(unsafe_code, reason = "the linker needs a name")]
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    if let Ok(channel) = channel() {
        let storage = STORAGE.init_with(CompressorStorage::sized);
        run(COMPRESSOR.init_with(|| Compressor::new(CompressorConfig::new(channel), storage)));
    }
    loop {
        core::hint::spin_loop();
    }
}

/// Driver's loop: packets and feedback in, ROHC packets out. The optimizer cannot assume anything about them.
fn run(compressor: &mut Compressor<'static>) {
    let mut packet = [0; MTU];
    let mut out = [0; MTU + 16];
    let mut element = [0; MAX_ELEMENT];
    let mut millis = 0;
    loop {
        millis = black_box(millis);
        let now = Instant::from_millis(millis);
        let packet = black_box(&mut packet);
        if let Ok(compressed) = compressor.compress(now, packet, &mut out) {
            black_box(&out[..compressed.len.min(out.len())]);
        }
        let _ = compressor.receive_feedback(now, black_box(&mut element));
    }
}
