#![no_main]
//! Profile 0x0080: the targets `coap_decompress`, `coap_round_trip` and `coap_feedback` of 0x0081.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{Event, Forged, Setup, Step, decompress, feedback, round_trip};
use thinair_rohc::ProfileId;

#[derive(Arbitrary, Debug)]
enum Input {
    Decompress(Vec<Step>, Vec<Forged>),
    RoundTrip(bool, Vec<Step>),
    Feedback(Vec<Event>),
}

fuzz_target!(|input: (Setup, Input)| {
    let (setup, input) = input;
    let profile = ProfileId::Coap2015;
    match input {
        Input::Decompress(steps, packets) => decompress(profile, &setup, &steps, &packets),
        Input::RoundTrip(loses, steps) => round_trip(profile, &setup, loses, &steps),
        Input::Feedback(events) => feedback(profile, &setup, &events),
    }
});
