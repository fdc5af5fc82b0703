//! Examples in the documents of this repository are compiled and run like those in the code.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/firmware.md")]
struct Firmware;
