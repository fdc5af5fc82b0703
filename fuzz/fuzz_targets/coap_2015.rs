#![no_main]
//! Profile 0x0080: the targets `coap_decompress`, `coap_round_trip` and `coap_feedback` of 0x0081.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_fuzz::coap::{CoapSetup, CompressorInput, Forged, MessageStep, decompress, feedback, round_trip};
use thinair_rohc::ProfileId;

#[derive(Arbitrary, Debug)]
enum Coap2015Input {
    Decompress(Vec<MessageStep>, Vec<Forged>),
    RoundTrip(bool, Vec<MessageStep>),
    Feedback(Vec<CompressorInput>),
}

fuzz_target!(|input: (CoapSetup, Coap2015Input)| {
    let (setup, input) = input;
    let profile = ProfileId::Coap2015;
    match input {
        Coap2015Input::Decompress(steps, packets) => decompress(profile, &setup, &steps, &packets),
        Coap2015Input::RoundTrip(loses, steps) => round_trip(profile, &setup, loses, &steps),
        Coap2015Input::Feedback(events) => feedback(profile, &setup, &events),
    }
});
