#!/bin/sh
# TCP options behind one that the library does not know are not there.
#
# Expected: an option has a length, by which it is skipped if it is not known, RFC 9293, section 3.1 (MUST-6), so that Timestamps behind
# Multipath TCP (kind 30, RFC 8684) or Fast Open (34, RFC 7413) are found. smoltcp and dpkt do so.
# Version: etherparse 0.21.0 (crates.io).
# Behavior: the iterator of options returns an error for an unknown kind, and ends. A round-trip time that is measured by Timestamps has no
# sample from such a connection.
# Guess before the first run: Timestamps are found.
# Output seen: "[Err(UnknownId(30))]"; with both options in the other order, "[Ok(Timestamp(1, 2)), Err(UnknownId(30))]".
. "$(dirname "$0")/lib.sh"
cat >main.rs <<'END'
use etherparse::TcpSlice;

/// Data Sequence Signal of Multipath TCP, with a data acknowledgment.
const DSS: [u8; 8] = [30, 8, 0x20, 1, 0, 0, 0, 5];
const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];

fn options(listed: [&[u8]; 2]) -> String {
    let mut segment = vec![0xc0, 0, 0x16, 0x33, 0, 0, 0, 1, 0, 0, 0, 1, 10 << 4, 0x10, 0xff, 0xff, 0, 0, 0, 0];
    segment.extend(listed.concat());
    let read = TcpSlice::from_slice(&segment).unwrap();
    let found: Vec<_> = read.options_iterator().filter(|one| *one != Ok(etherparse::TcpOptionElement::Noop)).collect();
    format!("{found:?}")
}

fn main() {
    println!("{}, {}", options([&DSS, &TIMESTAMPS]), options([&TIMESTAMPS, &DSS]));
}
END
rust_program options 'etherparse = "=0.21.0"'
expect "etherparse 0.21.0, options behind and in front of an unknown one" "$(./options)" \
	"[Err(UnknownId(30))], [Ok(Timestamp(1, 2)), Err(UnknownId(30))]"
