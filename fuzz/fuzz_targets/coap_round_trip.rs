#![no_main]
//! Profile 0x0081: whatever two endpoints send, it comes back bit for bit; on a link that loses packets they go on.

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{Setup, Step, round_trip};
use thinair_rohc::ProfileId;

fuzz_target!(|input: (Setup, bool, Vec<Step>)| {
    let (setup, loses, steps) = input;
    round_trip(ProfileId::Coap, &setup, loses, &steps);
});
