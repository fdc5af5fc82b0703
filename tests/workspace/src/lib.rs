//! Compiles and runs the examples in the documents of this repository.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/firmware.md")]
struct Firmware;
