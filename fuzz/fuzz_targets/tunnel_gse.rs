//! BBFrames of GSE Packets.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::packaging::{Input, gse, run};
use thinair_ule::gse::BbHeader;

fuzz_target!(|input: Input<'_>| run(gse, &input, |octets| {
    if let Some(mut header) = BbHeader::new(octets.len()) {
        header.isi = (octets.len() % 2 == 0).then_some(1);
        octets.splice(0..0, header.write());
    }
}));
