//! What contexts take in memory, on a machine with pointers of 64 bits.

#![allow(missing_docs)]

use thinair_rohc::profile::coap::Template;
use thinair_rohc::profile::rfc6846::TcpRoom;
use thinair_rohc::{Compressor, Decompressor};

/// Octets of the index of flows for one context: two buckets of two octets.
const INDEX: usize = 2 * 2;

/// A context of any profile with a block of extension headers; templates come from the pool of its channel.
#[test]
fn a_context_takes_at_most_528_octets_on_either_side() {
    let (context, block) = Compressor::octets_per_context();
    assert!(context + block + INDEX <= 528, "compressor: {context} and {block}");
    let (context, block) = Decompressor::octets_per_context();
    assert!(context + block <= 512, "decompressor: {context} and {block}");
}

/// On a channel with profile 0x0006, a context with the place that a flow of it has beside it.
#[test]
fn a_context_of_tcp_takes_at_most_784_octets_on_either_side() {
    let room = size_of::<TcpRoom>();
    let (context, _) = Compressor::octets_per_context();
    assert!(context + room + INDEX <= 784, "compressor: {context} and {room}");
    let (context, _) = Decompressor::octets_per_context();
    assert!(context + room <= 768, "decompressor: {context} and {room}");
}

#[test]
fn a_template_takes_at_most_48_octets() {
    assert!(size_of::<Template>() <= 48, "{}", size_of::<Template>());
}
