#![no_main]
//! Profile 0x0181: forged feedback, while a decompressor receives every packet.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{CoapSetup, CompressorInput, feedback};
use thinair_rohc::ProfileId;

fuzz_target!(|input: (CoapSetup, Vec<CompressorInput>)| {
    let (setup, events) = input;
    feedback(ProfileId::Coap, &setup, &events);
});
