#![no_main]
//! Profile 0x0081: all packets of two endpoints are restored bit for bit; on a lossy link they continue.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{Setup, Step, round_trip};
use thinair_rohc::ProfileId;

fuzz_target!(|input: (Setup, bool, Vec<Step>)| {
    let (setup, loses, steps) = input;
    round_trip(ProfileId::Coap, &setup, loses, &steps);
});
