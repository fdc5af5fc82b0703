//! Complete end of a link in static memory: compressor and decompressor with 4 contexts each, and the messages that
//! CoAP responses refer to.

#![no_std]
#![no_main]

use core::hint::black_box;

use static_cell::StaticCell;
#[cfg(feature = "coap")]
use thinair_firmware::EXCHANGE_COUNT;
use thinair_firmware::{CONTEXT_COUNT, MTU, Rooms, channel};
#[cfg(feature = "coap")]
use thinair_rohc::exchange::{CoapExchange, Exchanges};
use thinair_rohc::{CompressorConfig, DecompressorConfig, Endpoint, Instant, Mode, Storage};

static STORAGE: StaticCell<Storage<CONTEXT_COUNT, Rooms>> = StaticCell::new();
#[cfg(feature = "coap")]
static EXCHANGES: StaticCell<[[CoapExchange; EXCHANGE_COUNT]; 2]> = StaticCell::new();
static ENDPOINT: StaticCell<Endpoint<'static>> = StaticCell::new();

/// Entry point, from which the linker finds used code. Its name is fixed, which is the only reason for `unsafe`: no
/// other symbol may have it, and none does.
#[allow(unsafe_code, reason = "the linker needs a name")]
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    if let Ok(channel) = channel() {
        let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
        let storage = STORAGE.init_with(Storage::sized);
        #[cfg(feature = "coap")]
        let [sent, received] = EXCHANGES.init_with(|| [[CoapExchange::EMPTY; EXCHANGE_COUNT]; 2]);
        run(ENDPOINT.init_with(move || {
            let endpoint = Endpoint::in_storage(CompressorConfig::new(channel), config, storage);
            #[cfg(feature = "coap")]
            let endpoint = endpoint.with_exchanges(Exchanges::new(sent), Exchanges::new(received));
            endpoint
        }));
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
