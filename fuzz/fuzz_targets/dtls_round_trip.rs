#![no_main]
//! Profile 0x0182: all packets of a flow of records are restored bit for bit; behind losses and forged packets the ends go on.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::dtls::{DtlsSetup, RecordStep, round_trip};

fuzz_target!(|input: (DtlsSetup, Vec<RecordStep>)| {
    let (setup, steps) = input;
    round_trip(&setup, &steps);
});
