#![no_main]
//! Forged ROHC packets for a decompressor with contexts of profile 0x0006.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::tcp::{Connections, TcpSetup, TcpStep, decompress};

fuzz_target!(|input: (TcpSetup, Connections, Vec<TcpStep>, Vec<Vec<u8>>)| {
    let (setup, connections, steps, forged) = input;
    decompress(&setup, &connections, &steps, &forged);
});
