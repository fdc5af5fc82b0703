//! A whole end of a link in static memory: compressor and decompressor with 4 contexts each, and the messages that
//! CoAP responses refer to.

#![no_std]
#![no_main]

use core::hint::black_box;

use static_cell::StaticCell;
use thinair_firmware::{BLOCK_COUNT, CONTEXT_COUNT, EXCHANGE_COUNT, MTU, TEMPLATE_COUNT, channel};
use thinair_rohc::compressor::{CompressorContext, FlowLink};
use thinair_rohc::decompressor::{Block, DecompressorContext};
use thinair_rohc::exchange::{Exchange, Exchanges};
use thinair_rohc::profile::coap::Template;
use thinair_rohc::storage::Slots;
use thinair_rohc::{
    Channel, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Mode,
};

static COMPRESSOR_CONTEXTS: StaticCell<[CompressorContext; CONTEXT_COUNT]> = StaticCell::new();
static LINKS: StaticCell<[FlowLink; CONTEXT_COUNT]> = StaticCell::new();
static BUCKETS: StaticCell<[u16; CONTEXT_COUNT * 2]> = StaticCell::new();
static DECOMPRESSOR_CONTEXTS: StaticCell<[DecompressorContext; CONTEXT_COUNT]> = StaticCell::new();
/// Of the compressor, and of the decompressor.
static BLOCKS: StaticCell<[[Block; BLOCK_COUNT]; 2]> = StaticCell::new();
static TEMPLATES: StaticCell<[[Template; TEMPLATE_COUNT]; 2]> = StaticCell::new();
/// Messages that were sent, and that came in.
static EXCHANGES: StaticCell<[[Exchange; EXCHANGE_COUNT]; 2]> = StaticCell::new();
static ENDPOINT: StaticCell<Endpoint<'static>> = StaticCell::new();

/// Where the linker starts to look for what is used. The name must be known to it, which is the only reason
/// for `unsafe`: no other symbol may have it, and none does.
#[allow(unsafe_code, reason = "the linker needs a name")]
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    if let Ok(channel) = channel() {
        run(ENDPOINT.init_with(|| endpoint(channel)));
    }
    loop {
        core::hint::spin_loop();
    }
}

fn endpoint(channel: Channel) -> Endpoint<'static> {
    let [blocks, other_blocks] = BLOCKS.init_with(|| [[Block::default(); BLOCK_COUNT]; 2]);
    let [templates, other_templates] = TEMPLATES.init_with(|| [[Template::EMPTY; TEMPLATE_COUNT]; 2]);
    let [sent, received] = EXCHANGES.init_with(|| [[Exchange::EMPTY; EXCHANGE_COUNT]; 2]);
    let memory = CompressorMemory {
        contexts: Slots::Lent(COMPRESSOR_CONTEXTS.init_with(|| [CompressorContext::EMPTY; CONTEXT_COUNT])),
        links: Slots::Lent(LINKS.init_with(|| [FlowLink::EMPTY; CONTEXT_COUNT])),
        buckets: Slots::Lent(BUCKETS.init_with(|| [0; CONTEXT_COUNT * 2])),
        blocks: Slots::Lent(blocks),
        templates: Slots::Lent(templates),
        tcp: Slots::Lent(&mut []),
    };
    let compressor = Compressor::new(CompressorConfig::new(channel), memory);
    let memory = DecompressorMemory {
        contexts: Slots::Lent(
            DECOMPRESSOR_CONTEXTS.init_with(|| [DecompressorContext::EMPTY; CONTEXT_COUNT]),
        ),
        blocks: Slots::Lent(other_blocks),
        templates: Slots::Lent(other_templates),
        tcp: Slots::Lent(&mut []),
        // No segments.
        unit: Slots::Lent(&mut []),
    };
    let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    Endpoint::new(compressor, Decompressor::new(config, memory))
        .with_exchanges(Exchanges::new(Slots::Lent(sent)), Exchanges::new(Slots::Lent(received)))
}

/// What a driver would do: packets and ROHC packets in both directions. Nothing is known of them.
fn run(endpoint: &mut Endpoint<'static>) {
    let mut packet = [0; MTU];
    let mut rohc = [0; MTU + 16];
    let mut millis = 0;
    loop {
        millis = black_box(millis);
        let now = Instant::from_millis(millis);
        if let Ok((_, len)) = endpoint.send(now, black_box(&mut packet), &mut rohc) {
            black_box(&rohc[..len.min(rohc.len())]);
        }
        if let Ok(done) = endpoint.receive(now, black_box(&mut rohc), &mut packet) {
            black_box(&packet[..done.len.min(packet.len())]);
        }
        while let Some(len) = endpoint.poll_feedback(&mut rohc) {
            black_box(&rohc[..len.min(rohc.len())]);
        }
    }
}
