//! Packed bodies of the tunnel, from outside and our own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thinair_fuzz::packaging::{Input, run};
use thinair_tunnel::site_config::Packaging;

fuzz_target!(|input: Input<'_>| run(|_| Packaging::Packed, &input, |_| {}));
