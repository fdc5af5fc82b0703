//! Complete end of a link in static memory: compressor and decompressor with 4 contexts each, and the messages that
//! CoAP responses refer to.

#![no_std]
#![no_main]

use core::hint::black_box;

use static_cell::StaticCell;
use thinair_firmware::{BLOCK_COUNT, CONTEXT_COUNT, EXCHANGE_COUNT, MTU, TEMPLATE_COUNT, channel};
use thinair_rohc::{CompressorConfig, DecompressorConfig, Endpoint, Instant, Mode, Storage};

static STORAGE: StaticCell<Storage<CONTEXT_COUNT, BLOCK_COUNT, TEMPLATE_COUNT, 0, 0, EXCHANGE_COUNT>> =
    StaticCell::new();
static ENDPOINT: StaticCell<Endpoint<'static>> = StaticCell::new();

/// Entry point, from which the linker finds used code. Its name is fixed, which is the only reason for `unsafe`: no
/// other symbol may have it, and none does.
#[allow(unsafe_code, reason = "the linker needs a name")]
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    if let Ok(channel) = channel() {
        let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
        let storage = STORAGE.init_with(Storage::new);
        run(ENDPOINT.init_with(|| Endpoint::in_storage(CompressorConfig::new(channel), config, storage)));
    }
    loop {
        core::hint::spin_loop();
    }
}

/// Driver's loop: packets and ROHC packets in both directions. The optimizer cannot assume anything about them.
fn run(endpoint: &mut Endpoint<'static>) {
    let mut packet = [0; MTU];
    let mut rohc = [0; MTU + 16];
    let mut millis = 0;
    loop {
        millis = black_box(millis);
        let now = Instant::from_millis(millis);
        if let Ok(done) = endpoint.send(now, black_box(&mut packet), &mut rohc) {
            black_box(&rohc[..done.len.min(rohc.len())]);
        }
        if let Ok(done) = endpoint.receive(now, black_box(&mut rohc), &mut packet) {
            black_box(&packet[..done.len.min(packet.len())]);
        }
        while let Some(len) = endpoint.poll_feedback(&mut rohc) {
            black_box(&rohc[..len.min(rohc.len())]);
        }
    }
}
