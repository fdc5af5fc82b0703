#![no_main]
//! Profile 0x0006: all packets of a compressor are restored bit for bit; on a lossy link nothing panics.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::tcp::{Connections, TcpSetup, TcpStep, round_trip};

fuzz_target!(|input: (TcpSetup, Connections, Vec<TcpStep>, bool)| {
    let (setup, connections, steps, loses) = input;
    round_trip(&setup, &connections, &steps, loses);
});
