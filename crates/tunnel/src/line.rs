//! Frames on lines that know none: SLIP, COBS, CRC-32.
