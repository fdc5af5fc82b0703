#![no_main]
//! Forged ROHC packets for a decompressor with contexts of profile 0x0181.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{CoapSetup, Forged, MessageStep, decompress};
use thinair_rohc::ProfileId;

fuzz_target!(|input: (CoapSetup, Vec<MessageStep>, Vec<Forged>)| {
    let (setup, steps, packets) = input;
    decompress(ProfileId::Coap, &setup, &steps, &packets);
});
