#![no_main]
//! Profile 0x0181: all packets of two endpoints are restored bit for bit; on a lossy link they continue.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{CoapSetup, MessageStep, round_trip};
use thinair_rohc::ProfileId;

fuzz_target!(|input: (CoapSetup, bool, Vec<MessageStep>)| {
    let (setup, loses, steps) = input;
    round_trip(ProfileId::Coap, &setup, loses, &steps);
});
