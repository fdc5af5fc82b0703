//! Instructions of one call for each row of the paper `coap-delay`; the machine's speed and load play no part.
//!
//! `cargo bench -p thinair-papers --bench delay` lets valgrind count the instructions of one call of
//! `Compressor::compress` and of one of `Decompressor::decompress`. It needs valgrind and `gungraun-runner` in the
//! version of the `gungraun` crate; `make bench` installs both. The setup before the call is not counted.
//! `scripts/delay` makes a table of the counts.

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;

use callgrind::instructions_alone;
use gungraun::{library_benchmark, library_benchmark_group, main};
use thinair_rohc::{CompressorMemory, DecompressorMemory};

use exchange::CallProfile::{self, Coap, Coap2015, Udp};
use exchange::Half::{Get, Response};
use exchange::PacketType::{Ir1, Ir2, Ir3, IrDyn, Uo0, Uor2};
use exchange::{BLOCKS, CallCase, CallCompressor, CallDecompressor, Half, PacketType, PreparedCall, ROOM};

#[path = "../../../crates/rohc/benches/common/callgrind.rs"]
mod callgrind;

#[path = "../src/coap_delay/exchange.rs"]
mod exchange;

/// Defines a function that is measured with each case. (The attributes of gungraun accept a function from a macro only
/// if all of it belongs to the macro.)
macro_rules! measure {
    ($name:ident: $side:ty) => {
        #[library_benchmark]
        #[bench::coap_2015_ir_1_get(<$side>::before(Ir1, Get, Coap2015))]
        #[bench::coap_2015_ir_1_rsp(<$side>::before(Ir1, Response, Coap2015))]
        #[bench::coap_2015_ir_2_get(<$side>::before(Ir2, Get, Coap2015))]
        #[bench::coap_2015_ir_2_rsp(<$side>::before(Ir2, Response, Coap2015))]
        #[bench::coap_2015_ir_3_get(<$side>::before(Ir3, Get, Coap2015))]
        #[bench::coap_2015_ir_3_rsp(<$side>::before(Ir3, Response, Coap2015))]
        #[bench::coap_2015_ir_dyn_get(<$side>::before(IrDyn, Get, Coap2015))]
        #[bench::coap_2015_ir_dyn_rsp(<$side>::before(IrDyn, Response, Coap2015))]
        #[bench::coap_2015_uor_2_get(<$side>::before(Uor2, Get, Coap2015))]
        #[bench::coap_2015_uor_2_rsp(<$side>::before(Uor2, Response, Coap2015))]
        #[bench::coap_2015_uo_0_get(<$side>::before(Uo0, Get, Coap2015))]
        #[bench::coap_2015_uo_0_rsp(<$side>::before(Uo0, Response, Coap2015))]
        #[bench::udp_ir_1_get(<$side>::before(Ir1, Get, Udp))]
        #[bench::udp_ir_1_rsp(<$side>::before(Ir1, Response, Udp))]
        #[bench::udp_ir_2_get(<$side>::before(Ir2, Get, Udp))]
        #[bench::udp_ir_2_rsp(<$side>::before(Ir2, Response, Udp))]
        #[bench::udp_ir_3_get(<$side>::before(Ir3, Get, Udp))]
        #[bench::udp_ir_3_rsp(<$side>::before(Ir3, Response, Udp))]
        #[bench::udp_ir_dyn_get(<$side>::before(IrDyn, Get, Udp))]
        #[bench::udp_ir_dyn_rsp(<$side>::before(IrDyn, Response, Udp))]
        #[bench::udp_uor_2_get(<$side>::before(Uor2, Get, Udp))]
        #[bench::udp_uor_2_rsp(<$side>::before(Uor2, Response, Udp))]
        #[bench::udp_uo_0_get(<$side>::before(Uo0, Get, Udp))]
        #[bench::udp_uo_0_rsp(<$side>::before(Uo0, Response, Udp))]
        #[bench::coap_ir_1_get(<$side>::before(Ir1, Get, Coap))]
        #[bench::coap_ir_1_rsp(<$side>::before(Ir1, Response, Coap))]
        #[bench::coap_ir_2_get(<$side>::before(Ir2, Get, Coap))]
        #[bench::coap_ir_2_rsp(<$side>::before(Ir2, Response, Coap))]
        #[bench::coap_ir_3_get(<$side>::before(Ir3, Get, Coap))]
        #[bench::coap_ir_3_rsp(<$side>::before(Ir3, Response, Coap))]
        #[bench::coap_ir_dyn_get(<$side>::before(IrDyn, Get, Coap))]
        #[bench::coap_ir_dyn_rsp(<$side>::before(IrDyn, Response, Coap))]
        #[bench::coap_uor_2_get(<$side>::before(Uor2, Get, Coap))]
        #[bench::coap_uor_2_rsp(<$side>::before(Uor2, Response, Coap))]
        #[bench::coap_uo_0_get(<$side>::before(Uo0, Get, Coap))]
        #[bench::coap_uo_0_rsp(<$side>::before(Uo0, Response, Coap))]
        fn $name(side: &'static mut $side) -> usize {
            side.go()
        }
    };
}

measure!(compress: Compressing);
measure!(decompress: Decompressing);

library_benchmark_group!(name = call, benchmarks = [compress, decompress]);

main!(config = instructions_alone(), library_benchmark_groups = call);

/// Compressor directly before the measured call.
struct Compressing {
    side: CallCompressor<'static>,
    ready: PreparedCall,
    out: [u8; ROOM],
}

/// Decompressor directly before the measured call.
struct Decompressing {
    side: CallDecompressor<'static>,
    ready: PreparedCall,
    out: [u8; ROOM],
}

impl Compressing {
    /// Leaks its memory, so that the measurement frees nothing.
    fn before(kind: PacketType, half: Half, profile: CallProfile) -> &'static mut Self {
        let (side, _, ready) = sides(kind, half, profile);
        Box::leak(Box::new(Self { side, ready, out: [0; ROOM] }))
    }

    #[inline]
    fn go(&mut self) -> usize {
        let packet = black_box(self.ready.packet());
        self.side.compress(self.ready.now, packet, &mut self.out).map_or(0, |(len, ..)| len)
    }
}

impl Decompressing {
    fn before(kind: PacketType, half: Half, profile: CallProfile) -> &'static mut Self {
        let (_, side, ready) = sides(kind, half, profile);
        Box::leak(Box::new(Self { side, ready, out: [0; ROOM] }))
    }

    #[inline]
    fn go(&mut self) -> usize {
        let rohc = black_box(self.ready.rohc());
        self.side.decompress(self.ready.now, rohc, &mut self.out).unwrap_or(0)
    }
}

/// Both sides directly before the packet, and the packet.
fn sides(
    kind: PacketType,
    half: Half,
    profile: CallProfile,
) -> (CallCompressor<'static>, CallDecompressor<'static>, PreparedCall) {
    let case = CallCase { kind, half, profile };
    let config = case.config().expect("the profiles have no rival");
    let channel = config.channel;
    let compressor = || case.compressor(config, CompressorMemory::owned(channel.sizes().blocks(BLOCKS)));
    let (ready, number) = case.scout(&mut compressor()).expect("the packet comes");
    let memory = DecompressorMemory::owned(channel.sizes().blocks(BLOCKS));
    let (mut near, mut far) = (compressor(), case.decompressor(channel, memory));
    assert!(case.replay(number, &mut near, &mut far));
    (near, far, ready)
}
